"""An error as it goes over the wire: status, body and headers of PostgREST's errors."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

JSON_CONTENT_TYPE = "application/json; charset=utf-8"

Header = tuple[str, str]


@dataclass(frozen=True)
class Answer:
    """A complete HTTP answer."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()


@dataclass
class GatewayError(Exception):
    """Raised wherever a request cannot go on; rendered in one place."""

    status: int
    code: str
    message: str
    details: str | None = None
    hint: str | None = None
    headers: tuple[Header, ...] = field(default=())

    def answer(self) -> Answer:
        body = {
            "code": self.code,
            "details": self.details,
            "hint": self.hint,
            "message": self.message,
        }
        headers = (
            ("Content-Type", JSON_CONTENT_TYPE),
            ("Proxy-Status", f"PostgREST; error={self.code}"),
            *self.headers,
        )
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        return Answer(self.status, text.encode(errors="replace"), headers)


RETRY_AT_ONCE: tuple[Header, ...] = (("Retry-After", "0"),)


def no_schema_cache() -> GatewayError:
    return GatewayError(
        503,
        "PGRST002",
        "Could not query the database for the schema cache. Retrying.",
        headers=RETRY_AT_ONCE,
    )


def invalid_body(message: str) -> GatewayError:
    return GatewayError(400, "PGRST102", message)
