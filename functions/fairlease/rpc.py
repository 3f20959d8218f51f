"""The port to the database: one method per function in `pgmq_public`, in the order of its life.

Every call has a total deadline, `timeout_seconds`; on expiry it raises `TransientError` with
`took_effect=None`, and the adapter replaces the connection that the call was on. What a call
raises otherwise is the `RpcError` branch of `fairlease.errors`, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlease.model import (
        ClaimAnswer,
        ClaimRequest,
        Delivery,
        Heartbeat,
        NewMessage,
        Outcome,
        QueueStats,
        Sent,
    )


class Rpc(Protocol):
    """What the engine and the senders need of a database."""

    async def claim_org_slot_and_read(
        self, request: ClaimRequest, *, timeout_seconds: float
    ) -> ClaimAnswer:
        """Take or keep a slot and read. Not repeatable: an unknown outcome stays unknown."""
        ...

    async def settle_and_claim(
        self, request: ClaimRequest, outcomes: Sequence[Outcome], *, timeout_seconds: float
    ) -> ClaimAnswer:
        """Settle `outcomes` of the request's queue, then claim. With `n = 0`, repeatable."""
        ...

    async def heartbeat_org_slot(
        self,
        queue: str,
        holder: str,
        lease_ttl_seconds: int,
        sleep_seconds: int,
        deliveries: Sequence[Delivery],
        *,
        timeout_seconds: float,
    ) -> Heartbeat:
        """Renew the slot and extend the deliveries by `sleep_seconds` from now. Repeatable."""
        ...

    async def renew_org_slot(
        self, queue: str, holder: str, lease_ttl_seconds: int, *, timeout_seconds: float
    ) -> bool:
        """Renew the slot alone; False: not ours any more. Repeatable."""
        ...

    async def release_org_slot(self, queue: str, holder: str, *, timeout_seconds: float) -> bool:
        """Give the slot back. Repeatable, since a holder name is never used twice."""
        ...

    async def send_messages(
        self,
        queue: str,
        messages: Sequence[NewMessage],
        delay_seconds: int = 0,
        *,
        timeout_seconds: float,
    ) -> Sent:
        """Send all in one round trip. Repeatable only if every message has a key."""
        ...

    async def send_batch(
        self, queue: str, bodies: Sequence[Any], delay_seconds: int = 0, *, timeout_seconds: float
    ) -> list[int]:
        """The one of pgmq itself, at most 100 at a time, for a database without `send_messages`."""
        ...

    async def once(self, queue: str, key: str, token: str, *, timeout_seconds: float) -> bool:
        """Whether the effect named `key` is the caller's to do. With the same token, repeatable."""
        ...

    async def archive(self, queue: str, msg_id: int, *, timeout_seconds: float) -> bool:
        """Unfenced success, for a database without `settle_and_claim`."""
        ...

    async def aclose(self) -> None: ...


class Upkeep(Protocol):
    """What monitors and maintenance need: numbers, and what a queue's own policy removes."""

    async def queue_stats(self, *, timeout_seconds: float) -> tuple[QueueStats, ...]:
        """Every attached queue. Repeatable."""
        ...

    async def maintain_queues(
        self, step_limit: int, *, timeout_seconds: float
    ) -> Mapping[str, int]:
        """One bounded round: rows removed by step, as `jobs: archive`. Repeatable.

        Where a step removed `step_limit` there is more to do.
        """
        ...

    async def aclose(self) -> None: ...


class Database(Rpc, Upkeep, Protocol):
    """A connection that can do both."""
