"""The organizations, repositories and teams that the server holds in memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from fairlease.local.github.answers import not_found
from fairlease.local.github.throttle import Limits

# As GitHub names them when they are set; a listing calls pull "read" and push "write".
PERMISSIONS = ("pull", "triage", "push", "maintain", "admin")
ROLE_NAMES = {"pull": "read", "push": "write"}
PERMISSION_OF_ROLE = {role: permission for permission, role in ROLE_NAMES.items()}

_ids = count(1_000)


def _next_id() -> int:
    return next(_ids)


@dataclass(slots=True)
class Invitation:
    login: str
    permission: str
    id: int = field(default_factory=_next_id)


@dataclass(slots=True)
class Repo:
    """`collaborators` are direct ones, login (lower) to permission."""

    owner: str
    name: str
    private: bool
    description: str | None = None
    is_template: bool = False
    template: str | None = None
    archived: bool = False
    default_branch: str = "main"
    collaborators: dict[str, str] = field(default_factory=dict)
    invitations: dict[int, Invitation] = field(default_factory=dict)
    protection: dict[str, dict[str, Any]] = field(default_factory=dict)
    id: int = field(default_factory=_next_id)

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


@dataclass(slots=True)
class Team:
    """`members` and `pending` map a login (lower) to member or maintainer."""

    name: str
    slug: str
    privacy: str = "secret"
    description: str | None = None
    members: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    repos: dict[str, str] = field(default_factory=dict)
    id: int = field(default_factory=_next_id)


@dataclass(slots=True)
class Org:
    """One tenant. `members` map a login (lower) to member or admin (an owner)."""

    login: str
    limits: Limits = field(default_factory=Limits)
    installed: bool = True
    members: dict[str, str] = field(default_factory=dict)
    repos: dict[str, Repo] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    teams: dict[str, Team] = field(default_factory=dict)
    id: int = field(default_factory=_next_id)

    def repo(self, name: str) -> Repo:
        found = self.repos.get(name.lower())
        if found is None:
            raise not_found()
        return found

    def team(self, slug: str) -> Team:
        found = self.teams.get(slug.lower())
        if found is None:
            raise not_found()
        return found


@dataclass(slots=True)
class World:
    """Every login is an account unless it is in `missing_users` (lower case)."""

    orgs: dict[str, Org] = field(default_factory=dict)
    missing_users: set[str] = field(default_factory=set)

    def org(self, login: str) -> Org:
        found = self.orgs.get(login.lower())
        if found is None:
            raise not_found()
        return found

    def repo(self, owner: str, name: str) -> Repo:
        return self.org(owner).repo(name)

    def add_org(self, org: Org) -> Org:
        self.orgs[org.login.lower()] = org
        return org

    def require_user(self, login: str) -> str:
        """The login in lower case; 404 for an account that does not exist."""
        if login.lower() in self.missing_users:
            raise not_found()
        return login.lower()


def slug_of(name: str) -> str:
    """As GitHub makes it: lower case, everything but letters, digits, - and _ becomes a dash."""
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")
