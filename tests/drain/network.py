"""The weather between one worker and the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.errors import TransientError, UnexpectedAnswer
from fairlease.simulate.wire import Call, Trip

from .plan import CALM_AFTER_SECONDS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from .plan import Weather

RENEWALS = ("heartbeat_org_slot", "renew_org_slot")


@dataclass(slots=True)
class Network:
    weather: Weather
    dice: random.Random
    now: Callable[[], float]
    cut_until: float = 0.0

    def travel(self, call: Call) -> Trip:
        there, back = self.dice.uniform(0, 0.02), self.dice.uniform(0, 0.02)
        if self.now() < self.cut_until:
            return Trip(there, error=TransientError("no route", took_effect=False))
        if self.now() >= CALM_AFTER_SECONDS:
            return Trip(there, back)
        roll, chances = self.dice.random, self.weather
        if call.function in RENEWALS and roll() < chances.late_renewals:
            there, back = self.dice.uniform(0, 9), self.dice.uniform(0, 9)
        if roll() < chances.slow:
            # Longer than any deadline, too: the call takes effect after its caller gave up.
            there, back = self.dice.uniform(0, 16), self.dice.uniform(0, 16)
        if roll() < chances.lost:
            return Trip(there, lost=self.dice.random() < 0.5, error=None, answer=_lost)
        if roll() < chances.refused:
            return Trip(there, back, error=TransientError("busy", code="503", took_effect=False))
        if roll() < chances.unexpected:
            return Trip(there, back, answer=_unexpected)
        return Trip(there, back)


def _lost(_said: object) -> object:
    raise TransientError("<html>bad gateway</html>", code="502")


def _unexpected(_said: object) -> object:
    raise UnexpectedAnswer("an answer that nobody expects", code="XX000")
