from __future__ import annotations

import base64
import json
import re

import pytest

from fairlease.errors import ConfigurationError
from fairlease.settings import Required, Transport


def jwt(role: str) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"role": role}).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJIUzI1NiJ9.{claims}.c2ln"


URL = {"SUPABASE_URL": "https://x.supabase.co/"}


def test_an_opaque_key_is_taken_as_it_is_and_a_jwt_as_the_other_kind() -> None:
    opaque = Required({**URL, "SUPABASE_SECRET_KEY": "sb_secret_abc"}).supabase()
    assert (opaque.url, opaque.opaque) == ("https://x.supabase.co", True)
    legacy = Required({**URL, "SUPABASE_SERVICE_ROLE_KEY": jwt("service_role")}).supabase()
    assert not legacy.opaque


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"SUPABASE_SECRET_KEY": "sb_secret_abc"}, "SUPABASE_URL"),
        ({**URL}, "SUPABASE_SECRET_KEY"),
        ({**URL, "SUPABASE_SECRET_KEY": ""}, "SUPABASE_SECRET_KEY"),
        ({**URL, "SUPABASE_SECRET_KEY": "sb_publishable_abc"}, "SUPABASE_SECRET_KEY"),
        ({**URL, "SUPABASE_SECRET_KEY": jwt("service_role")}, "SUPABASE_SECRET_KEY"),
        ({**URL, "SUPABASE_SERVICE_ROLE_KEY": "sb_secret_abc"}, "SUPABASE_SERVICE_ROLE_KEY"),
        ({**URL, "SUPABASE_SERVICE_ROLE_KEY": "a.b"}, "SUPABASE_SERVICE_ROLE_KEY"),
        ({**URL, "SUPABASE_SERVICE_ROLE_KEY": "a.%.c"}, "SUPABASE_SERVICE_ROLE_KEY"),
        ({**URL, "SUPABASE_SERVICE_ROLE_KEY": jwt("anon")}, "SUPABASE_SERVICE_ROLE_KEY"),
        ({"SUPABASE_URL": "x.supabase.co"}, "SUPABASE_URL"),
        ({"SUPABASE_URL": "https://x.supabase.co/rest/v1"}, "SUPABASE_URL"),
        ({"SUPABASE_URL": "https://x:port"}, "SUPABASE_URL"),
        ({"SUPABASE_URL": "ftp://x"}, "SUPABASE_URL"),
    ],
)
def test_a_missing_or_malformed_connection_names_its_variable(
    environ: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        Required(environ).supabase()


@pytest.mark.parametrize("value", ["", "localhost/db", "mysql://x/y", "https://x.supabase.co"])
def test_a_malformed_database_url_names_its_variable(value: str) -> None:
    with pytest.raises(ConfigurationError, match="FAIRLEASE_DATABASE_URL"):
        Required({"FAIRLEASE_DATABASE_URL": value}).database_url()


@pytest.mark.parametrize("value", ["postgresql://u:p@h:1/d", "postgres:///d", "host=/tmp dbname=d"])
def test_what_libpq_understands_is_a_database_url(value: str) -> None:
    assert Required({"FAIRLEASE_DATABASE_URL": value}).database_url().get_secret_value() == value


@pytest.mark.parametrize(
    ("environ", "transport"),
    [
        ({**URL}, Transport.POSTGREST),
        ({"FAIRLEASE_DATABASE_URL": "postgres:///d"}, Transport.DIRECT),
        ({**URL, "FAIRLEASE_DATABASE_URL": "postgres:///d"}, Transport.POSTGREST),
        ({**URL, "FAIRLEASE_TRANSPORT": "direct"}, Transport.DIRECT),
        ({"FAIRLEASE_TRANSPORT": " PostgREST "}, Transport.POSTGREST),
    ],
)
def test_both_configured_runs_go_through_postgrest_unless_the_variable_says_otherwise(
    environ: dict[str, str], transport: Transport
) -> None:
    assert Required(environ).transport() is transport


@pytest.mark.parametrize("environ", [{}, {**URL, "FAIRLEASE_TRANSPORT": "grpc"}])
def test_no_or_an_unknown_transport_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=re.compile("FAIRLEASE_|SUPABASE_URL")):
        Required(environ).transport()


def test_several_function_secrets_are_valid_and_an_empty_one_never_is() -> None:
    secrets = Required({"EDGE_FUNCTION_SECRET": " a ,, b,"}).function_secrets()
    assert [s.get_secret_value() for s in secrets] == ["a", "b"]
    for nothing in ("", " ", ",", " , ,"):
        with pytest.raises(ConfigurationError, match="EDGE_FUNCTION_SECRET"):
            Required({"EDGE_FUNCTION_SECRET": nothing}).function_secrets()


def test_alerts_are_optional_but_not_to_nowhere() -> None:
    assert Required({}).sentry_dsn() is None
    assert Required({"SENTRY_DSN": "https://key@sentry.io/1"}).sentry_dsn() is not None
    for bad in ("sentry.io/1", "https://sentry.io/1", "https://key@sentry.io", "https://k@h:x/1"):
        with pytest.raises(ConfigurationError, match="SENTRY_DSN"):
            Required({"SENTRY_DSN": bad}).sentry_dsn()


def test_no_error_and_no_repr_repeats_a_secret() -> None:
    secret = "hush-hush"
    everything = {
        "SUPABASE_URL": "https://x",
        "SUPABASE_SECRET_KEY": secret,
        "SUPABASE_SERVICE_ROLE_KEY": secret,
        "FAIRLEASE_DATABASE_URL": f"mysql://u:{secret}@h/d",
        "EDGE_FUNCTION_SECRET": secret,
        "SENTRY_DSN": f"ftp://{secret}@h/1",
    }
    required = Required(everything)
    said = [repr(required), str(vars(required)), repr(required.function_secrets())]
    for check in (required.supabase, required.database_url, required.sentry_dsn):
        with pytest.raises(ConfigurationError) as caught:
            check()
        said.append(str(caught.value))
    assert secret not in " ".join(said)
