from __future__ import annotations

import pytest

from fairlease.cron.jobs import checked_url, poke_url
from fairlease.errors import InvalidInput


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ("https://ref.supabase.co", "https://ref.supabase.co/functions/v1/invites"),
        ("https://ref.supabase.co/", "https://ref.supabase.co/functions/v1/invites"),
        ("https://ref.supabase.co/functions/v1", "https://ref.supabase.co/functions/v1/invites"),
        ("http://10.0.0.7:8787", "http://10.0.0.7:8787/functions/v1/invites"),
        ("http://[::1]:8787/workers", "http://[::1]:8787/workers/functions/v1/invites"),
    ],
)
def test_the_target_is_the_function_below_the_url(given: str, target: str) -> None:
    assert poke_url(checked_url(given), "invites") == target


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "ref.supabase.co", "ftp://a", "http://", "http://a b", "http://a\n", "http://a:port"),
        *("https://me:hush@a", "https://me@a", "http://a?x=1", "http://a#f", "http://[::1"),
    ],
)
def test_what_is_no_place_for_functions_is_refused_without_its_password(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="--url") as refused:
        checked_url(wrong)
    assert "hush" not in str(refused.value)
