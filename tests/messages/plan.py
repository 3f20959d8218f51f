"""What happens to a few messages, as data: small enough to be shrunk and read."""

from __future__ import annotations

from dataclasses import dataclass

#: What a handler does in one delivery; with nothing left to do wrong it succeeds.
DEEDS = (
    "raise",
    "retry_after",
    "snooze",
    "dead",
    "rate_limited",
    "hang",
    # The process dies in the middle, or just after the handler returned: nothing is settled.
    "die",
    "die_at_the_end",
)
#: Bodies that no handler ever sees: they are dead at once.
NEVER_RUN = ("not_an_object", "unknown_method", "bad_arguments")

#: What happens to one call between a process and its database.
FAULTS = (
    "none",
    # The call never arrives; whether its caller knows that is the difference.
    "refused",
    "lost_before",
    # It takes effect, and its answer is lost, is another's, or takes longer than anybody waits.
    "lost_after",
    "unexpected",
    "no_answer",
    "slow_answer",
    # It takes effect long after its caller gave up, or twice, the second time at once or later.
    "late",
    "twice",
    "twice_late",
    # The process that calls dies: the call never leaves, arrives all the same, or was answered.
    "die_before",
    "die_underway",
    "die_after",
)
#: The calls of a worker, each with faults of its own; `send` is its sender's.
CALLS = ("claim", "settle", "settle_and_claim", "heartbeat", "release", "once", "send")

#: What operators and platforms do.
MISHAPS = (
    *("replay", "replay_one", "purge_dead", "purge_waiting", "cancel", "maintain"),
    *("kill", "stop"),
)


@dataclass(frozen=True, slots=True)
class Job:
    """One message to send. `deeds` are those of its deliveries, one after the other."""

    at: float
    org: str
    seconds: float = 0.0
    deeds: tuple[str, ...] = ()
    key: str | None = None
    delay_seconds: int = 0
    once: bool = False
    never_runs: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """`seconds` is how long what comes late takes."""

    what: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Mishap:
    what: str
    at: float


@dataclass(frozen=True, slots=True)
class Plan:
    """`faults` are those of the first calls of each kind; all calls after these go well."""

    jobs: tuple[Job, ...]
    faults: dict[str, tuple[Fault, ...]]
    mishaps: tuple[Mishap, ...] = ()
    workers: int = 1
    drain_concurrency: int = 1
    max_crashes: int = 1
    continuous_refill: int = 1
    max_attempts_of_queue: int | None = None
    on_success: str = "archive"

    @property
    def is_calm(self) -> bool:
        """Nothing goes wrong but what handlers raise."""
        deeds = {deed for job in self.jobs for deed in job.deeds}
        faults = {fault.what for each in self.faults.values() for fault in each}
        return not self.mishaps and faults <= {"none"} and not deeds & {"die", "die_at_the_end"}
