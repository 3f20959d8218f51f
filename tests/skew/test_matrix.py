"""Every worker against every database, over the gateway: what is there is drained, once, within
the caps, and what had to be done without is said in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skew.cell import FLEET, WORKERS, Cell, check_said_once, degrades
from skew.levels import LEVELS
from skew.schemas import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from skew.api import Api

    Serve = Callable[[], AbstractContextManager[Api]]
    Lines = list[dict[str, Any]]

#: Those of every run of the tests; all others are slow.
QUICK = {("this", "no_pin"), ("no_heartbeat", LEVELS[-1]), ("older", LEVELS[-1])}
CELLS = [
    pytest.param(kind, name, marks=[] if (kind, name) in QUICK else pytest.mark.slow)
    for name in SCHEMAS
    for kind in WORKERS
]
QUICK_STALE = {("this", "newest_after_seven_arguments")}
STALE_CELLS = [
    pytest.param(kind, name, marks=[] if (kind, name) in QUICK_STALE else pytest.mark.slow)
    for name in SCHEMAS
    for kind in WORKERS
]


@pytest.mark.parametrize(("kind", "name"), CELLS)
async def test_each_worker_drains_each_database(
    kind: str, name: str, pgmq_database: str, watching_url: str, serve: Serve, log_lines: Lines
) -> None:
    schema = SCHEMAS[name]
    schema.begin(pgmq_database)
    schema.finish(pgmq_database)
    cell = Cell.filled(schema, watching_url)
    with serve() as api:
        await cell.drain([kind] * FLEET, api)
    cell.check_all_done()
    cell.check_it_worked_at_once()
    check_said_once(log_lines, degrades(kind, schema.lacks))


@pytest.mark.parametrize(("kind", "name"), STALE_CELLS)
async def test_each_worker_survives_a_cache_from_before_the_deploy(
    kind: str, name: str, pgmq_database: str, watching_url: str, serve: Serve, log_lines: Lines
) -> None:
    schema = SCHEMAS[name]
    schema.begin(pgmq_database)
    with serve() as api:
        schema.finish(pgmq_database)
        cell = Cell.filled(schema, watching_url)
        if schema.version == LEVELS[0]:
            # The gateway knows no claim at all: nothing can be done, and nothing may be touched.
            await _is_refused(kind, cell, api)
            log_lines.clear()
            api.reload()
        await cell.drain([kind] * FLEET, api)
    cell.check_all_done()
    check_said_once(log_lines, degrades(kind, schema.lacked_by_cache()))


@pytest.mark.slow
async def test_versions_of_every_kind_share_the_caps(
    pgmq_database: str, watching_url: str, serve: Serve
) -> None:
    schema = SCHEMAS[LEVELS[-1]]
    schema.begin(pgmq_database)
    schema.finish(pgmq_database)
    cell = Cell.filled(schema, watching_url)
    with serve() as api:
        await cell.drain(list(WORKERS), api)
    cell.check_all_done()
    cell.check_it_worked_at_once()


async def _is_refused(kind: str, cell: Cell, api: Api) -> None:
    if kind == "older":
        return
    assert set(await cell.drain([kind] * FLEET, api, pokes=1)) == {"refused"}
    assert not cell.work.begun
    assert cell.left() == cell.sent
