"""Prints the map rule -> test -> planted fault, and whether the fault turns the test red.

`python -m tests.drain.rules` (`make rules`): each test is run as it is, which must pass, and once
for each fault, in a process of its own whose import of the file finds the fault planted. With
`--write` the map goes to docs/rules.md too.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import sys
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .faults.every import FAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

    from .faults.fault import Fault

ROOT = Path(__file__).parent.parent.parent
FUNCTIONS = ROOT / "functions"
PAGE = ROOT / "docs" / "rules.md"
RULES = tuple(f"D{number}" for number in range(1, 33))
LONGEST_SECONDS = 30
PASSED, FAILED = 0, 1
# No other plugins; and what takes long to import is there before the first child is made.
PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "no:cacheprovider")
PRELOADED = ("pydantic_settings", "pydantic.networks", "asyncio", "_pytest.assertion.rewrite")


class Planter(importlib.abc.MetaPathFinder):
    """Finds one module with an edit in its source; everything else is found as ever."""

    def __init__(self, fault: Fault) -> None:
        self.module = fault.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        self.fault = fault

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.module:
            return None
        path = FUNCTIONS / self.fault.file
        loader = Planted(name, str(path))
        loader.fault = self.fault
        return importlib.util.spec_from_file_location(name, path, loader=loader)


class Planted(importlib.machinery.SourceFileLoader):
    """Compiles the edited source, and never a cached file of the real one."""

    fault: Fault

    def get_code(self, _name: str) -> CodeType:
        source = planted(self.fault)
        return compile(source, self.path, "exec", dont_inherit=True)


def planted(fault: Fault) -> str:
    """The source with the fault. Raises `LookupError` where its place is not found once."""
    source = (FUNCTIONS / fault.file).read_text(encoding="utf-8")
    if source.count(fault.before) != 1:
        raise LookupError(
            f"{fault.rule}: {fault.before!r} stands {source.count(fault.before)} times in "
            f"{fault.file}; update the fault"
        )
    return source.replace(fault.before, fault.after)


def verdict(tests: Sequence[str], fault: Fault | None) -> int:
    """Pytest's exit code for these tests, in a child that has not imported the engine yet."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    if fault is not None:
        sys.meta_path.insert(0, Planter(fault))
    needs_fixtures = any(not test.startswith("tests/drain/") for test in tests)
    options = ["-q", "-x", "--no-header", "--timeout", str(LONGEST_SECONDS)]
    options += [word for plugin in PLUGINS for word in ("-p", plugin)]
    options += () if needs_fixtures else ("--noconftest",)
    code = -1
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
        try:
            code = int(pytest.main([*options, *tests]))
        except BaseException:  # noqa: BLE001 - a child must end here, and say why
            traceback.print_exc(file=said)
        finally:
            if fault is None and code != PASSED:
                sys.__stdout__.write(said.getvalue())
                sys.__stdout__.flush()
            os._exit(code if code >= 0 else FAILED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rule", help="only this one")
    parser.add_argument("--write", action="store_true", help="write docs/rules.md")
    asked = parser.parse_args()
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in PRELOADED:
        importlib.import_module(name)
    chosen = [fault for fault in FAULTS if asked.rule in (None, fault.rule)]
    started = time.monotonic()
    tests = sorted({fault.test for fault in chosen})
    if verdict(tests, None) != PASSED:
        print("the tests do not pass as they are; no fault was planted")
        return 1
    survivors = 0
    for fault in chosen:
        planted(fault)
        red = verdict([fault.test], fault) == FAILED
        survivors += not red
        name = fault.test.rsplit("::", 1)[1]
        print(f"{'red  ' if red else 'GREEN'} {fault.rule:5} {name}\n            <- {fault.what}")
        sys.stdout.flush()
    missing = [rule for rule in RULES if not any(f.rule == rule for f in FAULTS)]
    print(
        f"{len(chosen)} faults in {len(tests)} tests of "
        f"{len({f.rule for f in chosen})} rules: {len(chosen) - survivors} red, "
        f"{survivors} survive; rules without a test: {', '.join(missing) or 'none'} "
        f"({time.monotonic() - started:.0f} s)"
    )
    if asked.write:
        PAGE.write_text(as_markdown(), encoding="utf-8")
    return 1 if survivors or missing else 0


def as_markdown() -> str:
    """The page docs/rules.md: the map as a table."""
    rows = "".join(
        f"| {fault.rule} | `{fault.test.rsplit('::', 1)[1]}` | {fault.what} |\n" for fault in FAULTS
    )
    return (
        "# The rules of the drain engine, their tests, and faults that turn them red\n\n"
        "Written by `python -m tests.drain.rules --write`, which plants every fault in memory and\n"
        "runs its test; `make rules` does the same without writing. A fault that leaves its test\n"
        "green fails the command. D28 and D32 are kept by the host and by the bundled function.\n\n"
        f"| rule | test | planted fault |\n| --- | --- | --- |\n{rows}"
    )


if __name__ == "__main__":
    sys.exit(main())
