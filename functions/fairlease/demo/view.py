"""The live view of the demonstration in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress_bar import ProgressBar
from rich.table import Table

from fairlease.demo.load import ORGS

if TYPE_CHECKING:
    from fairlease.demo.utilisation import Sample


def table_of(sample: Sample, *, title: str, n: int, fleet_slots: int) -> Table:
    """Per org what waits, runs and is done; below, how much of the fleet is used."""
    used = sum(sample.in_flight.values())
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.add_column("org")
    for heading in ("waiting", "in flight", "slots", "done"):
        table.add_column(heading, justify="right")
    table.add_column("of its slot", width=12)
    for org in ORGS:
        in_flight, slots = sample.in_flight.get(org, 0), sample.slots.get(org, 0)
        table.add_row(
            org,
            str(sample.waiting.get(org, 0)),
            str(in_flight),
            str(slots),
            str(sample.done.get(org, 0)),
            ProgressBar(total=n, completed=in_flight if slots else 0, width=12),
        )
    table.caption = f"fleet: {used} of {n * fleet_slots} in flight"
    return table
