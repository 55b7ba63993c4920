"""Plays groups in tinker-cookbook's own loop, with a policy whose answers are scripted, and prints what was rewarded."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import tempfile
from collections.abc import Callable
from typing import Any

from tinker_cookbook import renderers
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.data_processing import trajectory_to_data
from tinker_cookbook.rl.rollout_strategy import MinViableGroup
from tinker_cookbook.rl.rollouts import do_group_rollout, do_single_rollout
from transformers import AutoTokenizer

from tests.training.trainers import environments
from tests.training.trainers.tokenizer import CHATML, make_tokenizer
from vfgym.training.tinker import ChatEnvGroupBuilder

GROUP = 3


class Scripted(TokenCompleter):
    """Answers the nth rollout of a group with the nth script."""

    def __init__(self, tokenizer: Any, script: Callable[[str, int], list[str]]) -> None:
        self.tokenizer, self.script = tokenizer, script
        self.tasks: list[Any] = []
        self.prompts: list[list[str]] = [[] for _ in range(GROUP)]

    async def __call__(self, model_input: Any, stop: Any, *, max_tokens: int | None = None) -> Any:
        task = asyncio.current_task()
        if task not in self.tasks:
            self.tasks.append(task)
        number = self.tasks.index(task)
        text = self.tokenizer.decode(model_input.to_ints())
        turn = len(self.prompts[number])
        self.prompts[number].append(text)
        tokens = [*self.tokenizer(self.script(text, number)[turn])["input_ids"], self.tokenizer.eos_token_id]
        return TokensWithLogprobs(tokens=tokens, maybe_logprobs=[-1.0] * len(tokens))


async def play(builder: ChatEnvGroupBuilder, policy: Scripted) -> dict[str, Any]:
    """Play one group as the trainer does, and make its training data."""
    group = await do_group_rollout(pickle.loads(pickle.dumps(builder)), policy)
    return {
        "rewards": group.get_total_rewards(),
        "turns": [len(trajectory.transitions) for trajectory in group.trajectories_G],
        "stops": [trajectory.stop_reason for trajectory in group.trajectories_G],
        "data": [len(trajectory_to_data(trajectory, 1.0)) for trajectory in group.trajectories_G],
        "says_tools": "<tools>" in policy.prompts[0][0],
    }


def sums_of(text: str, number: int) -> list[str]:
    return environments.answers_to_sums(int(re.findall(r"(\d) \+ 2\?", text)[-1]), number)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_tokenizer(CHATML).save_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        renderer = renderers.get_renderer("qwen3_instruct", tokenizer, model_name=folder)
        sums = await play(
            ChatEnvGroupBuilder(environments.make_sums(), renderer, GROUP, options={"example_id": 1}), Scripted(tokenizer, sums_of)
        )
        moves = [environments.ACROSS, environments.INTO_A_HOLE, environments.ACROSS]
        lake = await play(
            ChatEnvGroupBuilder(environments.make_lake(history=1), renderer, GROUP, seed=4),
            Scripted(tokenizer, lambda text, number: [f"<action>{move}</action>" for move in moves[number]]),
        )
        thinking = renderers.get_renderer("qwen3", tokenizer, model_name=folder)
        thinking.strip_thinking_from_history = False
        answers = [f"<think>\nI go {move}.\n</think>\n\n<action>{move}</action>" for move in environments.ACROSS]
        made = await ChatEnvGroupBuilder(environments.make_lake(), thinking, 1, seed=4).make_envs()
        trajectory = await do_single_rollout(Scripted(tokenizer, lambda text, number: answers), made[0])
        thoughts = len(trajectory_to_data(trajectory, 1.0))
        flaky = ChatEnvGroupBuilder(environments.Flaky({1}, max_turns=2), renderer, GROUP)
        group = await do_group_rollout(
            flaky, Scripted(tokenizer, lambda text, number: ["hello", "again"]), MinViableGroup(min_successful=1, max_retries=0)
        )
        lost = group.get_total_rewards()
        by_id = ChatEnvGroupBuilder("gymnasium/FrozenLake-v1", renderer, 2)
        tags = by_id.logging_tags()
        made = await by_id.make_envs()
        begun = [tokenizer.decode((await env.initial_observation())[0].to_ints()) for env in made]
        await by_id.cleanup()
    print(json.dumps({"sums": sums, "lake": lake, "tags": tags, "thoughts": thoughts, "alike": begun[0] == begun[1], "lost": lost}))


asyncio.run(main())
