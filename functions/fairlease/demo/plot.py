"""In flight over time, refill above batch-at-a-time, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fairlease.demo.utilisation import Series


def write_plot(path: Path, runs: Mapping[str, tuple[Series, float]], n: int) -> None:
    """One panel per run: its title to (series of the burst org from 0 s, utilisation)."""
    figure, panels = plt.subplots(len(runs), sharex=True, figsize=(10, 5), squeeze=False)
    for panel, (title, (series, share)) in zip(panels[:, 0], runs.items(), strict=True):
        times = [at for at, _ in series]
        counts = [count for _, count in series]
        panel.fill_between(times, counts, step="post", alpha=0.35)
        panel.step(times, counts, where="post", linewidth=1)
        panel.axhline(n, linestyle="--", linewidth=1, color="grey")
        panel.set_title(f"{title}: {share:.1%} of the slot used", loc="left", fontsize=10)
        panel.set_ylabel("in flight")
        panel.set_ylim(0, n + 1)
    panels[-1, 0].set_xlabel("seconds")
    figure.suptitle("Messages of the burst org in flight, counted by the API", fontsize=11)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
