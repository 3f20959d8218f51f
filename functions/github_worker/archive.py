"""Archiving for good: take write access first, because an archived repository is read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from github_worker import access

if TYPE_CHECKING:
    from github_worker.client import OrgApi

# What `lock_branch` needs beside it: GitHub demands all four, null or not.
LOCKED = {
    "required_status_checks": None,
    "enforce_admins": True,
    "required_pull_request_reviews": None,
    "restrictions": None,
    "lock_branch": True,
}


async def archive_and_lock(api: OrgApi, name: str, branch: str) -> None:
    """Idempotent; `archived` is set last, so that an archived repository is also a locked one."""
    await access.withdraw_invitations(api, name)
    for table, sync in (
        (await access.collaborators(api, name), access.sync_collaborators),
        (await access.teams(api, name), access.sync_teams),
    ):
        readers = dict.fromkeys(table, "pull")
        await sync(api, name, readers, remove_others=False)
    await _lock(api, name, branch)
    await api.call("PATCH", "repos", api.org, name, body={"archived": True})


async def _lock(api: OrgApi, name: str, branch: str) -> None:
    """Without commits there is no branch (404), and some plans protect none in private (403)."""
    parts = ("repos", api.org, name, "branches", branch, "protection")
    answer = await api.call("PUT", *parts, body=LOCKED, accept={403, 404})
    if answer.status >= 400:  # noqa: PLR2004
        api.ctx.log.info("branch not locked", extra={"status": answer.status})
