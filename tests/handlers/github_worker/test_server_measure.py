"""The server's own count, which the demo and the tests hold the allocator against."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from fairlease.local.github.process import GitHubServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def stretched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubServer]:
    """Creates take 0.05, 0.3 or 0.6 s, chosen by the number in the name."""
    file: Path = tmp_path_factory.mktemp("stretched") / "durations.json"
    file.write_text(json.dumps([5, 30, 60]))
    with GitHubServer("--durations", str(file), "--scale", "0.01") as server:
        yield server


@pytest.fixture
async def client(
    stretched: GitHubServer, trusting_nobody: ssl.SSLContext
) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": "Bearer local-token"}
    async with httpx.AsyncClient(
        base_url=stretched.url, headers=headers, verify=trusting_nobody
    ) as opened:
        yield opened


@pytest.fixture
def org(stretched: GitHubServer) -> str:
    login = f"lane-{next(_numbers)}"
    stretched.put_org(login)
    return login


async def create(
    client: httpx.AsyncClient, called: str, name: str, **headers: Any
) -> httpx.Response:
    named = {f"x-fairlease-{key}": str(value) for key, value in headers.items()}
    await client.post(f"/orgs/{called}/repos", json={"name": name}, headers=named)


def measured(server: GitHubServer, org: str) -> dict[str, Any]:
    return server.measure()["orgs"][org]


def area(series: list[list[float]]) -> float:
    return sum(
        (after - before) * count for (before, count), (after, _) in itertools.pairwise(series)
    )


async def test_messages_in_flight_are_counted_as_they_come_and_go(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    await asyncio.gather(*(create(client, org, f"hw-{i}", message=i) for i in (1, 2, 4)))
    await create(client, org, "hw-3", message=3)

    found = measured(stretched, org)
    counts = [count for _, count in found["series"]]
    assert found["max_in_flight"] == found["max_concurrent_requests"] == 3
    assert counts == [1, 2, 3, 2, 1, 0, 1, 0]
    assert found["in_flight"] == found["open_requests"] == 0


async def test_the_area_under_the_series_is_the_time_that_the_creates_took(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    await asyncio.gather(*(create(client, org, f"hw-{i}", message=i) for i in (0, 1, 3)))

    assert 0.39 < area(measured(stretched, org)["series"]) < 0.7


async def test_the_number_in_the_name_chooses_the_duration_whoever_comes_first(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    await asyncio.gather(*(create(client, org, f"hw-{i:03}", message=i) for i in (2, 5)))

    assert area(measured(stretched, org)["series"]) > 1.19


async def test_a_message_with_two_requests_at_once_is_in_flight_once(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    await asyncio.gather(*(create(client, org, f"hw-{i}", message=7) for i in (1, 4)))

    found = measured(stretched, org)
    assert (found["max_in_flight"], found["max_concurrent_requests"]) == (1, 2)
    assert found["messages_duplicated"] == ["7"]


async def test_the_same_number_on_another_queue_is_another_message(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    for queue in ("urgent", "later"):
        await create(client, org, f"hw-{queue}", message=1, queue=queue)

    found = measured(stretched, org)
    assert found["messages_done"] == ["urgent/1", "later/1"]
    assert found["messages_duplicated"] == []


async def test_organizations_are_counted_apart(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    stretched.put_org(f"{org}-b")
    await asyncio.gather(*(create(client, o, "hw", message=1) for o in (org, f"{org}-b")))

    assert measured(stretched, org)["max_in_flight"] == 1
    assert measured(stretched, f"{org}-b")["max_in_flight"] == 1


async def test_a_call_on_a_slot_of_another_org_is_seen(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    stretched.measure(reset=True)
    await create(client, org, "hw-1", message=1, org=org.upper())
    assert stretched.measure()["mismatches"] == 0

    await create(client, org, "hw-2", message=2, org="somebody-else")

    found = stretched.measure()
    assert found["mismatches"] == 1
    assert found["mismatched_calls"] == [
        {
            "called": org,
            "charged": "somebody-else",
            "message": "2",
            "path": f"/orgs/{org}/repos",
        }
    ]


async def test_a_caller_that_vanishes_is_no_longer_in_flight(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    stretched.add_faults({"kind": "slow", "org": org, "seconds": 30})

    with pytest.raises(httpx.ReadTimeout):
        await client.get(f"/orgs/{org}", timeout=0.1)
    while measured(stretched, org)["in_flight"]:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.01)

    assert measured(stretched, org)["abandoned"] == 1


async def test_a_reset_answers_the_last_measure_and_begins_anew(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    await create(client, org, "hw", message=1)

    last = stretched.measure(reset=True)

    assert last["orgs"][org]["repos_created"] == 1
    assert stretched.measure()["orgs"] == {}


async def test_the_rate_is_counted_in_any_second(
    stretched: GitHubServer, client: httpx.AsyncClient, org: str
) -> None:
    for _ in range(7):
        await client.get(f"/orgs/{org}")

    assert measured(stretched, org)["max_requests_per_second"] == 7
