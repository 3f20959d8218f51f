"""Which function a request means: by its name and the names of its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.local.gateway.errors import GatewayError
from fairlease.local.gateway.hints import nearest
from fairlease.local.gateway.media import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlease.local.gateway.routine import Routine
    from fairlease.local.gateway.schema_cache import SchemaCache

_WHOLE_BODY_TYPES = {
    Kind.JSON: ("json", "jsonb"),
    Kind.TEXT: ("text",),
    Kind.XML: ("xml",),
    Kind.OCTETS: ("bytea",),
}
_PARAMETERS_SCORE = 0.33
_NAME_SCORE = 0.75


@dataclass(frozen=True)
class Wanted:
    """`body` is the kind of the body of a POST, None for the other methods."""

    schema: str
    name: str
    argument_names: frozenset[str]
    body: Kind | None

    @property
    def qualified_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def raw_body_type(self) -> str | None:
        """The parameter type that takes a body which is not JSON."""
        if self.body in {Kind.TEXT, Kind.XML, Kind.OCTETS}:
            return _WHOLE_BODY_TYPES[self.body][0]
        return None


def find_routine(cache: SchemaCache, wanted: Wanted) -> Routine:
    """Raises GatewayError: PGRST202 for none, PGRST203 for several.

    There is no preference among those whose names fit, an exact one included; a function that
    takes the whole body comes into question where no other does.
    """
    overloads = cache.routines.get((wanted.schema, wanted.name), ())
    by_name = [routine for routine in overloads if _takes(routine, wanted)]
    fitting = by_name or [routine for routine in overloads if _takes_whole_body(routine, wanted)]
    if not fitting:
        raise _not_found(cache, wanted, overloads)
    if len(fitting) > 1:
        raise _ambiguous(fitting)
    return fitting[0]


def _takes(routine: Routine, wanted: Wanted) -> bool:
    names = wanted.argument_names
    if not routine.parameters:
        return not names and wanted.raw_body_type is None
    required = {parameter.name for parameter in routine.parameters if parameter.required}
    optional = {parameter.name for parameter in routine.parameters if not parameter.required}
    if not optional:
        return names == required
    return names - optional == required


def _takes_whole_body(routine: Routine, wanted: Wanted) -> bool:
    parameter = routine.only_unnamed
    if parameter is None or wanted.body is None:
        return False
    return parameter.type in _WHOLE_BODY_TYPES.get(wanted.body, ())


def _ambiguous(routines: Sequence[Routine]) -> GatewayError:
    signatures = ", ".join(
        f"{routine.schema}.{routine.name}"
        f"({', '.join(f'{each.name} => {each.type}' for each in routine.parameters)})"
        for routine in routines
    )
    return GatewayError(
        300,
        "PGRST203",
        f"Could not choose the best candidate function between: {signatures}",
        hint="Try renaming the parameters or the function itself in the database so function "
        "overloading can be resolved",
    )


def _not_found(cache: SchemaCache, wanted: Wanted, overloads: Sequence[Routine]) -> GatewayError:
    name = wanted.qualified_name
    raw_type = wanted.raw_body_type
    if raw_type is not None:
        called, searched, hint = name, f"with a single unnamed {raw_type} parameter", None
    else:
        names = sorted(wanted.argument_names)
        listed = ", ".join(names)
        called = f"{name}({listed})" if names else f"{name} without parameters"
        searched = f"with parameter{'s' * (len(names) > 1)} {listed}"
        searched = searched if names else "without parameters"
        if wanted.body is Kind.JSON:
            searched += " or with a single unnamed json/jsonb parameter"
        hint = _hint(cache, wanted, overloads)
    return GatewayError(
        404,
        "PGRST202",
        f"Could not find the function {called} in the schema cache",
        f"Searched for the function {name} {searched}, but no matches were found in the schema "
        "cache.",
        hint and f"Perhaps you meant to call the function {hint}",
    )


def _hint(cache: SchemaCache, wanted: Wanted, overloads: Sequence[Routine]) -> str | None:
    if not overloads:
        name = nearest(cache.routine_names(wanted.schema), wanted.name, _NAME_SCORE)
        return name and f"{wanted.schema}.{name}"
    known = [_listed(each.name for each in routine.parameters) for routine in overloads]
    found = nearest(known, _listed(wanted.argument_names), _PARAMETERS_SCORE)
    return found and f"{wanted.qualified_name}{found}"


def _listed(names: Iterable[str]) -> str:
    return f"({', '.join(sorted(names))})"
