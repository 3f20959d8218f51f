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
    Event,
    FunctionEnded,
    FunctionStarted,
    HandlerStarted,
    HeartbeatFailed,
    LeaseLost,
    LoopBlocked,
    OutcomeChanged,
    PinViolated,
    PokeAnswered,
    QueueAlarm,
    QueueRefused,
    ReleaseFailed,
    RunFailed,
    SettleAnswered,
    SettleFailed,
)
from fairlease.model import QueueStats

if TYPE_CHECKING:
    from collections.abc import Mapping


LOGGER = logging.getLogger("fairlease")

WARNINGS = (
    CancellationSwallowed,
    ClaimFailed,
    Degraded,
    DeliveryLost,
    HeartbeatFailed,
    LeaseLost,
    LoopBlocked,
    OutcomeChanged,
    QueueAlarm,
    ReleaseFailed,
    SettleFailed,
)
ERRORS = (PinViolated, QueueRefused, RunFailed)
# Many, or said by the host in a line of its own: for a person who is looking for something.
DETAILS = (
    ClaimAnswered,
    FunctionEnded,
    FunctionStarted,
    HandlerStarted,
    PokeAnswered,
    SettleAnswered,
)

_SHOWN_WHERE_SET = frozenset({"error", "raised"})
_NEVER_SHOWN = frozenset({"headers"})

# What `logging` puts on every record; the rest was passed as `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """What is the same for all events of a class."""

    level: int
    name: str
    fields: tuple[str, ...]


# An org or a method is a stranger's text: it must not begin a line, nor move a terminal's cursor.
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
_SEPARATORS = [*range(0x2028, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)]
_ONE_LINE = (
    {code: f"\\x{code:02x}" for code in _CONTROLS}
    | {code: f"\\u{code:04x}" for code in _SEPARATORS}
    | {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
)
# JSON has escaped those below a space; its escape of the others is the same in every reader.
_JSON_ONE_LINE = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *_SEPARATORS)}

_kinds: dict[type[Event], _Kind] = {}


def log_event(event: Event) -> None:
    """An observer: the event's name is the message, its fields are the line's fields."""
    kind = kind_of(event)
    if LOGGER.isEnabledFor(kind.level):
        LOGGER.log(kind.level, kind.name, extra={"fields": fields_of(event)})


def fields_of(event: Event) -> dict[str, Any]:
    """What may be shown of an event: of an exception its type, of headers nothing.

    An exception's message may quote the payload; the dead letter keeps it, with the traceback.
    """
    fields: dict[str, Any] = {}
    for name in kind_of(event).fields:
        value = getattr(event, name)
        if isinstance(value, QueueStats):
            fields |= dataclasses.asdict(value)
        elif isinstance(value, BaseException):
            fields[name] = type(value).__name__
        elif value is not None or name not in _SHOWN_WHERE_SET:
            fields[name] = value
    return fields


def kind_of(event: Event) -> _Kind:
    kind = _kinds.get(type(event))
    if kind is None:
        kind = _kinds[type(event)] = _Kind(
            _level(event),
            re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower(),
            tuple(f.name for f in dataclasses.fields(event) if f.name not in _NEVER_SHOWN),
        )
    return kind


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
        return json.dumps(line, default=str, ensure_ascii=False).translate(_JSON_ONE_LINE)


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        line = f"{at} {record.levelname.lower():7} {record.getMessage()} {fields}".rstrip()
        line = line.translate(_ONE_LINE)
        if record.exc_info:
            traceback = self.formatException(record.exc_info).split("\n")
            line = "\n  ".join([line, *(said.translate(_ONE_LINE) for said in traceback)])
        return line
