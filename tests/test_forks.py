"""One definition, many episodes: forks share tools, resources and `self`, and no episode sees another's state."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
from gymnasium.utils.env_checker import check_env

from vfgym import Rubric, State, StatefulToolEnv, ToolEnv, cleanup, teardown
from vfgym.messages import AssistantMessage

FORKS = 200


class Shop(StatefulToolEnv):
    """A connection and a counter on the definition, a basket for each episode."""

    def __init__(self) -> None:
        rows = [{"question": f"buy {index}", "answer": str(index)} for index in range(FORKS)]
        super().__init__(dataset=rows, rubric=Rubric(self.bought_what_was_asked), max_turns=5)
        self.calls = self.disconnected = 0
        self.cleaned: list[int] = []
        self.add_tool(self.buy, args_to_skip=["basket"])

    def setup_state(self, state: State) -> Any:
        state["basket"] = []
        return super().setup_state(state)

    async def buy(self, item: int, basket: list[int]) -> str:
        """Put something into the basket."""
        self.calls += 1
        await asyncio.sleep(0)
        basket.append(item)
        return f"value of {item}"

    def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: State, **kwargs: Any) -> dict[str, Any]:
        return {**tool_args, "basket": state["basket"]}

    def bought_what_was_asked(self, state: State, answer: str) -> float:
        return float(state["basket"] == [int(answer)] * 2)

    @cleanup
    async def empty(self, state: State) -> None:
        self.cleaned.append(state["example_id"])

    @teardown
    def disconnect(self) -> None:
        self.disconnected += 1


def buying(item: int) -> AssistantMessage:
    return AssistantMessage(None, tool_calls=[{"id": "1", "function": {"name": "buy", "arguments": {"item": item}}}])


def test_two_hundred_forks_at_once() -> None:
    shop = Shop()
    forks = [shop.fork() for _ in range(FORKS)]

    async def play(index: int) -> Any:
        await forks[index].areset(options={"example_id": index})
        await forks[index].astep(buying(index))
        await forks[index].astep(buying(index))
        return await forks[index].astep("done")

    async def play_all() -> list[Any]:
        return await asyncio.gather(*map(play, range(FORKS)))

    for index, outcome in enumerate(asyncio.run(play_all())):
        assert (outcome.reward, outcome.terminated, outcome.info["metrics"]["buy_calls"]) == (1.0, True, 2.0)
        assert [message["content"] for message in outcome.observation if message["role"] == "tool"] == [f"value of {index}"] * 2
        assert forks[index].state["basket"] == [index, index]
    assert (shop.calls, sorted(shop.cleaned)) == (2 * FORKS, list(range(FORKS)))
    for fork in forks:
        fork.close()
    assert shop.disconnected == 0, "a fork is not the definition"
    shop.close()
    shop.close()
    assert shop.disconnected == 1


def test_a_fork_is_a_gymnasium_environment() -> None:
    shop = Shop()
    fork = shop.fork()
    assert isinstance(fork, gym.Env)
    check_env(fork, skip_render_check=True)
    assert fork.fork().definition is fork.definition is shop
    assert (fork.observation_space, fork.action_space) == (shop.observation_space, shop.action_space)
    assert fork.unwrapped is fork


def test_the_episode_of_the_definition_and_those_of_its_forks_are_apart() -> None:
    shop = Shop()
    fork = shop.fork()
    assert fork.state is None
    shop.reset(options={"example_id": 1})
    fork.reset(options={"example_id": 2})
    shop.step(buying(1))
    assert (shop.state["basket"], fork.state["basket"]) == ([1], [])
    fork.close()
    assert shop.cleaned == [2]
    shop.step(buying(1))
    assert shop.step("done").reward == 1.0


def test_each_fork_has_a_stream_of_tasks_of_its_own() -> None:
    def draw(env: Any, seed: int | None) -> int:
        return int(env.reset(seed=seed)[1]["example_id"])

    shop = Shop()
    expected = [draw(shop, seed) for seed in (7, None, None)]
    one, other = shop.fork(), shop.fork()
    assert [(draw(one, seed), draw(other, seed)) for seed in (7, None, None)] == [(drawn, drawn) for drawn in expected]


def test_a_tool_added_to_the_definition_is_there_for_episodes_that_start_later() -> None:
    def early() -> str:
        return "early"

    def late() -> str:
        return "late"

    env = ToolEnv(tools=[early], dataset=[{"question": "?"}])
    fork = env.fork()
    fork.reset(seed=0)
    fork.action_space.seed(0)
    env.add_tool(late)
    assert [tool["function"]["name"] for tool in fork.reset(seed=0)[1]["tools"]] == ["early", "late"]
    assert {call.name for _ in range(100) for call in fork.action_space.sample().tool_calls or ()} == {"early", "late"}
