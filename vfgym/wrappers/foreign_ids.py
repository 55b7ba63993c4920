"""Ids that packages register as they are imported, such as Atari's: which package that is, and what installs it.

The rule: an id begins with the name of its package, as Farama's do. ``ALE/Pong-v5`` is of ``ale-py``, ``MiniGrid-Empty-5x5-v0`` of
``minigrid``: the first word of the id is the first word of what one of the extras installs.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import re

import gymnasium as gym
from packaging.requirements import Requirement

from vfgym.errors import MissingExtra

_WORD = re.compile(r"[^\W_]+")
_EXTRA = re.compile(r"""extra == ["']([^"']+)["']""")


def is_registered(env_id: str) -> bool:
    """Say whether there is an environment of an id, whatever its version."""
    try:
        gym.spec(env_id)
    except (gym.error.NameNotFound, gym.error.NamespaceNotFound):
        return False
    except gym.error.Error:  # another version of it, or no id at all: Gymnasium says which
        return True
    return True


def register_package_of(env_id: str) -> None:
    """Import the package whose id this may be, if it is one that an extra installs and nobody has imported it.

    Raises:
        MissingExtra: If that package is not installed.
    """
    if is_registered(env_id):
        return
    namespace = env_id.partition("/")[0] if "/" in env_id else None
    if namespace is not None and any(spec.namespace == namespace for spec in gym.registry.values()):
        return  # the package is there, and has no such id
    found = _package_of(env_id)
    if found is None:
        return
    extra, package = found
    module = package.replace("-", "_")
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(extra, env_id)
    importlib.import_module(module)


def _package_of(env_id: str) -> tuple[str, str] | None:
    """Return the extra and the package by whose name an id begins, of several extras the smallest one; None where there is none."""
    first = _first_word(env_id)
    installs: dict[str, list[str]] = {}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # a copy that nobody installed says nothing
        for requirement in map(Requirement, importlib.metadata.requires("vfgym") or ()):
            for extra in _EXTRA.findall(str(requirement.marker or "")):
                installs.setdefault(extra, []).append(requirement.name)
    for extra, packages in sorted(installs.items(), key=lambda item: len(item[1])):
        for package in packages:
            if _first_word(package) == first != "vfgym":
                return extra, package
    return None


def _first_word(name: str) -> str:
    word = _WORD.match(name)
    return word[0].casefold() if word else ""
