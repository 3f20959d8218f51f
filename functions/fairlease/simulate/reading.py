"""From what a person typed to a scenario: each refusal names the option and what it takes."""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import TYPE_CHECKING, Any

from fairlease.errors import InvalidInput
from fairlease.settings import env_of, knob_table, load_settings
from fairlease.simulate.scenario import Kill, Load, Skew

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fairlease.settings import Settings

MOST_MESSAGES = 100_000
_ORG = re.compile(r"(?P<org>.+?)=(?P<count>[0-9]+)(@(?P<at>[0-9.]+))?")
_AT = re.compile(r"(?P<worker>[0-9]{1,4})@(?P<seconds>-?[0-9.]+)")


def read_durations(path: Path) -> tuple[float, ...]:
    """Seconds: a JSON array of numbers, or one number a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"--durations {path}: cannot be read ({error})") from error
    try:
        entries = json.loads(text) if text.lstrip().startswith("[") else text.split()
    except ValueError as error:
        raise InvalidInput(f"--durations {path}: not JSON ({error}); give [12.5, 30]") from error
    durations = tuple(_seconds(f"--durations {path}: entry {i}", e) for i, e in enumerate(entries))
    if not durations:
        raise InvalidInput(f"--durations {path}: it is empty; give at least one number of seconds")
    return durations


def read_loads(orgs: Sequence[str], durations: tuple[float, ...]) -> tuple[Load, ...]:
    """`NAME=COUNT` or `NAME=COUNT@SECONDS`; durations are dealt in order, and again."""
    if not orgs:
        return (Load("busy", durations),)
    deck = itertools.cycle(durations)
    loads = []
    for written in orgs:
        match = _ORG.fullmatch(written)
        if match is None:
            raise InvalidInput(f"--org {written!r}: give NAME=COUNT, or NAME=COUNT@SECONDS")
        # Cut, because `int` refuses very long ones; more digits than the most has are too many.
        count = int(match["count"].lstrip("0")[: len(str(MOST_MESSAGES)) + 1] or "0")
        if not 0 < count <= MOST_MESSAGES:
            raise InvalidInput(f"--org {written!r}: give 1 to {MOST_MESSAGES} messages")
        at = _seconds(f"--org {written!r}", match["at"] or "0")
        loads.append(Load(match["org"], tuple(itertools.islice(deck, count)), at))
    return tuple(loads)


def read_kills(written: Sequence[str], workers: int) -> tuple[Kill, ...]:
    """`WORKER@SECONDS`, workers counted from 0."""
    found = _at("--kill", written, workers)
    for worker, seconds in found:
        if seconds < 0:
            raise InvalidInput(f"--kill {worker}@{seconds}: give seconds from the start, 0 or more")
    return tuple(Kill(worker, seconds) for worker, seconds in found)


def read_skews(written: Sequence[str], workers: int) -> tuple[Skew, ...]:
    """`WORKER@SECONDS`; behind where negative."""
    return tuple(Skew(worker, seconds) for worker, seconds in _at("--skew", written, workers))


def read_knobs(written: Sequence[str]) -> Settings:
    """`NAME=VALUE`, in lower case; bounds and fail-safes are those of a real worker."""
    environ = {}
    for knob in written:
        name, equals, value = knob.partition("=")
        if not equals or name not in knob_table():
            known = ", ".join(knob_table())
            raise InvalidInput(f"--knob {knob!r}: give NAME=VALUE with one of {known}")
        environ[env_of(name)] = value
    return load_settings(environ)


def _at(option: str, written: Sequence[str], workers: int) -> list[tuple[int, float]]:
    found = []
    for entry in written:
        match = _AT.fullmatch(entry)
        if match is None:
            raise InvalidInput(f"{option} {entry!r}: give WORKER@SECONDS, as 0@480")
        worker = int(match["worker"])
        if worker >= workers:
            raise InvalidInput(f"{option} {entry!r}: workers are 0 to {workers - 1}; see --workers")
        seconds = _seconds(f"{option} {entry!r}", match["seconds"].lstrip("-"))
        found.append((worker, -seconds if match["seconds"].startswith("-") else seconds))
    return found


def _seconds(what: str, written: Any) -> float:
    try:
        seconds = math.nan if isinstance(written, bool) else float(written)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InvalidInput(f"{what}: {str(written)[:40]!r} is no number of seconds")
    return seconds
