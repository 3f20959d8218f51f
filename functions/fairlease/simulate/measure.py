"""From what was recorded to numbers: utilisation, drain time, claims, waits, stranding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.events import ClaimAnswered, ClaimFailed

if TYPE_CHECKING:
    from fairlease.simulate.recorder import Recorder, Span
    from fairlease.simulate.scenario import Scenario


@dataclass(frozen=True, slots=True)
class OrgMeasured:
    """One org. `first_index`: messages of any org that started between its send and its first.

    Waits are seconds from the send of a message to its first start; None: none has started.
    """

    org: str
    sent: int
    started: int
    first_index: int | None
    longest_wait_seconds: float | None
    mean_wait_seconds: float | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One simulation. `utilisation`: seconds in flight over `n` a worker times drain seconds.

    `seconds` is from the start to the end of the last handler; `stranded` deliveries were hidden
    when their isolate was killed; `left` messages were in the queue at the end; `in_flight` is
    the curve, as instants and the number from then on.
    """

    utilisation: float
    seconds: float
    claims: int
    messages: int
    stranded: int
    left: int
    orgs: tuple[OrgMeasured, ...]
    in_flight: tuple[tuple[float, int], ...]

    @property
    def minutes(self) -> float:
        return self.seconds / 60


def measure(scenario: Scenario, recorder: Recorder, *, stranded: int, left: int) -> Measured:
    spans = [span for span in recorder.spans if span.ended == span.ended]
    busy = sum(span.ended - span.started for span in spans)
    seconds = max((span.ended for span in spans), default=0.0)
    lanes = scenario.knobs.drain_concurrency * scenario.workers
    claims = sum(isinstance(event, ClaimAnswered | ClaimFailed) for _, event in recorder.events)
    return Measured(
        utilisation=busy / (lanes * seconds) if seconds else 0.0,
        seconds=seconds,
        claims=claims,
        messages=sum(not span.cut for span in spans),
        stranded=stranded,
        left=left,
        orgs=tuple(_org(org, sent, recorder.spans) for org, sent in sorted(recorder.sent.items())),
        in_flight=_curve(spans),
    )


def _org(org: str, sent: list[float], spans: list[Span]) -> OrgMeasured:
    firsts: dict[int, float] = {}
    for span in spans:
        if span.org == org:
            firsts.setdefault(span.msg_id, span.started)
    # Ids grow with time, so the k-th message of an org is the k-th that was sent.
    waits = [start - at for (_, start), at in zip(sorted(firsts.items()), sent, strict=False)]
    first = min(firsts.values(), default=None)
    index = None
    if first is not None:
        index = sum(sent[0] <= s.started < first and s.org != org for s in spans)
    return OrgMeasured(
        org=org,
        sent=len(sent),
        started=len(firsts),
        first_index=index,
        longest_wait_seconds=max(waits, default=None),
        mean_wait_seconds=sum(waits) / len(waits) if waits else None,
    )


def _curve(spans: list[Span]) -> tuple[tuple[float, int], ...]:
    changes: dict[float, int] = {}
    for span in spans:
        changes[span.started] = changes.get(span.started, 0) + 1
        changes[span.ended] = changes.get(span.ended, 0) - 1
    curve, running = [], 0
    for at in sorted(changes):
        running += changes[at]
        curve.append((at, running))
    return tuple(curve)
