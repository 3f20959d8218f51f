"""No secret of a setting is ever repeated: by a command, a log line, an error or a process list."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import typer.main

from fairlease.cli.main import app
from fairlease.errors import ConfigurationError
from fairlease.settings import Required
from fairlease.settings.database_url import is_database_url
from fairlease.telemetry.scrubbing import SCRUBBED, Scrubber
from fairlease.transports.postgres import PostgresRpc
from fairlease.transports.postgrest import PostgrestRpc
from stack.hosts import running_host
from stack.test_host_database import write_adder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cli import Cli

HUSH = "hushhush"
GATEWAY = {"SUPABASE_URL": "http://127.0.0.1:1"}
ALL = {
    **GATEWAY,
    "SUPABASE_SECRET_KEY": f"sb_secret_{HUSH}",
    "FAIRLEASE_DATABASE_URL": f"postgresql://u:{HUSH}@127.0.0.1:1/d",
    "EDGE_FUNCTION_SECRET": f"{HUSH},other{HUSH}",
    "SENTRY_DSN": f"https://{HUSH}@127.0.0.1:1/1",
    "GITHUB_TOKEN": f"ghp_{HUSH}{HUSH}",
}


def jwt(role: str) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"role": role}).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJIUzI1NiJ9.{claims}.{HUSH}"


# Whoever types one of these has made a mistake, which must not cost the password.
MALFORMED_URLS = [
    f"postgresql://u:{HUSH}%zz@127.0.0.1:1/d",
    f"postgresql://u:x@{HUSH}@127.0.0.1:1/d",
    f"postgresql://u:x/{HUSH}@127.0.0.1:1/d",
    f"postgresql://u:12/{HUSH}@127.0.0.1:1/d",
    f"postgresql://u@127.0.0.1:1/d?password={HUSH}%zz",
    f"host=127.0.0.1 port=1 password=my {HUSH}",
    f"host=127.0.0.1 port=1 password='{HUSH} d",
    f"mysql://u:{HUSH}@127.0.0.1:1/d",
    HUSH,
]
WELL_FORMED_URLS = [
    *("postgresql://", "postgres://h", "postgresql:///d?host=/tmp", "postgresql://%2Ftmp/d"),
    *("postgresql://u:p%40q%2F@h:5432/d?sslmode=require&application_name=a@b", "dbname=d"),
    *("postgresql://u:a#b?c[d:e@h/d", "postgresql://[::1]:5432/d", "postgresql://u:p@h:1,g:2,f/d"),
    *("host = h  port=1", "password= host=h", r"host=/tmp password='a \' b' dbname=d"),
]
MALFORMED = [
    *({"FAIRLEASE_DATABASE_URL": url} for url in MALFORMED_URLS),
    *(
        {**GATEWAY, "SUPABASE_SECRET_KEY": key}
        for key in (f"sb_secret_{HUSH}\nx", f"sb_secret_{HUSH}\x01", f"sb_secret_é{HUSH}", HUSH)
    ),
    *(
        {**GATEWAY, "SUPABASE_SERVICE_ROLE_KEY": key}
        for key in (f"{jwt('service_role')}\n{HUSH}", jwt("anon"), f"a.{HUSH}.b", HUSH)
    ),
    {"SUPABASE_URL": f"http://u:{HUSH}@127.0.0.1:1", "SUPABASE_SECRET_KEY": "sb_secret_x"},
    {"SENTRY_DSN": f"ftp://{HUSH}@h/1"},
]


@pytest.fixture(autouse=True)
def _no_variable_but_the_tests_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*ALL, "SUPABASE_SERVICE_ROLE_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("variables", MALFORMED, ids=str)
@pytest.mark.parametrize("command", [("send", "q", "{}"), ("doctor",), ("migrate",)], ids=" ".join)
def test_no_command_repeats_what_it_could_not_use(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    variables: dict[str, str],
    command: tuple[str, ...],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    answer = cli(*command, url=variables.get("FAIRLEASE_DATABASE_URL", ""))
    assert answer.returncode != 0
    assert HUSH not in answer.stdout + answer.stderr + caplog.text


def test_what_is_a_database_url_is_taken_and_what_is_not_is_not() -> None:
    assert [url for url in WELL_FORMED_URLS if not is_database_url(url)] == []
    assert [url for url in MALFORMED_URLS if is_database_url(url)] == []


@pytest.mark.parametrize("secret", [f"{HUSH}\nx", f"{HUSH}\x01", f"{HUSH}\udcff"])
def test_a_secret_that_no_header_carries_is_refused_at_the_start(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="EDGE_FUNCTION_SECRET has a line break") as said:
        Required({"EDGE_FUNCTION_SECRET": secret}).function_secrets()
    assert HUSH not in str(said.value)


@pytest.mark.parametrize(
    "url", [f"http://u:{HUSH}@127.0.0.1:1", f"http://{HUSH}@h", f"http://u:{HUSH}@[127.0.0.1:1"]
)
def test_a_poke_to_a_url_with_a_password_does_not_repeat_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("EDGE_FUNCTION_SECRET", "x")
    answer = cli("poke", "nap", "--url", url)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert HUSH not in answer.stderr


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group, with the words that call it."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


def test_help_and_settings_show_no_secret_of_the_environment(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ALL.items():
        monkeypatch.setenv(name, value)
    reading = [
        path
        for path, command in commands(typer.main.get_command(app))
        if any(parameter.envvar for parameter in command.params)
    ]
    assert len(reading) > 20
    # Each is made by the same code; the operators' groups have many alike.
    for path in reading[::4]:
        assert HUSH not in cli(*path, "--help", url=ALL["FAIRLEASE_DATABASE_URL"]).stdout
    for arguments in (("settings", "--json"), ("doctor", "--json")):
        answer = cli(*arguments, url=ALL["FAIRLEASE_DATABASE_URL"])
        assert answer.stdout
        assert HUSH not in answer.stdout + answer.stderr


def test_no_option_takes_a_secret_that_a_process_list_would_show() -> None:
    secret = re.compile(r"secret|token|password|dsn|api.?key")
    found = {
        (*path, option)
        for path, command in commands(typer.main.get_command(app))
        for parameter in command.params
        for option in parameter.opts
        if secret.search(option)
    }
    # Both are the names under which others keep it.
    assert found == {("cron", "sql", "--vault-secret"), ("cron", "k8s", "--secret")}


def test_what_holds_a_secret_does_not_show_it() -> None:
    given = Required(ALL)
    shown = [
        given.supabase(),
        given.function_secrets(),
        given.database_url(),
        given.sentry_dsn(),
        vars(given),
        PostgresRpc(ALL["FAIRLEASE_DATABASE_URL"]),
        PostgrestRpc(GATEWAY["SUPABASE_URL"], ALL["SUPABASE_SECRET_KEY"]),
        Scrubber.from_environ(ALL),
    ]
    for one in shown:
        assert HUSH not in repr(one) + str(one), type(one)


@pytest.mark.parametrize(
    "text",
    ["p%40ss-w%2Frd-of-mine", "p@ss-w/rd-of-mine"],
    ids=["as written", "as the database knows it"],
)
def test_a_password_is_cut_out_however_it_is_written(text: str) -> None:
    scrubber = Scrubber.from_environ(
        {"FAIRLEASE_DATABASE_URL": "postgresql://u:p%40ss-w%2Frd-of-mine@h/d"}
    )
    assert scrubber.text(f"refused: {text}!") == f"refused: {SCRUBBED}!"


@pytest.mark.slow
def test_a_stranger_learns_of_a_lost_database_only_that_it_is_lost(tmp_path: Path) -> None:
    url = f"postgresql://an-owner:{HUSH}@localhost:1/a-database"
    knobs = {"FAIRLEASE_MAX_CRASHES": f"{HUSH}-in-the-wrong-line"}
    with running_host(write_adder(tmp_path), FAIRLEASE_DATABASE_URL=url, **knobs) as host:
        answer = httpx.get(f"{host.url}/readyz", timeout=30)
    assert answer.status_code == 503
    [problem] = answer.json()["problems"]
    assert problem.startswith("the database does not answer (")
    for told in (HUSH, "an-owner", "localhost", "a-database", "refused"):
        assert told not in answer.text
