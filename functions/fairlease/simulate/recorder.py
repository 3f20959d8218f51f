"""What happened in a simulation: every handler from start to end, every event, every send."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlease.events import Event


@dataclass(slots=True, eq=False)
class Span:
    """One handler's run; `ended` NaN while it runs, or where its process was killed."""

    isolate: str
    org: str
    msg_id: int
    started: float
    ended: float = math.nan
    cut: bool = False

    @property
    def runs(self) -> bool:
        return math.isnan(self.ended) and not self.cut


@dataclass(slots=True)
class Recorder:
    """Instants in virtual seconds since the start."""

    now: Callable[[], float]
    spans: list[Span] = field(default_factory=list)
    sent: dict[str, list[float]] = field(default_factory=dict)
    events: list[tuple[float, Event]] = field(default_factory=list)

    def send(self, org: str) -> None:
        self.sent.setdefault(org, []).append(self.now())

    def start(self, isolate: str, org: str, msg_id: int) -> Span:
        span = Span(isolate, org, msg_id, self.now())
        self.spans.append(span)
        return span

    def end(self, span: Span) -> None:
        if not span.cut:
            span.ended = self.now()

    def kill(self, isolate: str) -> int:
        """The process is gone; returns how many messages it leaves hidden."""
        running = [span for span in self.spans if span.isolate == isolate and span.runs]
        for span in running:
            span.cut = True
            span.ended = self.now()
        return len(running)

    def observe(self, event: Event) -> None:
        self.events.append((self.now(), event))
