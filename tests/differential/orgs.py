"""Which org a message belongs to: section 4."""

from __future__ import annotations

import string
from typing import Any

UNRESOLVED = "(unresolved)"
_FOLDED = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold(org: str) -> str:
    """ASCII letters alone: every other letter is as it is."""
    return org.translate(_FOLDED)


def org_of(message: Any, headers: dict[str, Any] | None) -> str:
    """Section 4: the first of these that is not empty, its ASCII letters folded."""
    body = message if isinstance(message, dict) else {}
    args = body.get("args") if isinstance(body.get("args"), dict) else {}
    candidates = (
        (headers or {}).get("x-org"),
        (headers or {}).get("x-pgmq-group"),
        body.get("org"),
        args.get("org"),
        (args.get("repository") or "").split("/")[0],
        (args.get("repository_full_name") or "").split("/")[0],
    )
    return next((fold(c) for c in candidates if c), UNRESOLVED)
