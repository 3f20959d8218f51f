"""Both passes, the live view, the plot and the summary."""

from __future__ import annotations

import contextlib
import signal
from functools import partial
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live

from fairlease.clock import SystemClock
from fairlease.demo.load import BURST_ORG
from fairlease.demo.plot import write_plot
from fairlease.demo.stage import HOSTS, Stage
from fairlease.demo.summary import Summary
from fairlease.demo.view import table_of
from fairlease.host.functions import discover
from fairlease.resources import functions_folder
from fairlease.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from fairlease.demo.summary import Pass
    from fairlease.demo.utilisation import Series

FUNCTION = "github_worker"


def show(*, scale: float, shrink: int, plot: Path, quiet: bool) -> Summary:
    """Run the demonstration. Ctrl-C and SIGTERM end it and leave nothing behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = functions_folder()
    knobs = load_settings({}, discover([folder])[FUNCTION].manifest.knobs).knobs
    n, slots = knobs.drain_concurrency, knobs.org_slot_max_per_org
    with as_file(files("fairlease.simulate").joinpath("durations.json")) as durations:
        stage = Stage(folder, durations, scale, shrink, SystemClock())
        refill = _play(stage, "continuous refill", n, refill=True, quiet=quiet)
        batch = _play(stage, "batch at a time", n, refill=False, quiet=quiet)
    runs = {
        "continuous refill": (_from_zero(refill), refill.utilisation(n)),
        "batch at a time": (_from_zero(batch), batch.utilisation(n)),
    }
    write_plot(plot, runs, n)
    return Summary(refill, batch, n=n, cap=n * slots, plot=str(plot))


def _play(stage: Stage, title: str, n: int, *, refill: bool, quiet: bool) -> Pass:
    console = Console(quiet=quiet)
    console.print(f"{title}: starting Postgres, gateway, {HOSTS} hosts, cron, GitHub's contract")
    if quiet or not console.is_terminal:
        return stage.play(refill=refill, watch=lambda _sample: None)
    table = partial(table_of, title=title, n=n, fleet_slots=HOSTS)
    with contextlib.closing(_View(console)) as view:
        return stage.play(refill=refill, watch=lambda sample: view.update(table(sample)))


class _View:
    """A live view that appears with the first sample, so that it does not hide errors."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)
        self._started = False

    def update(self, renderable: object) -> None:
        if not self._started:
            self._live.start()
            self._started = True
        self._live.update(renderable, refresh=True)  # type: ignore[arg-type]

    def close(self) -> None:
        if self._started:
            self._live.stop()


def _from_zero(run: Pass) -> Series:
    """The burst org's series, its first message at 0 s."""
    series = run.counted[BURST_ORG].series
    return [(at - series[0][0], count) for at, count in series]
