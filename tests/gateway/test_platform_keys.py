from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fairlease.local.gateway.platform_keys import KeyRefused, PlatformKeys
from fairlease.local.gateway.tokens import Tokens, sign
from gateway.base_state import SECRET

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = 1_800_000_000.0
OTHER_SECRET = "quite-another-secret-of-more-than-32-characters"
KEYS = {
    "sb_secret_one": "service_role",
    "sb_secret_two": "service_role",
    "sb_publishable_one": "anon",
}
LEGACY = sign({"role": "service_role", "iss": "supabase", "ref": "abc"}, SECRET)
USER = f"Bearer {sign({'role': 'authenticated', 'sub': 'u1'}, SECRET)}"


def tokens(now: Callable[[], float] = lambda: NOW) -> Tokens:
    return Tokens(secret=SECRET, audience=None, anonymous_role="anon", now=now)


def keys(now: Callable[[], float] = lambda: NOW) -> PlatformKeys:
    return PlatformKeys(KEYS, SECRET, tokens(now), now)


def role_behind(authorization: str) -> str:
    return tokens().caller(authorization).role


@pytest.mark.parametrize(("key", "role"), KEYS.items())
def test_opaque_key_becomes_a_token_of_its_role(key: str, role: str) -> None:
    assert role_behind(keys().authorization([key], None, "")) == role


@pytest.mark.parametrize("key", ["sb_secret_one", "sb_publishable_one"])
def test_bearer_equal_to_the_key_is_replaced(key: str) -> None:
    given = keys().authorization([key], f"Bearer {key}", "")
    assert role_behind(given) == KEYS[key]


@pytest.mark.parametrize("key", ["sb_secret_one", "sb_publishable_one", LEGACY])
def test_user_token_is_kept_whatever_the_key(key: str) -> None:
    assert keys().authorization([key], USER, "") == USER


def test_bearer_that_is_another_opaque_key_is_left_to_fail() -> None:
    other = "Bearer sb_secret_two"
    assert keys().authorization(["sb_secret_one"], other, "") == other


def test_legacy_key_is_a_token_itself() -> None:
    assert keys().authorization([LEGACY], f"Bearer {LEGACY}", "") == f"Bearer {LEGACY}"
    assert keys().authorization([LEGACY], None, "") == f"Bearer {LEGACY}"


def test_key_may_stand_in_the_query_string() -> None:
    query = "apikey=sb_secret_one&limit=1"
    assert role_behind(keys().authorization([], None, query)) == "service_role"
    assert PlatformKeys.without_key(query) == "limit=1"


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        ([], "No API key found in request"),
        (["sb_secret_unknown"], "Unregistered API key"),
        (["sb_secret_on"], "Unregistered API key"),
        ([""], "Invalid API key"),
        (["nonsense"], "Invalid API key"),
        ([sign({"role": "service_role"}, OTHER_SECRET)], "Invalid API key"),
        ([sign({"role": "service_role", "exp": int(NOW) - 60}, SECRET)], "Invalid API key"),
        ([sign({"role": "authenticated"}, SECRET)], "Invalid API key"),
        (["sb_secret_one", "sb_secret_two"], "Invalid API key"),
    ],
)
def test_request_without_one_good_key_stops_at_the_platform(
    offered: list[str], message: str
) -> None:
    with pytest.raises(KeyRefused) as refused:
        keys().authorization(offered, USER, "")
    answer = refused.value.answer
    assert answer.status == 401
    # The platform's body, not PostgREST's: it has no code.
    assert set(json.loads(answer.body)) == {"message", "hint"}
    assert json.loads(answer.body)["message"] == message


def test_token_of_a_key_is_renewed_before_it_expires() -> None:
    clock = [NOW]
    swapping = keys(lambda: clock[0])
    first = swapping.authorization(["sb_secret_one"], None, "")
    assert swapping.authorization(["sb_secret_one"], None, "") == first
    clock[0] += 1801
    assert swapping.authorization(["sb_secret_one"], None, "") != first
