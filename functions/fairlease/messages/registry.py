"""`Worker`: which coroutine handles which method. Checked at registration, not at night."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import TypeAdapter

from fairlease.errors import ConfigurationError
from fairlease.messages.context import Context
from fairlease.messages.verdicts import Retry

Closer = Callable[[], Awaitable[None]]
HandlerFunction = Callable[[Any, Context], Awaitable[None] | None]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Handler:
    """One method: its function, the type of its arguments, and its policies (seconds)."""

    method: str
    function: HandlerFunction
    arguments: TypeAdapter[Any]
    is_async: bool
    retry: Retry
    timeout_seconds: float | None = None


@dataclass(slots=True)
class Worker:
    """The handlers of one function; its queues stand in `function.toml`."""

    handlers: dict[str, Handler] = field(default_factory=dict)
    closers: list[Closer] = field(default_factory=list)

    def handler(
        self, method: str, *, retry: Retry | None = None, timeout: float | None = None
    ) -> Callable[[F], F]:
        """Register `async def f(args: Model, ctx: Context)`; a plain `def` runs in a thread.

        `timeout` in seconds; None takes the knob `HANDLER_TIMEOUT_SECONDS`. Raises
        `ConfigurationError` for a second handler of the method or a signature that cannot work.
        """
        if not method or not isinstance(method, str):
            raise ConfigurationError(f"handler: the method is {method!r}; give a non-empty name")
        self._check_is_free(method)
        if timeout is not None and not 0 < timeout < float("inf"):
            raise ConfigurationError(f"handler {method!r}: timeout={timeout}; give seconds above 0")

        def register(function: F) -> F:
            self._check_is_free(method)
            self.handlers[method] = Handler(
                method=method,
                function=function,
                arguments=_arguments_of(method, function),
                is_async=inspect.iscoroutinefunction(function),
                retry=retry or Retry(),
                timeout_seconds=timeout,
            )
            return function

        return register

    def _check_is_free(self, method: str) -> None:
        if method in self.handlers:
            raise ConfigurationError(f"handler {method!r} is registered twice; remove one")

    def on_close(self, close: Closer) -> Closer:
        """Register a coroutine function that runs at the end of the process, to close clients."""
        self.closers.append(close)
        return close


def _arguments_of(method: str, function: Callable[..., Any]) -> TypeAdapter[Any]:
    if not callable(function):
        raise ConfigurationError(f"handler {method!r} is {function!r}; give a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"handler {method!r} yields, so it would never run; remove yield")
    parameters = list(inspect.signature(function).parameters.values())
    takes_two = len(parameters) == 2 and all(  # noqa: PLR2004 - args and ctx
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters
    )
    if not takes_two:
        raise ConfigurationError(f"handler {method!r} must take exactly (args, ctx)")
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError) as error:
        raise ConfigurationError(
            f"handler {method!r}: a type hint cannot be resolved ({error}); import it outside "
            "`if TYPE_CHECKING`"
        ) from error
    name = parameters[0].name
    if name not in hints:
        raise ConfigurationError(f"handler {method!r}: annotate {name!r} with a pydantic model")
    if hints.get(parameters[1].name, Context) is not Context:
        raise ConfigurationError(f"handler {method!r}: the second argument must be a Context")
    try:
        adapter = TypeAdapter[Any](hints[name])
        adapter.core_schema["type"]  # a model of which a part is not defined raises only here
    except Exception as error:
        raise ConfigurationError(
            f"handler {method!r}: no model can be built from {hints[name]!r}: {error}"
        ) from error
    return adapter
