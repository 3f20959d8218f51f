"""Hosts behind one name, as in Kubernetes: who is not ready, or is to stop, gets no poke."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from stack.hosts import PATIENCE_SECONDS, HostProcess, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

# Between the end of an endpoint and the signal, as a preStop hook.
PRE_STOP_SECONDS = 1.0


@dataclass
class Service:
    """Pokes go round robin to those that are ready and not to be stopped."""

    pokes_every_seconds: float = 0.05
    answers: list[int] = field(default_factory=list)
    _ready: tuple[HostProcess, ...] = ()
    _turn: Iterator[int] = field(default_factory=itertools.count)
    _over: threading.Event = field(default_factory=threading.Event)

    def add(self, host: HostProcess) -> None:
        """Once it says that it is ready."""
        assert eventually(lambda: httpx.get(f"{host.url}/readyz").status_code == 200)
        self._ready = (*self._ready, host)

    def restart(self, old: HostProcess, new: HostProcess) -> int:
        """As a rolling update: first the new one; returns the exit code of the old one."""
        self.add(new)
        self._ready = tuple(host for host in self._ready if host is not old)
        time.sleep(PRE_STOP_SECONDS)
        old.process.terminate()
        return old.process.wait(PATIENCE_SECONDS)

    @contextlib.contextmanager
    def poked(self, name: str, threads: int) -> Iterator[None]:
        """All the while: `answers` has every status, 0 for a poke that got none."""
        poking = [threading.Thread(target=self._poke, args=(name,)) for _ in range(threads)]
        for thread in poking:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in poking:
                thread.join(PATIENCE_SECONDS)

    def _poke(self, name: str) -> None:
        while not self._over.wait(self.pokes_every_seconds):
            ready = self._ready
            host = ready[next(self._turn) % len(ready)]
            try:
                self.answers.append(host.poke(name).status_code)
            except httpx.TransportError:
                self.answers.append(0)
