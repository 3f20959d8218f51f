"""Creating and archiving repositories: look first, then make it so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlease import Dead
from github_worker.answers import missing
from github_worker.client import require_own

if TYPE_CHECKING:
    from github_worker.client import OrgApi
    from github_worker.payloads import CreateRepo, RepositoryArguments


async def create(api: OrgApi, args: CreateRepo) -> None:
    """Make the repository unless it is there. Raises `Dead` where another one has the name."""
    if args.template is not None:
        require_own(api.org, args.template.rpartition("/")[0] or api.org)
    found = await api.get("repos", api.org, args.name)
    if found is None:
        found = await _create(api, args)
    if found is not None:
        _require_ours(api.org, args, found)


async def _create(api: OrgApi, args: CreateRepo) -> Any:
    """None when it was made; else the repository of the one who was faster."""
    body = {"name": args.name, "private": args.private, "description": args.description}
    if args.template is None:
        parts: tuple[str, ...] = ("orgs", api.org, "repos")
        body |= {"is_template": args.is_template, "auto_init": args.auto_init}
    else:
        parts = ("repos", api.org, args.template.rpartition("/")[2], "generate")
        body["owner"] = api.org
    answer = await api.call("POST", *parts, body=body, accept={404, 422})
    if answer.status == 404:  # noqa: PLR2004
        raise Dead(await _nothing_to_create_in(api, args))
    if answer.status != 422:  # noqa: PLR2004
        return None
    found = await api.get("repos", api.org, args.name)
    if found is None:
        raise Dead(f"create {api.org}/{args.name}: 422: {answer.said or 'GitHub gave no reason'}")
    return found


async def _nothing_to_create_in(api: OrgApi, args: CreateRepo) -> str:
    if await api.get("orgs", api.org) is None:
        return f"organization {api.org!r} does not exist, or {api.credentials} may not see it"
    if args.template is not None:
        return f"template {args.template!r} does not exist, or is no template repository"
    return f"{api.credentials} may not create repositories in {api.org!r}"


def _require_ours(org: str, args: CreateRepo, found: dict[str, Any]) -> None:
    """The one that was asked for: same full name, visibility, and template where one was asked."""
    named = f"{org}/{args.name}"
    if str(found.get("full_name", "")).lower() != named.lower():
        raise Dead(f"{named}: the name belongs to a renamed repository; choose another name")
    if bool(found.get("private")) != args.private:
        has = "private" if found.get("private") else "public"
        raise Dead(f"{named}: a {has} repository has this name; rename it or change 'private'")
    source = found.get("template_repository")
    made_from = source.get("full_name") if isinstance(source, dict) else None
    if args.template is not None and isinstance(made_from, str):
        asked = f"{org}/{args.template.rpartition('/')[2]}"
        if made_from.lower() != asked.lower():
            raise Dead(f"{named}: a repository made from {made_from} has this name; rename it")


async def require(api: OrgApi, args: RepositoryArguments) -> dict[str, Any]:
    """The repository. Without one: `Dead` if the organization is missing too, else not yet."""
    found = await api.get("repos", api.org, args.name)
    if isinstance(found, dict):
        return found
    if await api.get("orgs", api.org) is None:
        raise Dead(f"organization {api.org!r} does not exist, or {api.credentials} may not see it")
    raise missing(f"repository {api.org}/{args.name}", api.ctx.attempt)
