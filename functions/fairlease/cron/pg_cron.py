"""SQL that has pg_cron poke functions through pg_net, with the secret out of Supabase's Vault."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlease.cron.jobs import poke_url
from fairlease.cron.quoting import dollar_quoted, literal
from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlease.cron.jobs import PokeJob

# A poke is answered at once; what takes longer does not come.
_TIMEOUT_MILLISECONDS = 10_000
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,40}")

# pg_cron runs what it is told without a look: what is missing is to be said now.
_CHECKS = """
begin
  if not exists (select from pg_proc where pronamespace = to_regnamespace('cron')
                 and proname = 'schedule') then
    raise exception 'pg_cron is not installed in this database'
      using hint = 'On Supabase: Integrations, Cron; or: create extension pg_cron;';
  end if;
  if not exists (select from pg_proc where pronamespace = to_regnamespace('net')
                 and proname = 'http_post') then
    raise exception 'pg_net is not installed in this database'
      using hint = 'On Supabase: Database, Extensions; or: create extension pg_net;';
  end if;
  if to_regclass('vault.decrypted_secrets') is null then
    raise exception 'Vault is not installed in this database'
      using hint = 'On Supabase: Integrations, Vault; or: create extension supabase_vault;';
  end if;
  if not exists (select from vault.decrypted_secrets
                 where name = {secret} and decrypted_secret <> '') then
    raise exception 'Vault has no secret of the name %', {secret}
      using hint = 'select vault.create_secret(''<EDGE_FUNCTION_SECRET>'', <its name>);';
  end if;
  if exists (select from vault.decrypted_secrets
             where name = {secret} and position(',' in decrypted_secret) > 0) then
    raise exception 'the secret % in Vault has a comma', {secret}
      using hint = 'EDGE_FUNCTION_SECRET of a host may be several; a poke shows one of them.';
  end if;
end
"""


def checked_label(label: str) -> str:
    """Raises InvalidInput."""
    if not _LABEL.fullmatch(label):
        raise InvalidInput(f"--label {label[:60]!r}: give 1 to 40 letters, digits, - and _")
    return label


def job_name(label: str, function: str) -> str:
    return f"{label}/{function}"


def poke_command(job: PokeJob, base_url: str, vault_secret: str) -> str:
    """What pg_cron runs at each tick. The secret is looked up then, so that it can be replaced."""
    return (
        "\nselect net.http_post(\n"
        f"  url := {literal(poke_url(base_url, job.function))},\n"
        "  headers := jsonb_build_object(\n"
        "    'content-type', 'application/json', 'x-edge-function-secret', decrypted_secret),\n"
        "  body := '{}'::jsonb,\n"
        f"  timeout_milliseconds := {_TIMEOUT_MILLISECONDS})\n"
        f"from vault.decrypted_secrets, generate_series(1, {job.pokes})\n"
        f"where name = {literal(vault_secret)}\n"
    )


def schedule_sql(jobs: Sequence[PokeJob], base_url: str, vault_secret: str, label: str) -> str:
    """One transaction that leaves exactly these jobs under the label; running it again is fine."""
    checks = _CHECKS.format(secret=literal(vault_secret))
    scheduled = [
        f"select cron.schedule({literal(job_name(label, job.function))}, {literal(job.schedule)}, "
        f"{dollar_quoted(poke_command(job, base_url, vault_secret), 'poke')});"
        for job in jobs
    ]
    kept = [job_name(label, job.function) for job in jobs]
    return _transaction(
        [f"do {dollar_quoted(checks, 'check')};", _unschedule(label, kept), *scheduled]
    )


def remove_sql(label: str) -> str:
    """One transaction that leaves no job under the label."""
    return _transaction([_unschedule(label, [])])


def _unschedule(label: str, kept: Sequence[str]) -> str:
    """Jobs of folders that are gone; those of other roles and labels are left alone."""
    names = "".join(f"\n    {literal(name)}," for name in kept).rstrip(",")
    others = f"\n  and jobname <> all (array[{names}]::text[])" if kept else ""
    return (
        "select cron.unschedule(jobid) from cron.job\n"  # noqa: S608 - literals are quoted
        f"where username = current_user and starts_with(jobname, {literal(f'{label}/')}){others};"
    )


def _transaction(statements: Sequence[str]) -> str:
    return "\n\n".join(["begin;", *statements, "commit;"]) + "\n"
