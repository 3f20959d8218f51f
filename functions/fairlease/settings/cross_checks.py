"""Knobs against each other, at run time: an edited environment bypasses the chart's checks.

Every correction narrows: less concurrency (never none), a shorter hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.model import WORST_MESSAGE_SECONDS
from fairlease.settings.issues import IssueKind, KnobIssue
from fairlease.settings.knobs import EXIT_MARGIN_SECONDS, Knobs, env_of

if TYPE_CHECKING:
    from collections.abc import Collection


def cross_check(knobs: Knobs, asked_for: Collection[str]) -> tuple[Knobs, list[KnobIssue]]:
    """The knobs, made consistent, and an issue for each correction.

    `asked_for` names the knobs whose value a person wrote: a fallback that is narrowed by what it
    is derived from is nobody's mistake.
    """
    issues: list[KnobIssue] = []
    for check in _CHECKS:
        found = check(knobs)
        if found is None:
            continue
        name, narrowed, kind, why = found
        before = getattr(knobs, name)
        knobs = knobs.model_copy(update={name: narrowed})
        if kind is IssueKind.STALL_OUTLIVES_ISOLATE and name not in asked_for:
            continue
        issues.append(_issue(name, before, narrowed, kind, why))
    return knobs, issues


def without_heartbeats(knobs: Knobs, visibility_set: bool) -> Knobs:
    """The knobs for a database that cannot extend messages (it has no `heartbeat_org_slot`).

    A visibility timeout that nobody set grows to the worst batch, within the isolate's lifetime;
    one that is set stays, and the batch shrinks until it fits.
    """
    if not visibility_set:
        worst_batch_seconds = knobs.drain_concurrency * WORST_MESSAGE_SECONDS
        hidden_seconds = min(worst_batch_seconds, knobs.isolate_lifetime_seconds)
        return knobs.model_copy(update={"visibility_timeout_seconds": hidden_seconds})
    fits = max(1, knobs.visibility_timeout_seconds // WORST_MESSAGE_SECONDS)
    return knobs.model_copy(update={"drain_concurrency": min(knobs.drain_concurrency, fits)})


def heartbeat_issues(before: Knobs, after: Knobs) -> list[KnobIssue]:
    """What `without_heartbeats` changed."""
    return [
        _issue(name, getattr(before, name), getattr(after, name), IssueKind.NO_HEARTBEATS, why)
        for name, why in (
            ("drain_concurrency", "a batch must end within the visibility timeout"),
            ("visibility_timeout_seconds", "a batch stays hidden until its worst message ends"),
        )
        if getattr(before, name) != getattr(after, name)
    ]


def _issue(name: str, before: int, after: int, kind: IssueKind, why: str) -> KnobIssue:
    env = env_of(name)
    verdict = f"using {after}" if after != before else "kept"
    return KnobIssue(env, str(before), after, kind, f"{env}={before}: {why}; {verdict}")


def _slots_within_ceiling(k: Knobs) -> tuple[str, int, IssueKind, str] | None:
    if k.org_slot_max_per_org <= k.org_in_flight_ceiling:
        return None
    why = f"more slots of one org than {env_of('org_in_flight_ceiling')}={k.org_in_flight_ceiling}"
    return "org_slot_max_per_org", k.org_in_flight_ceiling, IssueKind.IN_FLIGHT_CEILING, why


def _concurrency_within_ceiling(k: Knobs) -> tuple[str, int, IssueKind, str] | None:
    fits = max(1, k.org_in_flight_ceiling // k.org_slot_max_per_org)
    if k.drain_concurrency <= fits:
        return None
    product = k.drain_concurrency * k.org_slot_max_per_org
    why = (
        f"times {k.org_slot_max_per_org} slots is {product} messages of one org, above "
        f"{env_of('org_in_flight_ceiling')}={k.org_in_flight_ceiling}"
    )
    return "drain_concurrency", fits, IssueKind.IN_FLIGHT_CEILING, why


def _two_heartbeats_per_visibility(k: Knobs) -> tuple[str, int, IssueKind, str] | None:
    longest_ttl = k.visibility_timeout_seconds * 3 // 2
    if k.org_slot_lease_ttl_seconds <= longest_ttl:
        return None
    why = (
        "a heartbeat every third of it comes later than half of "
        f"{env_of('visibility_timeout_seconds')}={k.visibility_timeout_seconds}"
    )
    return "org_slot_lease_ttl_seconds", longest_ttl, IssueKind.HEARTBEAT_INTERVAL, why


def _lease_within_lifetime(k: Knobs) -> tuple[str, int, IssueKind, str] | None:
    if k.org_slot_lease_ttl_seconds < k.isolate_lifetime_seconds:
        return None
    why = f"a lease must be shorter than {env_of('isolate_lifetime_ms')}={k.isolate_lifetime_ms}"
    shorter = k.isolate_lifetime_seconds - 1
    return "org_slot_lease_ttl_seconds", shorter, IssueKind.LEASE_OUTLIVES_ISOLATE, why


def _stall_within_lifetime(k: Knobs) -> tuple[str, int, IssueKind, str] | None:
    longest = k.isolate_lifetime_seconds * 3 // 4
    if k.max_stall_seconds <= longest:
        return None
    why = f"a stall must be seen within 3/4 of {env_of('isolate_lifetime_ms')}"
    return "max_stall_seconds", longest, IssueKind.STALL_OUTLIVES_ISOLATE, why


def _reserve_covered(k: Knobs) -> tuple[str, int, IssueKind, str] | None:
    reserve_seconds = WORST_MESSAGE_SECONDS + EXIT_MARGIN_SECONDS
    needed_ms = (reserve_seconds + k.org_slot_run_budget_seconds) * 1000
    if k.isolate_lifetime_ms >= needed_ms:
        return None
    why = (
        f"reserve not covered: a budget of {k.org_slot_run_budget_seconds} s and {reserve_seconds} "
        f"s for one worst message need {needed_ms}"
    )
    return "isolate_lifetime_ms", k.isolate_lifetime_ms, IssueKind.RESERVE_NOT_COVERED, why


_CHECKS = (
    _slots_within_ceiling,
    _concurrency_within_ceiling,
    _two_heartbeats_per_visibility,
    _lease_within_lifetime,
    _stall_within_lifetime,
    _reserve_covered,
)
