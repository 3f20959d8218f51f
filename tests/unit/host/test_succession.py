from __future__ import annotations

import signal
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from granian.constants import Interfaces

from fairlease.host.succession import AttentiveEvent, Succession, pause_before

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Worker:
    """Stopped while it starts, and started once the host stops: what a signal makes possible."""

    server: Succession
    listener: socket.socket
    had_socket: bool = False
    interrupt_by_parent: bool = False

    def start(self) -> None:
        stopping = threading.Thread(target=self.server._insist_on_stop, daemon=True)
        stopping.start()
        assert self.server._stopping.wait(10)
        stopping.join(0.1)
        self.had_socket = self.listener.fileno() >= 0

    def terminate(self) -> None: ...


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_isolates_that_die_one_after_the_other_are_replaced_ever_more_slowly() -> None:
    assert [pause_before(deaths) for deaths in range(1, 9)] == [0, 1, 2, 4, 8, 16, 30, 30]


def test_a_stop_takes_the_socket_from_no_isolate_that_starts_and_none_starts_after_it(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Succession(
        "fairlease", listener=listener, on_ready=lambda: None, interface=Interfaces.ASGI
    )
    server._init_shared_socket()
    made: list[Worker] = []

    def make(*_arguments: Any) -> Worker:
        made.append(Worker(server, listener))
        return made[-1]

    monkeypatch.setattr(server, "_spawn_worker", make)
    assert server._started(None, None) is made[0]
    assert made[0].had_socket
    assert server._started(None, None) is None
    assert len(made) == 1


def test_a_signal_that_another_thread_gets_is_heard_while_the_main_thread_waits() -> None:
    heard = AttentiveEvent()
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.set())
    other = threading.Timer(
        0.05, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
    )
    try:
        other.start()
        assert heard.wait()
    finally:
        signal.signal(signal.SIGUSR1, before)
