"""The form of a finding."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """`PROBLEM`: runs cannot work, or not safely. `WARNING`: they can, but somebody should look."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding about one area; `facts` are for machines, `remedy` is one line for people."""

    area: str
    state: State
    says: str
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "area": self.area,
            "state": self.state.value,
            "says": self.says,
            "remedy": self.remedy,
            **({"facts": self.facts} if self.facts else {}),
        }
