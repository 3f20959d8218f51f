"""Give the slot back, wherever a claim may have left one; then the name is never used again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.errors import RpcError, TransientError
from fairlease.events import ReleaseFailed

if TYPE_CHECKING:
    from fairlease.drain.lease import Lease
    from fairlease.drain.setup import RunSetup

# A slot that is not released lapses by itself within a TTL: two repeats are worth their time.
TRIES = 3
PAUSE_SECONDS = 0.2


@dataclass(slots=True)
class Releasing:
    """Called only with nothing in flight: a freed slot lets another holder start."""

    setup: RunSetup
    lease: Lease

    async def release(self) -> None:
        holder = self.lease.holder
        queues = sorted(self.lease.maybe_held)
        if not queues:
            return
        # First: a renewal that finds the slot released must not be taken for a lost lease.
        self.lease.next_holder()
        for queue in queues:
            await self._release(queue, holder)

    async def _release(self, queue: str, holder: str) -> None:
        for left in reversed(range(TRIES)):
            try:
                await self.setup.rpc.release_org_slot(
                    queue, holder, timeout_seconds=self.setup.call_seconds()
                )
            except RpcError as error:
                if left and isinstance(error, TransientError):
                    await self.setup.clock.sleep(PAUSE_SECONDS)
                    continue
                self.setup.observe(ReleaseFailed(self.setup.run_id, queue, holder, str(error)))
            return
