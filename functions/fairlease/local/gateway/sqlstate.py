"""From a Postgres error to PostgREST's status and body."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fairlease.local.gateway.errors import RETRY_AT_ONCE, GatewayError, Header

_BY_CODE = {
    "23503": 409,
    "23505": 409,
    "25006": 405,
    "53400": 500,
    "57P01": 503,
    "P0001": 400,
    "42P01": 404,
    "42P17": 500,
}
_BY_CLASS = {
    **dict.fromkeys(("0L", "0P", "28"), 403),
    **dict.fromkeys(("08", "53"), 503),
    **dict.fromkeys(("09", "25", "2D", "38", "39", "3B", "40"), 500),
    **dict.fromkeys(("54", "55", "57", "58", "F0", "HV", "P0", "XX"), 500),
}
# What HTTP can carry as the status of a final answer.
_LOWEST_STATUS, _HIGHEST_STATUS = 200, 999

_MESSAGE_HINT = (
    "MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: "
    "'details', 'hint'."
)
_DETAIL_HINT = (
    "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: "
    "'status_text'."
)


@dataclass(frozen=True)
class DatabaseError:
    """The fields of a Postgres error that clients get to see."""

    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None


def http_error(error: DatabaseError, *, anonymous: bool) -> GatewayError:
    """`anonymous`: the request ran as the anonymous role, with a token or without."""
    if error.sqlstate == "PGRST":
        return _raised_answer(error)
    status = _status(error, anonymous=anonymous)
    headers: tuple[Header, ...] = ()
    if status == HTTPStatus.UNAUTHORIZED:
        headers = (("WWW-Authenticate", "Bearer"),)
    elif status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = RETRY_AT_ONCE
    return GatewayError(status, error.sqlstate, error.message, error.detail, error.hint, headers)


def _status(error: DatabaseError, *, anonymous: bool) -> int:
    code, message = error.sqlstate, error.message
    if code.startswith("PT"):
        return _valid_status(int(code[2:])) if code[2:].isdigit() else 500
    if code == "42501":
        return 401 if anonymous else 403
    if code == "42883":
        return 406 if message.startswith("function xmlagg(") else 404
    if code == "21000":
        return 400 if message.endswith("requires a WHERE clause") else 500
    if code == "22023":
        missing_role = message.startswith("role") and message.endswith("does not exist")
        return 401 if missing_role else 400
    return _BY_CODE.get(code) or _BY_CLASS.get(code[:2], 400)


def _valid_status(status: int) -> int:
    return status if _LOWEST_STATUS <= status <= _HIGHEST_STATUS else 500


def _raised_answer(error: DatabaseError) -> GatewayError:
    """`raise sqlstate 'PGRST'`: the function dictates the whole answer."""
    message = _object(error.message, {"code": str, "message": str}, {"details": str, "hint": str})
    if message is None:
        return _unreadable(f"Invalid JSON value for MESSAGE: '{error.message}'", _MESSAGE_HINT)
    if error.detail is None:
        return _unreadable("DETAIL is missing in the RAISE statement", _DETAIL_HINT)
    detail = _object(error.detail, {"status": int, "headers": dict}, {"status_text": str})
    if detail is None or not all(isinstance(value, str) for value in detail["headers"].values()):
        return _unreadable(f"Invalid JSON value for DETAIL: '{error.detail}'", _DETAIL_HINT)
    return GatewayError(
        _valid_status(detail["status"]),
        message["code"],
        message["message"],
        message.get("details"),
        message.get("hint"),
        tuple(detail["headers"].items()),
    )


def _object(
    text: str, obligatory: dict[str, type], optional: dict[str, type]
) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    if not all(_has(value.get(key), kind) for key, kind in obligatory.items()):
        return None
    if not all(value.get(key) is None or _has(value[key], kind) for key, kind in optional.items()):
        return None
    return value


def _has(value: object, kind: type) -> bool:
    # In Python a bool is an int.
    return isinstance(value, kind) and not isinstance(value, bool)


def _unreadable(details: str, hint: str) -> GatewayError:
    return GatewayError(
        500,
        "PGRST121",
        "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error",
        details,
        hint,
    )
