"""JSON and rows to the model, and error codes to the error tree: what both transports share."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fairlease.errors import (
    CallRefused,
    FunctionMissing,
    RpcError,
    TransientError,
    Unauthorized,
    UnexpectedAnswer,
)
from fairlease.model import (
    ClaimAnswer,
    ClaimStatus,
    DeadLetter,
    Done,
    GiveBack,
    Heartbeat,
    Limit,
    Message,
    Outcome,
    QueueStats,
    RetryLater,
    Sent,
    Settled,
    SettleResult,
    SnoozeUntil,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairlease.model import ClaimRequest, Delivery

FUNCTION_MISSING = frozenset({"PGRST202", "PGRST203", "42883", "42725"})
UNAUTHORIZED = frozenset({"401", "403", "42501", "28000", "28P01", "PGRST301", "PGRST302"})
# Codes whose transaction was rolled back: the same call may succeed, and has done nothing.
BUSY = frozenset({"57014", "55P03", "40001", "40P01", "PGRST000", "PGRST001", "PGRST002"})
BUSY |= frozenset({"PGRST003", "PGRST303", "429"})
# A proxy gave the call up before or after it took effect.
GIVEN_UP = frozenset({"408"})
# Classes of SQLSTATE: lost connections, no resources, operator intervention.
BUSY_CLASSES = ("53", "57P")
LOST_CLASSES = ("08",)


def error_of(code: object, message: str) -> RpcError:
    """The branch of the error tree for a SQLSTATE, a PGRST code or an HTTP status of any type."""
    text = "" if code is None else str(code)
    if text in FUNCTION_MISSING:
        return FunctionMissing(message, code=text)
    if text == "P0001":
        return CallRefused(message, code=text)
    if text in UNAUTHORIZED:
        return Unauthorized(message, code=text)
    if text in BUSY or text.startswith(BUSY_CLASSES):
        return TransientError(message, code=text, took_effect=False)
    server_error = len(text) == 3 and text.startswith("5")  # noqa: PLR2004 - an HTTP status
    if text in GIVEN_UP or server_error or text.startswith(LOST_CLASSES):
        return TransientError(message, code=text)
    return UnexpectedAnswer(message, code=text)


def claim_arguments(request: ClaimRequest) -> dict[str, Any]:
    """Unpinned, `pin_org` is absent, not null: an older database resolves by the names given."""
    arguments: dict[str, Any] = {
        "queue_name": request.queue,
        "sleep_seconds": request.sleep_seconds,
        "n": request.n,
        "holder": request.holder,
        "lease_ttl_seconds": request.lease_ttl_seconds,
        "max_per_org": request.max_per_org,
        "global_cap": request.global_cap,
    }
    if request.pin_org is not None:
        arguments["pin_org"] = request.pin_org
    return arguments


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """One element of `settle_and_claim`'s `outcomes`; times in milliseconds from now."""
    said: dict[str, Any] = {
        "id": outcome.delivery.msg_id,
        "ct": outcome.delivery.read_ct,
        "took_ms": outcome.took_ms,
    }
    match outcome:
        case Done():
            said["do"] = "done"
        case RetryLater(after_ms=after_ms, error=error):
            said |= {"do": "retry", "after_ms": after_ms, "error": error}
        case SnoozeUntil(after_ms=after_ms):
            said |= {"do": "snooze", "after_ms": after_ms}
        case GiveBack():
            said["do"] = "give_back"
        case DeadLetter(reason=reason, error=error):
            said |= {"do": "dead", "reason": reason, "error": error}
        case _:
            raise TypeError(f"no such outcome: {type(outcome).__name__}")
    if outcome.limit is not None:
        said["limit"] = limit_json(outcome.limit)
    return said


def limit_json(limit: Limit) -> dict[str, Any]:
    return {"until_ms": round(limit.retry_after_seconds * 1000), "reason": limit.reason}


def deliveries_json(deliveries: Sequence[Delivery]) -> list[list[int]]:
    return [[delivery.msg_id, delivery.read_ct] for delivery in deliveries]


def claim_of_rows(rows: Any) -> ClaimAnswer:
    """A plain claim's set of rows; a row without a message id is no message."""
    with _readable("claim_org_slot_and_read", rows):
        if not isinstance(rows, list):
            raise TypeError
        if not rows:
            return ClaimAnswer(ClaimStatus.NO_DEMAND)
        messages = tuple(_message(row) for row in rows if row.get("msg_id") is not None)
        return _claim(rows[0]["status"], rows[0].get("org"), messages)


def claim_of_object(value: Any, told: int = 0) -> ClaimAnswer:
    """The one JSON object that `settle_and_claim` returns, which was told so many outcomes.

    An object that does not answer each of them is not its answer, whatever it looks like.
    """
    with _readable("settle_and_claim", value):
        settled = tuple(
            Settled(int(item["id"]), SettleResult(item["result"]), item.get("note") or "")
            for item in value.get("settled") or ()
        )
        if len(settled) != told:
            raise ValueError
        listed = value.get("messages") or ()
        messages = tuple(_message(item) for item in listed if item.get("msg_id") is not None)
        retry_after = value.get("retry_after_ms")
        return _claim(
            value["status"],
            value.get("org"),
            messages,
            cause=value.get("cause"),
            retry_after_ms=None if retry_after is None else int(retry_after),
            settled=settled,
        )


def _claim(status: Any, org: Any, messages: tuple[Message, ...], **rest: Any) -> ClaimAnswer:
    """Messages are recognised by their id, whatever a newer database calls its status."""
    known = ClaimStatus.CLAIMED if messages else ClaimStatus(status)
    return ClaimAnswer(known, org if isinstance(org, str) else None, messages, **rest)


def _message(row: Mapping[str, Any]) -> Message:
    read_ct = int(row.get("read_ct") or 1)
    closed, headers = row.get("closed_count"), row.get("headers")
    return Message(
        msg_id=int(row["msg_id"]),
        read_ct=read_ct,
        body=row.get("message"),
        enqueued_at=_instant(row.get("enqueued_at")),
        headers=headers if isinstance(headers, dict) else None,
        attempt=int(row.get("attempt") or read_ct),
        crashes=int(row.get("crashes") or 0),
        suspect=closed is not None and read_ct - int(closed) > 1,
    )


def _instant(value: Any) -> datetime | None:
    """None for what no `datetime` can be, as `infinity`: one odd row must not keep the others."""
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None


def heartbeat_of(value: Any) -> Heartbeat:
    with _readable("heartbeat_org_slot", value):
        return Heartbeat(
            slot_alive=bool(value["slot_alive"]),
            extended=frozenset(value.get("extended") or ()),
            lost=frozenset(value.get("lost") or ()),
            gone=frozenset(value.get("gone") or ()),
        )


def sent_of(value: Any, told: int = 0) -> Sent:
    """Of so many messages."""
    with _readable("send_messages", value):
        ids = ids_of(value["ids"], told)
        return Sent(tuple(ids), frozenset(value.get("existing") or ()))


def ids_of(value: Any, told: int = 0) -> list[int]:
    """One id for each of so many messages."""
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise unreadable("send_batch", value)
    if len(value) != told:
        raise TransientError(f"send_batch: {len(value)} ids for {told} messages")
    return value


def boolean_of(function: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise unreadable(function, value)
    return value


def stats_of(value: Any) -> tuple[QueueStats, ...]:
    """A newer database may say more, an older one less."""
    with _readable("queue_stats", value):
        if not isinstance(value, list):
            raise TypeError
        return tuple(
            QueueStats(
                queue=str(item["queue"]),
                ready=int(item["ready"]),
                running=int(item["running"]),
                delayed=int(item["delayed"]),
                oldest_age_seconds=float(item["oldest_age_seconds"]),
                dead_letters=int(item["dead_letters"]),
                dead_letters_new=int(item.get("dead_letters_new") or 0),
                circuits_open=int(item.get("circuits_open") or 0),
            )
            for item in value
        )


def removed_of(value: Any) -> dict[str, int]:
    """Steps by name; those of a queue stand under `queue:<name>`."""
    with _readable("maintain_queues", value):
        removed: dict[str, int] = {}
        for step, count in value.items():
            if isinstance(count, dict):
                queue = step.removeprefix("queue:")
                removed |= {f"{queue}: {part}": int(n) for part, n in count.items()}
            else:
                removed[step] = int(count)
        return removed


@contextlib.contextmanager
def _readable(function: str, value: Any) -> Iterator[None]:
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise unreadable(function, value) from error


def unreadable(function: str, value: Any) -> TransientError:
    """A proxy answered in the database's place: nobody knows whether the call took effect."""
    return TransientError(f"{function}: the answer is {type(value).__name__}, not what it returns")


def unsendable(function: str, error: Exception) -> UnexpectedAnswer:
    """The arguments cannot be put on the wire; nothing was sent, and nothing will be."""
    return UnexpectedAnswer(f"{function}: the arguments cannot be sent: {type(error).__name__}")
