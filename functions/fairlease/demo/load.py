"""The load of the demonstration: a burst of one org beside smaller loads of five others."""

from __future__ import annotations

from dataclasses import dataclass

from fairlease.model import NewMessage

URGENT, LOW = "async_calls", "async_calls_low_priority"
BURST_ORG = "burst-academy"


@dataclass(frozen=True, slots=True)
class OrgLoad:
    """How many repositories of an org are asked for on each queue."""

    org: str
    urgent: int
    low: int


LOADS = (
    OrgLoad(BURST_ORG, urgent=190, low=0),
    OrgLoad("acme", urgent=10, low=4),
    OrgLoad("birch-college", urgent=8, low=6),
    OrgLoad("cobalt-labs", urgent=6, low=6),
    OrgLoad("delta-school", urgent=4, low=8),
    OrgLoad("elm-institute", urgent=2, low=10),
)

ORGS = tuple(load.org for load in LOADS)


def messages(queue: str, *, shrink: int = 1) -> list[NewMessage]:
    """The messages of one queue, the burst first; `shrink` divides every count."""
    return [
        _create_repo(load.org, f"{queue.replace('_', '-')}-{number:03d}")
        for load in LOADS
        for number in range(_count(load, queue) // shrink)
    ]


def _count(load: OrgLoad, queue: str) -> int:
    return load.urgent if queue == URGENT else load.low


def _create_repo(org: str, name: str) -> NewMessage:
    repository = f"{org}/{name}"
    args = {"org": org, "repository": repository, "private": True}
    # Sent again by mistake, the same repository is one message.
    return NewMessage({"method": "create_repo", "args": args}, org=org)
