"""Faults that are drawn and planted: which there are, which module's tests have to find them, and that nothing of it stays."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray")

from cosmic_ray.mutating import mutate_code

from scripts import mutants
from scripts.mutation import copies
from scripts.mutation.operators import OPERATORS, OURS

ROOT = Path(__file__).parents[2]


def mutate(operator: str, code: str) -> list[str]:
    """Return each code that an operator makes of another one."""
    made = []
    while (mutant := mutate_code(code, OPERATORS[operator], len(made))) is not None:
        made.append(mutant)
    return made


@pytest.mark.parametrize("operator", OURS, ids=lambda operator: operator.__name__)
def test_the_example_of_an_operator_is_what_it_does(operator: type) -> None:
    examples = operator.examples()  # type: ignore[attr-defined]
    assert examples
    for example in examples:
        assert mutate(operator.__name__, example.pre_mutation_code)[example.occurrence] == example.post_mutation_code


@pytest.mark.parametrize(
    ("operator", "code", "made"),
    [
        ("OrToIsNone", "if a or b: pass", []),  # only its truth matters
        ("OrToIsNone", "f(a.b or [1], c or ())", ["f(([1] if a.b is None else a.b), c or ())"]),
        ("IsNoneToOr", "x = a if a is not None else b", ["x = (a or b)"]),
        ("IsNoneToOr", "x = c if a is None else b", []),
        ("TruthToIsNone", "x = 1 if a.b else 2", ["x = 1 if (a.b is not None) else 2"]),
        ("TruthToIsNone", "while a and not b: pass", ["while (a is not None) and not b: pass", "while a and not b is not None: pass"]),
        ("TruthToIsNone", "x = a\nif f(a) or b == a: pass", []),
        ("IsNoneToTruth", "if a is None: pass", ["if (not a): pass"]),
        ("NegateMembership", "a not in b", ["a in b"]),
        ("DropClosing", "await a.b.aclose()\n", ["pass\n"]),
        ("DropClosing", "x = a.pop()\n", []),
        ("DropCall", "await a.b(1)\n", []),
        ("DropAwait", "await a.aclose()\n", []),
        ("SwapArguments", "f(a, b.c, 1)", ["f(b.c, a, 1)"]),
        ("SwapArguments", "isinstance(a, b), max(a, b)", []),
        ("SwapKeywordValues", "f(a=b, c=1, d=e)", []),
        ("DropKeyword", "f(a=1, **b)", ["f(a=1)"]),
        ("DropMember", "x = [a]", ["x = []"]),
        ("DropMember", "x = {a}", ["x = set()"]),
        ("DropMember", "x = {a: 1, b: 2}", ["x = {a: 1}"]),
        ("DropMember", "x = {**a, b: 2, c: 3}", ["x = {**a, b: 2}", "x = {b: 2, c: 3}"]),
        ("DropMember", "x = (a, b, c)", ["x = (a, b)", "x = (b, c)"]),
        ("DropMember", "x = [y for y in z], (a), a[1]", []),
        ("AddCache", "class C:\n    def f(self, a): return self.a\n    async def g(self): return self.a", []),
        ("DropReset", "class C:\n    def __init__(self):\n        self.a = None\n", []),
        ("DropReset", "def f():\n    g.cache_clear()\n", ["def f():\n    pass\n"]),
        ("SwallowException", "try: a\nexcept B:\n    c()", []),
        ("NeverCaught", "try: a\nexcept b.C: d", ["try: a\nexcept (): d"]),
        ("FinallyToElse", "try:\n    a\nexcept B: c\nelse:\n    d\nfinally:\n    e", []),
        ("ReturnNone", "def f(): return None\ndef g(): return\ndef h(): return False", []),
        ("Number", "wait(timeout=7, tries=1)", ["wait(timeout=7, tries= 2)", "wait(timeout=7, tries= 0)"]),
        ("Number", "x = 1024, 0.5", []),
        ("Decorator", "@property\ndef f(): pass\n@stop\ndef g(): pass", ["@property\ndef f(): pass\ndef g(): pass"]),
    ],
)
def test_second_cases_of_operators(operator: str, code: str, made: list[str]) -> None:
    assert mutate(operator, code) == made


def test_what_no_test_can_see_is_not_mutated() -> None:
    source = '''"""1 and 2 or 3."""
from typing import TYPE_CHECKING
from a import *
if TYPE_CHECKING:
    from b import c
    D = c(1)
__all__ = ["a", "b"]
Number = int | float
def f(a: int | Literal[1, 2], *, b: "x" = "text", **c: Any) -> dict[str, 3] | None:
    "In words, 1."
    d: list[int | str]
    log.info("%s of %s", b, a)
    _log.warning(f"{a - 1}")
    assert a > 1
    raise
@dataclass(frozen=True)
class C:
    e = zip(*f, strict=True)
'''
    assert {place.operator for place in mutants.find_places(source)} == {"DropRaise"}


SOURCE = """def f(a, b):
    if a < 3:
        return b
    return g(a, b)
"""


def test_each_line_gets_a_fault_before_one_gets_a_second() -> None:
    drawn = mutants.draw_mutants("m.py", SOURCE, 3, random.Random("seed"))
    assert sorted(mutant.line for mutant in drawn) == [2, 3, 4]
    assert drawn == mutants.draw_mutants("m.py", SOURCE, 3, random.Random("seed"))
    everything = mutants.draw_mutants("m.py", SOURCE, 100, random.Random(1))
    assert len({mutant.code for mutant in everything}) == len(everything) > 6
    assert {mutant.line for mutant in mutants.draw_mutants("m.py", SOURCE, 100, random.Random(1), lines={3, 4})} == {3, 4}
    for mutant in everything:
        compile(mutant.code, "m.py", "exec")


def test_marks_go_with_their_line() -> None:
    moved = "\n\n" + SOURCE
    at_most = mutants.Mark("m.py", "if a < 3:", "ReplaceComparisonOperator_Lt_LtE", "because")
    one_more = mutants.Mark("m.py", "if a < 3:", "Number", "because", becomes="if a < 4:")
    drawn = {mutant.becomes for mutant in mutants.draw_mutants("m.py", moved, 100, random.Random(1), [at_most, one_more])}
    assert "if a >= 3:" in drawn
    assert "if a < 2:" in {" ".join(line.split()) for line in drawn}
    assert drawn.isdisjoint({"if a <= 3:", "if a < 4:"})


AS_IN_THE_TREE = """
def test_scripts_and_other_users_find_what_they_find_in_the_working_tree():
    import os, sys
    from pathlib import Path
    assert not sys.flags.safe_path
    assert not any(path.endswith("mutation") for path in sys.path)
    assert Path.cwd().parent.stat().st_mode & 0o7777 == 0o755
    assert Path(os.environ["TMPDIR"]).stat().st_mode & 0o7777 == 0o1777
"""


def write_project(root: Path) -> None:
    """Write a package with tests, in a repository of its own."""
    files = {
        "vfgym/__init__.py": "",
        "vfgym/limits.py": "def is_over(count):\n    return count > 3\n",
        "vfgym/envs/__init__.py": "",
        "vfgym/envs/_seat.py": "def sit():\n    return 1 + 1\n",
        "vfgym/envs/chat.py": "def talk():\n    return 7\n",
        "vfgym/envs/mute.py": "import time\n\ndef hush():\n    return time.sleep(1000 * 0)\n",
        "vfgym/tasks/broken.py": "x = 1\n",
        "tests/test_limits.py": "from vfgym.limits import is_over\n\ndef test(): assert is_over(5) and not is_over(1)\n",
        "tests/test_other.py": "from vfgym.limits import is_over\n\ndef test(): assert is_over(4)\n" + AS_IN_THE_TREE,
        "tests/envs/test_seat.py": "from vfgym.envs._seat import sit\n\ndef test(): assert sit() == 2\n",
        "tests/envs/test_talk.py": "from vfgym.envs.chat import talk\n\ndef test(): assert talk() == 7\n",
        "tests/envs/test_mute.py": "from vfgym.envs.mute import hush\n\ndef test(): assert hush() is None\n",
        "tests/tasks/test_broken.py": "def test(): assert False\n",
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['--import-mode=importlib']\npythonpath = ['.']\n",
        ".gitignore": "__pycache__\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "begin")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    write_project(root)
    return root


@pytest.mark.parametrize(
    ("module", "own", "folder"),
    [
        ("vfgym/limits.py", "tests/test_limits.py", ("tests/test_other.py",)),
        ("vfgym/envs/_seat.py", "tests/envs/test_seat.py", ("tests/envs", "--ignore=tests/envs/test_seat.py")),
        ("vfgym/envs/chat.py", None, ("tests/envs",)),
        ("vfgym/envs/deep/er.py", None, ("tests/envs",)),
        ("verifiers_compat/envs/x.py", None, ("tests",)),
    ],
)
def test_the_tests_of_a_module(project: Path, module: str, own: str | None, folder: tuple[str, ...]) -> None:
    of = mutants.Project(project)
    assert of.own_tests(module) == own
    assert of.folder_tests(module) == folder


def test_the_tests_of_a_second_package_are_in_a_folder_of_its_name() -> None:
    here = mutants.Project(ROOT)
    assert here.mirror("verifiers_compat/envs/x.py") == Path("tests/verifiers_compat/envs")
    assert [
        here.room(module) for module in ("vfgym/limits.py", "vfgym/envs/a/b.py", "verifiers_compat/a.py", "verifiers_compat/v1/a.py")
    ] == [*("vfgym/*.py", "envs", "verifiers_compat", "verifiers_compat/v1")]


def test_modules_are_drawn_by_seed_and_only_once(project: Path) -> None:
    of = mutants.Project(project)
    drawn = mutants.draw_modules(of, 4, random.Random("x"))
    assert len(set(drawn)) == 4
    assert drawn == mutants.draw_modules(of, 4, random.Random("x"))
    assert sorted(mutants.draw_modules(of, 100, random.Random(1))) == [module for module in of.list_modules() if of.read(module)]


def run_main(monkeypatch: pytest.MonkeyPatch, project: Path, *arguments: str) -> int:
    monkeypatch.setattr(copies, "PRELOADED", ("pytest", "hypothesis"))
    monkeypatch.setattr(copies, "SECONDS", 0.5)
    return mutants.main([*arguments, "--seed", "1"], project)


@pytest.mark.exhaustive
def test_a_table_says_where_faults_are_found(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutants, "OPERATORS", {name: OPERATORS[name] for name in ("Number", "ReplaceComparisonOperator_Gt_GtE")})
    file = tmp_path / "results.json"
    code = run_main(monkeypatch, project, "--module", "vfgym", "--json", str(file), "--mutants", "70")
    output = capsys.readouterr().out
    assert code == 1  # of broken
    assert "nothing counts that they are to find: tests/tasks/test_broken.py" in output
    rows = {line.split("  ")[0]: line.split()[1:] for line in output.splitlines() if line.startswith(("envs ", "vfgym/*.py ", "all "))}
    found = {(row["module"], " ".join(row["becomes"].split())): row["found_by"] for row in json.loads(file.read_text())}
    assert found["vfgym/limits.py", "return count > 4"] == "folder"
    assert found["vfgym/limits.py", "return count > 2"] is None
    assert found["vfgym/limits.py", "return count >= 3"] is None
    assert found["vfgym/envs/_seat.py", "return 2 + 1"] == "own"
    assert found["vfgym/envs/chat.py", "return 8"] == "folder"
    assert rows["vfgym/*.py"] == ["3", "0", "1", "2", "0", "0", "0", "33"]
    assert rows["envs"][0] == "8"
    assert rows["envs"][5] == "2"  # of chat, which has no file
    assert rows["envs"][4] == "1"  # time.sleep(1000 * 1)
    assert "+    return count >= 3" in output
    assert not subprocess.run(["git", "-C", str(project), "status", "--porcelain"], capture_output=True, text=True).stdout


def test_changed_lines_are_those_since_a_commit(tmp_path: Path) -> None:
    write_project(tmp_path)
    of = mutants.Project(tmp_path)
    (tmp_path / "vfgym/limits.py").write_text("def is_over(count):\n    return count > 3\n\n\nX = 1\n")
    (tmp_path / "vfgym/new.py").write_text("Y = 2\n")
    (tmp_path / "tests/test_new.py").write_text("Z = 2\n")
    changed = {"vfgym/limits.py": {3, 4, 5}, "vfgym/new.py": {1}}
    assert mutants.find_changed_lines(of, "") == changed
    assert mutants.find_changed_lines(of, "HEAD") == changed
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "more")
    assert mutants.find_changed_lines(of, "") == changed  # those of the last commit
    git(tmp_path, "checkout", "-qb", "work")
    (tmp_path / "vfgym/new.py").write_text("Y = 3\n")
    assert mutants.find_changed_lines(of, "") == {"vfgym/new.py": {1}}
    with pytest.raises(SystemExit, match="no commit 'nothing'"):
        mutants.find_changed_lines(of, "nothing")


def test_a_mark_whose_line_is_gone_is_told(project: Path) -> None:
    of = mutants.Project(project)
    kept = mutants.Mark("vfgym/limits.py", "return count > 3", "Number", "because")
    gone = mutants.Mark("vfgym/limits.py", "return count > 4", "Number", "because")
    misspelt = mutants.Mark("vfgym/limits.py", "return count > 3", "Numbr", "because")
    assert [*mutants.find_stale_marks(of, [kept])] == []
    assert len([*mutants.find_stale_marks(of, [kept, gone, misspelt])]) == 2


@pytest.mark.parametrize("mark", mutants.read_marks(ROOT), ids=lambda mark: f"{mark.module}: {mark.line}")
def test_marks_have_reasons(mark: mutants.Mark) -> None:
    assert len(mark.reason) > 10


INTERRUPTED = """
import signal, sys
from pathlib import Path
from scripts import mutants
from scripts.mutation import copies

copies.PRELOADED = ("pytest", "hypothesis")
mutants.run_command(["--module", "vfgym/hangs.py", "--seed", "1"], Path(sys.argv[1]))
"""
STARTS_A_PROCESS = """
import os, subprocess, sys
def test():
    subprocess.run([sys.executable, os.environ["MUTANTS_TEST"]], start_new_session=True)
"""
HANGS = """
import os, time
with open(os.environ["MUTANTS_TEST"] + ".pipe", "w") as pipe:
    pipe.write("begun")
time.sleep(1000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    program, pipe, temporary = (tmp_path / name for name in ("hangs.py", "hangs.py.pipe", "temporary"))
    write_project(tmp_path / "project")
    (tmp_path / "project/vfgym/hangs.py").write_text("def f():\n    return 1\n")
    (tmp_path / "project/tests/test_hangs.py").write_text(STARTS_A_PROCESS)
    program.write_text(HANGS)
    os.mkfifo(pipe)
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT), "MUTANTS_TEST": str(program)}
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "project")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        assert pipe.read_text() == "begun"
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert not [*temporary.iterdir()]
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            assert str(program).encode() not in entry.read_bytes()
        except OSError:  # it has ended, or is another user's
            pass
