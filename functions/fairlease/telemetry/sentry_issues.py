"""Starts the SDK, and makes issues: grouped by what went wrong, so many in a minute."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sentry_sdk
from sentry_sdk.utils import event_from_exception

from fairlease.settings import Required
from fairlease.telemetry.scrubbing import Scrubber

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlease.clock import Clock

FLUSH_SECONDS = 2.0
# Of one group in a minute: to build an event costs milliseconds, and a failing queue has many.
MOST_PER_MINUTE = 100
_MINUTE_SECONDS = 60.0


def start_sdk(environ: Mapping[str, str]) -> bool:
    """False without `SENTRY_DSN`. Raises `ConfigurationError` for one that is none."""
    dsn = Required(environ).sentry_dsn()
    if dsn is None:
        return False
    scrubber = Scrubber.from_environ(environ)
    sentry_sdk.init(
        dsn=dsn.get_secret_value(),
        # Nothing is patched: what is reported is what the engine says, and what handlers send.
        default_integrations=False,
        auto_enabling_integrations=False,
        include_local_variables=scrubber.payloads,
        max_request_body_size="never",
        auto_session_tracking=False,
        enable_backpressure_handling=False,
        max_breadcrumbs=30,
        transport_queue_size=1000,
        shutdown_timeout=FLUSH_SECONDS,
        before_send=scrubber.before_send,
    )
    return True


@dataclass(slots=True)
class Issues:
    """What it makes has the tags of the ambient isolation scope. A thread of the SDK sends it."""

    clock: Clock
    _made: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _minute_began: float = float("-inf")

    def exception(
        self, error: BaseException, group: tuple[str, ...], tags: Mapping[str, str]
    ) -> None:
        """`group` is the fingerprint: what has the same is one issue."""
        if not self._allows(group):
            return
        event, hint = event_from_exception(
            error,
            client_options=sentry_sdk.get_client().options,
            mechanism={"type": "fairlease", "handled": True},
        )
        self._capture({**event, "level": "error"}, group, tags, hint)

    def message(
        self,
        text: str,
        level: str,
        group: tuple[str, ...],
        tags: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if self._allows(group):
            event = {"message": text, "level": level, "extra": dict(extra or {})}
            self._capture(event, group, tags or {}, None)

    async def aclose(self) -> None:
        """Send what waits, for two seconds at most."""
        await asyncio.to_thread(sentry_sdk.get_client().close, timeout=FLUSH_SECONDS)

    def _capture(
        self, event: dict[str, Any], group: tuple[str, ...], tags: Mapping[str, str], hint: Any
    ) -> None:
        event |= {"fingerprint": ["fairlease", *group], "tags": dict(tags)}
        sentry_sdk.capture_event(event, hint)  # type: ignore[arg-type]

    def _allows(self, group: tuple[str, ...]) -> bool:
        now = self.clock.monotonic()
        if now - self._minute_began >= _MINUTE_SECONDS:
            self._minute_began = now
            self._made.clear()
        self._made[group] += 1
        return self._made[group] <= MOST_PER_MINUTE
