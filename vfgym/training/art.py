"""Rollouts for ART (openpipe-art 0.5), as its trajectories: the model's own choices, with their log-probabilities.

.. code-block:: python

    groups = await art.gather_trajectory_groups(
        (art.TrajectoryGroup(play_trajectory(model, env, example_id=task) for _ in range(8)) for task in range(16)),
        max_exceptions=0.2,
    )
"""

from __future__ import annotations

from typing import Any, Literal

from vfgym.clients import SamplingArgs
from vfgym.clients.config import NO_KEY
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient
from vfgym.endings import ending_of
from vfgym.errors import ConfigurationError
from vfgym.messages import Response, plain
from vfgym.results.samples import samples
from vfgym.training.adapters import Env, require_trainer
from vfgym.training.playing import asking, play_rollout

require_trainer("art", "openpipe-art>=0.5")

import art  # noqa: E402
from art.trajectories import History  # noqa: E402


async def play_trajectory(
    model: art.Model[Any],
    env: str | Env,
    *,
    example_id: int,
    split: Literal["train", "eval"] = "train",
    seed: int | None = None,
    sampling_args: SamplingArgs | None = None,
) -> art.Trajectory:
    """Play one rollout with a model of ART, and return its trajectory.

    A conversation that was rewritten (``history=``) is several histories of it. Its reward is what the rollout counts with.

    Args:
        model: Who answers: registered with a backend, so that it has ``inference_base_url``.
        env: A chat environment, or the id of one.
        example_id: The task.
        split: What it is a task of.
        seed: Seed of the rollout, so that those of one task begin alike; its `example_id` where it is None.
        sampling_args: Generation parameters, over those of the environment.

    Raises:
        vfgym.training.counting.RolloutMissing: If it failed by the doing of its environment, or of what is underneath. ART leaves it out
            of its group, up to ``max_exceptions`` of them.
        ConfigurationError: If the model has no URL yet, or the environment cannot be played one rollout at a time.
    """
    if not model.inference_base_url:
        raise ConfigurationError(f"the model {model.name} has no inference_base_url: register it with a backend before it plays")
    async with asking(model.inference_base_url, model.inference_api_key or NO_KEY, _ChoiceClient) as client:
        played = await play_rollout(
            env,
            client,
            model.get_inference_name(),
            example_id=example_id,
            split=split,
            seed=seed,
            sampling_args=sampling_args,
        )
    state = played.state
    trajectory = state["trajectory"]
    tools = [tool.to_openai() for tool in state["tool_defs"] or ()] or None
    chains = [sample.turns for sample in samples([state], advantage=None)]
    first, *others = [_messages_and_choices(trajectory, turns, client.choices) for turns in chains] or [plain(state["prompt"])]
    return art.Trajectory(
        messages_and_choices=first,
        tools=tools,
        additional_histories=[History(messages_and_choices=each, tools=tools) for each in others],
        reward=played.reward,
        metrics={name: float(value) for name, value in (state["metrics"] or {}).items()},
        metadata={"example_id": example_id, "ending": str(ending_of(state))},
    ).finish()


def _messages_and_choices(trajectory: Any, turns: list[int], choices: dict[int, tuple[Response, Any]]) -> list[Any]:
    """Return the conversation of turns that go on from each other, with the choices that the server gave where the model wrote."""
    told: list[Any] = []
    for turn in turns:
        step = trajectory[turn]
        told += plain(step["prompt"][len(told) :])
        told.append(choices[id(step["response"])][1])
    return told


class _ChoiceClient(OpenAIChatCompletionsClient):
    """Asks for log-probabilities, and keeps the choices as the server gave them, by the identity of the response."""

    choices: dict[int, tuple[Response, Any]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choices = {}

    async def get_native_response(self, prompt: Any, model: str, sampling_args: SamplingArgs, tools: Any = None, **kwargs: Any) -> Any:
        return await super().get_native_response(prompt, model, {**sampling_args, "logprobs": True}, tools, **kwargs)

    async def from_native_response(self, response: Any) -> Response:
        made = await super().from_native_response(response)
        self.choices[id(made)] = made, response.choices[0]
        return made
