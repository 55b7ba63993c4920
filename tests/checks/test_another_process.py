"""A seed gives the same episodes in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gymnasium.envs.registration import EnvSpec

import vfgym
from vfgym.bounded_json import parse_json
from vfgym.checks.another_process import _import_module, find_source, replays_elsewhere
from vfgym.checks.comparison import Broken
from vfgym.checks.environment import CheckedEnvironment


class Words(vfgym.MultiTurnEnv):
    """Says a word of the episode, which the order of a set decides where `order` is None."""

    def __init__(self, order: Any = sorted) -> None:
        super().__init__(dataset=[{"question": "?"}], max_turns=2)
        self.order = order

    def env_response(self, messages: Any, state: vfgym.State) -> Any:
        words = {f"word {number}" for number in range(1000)}
        return [vfgym.UserMessage(list(words if self.order is None else self.order(words))[int(state.rng.integers(1000))])]

    class Unordered(vfgym.MultiTurnEnv):
        def __init__(self) -> None:
            super().__init__(dataset=[{"question": "?"}], max_turns=2)

        def env_response(self, messages: Any, state: vfgym.State) -> Any:
            return [vfgym.UserMessage(next(iter({f"word {number}" for number in range(1000)})))]


def only_here() -> Words:
    if os.environ["THE_LICENSED_PROCESS"] != str(os.getpid()):
        raise OSError("this machine is not licensed")
    return Words()


def replay(env: Any) -> str:
    source = find_source(env)
    assert source is not None
    return replays_elsewhere(CheckedEnvironment(env), source)


@pytest.mark.parametrize("env", [Words, "gymnasium/FrozenLake-v1"])
def test_episodes_that_a_seed_decides_are_the_same_elsewhere(env: Any) -> None:
    assert replay(env) == "3 episodes"


def test_the_order_of_a_set_is_another_one_elsewhere() -> None:
    with pytest.raises(Broken, match=r"this process and one with another hash seed .* differ, first in turn 1 of episode 1: 'word"):
        replay(Words.Unordered)


def test_an_environment_that_cannot_be_made_elsewhere_is_reported_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_LICENSED_PROCESS", str(os.getpid()))
    with pytest.raises(Broken, match="another process could not play it: OSError: this machine is not licensed"):
        replay(only_here)


@pytest.mark.parametrize(("here", "there"), [("1", "2"), ("2", "1"), ("random", "1"), (None, "1")])
def test_another_process_has_another_hash_seed_and_what_it_says_last_is_told(
    here: str | None, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if here is None:
        monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    else:
        monkeypatch.setenv("PYTHONHASHSEED", here)
    monkeypatch.setenv("KEPT", "yes")
    ended = [subprocess.CompletedProcess([], 3, "", "a\nlast \n"), subprocess.CompletedProcess([], 3, "", "\n")]
    asked: list[Any] = []

    def run(command: list[str], **given: Any) -> Any:
        asked.append((given["env"]["PYTHONHASHSEED"], given["env"]["KEPT"], parse_json(given["input"])))
        return ended.pop(0)

    monkeypatch.setattr(subprocess, "run", run)
    for said in ("last", "it exited with 3"):
        with pytest.raises(Broken, match=f"^another process could not play it: {said}$"):
            replay(Words)
    assert asked == [(there, "yes", {"path": sys.path, "source": find_source(Words)})] * 2


def test_what_another_process_cannot_import_is_not_compared() -> None:
    def inner() -> Words:
        return Words()

    for env in (inner, lambda: Words(), EnvSpec("Local-v0", entry_point=Words), Words().fork):
        assert find_source(env) is None


def test_a_module_is_found_by_its_name_or_by_its_file(tmp_path: Path) -> None:
    by_file = tmp_path / "my_environment.py"
    by_file.write_text("def make(): return 7")
    for name in ("__main__", "nowhere.at_all", "json"):
        assert _import_module(name, str(by_file)).make() == 7
    assert _import_module("json", find_source(__import__("json").dumps)["file"]) is __import__("json")
