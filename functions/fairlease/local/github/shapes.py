"""The JSON of GitHub's resources, with the fields that a client of the contract may rely on."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from fairlease.local.github.world import PERMISSIONS, ROLE_NAMES

if TYPE_CHECKING:
    from fairlease.local.github.world import Invitation, Org, Repo, Team


def account(login: str, kind: str = "User") -> dict[str, Any]:
    identifier = zlib.crc32(login.lower().encode())
    return {"login": login, "id": identifier, "type": kind, "site_admin": False}


def organization(org: Org) -> dict[str, Any]:
    return {"login": org.login, "id": org.id, "description": None}


def repository(repo: Repo) -> dict[str, Any]:
    template = None
    if repo.template is not None:
        owner, name = repo.template.split("/", 1)
        organization_ = account(owner, "Organization")
        template = {"full_name": repo.template, "name": name, "owner": organization_}
    return {
        "id": repo.id,
        "node_id": f"R_{repo.id}",
        "name": repo.name,
        "full_name": repo.full_name,
        "owner": account(repo.owner, "Organization"),
        "private": repo.private,
        "visibility": "private" if repo.private else "public",
        "description": repo.description,
        "fork": False,
        "archived": repo.archived,
        "disabled": False,
        "is_template": repo.is_template,
        "template_repository": template,
        "default_branch": repo.default_branch,
    }


def granted(permission: str) -> dict[str, bool]:
    """Each permission includes those below it."""
    rank = PERMISSIONS.index(permission)
    return {name: index <= rank for index, name in enumerate(PERMISSIONS)}


def collaborator(login: str, permission: str) -> dict[str, Any]:
    role = ROLE_NAMES.get(permission, permission)
    return account(login) | {"permissions": granted(permission), "role_name": role}


def invitation(repo: Repo, sent: Invitation) -> dict[str, Any]:
    return {
        "id": sent.id,
        "repository": repository(repo),
        "invitee": account(sent.login),
        "permissions": ROLE_NAMES.get(sent.permission, sent.permission),
        "expired": False,
    }


def team(found: Team, permission: str = "pull") -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "slug": found.slug,
        "description": found.description,
        "privacy": found.privacy,
        "permission": permission,
        "permissions": granted(permission),
        "parent": None,
    }
