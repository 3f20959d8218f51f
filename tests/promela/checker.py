"""Run `spin` over seats.pml: generate the checker, compile it, search every state."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MODEL = Path(__file__).with_name("seats.pml")
MAX_DEPTH = 30_000_000


@dataclass(frozen=True)
class Variant:
    """One set of -D flags. `expected` is a part of the assertion that must fail; "" for none."""

    name: str
    flags: tuple[str, ...]
    expected: str = ""
    large: bool = False


@dataclass(frozen=True)
class Search:
    """What the checker says. `violation` is the failed assertion or "invalid end state"."""

    states: int
    seconds: float
    violation: str
    exhaustive: bool

    def agrees_with(self, variant: Variant) -> bool:
        if variant.expected:
            return variant.expected in self.violation
        return not self.violation and self.exhaustive


def missing_tools() -> list[str]:
    return [tool for tool in ("spin", "cc") if shutil.which(tool) is None]


def search(variant: Variant, folder: Path, timeout_seconds: float = 900) -> Search:
    """Explore `variant` in `folder`. Raises CalledProcessError if the model does not compile."""
    flags = [f"-D{flag}" for flag in variant.flags]
    _run(["spin", "-a", *flags, str(MODEL)], folder, 60)
    # A small search ends before an optimising compiler would.
    optimise = "-O2" if variant.large else "-O0"
    _run(["cc", optimise, "-w", "-DSAFETY", "-o", "pan", "pan.c"], folder, 120)
    depth = MAX_DEPTH if variant.large else MAX_DEPTH // 10
    output = _run(["./pan", f"-m{depth}", "-w24"], folder, timeout_seconds)
    return _read(output)


def _run(command: list[str], folder: Path, timeout_seconds: float) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=timeout_seconds, check=False
    )
    output = done.stdout + done.stderr
    if done.returncode != 0 or "Error:" in output:
        raise RuntimeError(f"{' '.join(command)} failed:\n{output[-2000:]}")
    return output


def _read(output: str) -> Search:
    states = re.search(r"^\s*([\d.e+]+) states, stored", output, re.MULTILINE)
    seconds = re.search(r"elapsed time ([\d.e+]+)", output)
    violation = re.search(r"pan:1: (?:assertion violated )?(.*?) \(at depth", output)
    if states is None:
        raise RuntimeError(f"the checker printed no count of states:\n{output[-2000:]}")
    return Search(
        states=int(float(states[1])),
        seconds=float(seconds[1]) if seconds else 0.0,
        violation=violation[1].strip() if violation else "",
        exhaustive="max search depth too small" not in output and "out of memory" not in output,
    )
