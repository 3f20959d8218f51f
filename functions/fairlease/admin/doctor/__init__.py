"""What `fairlease doctor` looks at: each area says what it found and what to do about it."""

from __future__ import annotations

from fairlease.admin.doctor.checks import Check, State
from fairlease.admin.doctor.database import examine
from fairlease.admin.doctor.gateway import examine_gateway

__all__ = ["Check", "State", "examine", "examine_gateway"]
