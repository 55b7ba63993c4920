"""`IsolatedAgent`: it answers as the agent itself would, from another process, and never longer than its rollout may take."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.environments import Talk
from tests.workers.processes import end_of
from vfgym import Rubric, SingleTurnEnv
from vfgym.agents.isolated import IsolatedAgent
from vfgym.errors import ConfigurationError, WorkerTimeout

AGENTS = '''
import asyncio, os
from vfgym import AssistantMessage, RandomAgent

def note_pid():
    with open("pids", "a") as file:
        print(os.getpid(), file=file)

def answer(observation, info):
    """Never returns for odd examples."""
    note_pid()
    while info["example_id"] % 2:
        pass
    return observation[-1].content

async def later(observation, info):
    await asyncio.sleep(0)
    return AssistantMessage(observation[-1].content)

class Counts:
    """Counts its answers in an episode."""
    def for_episode(self, env):
        self.number = 0
        def answer(observation, info):
            self.number += 1
            return f"{self.number} of {os.getpid()}"
        return answer

class Draws:
    def for_episode(self, env):
        return lambda observation, info: str(int(env.np_random.integers(10**6)))

rand = RandomAgent()

def fails(observation, info):
    raise KeyError("a bug of mine")

def dies(observation, info):
    os._exit(3)
'''


def echoed(completion: Any, prompt: Any) -> float:
    return float([message.content for message in completion] == [prompt[-1].content])


def env(count: int = 4, **options: Any) -> SingleTurnEnv:
    return SingleTurnEnv([{"question": f"say {n}"} for n in range(count)], rubric=Rubric(echoed), timeout_seconds=60, **options)


def played(agent: Any, environment: Any, **options: Any) -> list[Any]:
    return list(vfgym.evaluate(environment, agent, progress=False, **options)["outputs"])


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Agents in a module of the current directory, whose name no other test has."""
    name = f"agents_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(AGENTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield name
    assert name not in sys.modules  # it was never loaded here


@pytest.mark.parametrize("name", ["later", "Draws", "rand"])
def test_it_answers_as_the_agent_does(module: str, name: str) -> None:
    rows = [played(IsolatedAgent(f"{module}:{name}"), env(), seed=seed) for seed in (1, 1, 2)]
    answers = [[row["completion"][-1]["content"] for row in each] for each in rows]
    assert answers[0] == answers[1]
    assert all(row["error"] is None for each in rows for row in each)
    assert (answers[0] == answers[2]) is (name == "later")


def test_an_episode_has_a_process_of_its_own_and_the_next_one_uses_it_again(module: str) -> None:
    environment = Talk(max_turns=3, timeout_seconds=60, dataset=[{"question": "?"}] * 6)
    rows = played(IsolatedAgent(f"{module}:Counts"), environment, max_concurrent=2)
    pids = set()
    for row in rows:
        said = [message["content"] for message in row["completion"] if message["role"] == "assistant"]
        assert ([text.split()[0] for text in said], len({text.split()[2] for text in said})) == (["1", "2", "3"], 1)
        pids.add(said[0].split()[2])
    assert len(pids) <= 2
    assert str(os.getpid()) not in pids


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up, on Linux")
def test_one_that_never_returns_ends_at_the_deadline_of_its_rollout(module: str) -> None:
    environment = env(8)
    environment.timeout_seconds = 5
    agent = IsolatedAgent(f"{module}:answer")
    rows = played(agent, environment)
    agent.close()
    for row in rows:
        is_stuck = row["example_id"] % 2 == 1
        assert row["stop_condition"] == ("timeout_reached" if is_stuck else "max_turns_reached")
        assert row["is_truncated"] is False
        assert row["reward"] == float(not is_stuck)
    asyncio.run(end_of([int(pid) for pid in Path("pids").read_text().split()]))


def test_in_a_loop_of_ones_own_an_answer_may_take_as_long_as_an_episode(module: str) -> None:
    agent, environment = IsolatedAgent(f"{module}:answer"), env()
    environment.timeout_seconds = 2
    for example_id in (0, 1, 0):
        observation, info = environment.reset(options={"example_id": example_id})
        answer = agent.for_episode(environment)
        if example_id:
            with pytest.raises(WorkerTimeout, match="answer took more than 3 wall_seconds"):
                answer(observation, info)
        else:
            assert answer(observation, info) == "say 0"


def test_without_a_deadline_an_answer_has_a_limit_of_time_all_the_same(module: str) -> None:
    environment = env(2)
    environment.timeout_seconds = None
    rows = played(IsolatedAgent(f"{module}:answer", answer_seconds=2), environment)
    assert [row["reward"] for row in rows] == [1.0, 0.0]
    assert "answer took more than 2 wall_seconds" in repr(rows[1]["error"])
    for seconds in (0, True, "1"):
        with pytest.raises(ConfigurationError, match="answer_seconds must be a number above 0"):
            IsolatedAgent(f"{module}:answer", answer_seconds=seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("random", "must be named as module:callable; got 'random', which has a name of its own"),
        ("nobody", "must be named as module:callable; got 'nobody'"),
        (len, "must be named as module:callable; got <built-in function len>"),
        ("no_such_module:agent", "there is no module 'no_such_module'"),
        ("{module}:agent", "has no 'agent'"),
        ("{module}:AGENTS", "has no 'AGENTS'"),
    ],
)
def test_what_cannot_be_loaded_is_refused_at_once(module: str, name: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        IsolatedAgent(name.replace("{module}", module) if isinstance(name, str) else name)
