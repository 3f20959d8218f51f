"""What leaves the process: no secret, and no payload unless they were asked for."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
import sentry_sdk

from drain.rig import Rig, virtual
from fairlease.clock import SystemClock
from fairlease.errors import ConfigurationError, TransientError
from fairlease.events import FunctionEnded
from fairlease.telemetry.scrubbing import SCRUBBED, Scrubber
from fairlease.telemetry.sentry import Sentry, start_sentry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unit.telemetry.conftest import Start
    from unit.telemetry.ingest import Ingest

# Not as it stands here: lines of source are sent, and are no payload.
PAYLOAD = str.lower("THE-STUDENT-S-GRADE")


def look_up(grade: str) -> None:
    raise KeyError(grade)


def file(grade: str) -> None:
    try:
        look_up(grade)
    except KeyError as error:
        raise ValueError(f"cannot file {grade}") from error


def drain_one_that_fails(sentry: Sentry) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig(more={"observe": sentry.observe})

        @rig.handler()
        async def work(args: Any, ctx: Any) -> None:
            file(PAYLOAD)

        rig.send_to("work")
        await rig.run()

    scenario()
    sentry_sdk.flush(5)


def test_no_payload_leaves_in_texts_variables_or_causes(start: Start, received: Ingest) -> None:
    drain_one_that_fails(start())
    exceptions = received.events[0]["exception"]["values"]
    assert [one["type"] for one in exceptions] == ["KeyError", "ValueError"]
    assert all("FAIRLEASE_SENTRY_PAYLOADS=1" in one["value"] for one in exceptions)
    assert PAYLOAD.encode() not in b"".join(received.bodies)


def test_payloads_leave_where_they_were_asked_for(start: Start, received: Ingest) -> None:
    drain_one_that_fails(start({"FAIRLEASE_SENTRY_PAYLOADS": "1"}))
    exceptions = received.events[0]["exception"]["values"]
    assert exceptions[1]["value"] == f"cannot file {PAYLOAD}"
    frames = [frame for one in exceptions for frame in one["stacktrace"]["frames"]]
    assert any(PAYLOAD in str(frame.get("vars")) for frame in frames)


def test_our_own_errors_keep_their_text_and_lose_their_secrets(
    start: Start, received: Ingest
) -> None:
    sentry = start({"FAIRLEASE_DATABASE_URL": "postgresql://me:pa55word99@db/x"})
    error = TransientError("no answer from postgresql://me:pa55word99@db/x")
    sentry.observe(FunctionEnded("r", "f", 1.0, error))
    sentry_sdk.flush(5)
    (value,) = received.events[0]["exception"]["values"]
    assert value["value"].startswith("no answer from ")
    assert b"pa55word99" not in b"".join(received.bodies)


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoic2VydmljZSJ9.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"key {JWT} refused", JWT),
        ("sb_secret_abc-DEF_123 refused", "abc-DEF_123"),
        ("ghs_0123456789abcdefABCD", "0123456789"),
        ("github_pat_11ABCDEFG0123456789_x", "11ABCDEFG"),
        ("Authorization: Bearer abc.def-ghi123", "abc.def-ghi123"),
        ("postgresql://u:hush%20hush@host/db", "hush"),
        ("host=h user=u password=hush dbname=d", "hush"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("the value of a variable: correct horse", "correct horse"),
    ],
)
@pytest.mark.parametrize("payloads", ["0", "1"])
def test_secrets_are_cut_out_of_every_text_always(text: str, secret: str, payloads: str) -> None:
    scrubber = Scrubber.from_environ(
        {"MY_API_TOKEN": "correct horse", "FAIRLEASE_SENTRY_PAYLOADS": payloads}
    )
    event = {"extra": {"deep": [{"x": text}]}, "message": text, "tags": {"t": text}}
    cleaned = scrubber.before_send(event, {})
    assert secret not in str(cleaned)
    assert SCRUBBED in cleaned["message"]
    assert scrubber.before_send({"extra": {"api_key": "short"}}, {})["extra"] == {
        "api_key": SCRUBBED
    }


def test_ordinary_texts_stay_as_they_are() -> None:
    text = "queue q of org acme: token bucket is empty; basic auth at https://host/path?x=1"
    assert Scrubber((), payloads=False).text(text) == text


def test_without_a_dsn_nothing_is_started_and_a_wrong_one_is_refused() -> None:
    assert start_sentry({}, SystemClock()) is None
    assert start_sentry({"SENTRY_DSN": " "}, SystemClock()) is None
    assert not sentry_sdk.get_client().is_active()
    with pytest.raises(ConfigurationError, match="SENTRY_DSN is no DSN"):
        start_sentry({"SENTRY_DSN": "ftp://nowhere"}, SystemClock())


@pytest.fixture
def hanging() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://public@127.0.0.1:{server.getsockname()[1]}/1"


@pytest.mark.parametrize("ingest", ["hanging", "refused"])
def test_a_dead_ingest_holds_no_message_and_the_end_two_seconds_at_most(
    start: Start, hanging: str, ingest: str
) -> None:
    dsn = hanging if ingest == "hanging" else "http://public@127.0.0.1:1/1"
    sentry = start({"SENTRY_DSN": dsn})
    slowest = 0.0
    for n in range(50):
        began = time.monotonic()
        sentry.issues.exception(ValueError(n), ("message", str(n)), {})
        slowest = max(slowest, time.monotonic() - began)
    # Waiting for the ingest would take its timeout, 30 s.
    assert slowest < 2
    began = time.monotonic()
    asyncio.run(sentry.aclose())
    assert time.monotonic() - began < 8
