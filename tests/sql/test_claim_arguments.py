from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from sql.conftest import Hire, Send

BAD = [
    ("holder", ""),
    ("holder", None),
    ("holder", "h" * 513),
    ("n", None),
    ("n", 0),
    ("n", -1),
    ("sleep_seconds", -1),
    ("sleep_seconds", None),
    ("lease_ttl_seconds", 0),
    ("lease_ttl_seconds", -5),
    ("lease_ttl_seconds", None),
    ("max_per_org", None),
    ("global_cap", None),
    ("pin_org", ""),
    ("queue_name", "never_attached"),
    ("queue_name", None),
    ("queue_name", "x'; drop table pgmq.meta; --"),
]


@pytest.mark.parametrize(("argument", "value"), BAD)
def test_a_claim_refuses_a_bad_argument_by_name(
    hire: Hire, send: Send, argument: str, value: Any
) -> None:
    send("a")
    with pytest.raises(psycopg.errors.RaiseException, match=rf"^{argument}\b.*: ") as refused:
        hire().plain(**{argument: value})
    assert refused.value.sqlstate == "P0001"


@pytest.mark.parametrize(("argument", "value"), [item for item in BAD if item != ("n", 0)])
def test_a_settling_claim_refuses_the_same(
    hire: Hire, send: Send, argument: str, value: Any
) -> None:
    send("a")
    with pytest.raises(psycopg.errors.RaiseException, match=rf"^{argument}\b.*: "):
        hire().claim(**{argument: value})


def test_a_refused_claim_touches_nothing(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a")
    with pytest.raises(psycopg.errors.RaiseException):
        hire().plain(lease_ttl_seconds=0)
    assert hire("h2").plain().messages[0]["read_ct"] == 1


def test_zero_sleep_leaves_the_message_visible(hire: Hire, send: Send) -> None:
    [message] = send("a")
    assert hire().plain(sleep_seconds=0).ids == [message]
    assert hire().plain(sleep_seconds=0, pin_org="a").messages[0]["read_ct"] == 2


def test_n_is_clamped_to_what_postgrest_may_not_cut(hire: Hire, send: Send) -> None:
    send(*["a"] * 120)
    assert len(hire().plain(n=10**9).ids) == 100


def test_one_value_carries_up_to_five_hundred(hire: Hire, send: Send) -> None:
    send(*["a"] * 520)
    assert len(hire().claim(n=10**9).ids) == 500


def test_a_claim_without_messages_is_one_row_of_nulls(hire: Hire, queue: str) -> None:
    row = (
        hire()
        .session.execute(
            "select * from pgmq_public.claim_org_slot_and_read('jobs', 1, 1, 'h', 60, 1, 8)"
        )
        .fetchall()
    )
    assert row == [("no_demand", None, None, None, None, None, None)]


def test_only_a_read_committed_transaction_may_call(
    hire: Hire, connection: psycopg.Connection
) -> None:
    connection.execute("set default_transaction_isolation = 'repeatable read'")
    for call in (hire().plain, hire().claim, hire().renew, hire().release):
        with pytest.raises(psycopg.errors.RaiseException, match="read committed"):
            call()
    with pytest.raises(psycopg.errors.RaiseException, match="read committed"):
        hire().heartbeat([])


def test_a_queue_that_was_dropped_is_refused_with_the_remedy(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    connection.execute("select pgmq.drop_queue('jobs')")
    for call in (hire().plain, hire().claim):
        with pytest.raises(psycopg.errors.RaiseException, match="attach it again"):
            call()
