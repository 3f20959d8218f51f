"""Could a run work now? Asked by whoever routes traffic, so asked often and answered cheaply."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.errors import CallRefused, FunctionMissing, RpcError, Unauthorized

if TYPE_CHECKING:
    from fairlease.clock import Clock
    from fairlease.rpc import Rpc

log = logging.getLogger("fairlease.host")

_TIMEOUT_SECONDS = 2.0
_FRESH_SECONDS = 2.0
# A slot that nobody holds: to release it changes nothing and needs all that a run needs.
_HOLDER = "fairlease/readyz"


@dataclass(frozen=True, slots=True)
class Readiness:
    """`problems`: why no run could work. `notes`: what works, but not as it should."""

    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class DatabaseCheck:
    """Asks the database at most once in two seconds, whatever the number of askers."""

    rpc: Rpc
    queues: tuple[str, ...]
    clock: Clock
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _known: Readiness = field(default_factory=Readiness)
    _known_until: float = float("-inf")
    _told: str = ""

    async def readiness(self) -> Readiness:
        async with self._lock:
            if self.clock.monotonic() >= self._known_until:
                self._known = await self._ask()
                self._known_until = self.clock.monotonic() + _FRESH_SECONDS
            return self._known

    async def _ask(self) -> Readiness:
        notes: list[str] = []
        for queue in self.queues:
            try:
                await self.rpc.release_org_slot(queue, _HOLDER, timeout_seconds=_TIMEOUT_SECONDS)
            except CallRefused as refusal:
                notes.append(f"queue {queue}: {refusal}")
            except FunctionMissing:
                return Readiness(("the database has no claim functions; run `fairlease migrate`",))
            except Unauthorized as error:
                return self._failed("the database refuses our key", error)
            except RpcError as error:
                return self._failed("the database does not answer", error)
        return Readiness(notes=(*notes, *await self._missing()))

    def _failed(self, what: str, error: RpcError) -> Readiness:
        """Anybody may ask: the error, which names hosts and users, is for the log."""
        told = f"{what}: {error}"
        if told != self._told:
            log.warning("not ready: %s", told)
            self._told = told
        return Readiness((f"{what} ({error.code or 'no answer'}); the host's log says why",))

    async def _missing(self) -> list[str]:
        try:
            await self.rpc.heartbeat_org_slot(
                self.queues[0], _HOLDER, 1, 1, [], timeout_seconds=_TIMEOUT_SECONDS
            )
        except FunctionMissing:
            return ["the database is older than this worker; run `fairlease migrate`"]
        except RpcError:
            pass
        return []
