"""A session for an operator's questions: rows as dicts, refusals as errors of one line."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads

from fairlease.admin.connection import connect, one_line
from fairlease.errors import CallRefused, ConfigurationError, InvalidInput, Unauthorized
from fairlease.messages.outgoing import check_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from psycopg.sql import SQL, Composed

    Query = LiteralString | SQL | Composed

_QUEUE = """
select q.*, fairlease.queue_is_lost(q.queue) as is_lost
from fairlease.queues q where q.queue = %(name)s
"""
# The answers of these say that the database is older than the command.
_TOO_OLD = (
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedTable,
)


@dataclass(frozen=True, slots=True)
class Session:
    """Autocommit: each call is a transaction, unless the caller opens one on `connection`."""

    connection: psycopg.Connection

    def rows(self, query: Query, **values: Any) -> list[dict[str, Any]]:
        """Raises InvalidInput for a value that Postgres cannot read, CallRefused for a refusal."""
        with self._refusals(), self.connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, values).fetchall()

    def value(self, query: Query, **values: Any) -> Any:
        """The first column of the first row, None without one."""
        with self._refusals():
            row = self.connection.execute(query, values).fetchone()
        return row[0] if row else None

    def queue(self, name: str) -> Mapping[str, Any]:
        """An attached queue as the registry has it. Raises InvalidInput for any other."""
        found = self.rows(_QUEUE, name=name)
        if not found:
            raise InvalidInput(f"no queue {name!r} is attached: `fairlease queue list` shows them")
        if found[0]["is_lost"]:
            raise InvalidInput(f"queue {name!r} has lost its table: create and attach it again")
        return found[0]

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except psycopg.errors.RaiseException as error:
            raise CallRefused(one_line(error), code=error.sqlstate or "") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise Unauthorized(
                f"{one_line(error)}: connect as the role that owns the schema",
                code=error.sqlstate or "",
            ) from error
        except _TOO_OLD as error:
            raise ConfigurationError(
                f"this database lacks what the command needs ({one_line(error)}): "
                "run `fairlease migrate` first"
            ) from error
        except (psycopg.DataError, psycopg.errors.CheckViolation) as error:
            raise InvalidInput(one_line(error)) from error


@contextlib.contextmanager
def operate(url: str) -> Iterator[Session]:
    """Raises as `connect` does."""
    with connect(url) as connection:
        set_json_loads(_readable, connection)
        yield Session(connection)


def _readable(text: str | bytes) -> Any:
    """A payload that Python can read and write again; any other is shown as the text that it is."""
    said = text.decode() if isinstance(text, bytes) else text
    try:
        value = json.loads(said)
        check_json(value)
    except (RecursionError, ValueError):
        return said
    return value


def named_org(org: str) -> str:
    """Raises InvalidInput for one that no message can have."""
    if not org:
        raise InvalidInput("org: an empty text is no org; name one")
    return org
