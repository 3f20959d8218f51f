"""`fairlease cron` as a person meets it; what its SQL does is asked of a real pg_cron elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from unit.cron.folders import write

if TYPE_CHECKING:
    from pathlib import Path

    from cli import Cli


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "invites", schedule="*/5 * * * *", pokes=3)
    write(tmp_path, "reports", schedule="@daily")
    return tmp_path


def test_the_schedule_of_function_toml_is_what_both_print(cli: Cli, folder: Path) -> None:
    sql = cli("cron", "sql", "--url", "https://x.co", "--functions", folder, "--json")
    k8s = cli("cron", "k8s", "--functions", folder, "--json")
    jobs = json.loads(sql.stdout)["jobs"]
    entries = json.loads(k8s.stdout)["cron"]["functions"]
    expected = [("invites", "*/5 * * * *", 3), ("reports", "@daily", 1)]
    assert [(j["function"], j["schedule"], j["pokes"]) for j in jobs] == expected
    assert [(e["name"], e["schedule"], e["pokes"]) for e in entries] == expected


def test_the_json_has_the_sql_and_the_command_of_each_job(cli: Cli, folder: Path) -> None:
    arguments = ("cron", "sql", "--url", "https://x.co", "--functions", folder)
    text = cli(*arguments).stdout
    told = json.loads(cli(*arguments, "--json").stdout)
    assert told["sql"] == text
    assert [job["name"] for job in told["jobs"]] == ["fairlease/invites", "fairlease/reports"]
    for job in told["jobs"]:
        assert job["command"] in text


def test_the_values_are_yaml_and_say_the_same_as_the_json(cli: Cli, folder: Path) -> None:
    arguments = ("cron", "k8s", "--functions", folder)
    assert yaml.safe_load(cli(*arguments).stdout) == json.loads(cli(*arguments, "--json").stdout)


def test_no_secret_of_the_environment_is_printed(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_FUNCTION_SECRET", "hush-hush")
    for arguments in (("sql", "--url", "https://x.co"), ("k8s",), ("k8s", "--image", "x")):
        answer = cli("cron", *arguments, "--functions", folder)
        assert answer.returncode == 0
        assert "hush" not in answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sql",), "give --url"),
        (("sql", "--url", "x.co"), "is no URL"),
        (("sql", "--url", "https://x.co", "--label", "a/b"), "--label 'a/b'"),
        (("sql", "--url", "https://x.co", "--label", "a' or true --"), "--label"),
        (("sql", "--url", "https://x.co", "--vault-secret", ""), "--vault-secret is empty"),
        (("sql", "--url", "https://x.co", "--functions", "/nowhere"), "no folder of functions"),
        (("k8s", "--image", "x", "--name", "Not-A-Name"), "--name 'Not-A-Name'"),
        (("k8s", "--functions", "/nowhere"), "no folder of functions"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    cli: Cli, arguments: tuple[str, ...], said: str
) -> None:
    answer = cli("cron", *arguments)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert said in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["sql", "k8s"])
def test_the_help_has_an_example(cli: Cli, command: str) -> None:
    assert f"Example: fairlease cron {command}" in cli("cron", command, "--help").stdout
