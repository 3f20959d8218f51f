"""`fairlease dlq`: what became of messages that could not be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairlease.cli.confirming import Yes, confirm
from fairlease.cli.listing import print_fields, print_rows, say_json, shown
from fairlease.cli.options import DatabaseUrl, Json, required
from fairlease.cli.progress import progress
from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from fairlease.admin.dead_letters import Replayed, Which

# A letter that was asked for was not sent.
NOT_ALL_REPLAYED = 3
_SHOWN_REFUSALS = 20

app = typer.Typer(no_args_is_help=True, help="List, read, replay and purge dead letters.")

Ids = Annotated[list[int] | None, typer.Argument(help="Dead letters, by id.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="Every dead letter of the database.")]
Queue = Annotated[str | None, typer.Option(help="Only of this queue.", show_default=False)]
Org = Annotated[str | None, typer.Option(help="Only of this org.", show_default=False)]
Method = Annotated[str | None, typer.Option(help="Only of this method.", show_default=False)]
Reason = Annotated[
    str | None, typer.Option(help="Only those whose reason contains this.", show_default=False)
]
OlderThan = Annotated[
    str | None, typer.Option(help="Only those that died before, as `2 days`.", show_default=False)
]
Most = Annotated[
    int | None, typer.Option("--limit", min=1, help="At most so many, the oldest first.")
]


@app.command("list")
def list_(
    *,
    queue: Queue = None,
    org: Org = None,
    method: Method = None,
    reason: Reason = None,
    older_than: OlderThan = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest first.")] = 50,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """The newest dead letters, each with its reason and the last line of its error.

    Example: fairlease dlq list --queue async_calls --method create_repo
    """
    from fairlease.admin import dead_letters  # noqa: PLC0415 - psycopg belongs to extra `direct`

    url, which = required(database_url), _which(queue, org, method, reason, older_than)
    letters, total = dead_letters.list_some(url, which, limit), dead_letters.count(url, which)
    if as_json:
        say_json({"dead_letters": letters, "total": total})
        return
    columns = ("id", "queue", "org", "method", "attempts", "died_at", "reason", "error")
    print_rows(columns, letters, "no dead letters")
    if total > len(letters):
        typer.echo(f"{len(letters)} of {total}; --limit shows more")


@app.command()
def show(
    letter: Annotated[int, typer.Argument(help="The dead letter's id.", metavar="ID")],
    *,
    payload: Annotated[bool, typer.Option("--payload", help="Message and headers too.")] = False,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Everything that is known of one dead letter, with its traceback.

    Example: fairlease dlq show 17 --payload
    """
    from fairlease.admin import dead_letters  # noqa: PLC0415 - as above

    found = dead_letters.show(required(database_url), letter, payload=payload)
    if as_json:
        say_json(found)
    else:
        print_fields(found)


@app.command()
def replay(
    ids: Ids = None,
    *,
    queue: Queue = None,
    org: Org = None,
    method: Method = None,
    reason: Reason = None,
    older_than: OlderThan = None,
    every: All = False,
    limit: Most = None,
    yes: Yes = False,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Send dead letters again, as new messages of the same org; asks unless they are named by id.

    A letter whose `key` is live is refused and stays. Exit code 3 if any was refused, or if one
    that was named is not there.

    Examples: fairlease dlq replay 17 18; fairlease dlq replay --method create_repo --yes
    """
    from fairlease.admin import dead_letters  # noqa: PLC0415 - as above

    url = required(database_url)
    chosen = _chosen(ids, _which(queue, org, method, reason, older_than), every)
    total = len(chosen) if isinstance(chosen, list) else dead_letters.count(url, chosen)
    total = min(total, limit or total)
    if not isinstance(chosen, list):
        confirm(f"Send {total} dead letters again?", yes)
    with progress("replaying", total) as tell:
        answer = dead_letters.replay(url, chosen, limit=limit, progress=tell)
    if as_json:
        say_json({"replayed": answer.replayed, "refused": answer.refused, "gone": answer.gone})
    else:
        _print(answer)
    if answer.refused or (answer.gone and isinstance(chosen, list)):
        raise typer.Exit(NOT_ALL_REPLAYED)


@app.command()
def purge(
    ids: Ids = None,
    *,
    queue: Queue = None,
    org: Org = None,
    method: Method = None,
    reason: Reason = None,
    older_than: OlderThan = None,
    every: All = False,
    limit: Most = None,
    yes: Yes = False,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Remove dead letters for good; asks, or takes --yes.

    Example: fairlease dlq purge --queue async_calls --older-than "30 days" --yes
    """
    from fairlease.admin import dead_letters  # noqa: PLC0415 - as above

    url = required(database_url)
    chosen = _chosen(ids, _which(queue, org, method, reason, older_than), every)
    total = len(chosen) if isinstance(chosen, list) else dead_letters.count(url, chosen)
    confirm(f"Remove {min(total, limit or total)} dead letters for good?", yes)
    removed = dead_letters.purge(url, chosen, limit=limit)
    if as_json:
        say_json({"removed": removed})
    else:
        typer.echo(f"removed {removed} dead letters")


def _which(
    queue: str | None,
    org: str | None,
    method: str | None,
    reason: str | None,
    older_than: str | None,
) -> Which:
    from fairlease.admin.dead_letters import Which  # noqa: PLC0415 - as above

    return Which(queue, org, method, reason, older_than)


def _chosen(ids: list[int] | None, which: Which, every: bool) -> list[int] | Which:
    """Raises InvalidInput unless it is clear what is meant: ids, a filter, or all."""
    given = bool(ids) + (not which.is_all) + every
    if given != 1:
        raise InvalidInput("say which: ids, or filters such as --queue, or --all; one of the three")
    return list(dict.fromkeys(ids)) if ids else which


def _print(answer: Replayed) -> None:
    for sent in answer.replayed[:_SHOWN_REFUSALS]:
        typer.echo(f"dead letter {sent['id']} is message {sent['msg_id']}")
    for refused in answer.refused[:_SHOWN_REFUSALS]:
        typer.echo(f"dead letter {refused['id']} refused: {shown(refused['note'])}", err=True)
    if answer.gone:
        typer.echo(f"not there: {', '.join(map(str, answer.gone[:_SHOWN_REFUSALS]))}", err=True)
    typer.echo(f"replayed {len(answer.replayed)}, refused {len(answer.refused)}")
