from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlease.settings import IssueKind, env_of, load_settings, without_heartbeats


def loaded(**knobs: int):  # noqa: ANN201
    return load_settings({env_of(name): str(value) for name, value in knobs.items()})


def kinds(**knobs: int) -> list[IssueKind]:
    return [issue.kind for issue in loaded(**knobs).issues]


def test_one_orgs_messages_in_flight_stay_under_the_ceiling() -> None:
    settings = loaded(drain_concurrency=8, org_slot_max_per_org=3, org_in_flight_ceiling=16)
    assert settings.knobs.drain_concurrency == 5
    assert [i.kind for i in settings.issues] == [IssueKind.IN_FLIGHT_CEILING]


def test_more_slots_than_the_ceiling_shrink_to_it_and_leave_one_message_each() -> None:
    knobs = loaded(org_slot_max_per_org=9, org_in_flight_ceiling=4).knobs
    assert (knobs.org_slot_max_per_org, knobs.drain_concurrency) == (4, 1)


def test_two_heartbeats_fit_into_a_visibility_timeout() -> None:
    settings = loaded(visibility_timeout_seconds=40, org_slot_lease_ttl_seconds=300)
    assert settings.knobs.org_slot_lease_ttl_seconds == 60
    assert [i.kind for i in settings.issues] == [IssueKind.HEARTBEAT_INTERVAL]
    assert kinds(visibility_timeout_seconds=40, org_slot_lease_ttl_seconds=60) == []


def test_a_lease_ends_before_its_isolate() -> None:
    settings = loaded(
        isolate_lifetime_ms=150_000, org_slot_lease_ttl_seconds=180, visibility_timeout_seconds=300
    )
    assert settings.knobs.org_slot_lease_ttl_seconds == 149
    assert IssueKind.LEASE_OUTLIVES_ISOLATE in {i.kind for i in settings.issues}


def test_a_stall_is_seen_within_three_quarters_of_the_lifetime() -> None:
    assert loaded().knobs.max_stall_seconds == 300
    assert loaded(isolate_lifetime_ms=2_000_000).knobs.max_stall_seconds == 900
    assert kinds(max_stall_seconds=300) == []
    assert kinds(max_stall_seconds=301) == [IssueKind.STALL_OUTLIVES_ISOLATE]


@pytest.mark.parametrize(("lifetime_ms", "covered"), [(269_999, False), (270_000, True)])
def test_a_lifetime_that_cannot_hold_the_reserve_is_said(lifetime_ms: int, covered: bool) -> None:
    found = kinds(isolate_lifetime_ms=lifetime_ms)
    assert found == ([] if covered else [IssueKind.RESERVE_NOT_COVERED])


in_range = {
    "drain_concurrency": st.integers(1, 256),
    "org_slot_max_per_org": st.integers(1, 64),
    "org_in_flight_ceiling": st.integers(1, 4096),
    "org_slot_global_cap": st.integers(0, 1024),
    "visibility_timeout_seconds": st.integers(30, 1800),
    "org_slot_lease_ttl_seconds": st.integers(45, 300),
    "isolate_lifetime_ms": st.integers(150_000, 3_000_000),
    "max_stall_seconds": st.integers(30, 86_400),
}


@given(st.fixed_dictionaries({}, optional=in_range))
def test_checks_only_narrow_never_to_nothing_and_always_leave_a_consistent_set(
    asked: dict[str, int],
) -> None:
    settings = loaded(**asked)
    k = settings.knobs
    for name, value in asked.items():
        assert getattr(k, name) <= value
        changed = getattr(k, name) != value
        assert changed == any(
            i.env == env_of(name) and i.raw != str(i.effective) for i in settings.issues
        )
    assert k.drain_concurrency >= 1
    assert k.drain_concurrency * k.org_slot_max_per_org <= k.org_in_flight_ceiling
    assert k.org_slot_lease_ttl_seconds / 3 <= k.visibility_timeout_seconds / 2
    assert k.org_slot_lease_ttl_seconds < k.isolate_lifetime_ms / 1000
    assert k.max_stall_seconds < k.isolate_lifetime_ms / 1000
    assert k.org_slot_global_cap == asked.get("org_slot_global_cap", 8)


def test_without_heartbeats_a_batch_stays_hidden_until_its_worst_message_ends() -> None:
    knobs = loaded(drain_concurrency=2).knobs
    assert without_heartbeats(knobs, visibility_set=False).visibility_timeout_seconds == 240
    settings = loaded(drain_concurrency=8, isolate_lifetime_ms=480_000)
    assert not settings.visibility_set
    assert settings.without_heartbeats().knobs.visibility_timeout_seconds == 480


@pytest.mark.parametrize(("seconds", "n"), [(30, 1), (120, 1), (359, 2), (480, 4), (1800, 4)])
def test_without_heartbeats_a_visibility_that_is_set_shrinks_the_batch(
    seconds: int, n: int
) -> None:
    settings = loaded(visibility_timeout_seconds=seconds).without_heartbeats()
    assert settings.knobs.visibility_timeout_seconds == seconds
    assert settings.knobs.drain_concurrency == n
    assert (n < 4) == (IssueKind.NO_HEARTBEATS in {i.kind for i in settings.issues})
