"""Where the gateway differs from PostgREST on purpose, by case, each with its reason."""

from __future__ import annotations

ON_PURPOSE = {
    "jwt/header_trailing_space": (
        "HTTP says that white space after a header's value is no part of it, and the HTTP library "
        "drops it; PostgREST's keeps it and then finds the token malformed"
    ),
}
