"""What the classes of a package ask of their bases, held against the classes that are here."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.verifiers_compat.cli.packages.reports import names_of
from verifiers_compat.cli.packages.check import Report


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
