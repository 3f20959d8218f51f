from __future__ import annotations

import dataclasses

import pytest

from fairlease.settings import load_settings
from fairlease.simulate.fleet import play
from fairlease.simulate.scenario import Kill, Load, Scenario, Skew

KNOBS = load_settings({}).knobs


def test_utilisation_is_seconds_in_flight_over_the_lanes_of_the_fleet() -> None:
    measured = play(Scenario((Load("a", (10.0,) * 8),), call_seconds=0.0))

    assert measured.utilisation == pytest.approx(1.0)
    assert measured.seconds == pytest.approx(20.0)
    assert measured.messages == 8
    # Twice the lanes, and one org may use half of them.
    half = play(Scenario((Load("a", (10.0,) * 8),), call_seconds=0.0, workers=2))
    assert half.utilisation == pytest.approx(0.5)


def test_the_curve_is_what_was_in_flight() -> None:
    measured = play(Scenario((Load("a", (10.0, 20.0)),), call_seconds=0.0))

    assert measured.in_flight == ((0.0, 2), (10.0, 1), (20.0, 0))


def test_a_waiting_org_is_measured_by_index_and_by_seconds() -> None:
    loads = (Load("busy", (10.0,) * 40), Load("late", (1.0,), at_seconds=15.0))
    knobs = KNOBS.model_copy(update={"org_slot_stream_quantum_refills": 64})

    orgs = {org.org: org for org in play(Scenario(loads, knobs=knobs, workers=1)).orgs}

    assert orgs["busy"].first_index == 0
    assert orgs["late"].first_index is not None
    assert orgs["late"].longest_wait_seconds == pytest.approx(5.1, abs=0.3)


def test_a_killed_isolate_strands_its_messages_and_the_next_one_drains_them() -> None:
    scenario = Scenario(
        (Load("a", (50.0,) * 8),), kills=(Kill(0, 20.0),), poke_seconds=30.0, workers=1
    )

    measured = play(scenario)

    assert (measured.stranded, measured.left, measured.messages) == (4, 0, 8)
    # Back within a visibility timeout of the last heartbeat.
    (org,) = measured.orgs
    assert org.started == 8
    assert measured.seconds < 20.0 + 120.0 + 30.0 + 2 * 51.0


def test_without_pokes_nobody_follows_a_killed_isolate() -> None:
    measured = play(Scenario((Load("a", (50.0,) * 8),), kills=(Kill(0, 20.0),)))

    assert (measured.stranded, measured.left) == (4, 8)


def test_bounded_isolates_hand_over_and_strand_nothing() -> None:
    measured = play(
        Scenario(
            (Load("a", (60.0,) * 60),),
            poke_seconds=30.0,
            lifetime_seconds=400.0,
            budget_seconds=250.0,
        )
    )

    assert (measured.stranded, measured.left, measured.messages) == (0, 0, 60)


def test_workers_whose_clocks_are_wrong_drain_as_fast() -> None:
    scenario = Scenario((Load("a", (10.0,) * 20), Load("b", (10.0,) * 20)), workers=2)
    skewed = dataclasses.replace(scenario, skews=(Skew(0, -7200.0), Skew(1, 1e6)))

    assert play(skewed) == play(scenario)


def test_the_same_seed_is_the_same_outcome() -> None:
    scenario = Scenario((Load("a", (10.0,) * 20),), workers=2, poke_seconds=10.0, seed=3)

    assert play(scenario) == play(scenario)
