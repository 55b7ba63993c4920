"""Plant faults in modules drawn by chance, one at a time, and see which of them the tests find.

usage: python scripts/mutants.py [--changed [REF] | --module PATH ...] [--seed S] [--modules 40] [--mutants 200] [--own | --suite]
                                 [--map FOLDER] [--json FILE] [--jobs 1] [--seconds N]

Each fault (a mutant) is shown first to the tests of its module's own file, then to those of its folder, then, with ``--suite``, to the
quick suite. With ``--map`` (notes of ``scripts/mutation/coverage_map.py``) the tests that run its line come first in each stage; of the
suite they are all that is shown, if there are any. A table says for each room how many were found where. What survives is printed with
its diff: it wants a test, or, where nothing can be seen of it, a mark in ``equivalent_mutants.toml``. Faults are planted in a copy of the
working tree, never in itself.

cosmic-ray finds the places and edits the source (``pip install -e '.[dev]'`` has it), so signatures, pickles and whatever else is read of a
function stay what they are; mutmut puts functions of its own in their place, and asks which mutant runs at each call.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import dataclasses
import difflib
import json
import queue
import random
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cosmic_ray.ast import ast_nodes, get_ast  # noqa: E402
from cosmic_ray.mutating import mutate_code  # noqa: E402

from scripts.mutation.copies import Copy, Run, copied  # noqa: E402
from scripts.mutation.coverage_map import CoverageMap  # noqa: E402
from scripts.mutation.operators import OPERATORS, is_mutable  # noqa: E402

PACKAGES = ("vfgym", "verifiers_compat")
"""Packages whose modules are mutated. The tests of the first mirror it, those of others are in a folder of its name."""
MARKS = Path("scripts", "equivalent_mutants.toml")
SUITE = ("-n", "2", "tests")
STAGES = ("own", "folder", "suite")


@dataclasses.dataclass(frozen=True)
class Place:
    """A place of a module at which an operator plants a fault."""

    operator: str
    occurrence: int
    """Which of the operator's places in the module this is."""
    line: int


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A module with a fault."""

    module: str
    operator: str
    line: int
    source: str = dataclasses.field(repr=False)
    code: str = dataclasses.field(repr=False)

    @cached_property
    def diff(self) -> str:
        """The fault as a unified diff."""
        lines = difflib.unified_diff(
            self.source.splitlines(), self.code.splitlines(), f"a/{self.module}", f"b/{self.module}", lineterm="", n=2
        )
        return "\n".join(lines)

    @property
    def text(self) -> str:
        """The line of the source at which the fault is."""
        return self.source.splitlines()[self.line - 1].strip()

    @property
    def becomes(self) -> str:
        """The first line of the code that the source has not."""
        return next((line[1:].strip() for line in self.diff.splitlines()[2:] if line.startswith("+")), "")


@dataclasses.dataclass(frozen=True)
class Mark:
    """What says of mutants that nobody can tell them from the source; a line that moves keeps its mark."""

    module: str
    line: str
    """The text of the line, without what it is indented by."""
    operator: str
    reason: str
    becomes: str | None = None
    """What the line becomes; None for whatever the operator makes of it."""

    def fits(self, mutant: Mutant) -> bool:
        """Say whether a mutant is meant."""
        meant = (self.module, self.line, self.operator) == (mutant.module, mutant.text, mutant.operator)
        return meant and self.becomes in (None, mutant.becomes)


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a mutant."""

    mutant: Mutant
    found_by: str | None
    """``own``, ``folder`` or ``suite``; None where nothing found it."""
    timed_out: bool = False
    """Whether it was found because the tests took several times what they take without it."""
    own_file: bool = True
    """Whether its module has a test file of its name."""
    failing: str = ""
    """Tests that fail without any fault: nothing can be said of the mutant."""

    @property
    def survived(self) -> bool:
        """Whether all tests passed."""
        return self.found_by is None and not self.failing


class Project:
    """A repository: packages, and tests that mirror them."""

    def __init__(self, root: Path, packages: Sequence[str] = PACKAGES, covering: CoverageMap | None = None) -> None:
        self.root = root
        self.covering = covering
        self.packages = tuple(package for package in packages if (root / package).is_dir())

    def list_modules(self) -> list[str]:
        """Return the modules of all packages."""
        paths = (path for package in self.packages for path in (self.root / package).rglob("*.py"))
        return sorted(path.relative_to(self.root).as_posix() for path in paths)

    def read(self, module: str) -> str:
        """Return the source of a module."""
        return (self.root / module).read_text(encoding="utf-8")

    def room(self, module: str) -> str:
        """Return the folder in whose row of the table a module counts."""
        package, *folders = Path(module).parts[:-1]
        if package == self.packages[0]:
            return folders[0] if folders else f"{package}/*.py"
        return "/".join([package, *folders[:1]])

    def mirror(self, module: str) -> Path:
        """Return the folder where the tests of a module should be."""
        package, *folders = Path(module).parts[:-1]
        return Path("tests", *([] if package == self.packages[0] else [package]), *folders)

    def own_tests(self, module: str) -> str | None:
        """Return the test file of a module's name."""
        stem = Path(module).stem
        names = ("init", Path(module).parent.name) if stem == "__init__" else (stem.lstrip("_"), stem.strip("_"))
        files = (self.mirror(module) / f"test_{name}.py" for name in names)
        return next((file.as_posix() for file in files if (self.root / file).is_file()), None)

    def folder_tests(self, module: str) -> tuple[str, ...]:
        """Return what pytest is asked to run of a module's folder, without its own file."""
        own, folder = self.own_tests(module), self.mirror(module)
        while not (self.root / folder).is_dir():
            folder = folder.parent
        if len(Path(module).parts) == 2:  # the whole suite is below its folder
            files = sorted(path.relative_to(self.root).as_posix() for path in (self.root / folder).glob("test_*.py"))
            return tuple(file for file in files if file != own)
        return (folder.as_posix(), *([f"--ignore={own}"] if own else []))

    def tests(self, module: str, stage: str) -> tuple[str, ...]:
        """Return what pytest is asked to run in a stage; nothing where there is nothing."""
        own = self.own_tests(module)
        return {"own": (own,) if own else (), "folder": self.folder_tests(module), "suite": SUITE}[stage]

    def rounds(self, mutant: Mutant, stage: str) -> Iterator[tuple[str, ...]]:
        """Yield what pytest is asked to run in a stage, one after the other."""
        tests = self.tests(mutant.module, stage)
        if tests and self.covering is not None:
            own = self.own_tests(mutant.module)
            places = {"own": (own,), "folder": tests, "suite": ("tests",)}[stage]
            covering = [
                test
                for test in self.covering.tests_of(mutant.module, list_statement(mutant.source, mutant.line))
                if (file := test.partition("::")[0]) != own or stage == "own"
                if any(place and Path(file).is_relative_to(place) for place in places) and (self.root / file).is_file()
            ]
            if covering:
                yield tuple(covering)
                if stage == "suite":
                    return
        if tests:
            yield tests


def list_statement(source: str, line: int) -> range:
    """Return the lines of the statement that a line belongs to: of one that has a body, those before it."""
    lines = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            body = getattr(node, "body", None)
            first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
            last = (body[0].lineno - 1 if body else getattr(node, "end_lineno", None)) or first
            if first <= line <= last:
                lines = range(first, last + 1)  # ast.walk comes to what is inside later
    return lines


def find_places(source: str) -> list[Place]:
    """Return where operators plant faults in a module that a test could see."""
    counts: dict[str, int] = defaultdict(int)
    places = []
    for node in ast_nodes(get_ast(source)):
        mutable = None
        for name, operator in OPERATORS.items():
            for start, _ in operator.mutation_positions(node):
                mutable = is_mutable(node) if mutable is None else mutable
                if mutable:
                    places.append(Place(name, counts[name], start[0]))
                counts[name] += 1
    return places


def make_mutant(module: str, source: str, place: Place) -> Mutant | None:
    """Return a module with the fault of a place; None where that is no Python, or means the same."""
    code = mutate_code(source, OPERATORS[place.operator], place.occurrence)
    try:
        if code is None or ast.dump(ast.parse(code)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    return Mutant(module, place.operator, place.line, source, code)


def draw_mutants(
    module: str, source: str, wanted: int, chance: random.Random, marks: Iterable[Mark] = (), lines: Collection[int] | None = None
) -> list[Mutant]:
    """Draw mutants of a module: lines by chance, and of each line one fault, before any line has a second one.

    Args:
        module: The module's path.
        source: Its source.
        wanted: How many to draw at most.
        chance: What draws.
        marks: Which are not drawn.
        lines: The lines to draw from; None for all.
    """
    by_line: dict[int, list[Place]] = defaultdict(list)
    for place in find_places(source):
        if lines is None or place.line in lines:
            by_line[place.line].append(place)
    for places in by_line.values():
        chance.shuffle(places)
    drawn: dict[str, Mutant] = {}
    while by_line and len(drawn) < wanted:
        for line in chance.sample(sorted(by_line), len(by_line)):
            mutant = make_mutant(module, source, by_line[line].pop())
            if not by_line[line]:
                del by_line[line]
            if mutant is not None and not any(mark.fits(mutant) for mark in marks):
                drawn.setdefault(mutant.code, mutant)
            if len(drawn) == wanted:
                break
    return list(drawn.values())


def draw_modules(project: Project, wanted: int, chance: random.Random) -> list[str]:
    """Draw modules, the longer the likelier."""
    lengths = {module: len(project.read(module).splitlines()) for module in project.list_modules()}
    lengths = {module: length for module, length in lengths.items() if length}
    drawn: list[str] = []
    while lengths and len(drawn) < wanted:
        drawn += chance.choices([*lengths], [*lengths.values()])
        del lengths[drawn[-1]]
    return drawn


def read_marks(root: Path) -> list[Mark]:
    """Return the marks of a repository."""
    file = root / MARKS
    return [Mark(**mark) for mark in tomllib.loads(file.read_text(encoding="utf-8")).get("mutant", [])] if file.is_file() else []


def find_stale_marks(project: Project, marks: Iterable[Mark]) -> Iterator[str]:
    """Yield a sentence for each mark whose line is gone."""
    for mark in marks:
        path = project.root / mark.module
        if not path.is_file() or mark.line not in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
            yield f"{MARKS}: {mark.module} has no line `{mark.line}` any more: drop its mark"
        elif mark.operator not in OPERATORS:
            yield f"{MARKS}: there is no operator {mark.operator}: drop its mark at `{mark.line}` of {mark.module}"


def git(root: Path, *arguments: str) -> str:
    """Return what git prints, "" where it fails."""
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True).stdout


def find_changed_lines(project: Project, reference: str) -> dict[str, set[int]]:
    """Return the lines of the working tree that changed since a commit, of each module.

    Args:
        project: The repository.
        reference: The commit; "" for where this branch left main, and on main itself the commit before this one.
    """
    if not reference:
        head = git(project.root, "rev-parse", "HEAD").strip()
        reference = git(project.root, "merge-base", "HEAD", "main").strip() or head
        if reference == head and not git(project.root, "status", "--porcelain", "--", *project.packages):
            reference = "HEAD~1"
    if not git(project.root, "rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}"):
        sys.exit(f"git knows no commit {reference!r}")
    changed: dict[str, set[int]] = defaultdict(set)
    module = ""
    for line in git(project.root, "diff", "--unified=0", "--no-ext-diff", reference, "--", *project.packages).splitlines():
        if line.startswith("+++ "):
            module = line.removeprefix("+++ ").removeprefix("b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            changed[module].update(range(first, first + count))
    for module in git(project.root, "ls-files", "--others", "--exclude-standard", "--", *project.packages).splitlines():
        changed[module].update(range(1, len(project.read(module).splitlines()) + 1))
    return {module: lines for module, lines in sorted(changed.items()) if module.endswith(".py") and lines}


def try_mutant(project: Project, copy: Copy, mutant: Mutant, stages: Sequence[str]) -> Result:
    """Plant a fault and run the tests, one stage after the other, until one finds it."""
    own_file = project.own_tests(mutant.module) is not None
    for stage, tests in ((each, tests) for each in stages for tests in project.rounds(mutant, each)):
        if (unmutated := copy.run_unmutated(tests)).code == 5:
            continue  # no tests
        if not unmutated.passed:
            return Result(mutant, None, own_file=own_file, failing=f"{' '.join(tests)}: {last_words(unmutated)}")
        with copy.planted(mutant.module, mutant.code):
            run = copy.run_bounded(tests)
        if not run.passed:
            return Result(mutant, stage, run.code is None, own_file)
    return Result(mutant, None, own_file=own_file)


def last_words(run: Run) -> str:
    """Say in a line why tests fail without a fault."""
    lines = [line for line in run.output.splitlines() if line.startswith(("FAILED", "ERROR", "E "))] or run.output.strip().splitlines()[-1:]
    return (
        f"after {run.seconds:.0f} s: {lines[0] if lines else 'nothing printed'}"
        if run.code is not None
        else f"more than {run.seconds:.0f} s"
    )


def try_mutants(
    project: Project, mutants: Sequence[Mutant], stages: Sequence[str], jobs: int = 1, seconds: float | None = None
) -> Iterator[Result]:
    """Yield what becomes of each mutant, as it is known.

    Args:
        project: The repository.
        mutants: The mutants.
        stages: Which tests to run.
        jobs: How many copies work at a time.
        seconds: After how many none is begun any more.
    """
    by_module: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_module[mutant.module].append(mutant)
    waiting: queue.SimpleQueue[list[Mutant]] = queue.SimpleQueue()
    for of_module in by_module.values():
        waiting.put(of_module)
    done: queue.SimpleQueue[Result | None] = queue.SimpleQueue()
    ends = time.monotonic() + seconds if seconds is not None else float("inf")

    def work(copy: Copy) -> None:
        copied_project = Project(copy.root, project.packages, project.covering)  # files of the working tree come and go meanwhile
        try:
            while time.monotonic() < ends:
                for mutant in waiting.get_nowait():
                    if time.monotonic() < ends:
                        done.put(try_mutant(copied_project, copy, mutant, stages))
        except queue.Empty:
            pass
        finally:
            done.put(None)

    with ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(jobs) as threads:
        copies = [stack.enter_context(copied(project.root, project.packages)) for _ in range(min(jobs, len(by_module)))]
        working = [threads.submit(work, copy) for copy in copies]
        left = len(working)
        try:
            while left:
                if (result := done.get()) is None:
                    left -= 1
                else:
                    yield result
        finally:
            for copy in copies:
                copy.close()  # so its thread ends, and then what it writes to is removed
        for worker in working:
            worker.result()


def format_table(project: Project, results: Sequence[Result], stages: Sequence[str]) -> str:
    """Return how many mutants were found where, a row for each room."""
    rooms: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if not result.failing:
            rooms[project.room(result.mutant.module)].append(result)
    heads = [
        "room",
        "mutants",
        *(f"by {stage}" for stage in stages),
        "survived",
        "timed out",
        "no test file",
        *(f"{stage} %" for stage in stages),
    ]
    rows = [heads]
    for room, found in [*sorted(rooms.items()), ("all", [result for result in results if not result.failing])]:
        counts = [sum(result.found_by == stage for result in found) for stage in stages]
        shares = [f"{100 * sum(counts[: i + 1]) / len(found):.0f}" if found else "-" for i in range(len(stages))]
        others = [
            sum(result.survived for result in found),
            sum(result.timed_out for result in found),
            sum(not result.own_file for result in found),
        ]
        rows.append([room, str(len(found)), *map(str, counts), *map(str, others), *shares])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{widths[0]}}" if not i else f"{cell:>{widths[i]}}" for i, cell in enumerate(row)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def format_survivor(result: Result) -> str:
    """Return a mutant with its place and its diff."""
    mutant = result.mutant
    return f"{mutant.module}:{mutant.line}: {mutant.operator}\n{mutant.diff}\n"


def to_json(result: Result) -> dict[str, object]:
    """Return a result as a row of ``--json``."""
    mutant = result.mutant
    row = {name: getattr(mutant, name) for name in ("module", "line", "operator", "text", "becomes", "diff")}
    return {**row, **{name: getattr(result, name) for name in ("found_by", "survived", "timed_out", "own_file", "failing")}}


def choose_mutants(project: Project, options: argparse.Namespace, marks: Sequence[Mark]) -> list[Mutant]:
    """Draw what the options ask for."""
    chance = random.Random(options.seed)
    lines: dict[str, set[int]] = {}
    if options.changed is not None:
        lines = find_changed_lines(project, options.changed)
        modules, each = [*lines], options.mutants
    elif options.module:
        modules, each = list_given(project, options.module), -(-options.mutants // len(options.module))
    else:
        modules = draw_modules(project, options.modules, chance)
        each = -(-options.mutants // options.modules)
    mutants: list[Mutant] = []
    for module in modules:
        mutants += draw_mutants(module, project.read(module), each, chance, marks, lines.get(module))
    if len(mutants) > options.mutants:
        kept = set(chance.sample(range(len(mutants)), options.mutants))
        mutants = [mutant for i, mutant in enumerate(mutants) if i in kept]
    return mutants


def list_given(project: Project, paths: Iterable[str]) -> list[str]:
    """Return the modules that paths name; a folder names all that it has."""
    modules = []
    for name in paths:
        path = (project.root / name).resolve()
        if not path.exists():
            sys.exit(f"{name} is not there: name a module or a folder, like {project.packages[0]}/limits.py")
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        modules += [file.relative_to(project.root.resolve()).as_posix() for file in files]
    return modules


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--changed", nargs="?", const="", metavar="REF", help="only lines that changed since a commit, or since main")
    which.add_argument("--module", nargs="+", metavar="PATH", help="only these modules or folders")
    parser.add_argument("--seed", help="what is drawn follows from it (default: the hash of the commit)")
    parser.add_argument("--modules", type=int, default=40, help="modules to draw, the longer the likelier")
    parser.add_argument("--mutants", type=int, default=200, help="mutants to draw at most, about as many in each module")
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--own", action="store_true", help="run the tests of the module's own file only")
    depth.add_argument("--suite", action="store_true", help="show what survives its folder's tests to the quick suite")
    parser.add_argument("--map", type=Path, metavar="FOLDER", help="notes of which tests run which lines")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what became of each mutant to a file")
    parser.add_argument("--jobs", type=int, default=1, help="copies that work at a time")
    parser.add_argument("--seconds", type=float, help="begin no mutant after so many seconds")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Plant faults and print what became of them; return 1 where tests fail without any fault, else 0."""
    options = parse_options(arguments)
    project = Project(root, covering=CoverageMap(options.map, root) if options.map else None)
    options.seed = options.seed or git(root, "rev-parse", "HEAD").strip()
    stages = STAGES[:1] if options.own else STAGES if options.suite else STAGES[:2]
    marks = read_marks(root)
    for sentence in find_stale_marks(project, marks):
        print(sentence, flush=True)
    mutants = choose_mutants(project, options, marks)
    print(f"{len(mutants)} mutants of {len({mutant.module for mutant in mutants})} modules, seed {options.seed}", flush=True)
    results: list[Result] = []
    failing: set[str] = set()
    if mutants:
        for result in try_mutants(project, mutants, stages, options.jobs, options.seconds):
            results.append(result)
            if result.survived:
                print(f"\n[{len(results)}/{len(mutants)}] {format_survivor(result)}", flush=True)
            elif result.failing and result.failing not in failing:
                print(f"\ntests fail without any fault, so nothing counts that they are to find: {result.failing}", flush=True)
                failing.add(result.failing)
            if options.json:
                options.json.write_text(json.dumps([to_json(result) for result in results], indent=1), encoding="utf-8")
    print(f"\n{format_table(project, results, stages)}")
    if uncounted := sum(bool(result.failing) for result in results):
        print(f"{uncounted} mutants are not counted: their tests fail without any fault")
    if len(results) < len(mutants):
        print(f"{len(mutants) - len(results)} mutants were not begun in {options.seconds:g} s")
    return 1 if failing else 0


def _end(*_: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)


def run_command(arguments: Sequence[str] | None = None, root: Path = ROOT) -> NoReturn:
    """Run ``main`` and exit, also where it is interrupted."""
    signal.signal(signal.SIGTERM, _end)
    try:
        sys.exit(main(arguments, root))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    run_command()
