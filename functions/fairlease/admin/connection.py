"""Connections for what a person starts: failures become errors that fit one line."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import psycopg

from fairlease.errors import ConfigurationError, TransientError, UnexpectedAnswer
from fairlease.settings.database_url import MALFORMED, is_database_url

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONNECT_TIMEOUT_SECONDS = 10


@contextlib.contextmanager
def connect(url: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection.

    Raises ConfigurationError where the URL is none or the login fails, TransientError where nobody
    answers or the connection is lost, UnexpectedAnswer for any other refusal of the database.
    """
    # The driver's own text would repeat parts of the URL, of its password perhaps.
    malformed = ConfigurationError(f"the database URL is malformed: {MALFORMED}")
    if not is_database_url(url):
        raise malformed
    try:
        session = psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_SECONDS)
    except psycopg.ProgrammingError:
        raise malformed from None
    except psycopg.OperationalError as error:
        raise _unreachable(error) from error
    with session:
        try:
            yield session
        except psycopg.OperationalError as error:
            raise TransientError(one_line(error), code=error.sqlstate or "") from error
        except psycopg.Error as error:
            raise UnexpectedAnswer(one_line(error), code=error.sqlstate or "") from error


def one_line(error: psycopg.Error) -> str:
    """The server's message without context, hint and line breaks."""
    return " ".join((error.diag.message_primary or str(error)).split())


def _unreachable(error: psycopg.OperationalError) -> Exception:
    text = one_line(error)
    for sign in ("password authentication failed", "does not exist", "no pg_hba.conf entry"):
        if sign in text:
            return ConfigurationError(f"the database refused the login: {text}")
    return TransientError(f"the database cannot be reached: {text}", took_effect=False)
