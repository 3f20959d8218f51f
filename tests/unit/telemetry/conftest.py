from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
import sentry_sdk

from fairlease.clock import SystemClock
from fairlease.telemetry.sentry import Sentry, start_sentry
from unit.telemetry.ingest import Ingest, ingest

if TYPE_CHECKING:
    from collections.abc import Mapping

Start = Callable[..., Sentry]


@pytest.fixture
def received() -> Iterator[Ingest]:
    with ingest() as kept:
        yield kept


@pytest.fixture
def start(received: Ingest) -> Iterator[Start]:
    """`start(**variables)` gives the observer of an isolate that reports to `received`."""

    def started(environ: Mapping[str, str] | None = None) -> Sentry:
        sentry = start_sentry({"SENTRY_DSN": received.dsn, **(environ or {})}, SystemClock())
        assert sentry is not None
        return sentry

    with sentry_sdk.isolation_scope():
        yield started
        sentry_sdk.get_client().close(timeout=5)
        sentry_sdk.get_global_scope().set_client(None)
