"""The plots of the benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

if TYPE_CHECKING:
    from pathlib import Path


def draw_claims(document: dict[str, Any], file: Path) -> None:
    """Ratios over the depth, a line for each number of orgs, with the bars; and the hard shapes."""
    results = document["results"]
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.5))
    for axis, kind in zip(axes, ("pinned", "unpinned"), strict=False):
        for orgs in sorted({r["orgs"] for r in results if r["orgs"]}):
            line = [r for r in results if r["kind"] == kind and r["orgs"] == orgs and r["depth"]]
            line.sort(key=lambda r: r["depth"])
            axis.plot(
                [r["depth"] for r in line],
                [r["ratio"] for r in line],
                marker="o",
                label=f"{orgs} orgs",
            )
        axis.axhline(document["bars"][kind], color="black", linestyle="--", linewidth=1)
        axis.set(title=f"{kind} claim", xscale="log", xlabel="messages", ylim=(0, None))
        axis.set_ylabel("times pgmq.read")
        axis.legend()
    rest = [r for r in results if r["kind"].startswith("no_") or not r["orgs"]]
    labels = [f"{r['shape']}: {r['kind']}" for r in rest]
    within = [r["ratio"] <= document["bars"][r["kind"]] for r in rest]
    axes[2].barh(labels, [r["ratio"] for r in rest], color=["C0" if ok else "C3" for ok in within])
    axes[2].tick_params(axis="y", labelsize=5)
    axes[2].set(title="empty, full, and hard backlogs", xlabel="times pgmq.read")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def draw_throughput(document: dict[str, Any], file: Path) -> None:
    """Claims per second of each system, one panel a backlog."""
    figure, axes = plt.subplots(1, len(document["backlogs"]), figsize=(10, 4), squeeze=False)
    for axis, backlog in zip(axes[0], document["backlogs"], strict=True):
        names = list(backlog["claims_per_second"])
        axis.bar(names, [backlog["claims_per_second"][name] for name in names])
        axis.set(title=backlog["name"], ylabel="claims a second, median of rounds", yscale="log")
        axis.tick_params(axis="x", labelrotation=15)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)
