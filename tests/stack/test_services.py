from __future__ import annotations

import os
import threading

import pytest

from fairlease.errors import ConfigurationError
from fairlease.local.services import Service


def service(script: str, lines: list[str], ended: threading.Event | None = None) -> Service:
    on_exit = (lambda _name: ended.set()) if ended else (lambda _name: None)
    return Service("thing", ("-c", script), dict(os.environ), lines.append, on_exit)


SERVING = "import signal; print('hello'); print('READY http://x:1', flush=True); signal.pause()"


def test_ready_service_has_its_url_and_its_words_are_passed_on() -> None:
    lines: list[str] = []
    thing = service(SERVING, lines)
    thing.start()
    try:
        assert (thing.url, lines) == ("http://x:1", ["thing: hello"])
    finally:
        thing.stop()


def test_service_that_ends_instead_is_quoted() -> None:
    thing = service("import sys; print('a'); sys.exit('fairlease: port 1 is taken')", [])
    with pytest.raises(ConfigurationError, match=r"^the thing did not start: port 1 is taken$"):
        thing.start()


def test_service_that_never_is_ready_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlease.local.services._READY_SECONDS", 0.2)
    thing = service("import signal; signal.pause()", [])
    with pytest.raises(ConfigurationError, match="did not start within 0 s: it said nothing"):
        thing.start()
    assert thing.wait(0) is not None


def test_end_of_a_service_is_noticed_but_not_that_of_a_stopped_one() -> None:
    ended, stopped = threading.Event(), threading.Event()
    by_itself = service("print('READY http://x:1', flush=True)", [], ended)
    by_itself.start()
    assert ended.wait(10)
    asked = service(SERVING, [], stopped)
    asked.start()
    asked.ask_to_stop()
    assert asked.wait(10) is not None
    asked.stop()
    assert not stopped.is_set()
