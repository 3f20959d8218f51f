"""One isolation scope for each run and each message: what is set on one is on no other's events."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sentry_sdk
from sentry_sdk.scope import use_isolation_scope

from fairlease.telemetry.counting import label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sentry_sdk import Scope

    from fairlease.events import HandlerEnded, HandlerStarted

MessageKey = tuple[str, str, int, int]


@dataclass(slots=True)
class _Open:
    scope: Scope
    exit: ExitStack
    # A function's run is begun by the host and by the engine; the outermost end ends it.
    depth: int = 1


@dataclass(slots=True)
class Scopes:
    """Forks of what the application had set when this was made, none of another."""

    base: Scope = field(default_factory=lambda: sentry_sdk.get_isolation_scope().fork())
    _runs: dict[str, _Open] = field(default_factory=dict)
    _messages: dict[MessageKey, _Open] = field(default_factory=dict)

    def begin_run(self, run_id: str, **tags: str) -> None:
        """Ambient in the calling task from now on."""
        if opened := self._runs.get(run_id):
            opened.depth += 1
        else:
            self._runs[run_id] = self._enter({"run_id": run_id, **tags})

    def end_run(self, run_id: str) -> None:
        """To be called in the task that began it."""
        # Of handlers that never end: their tasks keep their scopes, we do not.
        for key in [key for key in self._messages if key[0] == run_id]:
            del self._messages[key]
        opened = self._runs.get(run_id)
        if opened is not None:
            opened.depth -= 1
            if not opened.depth:
                del self._runs[run_id]
                opened.exit.close()

    def begin_message(self, event: HandlerStarted) -> None:
        """Ambient in the handler's task, and in what it starts."""
        self._messages[_key(event)] = self._enter(_tags(event))

    @contextmanager
    def of_ended(self, event: HandlerEnded) -> Iterator[Scope]:
        """The message's scope for the last time; one for a message that no handler was given."""
        opened = self._messages.pop(_key(event), None)
        if opened is None:
            with use_isolation_scope(self._forked(_tags(event))) as scope:
                yield scope
            return
        with opened.exit:
            yield opened.scope

    @contextmanager
    def of_run(self, run_id: str) -> Iterator[Scope]:
        """The run's, whoever says something about it: a timer and a thread have contexts too."""
        opened = self._runs.get(run_id)
        scope = self._forked({"run_id": run_id}) if opened is None else opened.scope
        with use_isolation_scope(scope):
            yield scope

    def _enter(self, tags: Mapping[str, str]) -> _Open:
        leave = ExitStack()
        return _Open(leave.enter_context(use_isolation_scope(self._forked(tags))), leave)

    def _forked(self, tags: Mapping[str, str]) -> Scope:
        scope = self.base.fork()
        for name, value in tags.items():
            if value:
                scope.set_tag(name, label(value))
        return scope


def _key(event: HandlerStarted | HandlerEnded) -> MessageKey:
    return event.run_id, event.queue, event.msg_id, event.attempt


def _tags(event: HandlerStarted | HandlerEnded) -> dict[str, str]:
    return {
        "run_id": event.run_id,
        "queue": event.queue,
        "org": event.org,
        "method": event.method,
        "msg_id": str(event.msg_id),
        "attempt": str(event.attempt),
    }
