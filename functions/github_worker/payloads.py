"""The arguments of each method, validated before its handler runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    StringConstraints,
    field_validator,
    model_validator,
)

Permission = Literal["pull", "triage", "push", "maintain", "admin"]
Login = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$", strip_whitespace=True)
]
RepositoryName = Annotated[
    str, StringConstraints(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9_-]{0,99}/)?[A-Za-z0-9._-]{1,100}$")
]


class OrgArguments(BaseModel):
    """`org` is the organization that the message is charged to; any case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    org: Login


class RepositoryArguments(OrgArguments):
    """`repository` is `owner/name`, or the name alone; the owner must be the organization."""

    repository: RepositoryName

    @field_validator("repository")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if value.rpartition("/")[2] in {".", ".."}:
            raise ValueError("this cannot be the name of a repository")
        return value

    @property
    def owner(self) -> str:
        return self.repository.rpartition("/")[0] or self.org

    @property
    def name(self) -> str:
        return self.repository.rpartition("/")[2]


def _without_twins(table: dict[str, Permission]) -> dict[str, Permission]:
    """GitHub ignores case: two spellings of one name could ask for two permissions."""
    if len({name.lower() for name in table}) != len(table):
        raise ValueError("a name stands here twice in different case; keep one")
    return table


Table = Annotated[dict[Login, Permission], AfterValidator(_without_twins)]


class CreateRepo(RepositoryArguments):
    """`template` is a template repository of the same organization."""

    private: bool = True
    description: Annotated[str, StringConstraints(max_length=350)] = ""
    is_template: bool = False
    auto_init: bool = False
    template: RepositoryName | None = None


class SyncRepoPermissions(RepositoryArguments):
    """Who may do what. A table that is absent is left alone; a given one is made true.

    `remove_others` also takes access from those whom the given table does not name.
    """

    collaborators: Table | None = None
    teams: Table | None = None
    remove_others: bool = True


class SyncTeam(OrgArguments):
    """`team` is the name or the slug; `members` are logins."""

    team: Annotated[str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True)]
    members: list[Login]
    description: Annotated[str, StringConstraints(max_length=350)] = ""
    remove_others: bool = True


class ArchiveRepoAndLock(RepositoryArguments):
    """Nothing beyond the repository."""


class RepositoryPermissions(BaseModel):
    """The tables of one repository of an assignment, on top of those for all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    collaborators: Table | None = None
    teams: Table | None = None


class FixAssignmentRepoPermissions(OrgArguments):
    """Either `repositories` by name, or all whose name begins with `prefix`."""

    prefix: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,100}$")] | None = None
    repositories: dict[RepositoryName, RepositoryPermissions] | None = None
    collaborators: Table | None = None
    teams: Table | None = None
    remove_others: bool = False

    @field_validator("repositories")
    @classmethod
    def _each_once(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        names = {name.rpartition("/")[2].lower() for name in value or {}}
        if len(names) != len(value or {}):
            raise ValueError("a repository stands here twice; keep one")
        return value

    @model_validator(mode="after")
    def _one_of_two(self) -> FixAssignmentRepoPermissions:
        if (self.prefix is None) == (self.repositories is None):
            raise ValueError("give either prefix or repositories")
        return self
