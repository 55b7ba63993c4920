"""Agents by their names: those of the library, and functions of modules."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from vfgym.agents.base import Agent, Answering, EpisodeAgent
from vfgym.agents.human import HumanAgent
from vfgym.agents.oracle import OracleAgent
from vfgym.agents.random import RandomAgent
from vfgym.calls import function_name
from vfgym.errors import ConfigurationError, did_you_mean

AGENTS: Mapping[str, Callable[[], Agent]] = {"random": RandomAgent, "oracle": OracleAgent, "human": HumanAgent}
"""The agents that have a name of their own."""


def load_agent(name: str) -> Agent:
    """Return an agent by its name, or import one.

    Args:
        name: One of `AGENTS`, or ``module:callable``; the module may lie in the current directory, or be given as a file
            (``agents/mine.py:callable``). A class is instantiated without arguments.

    Raises:
        ConfigurationError: If there is no such agent.
    """
    if ":" not in name:
        if name not in AGENTS:
            known = ", ".join(AGENTS)
            raise ConfigurationError(f"there is no agent {name!r}: give one of {known}, or module:callable.{did_you_mean(name, AGENTS)}")
        return AGENTS[name]()
    target = import_object(name, f"agent {name!r}")
    if inspect.isclass(target):
        _check_needs_no_arguments(target, name)
    agent: Any = target() if inspect.isclass(target) else target
    if isinstance(agent, str):
        raise ConfigurationError(f"agent {name!r} must be a function or an object with for_episode(env), and it is text: {agent!r}")
    return as_agent(agent)


def _check_needs_no_arguments(cls: type, name: str) -> None:
    try:
        signature = inspect.signature(cls)
    except (TypeError, ValueError):  # some classes do not tell what they take: those written in C, or with a __signature__ that is none
        return
    try:
        signature.bind()
    except TypeError as error:
        raise ConfigurationError(
            f"agent {name!r}: {cls.__name__}{signature} cannot be made without arguments ({error}): name an agent that is made already,"
            " or a function (observation, info) -> message"
        ) from None


def import_object(reference: str, needed_by: str) -> Any:
    """Return what ``module:object`` refers to; the module may lie in the current directory.

    Args:
        reference: The reference. The object may be an attribute of another one (``module:Class.method``).
        needed_by: What it was given for, as the beginning of a message.

    Raises:
        ConfigurationError: If there is no such module, or nothing of that name in it.
    """
    module_name, _, attributes = reference.partition(":")
    target = import_named(module_name, needed_by)
    for attribute in attributes.split("."):
        if not hasattr(target, attribute):
            owner = getattr(target, "__name__", type(target).__name__)
            raise ConfigurationError(f"{needed_by}: {owner} has no {attribute!r}.{did_you_mean(attribute, dir(target))}")
        target = getattr(target, attribute)
    return target


def import_named(module_name: str, needed_by: str) -> Any:
    """Import a module that a user named; it may lie in the current directory.

    Args:
        module_name: Name of the module, or its file (``agents/mine.py``), whose directory joins Python's path.
        needed_by: What it was named for, as the beginning of a message.

    Raises:
        ConfigurationError: If there is no such module.
    """
    if module_name.endswith(".py"):
        return _import_file(Path(module_name), needed_by)
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` has it
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigurationError(f"{needed_by}: {module_name!r} is not a name of a module")
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and misses something itself
        raise ConfigurationError(f"{needed_by}: there is no module {error.name!r}, neither installed nor in {here}") from error


def name_of_module(reference: str, needed_by: str) -> str:
    """Return a reference by the name of its module where it was given by its file, whose directory joins Python's path.

    Args:
        reference: ``module:object``, or ``agents/mine.py:object``.
        needed_by: What it was given for, as the beginning of a message.

    Raises:
        ConfigurationError: If there is no such file.
    """
    module_name, colon, attributes = reference.partition(":")
    if not module_name.endswith(".py"):
        return reference
    file = Path(module_name)
    if not file.is_file():
        raise ConfigurationError(f"{needed_by}: there is no file {file}")
    directory = str(file.parent.resolve())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    return f"{file.stem}{colon}{attributes}"


def _import_file(file: Path, needed_by: str) -> Any:
    """Import a module by its file."""
    module = import_named(name_of_module(str(file), needed_by), needed_by)
    if Path(getattr(module, "__file__", None) or "").resolve() != file.resolve():
        raise ConfigurationError(f"{needed_by}: another module is called {file.stem!r} already, so give {file} another name")
    return module


def as_agent(value: Agent | str) -> Agent:
    """Return an agent given as itself or by its name (see `load_agent`).

    Raises:
        ConfigurationError: If it is neither, or a function that takes other arguments than observation and info.
    """
    if isinstance(value, str):
        return load_agent(value)
    if inspect.isclass(value):
        raise ConfigurationError(f"an agent must be an object, got the class {value.__name__}: make one, {value.__name__}()")
    if not callable(value) and not isinstance(value, EpisodeAgent):
        raise ConfigurationError(
            "an agent must be a function (observation, info) -> message, an object with for_episode(env), or the name of one;"
            f" got {type(value).__name__}"
        )
    if not isinstance(value, EpisodeAgent):
        _check_arguments(value)
    return value


def _check_arguments(agent: Answering) -> None:
    try:
        signature = inspect.signature(agent)
    except (TypeError, ValueError):  # some functions written in C do not tell what they take
        return
    try:
        signature.bind([], {})
    except TypeError as error:
        raise ConfigurationError(
            f"an agent is called with (observation, info), and {function_name(agent)} takes {signature}: {error}"
        ) from None


def agent_name(value: Agent | str) -> str:
    """Return what an agent is called in results."""
    if isinstance(value, str):
        return value
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else function_name(cast(Callable[..., Any], value))
