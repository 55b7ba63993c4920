"""`Config`: what all configuration models share. How they start from one another, come from TOML, and say what they have."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from vfgym.errors import ConfigurationError, did_you_mean

_P = ParamSpec("_P")
_S = TypeVar("_S")


class WrongConfig(ConfigurationError, TypeError):
    """Something else stands where a configuration, or a mapping with its fields, is meant."""


class Config(BaseModel):
    """A model whose constructor takes another configuration to start from, and fields that win over it.

    Where a configuration of another class is taken, it gives the fields that were set in it and that this class has, too.

    >>> from verifiers_compat.v1 import HarnessConfig
    >>> HarnessConfig(HarnessConfig(max_turns=3, model="a"), model="b").max_turns
    3
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, config: object | None = None, /, **data: object) -> None:
        """Check the fields.

        Args:
            config: A configuration or a mapping to start from.
            **data: Fields. One that is None leaves the field of `config` as it is.

        Raises:
            WrongConfig: If `config` is neither (a ``ValueError`` and a ``TypeError``).
            pydantic.ValidationError: If a field does not exist or does not fit (a ``ValueError``). The text names the class, the
                field, and for an unknown field those that there are.
        """
        fields = {**fields_of(config, type(self)), **{name: value for name, value in data.items() if value is not None}}
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise _name_known_fields(error, type(self)) from None

    @classmethod
    def from_config(cls, config: object | None = None, /, **data: object) -> Self:
        """Return a configuration of this class (see `Config`)."""
        return cls(config, **data)

    @classmethod
    def from_toml(cls, path: str | Path, section: str | Iterable[str] | None = None) -> Self:
        """Read a configuration from a TOML file.

        Args:
            path: The file.
            section: The table that holds the fields, as ``"env.taskset"`` or as a list of keys; the whole file without it.

        Raises:
            ConfigurationError: If the file is not TOML, has no such table, or the table does not fit. The text names the file,
                the table and the field.
        """
        try:
            table: Any = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigurationError(f"{path} is not a TOML file: {error}") from error
        keys = section.split(".") if isinstance(section, str) else list(section or ())
        for depth, key in enumerate(keys):
            if not isinstance(table, Mapping) or key not in table:
                known = list(table) if isinstance(table, Mapping) else []
                raise ConfigurationError(f"{path} has no table [{'.'.join(keys[: depth + 1])}].{did_you_mean(key, known)}")
            table = table[key]
        where = f"[{'.'.join(keys)}] of {path}" if keys else str(path)
        if not isinstance(table, Mapping):
            raise ConfigurationError(f"{where} is not a table")
        try:
            return cls(table)
        except ValidationError as error:
            raise ConfigurationError(f"{where} does not fit {cls.__name__}: {describe_problems(error)}") from error

    @classmethod
    def schema_text(cls) -> str:
        """Return the name of the class, and a line for each field: ``- name: type = default``, or ``= required``."""
        return "\n".join([cls.__name__, *(f"- {name}: {_field_text(field)}" for name, field in cls.model_fields.items())])

    def with_arguments(self, **arguments: object) -> Self:
        """Return a copy that has the arguments of a constructor in place of its own fields, those that are None left out.

        An argument wins over the field of its name. Where both are mappings they are merged, the argument's items on top. All
        else stays as it is, fields that were never set included.

        Raises:
            ConfigurationError: If an argument does not fit its field.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        merged = {
            name: merge_values(getattr(self, name), dict(value) if isinstance(value, Mapping) else value) for name, value in given.items()
        }
        values = {name: _copy_containers(value) for name, value in self}
        if merged:
            try:
                checked = type(self)(**{**fields_of(self, type(self)), **merged})
            except ValidationError as error:
                raise ConfigurationError(f"an argument does not fit {type(self).__name__}: {describe_problems(error)}") from None
            values.update({name: getattr(checked, name) for name in merged})
        copied = self.model_copy()
        copied.__dict__.update(values)  # unlike update=, this leaves unset fields unset, and it may be a frozen model
        copied.__pydantic_fields_set__.update(merged)
        return copied


def none_unless_given(constructor: Callable[Concatenate[_S, _P], None]) -> Callable[Concatenate[_S, _P], None]:
    """Let a constructor see None for each argument that the caller left out, whatever default its signature documents.

    So one that was given wins over the configuration even where its value is the documented default, and one that was left out
    does not (see `Config.with_arguments`, which leaves out what is None).
    """
    _, *parameters = inspect.signature(constructor).parameters.values()
    names = [parameter.name for parameter in parameters]
    optional = [parameter.name for parameter in parameters if parameter.default is not parameter.empty]

    @functools.wraps(constructor)
    def call(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        given = {*names[: len(args)], *kwargs}
        left_out: Any = {name: None for name in optional if name not in given}
        constructor(self, *args, **kwargs, **left_out)

    return call


def fields_of(config: object | None, cls: type[Config]) -> dict[str, Any]:
    """Return the fields that `config` gives to a configuration of the class `cls`.

    Those of a mapping are taken as they are. A configuration gives what was set in it, and `cls` has.

    Raises:
        WrongConfig: If it is neither.
    """
    if config is None:
        return {}
    if isinstance(config, Config):
        return {name: value for name, value in config if name in config.model_fields_set and name in cls.model_fields}
    if isinstance(config, Mapping):
        return dict(config)
    raise WrongConfig(f"{cls.__name__} starts from a configuration or a mapping, got {type(config).__name__}: {config!r:.100}")


def merge_values(base: Any, over: Any) -> Any:
    """Return `over`; where both are mappings or configurations, `base` with the items of `over` on top, all the way down.

    Of two configurations the result has the class that is derived from the other's.

    Raises:
        WrongConfig: If neither class is derived from the other.
    """
    if isinstance(base, Config) or isinstance(over, Config):
        return _merge_configs(base, over) if isinstance(base, Config | Mapping) and isinstance(over, Config | Mapping) else over
    return deep_merge(base, over) if isinstance(base, Mapping) and isinstance(over, Mapping) else over


def deep_merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the items of `over` on top; what both have is merged in turn (see `merge_values`)."""
    return {**base, **{key: merge_values(base[key], value) if key in base else value for key, value in over.items()}}


def _merge_configs(base: Config | Mapping[str, Any], over: Config | Mapping[str, Any]) -> Config:
    classes = [type(each) for each in (base, over) if isinstance(each, Config)]
    cls = next((each for each in classes if all(issubclass(each, other) for other in classes)), None)
    if cls is None:
        raise WrongConfig(f"a {classes[1].__name__} does not go with a {classes[0].__name__}: neither is derived from the other")
    below = fields_of(base, cls)
    if not below and type(over) is cls:
        return over
    return cls(deep_merge(below, fields_of(over, cls)))


def _copy_containers(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copy_containers(item) for key, item in value.items()}
    return [_copy_containers(item) for item in value] if type(value) is list else value


def as_list(value: Any) -> list[Any]:
    """Return a list of what was given, of which one alone stands for itself; an empty one for None."""
    if value is None:
        return []
    is_several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | BaseModel)
    return list(value) if is_several else [value]


Items: TypeAlias = Annotated[list[object], BeforeValidator(as_list)]
"""A list, of which one item may stand alone."""

Names: TypeAlias = Annotated[list[str], BeforeValidator(as_list)]
"""A list of texts, of which one may stand alone."""


def describe_problems(error: ValidationError) -> str:
    """Return what does not fit, on one line: each field with its path, and what is wrong with it."""
    problems = [(".".join(map(str, problem["loc"])), problem["msg"].removeprefix("Value error, ")) for problem in error.errors()]
    return "; ".join(f"{place}: {message}" if place else message for place, message in problems)


@contextlib.contextmanager
def within_field(cls: type[Config], name: str) -> Iterator[None]:
    """Let errors about a configuration name it as the field `name` of a `cls`."""
    try:
        yield
    except ValidationError as error:
        raise _name_known_fields(error, cls, (name,)) from None
    except WrongConfig as error:
        raise WrongConfig(f"{cls.__name__}.{name}: {error}") from None


def _name_known_fields(error: ValidationError, cls: type[Config], place: tuple[str, ...] = ()) -> ValidationError:
    """Return the error as one about a `cls`, in which the text for an unknown field says which ones there are."""
    details: list[InitErrorDetails] = []
    for problem in error.errors():
        message = problem["msg"]
        if problem["type"] == "extra_forbidden" and not place and len(problem["loc"]) == 1:
            hint = did_you_mean(str(problem["loc"][0]), cls.model_fields)
            message = f"there is no such field. {cls.__name__} has: {', '.join(cls.model_fields)}.{hint}"
        kind = PydanticCustomError(problem["type"], "{message}", {"message": message})
        details.append(InitErrorDetails(type=kind, loc=(*place, *problem["loc"]), input=problem["input"]))
    return ValidationError.from_exception_data(cls.__name__, details)


def _field_text(field: FieldInfo) -> str:
    written = inspect.formatannotation(field.annotation)
    # Names of modules and of enclosing functions are left out, but what stands in quotes is a value.
    annotation = re.sub(r"('[^']*')|(?:[\w<>]+\.)+(\w)", lambda found: found[1] or found[2], written)
    if field.is_required():
        return f"{annotation} = required"
    return f"{annotation} = {'<factory>' if field.default_factory is not None else repr(field.default)}"
