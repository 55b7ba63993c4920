"""What has to be installed for what a package imports.

Published packages import libraries that they do not require, since verifiers requires them: those are known here, with what the extras of
this library stand for. What else is imported and not required is reported.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.resources
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel

from verifiers_compat.cli.packages.imports import Source, find_imports
from vfgym.bounded_json import parse_json

Status = Literal["installed", "required", "added", "unsure", "missing"]
_OWN = frozenset({"verifiers", "verifiers_compat", "vfgym"})


class Need(BaseModel):
    """A library that a package imports, and cannot do without."""

    module: str
    requirement: str | None
    """What brings it, as far as that is known."""
    status: Status
    """``"required"`` by the package itself; ``"added"`` by vf-install, since verifiers would bring it; ``"unsure"`` whether something that
    the package requires, and that is not installed, brings it; else ``"missing"``."""
    places: list[str]
    """Where it is imported: files with lines."""


class Distributions(BaseModel):
    """What is known of distributions (``data/distributions.json``)."""

    brought: Mapping[str, str]
    """For modules that verifiers brings, the requirement."""
    named_otherwise: Mapping[str, str]
    """For other modules whose distribution has another name, that name."""
    extras: Mapping[str, str]
    """For names of verifiers that need more than this library requires, the extra that brings it."""


@functools.cache
def read_distributions() -> Distributions:
    """Return what is known of distributions."""
    text = importlib.resources.files("verifiers_compat").joinpath("data", "distributions.json").read_text(encoding="utf-8")
    return Distributions(**parse_json(text))


def find_needs(sources: Sequence[Source], required: Sequence[str]) -> list[Need]:
    """Return what a package imports of others, without what it can do without.

    Args:
        sources: Its modules.
        required: Its requirements.
    """
    places: dict[str, list[str]] = {}
    for module, place in _find_foreign(sources):
        places.setdefault(module, []).append(place)
    return [_judge(module, where, required) for module, where in sorted(places.items())]


def _find_foreign(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    own = {each.module.partition(".")[0] for each in sources} | _OWN
    for source in sources:
        for each in find_imports(source):
            top = each.module.partition(".")[0]
            if not each.is_optional and top not in own and top not in sys.stdlib_module_names and top:
                yield top, f"{source.file}:{each.line}"


def _judge(module: str, places: list[str], required: Sequence[str]) -> Need:
    known = read_distributions()
    requirement = known.brought.get(module) or known.named_otherwise.get(module)
    names = {canonicalize_name(Requirement(text).name) for text in required}
    status: Status = "missing"
    if is_installed(module):
        status = "installed"
    elif canonicalize_name(Requirement(requirement).name if requirement else module) in names:
        status = "required"
    elif module in known.brought:
        status = "added"
    elif any(not _is_distribution(name) for name in names):
        status = "unsure"
    return Need(module=module, requirement=requirement, status=status, places=list(dict.fromkeys(places)))


def is_installed(module: str) -> bool:
    """Say whether a module can be found, without importing it."""
    try:
        spec = importlib.util.find_spec(module)
    except ValueError:  # a module that was made by hand
        return True
    # Any directory on the path is a module; only some distributions are one without a file of its own.
    return spec is not None and (spec.origin is not None or module in importlib.metadata.packages_distributions())


def _is_distribution(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
