"""`fairlease doctor`: what is wrong with this setup, and what to do about it."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairlease.cli.options import Json
from fairlease.clock import SystemClock
from fairlease.errors import ConfigurationError
from fairlease.settings import KnobIssue, Required, Settings, Transport, load_settings
from fairlease.telemetry.span_profile import trace_profile

if TYPE_CHECKING:
    from fairlease.admin.doctor import Check
    from fairlease.host.functions import FunctionFolder

_UNHEALTHY = 1


def doctor(
    functions: Annotated[
        list[str] | None,
        typer.Option(help="Folder of function folders, or `bundled`; may be given again."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at the settings, the database and the gateway; exit code 1 if anything is a problem.

    Example: fairlease doctor --json
    """
    # psycopg belongs to the extra `direct`; other commands do without.
    from fairlease.admin.doctor import State  # noqa: PLC0415
    from fairlease.host.lifetime import lifetime_of  # noqa: PLC0415

    folders, checks = _functions(functions)
    settings = load_settings(os.environ)
    issues = [
        *settings.issues,
        *lifetime_of(settings.knobs, os.environ)[1],
        *trace_profile(os.environ)[1],
    ]
    for folder in folders.values():
        issues += [i for i in folder.settings(os.environ).issues if i not in issues]
    checks = [
        _knobs(issues),
        *checks,
        *_secrets(),
        *_database(settings, folders),
        *_gateway(folders),
    ]
    healthy = not any(check.state is State.PROBLEM for check in checks)
    if as_json:
        typer.echo(json.dumps(_report(healthy, checks, settings, issues)))
    else:
        _print(checks, issues)
    if not healthy:
        raise typer.Exit(_UNHEALTHY)


def _report(
    healthy: bool, checks: list[Check], settings: Settings, issues: list[KnobIssue]
) -> dict[str, Any]:
    return {
        "ok": healthy,
        "checks": [check.as_json() for check in checks],
        "facts": {check.area: check.facts for check in checks if check.facts},
        "knobs": settings.knobs.model_dump(),
        "knob_issues": [issue.as_json() for issue in issues],
    }


def _print(checks: list[Check], issues: list[KnobIssue]) -> None:
    for check in checks:
        typer.echo(f"{check.state.value:8} {check.area:18} {check.says}")
        if check.remedy:
            typer.echo(f"{'':8} {'':18} -> {check.remedy}")
    for issue in issues:
        typer.echo(f"{'':8} {'knobs':18} {issue.message}")


def _functions(given: list[str] | None) -> tuple[dict[str, FunctionFolder], list[Check]]:
    from fairlease.admin.doctor import Check, State  # noqa: PLC0415 - as above
    from fairlease.host.functions import discover, folders_from  # noqa: PLC0415 - extra `host`

    try:
        found = discover(folders_from(given or [], os.environ))
    except ConfigurationError as error:
        return {}, [Check("functions_folder", State.PROBLEM, str(error))]
    says = f"{len(found)} functions: {', '.join(found)}"
    return found, [Check("functions_folder", State.OK, says, facts={"functions": list(found)})]


def _knobs(issues: list[KnobIssue]) -> Check:
    from fairlease.admin.doctor import Check, State  # noqa: PLC0415 - as above

    if not issues:
        return Check("knobs", State.OK, "every knob is as it was written")
    says = f"{len(issues)} knobs are not as they were written"
    return Check("knobs", State.WARNING, says, "correct the variables below, or remove them")


def _secrets() -> list[Check]:
    from fairlease.admin.doctor import Check, State  # noqa: PLC0415 - as above

    required, checks = Required(os.environ), []
    try:
        count = len(required.function_secrets())
        checks.append(Check("secrets", State.OK, f"{count} secrets open the host"))
    except ConfigurationError as error:
        checks.append(Check("secrets", State.WARNING, str(error), "`fairlease serve` needs it"))
    try:
        required.sentry_dsn()
    except ConfigurationError as error:
        checks.append(Check("alerts", State.PROBLEM, str(error)))
    return checks


def _database(settings: Settings, folders: dict[str, FunctionFolder]) -> list[Check]:
    from fairlease.admin.doctor import Check, State, examine  # noqa: PLC0415 - as above

    required = Required(os.environ)
    if not required.has_database_url():
        says = "FAIRLEASE_DATABASE_URL is not set; schema, grants and clock were not looked at"
        return [Check("connection", State.WARNING, says, "set it to look at the database directly")]
    try:
        url = required.database_url().get_secret_value()
    except ConfigurationError as error:
        return [Check("connection", State.PROBLEM, str(error))]
    queues = [queue for folder in folders.values() for queue in folder.queues]
    return examine(url, SystemClock(), settings.knobs, queues)


def _gateway(folders: dict[str, FunctionFolder]) -> list[Check]:
    from fairlease.admin.doctor import Check, State, examine_gateway  # noqa: PLC0415 - as above

    try:
        if Required(os.environ).transport() is Transport.DIRECT:
            says = "runs connect directly; no gateway is in the way"
            return [Check("exposure", State.OK, says)]
        from fairlease.app import App  # noqa: PLC0415 - half a second that others need not pay

        app = App(os.environ)
    except ConfigurationError as error:
        return [Check("transport", State.PROBLEM, str(error))]
    queues = [queue for folder in folders.values() for queue in folder.queues] or ["doctor"]

    async def ask() -> Check:
        rpc = app.connect()
        try:
            return await examine_gateway(rpc, queues[0])
        finally:
            await rpc.aclose()

    return [asyncio.run(ask())]
