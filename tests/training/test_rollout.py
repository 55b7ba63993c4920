"""`vfgym.rollout`: groups that begin alike, in the order in which they finish, for as long as they are taken."""

from __future__ import annotations

import asyncio
import copy
import itertools
from typing import Any

import numpy as np
import pytest

import vfgym
from vfgym.errors import ConfigurationError, Error, ModelError
from vfgym.messages import Message
from vfgym.testing import ScriptedClient
from vfgym.training import Group, samples

ROWS = [{"question": f"question {number}", "answer": str(number)} for number in range(5)]


def is_right(completion: list[Message], answer: str) -> float:
    return float(completion[-1].content == answer)


def quiz(**kwargs: Any) -> vfgym.SingleTurnEnv:
    return vfgym.SingleTurnEnv(**{"dataset": ROWS, "rubric": vfgym.Rubric(is_right), **kwargs})


async def take(number: int, *args: Any, **kwargs: Any) -> list[Group]:
    """Return the first groups, by their index."""
    groups = vfgym.rollout(*args, **kwargs)
    taken = [group async for _, group in azip(range(number), groups)]
    await groups.aclose()
    return sorted(taken, key=lambda group: group.index)


async def azip(numbers: range, groups: Any) -> Any:
    for number in numbers:
        try:
            yield number, await anext(groups)
        except StopAsyncIteration:
            return


def by_answers(*answers: str) -> Any:
    said = itertools.cycle(answers)
    return lambda observation, info: next(said)


# What a group is


async def test_the_rollouts_of_a_group_have_one_task_and_their_own_rewards() -> None:
    [group] = await take(9, quiz(), by_answers("3", "no", "3", "3"), example_ids=[3], group_size=4, max_concurrent=1)
    assert (group.index, group.example_id) == (0, 3)
    assert group.rewards == [1.0, 0.0, 1.0, 1.0]
    assert group.advantages == [0.25, -0.75, 0.25, 0.25]
    assert group.errors == [None] * 4
    assert {state["prompt"][-1]["content"] for state in group.states} == {"question 3"}
    assert [sample.advantage for sample in samples(group.states)] == group.advantages
    assert len({state["group"] for state in group.states}) == 1


async def test_the_examples_that_are_named_are_played_once_and_in_order() -> None:
    groups = await take(99, quiz(), "oracle", example_ids=[4, 0, 2])
    assert [(group.index, group.example_id) for group in groups] == [(0, 4), (1, 0), (2, 2)]
    assert len({group.states[0]["group"] for group in groups}) == 3


async def test_without_names_passes_without_repeats_go_on() -> None:
    groups = await take(12, quiz(), "random", max_concurrent=1)
    order = [group.example_id for group in groups]
    assert sorted(order[:5]) == sorted(order[5:10]) == list(range(5))
    assert [group.example_id for group in await take(12, quiz(), "random", max_concurrent=1)] == order
    assert [group.example_id for group in await take(12, quiz(), "random", max_concurrent=1, seed=1)] != order


async def test_the_same_seed_gives_the_same_groups_whatever_the_order_of_answers() -> None:
    async def slowly(observation: list[Message], info: dict[str, Any]) -> str:
        await asyncio.sleep(0.001 * (len(observation) % 3))
        return str(info["legal_actions"][len(observation) % len(info["legal_actions"])])

    def quickly(observation: list[Message], info: dict[str, Any]) -> str:
        return str(info["legal_actions"][len(observation) % len(info["legal_actions"])])

    played = []
    for agent, max_concurrent in ((slowly, 16), (quickly, 3)):
        groups = vfgym.rollout("textarena/TicTacToe-v0", agent, group_size=2, seed=5, max_concurrent=max_concurrent)
        kept = {}
        async for group in groups:
            kept[group.index] = [[message["content"] for message in state["completion"]] for state in group.states]
            if kept.keys() >= set(range(4)):
                break
        await groups.aclose()
        played.append([kept[index] for index in range(4)])
    assert played[0] == played[1]
    assert all(first == second for first, second in played[0])  # one seed, so the opponent answers the same moves alike
    assert len({str(group) for group in played[0]}) > 1


async def test_agents_have_random_numbers_of_their_own_in_each_rollout() -> None:
    [group] = await take(1, "gymnasium/CartPole-v1", "random", example_ids=[7], group_size=6)
    assert len({str(state["prompt"]) for state in group.states}) == 1
    assert len({str(state["completion"]) for state in group.states}) > 1


async def test_what_agents_spawn_is_what_follows_on_the_rollouts_before() -> None:
    """Rollout k has the (k + 1)th child of the generator that the episodes of its group begin with, which goes on alike in all."""
    children: list[np.random.Generator] = []
    drawn = []

    class Spawns:
        def for_episode(self, env: Any) -> Any:
            rng = env.unwrapped.np_random
            if not children:
                children.extend(copy.deepcopy(rng).spawn(4))
            drawn.append((rng.spawn(1)[0].random(), rng.random()))
            return lambda observation, info: "0"

    await take(1, quiz(), Spawns(), example_ids=[0], group_size=4, max_concurrent=1)
    assert drawn == [(child.random(), drawn[0][1]) for child in children]


def shortest(completions: list[Any]) -> list[float]:
    lengths = [len(completion[-1]["content"]) for completion in completions]
    return [float(length == min(lengths)) for length in lengths]


async def test_rubrics_of_groups_and_their_own_advantages_are_computed() -> None:
    [group] = await take(1, quiz(rubric=vfgym.Rubric(shortest)), by_answers("long", "a", "longer"), group_size=3, max_concurrent=1)
    assert group.rewards == [0.0, 1.0, 0.0]
    assert group.advantages == [pytest.approx(each - 1 / 3) for each in group.rewards]


async def test_a_group_is_scored_together_where_each_of_it_has_an_environment_of_its_own() -> None:
    """As from a function that makes one for each rollout at once."""
    made: list[Any] = []

    def make() -> Any:
        made.append(quiz(rubric=vfgym.Rubric(shortest)))
        return made[-1]

    said = by_answers("long", "a", "longer")

    async def answer(observation: list[Message], info: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return said(observation, info)

    [group] = await take(1, make, answer, group_size=3, example_ids=[0])
    assert len(made) >= 3
    assert sorted(group.rewards) == [0.0, 0.0, 1.0]
    assert group.errors == [None] * 3


async def test_a_client_answers_with_its_model_and_its_version_is_kept() -> None:
    class Versioned(ScriptedClient):
        policy_version = 12

    [group] = await take(1, quiz(), Versioned(["0"]), model="m", example_ids=[0])
    assert group.rewards == [1.0]
    assert samples(group.states)[0].policy_versions == [12]


# What fails


async def test_a_rollout_that_fails_counts_with_the_least_of_its_group_and_ends_no_other() -> None:
    numbers = itertools.count()

    def answer(observation: list[Message], info: dict[str, Any]) -> str:
        number = next(numbers)
        if number == 1:
            raise ModelError("the answer could not be read")
        if number == 2:
            raise ZeroDivisionError("a mistake of the agent")
        return "0" if number == 0 else "no"

    [group] = await take(1, quiz(failure_reward=-1.0), answer, example_ids=[0], group_size=4, max_concurrent=1)
    assert group.rewards == [1.0, -1.0, -1.0, 0.0]
    assert group.advantages == [1.25, -0.75, -0.75, 0.25]
    assert [type(error) for error in group.errors] == [type(None), ModelError, ZeroDivisionError, type(None)]
    assert group.cause == [None, "policy", "policy", None]
    assert group.failed == [False, True, True, False]
    assert group.attempt == [1, 1, 1, 1]
    assert [sample.advantage for sample in samples(group.states)] == [1.25, 0.25]  # the others gave no turn, and counted
    [declares_nothing] = await take(1, quiz(), by_raising(ModelError("down")), example_ids=[0], group_size=2, max_concurrent=1)
    assert declares_nothing.rewards == [0.0, 0.0]


def by_raising(error: Exception) -> Any:
    def answer(observation: list[Message], info: dict[str, Any]) -> str:
        raise error

    return answer


async def test_a_policy_that_raises_in_the_middle_leaves_the_others_unharmed() -> None:
    def answer(observation: list[Message], info: dict[str, Any]) -> str:
        if observation[-1]["content"] == "question 2":
            raise RuntimeError("broken")
        return "1"

    groups = await take(5, quiz(), answer, example_ids=range(5))
    assert [group.errors[0] is None for group in groups] == [True, True, False, True, True]
    assert [group.rewards[0] for group in groups] == [0.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"group_size": 0}, "group_size must be a positive integer, got 0"),
        ({"max_concurrent": -1}, "max_concurrent must be a positive integer"),
        ({"seed": -1}, "seed must be an integer from 0"),
        ({"example_ids": [9]}, "no task with example_id 9"),
        ({"model": "m"}, "is an agent: leave it out"),
        ({"split": "test"}, "split"),
    ],
)
async def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await take(1, quiz(), "random", **arguments)


async def test_no_tasks_and_nobody_to_answer_are_errors() -> None:
    with pytest.raises(ConfigurationError, match="has no tasks to play"):
        await take(1, quiz(dataset=[]), "random")
    with pytest.raises(Error):
        await take(1, quiz(), 7, model="m")


# How much is played


class Counting(vfgym.MultiTurnEnv):
    """Counts the episodes that begin and those that are cleaned up."""

    def __init__(self) -> None:
        super().__init__(dataset=ROWS, max_turns=2)
        self.begun = self.cleaned = 0

    def setup_state(self, state: vfgym.State) -> None:
        self.begun += 1

    def env_response(self, messages: Any, state: vfgym.State) -> list[Message]:
        return [vfgym.UserMessage("again")]

    @vfgym.cleanup
    def note(self, state: vfgym.State) -> None:
        self.cleaned += 1


@pytest.mark.parametrize("group_size", [1, 3, 50])
async def test_no_more_is_played_than_is_taken(group_size: int) -> None:
    env = Counting()
    groups = vfgym.rollout(env, "random", group_size=group_size, max_concurrent=4)
    most = max(4 * 4, group_size)
    for taken in range(1, 4):
        await anext(groups)
        for _ in range(200):
            await asyncio.sleep(0)
        assert env.begun <= taken * group_size + most
    await groups.aclose()


async def test_closing_leaves_no_task_and_no_episode() -> None:
    env = Counting()
    before = asyncio.all_tasks()

    async def never(observation: list[Message], info: dict[str, Any]) -> str:
        if len(observation) > 1:
            await asyncio.Event().wait()
        return "ok"

    groups = vfgym.rollout(env, never, max_concurrent=8)
    waiting = asyncio.ensure_future(anext(groups))
    while env.begun < 8:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await groups.aclose()
    assert asyncio.all_tasks() == before
    assert env.begun == env.cleaned == 8
