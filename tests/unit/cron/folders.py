from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write(root: Path, name: str, *, schedule: str = "* * * * *", pokes: int = 1) -> None:
    folder = root / name
    folder.mkdir()
    (folder / "function.toml").write_text(
        f'name = "{name}"\nkind = "task"\nschedule = "{schedule}"\npokes = {pokes}\n'
    )
