"""`fairlease cron`: the schedules of functions, for pg_cron or for Kubernetes."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from fairlease.cli.options import Json
from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from fairlease.cron.jobs import PokeJob

app = typer.Typer(
    no_args_is_help=True,
    help="Print what wakes the functions, from the schedules in their function.toml. "
    "Nothing is changed: pipe it into psql, kubectl or helm.",
)

Functions = Annotated[
    list[str] | None,
    typer.Option(help="Folder of function folders, or `bundled`; may be given again."),
]


@app.command()
def sql(
    url: Annotated[
        str, typer.Option(help="Where pokes go: https://PROJECT.supabase.co, or a host.")
    ] = "",
    functions: Functions = None,
    vault_secret: Annotated[
        str, typer.Option(help="Name of the secret in Vault whose value is EDGE_FUNCTION_SECRET.")
    ] = "edge_function_secret",  # noqa: S107 - its name
    label: Annotated[
        str, typer.Option(help="Begins the jobs' names; one for each fleet of a database.")
    ] = "fairlease",
    remove: Annotated[bool, typer.Option("--remove", help="Unschedule instead.")] = False,
    as_json: Json = False,
) -> None:
    """SQL that has pg_cron poke the functions through pg_net, with the secret from Vault.

    It leaves exactly these jobs under the label, so it can be run again after every change.

    Example: fairlease cron sql --url https://PROJECT.supabase.co | psql "$FAIRLEASE_DATABASE_URL"
    """
    from fairlease.cron import pg_cron  # noqa: PLC0415 - extra `host`
    from fairlease.cron.jobs import checked_url  # noqa: PLC0415

    named = pg_cron.checked_label(label)
    if remove:
        text = pg_cron.remove_sql(named)
        typer.echo(json.dumps({"sql": text, "jobs": []}) if as_json else text, nl=as_json)
        return
    if not url:
        raise InvalidInput(
            "where to poke: give --url https://PROJECT.supabase.co, or the URL of a host that the "
            "database can reach"
        )
    if not vault_secret:
        raise InvalidInput("--vault-secret is empty: give the name of the secret in Vault")
    base = checked_url(url)
    jobs = _jobs(functions)
    text = pg_cron.schedule_sql(jobs, base, vault_secret, named)
    if not as_json:
        typer.echo(text, nl=False)
        return
    listed = [
        {
            "name": pg_cron.job_name(named, job.function),
            "function": job.function,
            "schedule": job.schedule,
            "pokes": job.pokes,
            "command": pg_cron.poke_command(job, base, vault_secret),
        }
        for job in jobs
    ]
    typer.echo(json.dumps({"sql": text, "jobs": listed}))


@app.command()
def k8s(
    functions: Functions = None,
    image: Annotated[
        str,
        typer.Option(help="Print CronJobs that run this image, for a cluster without the chart."),
    ] = "",
    name: Annotated[
        str, typer.Option(help="With --image: the hosts' Service; begins the CronJobs' names.")
    ] = "fairlease",
    secret: Annotated[
        str, typer.Option(help="With --image: the Secret that has EDGE_FUNCTION_SECRET.")
    ] = "fairlease",  # noqa: S107 - its name
    url: Annotated[
        str, typer.Option(help="With --image: where pokes go.", show_default="http://NAME:8787")
    ] = "",
    namespace: Annotated[str, typer.Option(help="With --image: of the CronJobs.")] = "",
    as_json: Json = False,
) -> None:
    """The chart's value `cron.functions`; or, with --image, CronJobs like the chart's.

    Example: fairlease cron k8s --functions ./functions > cron.yaml; helm upgrade ... -f cron.yaml

    Example: fairlease cron k8s --image registry.example.com/fairlease:0.1.0 | kubectl apply -f -
    """
    from fairlease.cron import kubernetes  # noqa: PLC0415 - extra `host`
    from fairlease.cron.jobs import checked_url  # noqa: PLC0415

    jobs = _jobs(functions)
    if image:
        named = kubernetes.checked_name(name)
        target = checked_url(url or f"http://{named}:8787")
        cluster = kubernetes.Cluster(image, named, secret, target, namespace)
        typer.echo(json.dumps(kubernetes.manifests(jobs, cluster), indent=None if as_json else 2))
    elif as_json:
        typer.echo(json.dumps(kubernetes.chart_values(jobs)))
    else:
        typer.echo(kubernetes.values_yaml(jobs), nl=False)


def _jobs(functions: list[str] | None) -> list[PokeJob]:
    from fairlease.cron.jobs import jobs_of  # noqa: PLC0415 - extra `host`
    from fairlease.host.functions import discover, folders_from  # noqa: PLC0415

    return jobs_of(discover(folders_from(functions or [], os.environ)).values())
