"""Plays episodes in GEM's vector environment and its wrappers, and prints what was rewarded."""

from __future__ import annotations

import json
from typing import Any

import gem
from gem.vector.sync_vector_env import SyncVectorEnv
from gem.wrappers.episode_tracking_wrapper import EpisodeTrackingWrapper
from gem.wrappers.observation_wrapper import ObservationWrapper

from tests.training.trainers import environments
from vfgym.training.counting import RolloutMissing
from vfgym.training.gem import GemEnv


def play(env: Any, seed: int | None, answers: list[str]) -> dict[str, Any]:
    observation, _ = env.reset(seed=seed)
    observations, rewards = [observation], []
    for answer in answers:
        observation, reward, terminated, truncated, _ = env.step(answer)
        observations.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            break
    return {"reward": sum(rewards), "observations": observations}


def play_in_vector(env: Any, seeds: list[int], scripts: list[list[str]]) -> list[float]:
    """Play one episode in each environment of GEM's vector, and return what each earned."""
    envs = SyncVectorEnv(env_ids=["vfgym"] * len(seeds), env_fns=[lambda: EpisodeTrackingWrapper(GemEnv(env))] * len(seeds))
    envs.reset(seed=seeds)
    totals, running = [0.0] * len(seeds), set(range(len(seeds)))
    for turn in range(max(map(len, scripts))):
        acting = sorted(running)
        _, rewards, terminated, truncated, _ = envs.step({number: scripts[number][turn] for number in acting})
        for place, number in enumerate(acting):
            totals[number] += float(rewards[place])
        running -= {number for number in acting if terminated[number] or truncated[number]}
    return totals


def main() -> None:
    lake, sums = environments.make_lake(), environments.make_sums()
    texts = [[f"<action>{move}</action>" for move in moves] for moves in (environments.ACROSS, environments.INTO_A_HOLE)]
    vector = play_in_vector(lake, [0, 0], texts)
    asked = GemEnv(sums).reset(seed=0)[0]
    tools = [play(GemEnv(sums), 0, environments.answers_to_sums(int(asked[0]), number)) for number in range(3)]
    joined = play(ObservationWrapper(GemEnv(lake), include_chat_template=False), 0, texts[0])["observations"][-1]

    slippery = GemEnv(environments.make_lake(is_slippery=True))
    slippery.reset(seed=3)
    slippery.step(texts[0][0])
    same, other = slippery.spawn(same_state=True), slippery.spawn()
    other.reset(seed=3)
    branches = [[env.step(answer)[0] for answer in texts[0][:2]] for env in (slippery, same)]
    gem.register("vfgym/lake", "vfgym.training.gem:GemEnv", env="gymnasium/FrozenLake-v1")
    made = gem.make("vfgym/lake", seed=3)
    made.reset()
    random = made.sample_random_action()
    try:
        play(GemEnv(environments.make_unreachable()), 0, ["hello"])
        lost = ""
    except RolloutMissing as missing:
        lost = str(missing.ending)
    print(json.dumps({"lost": lost, "vector": vector, "tools": tools, "joined": joined, "branches": branches, "random": random}))


main()
