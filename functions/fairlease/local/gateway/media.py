"""Media types: what a body is, and what an answer may be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """The media types that have a meaning of their own."""

    JSON = auto()
    GEOJSON = auto()
    CSV = auto()
    TEXT = auto()
    XML = auto()
    OPENAPI = auto()
    FORM = auto()
    OCTETS = auto()
    ANY = auto()
    OBJECT = auto()
    STRIPPED_ARRAY = auto()
    PLAN = auto()
    OTHER = auto()


@dataclass(frozen=True)
class MediaType:
    """`mime` is how it is written in answers; `stripped`: keys with null are left out.

    `raw`: the value of a function that says itself what it is.
    """

    kind: Kind
    mime: str
    stripped: bool = False
    raw: bool = False

    @property
    def content_type(self) -> str:
        if self.kind in {Kind.OCTETS, Kind.OTHER}:
            return self.mime
        return f"{self.mime}; charset=utf-8"


JSON = MediaType(Kind.JSON, "application/json")
ANY = MediaType(Kind.ANY, "*/*")
RAW_OCTETS = MediaType(Kind.OCTETS, "application/octet-stream", raw=True)

_PLAIN = {
    media.mime: media
    for media in (
        JSON,
        ANY,
        MediaType(Kind.GEOJSON, "application/geo+json"),
        MediaType(Kind.CSV, "text/csv"),
        MediaType(Kind.TEXT, "text/plain"),
        MediaType(Kind.XML, "text/xml"),
        MediaType(Kind.OPENAPI, "application/openapi+json"),
        MediaType(Kind.FORM, "application/x-www-form-urlencoded"),
        MediaType(Kind.OCTETS, "application/octet-stream"),
    )
}
_VENDOR = "application/vnd.pgrst."
_PLAN_OPTIONS = ("analyze", "verbose", "settings", "buffers", "wal")

_TYPE = re.compile(r"([^\W_]|[.*])+/([^\W_]|[.*+-])+")
_PARAMETER = re.compile(r'\s*;\s*((?:[^\W_]|-)+)\s*=\s*(?:"([^"]*)"|((?:[^\W_]|[|-])+))')


def decode_media_type(text: str) -> MediaType:
    match = _TYPE.match(text)
    if match is None:
        return MediaType(Kind.OTHER, text)
    name, parameters = match.group().lower(), _parameters(text, match.end())
    if name in _PLAIN:
        return _PLAIN[name]
    stripped = parameters.get("nulls") == "stripped"
    match name.removeprefix(_VENDOR):
        case "object" | "object+json":
            mime = f"{_VENDOR}object+json" + (";nulls=stripped" if stripped else "")
            return MediaType(Kind.OBJECT, mime, stripped)
        case "array" | "array+json":
            mime = f"{_VENDOR}array+json;nulls=stripped"
            return MediaType(Kind.STRIPPED_ARRAY, mime, stripped=True) if stripped else JSON
        case "plan" | "plan+text" | "plan+json" as plan:
            return _plan("json" if plan == "plan+json" else "text", parameters)
    return MediaType(Kind.OTHER, text)


def accepted(header: str | None) -> list[MediaType]:
    """The types of an Accept header, the most wanted first."""
    if header is None:
        return [ANY]
    ranked = [_ranked(part) for part in header.replace(" ", "").split(",")]
    ranked.sort(key=lambda entry: entry[1], reverse=True)
    return [decode_media_type(text) for text, _ in ranked]


def _ranked(part: str) -> tuple[str, tuple[float, int]]:
    text, _, rest = part.partition(";q=")
    number = re.match(r"\d+(\.\d+)?([eE]-?\d+)?", rest)
    quality = float(number.group()) if number else 1.0
    return text, (quality, text.count(";") - text.count("*"))


def _parameters(text: str, start: int) -> dict[str, str]:
    found: dict[str, str] = {}
    while match := _PARAMETER.match(text, start):
        name, quoted, plain = match.groups()
        found[name.lower()] = plain if quoted is None else quoted
        start = match.end()
    return found


def _plan(form: str, parameters: dict[str, str]) -> MediaType:
    subject = decode_media_type(parameters.get("for", JSON.mime)).mime
    wanted = parameters.get("options", "").split("|")
    options = "|".join(option for option in _PLAN_OPTIONS if option in wanted)
    suffix = f"; options={options}" if options else ""
    return MediaType(Kind.PLAN, f'{_VENDOR}plan+{form}; for="{subject}"{suffix}')
