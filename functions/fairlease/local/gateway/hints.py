"""The nearest known name, as PostgREST finds it: first by common letter groups, then by edits."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_GRAM_SIZES = (3, 2)
_CONSIDERED = 50


def nearest(candidates: Iterable[str], wanted: str, lowest_score: float) -> str | None:
    """The best candidate above `lowest_score` (0 to 1), None if there is none."""
    by_key: dict[str, str] = {}
    for candidate in candidates:
        by_key.setdefault(candidate.lower(), candidate)
    key = wanted.lower()
    if key in by_key:
        return by_key[key]
    for size in _GRAM_SIZES:
        shared = sorted(
            ((_cosine(_grams(key, size), _grams(other, size)), other) for other in by_key),
            key=lambda match: -match[0],
        )
        considered = [other for cosine, other in shared[:_CONSIDERED] if cosine > 0]
        scored = [(_similarity(key, other), other) for other in considered]
        good = [match for match in scored if match[0] > lowest_score]
        if good:
            return by_key[max(good, key=lambda match: match[0])[1]]
    return None


def _grams(text: str, size: int) -> Counter[str]:
    letters = "".join(letter for letter in text if letter.isalnum() or letter in " ,_")
    enclosed = f"-{letters}-"
    return Counter(enclosed[start : start + size] for start in range(len(enclosed) - size + 1))


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    common = sum(count * other[gram] for gram, count in one.items())
    return common / (math.sqrt(_square(one) * _square(other)) or 1.0)


def _square(grams: Counter[str]) -> int:
    return sum(count * count for count in grams.values())


def _similarity(one: str, other: str) -> float:
    return 1.0 - _edits(one, other) / (max(len(one), len(other)) or 1)


def _edits(one: str, other: str) -> int:
    """Levenshtein distance."""
    row = list(range(len(other) + 1))
    for index, letter in enumerate(one, 1):
        fresh = [index]
        for position, (diagonal, above) in enumerate(pairwise(row), 1):
            change = diagonal + (letter != other[position - 1])
            fresh.append(min(change, above + 1, fresh[-1] + 1))
        row = fresh
    return row[-1]
