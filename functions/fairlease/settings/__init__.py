"""Settings: bounded knobs that fail safe and never stop a worker; secrets that must be there."""

from __future__ import annotations

from fairlease.settings.cross_checks import without_heartbeats
from fairlease.settings.issues import IssueKind, KnobIssue
from fairlease.settings.knobs import (
    EXIT_MARGIN_SECONDS,
    Knob,
    Knobs,
    env_of,
    knob_table,
    longest_run_budget_seconds,
)
from fairlease.settings.loading import Settings, load_settings
from fairlease.settings.required import Required, SupabaseConnection, Transport

__all__ = [
    "EXIT_MARGIN_SECONDS",
    "IssueKind",
    "Knob",
    "KnobIssue",
    "Knobs",
    "Required",
    "Settings",
    "SupabaseConnection",
    "Transport",
    "env_of",
    "knob_table",
    "load_settings",
    "longest_run_budget_seconds",
    "without_heartbeats",
]
