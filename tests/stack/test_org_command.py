"""`org`, `circuit` and `slots`: whether an org may run, and who runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sql.worker import MovableClock, done

if TYPE_CHECKING:
    from stack.operated import Jobs


def orgs(jobs: Jobs, *options: object) -> dict[str, dict[str, Any]]:
    return {org["org"]: org for org in jobs.ask("org", "list", *options)["orgs"]}


def test_org_list_shows_who_waits_runs_and_is_limited(jobs: Jobs) -> None:
    jobs.send("acme", count=3)
    jobs.send("beta")
    jobs.worker().claim(pin_org="acme")
    jobs.call("org", "limit", "Acme", "--slots", 2, "--per-minute", 90, "--burst", 5)
    jobs.call("circuit", "open", "idle")
    found = orgs(jobs)
    assert list(found) == ["acme", "beta", "idle"]
    acme = found["acme"]
    assert (acme["ready"], acme["running"], acme["slots"]) == (2, 1, 1)
    assert (acme["slots_limit"], acme["starts_per_minute"], acme["burst"]) == (2, 90.0, 5)
    assert (found["beta"]["slots_limit"], found["beta"]["circuit"]) == (None, "closed")
    assert (found["idle"]["ready"], found["idle"]["circuit"]) == (0, "open")
    assert "acme" in jobs.call("org", "list").stdout
    assert list(orgs(jobs, "--limit", 1)) == ["acme"]


def test_a_limit_holds_and_what_is_not_given_stays(jobs: Jobs) -> None:
    jobs.send("acme", count=2)
    jobs.call("org", "limit", "acme", "--slots", 0, "--note", "moving house")
    assert jobs.worker().claim(pin_org="acme").cause == "org_limit"
    said = jobs.call("org", "limit", "acme", "--per-minute", 600).stdout
    assert said == "acme: 0 slots, 600 (burst 1) starts a minute\n"
    said = jobs.call("org", "limit", "acme", "--no-slots", "--no-per-minute").stdout
    assert said == "acme: the workers' limit of slots, any number of starts a minute\n"
    assert jobs.worker().claim(pin_org="acme").status == "claimed"
    assert orgs(jobs)["acme"]["note"] == "moving house"


def test_a_paused_org_waits_and_a_resumed_one_runs(jobs: Jobs) -> None:
    jobs.send("acme")
    assert jobs.call("org", "pause", "ACME").stdout == "ACME is paused\n"
    assert jobs.call("org", "pause", "acme").stdout == "acme was paused already\n"
    assert jobs.worker().claim().cause == "paused"
    assert jobs.call("org", "resume", "acme").stdout == "acme is running\n"
    assert jobs.call("org", "resume", "never_seen").stdout == "never_seen was running already\n"
    assert jobs.worker().claim().status == "claimed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("org", "limit", "acme"), "no limit given"),
        (("org", "limit", "acme", "--slots", 1, "--no-slots"), "exclude each other"),
        (("org", "limit", "acme", "--per-minute", 0), "check constraint"),
        (("org", "pause", ""), "an empty text is no org"),
        (("org", "list", "--queue", "nowhere"), "no queue 'nowhere' is attached"),
        (("circuit", "open", "acme", "--for", "0 s"), "no time ahead"),
        (("circuit", "open", "acme", "--for", "a while"), "invalid input syntax"),
        (("slots", "release", "--yes"), "say which"),
        (("slots", "release", "h9", "--org", "a", "--yes"), "say which"),
        (("slots", "release", "h9", "--yes"), "no slot is held by h9"),
    ],
)
def test_what_cannot_be_is_one_line_with_the_remedy(
    jobs: Jobs, arguments: tuple[object, ...], said: str
) -> None:
    answer = jobs.call(*arguments)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert said in answer.stderr


def test_an_open_circuit_keeps_an_org_out_until_it_is_closed(jobs: Jobs) -> None:
    jobs.send("acme", count=2)
    jobs.call("circuit", "open", "Acme", "--for", "2 hours", "--reason", "down")
    assert jobs.worker().claim().cause == "circuit"
    [circuit] = jobs.ask("circuit", "list")["circuits"]
    assert (circuit["org"], circuit["state"], circuit["reason"]) == ("acme", "open", "down")
    assert 7100 < circuit["seconds_left"] <= 7200
    assert jobs.call("circuit", "close", "ACME").stdout == "closed the circuit of ACME\n"
    assert jobs.call("circuit", "close", "acme").stdout == "acme has no open circuit\n"
    assert jobs.ask("circuit", "list") == {"circuits": []}
    [circuit] = jobs.ask("circuit", "list", "--closed")["circuits"]
    assert circuit["state"] == "closed"
    assert jobs.worker().claim().status == "claimed"


def test_a_half_open_circuit_names_its_probe(jobs: Jobs) -> None:
    clock = MovableClock(jobs.connection)
    [probe] = jobs.send("acme")
    jobs.call("circuit", "open", "acme", "--for", "1 minute")
    clock.advance(61)
    assert jobs.worker().claim().ids == [probe]
    [circuit] = jobs.ask("circuit", "list")["circuits"]
    assert (circuit["state"], circuit["probe_msg_id"]) == ("half open", probe)
    assert "half open" in jobs.call("circuit", "list").stdout


def test_slots_list_tells_the_live_from_the_lapsed(jobs: Jobs) -> None:
    clock = MovableClock(jobs.connection)
    jobs.send("acme")
    jobs.send("beta")
    jobs.worker("h1").claim(pin_org="acme", lease_ttl_seconds=10)
    jobs.worker("h2").claim(pin_org="beta", lease_ttl_seconds=60)
    clock.advance(20)
    slots = jobs.ask("slots", "list")["slots"]
    assert [(s["holder"], s["live"], s["expires_in_seconds"]) for s in slots] == [
        ("h1", False, -10),
        ("h2", True, 40),
    ]
    assert [s["holder"] for s in jobs.ask("slots", "list", "--org", "BETA")["slots"]] == ["h2"]
    assert "h2" in jobs.call("slots", "list").stdout


def test_a_released_slot_is_anothers_and_its_holders_work_is_settled_all_the_same(
    jobs: Jobs,
) -> None:
    jobs.send("acme", count=3)
    dead, alive = jobs.worker("dead", max_per_org=1), jobs.worker("alive", max_per_org=1)
    [delivery] = dead.claim().deliveries
    assert alive.claim().cause == "org_limit"
    refused = jobs.call("slots", "release", "dead")
    assert (refused.returncode, alive.claim().cause) == (2, "org_limit")
    assert "Release 1 slots, 1 of them live?" in refused.stderr
    said = jobs.call("slots", "release", "dead", "--yes").stdout
    assert said.endswith("of dead\nreleased 1 slots\n")
    assert alive.claim().status == "claimed"
    assert (dead.renew(), dead.settle_only(done(delivery))) == (False, ["applied"])
    logged = jobs.value("select why from fairlease.lease_log where holder = 'dead'")
    assert logged == "released"


def test_slots_of_an_org_are_released_together(jobs: Jobs) -> None:
    jobs.send("acme", count=2)
    jobs.send("beta")
    for holder, org in (("h1", "acme"), ("h2", "acme"), ("h3", "beta")):
        assert jobs.worker(holder).claim(pin_org=org).status == "claimed"
    answer = jobs.ask("slots", "release", "--org", "acme", "--yes")
    assert [slot["holder"] for slot in answer["released"]] == ["h1", "h2"]
    assert [slot["holder"] for slot in jobs.ask("slots", "list")["slots"]] == ["h3"]
