"""One message per repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease import NewMessage
from github_worker.client import require_own
from github_worker.payloads import RepositoryPermissions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from github_worker.client import OrgApi
    from github_worker.payloads import FixAssignmentRepoPermissions


async def fix_permissions(api: OrgApi, args: FixAssignmentRepoPermissions) -> None:
    """Send a `sync_repo_permissions` for every repository of the assignment."""
    tables = await _repositories(api, args)
    messages = [_message(api, args, name, own) for name, own in tables.items()]
    if messages:
        await api.ctx.send(messages)
    api.ctx.log.info("fanned out", extra={"messages": len(messages)})


async def _repositories(
    api: OrgApi, args: FixAssignmentRepoPermissions
) -> dict[str, RepositoryPermissions]:
    if args.repositories is not None:
        for repository in args.repositories:
            require_own(api.org, repository.rpartition("/")[0] or api.org)
        return {name.rpartition("/")[2]: own for name, own in args.repositories.items()}
    prefix = (args.prefix or "").lower()
    return {
        item["name"]: RepositoryPermissions()
        async for item in api.pages("orgs", api.org, "repos", type="all", sort="full_name")
        if item["name"].lower().startswith(prefix) and not item.get("archived")
    }


def _message(
    api: OrgApi, args: FixAssignmentRepoPermissions, name: str, own: RepositoryPermissions
) -> NewMessage:
    tables = {
        "collaborators": _joined(args.collaborators, own.collaborators),
        "teams": _joined(args.teams, own.teams),
    }
    given = {key: table for key, table in tables.items() if table is not None}
    repository = f"{args.org}/{name}"
    ctx = api.ctx
    body = {
        "method": "sync_repo_permissions",
        "args": {
            "org": args.org,
            "repository": repository,
            "remove_others": args.remove_others,
            **given,
        },
    }
    # The same for every delivery of this message: a crash after the send does not send twice.
    key = f"fix_assignment_repo_permissions/{ctx.queue}/{ctx.msg_id}/{name.lower()}"
    return NewMessage(body, org=ctx.org, key=key)


def _joined(
    common: Mapping[str, str] | None, own: Mapping[str, str] | None
) -> dict[str, str] | None:
    """The common table with the repository's own entries on top; None leaves access alone."""
    if common is None and own is None:
        return None
    table = {name.lower(): permission for name, permission in (common or {}).items()}
    return table | {name.lower(): permission for name, permission in (own or {}).items()}
