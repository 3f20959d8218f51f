"""Short words for the steps that scenarios are made of."""

from __future__ import annotations

from typing import Any

from .replay import Ask, Send, Settle
from .values import Claim

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS


def ask(holder: str = "h1", **rest: Any) -> Ask:
    return Ask(Claim(holder=holder, **rest))


def take(holder: str = "h1", **rest: Any) -> Settle:
    """A claim whose answer also tells causes, attempts and crashes."""
    return Settle(Claim(holder=holder, **rest))


def settle(*outcomes: tuple[int, str, int], limit_ms: int | None = None, **rest: Any) -> Settle:
    return Settle(Claim(n=0, **rest), outcomes, limit_ms)


def many(count: int, org: str = "a", queue: str = "alpha") -> Send:
    return Send((org,) * count, queue)
