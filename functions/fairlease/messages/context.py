"""What a handler is given beside its arguments."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlease.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from fairlease.clock import Clock
    from fairlease.model import NewMessage, Sent


SendMessages = Callable[[str, "Sequence[NewMessage]"], Awaitable["Sent"]]


def _no_progress() -> None:
    return None


async def _no_sender(_queue: str, _messages: Sequence[NewMessage]) -> Sent:
    raise ConfigurationError("this context cannot send: it was made without a sender")


@dataclass(slots=True)
class Context:
    """One delivery as its handler sees it.

    `org` is the one whose slot is held: call no other org's API. `deadline` is an instant of
    `clock.monotonic()` in seconds, at which the handler is cancelled.
    """

    org: str
    queue: str
    method: str
    msg_id: int
    attempt: int
    clock: Clock
    deadline: float
    enqueued_at: datetime | None = None
    key: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    log: logging.LoggerAdapter[logging.Logger] = field(
        default_factory=lambda: logging.LoggerAdapter(logging.getLogger("fairlease.handler"))
    )
    cancelled: bool = False
    on_progress: Callable[[], None] = _no_progress
    sender: SendMessages = _no_sender

    def seconds_left(self) -> float:
        """Seconds until the deadline; negative once it has passed."""
        return self.deadline - self.clock.monotonic()

    async def send(self, messages: Sequence[NewMessage], queue: str | None = None) -> Sent:
        """Send further messages, to this message's own queue unless another is named.

        The send goes through even if the handler is cancelled meanwhile; give each message a
        `key`, so that a second delivery of this one does not send it again.
        """
        return await self.sender(queue or self.queue, messages)

    def progress(self, note: str = "") -> None:
        """Say that the work moves on, so that it is not taken for stalled."""
        self.on_progress()
        if note:
            self.log.info("progress", extra={"note": note})
