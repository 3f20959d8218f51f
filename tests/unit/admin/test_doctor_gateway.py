from __future__ import annotations

import pytest

from fairlease.admin.doctor import State, examine_gateway
from fairlease.transports.codec import error_of


class Gateway:
    """Answers every call with the error of one code, or with success."""

    def __init__(self, code: str | None) -> None:
        self.code = code

    async def release_org_slot(self, *_arguments: object, **_options: object) -> bool:
        if self.code is not None:
            raise error_of(self.code, "the gateway's own words")
        return False


@pytest.mark.parametrize("code", [None, "P0001"])
async def test_a_gateway_that_reaches_the_function_is_well(code: str | None) -> None:
    check = await examine_gateway(Gateway(code), "q")  # type: ignore[arg-type]
    assert check.state is State.OK


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("PGRST106", "Exposed schemas"),
        ("PGRST202", "reload schema"),
        ("42501", "SUPABASE_SECRET_KEY"),
        ("401", "SUPABASE_SECRET_KEY"),
        ("503", "SUPABASE_URL"),
        ("418", "what the gateway says"),
    ],
)
async def test_what_is_wrong_with_the_gateway_names_the_setting(code: str, remedy: str) -> None:
    check = await examine_gateway(Gateway(code), "q")  # type: ignore[arg-type]
    assert check.state is State.PROBLEM
    assert remedy in check.remedy
    assert check.facts == {"code": code}
