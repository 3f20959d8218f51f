"""How the life of an isolate is divided: claiming, then a grace to finish, then the kill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.settings import IssueKind, KnobIssue, Knobs

if TYPE_CHECKING:
    from collections.abc import Mapping

GRACE_VARIABLE = "FAIRLEASE_GRACE_SECONDS"
# The server refuses a worker that lives shorter.
_SHORTEST_SERVING_SECONDS = 60
_SHORTEST_GRACE_SECONDS = 11
# Three years; more overflows the timers.
_LONGEST_SECONDS = 10**8


@dataclass(frozen=True, slots=True)
class Lifetime:
    """All in seconds from the start of the isolate; the kill comes at `lifetime_seconds`."""

    lifetime_seconds: int
    budget_seconds: int
    grace_seconds: int

    @property
    def serving_seconds(self) -> int:
        """When the successor starts and this isolate is told to stop."""
        return self.lifetime_seconds - self.grace_seconds


def lifetime_of(knobs: Knobs, environ: Mapping[str, str]) -> tuple[Lifetime, list[KnobIssue]]:
    """The division, and an issue where the grace is not what was asked for or leaves a gap.

    The grace is what the budget leaves of the lifetime, so that the successor starts when this
    isolate stops claiming.
    """
    lifetime = min(knobs.isolate_lifetime_seconds, _LONGEST_SECONDS)
    budget = min(knobs.org_slot_run_budget_seconds, lifetime)
    natural = min(lifetime - budget, lifetime - _SHORTEST_SERVING_SECONDS)
    raw = environ.get(GRACE_VARIABLE)
    if raw is None:
        return Lifetime(lifetime, budget, natural), []
    longest = lifetime - _SHORTEST_SERVING_SECONDS
    text = raw.strip()
    taken = text.isascii() and text.isdecimal() and len(text) < 10  # noqa: PLR2004
    grace = int(text) if taken else 0
    if not _SHORTEST_GRACE_SECONDS <= grace <= longest:
        why = f"give {_SHORTEST_GRACE_SECONDS} to {longest} whole seconds; using {natural}"
        issue = _issue(raw, natural, IssueKind.UNPARSEABLE, why)
        return Lifetime(lifetime, budget, natural), [issue]
    gap = lifetime - grace - budget
    issues = []
    if gap > 0:
        why = (
            f"nothing is claimed for {gap} s before a successor starts; leave it out, or {natural}"
        )
        issues.append(_issue(raw, grace, IssueKind.GRACE_GAP, why))
    return Lifetime(lifetime, budget, grace), issues


def _issue(raw: str, effective: int, kind: IssueKind, why: str) -> KnobIssue:
    shown = raw[:40]
    return KnobIssue(GRACE_VARIABLE, shown, effective, kind, f"{GRACE_VARIABLE}={shown!r}: {why}")
