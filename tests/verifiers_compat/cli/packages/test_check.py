"""``vf-install --check``: the report on a package, put together without running any of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.verifiers_compat.cli.packages.reports import names_of
from verifiers_compat.cli.packages.check import Report, check_target, read_differences
from verifiers_compat.cli.packages.needs import read_distributions
from verifiers_compat.cli.packages.targets import open_target
from verifiers_compat.cli.requirements import extra_requirements


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
        *("XMLParser(nope=...)", "XMLParser(size=...)", "load_example_dataset(count=...)", "XMLParser(shade=...)")
    ]


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


def test_extras_stand_for_what_the_names_need(check: Callable[..., Report]) -> None:
    report = check(
        "import verifiers as vf\nclass Mine(vf.MathRubric): ...\nfrom verifiers.envs.integrations.textarena_env import TextArenaEnv",
        ["verifiers[ta,browser]"],
    )
    assert report.extras == ["math", "textarena"]
    assert report.unknown_extras == ["browser"]


DOCS = Path(__file__).parents[4] / "docs"


TABLE = re.compile(r"^\| verifiers 0\.1\.14 \| here \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)


def test_the_tables_of_the_pages_have_the_same_rows() -> None:
    """`data/differences.json` holds each row, with the names by which a package is known to meet it."""
    pages = [(DOCS / name).read_text() for name in ("coming_from_verifiers.md", "tasksets.md")]
    rows = [tuple(line.strip("| ").split(" | ")) for page in pages for table in TABLE.findall(page) for line in table.splitlines()]
    assert len(rows) > 20
    assert sorted(rows) == sorted((row.verifiers, row.here) for row in read_differences())


def test_a_name_that_is_needed_anywhere_is_not_optional_and_has_all_its_places(check: Callable[..., Report]) -> None:
    optional = "import verifiers as vf\ntry:\n    vf.gone\n    vf.gone; vf.lost\nexcept AttributeError: ...\n"
    report = check(optional)
    assert [(each.name, each.places, each.is_optional) for each in report.absent] == [
        ("verifiers.gone", ["word_count.py:3", "word_count.py:4"], True),
        ("verifiers.lost", ["word_count.py:4"], True),
    ]
    assert report.is_complete
    first = check(f"import verifiers as vf\nvf.lost\n{optional}")
    assert {each.name: each.is_optional for each in first.absent} == {"verifiers.lost": False, "verifiers.gone": True}
    report = check(f"{optional}vf.lost\n")
    assert [(each.name, each.places[-1], each.is_optional) for each in report.absent] == [
        ("verifiers.gone", "word_count.py:4", True),
        ("verifiers.lost", "word_count.py:6", False),
    ]
    assert not report.is_complete


def test_what_is_used_twice_is_listed_once_and_an_empty_variable_is_not_set(
    check: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY", "")
    report = check(
        "import os, verifiers as vf\nos.getenv('EMPTY'), os.getenv('EMPTY')\nos.environ['EMPTY']\nvf.load_example_dataset()\n"
        "vf.load_example_dataset('math'); vf.load_example_dataset('gsm8k')\nvf.Rubric; vf.Parser; vf.Rubric; vf.utils\n"
    )
    assert [each.model_dump() for each in report.variables] == [
        {"name": "EMPTY", "places": ["word_count.py:2", "word_count.py:3"], "is_set": False}
    ]
    assert [each.model_dump() for each in report.datasets] == [
        {"name": "gsm8k", "places": ["word_count.py:4", "word_count.py:5"]},
        {"name": "math", "places": ["word_count.py:5"]},
    ]
    assert report.offered == ["verifiers.Parser", "verifiers.Rubric", "verifiers.load_example_dataset"]


def test_private_methods_that_packages_rely_on_are_overridden_like_others(check: Callable[..., Report]) -> None:
    names = ("_get_reward_func_names", "_get_reward_funcs", "_get_reward_weights")
    methods = "".join(f"    def {name}(self): ...\n" for name in (*names, "__len__", "parse"))
    report = check(f"import verifiers as vf\nclass Mine(vf.Rubric):\n{methods}class Both(vf.Parser, vf.Rubric): ...\n")
    assert [(each.name, each.base, each.overrides) for each in report.subclasses] == [
        ("word_count.Mine", "verifiers.Rubric", sorted(names)),
        ("word_count.Both", "verifiers.Parser, verifiers.Rubric", []),
    ]
    assert report.absent == []


@pytest.mark.parametrize(
    ("files", "problems"),
    [
        ({}, ["no module 'a_b', and none with a function load_environment, is in the package"]),
        ({"a_b.py": "x = 1"}, ["a_b.py has no function load_environment"]),
        ({"a_b.py": "def load_environment(): ..."}, []),
    ],
)
def test_a_package_that_cannot_be_loaded_says_why(write: Callable[..., Path], files: dict[str, str], problems: list[str]) -> None:
    write("A-b", files)
    with open_target("A-b", Path("environments")) as target:
        report = check_target(target)
    assert (report.package, report.problems, report.is_complete) == ("A-b", problems, not problems)
