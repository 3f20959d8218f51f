"""A fault: the smallest edit of the source that breaks a rule, and the test that must see it."""

from __future__ import annotations

from dataclasses import dataclass

DRAIN = "fairlease/drain"


@dataclass(frozen=True, slots=True)
class Fault:
    """`before` must stand exactly once in the file (below `functions/`)."""

    rule: str
    test: str
    file: str
    before: str
    after: str
    what: str


def in_drain(rule: str, test: str, file: str, before: str, after: str, what: str) -> Fault:
    """`file` below the engine, `test` below tests/drain."""
    return Fault(rule, f"tests/drain/{test}", f"{DRAIN}/{file}", before, after, what)
