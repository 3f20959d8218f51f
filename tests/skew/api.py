"""A gateway over the test's database, as a worker and as an operator see it."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

KEY = "sb_secret_skew"
TOKEN = "admin-of-the-skew-tests"


@dataclass(frozen=True)
class Api:
    """It hears of no change of the schema unless it is told."""

    url: str
    key: str = KEY

    def reload(self) -> None:
        """What `notify pgrst` is for."""
        answer = httpx.post(
            f"{self.url}/_gateway/reload", headers={"authorization": f"Bearer {TOKEN}"}
        )
        answer.raise_for_status()
