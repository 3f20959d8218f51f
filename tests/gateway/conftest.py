from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlease.local.gateway import running_gateway
from fairlease.local.postgres import LocalPostgres
from gateway.base_state import SETTINGS, BaseState, recorded_config
from gateway.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def base_state() -> Iterator[BaseState]:
    """A server of its own: some cases change roles."""
    with LocalPostgres(settings=SETTINGS) as server:
        base = BaseState(server)
        base.reset()
        yield base
        base.close()


@pytest.fixture(scope="session")
def runner(base_state: BaseState) -> Iterator[Runner]:
    """Plays recorded cases against one gateway, configured as the recording was."""
    with running_gateway(recorded_config(base_state)) as url:
        playing = Runner(base_state, url)
        yield playing
        playing.close()
