"""Whoever has the anon key, or a user's token, can call nothing and read nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from psycopg import sql

from fairlease.local.gateway import GatewayConfig, running_gateway
from fairlease.local.gateway.tokens import sign
from security.rpc_calls import CALLS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlease.local.postgres import LocalPostgres

JWT_SECRET = "a-secret-of-the-security-tests-32-bytes"
VISITORS = ("nobody", "anon", "authenticated")


@dataclass(frozen=True)
class Api:
    """What a browser reaches of a project. `nobody` sends no token at all."""

    client: httpx.Client

    def ask(self, visitor: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = dict(more.pop("headers", {}))
        if visitor != "nobody":
            claims = {"role": visitor, "sub": "00000000-0000-0000-0000-000000000001"}
            headers["authorization"] = f"Bearer {sign(claims, JWT_SECRET)}"
        return self.client.request(method, path, headers=headers, **more)


@pytest.fixture(scope="module")
def attached(module_database: str) -> str:
    with psycopg.connect(module_database, autocommit=True) as owner:
        owner.execute("select fairlease.attach_queue('jobs', unique_keys => true)")
        owner.execute("select pgmq.send('jobs', '{\"secret\": \"of-the-queue\"}')")
        # As Supabase has it where queues are used from the browser.
        owner.execute("grant usage on schema pgmq_public to anon, authenticated")
    return module_database


@pytest.fixture(scope="module")
def api(postgres: LocalPostgres, attached: str) -> Iterator[Api]:
    """With the private schema exposed too, which nobody should do."""
    config = GatewayConfig(
        database_url=postgres.url(urlsplit(attached).path.lstrip("/"), "authenticator"),
        jwt_secret=JWT_SECRET,
        db_schemas=("public", "pgmq_public", "fairlease"),
        db_pool=2,
    )
    with running_gateway(config) as url, httpx.Client(base_url=url, timeout=10) as client:
        yield Api(client)


def names(url: str, query: str) -> list[str]:
    with psycopg.connect(url) as owner:
        return [row[0] for row in owner.execute(query).fetchall()]


def functions_of(url: str, schema: str) -> list[str]:
    return names(
        url,
        "select distinct proname::text from pg_proc where prokind = 'f' "
        f"and pronamespace = '{schema}'::regnamespace order by 1",
    )


def private_functions(url: str) -> dict[str, list[str]]:
    """Those that a gateway can call: each with the names of its arguments."""
    query = """
    select proname::text, coalesce(proargnames[:pronargs], '{}') from pg_proc
    where pronamespace = 'fairlease'::regnamespace and prorettype <> 'trigger'::regtype
      and pronargs = cardinality(coalesce(proargnames[:pronargs], '{}'))
    """
    with psycopg.connect(url) as owner:
        return dict(owner.execute(query).fetchall())


def tables(url: str) -> list[str]:
    return names(
        url,
        "select relname::text from pg_class where relkind in ('r', 'v') "
        "and relnamespace = 'fairlease'::regnamespace order by 1",
    )


def refused(answer: httpx.Response) -> bool:
    """By the database's grants, not by chance; without a word of what is in there."""
    assert "of-the-queue" not in answer.text
    return answer.status_code in (401, 403) and answer.json()["code"] == "42501"


def test_the_calls_are_all_functions_that_there_are(attached: str) -> None:
    assert functions_of(attached, "pgmq_public") == sorted(CALLS)


@pytest.mark.parametrize("visitor", VISITORS)
@pytest.mark.parametrize("function", CALLS)
def test_a_visitor_can_call_no_function_over_http(api: Api, visitor: str, function: str) -> None:
    answer = api.ask(
        visitor,
        "POST",
        f"/rpc/{function}",
        json=CALLS[function],
        headers={"content-profile": "pgmq_public"},
    )
    assert refused(answer), answer.text


@pytest.mark.parametrize("visitor", ["authenticated", "service_role"])
def test_nobody_can_call_a_private_function_even_where_the_schema_is_exposed(
    api: Api, attached: str, visitor: str
) -> None:
    found = private_functions(attached)
    assert len(found) > 100
    for function, arguments in found.items():
        answer = api.ask(
            visitor,
            "POST",
            f"/rpc/{function}",
            json=dict.fromkeys(arguments),
            headers={"content-profile": "fairlease"},
        )
        assert refused(answer), (function, answer.text)


@pytest.mark.parametrize("schema", ["fairlease", "pgmq"])
def test_a_schema_that_is_not_exposed_cannot_be_asked_for(
    postgres: LocalPostgres, attached: str, schema: str
) -> None:
    config = GatewayConfig(
        database_url=postgres.url(urlsplit(attached).path.lstrip("/"), "authenticator"),
        jwt_secret=JWT_SECRET,
        db_schemas=("public", "pgmq_public"),
        db_pool=1,
    )
    with running_gateway(config) as url, httpx.Client(base_url=url, timeout=10) as client:
        for visitor in (*VISITORS, "service_role"):
            answer = Api(client).ask(visitor, "GET", "/q_jobs", headers={"accept-profile": schema})
            assert answer.json()["code"] == "PGRST106", answer.text


@pytest.mark.parametrize(
    "token",
    [
        sign({"role": "service_role"}, "another-secret-of-32-bytes-or-more!!"),
        "eyJhbGciOiJub25lIn0.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.",
        sign({"role": "service_role", "exp": 1}, JWT_SECRET),
        sign({"role": "postgres"}, JWT_SECRET),
        sign({"role": "service_role; reset role"}, JWT_SECRET),
    ],
    ids=["forged", "of algorithm none", "expired", "of the owner", "injected"],
)
def test_a_token_that_is_no_token_of_the_service_opens_nothing(api: Api, token: str) -> None:
    headers = {"authorization": f"Bearer {token}", "content-profile": "pgmq_public"}
    answer = api.client.post("/rpc/queue_stats", json={}, headers=headers)
    assert answer.status_code in (400, 401, 403), answer.text


@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_a_visitor_in_plain_sql_can_call_and_read_nothing(attached: str, role: str) -> None:
    calls = [
        sql.SQL("select {}({})").format(sql.Identifier(schema, name), nulls)
        for schema, name, nulls in signatures(attached)
    ]
    reads = [sql.SQL("table {}").format(sql.Identifier("fairlease", t)) for t in tables(attached)]
    reads += [sql.SQL("table pgmq.q_jobs"), sql.SQL("table pgmq.a_jobs")]
    assert len(calls) > 100
    with psycopg.connect(attached, autocommit=True) as session:
        session.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        for statement in [*calls, *reads]:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(statement)


def signatures(url: str) -> list[tuple[str, str, sql.Composable]]:
    """Every function that can be called by name, with nulls of its arguments' types."""
    query = """
    select n.nspname::text, p.proname::text,
      array(select format_type(t, null) from unnest(p.proargtypes) t)
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('fairlease', 'pgmq_public') and p.prorettype <> 'trigger'::regtype
    """
    with psycopg.connect(url) as owner:
        found = owner.execute(query).fetchall()
    return [
        (schema, name, sql.SQL(", ").join(sql.SQL(f"null::{one}") for one in types))
        for schema, name, types in found
    ]
