"""The report on a package as text for people, in lines of 80 columns at most."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from verifiers_compat.cli.packages.check import Found, Image, Report, Variable
from verifiers_compat.cli.packages.needs import Need

_WIDTH = 80
_STATUS = {
    "installed": "installed",
    "required": "the package requires it",
    "added": "vf-install adds it",
    "unsure": "not installed; perhaps one of the libraries that the package requires, which are not installed, brings it",
    "missing": "not installed, and the package does not require it",
}


def report_lines(report: Report) -> Iterator[str]:
    """Yield the lines of a report."""
    yield f"{report.package}: what it uses, and what it will find here"
    for problem in report.problems:
        yield from textwrap.wrap(f"problem: {problem}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    yield from _section("verifiers, here", [", ".join(map(_short, report.offered))])
    yield from _section("verifiers, missing or in conflict", _absences(report, is_optional=False))
    yield from _section("verifiers, missing, and the package goes on without", _absences(report, is_optional=True))
    yield from _section("its classes", [_describe(each.name, each.base, each.overrides) for each in report.subclasses])
    yield from _section("what differs", [f"verifiers 0.1.14: {each.verifiers}. Here: {each.here}." for each in report.differences])
    yield from _section("imports", map(_import_line, report.imports))
    yield from _section("extras of this library for what it uses", [f"vfgym[{each}]" for each in report.extras])
    yield from _section("extras of verifiers that nothing here stands for", report.unknown_extras)
    yield from _section("images of sandboxes", map(_image_line, report.images))
    yield from _section("environment variables", map(_variable_line, report.variables))
    yield from _section("data sets, from the network", map(_dataset_line, report.datasets))
    yield ""
    yield from textwrap.wrap(_verdict(report), _WIDTH)


def _verdict(report: Report) -> str:
    if not report.is_complete:
        return "Something that it uses is missing (see above)."
    if any(each.status == "unsure" for each in report.imports):
        return "Everything that it uses is here, as far as can be said before what it requires is installed."
    return "Everything that it uses is here, or comes with it."


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    items = list(filter(None, items))
    if items:
        yield f"\n{title}"
        for item in items:
            yield from textwrap.wrap(item, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def _absences(report: Report, *, is_optional: bool) -> Iterator[str]:
    """Yield a line for each reason, with the names that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for each in report.absent:
        if each.is_optional == is_optional:
            by_reason.setdefault(each.reason, []).append(f"{_short(each.name)} ({_places(each.places)})")
    for reason, names in by_reason.items():
        yield f"{', '.join(names)}: {reason}"


def _describe(name: str, base: str, overrides: list[str]) -> str:
    refines = f"{name} refines {', '.join(map(_short, base.split(', ')))}"
    return f"{refines}; it overrides {', '.join(overrides)}" if overrides else refines


def _import_line(need: Need) -> str:
    brought = f", brought by {need.requirement}" if need.requirement and need.status != "installed" else ""
    todo = f". Run: pip install {need.requirement or need.module}" if need.status == "missing" else ""
    places = f" ({_places(need.places)})" if need.status != "installed" else ""
    return f"{need.module}{places}: {_STATUS[need.status]}{brought}{todo}"


def _image_line(image: Image) -> str:
    return f"{image.name} ({_places(image.places)}): {image.problem or 'sandboxes of it can be made here'}"


def _variable_line(variable: Variable) -> str:
    return f"{variable.name}: {'set' if variable.is_set else 'not set'} ({_places(variable.places)})"


def _dataset_line(dataset: Found) -> str:
    return f"{dataset.name or 'one that is chosen when it runs'} ({_places(dataset.places)})"


def _short(name: str) -> str:
    return name.removeprefix("verifiers.")


def _places(places: list[str]) -> str:
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return ", ".join(places[:3]) + more
