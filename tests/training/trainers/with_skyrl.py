"""Plays episodes as SkyRL's generator does, through its registry, and prints what was rewarded."""

from __future__ import annotations

import json
from typing import Any

import skyrl_gym
from skyrl_gym.metrics import aggregate_for_environment

from tests.training.trainers import environments
from vfgym.errors import ConfigurationError
from vfgym.training.counting import RolloutMissing
from vfgym.training.skyrl import TextEnv


def play(env_id: str, env: Any, seed: int, answers: list[str], **extras: Any) -> dict[str, Any]:
    """Play one episode, the conversation growing as SkyRL lets it grow."""
    made = skyrl_gym.make(env_id, env_config={"env": env}, extras={"seed": seed, **extras})
    conversation, _ = made.init([])
    total = 0.0
    for answer in answers:
        output = made.step(answer)
        total += output["reward"]
        conversation = [*conversation, {"role": "assistant", "content": answer}, *output["observations"]]
        if output["done"]:
            break
    metrics = made.get_metrics()
    made.close()
    roles = [message["role"] for message in conversation]
    return {"reward": total, "roles": roles, "done": output["done"], "metadata": output["metadata"], "metrics": metrics}


def refusal(**arguments: Any) -> str:
    try:
        TextEnv(**arguments)
    except ConfigurationError as error:
        return str(error)
    return ""


def main() -> None:
    skyrl_gym.register(id="vfgym", entry_point="vfgym.training.skyrl:TextEnv")
    lake, sums = environments.make_lake(), environments.make_sums()
    texts = [[f"<action>{move}</action>" for move in moves] for moves in (environments.ACROSS, environments.INTO_A_HOLE)]
    played = [play("vfgym", lake, 0, answers) for answers in texts]
    played += [play("vfgym", sums, 0, environments.answers_to_sums(1, number), options={"example_id": 1}) for number in range(3)]
    by_id = play("vfgym", "gymnasium/FrozenLake-v1", 0, texts[0][:1], max_turns=1)
    refused = [
        refusal(env_config={"env": environments.make_lake(history=2)}, extras={"seed": 0}),
        refusal(env_config={"env": lake}),
        refusal(extras={"seed": 0}),
    ]
    try:
        play("vfgym", environments.make_unreachable(), 0, ["hello"])
        lost = ""
    except RolloutMissing as missing:
        lost = str(missing.ending)
    combined = aggregate_for_environment("vfgym", [each["metrics"] for each in played[2:]])
    print(json.dumps({"played": played, "by_id": by_id, "refused": refused, "combined": combined, "lost": lost}))


main()
