"""Environments by id: an installed module with ``load_environment``, or an id that is registered with Gymnasium."""

from __future__ import annotations

import importlib
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
from pydantic import BaseModel, ValidationError

from verifiers_compat.utils.load_failures import EnvironmentLoadError as EnvironmentLoadError
from verifiers_compat.utils.load_failures import report_failures
from vfgym.errors import ConfigurationError, UnknownArgument, did_you_mean
from vfgym.registration import nearest_ids

SECTIONS = ("taskset", "harness")
"""The parts of an environment's configuration."""


def load_environment(env_id: str, **env_args: Any) -> Any:
    """Load an environment by its id.

    Args:
        env_id: Name of an installed environment (``"gsm8k"``, ``"primeintellect/gsm8k"``): its module is the last part, with
            ``-`` as ``_``, and has a function ``load_environment``. Or an id that is registered with Gymnasium
            (``"reasoning-gym/leg_counting-v0"``).
        **env_args: Arguments of that function. A mapping for ``config`` becomes the pydantic model that the function asks for, and
            ``taskset`` and ``harness`` are sections of it, where the function has no such arguments itself.

    Returns:
        The environment. Where it left its ``env_id`` or ``env_args`` empty, they are those it was loaded with.

    Raises:
        ConfigurationError: If there is no such environment, or no such argument (a ``ValueError``).
        MissingKeyError: If the environment needs environment variables that are not set.
        EnvironmentLoadError: If its code raised anything else (a ``RuntimeError``); that is its cause.
    """
    if not isinstance(env_id, str) or not env_id.strip():
        raise ConfigurationError(f"expected the id of an environment, got {env_id!r}")
    if env_id in gymnasium.registry:
        env = _call_loader(env_id, gymnasium.make, {"id": env_id, **env_args})
    else:
        loader = _import_loader(env_id)
        with report_failures(env_id):
            arguments = coerce_typed_env_config(loader, inspect.signature(loader), env_args)
        env = _call_loader(env_id, loader, arguments)
    if isinstance(env, gymnasium.Env) and not hasattr(env, "generate"):
        from verifiers_compat import as_environment

        env = as_environment(env)
    from verifiers_compat.envs.api import RolloutAPI
    from verifiers_compat.envs.loaded import note_loaded

    if not hasattr(env, "generate"):
        raise ConfigurationError(f"load_environment of {env_id!r} must return an environment, got {type(env).__name__}")
    definition = getattr(env, "definition", env)
    if env_id in gymnasium.registry or not getattr(definition, "env_id", None):
        definition.env_id = env_id
    if not getattr(definition, "env_args", None):
        definition.env_args = dict(env_args)
    if isinstance(env, RolloutAPI):
        note_loaded(env, env_id, env_args)
    return env


def module_name(env_id: str) -> str:
    """Return the name of the module of an environment.

    >>> module_name("primeintellect/wiki-search")
    'wiki_search'

    Raises:
        ConfigurationError: If the id names a version, or nothing that a module can be called.
    """
    name = env_id.strip().rpartition("/")[2].replace("-", "_")
    if "@" in name:
        raise ConfigurationError(f"{env_id!r} names a version; the installed one is loaded: leave {'@' + name.partition('@')[2]!r} out")
    if not all(part.isidentifier() for part in name.split(".")):
        raise ConfigurationError(f"{env_id!r} is not the id of an environment: {name!r} cannot be the name of a module")
    return name


def suggest_ids(env_id: str) -> str:
    """Return a sentence that asks for the registered ids like `env_id`; an empty text where there are none."""
    near = nearest_ids(env_id)
    return f" Did you mean {', '.join(f'`{each}`' for each in near)}?" if near else ""


def _import_loader(env_id: str) -> Callable[..., Any]:
    """Import an environment's module, and return its function."""
    name = module_name(env_id)
    with report_failures(env_id, "importing"):
        module = _import_if_there(name)
    if module is None:
        raise ConfigurationError(f"there is no environment {env_id!r}: no module {name!r} is installed.{suggest_ids(env_id)}")
    loader = getattr(module, "load_environment", None)
    if not callable(loader):
        where = getattr(module, "__file__", None) or "built in"
        raise ConfigurationError(
            f"the module {name!r} ({where}) has no function load_environment: either it is not an environment, or another module of"
            " that name comes first on sys.path"
        )
    return typing.cast("Callable[..., Any]", loader)


def _import_if_there(name: str) -> types.ModuleType | None:
    """Return a module, imported; None where it is not installed, or the package that it would be in."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        raise


def _call_loader(env_id: str, loader: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    parameters = inspect.signature(loader).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for name in arguments:
            if name not in names:
                hint = did_you_mean(name, names)
                raise UnknownArgument(f"{env_id!r} takes no argument {name!r}; it takes {', '.join(names) or 'none'}.{hint}")
    missing = [p.name for p in parameters if p.name in names and p.default is p.empty and p.name not in arguments]
    if missing:
        raise ConfigurationError(f"{env_id!r} needs the arguments {', '.join(missing)}; got {', '.join(arguments) or 'none'}")
    with report_failures(env_id):
        return loader(**arguments)


def coerce_typed_env_config(
    env_load_func: Callable[..., Any], sig: inspect.Signature | None = None, env_args: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the arguments of a loader with ``config`` as the pydantic model that it asks for.

    A config that is None is none: the loader's own default holds, or the model's defaults where it needs one. Sections
    (``taskset``, ``harness``) that the loader has no arguments for are put into its config.

    Args:
        env_load_func: The loader.
        sig: Its signature, where it has been read already.
        env_args: The arguments.

    Raises:
        UnknownArgument: If the loader takes no config, and there is one.
        ConfigurationError: If the config does not fit the model.
    """
    signature = inspect.signature(env_load_func) if sig is None else sig
    arguments = _with_sections(signature, env_args or {})
    model = env_config_type(env_config_annotation(env_load_func, signature))
    if model is None:
        return arguments
    config = arguments.pop("config", None)
    if config is None and signature.parameters["config"].default is not inspect.Parameter.empty:
        return arguments
    return {**arguments, "config": config if isinstance(config, model) else _fit({} if config is None else config, model)}


def _with_sections(signature: inspect.Signature, env_args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with the sections among them that the loader does not take itself as parts of its config."""
    arguments = dict(env_args)
    known = signature.parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return arguments
    sections = {name: arguments.pop(name) for name in SECTIONS if name in arguments and name not in known}
    config = arguments.get("config")
    if "config" not in known and (sections or config is not None):
        read = [*sections, *(config if isinstance(config, Mapping) else ())]
        raise UnknownArgument(
            f"its load_environment takes no config, so nobody would read {', '.join(read) or 'it'}. It takes"
            f" {', '.join(known) or 'nothing'}: give those as arguments, in a file under [env.args]"
        )
    if "config" not in known:
        arguments.pop("config", None)  # which is None
    if sections:
        from verifiers_compat.v1.config_base import Config, merge_values

        if not isinstance(config, Config | Mapping | None):
            raise ConfigurationError(f"a config that is {type(config).__name__} has no {' and '.join(sections)}: leave one of them out")
        arguments["config"] = merge_values({} if config is None else config, sections)
    return arguments


def _fit(config: Any, model: type[BaseModel]) -> BaseModel:
    """Return a configuration as the model that a loader asks for."""
    from verifiers_compat.v1.config_base import Config, WrongConfig, describe_problems

    try:
        if isinstance(config, Config) and issubclass(model, Config):
            return model(config)
        if isinstance(config, BaseModel):
            config = config.model_dump(exclude_unset=True)
        if isinstance(config, Mapping):
            return model(**config)
    except ValidationError as error:
        raise ConfigurationError(f"config does not fit {model.__name__}: {describe_problems(error)}") from error
    except WrongConfig as error:
        raise ConfigurationError(f"config does not fit {model.__name__}: {error}") from error
    raise ConfigurationError(
        f"config must be a {model.__name__} or a mapping with its fields, got {type(config).__name__}: {config!r:.100}"
    )


def env_config_annotation(env_load_func: Callable[..., Any], sig: inspect.Signature | None = None) -> Any:
    """Return what a loader's parameter ``config`` is annotated with, evaluated; None where there is none."""
    signature = inspect.signature(env_load_func) if sig is None else sig
    parameter = signature.parameters.get("config")
    if parameter is None or parameter.annotation is parameter.empty:
        return None
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    try:
        return typing.get_type_hints(env_load_func).get("config")
    except NameError as error:
        raise ConfigurationError(f"the annotation {parameter.annotation!r} of config cannot be evaluated: {error}") from error


def env_config_type(annotation: Any) -> type[BaseModel] | None:
    """Return the pydantic model in an annotation (also inside ``| None`` and ``Annotated``), or None."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, BaseModel) else None
    return next((model for part in typing.get_args(annotation) if (model := env_config_type(part)) is not None), None)
