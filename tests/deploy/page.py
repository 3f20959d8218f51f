"""The fenced blocks of a page, which say by their info string what is to be done with them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: Commands: to be run, run until they say what is shown, kept running; values that are the
#: reader's own; what needs an account.
RUN, EVENTUALLY, KEEP, YOURS, ACCOUNT = "", "eventually", "keep-running", "yours", "account"
KINDS = {RUN, EVENTUALLY, KEEP, YOURS, ACCOUNT}
#: First words of a block that needs an account: a reader does not see the info string.
MARK = "# needs your account"
_BLOCK = re.compile(r"^```(\w*) ?(.*)\n((?:.*\n)*?)```$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """`text` of `language`; `note` is the rest of the info string, `line` its place."""

    language: str
    note: str
    text: str
    line: int

    @property
    def is_file(self) -> bool:
        return self.language in {"toml", "python"}

    def matches(self, said: str) -> bool:
        """Whether these lines were said in this order; `…` stands for anything, spaces for one."""
        lines = [_pattern(line) for line in self.text.splitlines()]
        return re.search("(.*\n)*".join(lines), said) is not None


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(*found.groups(), line=text[: found.start()].count("\n") + 1)
        for found in _BLOCK.finditer(text)
    ]


def commands(text: str) -> list[list[str]]:
    """Words of each line, continued lines as one; neither comments nor what is fed to psql."""
    joined = re.sub(r"<<'?SQL'?.*\n(.*\n)*?SQL\n", "\n", text.replace("\\\n", " "))
    return [words for line in joined.splitlines() if (words := shlex.split(line, comments=True))]


def _pattern(line: str) -> str:
    words = [".*".join(map(re.escape, word.split("…"))) for word in line.split()]
    return r"[ \t]*" + r"[ \t]+".join(words) + r"[ \t]*\n"
