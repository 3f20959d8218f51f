"""`function.toml`: what a function is, checked when the host starts and not at night."""

from __future__ import annotations

import difflib
import re
import tomllib
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from croniter import CroniterError, croniter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from fairlease.errors import ConfigurationError
from fairlease.settings import knob_table

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_core import ErrorDetails

FILE = "function.toml"
# Part of a URL, of a module path and of metric labels.
NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
# As fairlease.check_queue_name in the database has it.
_QUEUE = re.compile(r"[A-Za-z0-9_]+(-[A-Za-z0-9_]+)*")
_QUEUE_BYTES = 47
_FIELD = re.compile(
    r"[0-9*/,\-]+|([0-9*/,\-]|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
    r"|sun|mon|tue|wed|thu|fri|sat))+",
    re.IGNORECASE,
)
_FIELDS = 5
_MACROS = frozenset({"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly"})


class Kind(StrEnum):
    """A drain empties queues through handlers; a task is one coroutine for each poke."""

    DRAIN = "drain"
    TASK = "task"


def _schedule(text: str) -> str:
    """Five fields, as both pg_cron and Kubernetes read them, that come true at some time."""
    if text in _MACROS:
        return text
    fields = text.split()
    if len(fields) != _FIELDS or not all(_FIELD.fullmatch(f) for f in fields):
        raise ValueError("give five cron fields such as '* * * * *', or @hourly, @daily, ...")
    try:
        croniter(text, datetime(2024, 1, 1, tzinfo=UTC)).get_next()
    except CroniterError:
        raise ValueError("this never comes true; correct its fields") from None
    return " ".join(fields)


def _queue(name: str) -> str:
    if not _QUEUE.fullmatch(name) or len(name) > _QUEUE_BYTES:
        raise ValueError(
            f"a queue name has 1 to {_QUEUE_BYTES} letters, digits, _ and single hyphens between"
        )
    return name


class Manifest(BaseModel):
    """The contents of one `function.toml`; queues in priority order, knobs in lower case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$", strict=True)]
    kind: Kind
    schedule: Annotated[str, AfterValidator(_schedule)] = "* * * * *"
    pokes: Annotated[int, Field(ge=1, le=20, strict=True)] = 1
    queues: tuple[Annotated[str, Field(strict=True), AfterValidator(_queue)], ...] = ()
    knobs: dict[str, Any] = {}

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Manifest:
        if self.kind is Kind.DRAIN and not self.queues:
            raise ValueError("a drain needs queues; list them in priority order")
        if self.kind is Kind.TASK and self.queues:
            raise ValueError('a task has no queues; remove them, or set kind = "drain"')
        # pgmq lower-cases the names of tables: these two would share theirs.
        folded = [q.lower() for q in self.queues]
        if twice := [q for q in folded if folded.count(q) > 1]:
            raise ValueError(f"queue {twice[0]!r} is listed twice; remove one")
        for knob in self.knobs:
            if knob not in knob_table() or knob_table()[knob].of_isolate:
                raise ValueError(f"[knobs] {_unknown(knob, _knobs_of_a_function())}")
        return self


def _knobs_of_a_function() -> list[str]:
    return [name for name, knob in knob_table().items() if not knob.of_isolate]


def read_manifest(path: Path) -> Manifest:
    """Raises `ConfigurationError`, one line that names the file, the place and the remedy."""
    try:
        data = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: no TOML: {error}") from None
    try:
        manifest = Manifest.model_validate(data)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {_first(error.errors()[0])}") from None
    if manifest.name != path.parent.name:
        raise ConfigurationError(
            f"{path}: name {manifest.name!r} differs from its folder {path.parent.name!r}; "
            "make them equal"
        )
    return manifest


def _first(error: ErrorDetails) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return _unknown(place, list(Manifest.model_fields))
    if error["type"] == "missing":
        return f"{place} is missing; add it"
    said = error["msg"].removeprefix("Value error, ")
    shown = f" = {str(error['input'])[:60]!r}" if error["loc"] else ""
    return f"{place}{shown}: {said}" if place else said


def _unknown(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    remedy = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
    return f"unknown key {key[:60]!r}; {remedy}"
