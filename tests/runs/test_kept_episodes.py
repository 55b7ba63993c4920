"""States of vectors and of `rollout`: a run that is killed goes on as if nothing had been, and what can't be kept is named.

Each run kills one program of each face, of a family drawn by the seed; ``pytest -m exhaustive`` kills one of each family.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple

import vfgym
from tests.runs.stopped_runs import FAMILIES, QUESTIONS, Learner, begin_vector, make_rollout, make_vector, step_vector, view
from tests.sampling import SEED
from vfgym.errors import ConfigurationError, EpisodeBusy, EpisodeNotPicklable, ResetNeeded
from vfgym.messages import Message
from vfgym.runs.kept_episodes import load_definitions, set_space_numbers, space_numbers
from vfgym.vector import ChatVectorEnv

QUICK = ["single turn", "tools", "game", "wrapped game"]
"""Families that take little time to import."""
KILLED = [
    pytest.param(kind, family, marks=() if random.Random(SEED + number).choice(QUICK) == family else pytest.mark.exhaustive)
    for number, kind in enumerate(["vector", "rollout"])
    for family in FAMILIES
]


def kill_at_random(kind: str, family: str, path: Path) -> dict[str, Any]:
    """Kill a program after it has saved a state, and return what it saved last."""
    command = [sys.executable, "-c", f"from tests.runs import stopped_runs; stopped_runs.main({kind!r}, {family!r}, {str(path)!r})"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        for _ in range(random.Random(f"{SEED} {kind} {family}").randrange(1, 9)):
            assert program.stdout.readline() == "saved\n"
        program.send_signal(signal.SIGKILL)
    return json.loads(path.read_text())  # type: ignore[no-any-return]


async def take(number: int, family: str, state: dict[str, Any] | None = None, **arguments: Any) -> list[Any]:
    groups = make_rollout(family, Learner(), **arguments)
    if state is not None:
        await groups.load_state_dict(state)
    async with contextlib.aclosing(groups):
        return [view(await anext(groups)) for _ in range(number)]


@pytest.mark.parametrize(("kind", "family"), KILLED)
def test_what_was_killed_goes_on_as_if_nothing_had_been(kind: str, family: str, tmp_path: Path) -> None:
    saved = kill_at_random(kind, family, tmp_path / "state.json")
    before = len(saved["played"])
    if kind == "vector":
        unbroken, resumed = make_vector(family), make_vector(family)
        begin_vector(unbroken)
        expected = [step_vector(unbroken) for _ in range(before + 12)]
        resumed.load_state_dict(saved["state"])
        played = saved["played"] + [step_vector(resumed) for _ in range(12)]
        unbroken.close()
        resumed.close()
    else:
        expected = sorted(asyncio.run(take(before + 12, family)))
        played = sorted(saved["played"] + asyncio.run(take(12, family, saved["state"])))
        indices = {group[0] for group in expected} & {group[0] for group in played}  # answers decide which of the last ones come first
        assert len({group[0] for group in played}) == len(played)
        assert len(indices) >= before + 6
        expected, played = ([group for group in groups if group[0] in indices] for groups in (expected, played))
    assert json.loads(json.dumps(played)) == json.loads(json.dumps(expected))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("arguments", [{"autoreset_mode": "NextStep"}, {"group_size": 3}], ids=["next step", "groups"])
def test_a_vector_goes_on_alike_after_any_step(family: str, arguments: dict[str, Any]) -> None:
    unbroken, resumed = (make_vector(family, **arguments) for _ in range(2))
    begin_vector(unbroken)
    for _ in range(6):
        resumed.load_state_dict(pickle.loads(pickle.dumps(unbroken.state_dict())))
        assert step_vector(resumed) == step_vector(unbroken)
    unbroken.close()
    resumed.close()


def test_a_vector_that_has_not_begun_or_is_over_is_kept_so() -> None:
    envs, other = (make_vector("single turn", autoreset_mode="Disabled") for _ in range(2))
    other.reset(seed=1)
    other.load_state_dict(envs.state_dict())
    with pytest.raises(ResetNeeded, match="environment 0: no episode has begun"):
        other.step(["1"] * 3)
    envs.reset(seed=2)
    envs.step(["1"] * 3)
    other.load_state_dict(envs.state_dict())
    with pytest.raises(ResetNeeded, match="environment 0: its episode is over"):
        other.step(["1"] * 3)
    assert other.reset()[0] == envs.reset()[0], "the stream of tasks goes on"


def test_versions_of_the_policy_are_kept() -> None:
    """On-policy, each group has the version that it was played under, and a policy of another version is refused."""

    async def play(cut: int | None) -> list[Any]:
        learner, taken = Learner(), []
        groups = make_rollout("game", learner, max_staleness=0, max_concurrent=2)
        for _ in range(6):
            played = view(await anext(groups))
            taken.append([*played[:5], *played[6:]])  # how much was played too early, and again, is decided by time
            learner.policy_version += 1
            if len(taken) == cut:
                state = await groups.state_dict()
                await groups.aclose()
                groups = make_rollout("game", learner, max_staleness=0, max_concurrent=2)
                learner.policy_version -= 1
                with pytest.raises(ConfigurationError, match=r"expected a policy of policy_version 3, .* has 2: load the policy first"):
                    await groups.load_state_dict(state)
                learner.policy_version += 1
                await groups.load_state_dict(state)
        await groups.aclose()
        return taken

    assert asyncio.run(play(3)) == asyncio.run(play(None))


def test_episodes_under_way_go_on_from_their_turn() -> None:
    """What was asked before is not asked again, and what was played is not played again, nor scored."""
    asked: list[str] = []
    scored: list[float] = []

    def score(completion: list[Message]) -> float:
        scored.append(float(len(completion)))
        return scored[-1]

    class Count(vfgym.MultiTurnEnv):
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> list[Message]:
            return [vfgym.UserMessage(f"turn {len(state['trajectory'])}")]

    env = Count(dataset=[{"question": f"question {number}"} for number in range(3)], rubric=vfgym.Rubric(score), max_turns=4)

    async def answer(observation: list[Message], info: Any) -> str:
        asked.append(f"{observation[0].content}: {observation[-1].content}")
        await asyncio.sleep(0)
        return "yes"

    async def play() -> tuple[list[list[float | None]], dict[str, Any]]:
        def begin() -> Any:
            return vfgym.rollout(env, answer, example_ids=[0, 1, 2], max_concurrent=2)

        groups = begin()
        first = await anext(groups)
        state = json.loads(json.dumps(await groups.state_dict()))
        until_then = len(asked), len(scored)
        await groups.aclose()
        del asked[until_then[0] :], scored[until_then[1] :]
        again = begin()
        await again.load_state_dict(state)
        rest = [await anext(again)]
        with pytest.raises(ConfigurationError, match="before the first group is taken"):
            await again.load_state_dict(state)
        return [first.rewards] + [group.rewards for group in [*rest, *[group async for group in again]]], state

    rewards, state = asyncio.run(play())
    assert rewards == [[7.0]] * 3
    assert len(asked) == len(set(asked)) == 12
    assert len(scored) == 3
    assert {len(group["rollouts"]) for group in state["groups"]} == {1}


def test_a_group_is_delivered_once_and_no_state_is_given_of_a_run_that_is_over() -> None:
    async def play() -> None:
        groups = vfgym.rollout(FAMILIES["single turn"](), Learner(), example_ids=[1, 2])
        state = await groups.state_dict()
        assert sorted([group.example_id async for group in groups]) == [1, 2]
        with pytest.raises(ConfigurationError, match="this run is over"):
            await groups.state_dict()
        again = vfgym.rollout(FAMILIES["single turn"](), Learner(), example_ids=[1, 2])
        await again.load_state_dict(state)
        assert sorted([group.example_id async for group in again]) == [1, 2]

    asyncio.run(play())


def other_questions() -> vfgym.SingleTurnEnv:
    return vfgym.SingleTurnEnv(QUESTIONS[:3], rubric=vfgym.Rubric(lambda answer: 1.0))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: make_vector("single turn", num_envs=2), "expected num_envs 2, got 3"),
        (lambda: make_vector("single turn", group_size=3), "expected group_size 3, got 1"),
        (lambda: make_vector("single turn", autoreset_mode="Disabled"), "expected autoreset_mode Disabled, got SameStep"),
        (lambda: make_vector("tools"), r"expected environment vfgym\S*ToolEnv, got vfgym\S*SingleTurnEnv"),
        (lambda: ChatVectorEnv(other_questions(), 3), "with the arguments of this one, got .* made with other arguments"),
        (lambda: ChatVectorEnv(gym.wrappers.TimeLimit(FAMILIES["single turn"](), 9), 3), r"expected wrappers \['TimeLimit'\], got \[\]"),
    ],
)
def test_a_state_of_something_else_is_refused(make: Callable[[], ChatVectorEnv], expected: str) -> None:
    envs, other = make_vector("single turn"), make()
    begin_vector(envs)
    other.reset(seed=9)
    before = other.state_dict()
    with pytest.raises(ConfigurationError, match=expected) as caught:
        other.load_state_dict(envs.state_dict())
    assert "\n" not in str(caught.value)
    assert other.state_dict()["episodes"][0]["turns"] == before["episodes"][0]["turns"]
    assert other.call("np_random_seed") == tuple(range(9, 9 + other.num_envs)) or other.group_size > 1


def test_other_versions_and_damaged_states_are_refused_and_change_nothing() -> None:
    envs, other = make_vector("game"), make_vector("game")
    begin_vector(envs)
    begin_vector(other)
    state = envs.state_dict()
    step_vector(envs)
    broken = [*state["episodes"][:2], {**state["episodes"][2], "data": "not base64!"}]
    for damaged, expected in [
        ({**state, "of": {**state["of"], "version": "0.0.1"}}, f"expected version {vfgym.__version__}, got 0.0.1"),
        ({**state, "episodes": broken}, "cannot be read"),
        ({name: state[name] for name in ("of", "random")}, "it has no 'episodes'"),
        ([], r"expected what state_dict\(\) of a ChatVectorEnv returned, got list"),
        ({"of": {"kind": "vfgym.rollout"}}, "got 'vfgym.rollout'"),
    ]:
        with pytest.raises(ConfigurationError, match=expected):
            other.load_state_dict(damaged)
    step_vector(other)
    assert step_vector(other) == step_vector(envs)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"group_size": 3}, "expected group_size 3, got 2"),
        ({"seed": 5}, "expected seed 5, got 4"),
        ({"split": "eval"}, "expected split eval, got train"),
        ({"example_ids": [1]}, r"expected example_ids \[1\], got None"),
        ({"on_update": "drop"}, "expected on_update drop, got continue"),
        ({"max_staleness": 2}, "expected max_staleness 2, got None"),
        ({"replace": 0}, "expected replace 0, got 2"),
        ({"max_concurrent": 63}, "expected max_concurrent 63, got"),
    ],
)
def test_a_run_with_other_arguments_refuses_a_state(changed: dict[str, Any], expected: str) -> None:
    async def play() -> None:
        state = await make_rollout("single turn", Learner()).state_dict()
        with pytest.raises(ConfigurationError, match=expected):
            await make_rollout("single turn", Learner(), **changed).load_state_dict(state)

    asyncio.run(play())


class Holds(vfgym.MultiTurnEnv):
    """Keeps in each episode what `make` makes."""

    make: Callable[[], Any] = staticmethod(object)

    async def setup_state(self, state: vfgym.State) -> vfgym.State:
        state["mine"] = type(self).make()
        return state

    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> list[Message]:
        return [vfgym.UserMessage("go on")]


class HoldsLock(Holds):
    make = threading.Lock


class HoldsClosure(Holds):
    make = staticmethod(lambda: lambda: 1)


class OwnRollout(Holds):
    async def rollout(self, *args: Any, **kwargs: Any) -> vfgym.State:
        return await super().rollout(*args, **kwargs)


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (HoldsLock, r"environment 0 cannot be kept: .*state\['mine'\] is a lock"),
        (HoldsClosure, r"environment 0 cannot be kept: .*state\['mine'\] is a function"),
        (OwnRollout, "an episode of OwnRollout can neither be copied .* nor, .*, played again from its seed"),
    ],
)
def test_what_can_not_be_kept_is_named(cls: type[Holds], expected: str) -> None:
    envs = ChatVectorEnv(cls(dataset=QUESTIONS), 2)
    envs.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable, match=expected):
        envs.state_dict()
    envs.close()


class Learns:
    """Has learned something, and refuses to learn what is too much."""

    def __init__(self, *known: Any) -> None:
        self.known: list[Any] = [*known]

    def state_dict(self) -> Any:
        return self.known

    def load_state_dict(self, state: Any) -> None:
        self.known[:] = state
        if "too much" in state:
            raise KeyboardInterrupt


def test_what_environments_had_learned_is_loaded_by_all_or_by_none() -> None:
    envs: list[Any] = [Learns(1), Learns(2)]
    for states, got in (({}, r"\{\}"), ([[1]], r"\[\[1\]\]"), ([[1]] * 3, ""), (None, "None")):
        with pytest.raises(ConfigurationError, match=f"this state does not fit: expected 2 environments, got {got}"):
            load_definitions(envs, states)
    with pytest.raises(KeyboardInterrupt):
        load_definitions(envs, [[3], ["too much"]])
    assert [env.known for env in envs] == [[1], [2]]
    load_definitions(envs, [[3], []])
    assert [env.known for env in envs] == [[3], []]


def test_random_numbers_of_a_space_and_of_those_in_it_go_on() -> None:
    def make() -> gym.Space[Any]:
        return Dict({"a": Tuple((Discrete(1000), Dict({"b": Box(0, 1)}))), "c": Discrete(1000)})

    space, other, untouched = make(), make(), make()
    assert space_numbers(untouched) == [None] * 6
    space.seed(5)
    space.sample()
    set_space_numbers(other, copy.deepcopy(space_numbers(space)))
    assert str(other.sample()) == str(space.sample())
    set_space_numbers(other, [None] * 6)
    assert space_numbers(other) == [None] * 6


def test_an_agent_whose_episodes_are_closures_is_named() -> None:
    class Closed:
        def for_episode(self, env: Any) -> Any:
            async def answer(observation: Any, info: Any) -> str:
                await asyncio.sleep(0)
                return "go"

            return answer

    async def play() -> None:
        groups = vfgym.rollout(Holds(dataset=QUESTIONS, max_turns=50), Closed(), max_concurrent=2, example_ids=[0, 1, 2, 3])
        taking = asyncio.ensure_future(anext(groups))
        for _ in range(20):
            await asyncio.sleep(0)
        with pytest.raises(EpisodeNotPicklable, match=r"rollout 0 of group \d cannot be kept: .*who answers.* is a (closure|function)"):
            await groups.state_dict()
        assert len((await taking).states) == 1, "the run goes on"
        await groups.aclose()

    asyncio.run(play())


def test_a_vector_in_the_middle_of_a_step_says_so() -> None:
    envs = make_vector("single turn")
    begin_vector(envs)
    envs.send(["1"], ids=[1])
    with pytest.raises(EpisodeBusy, match=r"environment 1 was sent an action that was not received yet: recv\(\)"):
        envs.state_dict()
    envs.recv()
    envs.state_dict()
