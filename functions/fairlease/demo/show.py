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
    from fairlease.demo.utilisation import Sample, Series

FUNCTION = "github_worker"


def show(*, scale: float, shrink: int, plot: Path, quiet: bool) -> Summary:
    """Run the demonstration. Ctrl-C and SIGTERM end it and leave nothing behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = functions_folder()
    knobs = load_settings({}, discover([folder])[FUNCTION].manifest.knobs).knobs
    n, slots = knobs.drain_concurrency, knobs.org_slot_max_per_org
    console = Console(quiet=quiet)
    console.print(f"starting Postgres, gateway, {HOSTS} hosts, cron and GitHub's contract ...")
    with (
        as_file(files("fairlease.simulate").joinpath("durations.json")) as durations,
        contextlib.closing(_View(console, n)) as view,
    ):
        stage = Stage(folder, durations, scale, shrink, SystemClock())
        refill, batch = stage.play(
            partial(view.update, "continuous refill"), partial(view.update, "batch at a time")
        )
    runs = {
        "continuous refill": (_from_zero(refill), refill.utilisation(n)),
        "batch at a time": (_from_zero(batch), batch.utilisation(n)),
    }
    write_plot(plot, runs, n)
    return Summary(refill, batch, n=n, cap=n * slots, plot=str(plot))


class _View:
    """A live view in a terminal, from the first sample on, so that it does not hide errors."""

    def __init__(self, console: Console, n: int) -> None:
        self._live = Live(console=console, auto_refresh=False)
        self._console = console
        self._n = n
        self._title = ""

    def update(self, title: str, sample: Sample) -> None:
        """Called for every sample; where there is no terminal, a new title is one line."""
        is_new, self._title = title != self._title, title
        if self._console.is_terminal and not self._console.quiet:
            if not self._live.is_started:
                self._live.start()
            table = table_of(sample, title=title, n=self._n, fleet_slots=HOSTS)
            self._live.update(table, refresh=True)
        elif is_new:
            self._console.print(f"{title} ...")

    def close(self) -> None:
        if self._live.is_started:
            self._live.stop()


def _from_zero(run: Pass) -> Series:
    """The burst org's series, its first message at 0 s."""
    series = run.counted[BURST_ORG].series
    return [(at - series[0][0], count) for at, count in series]
