"""Where the gateway differs from PostgREST on purpose, by case, each with its reason.

None of the recorded ones; what no recorded answer shows is in docs/gateway.md.
"""

from __future__ import annotations

ON_PURPOSE: dict[str, str] = {}
