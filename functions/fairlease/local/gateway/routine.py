"""A function as the schema cache knows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Parameter:
    """`cast_type` is what a JSON value is read as; an unnamed parameter has the name ""."""

    name: str
    type: str
    cast_type: str
    required: bool
    variadic: bool


# Compared by identity: a reload makes new ones, and they are keys of caches.
@dataclass(frozen=True, eq=False)
class Routine:
    """`settings` are those of the function that hold for the whole transaction.

    `media_type`: schema and name of the domain it returns, where that names a media type.
    """

    schema: str
    name: str
    description: str | None
    parameters: tuple[Parameter, ...]
    returns_set: bool
    returns_composite: bool
    return_type: str
    media_type: tuple[str, str] | None
    volatility: str
    isolation_level: str | None
    settings: tuple[tuple[str, str], ...]

    @property
    def returns_scalar(self) -> bool:
        return not self.returns_set and not self.returns_composite

    @property
    def returns_scalar_set(self) -> bool:
        return self.returns_set and not self.returns_composite

    @property
    def returns_single_composite(self) -> bool:
        return not self.returns_set and self.returns_composite

    @property
    def returns_void(self) -> bool:
        return self.returns_scalar and self.return_type == "void"

    @property
    def is_volatile(self) -> bool:
        return self.volatility == "v"

    @property
    def relation_name(self) -> str:
        """What its result is called in filters and in errors."""
        return self.return_type if self.returns_composite else self.name

    @property
    def only_unnamed(self) -> Parameter | None:
        """The parameter of a function that takes the whole body."""
        if len(self.parameters) == 1 and self.parameters[0].name == "":
            return self.parameters[0]
        return None

    @property
    def order(self) -> tuple[int, bool, str, tuple[Parameter, ...]]:
        """Overloads are listed by this: fewest parameters first."""
        return (
            len(self.parameters),
            self.description is not None,
            self.description or "",
            self.parameters,
        )
