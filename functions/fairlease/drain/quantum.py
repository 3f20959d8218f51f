"""Pure: how much of one org's backlog is streamed before the others are considered."""

from __future__ import annotations

from dataclasses import dataclass

# A lone org pays one tail per reconsideration for nothing, so its quantum may grow this far.
LONGEST_STRETCH = 4


@dataclass(slots=True)
class Quantum:
    """`refills * n` messages of one org, doubled each time it alone has work."""

    refills: int
    n: int
    longest_stretch: int = LONGEST_STRETCH
    stretch: int = 1
    taken: int = 0
    streamed: tuple[str, str] | None = None

    @property
    def remaining(self) -> int:
        """Messages that may still be claimed before the org is reconsidered."""
        return max(0, self.refills * self.n * self.stretch - self.taken)

    def count(self, messages: int) -> None:
        self.taken += messages

    def begin(self, queue: str, org: str) -> None:
        """An unpinned claim chose this org: the same again stretches, another resets."""
        if self.streamed != (queue, org):
            self.stretch = 1
        elif self.remaining == 0:
            self.stretch = min(self.longest_stretch, self.stretch * 2)
        self.streamed = (queue, org)
        self.taken = 0
