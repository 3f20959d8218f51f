from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlease.errors import ConfigurationError
from fairlease.host.manifest import Kind, read_manifest

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
name = "worker_a"
kind = "drain"
schedule = "* * * * *"
pokes = 2
queues = ["async_calls", "async_calls_low_priority"]
[knobs]
drain_concurrency = 4
"""


def write(root: Path, toml: str, folder: str = "worker_a") -> Path:
    path = root / folder / "function.toml"
    path.parent.mkdir()
    path.write_text(toml)
    return path


def test_a_manifest_is_read_whole(tmp_path: Path) -> None:
    manifest = read_manifest(write(tmp_path, GOOD))
    assert (manifest.name, manifest.kind, manifest.pokes) == ("worker_a", Kind.DRAIN, 2)
    assert manifest.queues == ("async_calls", "async_calls_low_priority")
    assert manifest.knobs == {"drain_concurrency": 4}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("pokes = 2", "poke = 2"), "'poke'; did you mean 'pokes'"),
        (("drain_concurrency", "drain_concurency"), "did you mean 'drain_concurrency'"),
        (("drain_concurrency", "isolate_lifetime_ms"), "isolate_lifetime_ms"),
        (("drain_concurrency", "DRAIN_CONCURRENCY"), "DRAIN_CONCURRENCY"),
        (('kind = "drain"', 'kind = "cron"'), "kind"),
        (('kind = "drain"', ""), "kind is missing"),
        (('kind = "drain"', 'kind = "task"'), "a task has no queues"),
        (("pokes = 2", "pokes = 0"), "pokes"),
        (("pokes = 2", "pokes = true"), "pokes"),
        (('name = "worker_a"', 'name = "worker_b"'), "make them equal"),
        (('name = "worker_a"', "name = 7"), "name"),
        (('"async_calls_low_priority"', '"async_calls"'), "listed twice"),
        (('"async_calls", ', '"ASYNC_CALLS_low_priority", '), "listed twice"),
        (('"async_calls", ', '"a--b", '), "a queue name has"),
        (('"async_calls", ', '"é", '), "a queue name has"),
        (('"async_calls", ', '"x\'; drop table q; --", '), "a queue name has"),
        (('"async_calls", ', f'"{"q" * 48}", '), "a queue name has"),
        (('"async_calls", ', '"", '), "a queue name has"),
        (("pokes = 2", "pokes = = 2"), "no TOML"),
    ],
)
def test_a_mistake_is_one_line_with_file_place_and_remedy(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    path = write(tmp_path, GOOD.replace(*change))
    with pytest.raises(ConfigurationError) as caught:
        read_manifest(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert said in message
    assert "\n" not in message


def test_the_queue_names_that_the_database_takes_are_taken(tmp_path: Path) -> None:
    names = ["a", "A_1", "image-worker-queue", "9", "q" * 47]
    toml = GOOD.replace('["async_calls", "async_calls_low_priority"]', str(names))
    assert list(read_manifest(write(tmp_path, toml)).queues) == names


def test_a_drain_without_queues_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, 'name = "worker_a"\nkind = "drain"')
    with pytest.raises(ConfigurationError, match="a drain needs queues"):
        read_manifest(path)


@pytest.mark.parametrize(
    "schedule",
    ["*/5 * * * *", "0 3 * * mon-fri", "1,2,3 0-5 1 JAN *", "@hourly", "0  3 *   * *"],
)
def test_schedules_that_cron_and_kubernetes_read_are_taken(tmp_path: Path, schedule: str) -> None:
    manifest = read_manifest(write(tmp_path, GOOD.replace("* * * * *", schedule)))
    assert manifest.schedule.split() == schedule.split()


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "* * * *",
        "* * * * * *",
        "61 * * * *",
        "10 seconds",
        "@every 5m",
        "@reboot",
        "0 0 31 2 *",
        "0 0 L * *",
        "H * * * *",
        "*/0 * * * *",
        "* * * * *; drop table x",
    ],
)
def test_schedules_that_one_of_them_cannot_read_or_that_never_come_are_refused(
    tmp_path: Path, schedule: str
) -> None:
    path = write(tmp_path, GOOD.replace("* * * * *", schedule))
    with pytest.raises(ConfigurationError, match="schedule"):
        read_manifest(path)


@pytest.mark.parametrize("name", ["a-b", "A", "1a", "a.b", "_a", "a" * 49])
def test_names_that_do_not_fit_a_url_and_a_module_are_refused(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, GOOD.replace("worker_a", name), folder=name)
    with pytest.raises(ConfigurationError, match="name"):
        read_manifest(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="no TOML"):
        read_manifest(path)
