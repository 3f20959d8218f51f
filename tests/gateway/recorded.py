"""The recorded answers of a real PostgREST, and how our gateway's are held against them."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import jwt

from gateway.base_state import SECRET

FOLDER = Path(__file__).parents[3] / "shared" / "postgrest"

_NOT_OWED = ("cors", "options", "concurrent", "down", "config")
_NO_ANSWER_SECONDS = 0.4
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")
_MOMENT = re.compile(r"(now|first request) ?([+-]) ?([\d.]+)( s)?")
_SHORTENED = {
    "[[[...2000 levels...]]]": "[" * 2000 + "]" * 2000,
    "xxxx...1000000 times x...xxxx": "x" * 1_000_000,
}


@dataclass(frozen=True)
class Recorded:
    """One recorded case."""

    raw: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        return self.raw["name"]

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]

    @property
    def owed(self) -> bool:
        return self.group not in _NOT_OWED

    @property
    def setup(self) -> str:
        return self.raw["sql_setup"]

    @property
    def later_setup(self) -> str:
        return self.raw.get("sql_after_cache_load", "")

    @property
    def notifies_at_once(self) -> bool:
        """The cache is loaded before the setup, which then asks for a reload, or not."""
        return "notify pgrst" in self.setup

    @property
    def locked_table(self) -> str | None:
        return "pgmq_public.l" if self.raw["note"].startswith("another session holds") else None

    @property
    def answered(self) -> bool:
        return self.raw["response"]["status"] is not None


def load() -> list[Recorded]:
    # Not splitlines: some cases hold a U+2028.
    lines = (FOLDER / "cases.jsonl").read_text(encoding="utf-8").strip().split("\n")
    return [Recorded(json.loads(line)) for line in lines]


def tokens(case: Recorded, now: float) -> dict[str, str]:
    return {name: _token(token, case, now) for name, token in case.raw.get("tokens", {}).items()}


def with_tokens(header: str, tokens: dict[str, str]) -> str:
    for placeholder, token in tokens.items():
        header = header.replace(placeholder, token)
    return header


def _token(token: dict[str, Any], case: Recorded, now: float) -> str:
    claims = {name: _moment(value, case, now) for name, value in token["claims"].items()}
    signed = token["signed"]
    if signed.startswith("alg none"):
        return jwt.encode(claims, None, algorithm="none")
    secret = "another-secret-with-at-least-32-characters" if "another" in signed else SECRET
    headers = {"kid": "nokey"} if "kid=" in signed else None
    return jwt.encode(claims, secret, algorithm=signed.split()[0], headers=headers)


def _moment(value: Any, case: Recorded, now: float) -> Any:
    match = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    # The second use of that token came 4 s after the first.
    origin = now - 4 if case.name.endswith("_expired_second") else now
    sign, number = match[2], match[3]
    offset = float(number) if "." in number else int(number)
    return int(origin) + (offset if sign == "+" else -offset)


def body_of(request: dict[str, Any]) -> bytes | None:
    body = request.get("body")
    if body is None:
        return None
    if isinstance(body, dict):
        return base64.b64decode(body["base64"])
    for short, whole in _SHORTENED.items():
        body = body.replace(short, whole)
    return body.encode()


def expected(case: Recorded) -> tuple[int, str]:
    response = case.raw["response"]
    return response["status"], response["body"]


def patience_seconds(case: Recorded) -> float:
    return 30.0 if case.answered else _NO_ANSWER_SECONDS


def same_body(case: Recorded, wanted: str, got: bytes) -> bool:
    text = got.decode()
    if "timestamps vary" in case.raw["note"]:
        wanted, text = _TIMESTAMP.sub("T", wanted), _TIMESTAMP.sub("T", text)
    try:
        one, other = _json(wanted), _json(text)
    except ValueError:
        return wanted == text
    if isinstance(other, dict) and "hint" in other and other["hint"] is None:
        one = {**one, "hint": None}
    return one == other


def _json(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)
