"""Text as SQL literals that mean the same in every session, whatever the text is."""

from __future__ import annotations

from fairlease.errors import InvalidInput


def literal(text: str) -> str:
    """Within single quotes; with a backslash in it an escape string, on which settings agree."""
    _refuse_nul(text)
    doubled = text.replace("'", "''")
    if "\\" not in doubled:
        return f"'{doubled}'"
    escaped = doubled.replace("\\", "\\\\")
    return f" E'{escaped}'"


def dollar_quoted(text: str, tag: str) -> str:
    """Readable for code with quotes in it; the tag grows until the text cannot end it."""
    _refuse_nul(text)
    while f"${tag}" in text:
        tag += "_"
    return f"${tag}${text}${tag}$"


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise InvalidInput("text with a NUL character cannot be stored in Postgres; remove it")
