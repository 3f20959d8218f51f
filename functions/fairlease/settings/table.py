"""The knobs as a table for people and as JSON for the chart, both from the annotations."""

from __future__ import annotations

from typing import Any

from fairlease.settings.knobs import env_of, knob_table

_INTRO = """\
# Knobs

Written by `fairlease settings --markdown`; edit `functions/fairlease/settings/knobs.py` instead.

A knob is read from the environment, then from `[knobs]` in the function's `function.toml` (in
lower case, without the prefix), then its fallback applies. A knob never stops a worker: a value
that cannot be taken is replaced, and the replacement is an issue that `fairlease doctor` and
`/readyz` show. An empty, unparseable or fractional value gives the fail-safe, or the fallback
where there is none; a value below the range gives the fail-safe or the minimum; a value above it
gives the fail-safe or the fallback. None of these ever gives more than leaving the knob out.

| variable | range | fallback | fail-safe | unit | what it does |
| --- | --- | --- | --- | --- | --- |
"""


def as_markdown() -> str:
    """The whole page, docs/settings.md."""
    return _INTRO + "".join(_row(entry) for entry in as_json())


def as_json() -> list[dict[str, Any]]:
    """One object per knob; `maximum` null has no upper bound, or is derived where it says so."""
    return [
        {
            "name": name,
            "camel": _camel(name),
            "env": env_of(name),
            "alias": knob.alias,
            "minimum": knob.minimum,
            "maximum": knob.maximum,
            "fallback": knob.fallback,
            "fail_safe": knob.fail_safe,
            "derived": knob.bounded_by_lifetime,
            "per_function": not knob.of_isolate,
            "unit": knob.unit,
            "sentence": knob.sentence,
        }
        for name, knob in knob_table().items()
    ]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _row(entry: dict[str, Any]) -> str:
    env = f"`{entry['env']}`" + (f" (or `{entry['alias']}`)" if entry["alias"] else "")
    top = "the fallback" if entry["derived"] else entry["maximum"]
    span = f"{entry['minimum']} or more" if top is None else f"{entry['minimum']} to {top}"
    fallback = entry["fallback"]
    if entry["derived"]:
        fallback = f"max({entry['minimum']}, lifetime in s - 150); {fallback} at 400 s"
    safe = "" if entry["fail_safe"] is None else entry["fail_safe"]
    return f"| {env} | {span} | {fallback} | {safe} | {entry['unit']} | {entry['sentence']} |\n"
