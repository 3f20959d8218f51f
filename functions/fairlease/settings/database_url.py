"""Whether a text can be a connection string of libpq, asked before a driver quotes its password."""

from __future__ import annotations

import re

_USER = r"(?:[^@/]*@)?"
_HOST = r"(?:\[[0-9A-Fa-f:.%]*\]|[^@/?:,\[\]]*)(?::[0-9]*)?"
_URL = re.compile(
    rf"postgres(?:ql)?://{_USER}{_HOST}(?:,{_HOST})*(?:/[^@/?]*)?(?:\?.*)?", re.DOTALL
)
_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_WORDS = re.compile(
    r"\s*(?:\w+\s*=\s*(?:'(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)(?:[^\s\\]|\\.)*)?(?:\s+|$))+", re.DOTALL
)
MALFORMED = (
    "give postgresql://user:password@host:5432/database, with each of @ / % in the password "
    "written as %40 %2F %25"
)


def is_database_url(text: str) -> bool:
    """False also for what the driver would take apart in another place than was meant.

    A password with a bare @ ends early for it; the rest is a host's name, which errors repeat.
    """
    if text.startswith(("postgresql://", "postgres://")):
        return bool(_URL.fullmatch(text)) and not _BROKEN_PERCENT.search(text)
    return bool(_WORDS.fullmatch(text))
