"""The outcome of a simulation as text for a person and as JSON for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlease.simulate.measure import Measured


def as_json(measured: Measured) -> dict[str, Any]:
    """Seconds, and `utilisation` as a fraction."""
    return {
        "utilisation": round(measured.utilisation, 4),
        "minutes": round(measured.minutes, 2),
        "claims": measured.claims,
        "messages": measured.messages,
        "stranded": measured.stranded,
        "left": measured.left,
        "orgs": {
            org.org: {
                "sent": org.sent,
                "started": org.started,
                "first_index": org.first_index,
                "longest_wait_seconds": _rounded(org.longest_wait_seconds),
                "mean_wait_seconds": _rounded(org.mean_wait_seconds),
            }
            for org in measured.orgs
        },
    }


def totals(measured: Measured) -> Table:
    table = Table("utilisation", "minutes", "claims", "messages", "stranded", "left in queue")
    table.add_row(
        f"{measured.utilisation:.1%}",
        f"{measured.minutes:.1f}",
        str(measured.claims),
        str(measured.messages),
        str(measured.stranded),
        str(measured.left),
    )
    return table


def waits(measured: Measured) -> Table:
    """`others first`: messages of other orgs that started before the org's first one."""
    table = Table("org", "sent", "started", "others first", "longest wait s", "mean wait s")
    for org in measured.orgs:
        table.add_row(
            org.org,
            str(org.sent),
            str(org.started),
            "-" if org.first_index is None else str(org.first_index),
            _text(org.longest_wait_seconds),
            _text(org.mean_wait_seconds),
        )
    return table


def drivers(compared: Mapping[str, Any]) -> Table:
    """The three drivers of `burst.comparison` side by side."""
    table = Table("driver", "utilisation", "minutes", "claims")
    for name in ("batch", "refill", "quantum"):
        row = compared[name]
        table.add_row(
            name, f"{row['utilisation']:.1%}", f"{row['minutes']:.1f}", str(row["claims"])
        )
    return table


def sweep(compared: Mapping[str, Any]) -> Table:
    """Utilisation by quantum, without its doubling."""
    table = Table("refills", *compared["sweep"])
    table.add_row("utilisation", *(f"{value:.1%}" for value in compared["sweep"].values()))
    return table


def mishaps(compared: Mapping[str, Any]) -> list[str]:
    """Stranding and starvation, a sentence each."""
    starved = compared["starved_first_message_index"]
    stranded = compared["stranded_without_budget"], compared["stranded_with_budget"]
    return [
        "killed at 480 s: {} messages stranded without a run budget, {} with one".format(*stranded),
        "another org waits for {with_quantum} messages of a busy one; without a quantum for "
        "{without_quantum}".format(**starved),
    ]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)


def _text(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}"
