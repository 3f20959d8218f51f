"""The fault switch: what goes wrong on purpose, for which call, how often.

Each fault is a way in which the road between a worker and its database is known to break.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, replace
from enum import StrEnum

from fairlease.errors import ConfigurationError


class FaultKind(StrEnum):
    """Those named `..._after` happen when the call has taken effect; CUT, SLOW and the last too."""

    HTML = "html"
    HTML_AFTER = "html_after"
    EMPTY = "empty"
    EMPTY_AFTER = "empty_after"
    HANG = "hang"
    DELAY = "delay"
    SLOW = "slow"
    CUT = "cut"
    BROKEN_JSON = "broken_json"
    RESET_BEFORE = "reset_before"
    RESET_AFTER = "reset_after"
    CLOSE_IDLE = "close_idle"
    MAX_ROWS = "max_rows"
    JWT_ISSUED_AT_FUTURE = "jwt_issued_at_future"


@dataclass(frozen=True)
class Fault:
    """`rpc` "*": any call. `times` None: for ever. `probability` 0 to 1, for each call.

    `status` is that of the HTML and the empty answers; `seconds` that of DELAY and HANG (before the
    call), SLOW (of the whole body) and CLOSE_IDLE (after the answer); `rows` that of MAX_ROWS.
    """

    kind: FaultKind
    rpc: str = "*"
    times: int | None = 1
    probability: float = 1.0
    status: int = 502
    seconds: float = 0.0
    rows: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", FaultKind(self.kind))
        if not 0.0 <= self.probability <= 1.0:
            raise ConfigurationError(f"probability: use 0 to 1, not {self.probability}")
        if self.seconds < 0 or self.rows < 0 or (self.times is not None and self.times < 1):
            raise ConfigurationError(
                "a fault's seconds and rows are 0 or more, its times 1 or more"
            )


# What `chaos` mixes: every kind that a client is to survive without a person.
_CHAOS = (
    Fault(FaultKind.HTML, status=502),
    Fault(FaultKind.HTML, status=503),
    Fault(FaultKind.HTML_AFTER, status=504),
    Fault(FaultKind.EMPTY, status=502),
    Fault(FaultKind.CUT),
    Fault(FaultKind.DELAY, seconds=0.5),
    Fault(FaultKind.SLOW, seconds=0.5),
    Fault(FaultKind.RESET_BEFORE),
    Fault(FaultKind.RESET_AFTER),
    Fault(FaultKind.CLOSE_IDLE),
    Fault(FaultKind.JWT_ISSUED_AT_FUTURE),
)


class Faults:
    """The faults that are on, in the order in which they are tried. Safe to share with threads."""

    def __init__(self, dice: random.Random | None = None) -> None:
        self._dice = dice or random.Random()  # noqa: S311 - no secret
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, *faults: Fault) -> None:
        with self._lock:
            self._faults.extend(faults)

    def add_chaos(self, probability: float) -> None:
        """For ever, one call in `1 / probability` goes wrong in some way."""
        # Tried one after the other, each must be a little likelier than the one before.
        count = len(_CHAOS)
        shares = [probability / count / (1 - probability * n / count) for n in range(count)]
        self.add(
            *(
                replace(fault, times=None, probability=share)
                for fault, share in zip(_CHAOS, shares, strict=True)
            )
        )

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def active(self) -> list[Fault]:
        with self._lock:
            return list(self._faults)

    def pick(self, rpc: str) -> Fault | None:
        """The fault of this call, counted as used; None for a call that is left alone."""
        with self._lock:
            for index, fault in enumerate(self._faults):
                if fault.rpc in {"*", rpc} and self._dice.random() < fault.probability:
                    self._use(index, fault)
                    return fault
        return None

    def _use(self, index: int, fault: Fault) -> None:
        if fault.times == 1:
            del self._faults[index]
        elif fault.times is not None:
            self._faults[index] = replace(fault, times=fault.times - 1)
