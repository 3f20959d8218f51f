"""What a client of GitHub's documented contract may rely on."""

from __future__ import annotations

import itertools
import socket
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest
from githubkit_schemas.latest.models import BasicError, ValidationError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from fairlease.local.github.process import GitHubServer

_numbers = itertools.count(1)
TOKEN = {"authorization": "token local-token"}
REPOS = {f"r-{number:03}": {} for number in range(205)} | {"old": {"archived": True}}


@pytest.fixture
async def client(
    github: GitHubServer, trusting_nobody: ssl.SSLContext
) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=github.url, headers=TOKEN, verify=trusting_nobody
    ) as opened:
        yield opened


@pytest.fixture
def org(github: GitHubServer) -> str:
    login = f"contract-{next(_numbers)}"
    github.put_org(login, repos=REPOS, members={"ann": "member"}, teams={"staff": {}})
    return login


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/orgs/nobody", None, 404),
        ("GET", "/repos/{org}/none", None, 404),
        ("POST", "/orgs/nobody/repos", {"name": "x"}, 404),
        ("PATCH", "/repos/{org}/old", {"description": "x"}, 403),
        ("PUT", "/repos/{org}/old/collaborators/ann", {"permission": "pull"}, 403),
        ("PUT", "/orgs/{org}/teams/none/memberships/ann", {"role": "member"}, 404),
        ("GET", "/repos/{org}/r-001/branches/main/protection", None, 404),
        ("GET", "/no/such/path", None, 404),
    ],
)
async def test_refusals_have_githubs_basic_body(
    client: httpx.AsyncClient, org: str, method: str, path: str, body: Any, status: int
) -> None:
    answer = await client.request(method, path.format(org=org), json=body)

    assert answer.status_code == status
    error = BasicError.model_validate(answer.json())
    assert error.status == str(status)


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/orgs/{org}/repos", {"name": "R-001"}, "name"),
        ("POST", "/orgs/{org}/repos", {}, "name"),
        ("POST", "/orgs/{org}/teams", {"name": "STAFF"}, "name"),
        ("PUT", "/repos/{org}/r-001/collaborators/ann", {"permission": "god"}, "permission"),
        ("PUT", "/orgs/{org}/teams/staff/memberships/ann", {"role": "god"}, "role"),
    ],
)
async def test_validation_failures_name_the_field(
    client: httpx.AsyncClient, org: str, method: str, path: str, body: Any, field: str
) -> None:
    answer = await client.request(method, path.format(org=org), json=body)

    assert answer.status_code == 422
    error = ValidationError.model_validate(answer.json())
    assert [entry.field for entry in error.errors or []] == [field]


async def test_a_name_that_is_taken_is_said_in_githubs_words(
    client: httpx.AsyncClient, org: str
) -> None:
    answer = await client.post(f"/orgs/{org}/repos", json={"name": "r-001"})

    assert answer.json()["errors"][0]["message"] == "name already exists on this account"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "Requires authentication"),
        ({"authorization": "token wrong"}, "Bad credentials"),
        ({"authorization": "Basic local-token"}, "Requires authentication"),
    ],
)
async def test_credentials_are_asked_for(
    client: httpx.AsyncClient, org: str, headers: dict[str, str], message: str
) -> None:
    del client.headers["authorization"]

    answer = await client.get(f"/orgs/{org}", headers=headers)

    assert (answer.status_code, answer.json()["message"]) == (401, message)


async def test_listings_come_in_pages_that_link_to_one_another(
    client: httpx.AsyncClient, org: str
) -> None:
    url, sizes, names = f"/orgs/{org}/repos?per_page=100", [], set()
    while url:
        answer = await client.get(url)
        sizes.append(len(answer.json()))
        names |= {repo["name"] for repo in answer.json()}
        url = answer.links.get("next", {}).get("url", "")

    assert sizes == [100, 100, 6]
    assert names == set(REPOS)


@pytest.mark.parametrize(
    ("query", "size"),
    [("", 30), ("per_page=0", 30), ("per_page=999", 100), ("page=x", 30), ("page=99", 0)],
)
async def test_a_strange_page_is_answered_as_github_does(
    client: httpx.AsyncClient, org: str, query: str, size: int
) -> None:
    assert len((await client.get(f"/orgs/{org}/repos?{query}")).json()) == size


async def test_the_primary_limit_counts_down_and_says_when_it_resets(
    github: GitHubServer, client: httpx.AsyncClient
) -> None:
    github.put_org("primary", limits={"primary": 2, "window_seconds": 600})

    answers = [await client.get("/orgs/primary") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 403]
    assert [a.headers["x-ratelimit-remaining"] for a in answers] == ["1", "0", "0"]
    assert 590 < int(answers[2].headers["x-ratelimit-reset"]) - time.time() < 602
    assert "API rate limit exceeded" in answers[2].json()["message"]
    assert "retry-after" not in answers[2].headers


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    ("cap", "path"), [("requests_per_minute", ""), ("creates_per_minute", "/repos")]
)
async def test_the_secondary_limits_say_how_long_to_wait(
    github: GitHubServer, client: httpx.AsyncClient, status: int, cap: str, path: str
) -> None:
    limits = {cap: 2, "retry_after_seconds": 41, "status": status}
    github.put_org("secondary", limits=limits)

    answers = [
        await client.request(
            "POST" if path else "GET", f"/orgs/secondary{path}", json={"name": f"r{i}"}
        )
        for i in range(3)
    ]

    assert [answer.is_success for answer in answers] == [True, True, False]
    assert (answers[2].status_code, answers[2].headers["retry-after"]) == (status, "41")
    assert "secondary rate limit" in answers[2].json()["message"]
    assert "secondary-rate-limits" in answers[2].json()["documentation_url"]


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\xff"])
async def test_a_body_that_is_no_object_is_a_400(
    client: httpx.AsyncClient, org: str, body: bytes
) -> None:
    answer = await client.post(f"/orgs/{org}/repos", content=body)

    assert answer.status_code == 400


async def test_what_the_control_does_not_understand_is_refused(client: httpx.AsyncClient) -> None:
    for method, path, body in (
        ("PUT", "/_control/orgs", {"login": "x", "repo": {}}),
        ("POST", "/_control/faults", [{"kind": "explode"}]),
    ):
        assert (await client.request(method, path, json=body)).status_code == 400


@pytest.mark.parametrize("after", [False, True])
def test_a_reset_is_a_reset_of_tcp_and_of_no_other_connection(
    github: GitHubServer, org: str, after: bool
) -> None:
    github.add_faults({"kind": "reset", "org": org, "method": "POST", "after": after})
    address = urlsplit(github.url)
    body = b'{"name": "hw"}'
    head = (
        f"POST /orgs/{org}/repos HTTP/1.1\r\nhost: local\r\nauthorization: {TOKEN['authorization']}"
        f"\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with (
        socket.create_connection((address.hostname, address.port), 5) as other,
        socket.create_connection((address.hostname, address.port), 5) as broken,
    ):
        broken.sendall(head.encode() + body)
        with pytest.raises(ConnectionResetError):
            broken.recv(1)
        other.sendall(head.encode() + body.replace(b"hw", b"h2"))
        assert other.recv(12) == b"HTTP/1.1 201"
    assert {"h2", *(["hw"] if after else [])} == set(github.org(org)["repos"]) - set(REPOS)
