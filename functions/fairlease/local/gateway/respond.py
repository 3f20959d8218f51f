"""From the outcome of a call to the answer: status, headers, body."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fairlease.local.gateway.errors import Answer, GatewayError, Header
from fairlease.local.gateway.ranges import beyond_the_end

if TYPE_CHECKING:
    from fairlease.local.gateway.prefer import Preferences
    from fairlease.local.gateway.ranges import Rows
    from fairlease.local.gateway.routine import Routine
    from fairlease.local.gateway.statement import Shape
    from fairlease.local.gateway.transaction import Outcome


def answer_of(
    outcome: Outcome,
    routine: Routine,
    shape: Shape,
    wanted: Rows,
    preferences: Preferences,
    profile: str | None,
) -> Answer:
    """`wanted`: the rows that were asked for, which may be more than the server gives at once."""
    status, body = _status(outcome, wanted), outcome.body
    headers: list[Header] = [("Content-Range", _content_range(outcome, wanted))]
    applied = preferences.applied()
    if applied is not None:
        headers.append(("Preference-Applied", applied))
    if routine.returns_void:
        status, body = HTTPStatus.NO_CONTENT, b""
    else:
        headers.append(("Content-Type", shape.media.content_type))
        if profile is not None:
            headers.append(("Content-Profile", profile))
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        body = beyond_the_end(wanted.first, outcome.total or 0).answer().body
    dictated = _dictated_headers(outcome.headers)
    names = {name.lower() for name, _ in dictated}
    kept = [header for header in headers if header[0].lower() not in names]
    return Answer(_dictated_status(outcome.status) or status, body, (*kept, *dictated))


def check_outcome(shape_wants_object: bool, highest: int | None, page: int) -> GatewayError | None:
    """What is wrong with the number of rows, if anything."""
    if shape_wants_object and page != 1:
        return GatewayError(
            406,
            "PGRST116",
            "Cannot coerce the result to a single JSON object",
            f"The result contains {page} rows",
        )
    if highest is not None and page > highest:
        return GatewayError(
            400,
            "PGRST124",
            "Query result exceeds max-affected preference constraint",
            f"The query affects {page} rows",
        )
    return None


def _status(outcome: Outcome, wanted: Rows) -> int:
    if outcome.total is None:
        return 200
    if wanted.first > outcome.total:
        return 416
    return 206 if outcome.page < outcome.total else 200


def _content_range(outcome: Outcome, wanted: Rows) -> str:
    total = "*" if outcome.total is None else str(outcome.total)
    if outcome.page == 0 or outcome.total == 0:
        return f"*/{total}"
    return f"{wanted.first}-{wanted.first + outcome.page - 1}/{total}"


def _dictated_status(text: bytes | None) -> int | None:
    """What the function put into `response.status`."""
    if text is None:
        return None
    number = re.match(rb"[0-9]+", text)
    if number is None:
        raise GatewayError(500, "PGRST112", "response.status guc must be a valid status code")
    return int(number.group())


def _dictated_headers(text: bytes | None) -> list[Header]:
    if text is None:
        return []
    try:
        entries = json.loads(text)
    except ValueError:
        entries = None
    if not isinstance(entries, list) or not all(_is_header(entry) for entry in entries):
        raise GatewayError(
            500,
            "PGRST111",
            "response.headers guc must be a JSON array composed of objects with a single key and "
            "a string value",
        )
    return [header for entry in entries for header in entry.items()]


def _is_header(entry: Any) -> bool:
    if not isinstance(entry, dict) or len(entry) != 1:
        return False
    return all(isinstance(value, str) for value in entry.values())
