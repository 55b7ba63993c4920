"""usage: python foreign_packages.py NAME

Plays a game of somebody else's package at random, and prints what a player is told, as JSON. Run in the environment of the packages.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

warnings.simplefilter("ignore")


def registered(module: str, game: str) -> Callable[[], Any]:
    def make() -> Any:
        importlib.import_module(module)
        return game

    return make


def minatar() -> Any:
    importlib.import_module("minatar.gym").register_envs()
    return "MinAtar/Breakout-v1"


def textworld() -> Any:
    import textworld

    options = textworld.GameOptions()
    options.seeds, options.nb_rooms, options.quest_length = 1234, 3, 3
    game_file = textworld.generator.compile_game(textworld.generator.make_game(options), options)
    infos = textworld.EnvInfos(admissible_commands=True, objective=True, won=True, lost=True)
    return lambda: textworld.start(game_file, infos)


def textworld_express() -> Any:
    from textworld_express import TextWorldExpressEnv

    def make() -> Any:
        env = TextWorldExpressEnv(envStepLimit=30)
        env.load("coin", "numLocations=3,numDistractorItems=0")
        return env

    return make


def scienceworld() -> Any:
    from scienceworld import ScienceWorldEnv

    return lambda: ScienceWorldEnv("boil")


PACKAGES: dict[str, Callable[[], Any]] = {
    "crafter": lambda: importlib.import_module("crafter").Env,
    "flappy-bird-gymnasium": registered("flappy_bird_gymnasium", "FlappyBird-v0"),
    "highway-env": registered("highway_env", "highway-v0"),
    "minatar": minatar,
    "mpe2": lambda: importlib.import_module("mpe2.simple_tag_v3").env,
    "nle": registered("nle", "NetHackScore-v0"),
    "pettingzoo[butterfly]": lambda: "butterfly/knights_archers_zombies_v11",
    "popgym": registered("popgym", "popgym-CountRecallEasy-v0"),
    "scienceworld": scienceworld,
    "textworld": textworld,
    "textworld-express": textworld_express,
    "vizdoom": registered("vizdoom.gymnasium_wrapper", "VizdoomBasic-v1"),
}


def play(name: str) -> dict[str, Any]:
    import vfgym

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = vfgym.to_chat(PACKAGES[name]())
    warned = [str(each.message) for each in caught if "told too little" in str(each.message)]
    observation, info = env.reset(seed=0)
    content = observation[-1].content
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    env.action_space.seed(0)
    invalid = 0
    for _ in range(10):
        legal = info.get("legal_actions")
        _, _, terminated, truncated, info = env.step(legal[0] if legal else env.action_space.sample())
        invalid += bool(env.state["trajectory"][-1]["extras"].get("invalid_answer"))
        if terminated or truncated:
            break
    env.close()
    told, types = "\n".join(part.get("text", "") for part in parts), sorted({part["type"] for part in parts})
    return {"told": told, "types": types, "warned": warned, "error": info.get("error"), "invalid": invalid}


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        played = play(sys.argv[1])
    print(json.dumps(played))
