"""The methods of the worker. Each may run twice: it looks before it changes anything."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fairlease import ConfigurationError, Context, Retry, Worker
from github_worker import access, archive, connection, fan_out, repositories, teams
from github_worker.client import OrgApi, require_own
from github_worker.payloads import (
    ArchiveRepoAndLock,
    CreateRepo,
    FixAssignmentRepoPermissions,
    OrgArguments,
    RepositoryArguments,
    SyncRepoPermissions,
    SyncTeam,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

worker = Worker()

RETRY = Retry(max_attempts=10, base=30, cap=3600)
worker.on_close(connection.close)


@worker.handler("create_repo", retry=RETRY)
async def create_repo(args: CreateRepo, ctx: Context) -> None:
    """Make a repository, empty or from a template of the organization."""
    async with _api(args, ctx) as api:
        await repositories.create(api, args)


@worker.handler("sync_repo_permissions", retry=RETRY)
async def sync_repo_permissions(args: SyncRepoPermissions, ctx: Context) -> None:
    """Make the collaborators and teams of a repository those of the message."""
    async with _api(args, ctx) as api:
        await repositories.require(api, args)
        absent: Sequence[str] = ()
        unknown: Sequence[str] = ()
        if args.teams is not None:
            absent = await access.sync_teams(
                api, args.name, args.teams, remove_others=args.remove_others
            )
        if args.collaborators is not None:
            unknown = await access.sync_collaborators(
                api, args.name, args.collaborators, remove_others=args.remove_others
            )
        access.require_teams(api, absent)
        access.require_known(unknown)


@worker.handler("sync_student_team", retry=RETRY)
async def sync_student_team(args: SyncTeam, ctx: Context) -> None:
    """Make the members of a secret team those of the message."""
    async with _api(args, ctx) as api:
        access.require_known(await teams.sync(api, args, teams.STUDENTS))


@worker.handler("sync_staff_team", retry=RETRY)
async def sync_staff_team(args: SyncTeam, ctx: Context) -> None:
    """Make the maintainers of a visible team those of the message."""
    async with _api(args, ctx) as api:
        access.require_known(await teams.sync(api, args, teams.STAFF))


@worker.handler("archive_repo_and_lock", retry=RETRY)
async def archive_repo_and_lock(args: ArchiveRepoAndLock, ctx: Context) -> None:
    """Take write access, lock the default branch, archive."""
    async with _api(args, ctx) as api:
        found = await repositories.require(api, args)
        if not found.get("archived"):
            await archive.archive_and_lock(api, args.name, str(found["default_branch"]))


@worker.handler("fix_assignment_repo_permissions", retry=RETRY)
async def fix_assignment_repo_permissions(args: FixAssignmentRepoPermissions, ctx: Context) -> None:
    """Fan out: one `sync_repo_permissions` for every repository of an assignment."""
    async with _api(args, ctx) as api:
        await fan_out.fix_permissions(api, args)


@asynccontextmanager
async def _api(args: OrgArguments, ctx: Context) -> AsyncIterator[OrgApi]:
    """The API of the org that the message is charged to, if that is the one it speaks of."""
    require_own(ctx.org, args.org)
    if isinstance(args, RepositoryArguments):
        require_own(ctx.org, args.owner)
    try:
        yield await connection.connect(ctx)
    except ConfigurationError:
        # Refused credentials: an installation token may have been revoked before its time.
        connection.forget(ctx.org)
        raise
