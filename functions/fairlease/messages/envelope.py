"""From a raw JSON message to a handler and its arguments, or to a reason why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fairlease.messages.verdicts import Dead
from fairlease.model import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlease.messages.registry import Handler

# How many validation errors a reason lists; a person reads it.
ERRORS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message that has a handler, with validated arguments."""

    handler: Handler
    arguments: Any
    key: str | None


def open_envelope(body: Any, handlers: Mapping[str, Handler]) -> Envelope:
    """Raise `Dead` for a message that no retry can help; never show a payload in the reason."""
    if isinstance(body, Unreadable):
        raise Dead(body.reason)
    if not isinstance(body, dict):
        raise Dead(f"not an object: the message is a JSON {_json_type(body)}")
    method = body.get("method")
    if not isinstance(method, str) or not method:
        raise Dead("no method: the message has no text under 'method'")
    handler = handlers.get(method)
    if handler is None:
        known = ", ".join(sorted(handlers)) or "none"
        raise Dead(f"unknown method {method[:100]!r}; this worker has: {known}")
    try:
        arguments = handler.arguments.validate_python(body.get("args", {}))
    except ValidationError as error:
        raise Dead(f"args of {method!r} are not valid: {_explain(error)}") from None
    except RecursionError:
        raise Dead(f"args of {method!r} are nested too deeply to validate") from None
    except Exception as error:
        raise Dead(f"args of {method!r}: a validator raised {type(error).__name__}") from error
    key = body.get("key")
    return Envelope(handler, arguments, key if isinstance(key, str) else None)


def method_of(body: Any, handlers: Mapping[str, Handler]) -> str:
    """The method of a message that is not opened; empty where this worker has none of the name."""
    method = body.get("method") if isinstance(body, dict) else None
    return method if isinstance(method, str) and method in handlers else ""


def _explain(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [
        f"args.{'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
        for item in found[:ERRORS_SHOWN]
    ]
    more = len(found) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _json_type(body: Any) -> str:
    match body:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "array"
