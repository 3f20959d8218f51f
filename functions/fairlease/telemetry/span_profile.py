"""Which spans are wanted, and whether anybody takes them; nothing of OpenTelemetry is imported."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from fairlease.settings import IssueKind, KnobIssue
from fairlease.settings.issues import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILE_VARIABLE = "FAIRLEASE_TRACE_PROFILE"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Profile(StrEnum):
    """`business`: messages alone. `verbose`: runs and every call to the database besides."""

    BUSINESS = "business"
    VERBOSE = "verbose"


def trace_profile(environ: Mapping[str, str]) -> tuple[Profile, list[KnobIssue]]:
    """The profile in effect, and an issue where another was asked for than there are."""
    raw = environ.get(PROFILE_VARIABLE)
    if raw is None:
        return Profile.BUSINESS, []
    text = raw.strip().lower()
    if text in set(Profile):
        return Profile(text), []
    shown = printable(raw)
    kind = IssueKind.UNPARSEABLE if text else IssueKind.EMPTY
    says = f"{PROFILE_VARIABLE}={shown!r}: give business or verbose; using business"
    return Profile.BUSINESS, [KnobIssue(PROFILE_VARIABLE, shown, "business", kind, says)]


def is_disabled(environ: Mapping[str, str]) -> bool:
    return environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def has_collector(environ: Mapping[str, str]) -> bool:
    """Whether somebody is named who takes spans; a default address would be asked in vain."""
    exporters = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return exporters in {"", "otlp"} and any(environ.get(name, "").strip() for name in _ENDPOINTS)
