"""Gathers groups with ART, whose model is served by scripts, and prints what it would train on."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", WANDB_MODE="disabled")

import art

from tests.training.trainers import environments
from vfgym.messages import ToolCall
from vfgym.model_server import ModelServer, Reply
from vfgym.training.art import play_trajectory


def count_answers(request: Any) -> int:
    return sum(message["role"] == "assistant" for message in request.messages)


async def gather(model: Any, env: Any, size: int) -> Any:
    """Gather one group, and return what it has of each trajectory, and its exceptions."""
    rollouts = (play_trajectory(model, env, example_id=0) for _ in range(size))
    [group] = await art.gather_trajectory_groups([art.TrajectoryGroup(rollouts)], max_exceptions=size, pbar_desc=None)
    found = []
    for trajectory in group.trajectories:
        histories = [trajectory.messages_and_choices, *(history.messages_and_choices for history in trajectory.additional_histories)]
        choices = [[each for each in history if not isinstance(each, dict)] for history in histories]
        found.append(
            {
                "reward": trajectory.reward,
                "roles": [message["role"] for message in trajectory.messages()],
                "choices": [len(each) for each in choices],
                "has_logprobs": all(choice.logprobs.content for each in choices for choice in each),
                "tools": [tool["function"]["name"] for tool in trajectory.tools or []],
                "ending": trajectory.metadata["ending"],
            }
        )
    return {"trajectories": found, "exceptions": [exception.type for exception in group.exceptions]}


async def main() -> None:
    def move(request: Any) -> str:
        return f"<action>{environments.ACROSS[count_answers(request)]}</action>"

    def add(request: Any) -> Reply:
        if count_answers(request):
            return Reply("2")
        return Reply("I add.", tool_calls=[ToolCall("call_0", "add", json.dumps({"a": 0, "b": 2}))])

    def down(request: Any) -> str:
        return "<action>down</action>"

    with ModelServer({"across": move, "sums": add, "down": down}) as server:

        def model(name: str) -> Any:
            return art.Model(name=name, project="vfgym", inference_base_url=server.openai_url, inference_api_key="key")

        found = {
            "lake": await gather(model("across"), environments.make_lake(), 2),
            "short": await gather(model("across"), environments.make_lake(history=1), 1),
            "sums": await gather(model("sums"), environments.make_sums(), 1),
            "broken": await gather(model("down"), environments.make_broken(), 2),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
