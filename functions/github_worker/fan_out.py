"""One message per repository, sent by whoever hosts the worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fairlease import ConfigurationError
from github_worker.client import require_own
from github_worker.payloads import RepositoryPermissions

if TYPE_CHECKING:
    from github_worker.client import OrgApi
    from github_worker.payloads import FixAssignmentRepoPermissions

Envelope = Mapping[str, Any]


class Send(Protocol):
    """Puts envelopes (`method`, `org`, `args`, `key`) on a queue in one round trip.

    One whose `key` is live already must not become a second message.
    """

    async def __call__(self, queue: str, envelopes: Sequence[Envelope]) -> object: ...


_sender: list[Send] = []


def send_with(send: Send | None) -> None:
    """Set what sends for this process; None takes it away."""
    _sender[:] = [] if send is None else [send]


async def fix_permissions(api: OrgApi, args: FixAssignmentRepoPermissions) -> None:
    """Send a `sync_repo_permissions` for every repository of the assignment.

    Raises `ConfigurationError` where no sender is set.
    """
    if not _sender:
        raise ConfigurationError(
            "github_worker has no sender; call fan_out.send_with(send) at start"
        )
    tables = await _repositories(api, args)
    envelopes = [_envelope(api, args, name, own) for name, own in tables.items()]
    if envelopes:
        await _sender[0](api.ctx.queue, envelopes)
    api.ctx.log.info("fanned out", extra={"messages": len(envelopes)})


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


def _envelope(
    api: OrgApi, args: FixAssignmentRepoPermissions, name: str, own: RepositoryPermissions
) -> Envelope:
    tables = {
        "collaborators": _joined(args.collaborators, own.collaborators),
        "teams": _joined(args.teams, own.teams),
    }
    given = {key: table for key, table in tables.items() if table is not None}
    repository = f"{args.org}/{name}"
    ctx = api.ctx
    return {
        "method": "sync_repo_permissions",
        "org": ctx.org,
        "args": {
            "org": args.org,
            "repository": repository,
            "remove_others": args.remove_others,
            **given,
        },
        # The same for every delivery of this message: a crash after the send does not send twice.
        "key": f"fix_assignment_repo_permissions/{ctx.queue}/{ctx.msg_id}/{name.lower()}",
    }


def _joined(
    common: Mapping[str, str] | None, own: Mapping[str, str] | None
) -> dict[str, str] | None:
    """The common table with the repository's own entries on top; None leaves access alone."""
    if common is None and own is None:
        return None
    table = {name.lower(): permission for name, permission in (common or {}).items()}
    return table | {name.lower(): permission for name, permission in (own or {}).items()}
