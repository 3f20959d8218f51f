"""What a stranger writes into a message: it reaches the handler, and nobody else."""

from __future__ import annotations

import io
import json
import logging
import re
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sentry_sdk
from psycopg.types.json import Jsonb
from pydantic import BaseModel

from drain.rig import Rig, virtual
from fairlease.clock import SystemClock
from fairlease.events import fan_out
from fairlease.telemetry.logs import configure_logs, log_event
from fairlease.telemetry.sentry import start_sentry
from unit.telemetry.ingest import Ingest, ingest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli import Cli

# Not as it stands here: lines of source are in tracebacks, and are no payload.
HUSH = str.lower("SK-LIVE-OF-THE-SENDER")
STEER = "\x1b[2J\x1b]0;owned\x07\r\nforged 09:00:00.000 error\x9b\u202e\u2028"


class Invite(BaseModel):
    email: str


def body(method: str, **args: Any) -> dict[str, Any]:
    return {"method": method, "args": {"email": "a@b", "secret": HUSH, **args}}


HOSTILE: list[Any] = [
    body("invite"),
    body("invite", email=HUSH),
    body("invite", email={"$ne": HUSH}),
    body("invite", __class__={"x": HUSH}, __proto__={"polluted": HUSH}),
    body("invite", __init__=HUSH, model_config={}, __dict__={"email": HUSH}),
    body("__class__"),
    body("invite.__globals__"),
    body(f"os.system {HUSH}"),
    body(STEER),
    {"method": {"$ref": HUSH}, "args": HUSH},
    {"method": "invite", "args": [HUSH]},
    {"method": "invite", "args": {HUSH: {HUSH: HUSH}}},
    {"method": "invite", "args": body("invite")["args"], "key": HUSH, "headers": {"cookie": HUSH}},
    HUSH,
    [HUSH],
]


@pytest.fixture
def received() -> Iterator[Ingest]:
    with ingest() as kept:
        yield kept
        sentry_sdk.get_client().close(timeout=5)
        sentry_sdk.get_global_scope().set_client(None)


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
def test_neither_the_log_nor_sentry_repeats_a_payload(
    root: logging.Logger, received: Ingest, as_json: bool
) -> None:
    stream, given = io.StringIO(), []
    configure_logs(as_json=as_json, stream=stream)
    root.setLevel(logging.DEBUG)
    sentry = start_sentry({"SENTRY_DSN": received.dsn}, SystemClock())
    assert sentry is not None

    @virtual
    async def scenario() -> None:
        rig = Rig(more={"observe": fan_out([log_event, sentry.observe])})

        async def invite(args: Invite, ctx: Any) -> None:
            given.append(args)
            raise ValueError(f"cannot invite {args.email} with {HUSH}")

        invite.__annotations__ = {"args": Invite, "return": None}
        rig.worker.handler("invite")(invite)
        for n, one in enumerate(HOSTILE):
            rig.database.send("q", f"{STEER}{n}", one)
        await rig.run()

    scenario()
    sentry_sdk.flush(5)
    said = stream.getvalue()
    assert HUSH not in said
    assert HUSH.encode() not in b"".join(received.bodies)
    assert len(received.events) >= len(HOSTILE)
    assert_lines_are_whole(said, as_json=as_json)
    # The attributes of a message's arguments are those of its model.
    assert {type(one) for one in given} == {Invite}
    assert {frozenset(vars(one)) for one in given} == {frozenset({"email"})}


def assert_lines_are_whole(said: str, *, as_json: bool) -> None:
    """Each begun by us, none by a message, and nothing in them that steers a terminal."""
    lines = said.split("\n")[:-1]
    assert lines == said.splitlines()
    assert len(lines) > len(HOSTILE)
    for line in lines:
        assert re.fullmatch(r"[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*", line)
        if as_json:
            assert {"at", "level", "event"} <= json.loads(line).keys()
        else:
            assert re.match(r"\d\d:\d\d:\d\d\.\d{3} \w+ +\w", line)


COMMANDS = [
    ("dlq", "list"),
    ("dlq", "list", "--json"),
    ("dlq", "show", "1", "--payload"),
    ("dlq", "show", "1", "--payload", "--json"),
    ("dlq", "replay", "1"),
    ("message", "list", "jobs"),
    ("message", "show", "jobs", "2", "--payload"),
    ("org", "list"),
    ("slots",),
    ("slots", "list"),
    ("circuit", "list"),
    ("queue", "stats"),
    ("dlq", "list", "--queue", STEER),
    ("message", "show", STEER, "1"),
]


@pytest.fixture
def steered(connection: psycopg.Connection, queue: str) -> None:
    """A dead letter whose key is live again, and a message, of one who writes to terminals."""
    sent = [{"message": {"method": STEER, "key": STEER, "x": STEER}, "org": STEER}]
    claim = "select * from pgmq_public.claim_org_slot_and_read('jobs', 60, 1, 'h', 60, 1, 8)"
    send = "select pgmq_public.send_messages('jobs', %s)"
    connection.execute(send, [Jsonb(sent)])
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        claimed = cursor.execute(claim).fetchone()
    assert claimed is not None
    outcome = {
        "id": claimed["msg_id"],
        "ct": claimed["read_ct"],
        "do": "dead",
        "took_ms": 1,
        "reason": STEER,
        "error": f"Traceback\n{STEER}",
    }
    connection.execute(
        "select pgmq_public.settle_and_claim('jobs', 'h', %s, 0, 60, 60, 1, 8)", [Jsonb([outcome])]
    )
    connection.execute(send, [Jsonb(sent)])


@pytest.mark.usefixtures("steered")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command)[:30])
def test_no_command_lets_a_message_steer_the_terminal(
    cli: Cli, database: str, command: tuple[str, ...]
) -> None:
    answer = cli(*command, url=database)
    said = answer.stdout + answer.stderr
    assert said
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]", said)
    assert not any(line.startswith("forged") for line in said.splitlines())
