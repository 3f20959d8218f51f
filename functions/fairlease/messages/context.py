"""What a handler is given beside its arguments."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from fairlease.clock import Clock


def _no_progress() -> None:
    return None


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

    def seconds_left(self) -> float:
        """Seconds until the deadline; negative once it has passed."""
        return self.deadline - self.clock.monotonic()

    def progress(self, note: str = "") -> None:
        """Say that the work moves on, so that it is not taken for stalled."""
        self.on_progress()
        if note:
            self.log.info("progress", extra={"note": note})
