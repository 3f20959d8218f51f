"""Which arguments are refused."""

from __future__ import annotations

from typing import Any

from .values import Claim, Refused


def check_slot_arguments(queues: Any, queue: str, holder: str | None, ttl_seconds: int) -> None:
    bad = set()
    if not holder:
        bad.add("holder")
    if ttl_seconds is None or ttl_seconds < 1:
        bad.add("lease_ttl_seconds")
    if queue not in queues:
        bad.add("queue_name")
    if bad:
        raise Refused(bad)


def check_claim(queues: Any, ask: Claim) -> None:
    bad: set[str] = set()
    try:
        check_slot_arguments(queues, ask.queue, ask.holder, ask.lease_ttl_seconds)
    except Refused as refused:
        bad = refused.arguments
    if ask.n is None or ask.n < 1:
        bad.add("n")
    if ask.sleep_seconds is None or ask.sleep_seconds < 0:
        bad.add("sleep_seconds")
    if ask.pin_org == "":
        bad.add("pin_org")
    if bad:
        raise Refused(bad)
