"""What the demonstration found, as one JSON object and as a few sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlease.demo.load import BURST_ORG
from fairlease.demo.utilisation import resident, utilisation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlease.demo.utilisation import Sample, Series


@dataclass(frozen=True, slots=True)
class Counted:
    """What the GitHub-contract server measured of one org."""

    max_in_flight: int
    done: frozenset[str]
    duplicated: frozenset[str]
    series: Series


@dataclass(frozen=True, slots=True)
class Pass:
    """One way through the load. `seconds` from the first claim to the last message done."""

    sent: int
    archived: int
    waiting: int
    dead: int
    seconds: float
    claims: int
    counted: Mapping[str, Counted]
    mismatches: int
    samples: Sequence[Sample]

    def utilisation(self, n: int) -> float:
        """Of the burst org: the share of its slot in use while it held one and had work."""
        burst = self.counted[BURST_ORG]
        return utilisation(burst.series, resident(self.samples, BURST_ORG), n)

    @property
    def lost(self) -> int:
        """Sent, and neither done nor dead nor waiting."""
        return self.sent - self.archived - self.waiting - self.dead

    @property
    def duplicated(self) -> int:
        return sum(len(org.duplicated) for org in self.counted.values())


@dataclass(frozen=True, slots=True)
class Summary:
    """Refill beside batch-at-a-time on the same load; `cap` messages in flight per org."""

    refill: Pass
    batch: Pass
    n: int
    cap: int
    plot: str

    def as_json(self) -> dict[str, Any]:
        counted = (self.refill.counted, self.batch.counted)
        orgs = sorted({org for run in counted for org in run})
        most = {org: max(run[org].max_in_flight for run in counted if org in run) for org in orgs}
        return {
            "sent": self.refill.sent,
            "done": self.refill.archived,
            "lost": self.refill.lost + self.batch.lost,
            "duplicated": self.refill.duplicated + self.batch.duplicated,
            "max_in_flight_by_org": most,
            "cap_by_org": dict.fromkeys(orgs, self.cap),
            "utilisation": round(self.refill.utilisation(self.n), 4),
            "utilisation_batch": round(self.batch.utilisation(self.n), 4),
            "seconds": round(self.refill.seconds, 2),
            "seconds_batch": round(self.batch.seconds, 2),
            "claims": self.refill.claims,
            "claims_batch": self.batch.claims,
            "done_batch": self.batch.archived,
            "charged_to_another_org": self.refill.mismatches + self.batch.mismatches,
            "plot": self.plot,
        }

    def problems(self) -> list[str]:
        """What the demonstration promises and did not see; empty where all holds."""
        said = self.as_json()
        over = [
            f"{org} had {most} in flight, its cap is {self.cap}"
            for org, most in said["max_in_flight_by_org"].items()
            if most > self.cap
        ]
        if said["lost"]:
            over.append(f"{said['lost']} messages are lost")
        for name, run in (("refill", self.refill), ("batch", self.batch)):
            if run.archived != run.sent:
                over.append(f"{name}: {run.archived} of {run.sent} messages are done")
        if said["charged_to_another_org"]:
            over.append(f"{said['charged_to_another_org']} calls were charged to another org")
        return over

    def sentences(self) -> list[str]:
        said = self.as_json()
        problems = self.problems()
        return [
            (
                f"refill          {said['utilisation']:6.1%} of the burst org's slot used,"
                f" {said['seconds']:5.1f} s, {said['claims']} claims"
            ),
            (
                f"batch-at-a-time {said['utilisation_batch']:6.1%} of the burst org's slot used,"
                f" {said['seconds_batch']:5.1f} s, {said['claims_batch']} claims"
            ),
            *(problems or self._promises(said)),
            f"in flight over time: {self.plot}",
        ]

    def _promises(self, said: Mapping[str, Any]) -> list[str]:
        most = max(said["max_in_flight_by_org"].values())
        return [
            f"no cap exceeded: the API counted at most {most} in flight per org of {self.cap}",
            (
                f"no message lost: {self.refill.sent} sent and done, twice; "
                f"{said['duplicated']} ran twice"
            ),
        ]
