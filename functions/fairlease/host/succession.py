"""The main process's part: one isolate follows another, also when it dies, until the host stops."""

from __future__ import annotations

import logging
import queue
import signal
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from granian import net
from granian.server.mp import MPServer

from fairlease.clock import Clock, SystemClock
from fairlease.host.arrival import Arrival, load_and_tell
from fairlease.host.listener import BACKLOG

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from granian.server.mp import WorkerProcess

log = logging.getLogger("fairlease.host")

# The package re-exports it without saying so.
_holder: Any = vars(net)["SocketHolder"]

_INSIST_SECONDS = 1.0
_LOOK_SECONDS = 0.1
# An isolate is told to stop after this, whether or not its successor has come by then.
_SUCCESSOR_PATIENCE_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 30.0
# An isolate that lived this long did not die of what killed those before it.
_SOUND_SECONDS = 60.0
# So many in a row that never came to serve: whoever supervises the host shall know.
_FALSE_STARTS = 5


def pause_before(deaths: int) -> float:
    """Seconds before the isolate that follows so many quick deaths: 0, 1, 2, 4, ... 30."""
    return 0.0 if deaths < 2 else min(_LONGEST_PAUSE_SECONDS, 2.0 ** (deaths - 2))  # noqa: PLR2004


class AttentiveEvent(threading.Event):
    """For a main thread that has signals to hear: its wait returns to Python again and again.

    A signal that comes just before the wait, or to another thread, ends no wait, and its handler
    would run only after whatever does.
    """

    def wait(self, timeout: float | None = None) -> bool:
        if timeout is not None:
            return super().wait(timeout)
        while not super().wait(_INSIST_SECONDS):
            pass
        return True


class Succession(MPServer):
    """Granian's main process, with five differences.

    The socket is this process's, for all isolates: who connects between two of them waits instead
    of being refused. A predecessor is waited for in a thread: its successor may die meanwhile and
    need one itself. Isolates that die one after the other are replaced ever more slowly, and the
    host ends, with 1, only if several in a row never came to serve. And a stop reaches the isolates
    at once: Granian's handlers take a lock that they may have interrupted, or that a second signal
    then waits for; and it is heard whenever it comes.
    """

    def __init__(
        self, *args: Any, listener: socket.socket, on_ready: Callable[[], None], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.main_loop_interrupt = AttentiveEvent()
        self._on_ready = on_ready
        self._listener = listener
        self._clock: Clock = SystemClock()
        self._told: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        # An isolate that starts is given the socket, which a stop closes.
        self._starting = threading.Lock()
        self._arrival = Arrival()
        self._retiring: list[threading.Thread] = []
        self._deaths = 0
        self._false_starts = 0
        threading.Thread(target=self._do_as_told, daemon=True).start()

    # What Granian calls.

    def signal_handler_interrupt(self, *_args: Any, **_kwargs: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        self._told.put(self._insist_on_stop)

    def signal_handler_reload(self, *_args: Any, **_kwargs: Any) -> None:
        self._told.put(self._ask_for_successor)

    def _init_shared_socket(self) -> None:
        self._ssp = None
        self._shd: Any = _holder(self._listener.fileno(), False, BACKLOG)  # noqa: FBT003
        self._sso = self._listener

    def _spawn_workers(self, spawn_target: Any, target_loader: Any) -> None:
        if first := self._started(spawn_target, target_loader):
            self.wrks.append(first)
        threading.Thread(target=self._announce, daemon=True).start()

    def _respawn_workers(
        self,
        workers: list[int],  # noqa: ARG002 - there is one
        spawn_target: Any,
        target_loader: Any,
        delay: float = 0,
    ) -> None:
        """Granian passes a delay for an isolate whose time is over, none for one that died."""
        old = self.wrks[0]
        if delay or self._may_follow(old):
            old.interrupt_by_parent = True
            if successor := self._started(spawn_target, target_loader):
                self.wrks[0] = successor
                self._retire(old, self._arrival)
        if self.interrupt_children:
            self.main_loop_interrupt.set()

    def shutdown(self, exit_code: int = 0) -> None:
        failed = self._false_starts >= _FALSE_STARTS
        self._stopping.set()
        self.interrupt_children.clear()  # an isolate that heard of the stop by itself
        super().shutdown(exit_code or int(failed))  # type: ignore[no-untyped-call]

    def _stop_workers(self) -> None:
        super()._stop_workers()  # type: ignore[no-untyped-call]
        for thread in self._retiring:
            thread.join()

    # What it does not.

    def _started(self, spawn_target: Any, target_loader: Any) -> WorkerProcess | None:
        """None once the host stops."""
        with self._starting:
            if self._stopping.is_set():
                return None
            self._arrival = Arrival()
            loader = partial(load_and_tell, target_loader, self._arrival.pipe)
            worker = self._spawn_worker(0, spawn_target, loader)
            worker.start()  # type: ignore[no-untyped-call]
            self._arrival.listen()
            return worker

    def _may_follow(self, dead: WorkerProcess) -> bool:
        """Pause as long as it needs; False where nobody is to follow."""
        if dead.is_alive():  # type: ignore[no-untyped-call]
            return False  # who died was its predecessor
        sound = self._clock.monotonic() - dead.birth >= _SOUND_SECONDS
        self._deaths = 1 if sound else self._deaths + 1
        self._false_starts = (
            0 if self._arrival.wait(_SUCCESSOR_PATIENCE_SECONDS) else self._false_starts + 1
        )
        if self._false_starts >= _FALSE_STARTS:
            log.critical("%s isolates died before they served; giving up", _FALSE_STARTS)
            self.interrupt_signal = True
            self.main_loop_interrupt.set()
            return False
        pause = pause_before(self._deaths)
        log.error("an isolate died", extra={"deaths": self._deaths, "pause_seconds": pause})
        return not self._stopping.wait(pause)

    def _retire(self, old: WorkerProcess, successor: Arrival) -> None:
        thread = threading.Thread(target=self._end, args=(old, successor))
        thread.start()
        self._retiring = [t for t in self._retiring if t.is_alive()] + [thread]

    def _end(self, old: WorkerProcess, successor: Arrival) -> None:
        """Tell it to stop once its successor serves; after the grace, kill it."""
        successor.wait(_SUCCESSOR_PATIENCE_SECONDS)
        old.terminate()  # type: ignore[no-untyped-call]
        end = self._clock.monotonic() + (self.workers_kill_timeout or 0)
        while old.is_alive():  # type: ignore[no-untyped-call]
            if self._clock.monotonic() >= end:
                log.warning("killing an isolate that did not end in its grace")
                old.kill()  # type: ignore[no-untyped-call]
                return
            time.sleep(_LOOK_SECONDS)

    def _announce(self) -> None:
        """Once anybody serves: the first isolate, or one that follows it."""
        while not self._arrival.wait(_INSIST_SECONDS):
            time.sleep(_LOOK_SECONDS)
        self._on_ready()

    def _do_as_told(self) -> None:
        while True:
            try:
                self._told.get(timeout=_INSIST_SECONDS)()
            except queue.Empty:
                # Granian clears its event after it has looked: what came between would be lost.
                if self.interrupt_children or self.reload_signal:
                    self.main_loop_interrupt.set()

    def _insist_on_stop(self) -> None:
        """Again and again: the main loop may clear its event, or start an isolate, in between."""
        self.interrupt_signal = True
        self._stopping.set()
        with self._starting:
            self._drop_shared_socket()  # type: ignore[no-untyped-call]
        while True:
            for worker in tuple(self.wrks):
                worker.terminate()  # type: ignore[no-untyped-call]
            self.main_loop_interrupt.set()
            time.sleep(_INSIST_SECONDS)

    def _ask_for_successor(self) -> None:
        self.reload_signal = True
        self.main_loop_interrupt.set()
