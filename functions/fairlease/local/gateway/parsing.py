"""Parser combinators whose error texts are those of Haskell's Parsec, which clients get to see.

A parser is a function from text and position to a `Result`. What makes Parsec's messages is kept:
alternatives are only tried where nothing was consumed, the errors of what was tried are merged, and
a label replaces what was expected at the place where it starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Kinds of messages, in the order in which they are shown.
_FOUND, _UNEXPECTED, _EXPECTED = range(3)

Message = tuple[int, str]


@dataclass(frozen=True)
class Failure:
    """What is known about a place where parsing stopped, or could have."""

    position: int
    messages: tuple[Message, ...] = ()

    def merge(self, other: Failure) -> Failure:
        if self.messages and not other.messages:
            return self
        if other.messages and not self.messages:
            return other
        if self.position != other.position:
            return max(self, other, key=lambda each: each.position)
        return Failure(self.position, self.messages + other.messages)

    def expecting(self, label: str) -> Failure:
        others = tuple(each for each in self.messages if each[0] != _EXPECTED)
        return Failure(self.position, ((_EXPECTED, label), *others))

    def details(self) -> str:
        """All on one line, as PostgREST puts it into `details`."""
        unexpected = self._texts(_UNEXPECTED)
        parts = [f"unexpected {_listed(unexpected)}"] if unexpected else []
        found = [text for kind, text in self.messages if kind == _FOUND]
        if found and not unexpected:
            parts.append(f"unexpected {found[0] or 'end of input'}")
        expected = self._texts(_EXPECTED)
        if expected:
            parts.append(f"expecting {_listed(expected)}")
        return " ".join(parts) or "unknown parse error"

    def _texts(self, kind: int) -> list[str]:
        return list(dict.fromkeys(text for each, text in self.messages if each == kind and text))


@dataclass(frozen=True)
class Result:
    """`position` None: failed. `failure` is kept on success too: it may explain a later one."""

    position: int | None
    value: Any
    consumed: bool
    failure: Failure


class ParseError(Exception):
    """`message` tells the place, `details` what was expected there."""

    def __init__(self, name: str, text: str, failure: Failure) -> None:
        line, column = _place(text, failure.position)
        self.message = f'"{name}" (line {line}, column {column})'
        self.details = failure.details()
        super().__init__(self.message)


class P:
    """A parser; `>>` keeps the right value, `<<` the left one, `|` is choice."""

    def __init__(self, run: Callable[[str, int], Result]) -> None:
        self.run = run

    def parse(self, name: str, text: str) -> Any:
        result = self.run(text, 0)
        if result.position is None:
            raise ParseError(name, text, result.failure)
        return result.value

    def bind(self, following: Callable[[Any], P]) -> P:
        def run(text: str, position: int) -> Result:
            first = self.run(text, position)
            if first.position is None:
                return first
            second = following(first.value).run(text, first.position)
            failure = second.failure if second.consumed else first.failure.merge(second.failure)
            consumed = first.consumed or second.consumed
            return Result(second.position, second.value, consumed, failure)

        return P(run)

    def map(self, change: Callable[[Any], Any]) -> P:
        def run(text: str, position: int) -> Result:
            result = self.run(text, position)
            if result.position is None:
                return result
            return Result(result.position, change(result.value), result.consumed, result.failure)

        return P(run)

    def __rshift__(self, other: P) -> P:
        return self.bind(lambda _: other)

    def __lshift__(self, other: P) -> P:
        return self.bind(lambda value: other.map(lambda _: value))

    def __or__(self, other: P) -> P:
        def run(text: str, position: int) -> Result:
            first = self.run(text, position)
            if first.position is not None or first.consumed:
                return first
            second = other.run(text, position)
            if second.consumed:
                return second
            failure = first.failure.merge(second.failure)
            return Result(second.position, second.value, consumed=False, failure=failure)

        return P(run)

    def label(self, name: str) -> P:
        def run(text: str, position: int) -> Result:
            result = self.run(text, position)
            if result.consumed or (result.position is not None and not result.failure.messages):
                return result
            failure = result.failure.expecting(name)
            return Result(result.position, result.value, consumed=False, failure=failure)

        return P(run)


def pure(value: Any) -> P:
    return P(lambda _, position: Result(position, value, consumed=False, failure=Failure(position)))


def nothing() -> P:
    """Fails without a word."""
    return P(lambda _, position: Result(None, None, consumed=False, failure=Failure(position)))


def attempt(parser: P) -> P:
    """On failure nothing counts as consumed, so that an alternative is tried."""

    def run(text: str, position: int) -> Result:
        result = parser.run(text, position)
        if result.position is not None:
            return result
        return Result(None, None, consumed=False, failure=result.failure)

    return P(run)


def ahead(parser: P) -> P:
    """Succeeds where `parser` would, and stays where it is."""

    def run(text: str, position: int) -> Result:
        result = parser.run(text, position)
        if result.position is None:
            return result
        return Result(position, result.value, consumed=False, failure=Failure(position))

    return P(run)


def not_followed_by(parser: P) -> P:
    """`parser` reads one character, after which the failure is told."""

    def run(text: str, position: int) -> Result:
        result = parser.run(text, position)
        if result.position is None:
            return Result(position, None, consumed=False, failure=Failure(position))
        return _unexpected(result.value, result.position)

    return P(run)


def _end(text: str, position: int) -> Result:
    if position < len(text):
        return _unexpected(text[position], position)
    return Result(position, None, consumed=False, failure=Failure(position))


def _unexpected(letter: str, position: int) -> Result:
    failure = Failure(position, ((_UNEXPECTED, shown_letter(letter)),))
    return Result(None, None, consumed=False, failure=failure)


def satisfy(accepts: Callable[[str], bool]) -> P:
    """One character."""

    def run(text: str, position: int) -> Result:
        if position < len(text) and accepts(text[position]):
            after = position + 1
            return Result(after, text[position], consumed=True, failure=Failure(after))
        return Result(None, None, consumed=False, failure=_found(text, position))

    return P(run)


def char(wanted: str) -> P:
    return satisfy(lambda found: found == wanted).label(shown(wanted))


def string(wanted: str) -> P:
    """A failure in the middle has consumed, and is told where the string starts."""

    def run(text: str, position: int) -> Result:
        for offset, letter in enumerate(wanted):
            if text[position + offset : position + offset + 1] != letter:
                failure = Failure(position, _found(text, position + offset).messages)
                return Result(None, None, offset > 0, failure.expecting(shown(wanted)))
        after = position + len(wanted)
        return Result(after, wanted, consumed=True, failure=Failure(after))

    return P(run)


def many(parser: P) -> P:
    def run(text: str, position: int) -> Result:
        values: list[Any] = []
        while True:
            result = parser.run(text, position)
            if result.position is None:
                if result.consumed:
                    return result
                # Parsec forgets here what the last one that fitted had still expected.
                return Result(position, values, bool(values), result.failure)
            values.append(result.value)
            position = result.position

    return P(run)


def many1(parser: P) -> P:
    return parser.bind(lambda first: many(parser).map(lambda rest: [first, *rest]))


def text_of(parser: P) -> P:
    return parser.map("".join)


def optional(parser: P, default: Any = None) -> P:
    return parser | pure(default)


def separated1(parser: P, separator: P) -> P:
    following = many(separator >> parser)
    return parser.bind(lambda first: following.map(lambda rest: [first, *rest]))


def separated(parser: P, separator: P) -> P:
    return separated1(parser, separator) | pure([])


def one_of(letters: str) -> P:
    return satisfy(lambda found: found in letters)


def none_of(letters: str) -> P:
    return satisfy(lambda found: found not in letters)


def lazy(make: Callable[[], P]) -> P:
    return P(lambda text, position: make().run(text, position))


LETTER = satisfy(str.isalpha).label("letter")
DIGIT = satisfy(lambda found: found in "0123456789").label("digit")
ANY_CHARACTER = satisfy(lambda _: True)
END = P(_end).label("end of input")


def shown(text: str) -> str:
    """As Haskell shows a string."""
    escaped = "".join(_escaped(letter, quote='"') for letter in text)
    return f'"{escaped}"'


def shown_letter(letter: str) -> str:
    """As Haskell shows a character."""
    escaped = _escaped(letter, quote="'")
    return f"'{escaped}'"


def _escaped(letter: str, quote: str) -> str:
    if letter in {quote, "\\"}:
        return f"\\{letter}"
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x7f": "\\DEL"}
    if letter in named:
        return named[letter]
    return letter if " " <= letter <= "~" else f"\\{ord(letter)}"


def _found(text: str, position: int) -> Failure:
    letter = text[position : position + 1]
    return Failure(position, ((_FOUND, shown(letter) if letter else ""),))


def _listed(texts: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _place(text: str, position: int) -> tuple[int, int]:
    line, column = 1, 1
    for letter in text[:position]:
        if letter == "\n":
            line, column = line + 1, 1
        elif letter == "\t":
            column += 8 - (column - 1) % 8
        else:
            column += 1
    return line, column
