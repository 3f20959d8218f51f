"""An observer that makes Sentry issues of failed messages and runs, and of alarms."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlease import events as ev
from fairlease.telemetry.counting import label
from fairlease.telemetry.cron_monitors import check_in
from fairlease.telemetry.failures import is_failure, kind_of_error
from fairlease.telemetry.logs import fields_of, kind_of
from fairlease.telemetry.sentry_issues import Issues, start_sdk
from fairlease.telemetry.sentry_scopes import Scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fairlease.clock import Clock
    from fairlease.settings import KnobIssue

# Reasons for which a run ended without having done its work.
FAILED_RUNS = frozenset({"unreachable", "failures", "stalled"})

# What is an issue as soon as it is said, and the fields that keep different causes apart.
_ISSUES: Mapping[type[ev.Event], tuple[str, tuple[str, ...]]] = {
    ev.CancellationSwallowed: ("warning", ("queue", "reason")),
    ev.LeaseLost: ("warning", ("why",)),
    ev.LoopBlocked: ("warning", ()),
    ev.OutcomeChanged: ("warning", ("queue",)),
    ev.PinViolated: ("error", ("queue",)),
    ev.QueueAlarm: ("error", ("queue", "measure")),
    ev.QueueRefused: ("error", ("queue",)),
}
# Told with the next issue of their run.
_CRUMBS = (ev.ClaimFailed, ev.DeliveryLost, ev.HeartbeatFailed, ev.ReleaseFailed, ev.TopUpSkipped)


def start_sentry(environ: Mapping[str, str], clock: Clock) -> Sentry | None:
    """None without `SENTRY_DSN`. Raises `ConfigurationError` for one that is none."""
    return Sentry(Issues(clock)) if start_sdk(environ) else None


@dataclass(slots=True)
class Sentry:
    """One for each isolate, made before its first run."""

    issues: Issues
    scopes: Scopes = field(default_factory=Scopes)
    # Why a handler was told to end, by run, queue and message.
    _told: dict[tuple[str, str, int], str] = field(default_factory=dict)
    _degraded: set[str] = field(default_factory=set)
    # Runs whose failure was reported where it happened: their function's end does not repeat it.
    _failed: deque[str] = field(default_factory=lambda: deque(maxlen=64))

    def observe(self, event: ev.Event) -> None:
        listener = _LISTENERS.get(type(event))
        if listener is not None:
            listener(self, event)
        elif type(event) in _ISSUES:
            self._say(event)
        if isinstance(event, _CRUMBS):
            self._remember(event)

    def report_knob_issues(self, issues: Iterable[KnobIssue]) -> None:
        """To be called once in an isolate."""
        for issue in issues:
            self.issues.message(issue.message, "warning", ("knob", issue.env, issue.kind.value))

    async def aclose(self) -> None:
        await self.issues.aclose()

    def _poke_answered(self, event: ev.PokeAnswered) -> None:
        check_in(event.function, event.schedule)

    def _function_started(self, event: ev.FunctionStarted) -> None:
        self.scopes.begin_run(event.run_id, function=event.function)

    def _function_ended(self, event: ev.FunctionEnded) -> None:
        if event.error is not None and event.run_id not in self._failed:
            self._run_exception(event.run_id, event.error)
        self.scopes.end_run(event.run_id)

    def _run_started(self, event: ev.RunStarted) -> None:
        self.scopes.begin_run(event.run_id)

    def _run_failed(self, event: ev.RunFailed) -> None:
        if event.raised is not None:
            self._failed.append(event.run_id)
            self._run_exception(event.run_id, event.raised)

    def _run_exception(self, run_id: str, error: BaseException) -> None:
        with self.scopes.of_run(run_id):
            self.issues.exception(error, ("run", kind_of_error(error)), {})

    def _run_ended(self, event: ev.RunEnded) -> None:
        with self.scopes.of_run(event.run_id) as scope:
            scope.set_tag("org_slot", event.reason)
            if event.still_running:
                scope.set_tag("org_slot_release_deferred", "handlers_running")
            if event.still_running or event.reason in FAILED_RUNS:
                text, group = f"run ended: {event.reason}", ("run_ended", event.reason)
                self.issues.message(text, "error", group, extra=fields_of(event))
        for key in [key for key in self._told if key[0] == event.run_id]:
            del self._told[key]
        self.scopes.end_run(event.run_id)

    def _handler_started(self, event: ev.HandlerStarted) -> None:
        self.scopes.begin_message(event)

    def _handler_cancelled(self, event: ev.HandlerCancelled) -> None:
        self._told.setdefault((event.run_id, event.queue, event.msg_id), event.reason)

    def _handler_ended(self, event: ev.HandlerEnded) -> None:
        told = self._told.pop((event.run_id, event.queue, event.msg_id), None)
        with self.scopes.of_ended(event) as scope:
            if not is_failure(event):
                return
            outcome = "dead" if event.outcome == "DeadLetter" else "retry"
            scope.set_transaction_name(label(event.method or "unknown method"))
            if event.error is None:
                text = f"dead letter: {event.method or 'a message'} ended {event.crashes} workers"
                group = ("message", event.method, "crashed")
                self.issues.message(text, "error", group, {"outcome": outcome})
            else:
                kind = told or kind_of_error(event.error)
                group = ("message", event.method, kind)
                self.issues.exception(
                    event.error, group, {"outcome": outcome, "error_kind": label(kind)}
                )

    def _degraded_once(self, event: ev.Degraded) -> None:
        if event.function not in self._degraded:
            self._degraded.add(event.function)
            text = f"the database lacks {event.function}: {event.instead}"
            self.issues.message(text, "warning", ("degraded", event.function))

    def _release_failed(self, event: ev.ReleaseFailed) -> None:
        with self.scopes.of_run(event.run_id) as scope:
            scope.set_tag("org_slot_release_deferred", "release_failed")

    def _top_up_skipped(self, event: ev.TopUpSkipped) -> None:
        with self.scopes.of_run(event.run_id) as scope:
            scope.set_tag("org_slot_refill", event.reason)

    def _settle_failed(self, event: ev.SettleFailed) -> None:
        if event.final:
            self._say(event, "error", ("queue",))
        else:
            self._remember(event)

    def _say(self, event: ev.Event, level: str = "", by: tuple[str, ...] = ()) -> None:
        """The event itself is the issue; its fields carry no payload."""
        if not level:
            level, by = _ISSUES[type(event)]
        fields = fields_of(event)
        name = kind_of(event).name
        text = " ".join([name.replace("_", " "), *(str(fields[key]) for key in by)])
        group = (name, *(str(fields[key]) for key in by))
        if isinstance(event, ev.LoopBlocked):
            method = event.task.partition(" of message ")[0] or "no task"
            text, group = f"{text} by {method}", (name, method)
        tags = {key: label(str(fields[key])) for key in _TAGS if fields.get(key)}
        with self.scopes.of_run(event.run_id):
            self.issues.message(text, level, group, tags, fields)

    def _remember(self, event: ev.Event) -> None:
        fields = {key: value for key, value in fields_of(event).items() if key != "error"}
        with self.scopes.of_run(event.run_id) as scope:
            scope.add_breadcrumb(category="fairlease", message=kind_of(event).name, data=fields)


_TAGS = ("queue", "org", "msg_id", "measure")
_LISTENERS: Mapping[type[ev.Event], Callable[[Sentry, Any], None]] = {
    ev.Degraded: Sentry._degraded_once,  # noqa: SLF001 - its own table, as the others
    ev.FunctionEnded: Sentry._function_ended,  # noqa: SLF001
    ev.FunctionStarted: Sentry._function_started,  # noqa: SLF001
    ev.HandlerCancelled: Sentry._handler_cancelled,  # noqa: SLF001
    ev.HandlerEnded: Sentry._handler_ended,  # noqa: SLF001
    ev.HandlerStarted: Sentry._handler_started,  # noqa: SLF001
    ev.PokeAnswered: Sentry._poke_answered,  # noqa: SLF001
    ev.ReleaseFailed: Sentry._release_failed,  # noqa: SLF001
    ev.RunEnded: Sentry._run_ended,  # noqa: SLF001
    ev.RunFailed: Sentry._run_failed,  # noqa: SLF001
    ev.RunStarted: Sentry._run_started,  # noqa: SLF001
    ev.SettleFailed: Sentry._settle_failed,  # noqa: SLF001
    ev.TopUpSkipped: Sentry._top_up_skipped,  # noqa: SLF001
}
