from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, field_validator

from fairlease import Context, Dead, Worker
from fairlease.errors import ConfigurationError
from fairlease.messages.envelope import open_envelope
from fairlease.messages.retry import buried
from fairlease.model import Delivery

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


class Args(BaseModel):
    name: str
    count: int = 1


def worker() -> Worker:
    made = Worker()

    @made.handler("greet", timeout=5)
    async def greet(args: Args, ctx: Context) -> None: ...

    @made.handler("tidy")
    def tidy(args: dict[str, Any], ctx: Context) -> None: ...

    return made


def test_a_valid_message_becomes_its_handler_and_model() -> None:
    envelope = open_envelope(
        {"method": "greet", "args": {"name": "a"}, "key": "k"}, worker().handlers
    )
    assert envelope.handler.method == "greet"
    assert envelope.handler.is_async
    assert envelope.arguments == Args(name="a")
    assert envelope.key == "k"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "not an object: the message is a JSON null"),
        ("text", "not an object: the message is a JSON string"),
        ([], "not an object: the message is a JSON array"),
        (42, "not an object: the message is a JSON number"),
        (True, "not an object: the message is a JSON boolean"),
        ({}, "no method: the message has no text under 'method'"),
        ({"method": 5}, "no method: the message has no text under 'method'"),
        ({"method": "nope"}, "unknown method 'nope'; this worker has: greet, tidy"),
        ({"method": "greet"}, "args of 'greet' are not valid: args.name: Field required"),
    ],
)
def test_a_message_that_no_retry_can_help_is_dead_with_a_reason(body: Any, reason: str) -> None:
    with pytest.raises(Dead) as dead:
        open_envelope(body, worker().handlers)
    assert dead.value.reason == reason


def test_a_reason_never_shows_the_payload() -> None:
    with pytest.raises(Dead) as dead:
        open_envelope({"method": "greet", "args": {"name": {"secret": "s3"}}}, worker().handlers)
    assert "s3" not in dead.value.reason


def one(args: Args) -> None: ...
def unannotated(args, ctx) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def wrong_context(args: Args, ctx: int) -> None: ...
def keyword_only(args: Args, *, ctx: Context) -> None: ...
def yielding(args: Args, ctx: Context) -> Iterator[None]:
    yield


async def yielding_later(args: Args, ctx: Context) -> AsyncIterator[None]:
    yield


def more(args: Args, ctx: Context, extra: int = 1) -> None: ...
def unresolved(args: Nowhere, ctx: Context) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (one, r"must take exactly \(args, ctx\)"),
        (keyword_only, r"must take exactly \(args, ctx\)"),
        (more, r"must take exactly \(args, ctx\)"),
        (yielding, "yields, so it would never run"),
        (yielding_later, "yields, so it would never run"),
        (None, "is None; give a function"),
        (print, r"must take exactly \(args, ctx\)"),
        (unannotated, "annotate 'args' with a pydantic model"),
        (wrong_context, "the second argument must be a Context"),
        (unresolved, "a type hint cannot be resolved"),
    ],
)
def test_a_wrong_signature_is_refused_at_registration(
    function: Callable[..., Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Worker().handler("m")(function)


class Opaque:
    pass


class Broken:
    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        raise RuntimeError("no schema")


class Partial(BaseModel):
    part: Undefined  # type: ignore[name-defined]  # noqa: F821


class Tree(BaseModel):
    children: list[Tree] = []


@pytest.mark.parametrize("model", [Opaque, Broken, Partial, 5])
def test_a_model_that_cannot_be_built_is_refused_at_registration(model: Any) -> None:
    def handle(args: Any, ctx: Context) -> None: ...

    handle.__annotations__["args"] = model
    made = Worker()
    with pytest.raises(ConfigurationError, match="no model can be built"):
        made.handler("m")(handle)
    assert made.handlers == {}


def test_a_model_of_itself_is_one() -> None:
    made = Worker()

    @made.handler("m")
    def handle(args: Tree, ctx: Context) -> None: ...

    opened = open_envelope({"method": "m", "args": {"children": [{}]}}, made.handlers)
    assert opened.arguments == Tree(children=[Tree()])


class Raising(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def check(cls, n: int) -> int:
        return {1: n}[n]


def test_a_validator_that_fails_in_its_own_way_is_a_dead_message_and_no_end_of_the_run() -> None:
    made = Worker()

    @made.handler("m")
    def handle(args: Raising, ctx: Context) -> None: ...

    with pytest.raises(Dead) as dead:
        open_envelope({"method": "m", "args": {"n": 2}}, made.handlers)
    assert dead.value.reason == "args of 'm': a validator raised KeyError"
    letter = buried(Delivery(1, 1), dead.value)
    assert letter.reason == dead.value.reason
    assert letter.error.strip().endswith("KeyError: 2")


def test_a_method_is_registered_once() -> None:
    made = worker()
    with pytest.raises(ConfigurationError, match="'greet' is registered twice"):
        made.handler("greet")

    first, second = made.handler("late"), made.handler("late")

    @first
    def kept(args: dict[str, Any], ctx: Context) -> None: ...

    with pytest.raises(ConfigurationError, match="'late' is registered twice"):
        second(lambda args, ctx: None)
    assert made.handlers["late"].function is kept


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_timeout_is_seconds_above_zero(timeout: float) -> None:
    with pytest.raises(ConfigurationError, match="give seconds above 0"):
        Worker().handler("m", timeout=timeout)
