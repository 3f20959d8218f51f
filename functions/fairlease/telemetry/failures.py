"""What counts as a failure of a message, and what an error is called: for every alert the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.messages.verdicts import Verdict

if TYPE_CHECKING:
    from fairlease.events import HandlerEnded


def is_failure(event: HandlerEnded) -> bool:
    """A dead letter, or a retry that the handler did not ask for."""
    if event.outcome == "DeadLetter":
        return True
    return event.outcome == "RetryLater" and not isinstance(event.error, Verdict)


def kind_of_error(error: BaseException) -> str:
    """The error's class, with its module where it is not Python's own."""
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
