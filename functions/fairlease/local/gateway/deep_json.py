"""JSON nested deeper than the recursive parser of the standard library goes.

Postgres takes thousands of levels. What is needed here is that the text is valid, and the shape of
its two outer levels.
"""

from __future__ import annotations

import json
import re
from typing import Any

_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
      (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")
    | (?P<scalar>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)
    | (?P<mark>[\[\]{}:,])
    )""",
    re.VERBOSE,
)
_BLANK = re.compile(r"[ \t\n\r]*")

# What may come next, by the token just read; `end` closes the container.
_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COLON, _COMMA_OR_END, _NOTHING = range(7)


def outer_shape(text: str) -> Any:
    """An object with its names, or an array of such, all values cut to None. Raises ValueError."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str] = []
        self._root: Any = None
        self._next = _VALUE

    def scan(self) -> Any:
        while self._next != _NOTHING:
            match = _TOKEN.match(self._text, self._position)
            if match is None:
                raise self._error()
            self._position = match.end()
            found = match[match.lastgroup or 0]
            if match.lastgroup == "mark":
                self._mark(found)
            elif match.lastgroup == "string" and self._next in {_KEY, _KEY_OR_END}:
                self._keys.append(json.loads(found))
                self._next = _COLON
            else:
                self._value(None)
        if _BLANK.fullmatch(self._text, self._position) is None:
            raise self._error()
        return self._root

    def _mark(self, found: str) -> None:
        if found in "[{":
            container: dict[str, Any] | list[Any] = {} if found == "{" else []
            self._value(container)
            self._open.append(container)
            self._next = _KEY_OR_END if found == "{" else _VALUE_OR_END
        elif found in "]}":
            self._close(found)
        elif found == ":" and self._next == _COLON:
            self._next = _VALUE
        elif found == "," and self._next == _COMMA_OR_END:
            self._next = _KEY if isinstance(self._open[-1], dict) else _VALUE
        else:
            raise self._error()

    def _value(self, value: Any) -> None:
        if self._next not in {_VALUE, _VALUE_OR_END}:
            raise self._error()
        if not self._open:
            self._root = value
            self._next = _NOTHING
            return
        parent, is_outermost = self._open[-1], len(self._open) == 1
        if isinstance(parent, dict):
            parent[self._keys.pop()] = None
        elif is_outermost:
            parent.append(value)
        self._next = _COMMA_OR_END

    def _close(self, found: str) -> None:
        expected = {_COMMA_OR_END, _KEY_OR_END if found == "}" else _VALUE_OR_END}
        if not self._open or self._next not in expected:
            raise self._error()
        if isinstance(self._open.pop(), dict) != (found == "}"):
            raise self._error()
        self._next = _COMMA_OR_END if self._open else _NOTHING

    def _error(self) -> ValueError:
        return ValueError(f"not JSON at character {self._position}")
