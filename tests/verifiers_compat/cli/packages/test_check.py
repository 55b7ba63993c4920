"""``vf-install --check``: what a package uses of verifiers, what of it is here, and what else it needs, without running any of it."""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from verifiers_compat.cli.commands.install import main
from verifiers_compat.cli.packages.check import Report, check_target, read_differences
from verifiers_compat.cli.packages.needs import is_installed, read_distributions
from verifiers_compat.cli.packages.offers import find_offer
from verifiers_compat.cli.packages.targets import open_target
from verifiers_compat.cli.requirements import extra_requirements
from vfgym.errors import ConfigurationError

PROJECT = '[project]\nname = "{name}"\nversion = "0.1.0"\ndependencies = [{dependencies}]\n'
LOADER = "\ndef load_environment(): ...\n"


@pytest.fixture
def write(workspace: Path) -> Callable[..., Path]:
    """Write a package below ``environments``: its files by their paths, and what it requires."""

    def write(name: str, files: dict[str, str], requires: Sequence[str] = ("verifiers>=0.1.9",)) -> Path:
        folder = workspace / "environments" / name.replace("-", "_")
        texts = {"pyproject.toml": PROJECT.format(name=name, dependencies=", ".join(map(json.dumps, requires))), **files}
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    return write


@pytest.fixture
def check(write: Callable[..., Path]) -> Callable[..., Report]:
    """The report on a package of one module."""

    def check(code: str, requires: Sequence[str] = ("verifiers",), **files: str) -> Report:
        write("word-count", {"word_count.py": code + LOADER, **files}, requires)
        with open_target("word-count", Path("environments")) as target:
            return check_target(target)

    return check


def names_of(report: Report) -> dict[str, str]:
    """What is not here, with the reasons."""
    return {each.name.removeprefix("verifiers."): each.reason for each in report.absent}


# Names of verifiers


@pytest.mark.parametrize(
    "code",
    [
        "import verifiers as vf\nvf.{}",
        "import verifiers\nverifiers.{}",
        "from verifiers import {}",
        "from verifiers import {} as Other",
        "import verifiers as vf\nAlias = vf\nAlias.{}",
        "def f():\n    import verifiers as vf\n    class A(vf.{}): ...",
    ],
)
def test_names_are_found_however_they_are_reached(check: Callable[..., Report], code: str) -> None:
    report = check(code.format("MultiTurnEnv"))
    assert report.offered == ["verifiers.MultiTurnEnv"]
    assert report.is_complete
    report = check(code.format("BrowserEnv"))
    assert "drives browsers of a hosted service" in names_of(report)["BrowserEnv"]
    assert not report.is_complete


def test_submodules_and_attributes_are_names_too(check: Callable[..., Report]) -> None:
    report = check(
        "import verifiers.v1 as v1\nimport verifiers.envs.integrations.browser_env\nfrom verifiers.rubrics.rubric import Rubric\n"
        "from verifiers.envs.tool_env import _private\nfrom verifiers.utils import no_such\n"
        "v1.Taskset\nv1.packages\nRubric.score_rollout\nRubric.no_method\n"
    )
    assert report.offered == ["verifiers.rubrics.rubric.Rubric", "verifiers.v1.Taskset"]
    absent = names_of(report)
    assert "CLIHarness" in absent["v1.packages"]
    assert "private name" in absent["envs.tool_env._private"]
    assert "no such name" in absent["utils.no_such"]
    assert "no such name" in absent["rubrics.rubric.Rubric.no_method"]
    assert "browser" in absent["envs.integrations.browser_env"]


def test_a_misspelt_name_is_recognised(check: Callable[..., Report]) -> None:
    assert names_of(check("import verifiers as vf\nvf.XMLParsr"))["XMLParsr"].endswith("Did you mean `XMLParser`, `Parser`, `ThinkParser`?")


@pytest.mark.parametrize(
    ("code", "is_complete"),
    [
        ("try:\n    {0}\nexcept ImportError:\n    pass", True),
        ("try:\n    {0}\nexcept (OSError, ModuleNotFoundError):\n    x = None", True),
        ("try:\n    {0}\nexcept Exception as error:\n    raise RuntimeError('install it') from error", False),
        ("try:\n    {0}\nexcept KeyError:\n    pass", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {0}", True),
        ("if __name__ == '__main__':\n    {0}", True),
        ("if True:\n    {0}", False),
    ],
)
def test_what_a_package_does_without_is_not_missing(check: Callable[..., Report], code: str, is_complete: bool) -> None:
    """Names and libraries alike."""
    assert check(code.format("from verifiers.envs.integrations.browser_env import BrowserEnv")).is_complete is is_complete
    assert check(code.format("import no_such_library")).is_complete is is_complete


def test_keyword_arguments_that_are_not_taken_are_named(check: Callable[..., Report]) -> None:
    """Of constructors and functions, of ``super().__init__`` and of classes of the package; environments take any."""
    report = check(
        "import verifiers as vf\n"
        "class Mine(vf.XMLParser):\n    def parse(self, text): ...\n"
        "class Own(vf.XMLParser):\n    def __init__(self, colour): super().__init__(['a'], shade=1)\n"
        "vf.XMLParser(['a'], answer_field='a', nope=1)\nMine(fields=['a'], size=2)\nOwn(colour=3)\n"
        "vf.SingleTurnEnv(anything=1)\nvf.load_example_dataset(count=3)\n"
    )
    assert list(names_of(report)) == [
        *("XMLParser(nope=...)", "XMLParser(size=...)", "load_example_dataset(count=...)", "XMLParser(shade=...)"),
    ]


def test_subclasses_and_what_they_override(check: Callable[..., Report]) -> None:
    """Also through classes of the package in other modules of it; what ``super()`` does not have is missing."""
    report = check(
        "from base import Base\n"
        "class Game(Base):\n"
        "    async def env_response(self, messages, state):\n"
        "        self.helper()\n        super().helper()\n        await super().env_response(messages, state)\n        super().vanished()\n"
        "    def own(self): ...\n",
        **{"base.py": "import verifiers as vf\nclass Base(vf.MultiTurnEnv):\n    def helper(self): ...\n"},
    )
    described = {each.name: (each.base, each.overrides) for each in report.subclasses}
    assert described["word_count.Game"] == ("verifiers.MultiTurnEnv", ["env_response"])
    assert names_of(report) == {"MultiTurnEnv.vanished": "the class has no such method here"}
    assert report.absent[0].places == ["word_count.py:7"]


def test_methods_that_hide_private_ones_of_this_library_are_named(check: Callable[..., Report]) -> None:
    """They would be called in their place. Those that packages are known to override are no trouble."""
    report = check(
        "import verifiers as vf\nclass Mine(vf.ToolEnv):\n    def _score(self): ...\n    def _mine(self): ...\n"
        "class Scores(vf.Rubric):\n    def _get_reward_funcs(self): ...\n"
    )
    assert [(each.name, each.places) for each in report.absent] == [("verifiers.ToolEnv._score", ["word_count.py:3"])]
    assert "rename it" in report.absent[0].reason


COOPERATIVE = """
import dataclasses
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar
import verifiers as vf

T = TypeVar("T")

class Counts:
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.count = 0

    def bump(self, by=1):
        self.count += by
        self.note(by)  # which a class beside it has

class Named(vf.XMLParser):
    def __init__(self, colour, **kwargs):
        super().__init__(fields=["a"], **kwargs)
        self.colour = colour

class Inner(Named):
    def __init__(self, **kwargs):
        super().__init__(colour=1, answer_field="a", **kwargs)

class Base(vf.StatefulToolEnv, ABC):
    def __init__(self, shade=0, **kwargs):
        super().__init__(**kwargs)
        self.paint = lambda: shade

    @abstractmethod
    def choose(self): ...

    async def update_tool_args(self, tool_name, tool_args, messages, state, **kwargs):
        self.paint(); self.choose(); self.judge(); self.error_formatter(ValueError()); self.logger.info("x"); self.given_to_it()
        return tool_args

class Game(Counts, Base, Generic[T]):
    judge: Any = None

    def __init__(self, tool, **kwargs):
        super().__init__(shade=1, given_to_it=tool, max_turns=3, **kwargs)
        self.add_tool(tool, args_to_skip=["state"])
        self.bump(by=2)

    def choose(self): ...
    def note(self, by): ...

    @vf.stop(priority=3)
    async def done(self, state) -> bool:
        return False

    @staticmethod
    def is_fine(text): ...

    @classmethod
    def make(cls): return cls(tool=None)

    async def is_completed(self, state, **kwargs):
        return await super().is_completed(state, **kwargs)

    async def env_response(self, messages, state, *args, **kwargs):
        return await super().env_response(messages, state)

@dataclasses.dataclass
class Reads(vf.Parser):
    field: str = "x"
    def parse(self, text): return getattr(self, self.field)(text)

class Calls(vf.Rubric):
    def __getattr__(self, name): return lambda: name
    def __call__(self): return self.anything()

Reads(field="y")
Inner(anything=1)
env = Game(None)
env.extra = lambda: 1
env.extra(); env.add_rubric(vf.Rubric()); env.set_kwargs(x=1)
rubric = vf.Rubric()
rubric.add_reward_func(print, weight=1.0)
group = vf.EnvGroup([])
with open("x") as group:
    group.read()
def use(rubric): rubric.anything()
"""


def test_classes_that_work_together_raise_no_alarm(check: Callable[..., Report]) -> None:
    """What one passes on to the next, has from its neighbour, is given, or makes up, is not missing."""
    report = check(COOPERATIVE)
    assert names_of(report) == {}
    assert report.is_complete
    described = {each.name.partition(".")[2]: (each.base, each.overrides) for each in report.subclasses}
    assert described["Game"] == ("verifiers.StatefulToolEnv", ["env_response", "is_completed"])
    assert described["Inner"] == ("verifiers.XMLParser", [])
    assert "Counts" not in described


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        (
            "class A(vf.MultiTurnEnv):\n    def is_completed(self, messages, state): ...",
            "A",
            r"is_completed\(self, state\b.*got is_completed",
        ),
        ("class A(vf.ToolEnv):\n    async def env_response(self, messages): ...", "A", r"must have env_response\(self, messages, state"),
        ("class A(vf.ToolEnv):\n    def setup_state(self, state, *, seed): ...", "A", "setup_state"),
        ("class A(vf.ToolEnv):\n    @vf.stop\n    def done(self, messages, state): ...", "A", "messages"),
        ("class A(vf.Parser):\n    @property\n    def parse(self): ...", "A", "must be a method"),
        ("class M:\n    def parse(self): ...\nclass A(M, vf.Parser): ...", "A", r"must have parse\(self, text\)"),
        (
            "class A(vf.ToolEnv):\n    def f(self): self.add_tool(print, args_to_skip=['x'])",
            "ToolEnv.add_tool(args_to_skip=...)",
            "no argument",
        ),
        ("env = vf.ToolEnv()\nenv.add_tool(print, args_to_skip=['x'])", "ToolEnv.add_tool(args_to_skip=...)", "no argument"),
        ("class A(vf.ToolEnv): ...\nenv = A()\nenv.vanished()", "word_count.A.vanished", "no such method"),
        ("class A(vf.SandboxEnv):\n    async def f(self): await self.vanished('x')", "SandboxEnv.vanished", "no such method"),
        (
            "from verifiers.envs.experimental.sandbox_mixin import SandboxMixin\n"
            "class A(SandboxMixin, vf.ToolEnv):\n    async def f(self): await self.upload_all('x')",
            "envs.experimental.sandbox_mixin.SandboxMixin.upload_all",
            "no such method",
        ),
        (
            "class B(vf.XMLParser):\n    def __init__(self, colour): super().__init__(['a'], shade=1)\nclass A(B):\n"
            "    def __init__(self): super().__init__(colour=1)",
            "XMLParser(shade=...)",
            "no argument 'shade'",
        ),
    ],
)
def test_what_a_hierarchy_asks_for_is_held_against_what_is_here(check: Callable[..., Report], code: str, name: str, reason: str) -> None:
    report = check(f"import verifiers as vf\n{code}\n")
    [(found, told)] = names_of(report).items()
    assert found == name
    assert re.search(reason, told)
    assert not report.is_complete


def test_the_line_of_a_hook_that_does_not_fit_is_named(check: Callable[..., Report]) -> None:
    """The class that refines its class is not blamed once more."""
    code = "class A(vf.MultiTurnEnv):\n    x = 1\n    def is_completed(self, messages, state): ...\nclass B(A): ...\n"
    report = check(f"import verifiers as vf\n{code}")
    assert [each.places for each in report.absent] == [["word_count.py:4"]]


def test_classes_whose_bases_nobody_knows_are_left_alone(check: Callable[..., Report]) -> None:
    code = (
        "import left_pad\nclass A(left_pad.Base, vf.ToolEnv):\n    def __init__(self): super().__init__(a=1)\n"
        "    def f(self): self.whatever(); super().whatever()\nclass B(A):\n    def f(self): self.whatever()\n"
    )
    assert names_of(check(f"import verifiers as vf\n{code}", ["left-pad"])) == {}


def test_images_are_held_against_what_this_machine_can_run(check: Callable[..., Report]) -> None:
    report = check(
        "import verifiers as vf\nfrom verifiers.v1 import SandboxConfig\nIMAGE = 'owner/image:1'\n"
        "def make(docker_image='python:3.11-slim'):\n    vf.SandboxEnv(docker_image=IMAGE)\n"
        "SandboxConfig(image='other/image:2')\nsandbox = {'image': 'third/image', 'cpu_cores': 2}\npart = {'image': 'data:image/png'}\n"
    )
    found = {each.name: (each.places, each.problem) for each in report.images}
    assert found.keys() == {"owner/image:1", "python:3.11-slim", "other/image:2", "third/image"}
    assert found["owner/image:1"][0] == ["word_count.py:5"]
    assert report.is_complete is all(problem is None for _, problem in found.values())
    from verifiers_compat.envs.sandbox_arguments import spec_of_arguments
    from vfgym.sandboxes import SandboxSpec

    with pytest.raises(ConfigurationError) as refused:
        spec_of_arguments(SandboxSpec(), None, docker_image="owner/image:1")
    assert found["owner/image:1"][1] == str(refused.value)


def test_differences_are_those_of_what_is_used(check: Callable[..., Report]) -> None:
    assert check("import verifiers as vf\nvf.Parser").differences == []
    game = check("import verifiers as vf\nclass Game(vf.GymEnv): ...").differences
    assert game
    assert all("GymEnv" in each.uses for each in game)
    tools = check("import verifiers as vf\nvf.StatefulToolEnv(stop_errors=[vf.ToolError])").differences
    assert {word for each in tools for word in each.uses} >= {"ToolEnv", "StatefulToolEnv", "stop_errors"}
    own = check("import verifiers as vf\nclass Mine(vf.Environment):\n    async def rollout(self, *args): ...").differences
    assert [each.uses for each in own] == [["rollout"]]


def test_the_tables_name_what_is_there() -> None:
    """What differences are keyed by is in the API, and the extras exist."""
    import verifiers_compat as vf
    from verifiers_compat import v1
    from verifiers_compat.v1.utils import judge_utils

    methods = {name for cls in (vf.Environment, vf.StatefulToolEnv) for name in dir(cls)}
    keywords = {"stop_errors", "max_concurrent", "max_retries", "state_columns", "program", "transcript", "sandbox", "toolsets"}
    known = {*vf.__all__, *v1.__all__, *dir(judge_utils), *methods, *keywords}
    assert {word for row in read_differences() for word in row.uses} <= known
    for extra in read_distributions().extras.values():
        assert list(extra_requirements([extra]))


# Other libraries, variables, data sets


def test_what_verifiers_brings_is_added_and_the_rest_is_named(check: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verifiers_compat.cli.packages.needs.is_installed", lambda module: module in ("numpy", "helpers"))
    report = check(
        "import os, json, numpy.linalg, helpers\nimport agents, yaml, left_pad\nimport sibling\nimport verifiers\n"
        "def f():\n    from tenacity import retry\n",
        ["verifiers", "PyYAML", "no-such-distribution"],
        **{"sibling.py": "import json\n"},
    )
    found = {each.module: (each.status, each.requirement) for each in report.imports}
    assert found == {
        "agents": ("added", "openai-agents>=0.0.7"),
        "helpers": ("installed", None),
        "left_pad": ("unsure", None),  # what no-such-distribution brings, nobody knows here
        "numpy": ("installed", "numpy"),
        "tenacity": ("added", "tenacity>=8.5"),
        "yaml": ("required", "pyyaml"),
    }
    assert report.is_complete
    report = check("import left_pad", ["verifiers"])
    assert [each.status for each in report.imports] == ["missing"]
    assert not report.is_complete


def test_a_directory_is_not_a_library(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where it is on the path, as the current directory may be."""
    Path("agents").mkdir()
    monkeypatch.syspath_prepend(str(workspace))
    assert not is_installed("agents")
    assert not is_installed("no_such_module")
    assert is_installed("numpy")


def test_extras_stand_for_what_the_names_need(check: Callable[..., Report]) -> None:
    report = check(
        "import verifiers as vf\nclass Mine(vf.MathRubric): ...\nfrom verifiers.envs.integrations.textarena_env import TextArenaEnv",
        ["verifiers[ta,browser]"],
    )
    assert report.extras == ["math", "textarena"]
    assert report.unknown_extras == ["browser"]


def test_variables_and_data_sets_are_named(check: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_URL", "http://localhost")
    monkeypatch.delenv("MY_API_KEY", raising=False)
    report = check(
        "import os\nimport verifiers as vf\nfrom datasets import load_dataset as load\n"
        "def make(key='MY_API_KEY', data='org/questions'):\n"
        "    vf.ensure_keys([key, 'SECOND'])\n    os.getenv('OTHER_URL')\n    os.environ['THIRD']\n"
        "    load(data)\n    load('json', data_files='x')\n    load(path=os.name)\n    vf.load_example_dataset()\n"
    )
    assert {each.name: each.is_set for each in report.variables} == {
        "MY_API_KEY": False,
        "SECOND": False,
        "OTHER_URL": True,
        "THIRD": False,
    }
    assert [each.name for each in report.datasets] == ["org/questions", "", "gsm8k"]
    assert report.datasets[0].places == ["word_count.py:8"]


# Packages


def test_only_what_the_environment_imports_is_read(write: Callable[..., Path]) -> None:
    """Its own module, whatever form it has, and what that imports; tests and scripts are not."""
    folder = write(
        "two-files",
        {
            "two_files/__init__.py": "from .env import load_environment",
            "two_files/env.py": f"from two_files import parts\nfrom .deep.more import x\n{LOADER}",
            "two_files/parts.py": "import verifiers as vf\nvf.Rubric",
            "two_files/deep/__init__.py": "",
            "two_files/deep/more.py": "from .. import parts\nimport verifiers as vf\nvf.Parser",
            "two_files/unused.py": "import verifiers as vf\nvf.BrowserEnv",
            "tests/test_it.py": "import pytest, no_such",
        },
    )
    with open_target(str(folder), Path("environments")) as target:
        report = check_target(target)
    assert report.is_complete
    assert report.offered == ["verifiers.Parser", "verifiers.Rubric"]
    assert report.imports == []


@pytest.mark.parametrize("path", ["src/under_src/__init__.py", "src/under_src.py", "other_name.py"])
def test_the_module_is_found_where_it_may_be(write: Callable[..., Path], path: str) -> None:
    write("under-src", {path: "import verifiers as vf\nvf.Rubric" + LOADER})
    with open_target("under-src", Path("environments")) as target:
        report = check_target(target)
    assert report.is_complete
    assert report.offered == ["verifiers.Rubric"]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "no module 'none_here', and none with a function load_environment, is in the package"),
        ({"none_here.py": "x = 1"}, "none_here.py has no function load_environment"),
    ],
)
def test_a_package_without_an_environment_is_incomplete(write: Callable[..., Path], files: dict[str, str], problem: str) -> None:
    write("none-here", files)
    with open_target("none-here", Path("environments")) as target:
        report = check_target(target)
    assert report.problems == [problem]
    assert not report.is_complete


def test_modules_that_are_not_python_are_an_error(check: Callable[..., Report]) -> None:
    with pytest.raises(ConfigurationError, match=r"word_count.py is not Python that can be read here: .*line 1"):
        check("print 'x'")
    check("'\\d'")  # a warning of Python's, which is for its author


@pytest.mark.parametrize("form", ["folder", "wheel", "sdist"])
def test_a_package_is_read_in_each_form(write: Callable[..., Path], workspace: Path, form: str) -> None:
    folder = write("word-count", {"word_count.py": "import verifiers as vf\nvf.BrowserEnv" + LOADER})
    given = str(folder)
    if form == "wheel":
        given = "word_count-0.1.0-py3-none-any.whl"
        with zipfile.ZipFile(given, "w") as archive:
            archive.write(folder / "word_count.py", "word_count.py")
            archive.writestr(
                "word_count-0.1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: word-count\nRequires-Dist: verifiers[ta]\n"
            )
    elif form == "sdist":
        given = "word_count-0.1.0.tar.gz"
        with tarfile.open(given, "w:gz") as archive:
            archive.add(folder, "word_count-0.1.0")
    with open_target(given, Path("environments")) as target:
        report = check_target(target)
    assert report.package == "word-count"
    assert list(names_of(report)) == ["BrowserEnv"]
    assert report.absent[0].places == ["word_count.py:2"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no.tar.gz", "there is no sdist no.tar.gz"),
        ("bad.tar.gz", "cannot be read as an sdist"),
        ("bad.whl", "cannot be read as a wheel"),
        ("two.tar.gz", "must hold one directory, and holds 2 entries"),
        ("./nowhere/at/all", "there is no directory ./nowhere/at/all"),
        ("./empty", "is not a project: it has no pyproject.toml"),
        ("owner/word-count", "hosted hub"),
    ],
)
def test_what_is_not_a_package_is_refused(workspace: Path, name: str, problem: str) -> None:
    Path("bad.tar.gz").write_text("x")
    Path("bad.whl").write_text("x")
    Path("empty").mkdir()
    with tarfile.open("two.tar.gz", "w:gz") as archive:
        archive.add("bad.whl")
        archive.add("bad.tar.gz")
    with pytest.raises(ConfigurationError, match=problem), open_target(name, Path("environments")) as target:
        check_target(target)


# The command


def run_install(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def test_the_report_for_people(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """It fits 80 columns, and the exit code says whether anything is missing. Nothing of the package runs."""
    code = "import verifiers as vf\nimport library_of_mine\nfrom datasets import load_dataset\n1 / 0\nclass Game(vf.GymEnv):\n    pass\n"
    write("word-count", {"word_count.py": code + "vf.ensure_keys(['MY_VARIABLE'])\nload_dataset('org/data')\nvf.BrowserEnv" + LOADER})
    assert run_install("--check", "word-count") == 1
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    words = " ".join(out.split())
    for expected in (
        "verifiers, here GymEnv, ensure_keys",
        "BrowserEnv (word_count.py:9): it drives browsers of a hosted service",
        "word_count.Game refines GymEnv",
        "Here: a model call is a move.",
        "library_of_mine (word_count.py:2): not installed, and the package does not require it. Run: pip install library_of_mine",
        "MY_VARIABLE: not set (word_count.py:7)",
        "org/data (word_count.py:8)",
        "Something that it uses is missing",
    ):
        assert expected in words
    write("word-count", {"word_count.py": "import left_pad" + LOADER}, ["no-such-distribution"])
    assert run_install("--check", "word-count") == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "as far as can be said before what it requires is installed" in " ".join(out.split())
    write("word-count", {"word_count.py": "import verifiers as vf\nvf.Rubric" + LOADER})
    assert run_install("--check", "word-count") == 0
    assert capsys.readouterr().out.endswith("Everything that it uses is here, or comes with it.\n")


def test_the_report_as_json(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    write("word-count", {"word_count.py": "import verifiers as vf\nvf.BrowserEnv" + LOADER})
    assert run_install("--check", "--json", "word-count") == 1
    out = capsys.readouterr().out
    report = Report.model_validate_json(out)
    assert list(names_of(report)) == ["BrowserEnv"]
    assert json.loads(out)["is_complete"] is False
    assert run_install("--json", "word-count") == 2
    assert "give --check" in capsys.readouterr().err
    assert run_install("--check", "--json", "no-such-env") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "no environment 'no-such-env' in environments" in err


def test_a_module_of_ones_own_is_not_mistaken_for_an_offer() -> None:
    """What a name of verifiers is here is the object itself."""
    import verifiers_compat

    assert find_offer("verifiers.v1.Taskset") is verifiers_compat.Taskset  # type: ignore[attr-defined]
