from __future__ import annotations

from typing import Any

import pytest

from fairlease.local.gateway.errors import GatewayError
from fairlease.local.gateway.tokens import Tokens, sign
from gateway.base_state import SECRET

NOW = 1_800_000_000


def caller_role(authorization: str | None, **changes: Any) -> str:
    settings = {"secret": SECRET, "audience": None, "anonymous_role": "anon", "now": lambda: NOW}
    return Tokens(**{**settings, **changes}).caller(authorization).role


def bearer(**claims: Any) -> str:
    return f"Bearer {sign({'role': 'service_role', **claims}, SECRET)}"


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Basic abc", bearer().removeprefix("Bearer "), "Bear er"],
)
def test_no_bearer_is_the_anonymous_role(authorization: str | None) -> None:
    assert caller_role(authorization) == "anon"


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER  ", "Bearer\t"])
def test_scheme_is_read_in_any_case_and_spacing(scheme: str) -> None:
    assert caller_role(bearer().replace("Bearer ", scheme)) == "service_role"


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW - 30},
        {"nbf": NOW + 30},
        {"iat": NOW + 30},
        {"exp": None},
        {"aud": []},
        {"iat": NOW + 3600.5},
    ],
)
def test_claims_within_the_skew_or_absent_pass(claims: dict[str, Any]) -> None:
    assert caller_role(bearer(**claims)) == "service_role"


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"exp": NOW - 31}, "JWT expired"),
        ({"exp": NOW + 3600.5}, "JWT expired"),
        ({"nbf": NOW + 31}, "JWT not yet valid"),
        ({"iat": NOW + 31}, "JWT issued at future"),
        ({"nbf": "soon"}, "The JWT 'nbf' claim must be a number"),
        ({"exp": True}, "The JWT 'exp' claim must be a number"),
        ({"aud": {}}, "The JWT 'aud' claim must be a string or an array of strings"),
        ({"aud": ["a", 1]}, "The JWT 'aud' claim must be a string or an array of strings"),
    ],
)
def test_claims_that_do_not_hold_are_told(claims: dict[str, Any], message: str) -> None:
    with pytest.raises(GatewayError) as refused:
        caller_role(bearer(**claims))
    error = refused.value
    assert (error.status, error.code, error.message) == (401, "PGRST303", message)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("", "Empty JWT is sent in Authorization header"),
        ("abc", "Expected 3 parts in JWT; got 1"),
        ("a.b.c", "JWT cryptographic operation failed"),
        ("bm90IGpzb24.e30.e30", "JWT cryptographic operation failed"),
        ("eyJhbGciOiJYWVoifQ.e30.e30", "JWT cryptographic operation failed"),
        ("eyJhbGciOiJSUzI1NiJ9.e30.e30", "No suitable key or wrong key type"),
        ("eyJhbGciOiJub25lIn0.e30.", "Wrong or unsupported encoding algorithm"),
    ],
)
def test_token_that_cannot_be_decoded_is_told_why(token: str, message: str) -> None:
    with pytest.raises(GatewayError) as refused:
        caller_role(f"Bearer {token}")
    error = refused.value
    assert (error.status, error.code, error.message) == (401, "PGRST301", message)


def test_remembered_token_expires_all_the_same() -> None:
    clock = [float(NOW)]
    tokens = Tokens(secret=SECRET, audience=None, anonymous_role="anon", now=lambda: clock[0])
    authorization = bearer(exp=NOW + 10)
    assert tokens.caller(authorization).role == "service_role"
    clock[0] += 41
    with pytest.raises(GatewayError, match="JWT expired"):
        tokens.caller(authorization)


def test_audience_is_checked_where_one_is_configured() -> None:
    assert caller_role(bearer(aud=["a", "b"]), audience="b") == "service_role"
    with pytest.raises(GatewayError, match="JWT not in audience"):
        caller_role(bearer(aud="a"), audience="b")


def test_without_anonymous_role_a_token_is_needed() -> None:
    with pytest.raises(GatewayError, match="Anonymous access is disabled"):
        caller_role(None, anonymous_role=None)
