"""`fairlease doctor` through the gateway that runs go through, with one thing wrong each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from fairlease.local.gateway import GatewayConfig, running_gateway

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli import Cli
    from fairlease.local.postgres import LocalPostgres

    Ask = Callable[..., tuple[dict[str, str], int]]

KEY = "sb_secret_doctor"


@pytest.fixture
def ask(cli: Cli, postgres: LocalPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """The finding about the gateway of this database, and the exit code."""
    (tmp_path / "adder").mkdir()
    (tmp_path / "adder" / "function.toml").write_text(
        'name = "adder"\nkind = "drain"\nqueues = ["sums"]\n'
    )

    def ask(
        database: str,
        key: str = KEY,
        schemas: tuple[str, ...] = ("public", "pgmq_public"),
        after_start: str = "select 1",
    ) -> tuple[dict[str, str], int]:
        config = GatewayConfig(
            database_url=postgres.url(urlsplit(database).path.lstrip("/"), "authenticator"),
            jwt_secret="a-secret-of-the-doctor-tests-of-32-bytes",
            db_schemas=schemas,
            db_channel="nobody_notifies",
            api_keys={KEY: "service_role", "sb_publishable_doctor": "anon"},
        )
        monkeypatch.setenv("EDGE_FUNCTION_SECRET", "s3cret")
        monkeypatch.setenv("SUPABASE_SECRET_KEY", key)
        with running_gateway(config) as url:
            with psycopg.connect(database, autocommit=True) as session:
                session.execute(after_start.encode())
            monkeypatch.setenv("SUPABASE_URL", url)
            answer = cli("doctor", "--json", "--functions", str(tmp_path), url=database)
        assert key not in answer.stdout
        checks = json.loads(answer.stdout)["checks"]
        (found,) = (check for check in checks if check["area"] in ("exposure", "transport"))
        return found, answer.returncode

    return ask


def test_what_is_exposed_and_open_is_in_order(ask: Ask, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as session:
        session.execute("select fairlease.attach_queue('sums')")

    found, code = ask(database)

    assert (found["state"], code) == ("ok", 0)
    assert "exposed" in found["says"]


def test_a_schema_that_is_not_exposed_is_told_where_to_expose_it(ask: Ask, database: str) -> None:
    found, code = ask(database, schemas=("public",))

    assert (found["state"], code) == ("problem", 1)
    assert "Exposed schemas" in found["remedy"]


@pytest.mark.parametrize("key", ["sb_secret_other", "sb_publishable_doctor"])
def test_a_key_that_is_wrong_or_may_nothing_is_named_and_not_shown(
    ask: Ask, database: str, key: str
) -> None:
    found, code = ask(database, key=key)

    assert (found["state"], code) == ("problem", 1)
    assert "SUPABASE_SECRET_KEY" in found["says"] + found.get("remedy", "")


def test_a_cache_from_before_the_migrations_is_told_to_be_reloaded(
    ask: Ask, pgmq_database: str
) -> None:
    found, code = ask(pgmq_database)

    assert (found["state"], code) == ("problem", 1)
    assert "fairlease migrate" in found["remedy"]
    assert "reload schema" in found["remedy"]


def test_a_function_that_went_behind_a_stale_cache_is_a_problem_too(
    ask: Ask, database: str
) -> None:
    found, code = ask(
        database, after_start="drop function pgmq_public.release_org_slot(text, text)"
    )

    assert (found["state"], code) == ("problem", 1)
