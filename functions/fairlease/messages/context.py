"""What a handler is given beside its arguments."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlease.errors import ConfigurationError, TransientError
from fairlease.messages.callers import once_within, once_within_async
from fairlease.messages.outgoing import check_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from fairlease.clock import Clock
    from fairlease.model import NewMessage, Sent


SendMessages = Callable[[str, "Sequence[NewMessage]"], Awaitable["Sent"]]

TakeKey = Callable[[str, str, str], Awaitable[bool]]
# A key that was taken may have been taken by the call whose answer was lost.
ONCE_TRIES = 3


def _no_progress() -> None:
    return None


async def _no_sender(_queue: str, _messages: Sequence[NewMessage]) -> Sent:
    raise ConfigurationError("this context cannot send: it was made without a sender")


async def _no_inbox(_queue: str, _key: str, _token: str) -> bool:
    raise ConfigurationError("this context has no inbox: it was made without one")


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
    inbox: TakeKey = _no_inbox

    def seconds_left(self) -> float:
        """Seconds until the deadline; negative once it has passed."""
        return self.deadline - self.clock.monotonic()

    async def send(self, messages: Sequence[NewMessage], queue: str | None = None) -> Sent:
        """Send further messages, to this message's own queue unless another is named.

        The send goes through even if the handler is cancelled meanwhile; give each message a
        `key`, so that a second delivery of this one does not send it again.
        """
        return await self.sender(queue or self.queue, messages)

    async def once(self, key: str, connection: Any = None) -> bool:
        """Whether the effect named `key` is still to be done, in this queue; True once at most.

        With a connection of the handler's own (asynchronous psycopg or SQLAlchemy), the key is
        taken in its transaction: do the effect in the same one, and it happens exactly once.
        Without, the key is taken at once: a crash before the effect leaves it undone.
        """
        if connection is not None:
            return await once_within_async(connection, self.queue, key)
        check_key(key)
        token = uuid.uuid4().hex
        for _ in range(ONCE_TRIES - 1):
            try:
                return await self.inbox(self.queue, key, token)
            except TransientError:
                continue
        return await self.inbox(self.queue, key, token)

    def once_within(self, connection: Any, key: str) -> bool:
        """`once` for a synchronous handler, on its own connection."""
        return once_within(connection, self.queue, key)

    def progress(self, note: str = "") -> None:
        """Say that the work moves on, so that it is not taken for stalled."""
        self.on_progress()
        if note:
            self.log.info("progress", extra={"note": note})
