"""What a package will find here: a report, made from its files before any of it is installed or run."""

from __future__ import annotations

import functools
import importlib.resources
import os
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from pydantic import BaseModel, TypeAdapter

from verifiers_compat.alias import REAL
from verifiers_compat.cli.packages.classes import OwnClass, Use
from verifiers_compat.cli.packages.hierarchies import Hierarchies
from verifiers_compat.cli.packages.imports import Source
from verifiers_compat.cli.packages.needs import Need, find_needs, read_distributions
from verifiers_compat.cli.packages.offers import NotOffered, find_offer, find_refused, offered_or_none
from verifiers_compat.cli.packages.sources import LOADER, defines, read_sources
from verifiers_compat.cli.packages.targets import Target
from verifiers_compat.cli.packages.uses import Uses, find_uses
from verifiers_compat.cli.requirements import Requirements, requirements_of
from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError

_DOCUMENTED_PRIVATE = frozenset({"_get_reward_func_names", "_get_reward_funcs", "_get_reward_weights"})
"""Methods that published packages rely on, although their names are private."""


class Difference(BaseModel):
    """What this library does otherwise than verifiers 0.1.14 (a row of ``data/differences.json``)."""

    uses: list[str]
    """Names that a package uses which meets it: of classes and functions, of methods that it overrides, of keyword arguments."""
    verifiers: str
    here: str


class Absent(BaseModel):
    """Something of verifiers that a package uses and that is not here."""

    name: str
    reason: str
    places: list[str]
    is_optional: bool
    """Whether the package goes on without it."""


class Subclass(BaseModel):
    """A class of the package that refines one of verifiers."""

    name: str
    base: str
    overrides: list[str]


class Found(BaseModel):
    """A name that a package has in it."""

    name: str
    places: list[str]


class Variable(Found):
    """An environment variable."""

    is_set: bool


class Image(Found):
    """A container image that sandboxes are asked for."""

    problem: str | None
    """Why it cannot run here."""


class Report(BaseModel):
    """What a package uses and what it will find here."""

    package: str
    is_complete: bool
    """Whether nothing is missing."""
    problems: list[str]
    """Why it cannot be loaded at all."""
    offered: list[str]
    """Names of verifiers that it uses, and that are here."""
    absent: list[Absent]
    subclasses: list[Subclass]
    differences: list[Difference]
    imports: list[Need]
    images: list[Image]
    variables: list[Variable]
    datasets: list[Found]
    """Data sets from the network. An empty name is chosen when the package runs."""
    extras: list[str]
    """Extras of this library that what it uses needs."""
    unknown_extras: list[str]
    """Extras of verifiers that it requires, and that nothing here stands for."""


@functools.cache
def read_differences() -> list[Difference]:
    """Return what this library does otherwise than verifiers 0.1.14."""
    text = importlib.resources.files(REAL).joinpath("data", "differences.json").read_text(encoding="utf-8")
    return TypeAdapter(list[Difference]).validate_python(parse_json(text))


def check_target(target: Target) -> Report:
    """Return what a package uses and what it will find here.

    Raises:
        ConfigurationError: If its files cannot be understood.
    """
    return check_package(requirements_of(target.path, target.extras), target)


def check_package(requirements: Requirements, target: Target) -> Report:
    """Return the report on a package whose requirements are read already."""
    sources = read_sources(target.root, requirements.name)
    uses = find_uses(sources)
    offers = _Offers(uses)
    needs = find_needs(sources, requirements.install)
    problems = _find_problems(requirements.name, sources)
    extras = read_distributions().extras
    images = [Image(name=name, places=places, problem=find_image_problem(name)) for name, places in _join(uses.images)]
    is_here = all(each.is_optional for each in offers.absent) and all(each.problem is None for each in images)
    return Report(
        package=requirements.name,
        is_complete=not problems and is_here and all(each.status != "missing" for each in needs),
        problems=problems,
        offered=sorted(offers.found),
        absent=offers.absent,
        subclasses=offers.subclasses,
        differences=[row for row in read_differences() if offers.words.intersection(row.uses)],
        imports=needs,
        images=images,
        variables=[Variable(name=name, places=places, is_set=bool(os.environ.get(name))) for name, places in _join(uses.variables)],
        datasets=[Found(name=name, places=places) for name, places in _join(uses.datasets)],
        extras=sorted({extras[name] for name in offers.words & extras.keys()}),
        unknown_extras=list(requirements.unknown_extras),
    )


def find_image_problem(image: str) -> str | None:
    """Return why sandboxes of an image cannot be made on this machine, or None if they can."""
    from verifiers_compat.envs.sandbox_arguments import spec_of_arguments
    from vfgym.envs.sandboxed import backend_for
    from vfgym.sandboxes import SandboxSpec
    from vfgym.sandboxes.creation import check_spec

    try:
        spec = spec_of_arguments(SandboxSpec(), None, docker_image=image)
        check_spec(spec, backend_for(spec, None))
    except ConfigurationError as error:
        return str(error)
    return None


def _find_problems(package: str, sources: Sequence[Source]) -> list[str]:
    module = package.replace("-", "_").lower()
    if not sources:
        return [f"no module {module!r}, and none with a function {LOADER}, is in the package"]
    return [] if defines(sources[0], LOADER) else [f"{sources[0].file} has no function {LOADER}"]


def _join(uses: Iterable[Use]) -> list[tuple[str, list[str]]]:
    """Return each path once, with its places."""
    joined: dict[str, list[str]] = {}
    for use in uses:
        joined.setdefault(use.path, []).append(use.place)
    return [(path, list(dict.fromkeys(places))) for path, places in joined.items()]


class _Offers:
    """The names that a package uses, held against what is offered here."""

    def __init__(self, uses: Uses) -> None:
        self.found: set[str] = set()
        """Paths of names that are here, without modules."""
        self.words: set[str] = set()
        """What differences and extras go by: names of what is used, of its bases, of overridden methods and keyword arguments."""
        self.subclasses: list[Subclass] = []
        self._absent: dict[tuple[str, str], Absent] = {}
        own = {each.path for each in uses.classes}
        constructors = [use for each in uses.classes for use in each.inherited if use.path == "__init__"]
        given = {
            name for use in [*constructors, *uses.calls] for name in use.keywords
        }  # environments make attributes of what they are given
        self._classes = Hierarchies(uses.classes, uses.written | given)
        for use in uses.names:
            self._add_name(use)
        for use in uses.calls:
            self._add_call(use, is_own=use.path in own)
        for each in uses.classes:
            self._add_class(each)
        for finding in [*self._classes.find(), *self._classes.find_in_objects(uses.asked)]:
            self._note_absence(finding.name, finding.reason, finding.use)

    @property
    def absent(self) -> list[Absent]:
        return list(self._absent.values())

    def _add_name(self, use: Use) -> None:
        try:
            target = find_offer(use.path)
        except NotOffered as error:
            self._note_absence(use.path, str(error), use)
            return
        owner, _, name = use.path.rpartition(".")
        if owner and not isinstance(target, ModuleType) and isinstance(find_offer(owner), ModuleType):
            self.found.add(use.path)
            self.words |= {name, *_own_bases(target)}

    def _add_call(self, use: Use, *, is_own: bool) -> None:
        """Note the keyword arguments of a call: of something of verifiers, or of a class of the package that has its base's constructor."""
        path, target = (self._classes.constructor_of(use.path) or ("", None)) if is_own else (use.path, offered_or_none(use.path))
        if target is not None:
            self.words.update(use.keywords)
            for keyword in find_refused(target, use.keywords):
                self._note_absence(f"{path}({keyword}=...)", f"it takes no argument {keyword!r} here", use)

    def _note_absence(self, name: str, reason: str, use: Use) -> None:
        noted = self._absent.setdefault((name, reason), Absent(name=name, reason=reason, places=[], is_optional=True))
        noted.places = list(dict.fromkeys([*noted.places, use.place]))
        noted.is_optional = noted.is_optional and use.is_optional

    def _add_class(self, each: OwnClass) -> None:
        """Note what a class of the package overrides of its bases."""
        bases = self._classes.named_bases(each.path)
        if not bases:
            return
        for use in each.inherited:
            self.words.update(use.keywords if use.path == "__init__" else ())
        overridden = [each.use for each in each.methods if not each.use.path.startswith("__") and _has_any(bases.values(), each.use.path)]
        overrides = sorted({use.path for use in overridden if not use.path.startswith("_") or use.path in _DOCUMENTED_PRIVATE})
        self.subclasses.append(Subclass(name=each.path, base=", ".join(bases), overrides=overrides))
        self.words.update(overrides)
        for use in overridden:
            if use.path not in overrides:
                reason = "its own method takes the place of a private one of this library: rename it"
                self._note_absence(f"{next(iter(bases))}.{use.path}", reason, use)


def _has_any(owners: Iterable[type], name: str) -> bool:
    return any(hasattr(owner, name) for owner in owners)


def _own_bases(target: Any) -> set[str]:
    """Return the names of a class's bases that are of the documented API."""
    return {base.__name__ for base in target.__mro__ if base.__module__.startswith(REAL)} if isinstance(target, type) else set()
