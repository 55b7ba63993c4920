"""What an environment's distribution requires, and what of it is to be installed.

Published environments require the distribution ``verifiers``. Its newest version would replace libraries that this one needs by
older ones, and this one offers what they use of it; so that requirement, wherever it stands, is left out.
"""

from __future__ import annotations

import email.parser
import importlib.metadata
import re
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from vfgym.errors import ConfigurationError

OWN = "vfgym"
REPLACED = "verifiers"

EXTRAS: Mapping[str, str] = {"ta": "textarena", "rg": "reasoning-gym", "math": "math", "mcp": "mcp", "all": "all"}
"""For extras of `verifiers`, the extras of this library that stand for them."""


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
    name, texts = _of_wheel(target) if target.suffix == ".whl" else _of_project(target)
    wanted = [canonicalize_name(extra) for extra in extras]
    install: dict[str, None] = {}
    replaced: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for requirement in _applying(texts, wanted, str(target)):
        own = canonicalize_name(requirement.name)
        if own not in (OWN, REPLACED):
            requirement.marker = None
            install[str(requirement)] = None
            continue
        if own == REPLACED:
            replaced[str(requirement)] = None
            unknown.update(dict.fromkeys(sorted(requirement.extras - EXTRAS.keys())))
            own_extras = {EXTRAS[extra] for extra in requirement.extras if extra in EXTRAS}
        else:
            _check_own(requirement, name)
            own_extras = requirement.extras
        for each in extra_requirements(own_extras):
            install[each] = None
    return Requirements(name, tuple(install), tuple(replaced), tuple(unknown))


def extra_requirements(extras: Iterable[str]) -> Iterator[str]:
    """Give what extras of this library require. This library itself is installed, and never looked for anywhere."""
    seen: set[str] = set()
    left = [canonicalize_name(extra) for extra in extras]
    while left:
        extra = left.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in _applying(importlib.metadata.requires(OWN) or (), [extra], OWN):
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


def _applying(texts: Iterable[str], extras: Sequence[str], where: str) -> Iterator[Requirement]:
    """Give the requirements whose markers hold here, for any of the extras that are wanted."""
    for text in texts:
        try:
            requirement = Requirement(text)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                yield requirement
        except (InvalidRequirement, UndefinedEnvironmentName) as error:
            raise ConfigurationError(f"{where} requires {text!r}, which cannot be understood: {error}") from error


def _of_project(folder: Path) -> tuple[str, list[str]]:
    file = folder / "pyproject.toml"
    try:
        project: Any = tomllib.loads(file.read_text(encoding="utf-8")).get("project")
    except FileNotFoundError:
        raise ConfigurationError(f"{folder} is no project: it has no pyproject.toml") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from error
    name = project.get("name") if isinstance(project, dict) else None
    if not isinstance(project, dict) or not isinstance(name, str):
        raise ConfigurationError(f"{file} needs a table [project] with a name")
    for field in ("dependencies", "optional-dependencies"):
        if field in project.get("dynamic", ()):
            raise ConfigurationError(
                f"the {field} of {name} are known only when it is built: build its wheel, and install that with vf-install"
            )
    texts = _texts(file, "dependencies", project.get("dependencies", []))
    optional = project.get("optional-dependencies", {})
    if not isinstance(optional, dict):
        raise ConfigurationError(f"{file}: optional-dependencies must be a table, got {optional!r:.80}")
    for extra, each in optional.items():
        texts += [_with_extra(text, canonicalize_name(extra)) for text in _texts(file, f"optional-dependencies.{extra}", each)]
    return name, texts


def _texts(file: Path, field: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ConfigurationError(f"{file}: {field} must be a list of requirements, got {value!r:.80}")
    return list(value)


def _with_extra(text: str, extra: str) -> str:
    requirement, semicolon, marker = text.partition(";")
    condition = f"({marker.strip()}) and " if semicolon else ""
    return f"{requirement}; {condition}extra == '{extra}'"


def _of_wheel(wheel: Path) -> tuple[str, list[str]]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            name = next(name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            metadata = email.parser.Parser().parsestr(archive.read(name).decode())
    except (OSError, zipfile.BadZipFile, StopIteration) as error:
        raise ConfigurationError(f"{wheel} is no wheel that can be read: {error or 'it has no METADATA'}") from error
    return str(metadata["Name"]), [str(text) for text in metadata.get_all("Requires-Dist", [])]
