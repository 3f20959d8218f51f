"""From what was written to what is in effect: environment, then function.toml, then fallback."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairlease.settings.cross_checks import cross_check, heartbeat_issues, without_heartbeats
from fairlease.settings.issues import IssueKind, KnobIssue, printable
from fairlease.settings.knobs import PREFIX, Knobs, env_of, knob_table
from fairlease.settings.reading import Given, rejection, taken_instead, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LIFETIME = "isolate_lifetime_ms"
_SIMILAR = 0.85


@dataclass(frozen=True, slots=True)
class Settings:
    """The knobs in effect and every deviation from what was asked for.

    `given` names the knobs that somebody wrote, taken or not.
    """

    knobs: Knobs
    issues: tuple[KnobIssue, ...] = ()
    given: frozenset[str] = field(default_factory=frozenset)

    @property
    def visibility_set(self) -> bool:
        return "visibility_timeout_seconds" in self.given

    def without_heartbeats(self) -> Settings:
        """These settings on a database without `heartbeat_org_slot`, with the issues of it."""
        changed = without_heartbeats(self.knobs, self.visibility_set)
        issues = (*self.issues, *heartbeat_issues(self.knobs, changed))
        return replace(self, knobs=changed, issues=issues)


def load_settings(
    environ: Mapping[str, str], function_knobs: Mapping[str, object] | None = None
) -> Settings:
    """The knobs from `environ` and the `[knobs]` of a function; never raises for a value.

    A knob of `function_knobs` that does not exist, or that belongs to the whole process, is an
    issue and nothing else.
    """
    function_knobs = function_knobs or {}
    written = _written(environ, function_knobs)
    knobs, issues = _in_effect(written)
    issues += _misplaced(environ, function_knobs, knobs)
    given = frozenset(name for name, places in written.items() if places)
    return Settings(knobs=knobs, issues=tuple(issues), given=given)


def _written(
    environ: Mapping[str, str], function_knobs: Mapping[str, object]
) -> dict[str, list[Given]]:
    """For each knob the places where it is written, the one that wins first."""
    found: dict[str, list[Given]] = {}
    for name, knob in knob_table().items():
        variables = [env_of(name), *([knob.alias] if knob.alias else [])]
        places = [Given(env, environ[env], env) for env in variables if env in environ]
        if name in function_knobs and not knob.of_isolate:
            place = f"function.toml: {name}"
            places.append(Given(env_of(name), function_knobs[name], place))
        found[name] = places
    return found


def _in_effect(written: Mapping[str, Sequence[Given]]) -> tuple[Knobs, list[KnobIssue]]:
    table = knob_table()
    values: dict[str, int] = {}
    rejected: dict[str, IssueKind] = {}
    # The lifetime first: the range of the run budget derives from it.
    for name in sorted(table, key=lambda name: name != _LIFETIME):
        lifetime_ms = values.get(_LIFETIME, table[_LIFETIME].fallback)
        values[name], why = _one_value(name, written[name], lifetime_ms)
        if why is not None:
            rejected[name] = why
    if rejected:
        _narrow_to_absence(values, written, rejected)
    asked_for = {name for name, places in written.items() if places and name not in rejected}
    knobs, issues = cross_check(Knobs(**values), asked_for)
    complaints = [
        _rejection_issue(name, written[name][0], kind, knobs) for name, kind in rejected.items()
    ]
    return knobs, complaints + issues


def _one_value(
    name: str, places: Sequence[Given], lifetime_ms: int
) -> tuple[int, IssueKind | None]:
    knob = knob_table()[name]
    if not places:
        return knob.fallback_at(lifetime_ms), None
    why = rejection(knob, places[0].raw, lifetime_ms)
    if why is not None:
        return taken_instead(knob, why, lifetime_ms), why
    value = whole_number(places[0].raw)
    assert isinstance(value, int)  # noqa: S101 - `rejection` looked at it
    return value, None


def _narrow_to_absence(
    values: dict[str, int],
    written: Mapping[str, Sequence[Given]],
    rejected: Mapping[str, IssueKind],
) -> None:
    """A rejected value never gives more than leaving it out would have given."""
    left_out = {n: places[1:] if n in rejected else places for n, places in written.items()}
    absent, _ = _in_effect(left_out)
    for name, knob in knob_table().items():
        if knob.widens:
            values[name] = min(values[name], getattr(absent, name))


def _rejection_issue(name: str, given: Given, kind: IssueKind, knobs: Knobs) -> KnobIssue:
    knob = knob_table()[name]
    raw, effective = printable(given.raw), getattr(knobs, name)
    maximum = knob.maximum_at(knobs.isolate_lifetime_ms)
    allowed = f"{knob.minimum} or more" if maximum is None else f"{knob.minimum} to {maximum}"
    message = (
        f"{given.place}={raw!r} is {_WHY[kind]}; using {effective}; give a whole number, "
        f"{allowed} ({knob.unit})"
    )
    return KnobIssue(given.env, raw, effective, kind, message)


_WHY = {
    IssueKind.EMPTY: "empty",
    IssueKind.UNPARSEABLE: "not a number",
    IssueKind.FRACTIONAL: "not a whole number",
    IssueKind.NAN: "not a number",
    IssueKind.BELOW: "below the range",
    IssueKind.ABOVE: "above the range",
}


def _misplaced(
    environ: Mapping[str, str], function_knobs: Mapping[str, object], knobs: Knobs
) -> list[KnobIssue]:
    """Knobs that nobody reads: misspelled ones, and those of the process in a function's file."""
    table = knob_table()
    issues = []
    for env, raw in environ.items():
        if not env.startswith(PREFIX):
            continue
        written = env.removeprefix(PREFIX).lower()
        near = difflib.get_close_matches(written, table, n=1, cutoff=_SIMILAR)
        if written not in table and near:
            issues.append(_unread(env, raw, near[0], knobs, IssueKind.UNKNOWN))
    for name, value in function_knobs.items():
        if name not in table:
            near = difflib.get_close_matches(str(name), table, n=1, cutoff=0)
            issues.append(_unread(str(name), value, near[0], knobs, IssueKind.UNKNOWN))
        elif table[name].of_isolate:
            issues.append(_unread(name, value, name, knobs, IssueKind.IGNORED))
    return issues


def _unread(written: str, raw: object, name: str, knobs: Knobs, kind: IssueKind) -> KnobIssue:
    effective, env = getattr(knobs, name), env_of(name)
    why = (
        "belongs to the whole process, not to a function"
        if kind is IssueKind.IGNORED
        else "is no knob"
    )
    message = f"{printable(written)} {why} and is not read; set {env} (in effect: {effective})"
    return KnobIssue(env, printable(raw), effective, kind, message)
