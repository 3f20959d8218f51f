"""A poke that is through only when its isolate is to stop, passed on to the one that follows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

    from fairlease.clock import Clock

# Says that a poke comes from another isolate of this host: one that stops as well refuses it.
HEADER = "x-fairlease-passed-on"
# The socket is the host's: this isolate may take a connection or two of its own before it accepts
# no more, and a host that stops has nobody who answers.
PATIENCE_SECONDS = 2.0
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Successor:
    """Whoever accepts the connections of this host by now; `url` is its own."""

    url: str
    clock: Clock

    async def poke(self, path: str, secret: dict[bytes, bytes]) -> httpx.Response | None:
        """Its answer; None where nobody follows. `secret` is the header that opened this host."""
        import httpx  # noqa: PLC0415 - needed by few isolates, at their very end

        headers = {**secret, HEADER.encode(): b"1"}
        end = self.clock.monotonic() + PATIENCE_SECONDS
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:  # noqa: S501 - plain HTTP
            while (left := end - self.clock.monotonic()) > 0:
                try:
                    answer = await client.post(f"{self.url}{path}", headers=headers, timeout=left)
                except httpx.HTTPError:
                    return None
                if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    return answer
                await self.clock.sleep(_PAUSE_SECONDS)
        return None
