"""One definition, many episodes: forks share tools, resources and `self`, and no episode sees another's state."""

from __future__ import annotations

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from vfgym import Rubric, State, StatefulToolEnv, ToolEnv, cleanup, teardown
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage

FORKS = 200


class Connection:
    """Something expensive that is opened once."""

    opened = 0
    closed = 0

    def __init__(self) -> None:
        type(self).opened += 1

    async def fetch(self, key: int) -> str:
        await asyncio.sleep(0)
        return f"value of {key}"

    def close(self) -> None:
        type(self).closed += 1


class Shop(StatefulToolEnv):
    """A tool on a shared connection, a counter on the definition, a basket for each episode."""

    def __init__(self) -> None:
        super().__init__(
            dataset=[{"question": f"buy {index}", "answer": str(index)} for index in range(FORKS)],
            rubric=Rubric([self.bought_what_was_asked, self.size]),
            max_turns=5,
        )
        self.connection = Connection()
        self.calls = 0
        self.cleaned: list[int] = []
        self.add_tool(self.buy, args_to_skip=["basket"])

    def setup_state(self, state: State) -> Any:
        state["basket"] = []
        return super().setup_state(state)

    async def buy(self, item: int, basket: list[int]) -> str:
        """Put something into the basket."""
        self.calls += 1
        said = await self.connection.fetch(item)
        basket.append(item)
        return said

    def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: State, **kwargs: Any) -> dict[str, Any]:
        return {**tool_args, "basket": state["basket"]}

    def bought_what_was_asked(self, state: State, answer: str) -> float:
        return float(state["basket"] == [int(answer)] * 2)

    def size(self, state: State) -> float:
        return float(len(state["basket"]))

    @cleanup
    async def empty(self, state: State) -> None:
        await asyncio.sleep(0)
        self.cleaned.append(state["example_id"])

    @teardown
    def disconnect(self) -> None:
        self.connection.close()


def buying(item: int) -> AssistantMessage:
    call = {"id": "1", "function": {"name": "buy", "arguments": {"item": item}}}
    return AssistantMessage(None, tool_calls=[call])


@pytest.fixture
def shop() -> Shop:
    Connection.opened = Connection.closed = 0
    return Shop()


def check(shop: Shop, forks: list[Any], outcomes: list[Any]) -> None:
    """Every episode bought its own things, over one connection."""
    for index, (fork, outcome) in enumerate(zip(forks, outcomes, strict=True)):
        assert (outcome.reward, outcome.terminated) == (3.0, True)
        assert [message["content"] for message in outcome.observation if message["role"] == "tool"] == [f"value of {index}"] * 2
        assert fork.state["basket"] == [index, index]
        assert outcome.info["metrics"]["buy_calls"] == 2.0
    assert shop.calls == 2 * FORKS
    assert sorted(shop.cleaned) == list(range(FORKS))
    assert (Connection.opened, Connection.closed) == (1, 0)
    for fork in forks:
        fork.close()
    assert Connection.closed == 0
    shop.close()
    shop.close()
    assert (Connection.opened, Connection.closed) == (1, 1)


async def test_two_hundred_forks_at_once(shop: Shop) -> None:
    forks = [shop.fork() for _ in range(FORKS)]

    async def play(index: int) -> Any:
        await forks[index].areset(options={"example_id": index})
        await forks[index].astep(buying(index))
        await forks[index].astep(buying(index))
        return await forks[index].astep("done")

    outcomes = await asyncio.gather(*map(play, range(FORKS)))
    await asyncio.to_thread(check, shop, forks, outcomes)


def test_two_hundred_forks_in_turns(shop: Shop) -> None:
    """One step each, round after round."""
    forks = [shop.fork() for _ in range(FORKS)]
    for index, fork in enumerate(forks):
        fork.reset(options={"example_id": index})
    for _ in range(2):
        for index, fork in enumerate(forks):
            fork.step(buying(index))
    check(shop, forks, [fork.step("done") for fork in forks])


def test_two_hundred_forks_in_threads(shop: Shop) -> None:
    forks = [shop.fork() for _ in range(FORKS)]

    def play(index: int) -> Any:
        forks[index].reset(options={"example_id": index})
        forks[index].step(buying(index))
        forks[index].step(buying(index))
        return forks[index].step("done")

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(play, range(FORKS)))
    # `self.calls += 1` runs on the one background loop, so it needs no lock.
    check(shop, forks, outcomes)


def test_a_fork_is_a_gymnasium_environment(shop: Shop) -> None:
    fork = shop.fork()
    assert isinstance(fork, gym.Env)
    check_env(fork, skip_render_check=True)
    assert fork.fork().definition is fork.definition is shop
    assert fork.observation_space == shop.observation_space
    assert fork.action_space == shop.action_space
    assert fork.unwrapped is fork


def test_the_episode_of_the_definition_and_those_of_its_forks_are_apart(shop: Shop) -> None:
    fork = shop.fork()
    assert fork.state is None
    shop.reset(options={"example_id": 1})
    fork.reset(options={"example_id": 2})
    shop.step(buying(1))
    assert (shop.state["basket"], fork.state["basket"]) == ([1], [])
    fork.close()
    assert shop.cleaned == [2]
    shop.step(buying(1))
    assert shop.step("done").reward == 3.0


def test_each_fork_has_a_stream_of_tasks_and_random_numbers_of_its_own(shop: Shop) -> None:
    def stream(env: Any) -> list[int]:
        return [env.reset(seed=7 if first else None)[1]["example_id"] for first in (True, False, False)]

    expected = stream(shop)
    a, b = shop.fork(), shop.fork()
    mixed = [
        (a.reset(seed=7 if first else None)[1]["example_id"], b.reset(seed=7 if first else None)[1]["example_id"])
        for first in (True, False, False)
    ]
    assert [list(ids) for ids in zip(*mixed, strict=True)] == [expected, expected]


def test_a_tool_added_to_the_definition_is_there_for_episodes_that_start_later() -> None:
    def early() -> str:
        return "early"

    def late() -> str:
        return "late"

    env = ToolEnv(tools=[early], dataset=[{"question": "?"}])
    fork = env.fork()
    names = [[tool["function"]["name"] for tool in fork.reset(seed=0)[1]["tools"]]]
    fork.action_space.seed(0)
    env.add_tool(late)
    names.append([tool["function"]["name"] for tool in fork.reset(seed=0)[1]["tools"]])
    assert names == [["early"], ["early", "late"]]
    sampled = {call.name for _ in range(100) for call in fork.action_space.sample().tool_calls or ()}
    assert sampled == {"early", "late"}


def test_forks_of_an_environment_that_scores_groups_refuse_to_be_stepped_alone() -> None:
    def ranks(states: list[State]) -> list[float]:
        return [0.0 for _ in states]

    env = ToolEnv(dataset=[{"question": "?"}], rubric=Rubric(ranks))
    with pytest.raises(ConfigurationError, match="ranks"):
        env.fork().reset(seed=0)


def test_a_fork_is_light(shop: Shop) -> None:
    """It holds an episode and no copy of the definition's tasks, tools or rubric."""
    forks = list(itertools.islice(iter(shop.fork, None), 50))
    for fork in forks:
        assert not any(value is not None and isinstance(value, list | dict) and value for value in vars(fork).values())
    shop.close()
