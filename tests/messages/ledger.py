"""What must be true of every message, kept beside the database from what was said to it.

Written from the pages, not from the SQL: it knows of deliveries and of what ended them, and works
out attempts, crashes and answers from these.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlease.model import DeadLetter, Done, GiveBack, RetryLater, SnoozeUntil

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlease.model import ClaimAnswer, Delivery, Heartbeat, NewMessage, Outcome, Sent, Settled

WAITING, DONE, DEAD = "waiting", "done", "dead"
#: Archived by somebody else; sent again; removed.
CANCELLED, REPLAYED, DISCARDED = "cancelled", "replayed", "discarded"

# The database counts microseconds.
ROUNDING_SECONDS = 1e-4


class Broken(AssertionError):
    """A property that must hold does not."""


@dataclass(slots=True)
class Entry:
    """One message by its id. `ends` has the verb of each delivery that was settled."""

    msg_id: int
    body: Any
    org: str
    key: str | None
    visible_at: float
    read_ct: int = 0
    state: str = WAITING
    reason: str = ""
    ends: dict[int, str] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)
    replay_of: int | None = None

    @property
    def attempt(self) -> int:
        """Deliveries less snoozes and give-backs."""
        return self.read_ct - sum(verb in ("snooze", "give_back") for verb in self.ends.values())

    @property
    def crashes(self) -> int:
        """Earlier deliveries that never ended, and were seen to begin after one that had not."""
        return len(self.begun - self.ends.keys() - {self.read_ct})

    @property
    def is_over(self) -> bool:
        return self.read_ct in self.ends


VERBS = {
    Done: "done",
    RetryLater: "retry",
    SnoozeUntil: "snooze",
    GiveBack: "give_back",
    DeadLetter: "dead",
}


@dataclass(slots=True)
class Ledger:
    now: Callable[[], float]
    max_attempts_of_handler: int
    max_attempts_of_queue: int | None
    entries: dict[int, Entry] = field(default_factory=dict)
    witnessed: Counter[str] = field(default_factory=Counter)

    def among(self, *states: str) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.state in states]

    # -- calls that took effect, whoever heard of it

    def sent(self, messages: Sequence[NewMessage], delay_seconds: int, sent: Sent) -> None:
        for index, (message, msg_id) in enumerate(zip(messages, sent.ids, strict=True)):
            bearers = [e for e in self.among(WAITING) if message.key and e.key == message.key]
            if index in sent.existing:
                require(
                    [e.msg_id for e in bearers] == [msg_id], f"{message.key} is not of {msg_id}"
                )
                self.witnessed["key live"] += 1
                continue
            require(not bearers, f"a second live message with key {message.key}: {msg_id}")
            self._new(msg_id, message.body, message.org or "", message.key, delay_seconds)

    def claimed(self, answer: ClaimAnswer, sleep_seconds: int) -> None:
        for message in answer.messages:
            entry = self.entries[message.msg_id]
            require(entry.state == WAITING, f"{entry} was claimed")
            require(self._is_visible(entry), f"{entry} was claimed while hidden")
            entry.read_ct += 1
            entry.visible_at = self.now() + sleep_seconds
            found = (message.read_ct, message.attempt, message.crashes, answer.org)
            expected = (entry.read_ct, entry.attempt, entry.crashes, entry.org)
            require(found == expected, f"{entry} was delivered with {found}, not {expected}")
            self.witnessed["uncounted"] += entry.attempt < entry.read_ct
            self.witnessed["crashed"] += entry.crashes > 0

    def settled(self, outcomes: Sequence[Outcome], answers: Sequence[Settled]) -> None:
        for outcome, answer in zip(outcomes, answers, strict=True):
            expected = self._settle(outcome)
            self.witnessed[f"settled {expected}"] += 1
            require(
                answer.result == expected,
                f"{outcome} was answered {answer}, not {expected}: "
                f"{self.entries.get(outcome.delivery.msg_id)}",
            )

    def beaten(self, deliveries: Sequence[Delivery], sleep_seconds: int, heard: Heartbeat) -> None:
        for delivery in deliveries:
            entry = self.entries[delivery.msg_id]
            if entry.state != WAITING:
                answer = heard.gone
            elif entry.read_ct != delivery.read_ct or entry.is_over:
                answer = heard.lost
                self.witnessed["heartbeat too late"] += 1
            else:
                answer = heard.extended
                entry.visible_at = self.now() + sleep_seconds
                if entry.read_ct - len(entry.ends) > 1:
                    entry.begun.add(entry.read_ct)
            require(delivery.msg_id in answer, f"{entry}: {delivery} was answered {heard}")

    # -- what operators did

    def replayed(self, letters: dict[int, int], new_ids: dict[int, int]) -> None:
        """`letters`: ids of the dead by dead letter; `new_ids`: of their successors, likewise.

        A letter stays only where its key is live.
        """
        for letter, msg_id in sorted(letters.items()):
            dead = self.entries[msg_id]
            bearers = [e for e in self.among(WAITING) if dead.key and e.key == dead.key]
            require((letter in new_ids) is not bool(bearers), f"{dead}: {new_ids}, {bearers}")
            self.witnessed["replay refused" if bearers else "replayed"] += 1
            if letter in new_ids:
                dead.state = REPLAYED
                entry = self._new(new_ids[letter], dead.body, dead.org, dead.key, 0)
                entry.replay_of = msg_id

    def discarded(self, ids: Sequence[int]) -> None:
        for msg_id in ids:
            self.entries[msg_id].state = DISCARDED
            self.witnessed["discarded"] += 1

    def cancelled(self, msg_id: int) -> None:
        self.entries[msg_id].state = CANCELLED
        self.witnessed["cancelled"] += 1

    @property
    def idle(self) -> list[int]:
        """Those that nobody works on: not delivered, delivered and over, or visible again."""
        return [
            e.msg_id
            for e in self.among(WAITING)
            if not e.read_ct or e.is_over or self._is_visible(e)
        ]

    def _is_visible(self, entry: Entry) -> bool:
        return entry.visible_at <= self.now() + ROUNDING_SECONDS

    def _new(self, msg_id: int, body: Any, org: str, key: str | None, delay: int) -> Entry:
        require(msg_id not in self.entries, f"message {msg_id} comes a second time")
        self.entries[msg_id] = Entry(msg_id, body, org, key, self.now() + delay)
        return self.entries[msg_id]

    def _settle(self, outcome: Outcome) -> str:
        entry = self.entries[outcome.delivery.msg_id]
        if entry.state != WAITING:
            return "gone"
        if entry.read_ct != outcome.delivery.read_ct:
            return "lost"
        if entry.is_over:
            return "already"
        verb = VERBS[type(outcome)]
        if verb == "retry":
            more = entry.attempt < self.max_attempts_of_handler
            require(more, f"{entry} is to be tried once more")
        if verb == "retry" and entry.attempt >= (self.max_attempts_of_queue or math.inf):
            entry.state, entry.reason = DEAD, "max_attempts"
        elif isinstance(outcome, DeadLetter):
            entry.state, entry.reason = DEAD, outcome.reason
        elif verb == "done":
            entry.state = DONE
        else:
            after_ms = getattr(outcome, "after_ms", 0)
            entry.visible_at = self.now() + after_ms / 1000
            entry.ends[entry.read_ct] = verb
        self.witnessed[verb] += 1
        return "applied"


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)
