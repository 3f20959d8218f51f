"""`fairlease simulate`: what a fleet would do with its work, played by the real engine."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fairlease.cli.options import Json
from fairlease.simulate import burst, report
from fairlease.simulate.fixture import load_durations
from fairlease.simulate.fleet import play
from fairlease.simulate.plot import check, draw
from fairlease.simulate.reading import (
    read_durations,
    read_kills,
    read_knobs,
    read_loads,
    read_skews,
)
from fairlease.simulate.scenario import Scenario

Durations = Annotated[
    Path | None,
    typer.Option(help="Seconds of each message: a JSON array, or one number a line."),
]
Orgs = Annotated[
    list[str],
    typer.Option("--org", help="NAME=COUNT[@SECONDS]: what an org sends, and when."),
]
Kills = Annotated[list[str], typer.Option("--kill", help="WORKER@SECONDS: SIGKILL; from 0.")]
Skews = Annotated[list[str], typer.Option("--skew", help="WORKER@SECONDS: its clocks are wrong.")]
KnobValues = Annotated[
    list[str], typer.Option("--knob", help="NAME=VALUE, as in docs/settings.md.")
]
Pokes = Annotated[
    float | None, typer.Option(min=0.1, max=86_400, help="Poke so often; without it, once.")
]
Bounded = Annotated[
    bool, typer.Option("--bounded", help="Isolates live, and claim, as long as their knobs say.")
]


def simulate(
    *,
    durations: Durations = None,
    orgs: Orgs = [],  # noqa: B006 - typer copies it
    workers: Annotated[int, typer.Option(min=1, max=256, help="Isolates.")] = 1,
    knobs: KnobValues = [],  # noqa: B006
    kills: Kills = [],  # noqa: B006
    skews: Skews = [],  # noqa: B006
    poke_seconds: Pokes = None,
    bounded: Bounded = False,
    call_ms: Annotated[float, typer.Option(min=0, max=9_000, help="One round trip.")] = 20.0,
    seed: Annotated[int, typer.Option(help="Of the dice.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw it: .png, .svg or .pdf.")] = None,
    as_json: Json = False,
) -> None:
    """Play a workload in virtual time with the shipped engine and a simulated database.

    Without a workload: the burst of 190 messages that the drivers are compared by.

    Example: fairlease simulate --org a=200 --org b=5@600 --workers 2 --poke-seconds 30 --kill 0@300
    """
    if plot is not None:
        check(plot)
    settings = read_knobs(knobs)
    for issue in settings.issues:
        typer.echo(f"issue: {issue.message}", err=True)
    in_effect = settings.knobs
    scenario = Scenario(
        loads=read_loads(orgs, read_durations(durations) if durations else load_durations()),
        knobs=in_effect,
        workers=workers,
        call_seconds=call_ms / 1000,
        poke_seconds=poke_seconds,
        lifetime_seconds=in_effect.isolate_lifetime_seconds if bounded else math.inf,
        budget_seconds=in_effect.org_slot_run_budget_seconds if bounded else None,
        kills=read_kills(kills, workers),
        skews=read_skews(skews, workers),
        seed=seed,
    )
    if scenario == burst.burst():
        _compare(plot, as_json=as_json)
    else:
        _show(scenario, plot, as_json=as_json)


def _compare(plot: Path | None, *, as_json: bool) -> None:
    compared = burst.comparison()
    if plot is not None:
        draw({name: play(scenario) for name, scenario in burst.drivers().items()}, plot)
    if as_json:
        _print_json(compared)
        return
    console = Console()
    console.print("190 messages of one org, 4 in flight, 20 ms a claim")
    console.print(report.drivers(compared))
    console.print(report.sweep(compared))
    for line in report.mishaps(compared):
        console.print(line)


def _show(scenario: Scenario, plot: Path | None, *, as_json: bool) -> None:
    measured = play(scenario)
    if plot is not None:
        draw({"in flight": measured}, plot)
    if as_json:
        _print_json(report.as_json(measured))
        return
    console = Console()
    console.print(report.totals(measured))
    console.print(report.waits(measured))


def _print_json(value: dict[str, Any]) -> None:
    typer.echo(json.dumps(value))
