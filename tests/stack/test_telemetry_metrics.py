"""`/metrics` of a real host over a real database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlease.admin import queues
from stack.hosts import HostProcess, eventually, running_host
from stack.test_host_database import send, write_adder

if TYPE_CHECKING:
    from pathlib import Path


def metrics(host: HostProcess) -> dict[str, float]:
    """`name{label=value,...}` -> value."""
    page = httpx.get(f"{host.url}/metrics", timeout=20)
    assert page.status_code == 200
    return {
        f"{s.name}{{{','.join(f'{k}={v}' for k, v in sorted(s.labels.items()))}}}": s.value
        for family in text_string_to_metric_families(page.text)
        for s in family.samples
    }


def test_a_drained_queue_is_counted_and_a_waiting_one_is_read_from_the_database(
    database: str, tmp_path: Path
) -> None:
    queues.ensure(database, ["sums", "waiting"])
    for n in range(3):
        send(database, n, n)
    with psycopg.connect(database, autocommit=True) as session:
        session.execute("select pgmq.send('waiting', '{}'), pgmq.send('waiting', '{}', 600)")
    done = "fairlease_messages_total{method=add,org=acme,outcome=done,queue=sums}"
    with running_host(write_adder(tmp_path), FAIRLEASE_DATABASE_URL=database) as host:
        host.poke("adder")
        assert eventually(lambda: metrics(host).get(done) == 3)
        page = metrics(host)
    assert page["fairlease_queue_depth{queue=waiting,state=ready}"] == 1
    assert page["fairlease_queue_depth{queue=waiting,state=delayed}"] == 1
    assert page["fairlease_queue_oldest_age_seconds{queue=waiting}"] > 0
    assert page["fairlease_runs_total{function=adder}"] == 1
    assert page["fairlease_queueing_seconds_count{queue=sums}"] == 3
    assert page["fairlease_slots_cap{}"] > 0


@pytest.mark.slow
def test_without_its_database_a_host_still_answers_what_it_knows(tmp_path: Path) -> None:
    nowhere = "postgresql://postgres:hush@127.0.0.1:1/postgres"
    with running_host(write_adder(tmp_path), FAIRLEASE_DATABASE_URL=nowhere) as host:
        page = metrics(host)
    assert page["fairlease_runs_active{function=adder}"] == 0
    assert not any(name.startswith("fairlease_queue_depth") for name in page)
