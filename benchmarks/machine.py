"""CPU time of the episode machine: what the library costs beside the model and the game.

Run ``python benchmarks/machine.py``. Each row is the best of several rounds (the machine may be shared), in microseconds of
CPU time of this process, beside the aim that the project set itself. Nothing asserts on these numbers.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

import vfgym
from vfgym.clients import Client, SamplingArgs
from vfgym.messages import AssistantMessage, Message, Response, ToolCall, UserMessage
from vfgym.state import State
from vfgym.tools import Tool

ROUNDS = 5


class SameAnswer(Client):
    """Gives one prepared answer, so that nothing but the library is measured."""

    def __init__(self, message: AssistantMessage) -> None:
        """Prepare the answer."""
        self.response = Response("", 0, "", None, message)

    async def get_response(
        self,
        prompt: Sequence[Message],
        model: str,
        sampling_args: SamplingArgs | None = None,
        tools: Sequence[Tool] | None = None,
        **kwargs: Any,
    ) -> Response:
        """Return the answer."""
        return self.response


class GoOn(vfgym.MultiTurnEnv):
    """Answers every message with the same one."""

    def env_response(self, messages: list[Message], state: State) -> list[Message]:
        """Ask for more."""
        return [UserMessage("go on")]


def exact(completion: list[Message], answer: str) -> float:
    """Return whether the last message is the answer."""
    return float(completion[-1].content == answer)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def best(measure: Callable[[], float]) -> float:
    """Return the smallest of several measurements, with the garbage of the others out of the way."""
    values = []
    for _ in range(ROUNDS):
        gc.collect()
        values.append(measure())
    return min(values)


def cpu_per(count: int, run: Callable[[], object]) -> float:
    """Return the CPU microseconds of `run`, for each of the `count` things that it does."""
    started = time.process_time()
    run()
    return (time.process_time() - started) / count * 1e6


def rollouts(env: vfgym.ChatEnv, client: Client, count: int, *, scored: bool = True) -> Callable[[], object]:
    """Return a function that rolls out, one episode after another, on one event loop."""

    async def run() -> None:
        for _ in range(count):
            state = await env.rollout(env.tasks.input(0), client, "model")
            if scored:
                result: Awaitable[None] = env.rubric.score_rollout(state)
                await result

    return lambda: asyncio.run(run())


def single_turn() -> float:
    """One question, one answer, one reward function, through `rollout` and scoring."""
    env = vfgym.SingleTurnEnv([{"question": "6 * 7?", "answer": "42"}], rubric=vfgym.Rubric(exact))
    return cpu_per(2000, rollouts(env, SameAnswer(AssistantMessage("42")), 2000))


def further_turn(turns: int) -> float:
    """A turn in the second half of an episode of so many turns: the whole episode less one of half as many."""
    client = SameAnswer(AssistantMessage("and then?"))
    episodes = max(4, 2000 // turns)

    def episode(length: int) -> float:
        env = GoOn(dataset=[{"question": "tell me a story"}], max_turns=length)
        return best(lambda: cpu_per(episodes, rollouts(env, client, episodes)))

    return (episode(turns) - episode(turns // 2)) / (turns - turns // 2)


def tool_turn() -> float:
    """A turn that calls one plain tool with two integers."""
    env = vfgym.ToolEnv(tools=[add], dataset=[{"question": "1 + 2?"}], max_turns=50)
    call = AssistantMessage(None, tool_calls=[ToolCall("call_1", "add", '{"a": 1, "b": 2}')])
    return cpu_per(50 * 40, rollouts(env, SameAnswer(call), 40))


def reward_functions() -> float:
    """Five trivial reward functions: an episode with five of them less one with none."""
    client = SameAnswer(AssistantMessage("42"))
    rows = [{"question": "6 * 7?", "answer": "42"}]

    def none(completion: list[Message]) -> float:
        return 0.0

    def length(completion: list[Message]) -> float:
        return float(len(completion))

    def asked(prompt: list[Message]) -> float:
        return float(len(prompt))

    def turns(state: State) -> float:
        return float(len(state["trajectory"]))

    def episode(functions: list[Callable[..., float]]) -> float:
        env = vfgym.SingleTurnEnv(rows, rubric=vfgym.Rubric(functions))
        return best(lambda: cpu_per(2000, rollouts(env, client, 2000)))

    return episode([exact, none, length, asked, turns]) - episode([])


def step(env: gym.Env[Any, Any], action: Any, turns: int) -> Callable[[], float]:
    """A call of `step()`, in episodes of so many turns; `reset()` is not counted."""

    def measure() -> float:
        total = 0.0
        for _ in range(2000 // turns):
            env.reset(seed=0)
            total += cpu_per(1, lambda: [env.step(action) for _ in range(turns)])
        return total / (2000 // turns * turns)

    return measure


def main() -> None:
    """Print the table."""
    story = GoOn(dataset=[{"question": "tell me a story"}])
    cart, bare = vfgym.to_chat("CartPole-v1"), gym.make("CartPole-v1", disable_env_checker=True)
    played = {turns: best(step(bare, np.int64(1), turns)) for turns in (7, 8)}
    over = {turns: best(step(cart, "1", turns)) - game for turns, game in played.items()}
    rows: list[tuple[str, float, str]] = [
        ("single-turn rollout, scored", best(single_turn), "<= 50"),
        *((f"further turn, at turn {turns}", further_turn(turns), "<= 10, flat") for turns in (20, 100, 400)),
        ("turn with one tool call", best(tool_turn), "<= 20"),
        ("five trivial reward functions", reward_functions(), "<= 10"),
        ("step(), plain hooks", best(step(story, "and then?", 20)), "3-5 (spike)"),
        ("CartPole, the bare game", played[8], ""),
        ("CartPole as chat, over the game", over[8], "<= 8"),  # the pole falls with the eighth step, which ends and scores the episode
        ("the same, before the last step", over[7], "<= 8"),
    ]
    print(f"{'what':36} {'µs CPU':>8}   aim")
    for what, took, aim in rows:
        print(f"{what:36} {took:8.1f}   {aim}")


if __name__ == "__main__":
    main()
