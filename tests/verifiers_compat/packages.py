"""Environments of the rollout API that processes make by their names."""

from __future__ import annotations

from typing import Any

from datasets import Dataset

import verifiers_compat as vf


def _tasks(count: int) -> Dataset:
    return Dataset.from_list([{"question": f"What is {number} + {number}?", "answer": str(2 * number)} for number in range(count)])


def _is_right(completion: Any, answer: str) -> float:
    return float(completion[-1]["content"] == answer)


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


class Hints(vf.MultiTurnEnv):
    """Says whether a guess is too small."""

    async def setup_state(self, state: vf.State, **kwargs: Any) -> vf.State:
        """Remember the guesses, and draw what is only this rollout's."""
        state["guesses"], state["luck"] = [], state.rng.random()
        return state

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        """Compare the last guess."""
        state["guesses"].append(messages[-1]["content"])
        return [{"role": "user", "content": "more" if int(messages[-1]["content"]) < int(state["answer"]) else "not more"}]

    @vf.stop
    async def is_right(self, state: vf.State) -> bool:
        """Stop at the right guess."""
        return bool(state["trajectory"]) and state["trajectory"][-1]["completion"][-1]["content"] == state["answer"]


class OwnRollout(vf.SingleTurnEnv):
    """Asks twice, and keeps the second answer."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
        """Play one rollout."""
        state = await super().rollout(input, client, model, sampling_args)
        state["first"] = state["completion"]
        return await super().rollout(input, client, model, sampling_args)


def load_environment(num_tasks: int = 4) -> vf.Environment:
    """Make one with tools."""
    return vf.ToolEnv(dataset=_tasks(num_tasks), tools=[double], rubric=vf.Rubric(_is_right), max_turns=3)


def load_hints() -> vf.Environment:
    """Make one of several turns, whose author has hooks and a stop condition."""
    return Hints(dataset=_tasks(4), rubric=vf.Rubric(_is_right), max_turns=3)


def load_own_rollout() -> vf.Environment:
    """Make one whose author wrote `rollout`."""
    return OwnRollout(dataset=_tasks(4), rubric=vf.Rubric(_is_right))
