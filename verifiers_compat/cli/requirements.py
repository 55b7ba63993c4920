"""What an environment's distribution requires, and what of it is to be installed.

Published environments require the distribution ``verifiers``. Its newest version would replace libraries that this one needs by
older ones, and this one offers what they use of it; so that requirement, wherever it stands, is left out.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel, Field, ValidationError

from vfgym.errors import ConfigurationError

OWN = "vfgym"
REPLACED = "verifiers"

EXTRAS: Mapping[str, str] = {"ta": "textarena", "rg": "reasoning-gym", "math": "math", "mcp": "mcp", "renderers": "renderers"}
"""For extras of `verifiers`, the extras of this library that stand for them; ``all`` of it means all of these."""


@dataclass(frozen=True)
class Requirements:
    """What a distribution requires here: markers are evaluated, extras are chosen."""

    name: str
    install: tuple[str, ...]
    """What is installed before it."""
    replaced: tuple[str, ...]
    """What is left to this library."""
    unknown_extras: tuple[str, ...]
    """Extras of `verifiers` that nothing here stands for."""


def requirements_of(target: Path, extras: Iterable[str] = ()) -> Requirements:
    """Return what a project or a wheel requires.

    Args:
        target: Directory of a project with ``pyproject.toml``, or a wheel.
        extras: The extras of it that are wanted.

    Raises:
        ConfigurationError: If it is neither, or says something that cannot be understood.
    """
    wanted = [canonicalize_name(extra) for extra in extras]
    name, texts = _read_wheel(target) if target.suffix == ".whl" else _read_project(target, wanted)
    install: list[str] = []
    replaced: list[str] = []
    unknown: list[str] = []
    for requirement in _evaluate_markers(texts, wanted, str(target)):
        own = canonicalize_name(requirement.name)
        if own == REPLACED:
            replaced.append(str(requirement))
            unknown += sorted(requirement.extras - EXTRAS.keys() - {"all"})
            offered = EXTRAS if "all" in requirement.extras else EXTRAS.keys() & requirement.extras
            install += extra_requirements(EXTRAS[extra] for extra in sorted(offered))
        elif own == OWN:
            _check_own(requirement, name)
            install += extra_requirements(requirement.extras)
        else:
            requirement.marker = None
            install.append(str(requirement))
    return Requirements(name, *(tuple(dict.fromkeys(texts)) for texts in (install, replaced, unknown)))


def extra_requirements(extras: Iterable[str]) -> Iterator[str]:
    """Give what extras of this library require. This library itself is installed, and never looked for anywhere."""
    seen: set[str] = set()
    left = [canonicalize_name(extra) for extra in extras]
    while left:
        extra = left.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in _evaluate_markers(importlib.metadata.requires(OWN) or (), [extra], OWN):
            if canonicalize_name(requirement.name) == OWN:
                left += [canonicalize_name(each) for each in requirement.extras]
            elif requirement.marker is not None and "extra" in str(requirement.marker):
                requirement.marker = None
                yield str(requirement)


def constraints() -> list[str]:
    """Return the requirements of this library, as constraints for whatever is installed beside it."""
    own = [Requirement(text) for text in importlib.metadata.requires(OWN) or ()]
    return [f"{each.name}{each.specifier}" for each in own if each.marker is None or "extra" not in str(each.marker)]


def _check_own(requirement: Requirement, name: str) -> None:
    version = importlib.metadata.version(OWN)
    if not requirement.specifier.contains(version, prereleases=True):
        raise ConfigurationError(f"{name} requires {requirement}, and {version} is installed: update {OWN}, or install an older {name}")


def _evaluate_markers(texts: Iterable[str], extras: Sequence[str], where: str) -> Iterator[Requirement]:
    """Give the requirements whose markers hold here, for any of the extras that are wanted."""
    for text in texts:
        try:
            requirement = Requirement(text)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                yield requirement
        except (InvalidRequirement, UndefinedEnvironmentName) as error:
            raise ConfigurationError(f"{where} requires {text!r}, which cannot be understood: {error}") from error


class _Project(BaseModel):
    """What is read of the table ``[project]``."""

    name: str
    dependencies: list[str] = []
    optional_dependencies: Annotated[dict[str, list[str]], Field(alias="optional-dependencies")] = {}
    dynamic: list[str] = []


def _read_project(folder: Path, extras: Sequence[str]) -> tuple[str, list[str]]:
    file = folder / "pyproject.toml"
    try:
        project = _Project.model_validate(tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}))
    except FileNotFoundError:
        raise ConfigurationError(f"{folder} is not a project: it has no pyproject.toml") from None
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise ConfigurationError(f"the table [project] of {file} is not as it should be: {problems}") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from error
    for field in ("dependencies", "optional-dependencies"):
        if field in project.dynamic:
            raise ConfigurationError(
                f"the {field} of {project.name} are known only when it is built: build its wheel, and install that with vf-install"
            )
    wanted = [each for extra, each in project.optional_dependencies.items() if canonicalize_name(extra) in extras]
    return project.name, [*project.dependencies, *itertools.chain.from_iterable(wanted)]


def _read_wheel(wheel: Path) -> tuple[str, list[str]]:
    try:
        found = next(iter(importlib.metadata.distributions(path=[str(wheel)])), None)
        if found is not None:
            return found.name, found.requires or []
    except (OSError, zipfile.BadZipFile) as error:
        raise ConfigurationError(f"{wheel} cannot be read as a wheel: {error}") from error
    raise ConfigurationError(f"{wheel} cannot be read as a wheel: it has no METADATA")
