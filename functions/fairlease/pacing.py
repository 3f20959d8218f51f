"""When a loop that polls asks again: quick after work, ever slower without, never in lockstep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    import random

_JITTER = 0.25


class PollKnobs(Protocol):
    """The part of the settings that paces a loop."""

    @property
    def poll_busy_ms(self) -> int: ...
    @property
    def poll_idle_seconds(self) -> int: ...
    @property
    def poll_max_seconds(self) -> int: ...


class PollingDelay:
    """The pause before the next round, in seconds, from what the rounds so far brought.

    After work the busy interval; without it the idle interval, doubling up to the maximum (one
    below the idle interval counts as the idle interval). Work, also work that is merely held,
    starts the doubling anew. An error is one step like an empty round: a single failure does not
    stall a loop and a lasting one does not hammer the server. Every pause is jittered by a
    quarter either way. One instance for each loop.
    """

    def __init__(
        self,
        dice: random.Random,
        *,
        busy_seconds: float = 0.1,
        idle_seconds: float = 5.0,
        max_seconds: float = 60.0,
    ) -> None:
        if not (0 < busy_seconds < float("inf") and 0 < idle_seconds < float("inf")):
            raise ValueError(f"{busy_seconds=} and {idle_seconds=}: give finite seconds above 0")
        self.busy_seconds = busy_seconds
        self.idle_seconds = idle_seconds
        self.max_seconds = max(idle_seconds, max_seconds)
        self._dice = dice
        self._next_seconds = idle_seconds

    @classmethod
    def from_knobs(cls, knobs: PollKnobs, dice: random.Random) -> Self:
        return cls(
            dice,
            busy_seconds=knobs.poll_busy_ms / 1000,
            idle_seconds=knobs.poll_idle_seconds,
            max_seconds=knobs.poll_max_seconds,
        )

    def start_offset(self) -> float:
        """The pause before the very first round: a fleet that starts together spreads."""
        return self._dice.uniform(0.0, self.idle_seconds)

    def after_work(self) -> float:
        self._next_seconds = self.idle_seconds
        return self._jittered(self.busy_seconds)

    def after_held(self) -> float:
        """Nothing was asked for, because there is no room for more: that is not idling."""
        self._next_seconds = self.idle_seconds
        return self._jittered(self.idle_seconds)

    def after_empty(self) -> float:
        pause = self._next_seconds
        self._next_seconds = min(self.max_seconds, pause * 2)
        return self._jittered(pause)

    def after_error(self) -> float:
        """One step like an empty round, from the idle interval upwards."""
        return self.after_empty()

    def _jittered(self, seconds: float) -> float:
        return seconds * self._dice.uniform(1 - _JITTER, 1 + _JITTER)
