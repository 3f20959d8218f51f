"""Failures on demand: a rule waits for its request, strikes a number of times, and is gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["status", "slow", "cut", "reset"]


@dataclass(slots=True)
class Fault:
    """`cut` ends the connection in mid-answer, `reset` resets it before; `after` the effect.

    Without `after` nothing has happened at the server.

    `path` is a part of the path, `method` an HTTP method; empty matches any.
    """

    kind: Kind
    org: str = ""
    method: str = ""
    path: str = ""
    times: int = 1
    status: int = 502
    headers: dict[str, str] = field(default_factory=dict)
    body: str = "<html><body>Bad gateway</body></html>"
    seconds: float = 0.0
    after: bool = False

    def matches(self, org: str, method: str, path: str) -> bool:
        return (
            self.times > 0
            and self.org.lower() in {"", org.lower()}
            and self.method in {"", method}
            and self.path in path
        )


@dataclass(slots=True)
class Faults:
    """The rules in the order in which they were added."""

    rules: list[Fault] = field(default_factory=list)

    def strike(self, org: str, method: str, path: str) -> Fault | None:
        """The first rule that matches, counted down; None for an answer without trouble."""
        for fault in self.rules:
            if fault.matches(org, method, path):
                fault.times -= 1
                if fault.times == 0:
                    self.rules.remove(fault)
                return fault
        return None
