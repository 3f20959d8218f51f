"""Run one sequence of steps on the model and on the database, and compare every answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .values import Claim, Limits, Outcome, Refused, Unspecified

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .database import Database
    from .model import Model

QUEUES = {"alpha": "archive", "beta": "delete"}


@dataclass(frozen=True)
class Send:
    orgs: tuple[str | None, ...]
    queue: str = "alpha"
    keys: tuple[str | None, ...] = ()
    delay_seconds: int = 0
    bodies: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Ask:
    """A plain claim."""

    claim: Claim


@dataclass(frozen=True)
class Settle:
    """Settle deliveries, counted back from the newest of this queue, and claim unless n is 0."""

    claim: Claim
    outcomes: tuple[tuple[int, str, int], ...] = ()
    limit_ms: int | None = None


@dataclass(frozen=True)
class Heartbeat:
    back: tuple[int, ...]
    holder: str = "h1"
    queue: str = "alpha"
    ttl_seconds: int = 60
    sleep_seconds: int = 30


@dataclass(frozen=True)
class Renew:
    holder: str = "h1"
    queue: str = "alpha"
    ttl_seconds: int = 60


@dataclass(frozen=True)
class Release:
    holder: str = "h1"
    queue: str = "alpha"


@dataclass(frozen=True)
class Advance:
    milliseconds: int


@dataclass(frozen=True)
class Limit:
    org: str
    limits: Limits


Step = Send | Ask | Settle | Heartbeat | Renew | Release | Advance | Limit


class Disagreement(AssertionError):
    """The two sides answered one step differently."""


class Replay:
    """Both sides, and the deliveries that later steps speak of."""

    def __init__(self, model: Model, database: Database) -> None:
        self.model = model
        self.database = database
        self.numbers = 0
        self.deliveries: dict[str, list[tuple[int, int]]] = {name: [] for name in QUEUES}
        self.taken: list[Step] = []
        self.witnessed: Counter[str] = Counter()

    def run(self, steps: Sequence[Step]) -> None:
        """Raises Disagreement at the first step that is answered differently."""
        self.database.reset()
        for step in steps:
            self.taken.append(step)
            self.take(step)
            self.same(self.model.state(), self.database.state(), "the state after it")

    def take(self, step: Step) -> None:
        match step:
            case Send():
                items = [self.item(step, index) for index in range(len(step.orgs))]
                self.both(lambda side: side.send(step.queue, items, step.delay_seconds))
            case Ask(claim):
                self.claimed(claim, self.both(lambda side: side.claim(claim)))
            case Settle(claim):
                outcomes = self.outcomes(step)
                answer = self.both(lambda side: side.settle_and_claim(claim, outcomes))
                self.claimed(claim, answer)
            case Heartbeat():
                pairs = self.known(step.queue, step.back)
                self.both(
                    lambda side: side.heartbeat(
                        step.queue, step.holder, step.ttl_seconds, step.sleep_seconds, pairs
                    )
                )
            case Renew(holder, queue, ttl_seconds):
                self.both(lambda side: side.renew(queue, holder, ttl_seconds))
            case Release(holder, queue):
                self.both(lambda side: side.release(queue, holder))
            case Advance(milliseconds):
                self.both(lambda side: side.advance(milliseconds))
            case Limit(org, limits):
                self.both(lambda side: side.limit(org, limits))

    def item(self, step: Send, index: int) -> dict[str, Any]:
        self.numbers += 1
        item: dict[str, Any] = {"message": {"number": self.numbers}}
        if step.bodies:
            item["message"] |= step.bodies[index]
        org = step.orgs[index]
        if org is not None:
            item["org"] = org
        if index < len(step.keys) and step.keys[index] is not None:
            item["key"] = step.keys[index]
        return item

    def known(self, queue: str, back: Sequence[int]) -> list[tuple[int, int]]:
        known = self.deliveries[queue]
        picked = [known[-1 - place % len(known)] for place in back] if known else []
        return list(dict.fromkeys(picked))

    def outcomes(self, step: Settle) -> list[Outcome]:
        outcomes: dict[tuple[int, int], Outcome] = {}
        for back, do, after_ms in step.outcomes:
            for number, read_ct in self.known(step.claim.queue, [back]):
                outcome = Outcome(number, read_ct, do, after_ms, reason=f"because {do}")
                outcomes.setdefault((number, read_ct), outcome)
        said = list(outcomes.values())
        if said and step.limit_ms is not None:
            said[0] = replace(said[0], limit_ms=step.limit_ms)
        return said

    def claimed(self, claim: Claim, answer: Any) -> None:
        if isinstance(answer, dict):
            for message in answer.get("messages", ()):
                self.deliveries[claim.queue].append((message["number"], message["read_ct"]))

    def both(self, call: Callable[[Any], Any]) -> Any:
        expected, found = _outcome(call, self.model), _outcome(call, self.database)
        self.same(expected, found, "the answer")
        self.witnessed.update(words_of(expected))
        return expected

    def same(self, expected: Any, found: Any, what: str) -> None:
        if not _agree(expected, found):
            steps = "\n".join(f"  {step!r}," for step in self.taken)
            raise Disagreement(
                f"{what} differs after\n{steps}\nmodel:    {expected}\ndatabase: {found}"
            )


def words_of(answer: Any) -> list[str]:
    """What an answer shows: a sequence in which nothing happens proves nothing."""
    if isinstance(answer, Refused):
        return [f"refused {name}" for name in answer.arguments]
    if not isinstance(answer, dict):
        return []
    words = [f"settled {result}" for _, result in answer.get("settled", ())]
    words += [f"heard {word}" for word in ("extended", "lost", "gone") if answer.get(word)]
    words += [f"cause {cause}" for cause in answer.get("causes", ())]
    words += [answer["status"]] if "status" in answer else []
    for message in answer.get("messages", ()):
        words += ["a crash counted"] if message["crashes"] else []
        words += ["a delivery uncounted"] if message["attempt"] < message["read_ct"] else []
    return words


def _outcome(call: Callable[[Any], Any], side: Any) -> Any:
    try:
        return call(side)
    except Refused as refused:
        return refused


def _agree(expected: Any, found: Any) -> bool:
    if isinstance(expected, Unspecified):
        return True
    if isinstance(expected, Refused):
        return isinstance(found, Refused) and bool(found.arguments & expected.arguments)
    if isinstance(expected, dict) and "causes" in expected and isinstance(found, dict):
        expected = dict(expected)
        causes = expected.pop("causes")
        found = dict(found)
        # A plain claim tells no cause and no counts.
        if "cause" in found and (found.pop("cause") or "") not in (causes or {""}):
            return False
        if found["messages"] and "attempt" not in found["messages"][0]:
            expected["messages"] = [
                {name: m[name] for name in ("number", "read_ct", "vt")}
                for m in expected["messages"]
            ]
    return bool(expected == found)
