"""The rules of every knob, by shape: nothing here names what a single knob should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlease.settings import IssueKind, Knobs, env_of, knob_table, load_settings

TABLE = knob_table()
NAMES = list(TABLE)
WIDENING = [name for name, knob in TABLE.items() if knob.widens]
ABSENT = load_settings({}).knobs
names = st.sampled_from(NAMES)

NOT_NUMBERS = st.sampled_from(
    ["", "  ", "abc", "180.5", "4.0", "1e3", "nan", "NaN", "inf", "-inf", "true", "off", "0x10"]
) | st.sampled_from(["1_000", "٤", "4 4", "--4", "4;", "None", "null", "\x00", "\udcff"])
TOML_JUNK = st.sampled_from([True, False, 4.0, 4.5, float("nan"), [], {}, None, "", "x"])


def maximum_of(name: str) -> int | None:
    return TABLE[name].maximum_at(ABSENT.isolate_lifetime_ms)


def replacement(name: str, kind: IssueKind) -> int:
    knob = TABLE[name]
    if knob.fail_safe is not None:
        return knob.fail_safe
    return knob.minimum if kind is IssueKind.BELOW else getattr(ABSENT, name)


def rejected_value(knobs: Knobs, name: str, kind: IssueKind) -> None:
    """Asserts that `name` holds what the rules give for `kind`, apart from cross checks."""
    assert getattr(knobs, name) == replacement(name, kind)


def test_absence_of_every_knob_is_no_issue() -> None:
    assert load_settings({}).issues == ()


@given(name=names, data=st.data())
def test_a_value_in_range_is_taken_and_is_no_issue_of_its_own(
    name: str, data: st.DataObject
) -> None:
    knob = TABLE[name]
    top = maximum_of(name) or knob.minimum * 10
    value = data.draw(st.integers(knob.minimum, top))
    settings = load_settings({env_of(name): f" {value}\n"})
    if settings.issues:
        assert all(issue.kind not in REJECTIONS for issue in settings.issues)
    else:
        assert getattr(settings.knobs, name) == value


REJECTIONS = {
    IssueKind.EMPTY,
    IssueKind.UNPARSEABLE,
    IssueKind.FRACTIONAL,
    IssueKind.NAN,
    IssueKind.BELOW,
    IssueKind.ABOVE,
}


@given(name=names, raw=NOT_NUMBERS)
def test_what_is_no_whole_number_gives_the_fail_safe_or_the_fallback(name: str, raw: str) -> None:
    settings = load_settings({env_of(name): raw})
    [issue] = [i for i in settings.issues if i.kind in REJECTIONS]
    rejected_value(settings.knobs, name, issue.kind)
    assert (issue.env, issue.effective) == (env_of(name), getattr(settings.knobs, name))
    assert issue.kind not in {IssueKind.BELOW, IssueKind.ABOVE}


@given(name=names, distance=st.integers(1, 10**30))
def test_below_the_range_gives_the_fail_safe_or_the_minimum(name: str, distance: int) -> None:
    settings = load_settings({env_of(name): str(TABLE[name].minimum - distance)})
    rejected_value(settings.knobs, name, IssueKind.BELOW)
    assert IssueKind.BELOW in {i.kind for i in settings.issues}


@given(name=names, distance=st.integers(1, 10**30))
def test_above_the_range_gives_the_fail_safe_or_the_fallback_never_the_maximum(
    name: str, distance: int
) -> None:
    top = maximum_of(name)
    if top is None:
        return
    settings = load_settings({env_of(name): str(top + distance)})
    rejected_value(settings.knobs, name, IssueKind.ABOVE)
    assert [i.kind for i in settings.issues] == [IssueKind.ABOVE]


@pytest.mark.parametrize("name", NAMES)
def test_a_number_of_thousands_of_digits_is_out_of_range_and_not_an_error(name: str) -> None:
    for raw in ("9" * 6000, "-" + "9" * 6000):
        knobs = load_settings({env_of(name): raw}).knobs
        assert TABLE[name].minimum <= getattr(knobs, name)


texts = st.text(max_size=6) | NOT_NUMBERS | st.integers(-10, 10**7).map(str)


@given(
    environ=st.dictionaries(st.sampled_from([env_of(n) for n in NAMES]), texts),
    in_file=st.dictionaries(names | st.text(max_size=4), TOML_JUNK | st.integers()),
)
def test_no_rejected_value_gives_more_than_its_absence(
    environ: dict[str, str], in_file: dict[str, object]
) -> None:
    loaded = load_settings(environ, in_file)
    rejected = {i.env for i in loaded.issues if i.kind in REJECTIONS}
    kept_environ = {env: raw for env, raw in environ.items() if env not in rejected}
    blamed = {n for n in NAMES if env_of(n) in rejected and env_of(n) not in environ}
    kept_file = {n: v for n, v in in_file.items() if n not in blamed}
    absent = load_settings(kept_environ, kept_file).knobs
    for name in WIDENING:
        assert getattr(loaded.knobs, name) <= getattr(absent, name), name


@given(st.dictionaries(st.sampled_from([env_of(n) for n in NAMES]), texts))
def test_whatever_is_written_every_knob_ends_within_its_range(environ: dict[str, str]) -> None:
    knobs = load_settings(environ).knobs
    for name, knob in TABLE.items():
        top = knob.maximum_at(knobs.isolate_lifetime_ms)
        assert knob.minimum <= getattr(knobs, name)
        assert top is None or getattr(knobs, name) <= top


def test_a_knob_whose_fallback_is_its_most_permissive_end_has_a_fail_safe() -> None:
    for name in WIDENING:
        top = maximum_of(name)
        if top is not None and getattr(ABSENT, name) >= top:
            assert TABLE[name].fail_safe is not None, name


@given(name=names, junk=TOML_JUNK)
def test_a_bad_value_in_function_toml_is_an_issue_and_fails_safe(name: str, junk: object) -> None:
    settings = load_settings({}, {name: junk})
    assert settings.issues
    if not TABLE[name].of_isolate:
        rejected_value(settings.knobs, name, IssueKind.UNPARSEABLE)
