"""Tables of files, and of options: fields with names that may be misspelt, and values that may not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from vfgym.clients.config import CLIENT_TYPES
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.limits import RolloutLimits, SpendingLimits
from vfgym.output.redaction import excerpt, with_secrets
from vfgym.runs.spec import RunSettings

L = TypeVar("L", SpendingLimits, RolloutLimits)


class TableFields(BaseModel):
    """The fields of a table in a file, which may have several spellings."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    spellings: ClassVar[Mapping[str, str]] = {}
    """Other names of fields."""
    hidden: ClassVar[frozenset[str]] = frozenset()
    """Fields whose values no error shows: they may hold a key."""
    alternatives: ClassVar[Sequence[tuple[str, str]]] = ()
    """Pairs of fields that say the same in two ways: a table has one of them."""

    @classmethod
    def parse(cls, given: Mapping[str, Any], where: str) -> Self:
        """Return checked fields.

        Args:
            given: The fields by their names, or other spellings of them.
            where: What the errors name as the place.

        Raises:
            ConfigurationError: If there is no such field, or a value does not fit.
        """
        try:
            return cls(**cls.rename(given, where))
        except ValidationError as error:
            problems = "; ".join(cls._describe(problem, given) for problem in error.errors())
            raise ConfigurationError(f"{where}: {problems}") from None

    @classmethod
    def rename(cls, given: Mapping[str, Any], where: str, extra: Iterable[str] = ()) -> dict[str, Any]:
        """Return fields under their own names.

        Args:
            given: The fields.
            where: What the errors name as the place.
            extra: Further names that are let through.

        Raises:
            ConfigurationError: If there is no such field, or one is given in two spellings.
        """
        known = cls.known_names(extra)
        fields: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                hint = did_you_mean(name, known) or f" There are {', '.join(known)}."
                raise ConfigurationError(f"{where}: there is no field {name!r}.{hint}")
            own = cls.spellings.get(name, name)
            if own in fields:
                both = [spelling for spelling in given if cls.spellings.get(spelling, spelling) == own]
                raise ConfigurationError(f"{where} says the same twice, as {' and '.join(both)}: leave one of them out")
            fields[own] = str(value) if isinstance(value, Path) else value
        return fields

    @classmethod
    def override(cls, fields: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields with others in place of those that say the same."""
        replaced = {other for pair in cls.alternatives for name, other in (pair, pair[::-1]) if name in own and other not in own}
        return {**{name: value for name, value in fields.items() if name not in replaced}, **own}

    @classmethod
    def known_names(cls, extra: Iterable[str] = ()) -> list[str]:
        """Return all names that a field may have."""
        return [*cls.model_fields, *cls.spellings, *extra]

    @classmethod
    def _describe(cls, problem: Mapping[str, Any], given: Mapping[str, Any]) -> str:
        """Return what is wrong with a field, by the name that it was given."""
        field, *inside = problem["loc"]
        name = next((name for name in given if cls.spellings.get(name, name) == field), field)
        place = ".".join(map(str, (name, *inside)))
        if problem["type"] == "missing":
            return f"{place} is missing"
        own = problem.get("ctx", {}).get("error")
        if isinstance(own, ConfigurationError):  # which says what the field may be, and what it got; most begin with its name
            return str(own) if str(own).startswith(str(field)) else f"{place}: {own}"
        value = problem["input"]
        got = type(value).__name__ if field in cls.hidden else excerpt(with_secrets({field: value})[field], 80)
        message = "must be a table" if problem["type"] == "dict_type" else problem["msg"]
        hint = did_you_mean(value, CLIENT_TYPES) if problem["type"] == "literal_error" else ""
        return f"{place}: {message}, got {got}{hint and '.'}{hint}"


def setting(*flags: str, also: str = "", **options: Any) -> Any:
    """Return the option of a setting of runs, with the first sentence that `RunSettings` says of it as its help.

    Args:
        *flags: Its names; the first is that of the field.
        also: What else the help says.
        **options: As for `typer.Option`.
    """
    name = flags[0].strip("-").replace("-", "_")
    first = " ".join((RunSettings.model_fields[name].description or "").replace("`", "").split()).partition(". ")[0]
    return typer.Option(*flags, help=" ".join(filter(None, [first and first.removesuffix(".") + ".", also])), **options)


def parse_names(value: Any) -> Any:
    """Return names as a list; they may be one text, separated by commas."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


def parse_limits(kind: type[L]) -> Callable[[Any], L]:
    """Return a function that returns limits; they may be a table, or texts such as ``"tokens=2000,time=60"``, as on the command line."""

    def parse(value: Any) -> L:
        if value is None or isinstance(value, Mapping | kind):
            return kind.of(value)
        return kind.parse([value] if isinstance(value, str) else value, "a limit")

    return parse
