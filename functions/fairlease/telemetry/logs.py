"""Events as log lines: one line per event, as text or JSON, never with a payload."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from fairlease.events import (
    CancellationSwallowed,
    ClaimAnswered,
    ClaimFailed,
    Degraded,
    DeliveryLost,
    HandlerEnded,
    HeartbeatFailed,
    LeaseLost,
    LoopBlocked,
    PinViolated,
    QueueRefused,
    ReleaseFailed,
    RunFailed,
    SettleAnswered,
    SettleFailed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlease.events import Event

LOGGER = logging.getLogger("fairlease")

WARNINGS = (
    CancellationSwallowed,
    ClaimFailed,
    Degraded,
    DeliveryLost,
    HeartbeatFailed,
    LeaseLost,
    LoopBlocked,
    ReleaseFailed,
    SettleFailed,
)
ERRORS = (PinViolated, QueueRefused, RunFailed)
# Many per message: for a person who is looking for something.
DETAILS = (ClaimAnswered, SettleAnswered)

# What `logging` puts on every record; the rest was passed as `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def log_event(event: Event) -> None:
    """An observer: the event's name is the message, its fields are the line's fields."""
    fields = {
        field.name: getattr(event, field.name)
        for field in dataclasses.fields(event)
        if field.name != "error" or not isinstance(event, HandlerEnded)
    }
    if isinstance(event, HandlerEnded) and event.error is not None:
        # The type alone: a message may quote the payload; the dead letter keeps the traceback.
        fields["error"] = type(event.error).__name__
    LOGGER.log(_level(event), _name(event), extra={"fields": fields})


def configure_logs(*, as_json: bool, stream: TextIO | None = None) -> None:
    """Send the log to `stream` (standard error), one line per record."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines() if as_json else _TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # One line per HTTP request says nothing that an event does not.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def _level(event: Event) -> int:
    if isinstance(event, ERRORS):
        return logging.ERROR
    if isinstance(event, WARNINGS):
        return logging.WARNING
    return logging.DEBUG if isinstance(event, DETAILS) else logging.INFO


def _name(event: Event) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    given = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {**given.pop("fields", {}), **given}


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        line = f"{at} {record.levelname.lower():7} {record.getMessage()} {fields}".rstrip()
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line
