"""The command line, called in the test's own process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from fairlease.cli.main import run


@dataclass(frozen=True)
class Answer:
    returncode: int
    stdout: str
    stderr: str


Cli = Callable[..., Answer]


def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: object, url: str = "") -> Answer:
        monkeypatch.setenv("FAIRLEASE_DATABASE_URL", url)
        monkeypatch.setattr(sys, "argv", ["fairlease", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            run()
        out, err = capsys.readouterr()
        return Answer(int(ended.value.code or 0), out, err)

    return call
