"""Messages in flight over time, one curve for each simulation. Needs the extra `local`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fairlease.simulate.measure import Measured

FORMATS = (".png", ".svg", ".pdf")


def check(path: Path) -> None:
    """Before a long simulation: raise `InvalidInput` where its picture could not be written."""
    if path.suffix not in FORMATS:
        raise InvalidInput(f"--plot {path}: give a file that ends in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise InvalidInput(f"--plot {path}: there is no folder {path.parent}; make it first")


def draw(curves: Mapping[str, Measured], path: Path) -> None:
    """Write the picture to `path`, whose ending is the format."""
    check(path)
    # A second of import that only this picture costs; `Figure` alone needs no display.
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(10, 2.2 * len(curves)), layout="constrained")
    axes = figure.subplots(len(curves), squeeze=False, sharex=True)[:, 0]
    for panel, (name, measured) in zip(axes, curves.items(), strict=True):
        minutes = [at / 60 for at, _ in measured.in_flight]
        running = [count for _, count in measured.in_flight]
        panel.fill_between(minutes, running, step="post", linewidth=0)
        panel.set_title(
            f"{name}: {measured.utilisation:.1%} in {measured.minutes:.1f} min", loc="left"
        )
        panel.set_ylabel("in flight")
    axes[-1].set_xlabel("minutes")
    try:
        figure.savefig(path)
    except OSError as error:
        raise InvalidInput(f"--plot {path}: cannot be written ({error})") from error
