"""What stands between quotes is data for every text and in every session, asked of Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlease.cron.quoting import dollar_quoted, literal
from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

# Surrogates alone are no text, and Postgres has no NUL.
_ANY = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
TEXTS = st.text(_ANY, max_size=40) | st.text("$'\\_pokeE\n;-", max_size=40)


@pytest.fixture(scope="module")
def session(module_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(module_database, autocommit=True) as connected:
        yield connected


def read_back(session: psycopg.Connection, quoted: str, *, standard: bool) -> str:
    session.execute(f"set standard_conforming_strings = {'on' if standard else 'off'}")
    session.execute("set escape_string_warning = off")
    row = session.execute(f"select {quoted}".encode()).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize("standard", [True, False])
@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_a_literal_is_its_text(session: psycopg.Connection, text: str, standard: bool) -> None:
    assert read_back(session, literal(text), standard=standard) == text


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
@example(text="a $poke$ b")
@example(text="$poke")
def test_a_dollar_quoted_text_is_its_text(session: psycopg.Connection, text: str) -> None:
    assert read_back(session, dollar_quoted(text, "poke"), standard=True) == text


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_a_literal_within_quoted_code_is_its_text(session: psycopg.Connection, text: str) -> None:
    code = read_back(session, dollar_quoted(f"select {literal(text)}", "poke"), standard=True)
    row = session.execute(code.encode()).fetchone()
    assert row == (text,)


def test_the_tag_grows_where_the_text_could_end_it() -> None:
    assert dollar_quoted("$poke", "poke") == "$poke_$$poke$poke_$"
    assert dollar_quoted("a $poke$ b $poke_$", "poke").startswith("$poke__$")


def test_a_nul_is_refused() -> None:
    for quote in (literal, lambda text: dollar_quoted(text, "poke")):
        with pytest.raises(InvalidInput, match="NUL"):
            quote("a\0b")
