"""Which org a claim serves, or why none: the caps and the rotation of the simulated database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.model import ClaimAnswer, ClaimStatus
from fairlease.simulate.tables import OrgState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlease.model import ClaimRequest
    from fairlease.simulate.tables import Queue, Slot

#: Orgs that one claim looks at before it answers `probing`.
PROBES = 64


@dataclass(slots=True)
class Slots:
    """The leases of the fleet, and what each org may have."""

    by_holder: dict[str, Slot] = field(default_factory=dict)
    orgs: dict[str, OrgState] = field(default_factory=dict)

    def state_of(self, org: str) -> OrgState:
        return self.orgs.setdefault(org, OrgState())

    def live(self, now: float) -> Iterable[Slot]:
        return (slot for slot in self.by_holder.values() if slot.expires_at > now)

    def own(self, holder: str, now: float) -> Slot | None:
        """The holder's live slot; a lapsed one is cleared, never revived."""
        slot = self.by_holder.get(holder)
        if slot is not None and slot.expires_at <= now:
            del self.by_holder[holder]
            return None
        return slot

    def held_by_others(self, org: str, holder: str, now: float) -> int:
        return sum(1 for s in self.live(now) if s.org == org and s.holder != holder)

    def choose(
        self, request: ClaimRequest, queue: Queue, own: Slot | None, now: float
    ) -> str | ClaimAnswer:
        """The org to serve, or the answer without messages that says why none."""
        pin = request.pin_org
        if pin is None:
            candidates = _rotated(queue.orgs_due(now), queue.cursor)
        else:
            candidates = [pin] if queue.has_due(pin, now) else []
        if not candidates:
            return ClaimAnswer(ClaimStatus.NO_DEMAND)
        fleet_is_full = own is None and sum(1 for _ in self.live(now)) >= request.global_cap
        best, causes = self._fewest_slots(request, candidates[:PROBES], now)
        if best is not None:
            if fleet_is_full:
                return ClaimAnswer(ClaimStatus.NO_CAPACITY, cause="fleet_full")
            return best
        if len(candidates) > PROBES:
            queue.cursor = candidates[PROBES - 1]
            return ClaimAnswer(ClaimStatus.ORG_CAPACITY, cause="probing", retry_after_ms=0)
        return self._blocked(candidates, causes, now)

    def _fewest_slots(
        self, request: ClaimRequest, candidates: list[str], now: float
    ) -> tuple[str | None, list[str]]:
        best: tuple[int, str] | None = None
        causes = []
        for org in candidates:
            held = self.held_by_others(org, request.holder, now)
            cause = self._why_blocked(org, request.max_per_org, held, now)
            if cause is not None:
                causes.append(cause)
            elif best is None or held < best[0]:
                best = (held, org)
                if held == 0:
                    break
        return (best[1] if best else None), causes

    def _why_blocked(self, org: str, max_per_org: int, held: int, now: float) -> str | None:
        state = self.state_of(org)
        cap = max_per_org if state.max_per_org is None else state.max_per_org
        if state.paused:
            return "paused"
        if state.circuit_blocks(now):
            return "circuit"
        if held >= cap:
            return "org_limit"
        return "tokens" if state.starts_left(now) == 0 else None

    def _blocked(self, orgs: list[str], causes: list[str], now: float) -> ClaimAnswer:
        cause = next((c for c in ("org_limit", "tokens", "circuit") if c in causes), "paused")
        waits = [
            self.state_of(org).seconds_to_token(now)
            for org in orgs
            if self.state_of(org).starts_per_minute is not None
        ]
        after = round(min(waits) * 1000) if cause == "tokens" and waits else None
        return ClaimAnswer(ClaimStatus.ORG_CAPACITY, cause=cause, retry_after_ms=after)


def _rotated(orgs: Iterable[str], cursor: str) -> list[str]:
    """In byte order, beginning after the cursor."""
    ordered = sorted(orgs, key=str.encode)
    later = [org for org in ordered if org.encode() > cursor.encode()]
    return later + [org for org in ordered if org.encode() <= cursor.encode()]
