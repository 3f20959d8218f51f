"""What a stranger wrote, an org or a method, stays within the one line that it belongs to."""

from __future__ import annotations

import io
import json
import logging
from typing import TYPE_CHECKING

import pytest

from fairlease.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = "a\nb\r\x1b[2J\x9b\x00\u2028\u202e\ud800é"


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(*, as_json: bool) -> list[str]:
    """As it reaches a UTF-8 stream."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    configure_logs(as_json=as_json, stream=stream)
    logging.getLogger("fairlease.test").warning("said %s", HOSTILE, extra={"org": HOSTILE})
    error = ValueError(f"no\n09:00:00.000 error   forged {HOSTILE}")
    logging.getLogger("fairlease.test").error("failed", exc_info=error)
    return raw.getvalue().decode().splitlines()


def test_a_line_of_text_cannot_be_begun_or_hidden_by_what_it_quotes(root: logging.Logger) -> None:
    first, second, *traceback = logged(as_json=False)
    assert first.count(r"a\nb\r\x1b[2J\x9b\x00\u2028\u202e\ud800é") == 2
    assert second.endswith("failed")
    assert any("forged" in line for line in traceback)
    assert all(line.startswith("  ") for line in traceback)


def test_a_line_of_json_is_one_line_and_says_what_was_written(root: logging.Logger) -> None:
    first, second = logged(as_json=True)
    assert json.loads(first)["org"] == HOSTILE
    assert "forged" in json.loads(second)["traceback"]
