"""Agents by their names: those of the library, and functions of modules."""

from __future__ import annotations

import functools
import math
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vfgym.agents.human import HumanAgent
from vfgym.agents.loading import agent_name, as_agent, import_object, load_agent, name_of_module
from vfgym.agents.oracle import OracleAgent
from vfgym.agents.random import RandomAgent
from vfgym.errors import ConfigurationError
from vfgym.messages import Message


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Return a function that writes a module into the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [entry for entry in sys.path if entry])

    def write(name: str, code: str) -> str:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        return name

    return write


class Greeter:
    def __call__(self, observation: list[Message]) -> str:
        return "hello"


@pytest.mark.parametrize(("name", "kind"), [("random", RandomAgent), ("oracle", OracleAgent), ("human", HumanAgent)])
def test_named_agents(name: str, kind: type) -> None:
    agent = load_agent(name)
    assert isinstance(agent, kind)
    assert agent_name(agent) == name


def test_load_agent_imports_from_the_current_directory(module: Callable[[str, str], str]) -> None:
    name = module(
        "agents_of_mine",
        """
        def answer(observation, info): return "from a function"
        class Agent:
            def __call__(self, observation, info): return "from an object"
        """,
    )
    function: Any = load_agent(f"{name}:answer")
    instance: Any = load_agent(f"{name}:Agent")
    assert (function([], {}), instance([], {})) == ("from a function", "from an object")


def test_load_agent_imports_a_file_by_its_path(module: Callable[[str, str], str], tmp_path: Path) -> None:
    """Its directory joins Python's path, so that it finds what lies beside it."""
    (tmp_path / "deep").mkdir()
    module("deep/beside_agents_in_files", "WORD = 'beside'")
    module("deep/agents_in_files", "from beside_agents_in_files import WORD\ndef answer(observation, info): return WORD")
    agent: Any = load_agent("deep/agents_in_files.py:answer")
    assert agent([], {}) == "beside"
    assert name_of_module("deep/agents_in_files.py:answer", "agent") == "agents_in_files:answer"
    assert name_of_module("agents.py.mine:answer", "agent") == "agents.py.mine:answer"
    module("agents_in_files", "def answer(observation, info): return 'another'")
    with pytest.raises(ConfigurationError, match=r"another module is called 'agents_in_files' already, so give agents_in_files\.py"):
        load_agent("agents_in_files.py:answer")
    with pytest.raises(ConfigurationError, match=r"agent 'deep/none\.py:answer': there is no file deep/none\.py"):
        load_agent("deep/none.py:answer")
    with pytest.raises(ConfigurationError, match=r"it needs: there is no file none\.py"):
        name_of_module("none.py:answer", "it needs")


def test_an_attribute_of_an_attribute_is_found(module: Callable[[str, str], str]) -> None:
    name = module("nested_agents", "class Holder:\n    class Inner:\n        word = 'found'\n    count = 0")
    assert (import_object(f"{name}:Holder.Inner.word", "it"), import_object(f"{name}:Holder.count", "it")) == ("found", 0)
    with pytest.raises(ConfigurationError, match=r"it: Inner has no 'wort'\. Did you mean `word`\?"):
        import_object(f"{name}:Holder.Inner.wort", "it")
    with pytest.raises(ConfigurationError, match=r"it: there is no module 'nested_agents\.more'"):
        import_object(f"{name}.more:agent", "it")


def test_a_class_that_does_not_tell_what_it_takes_is_tried(module: Callable[[str, str], str]) -> None:
    name = module(
        "silent_agents",
        """
        class Silent:
            __signature__ = "none"
            def __call__(self, observation, info): return "made"
        """,
    )
    agent: Any = load_agent(f"{name}:Silent")
    assert agent([], {}) == "made"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("randm", "no agent 'randm': give one of random, oracle, human, or module:callable. Did you mean `random`?"),
        ("nowhere_at_all:agent", "there is no module 'nowhere_at_all'"),
        ("string:capwordz", "string has no 'capwordz'. Did you mean `capwords`?"),
        ("string:digits", "it is text: '0123456789'"),
        ("math:pi", "got float"),
        ("vfgym.agents:ScriptedAgent", "cannot be made without arguments (missing a required argument: 'answers')"),
        (":agent", "'' is not a name of a module"),
        ("a b:agent", "'a b' is not a name of a module"),
    ],
)
def test_load_agent_says_what_is_wrong(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        load_agent(name)


def test_load_agent_lets_a_module_fail_with_its_own_error(module: Callable[[str, str], str]) -> None:
    name = module("agents_that_miss_something", "import a_package_that_is_not_there")
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        load_agent(f"{name}:agent")


def test_as_agent_takes_functions_and_agents_and_refuses_others() -> None:
    def answer(observation: list[Message], info: dict[str, Any]) -> str:
        return "x"

    agent = RandomAgent()
    assert as_agent(answer) is answer
    assert as_agent(agent) is agent
    assert isinstance(as_agent("random"), RandomAgent)
    with pytest.raises(ConfigurationError, match="got int"):
        as_agent(7)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"make one, RandomAgent\(\)"):
        as_agent(RandomAgent)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (lambda observation: "x", "<lambda> takes (observation)"),
        (lambda observation, info, more: "x", "missing a required argument: 'more'"),
        (math.sqrt, "sqrt takes (x, /)"),
        (Greeter(), "Greeter takes (observation: 'list[Message]')"),
    ],
)
def test_as_agent_refuses_what_cannot_be_called_with_observation_and_info(agent: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        as_agent(agent)


def test_as_agent_takes_what_can_be_called_with_observation_and_info() -> None:
    def remembers(memory: list[Any], observation: list[Message], info: dict[str, Any], more: int = 0) -> str:
        return "x"

    for agent in (functools.partial(remembers, []), lambda *args: "x", max):  # max tells nothing of what it takes
        assert as_agent(agent) is agent


def test_agents_are_called_by_their_names() -> None:
    def my_agent(observation: list[Message], info: dict[str, Any]) -> str:
        return "x"

    assert [agent_name(agent) for agent in (my_agent, RandomAgent(), "module:agent")] == ["my_agent", "random", "module:agent"]
