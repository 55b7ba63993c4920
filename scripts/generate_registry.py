"""Write ``vfgym/data/*.json``: the ids that vfgym registers, read from the packages behind them.

``import vfgym`` registers environments from these files and imports neither reasoning-gym nor a game. Run this script after an upgrade
of one of the packages; ``tests/test_registry_data.py`` fails when the files and the installed versions disagree.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, find_highest_version

from vfgym.wrappers.textarena.package import new_game, textarena

DATA = Path(__file__).parent.parent / "vfgym" / "data"
GYMNASIUM_GROUPS = ("toy_text", "classic_control", "box2d", "mujoco")


def oracle_candidates(entry: dict[str, Any]) -> dict[tuple[str, bool], str]:
    """The texts in an entry that may be its solution, keyed by where each stands and whether it is JSON-encoded there.

    Five datasets have no ``answer``, because many are right; three of them keep one in their metadata (reasoning-gym 0.1.25).
    """
    candidates = {}
    if isinstance(entry["answer"], str):
        candidates["answer", False] = entry["answer"]
    for key, value in entry["metadata"].items():
        if "answer" in key:
            encoded = not isinstance(value, str)
            candidates[f"metadata:{key}", encoded] = json.dumps(value) if encoded else value
    return candidates


def oracle_of(dataset: Any) -> tuple[str | None, bool]:
    """Where every entry of a dataset holds an answer that scores 1.0 (None if nowhere), and whether it must be JSON-encoded."""
    entries = list(dataset)
    for place in oracle_candidates(entries[0]):
        if all(dataset.score_answer(oracle_candidates(entry)[place], entry) == 1.0 for entry in entries):
            return place
    return None, False


def reasoning_gym_registry() -> dict[str, Any]:
    """Describe every dataset of the installed reasoning-gym.

    Returns:
        ``version`` of reasoning-gym and ``datasets``: for each its ``name``, its ``category``, its ``oracle`` (where an entry holds an
        answer that scores 1.0: ``"answer"``, ``"metadata:<key>"`` or None) and ``oracle_is_json`` (whether that value must be
        JSON-encoded to be an answer).
    """
    import reasoning_gym
    from reasoning_gym.composite import DatasetSpec
    from reasoning_gym.factory import DATASETS

    datasets = []
    for name, (dataset_class, _) in sorted(DATASETS.items()):
        # composite mixes other datasets and cannot be made without naming some.
        config = {"datasets": [DatasetSpec("chain_sum", 1.0, {}), DatasetSpec("leg_counting", 1.0, {})]} if name == "composite" else {}
        oracle, oracle_is_json = oracle_of(reasoning_gym.create_dataset(name, size=5, seed=0, **config))
        category = dataset_class.__module__.split(".")[1]
        datasets.append({"name": name, "category": category, "oracle": oracle, "oracle_is_json": oracle_is_json})
    return {"version": version("reasoning-gym"), "datasets": datasets}


def gymnasium_group(spec: EnvSpec) -> str | None:
    """The group of Gymnasium's own environments that an environment belongs to, or None if it is not one of ours."""
    entry_point = spec.entry_point if isinstance(spec.entry_point, str) else ""
    return next((group for group in GYMNASIUM_GROUPS if entry_point.startswith(f"gymnasium.envs.{group}.")), None)


def gymnasium_registry() -> dict[str, Any]:
    """Describe the environments of the installed Gymnasium: toy text, classic control, Box2D and MuJoCo.

    Returns:
        ``version`` of Gymnasium and ``environments``: for each the newest version's ``id``, its ``group`` (one of
        `GYMNASIUM_GROUPS`), and the class names of its ``action_space`` and its ``observation_space``.
    """
    environments = []
    for env_id, spec in sorted(gymnasium.registry.items()):
        group = gymnasium_group(spec)
        if group is None or spec.version != find_highest_version(spec.namespace, spec.name):
            continue
        env = gymnasium.make(env_id)
        spaces = {"action_space": type(env.action_space).__name__, "observation_space": type(env.observation_space).__name__}
        environments.append({"id": env_id, "group": group, **spaces})
        env.close()
    return {"version": version("gymnasium"), "environments": environments}


TEXTARENA_WRAPPERS = {
    "LLMObservationWrapper": ("shows", "all"),
    "SettlersOfCatanObservationWrapper": ("shows", "all"),
    "GameMessagesObservationWrapper": ("shows", "messages"),
    "GameMessagesAndCurrentBoardObservationWrapper": ("shows", "messages and board"),
    "GameBoardObservationWrapper": ("shows", "board"),
    "ActionFormattingWrapper": ("moves", "brackets"),
    "ClipCharactersActionWrapper": ("moves", "clips"),
}
"""What the wrappers of TextArena do, by the names of their classes."""

TEXTARENA_MISSING = {
    # f-strings with the same quotes inside (PEP 701), although the package says that it runs on 3.10
    **dict.fromkeys(("Checkers", "Chess", "IteratedStagHunt", "ReverseTicTacToe", "UltimateTexasHoldem"), "Python 3.12"),
    # a model on OpenRouter plays the game master or the jury
    **dict.fromkeys(("Debate", "GuessWho", "ScenarioPlanning", "TwentyQuestions"), "OPENROUTER_API_KEY"),
    **dict.fromkeys(("ScorableGames", "UsedCarNegotiation"), "its data files, which the package does not contain"),
    "BabyAiText": "the abandoned packages gym and babyai_text",
    "Klondike": "a repair: its module is a SyntaxError",
    "UsedCar": "its module, which the package does not contain",
}
"""What the games of textarena 0.7.4 lack that do not run everywhere, by the names of their modules."""

TEXTARENA_PLAYERS = {
    # any number is accepted, but two sit at these boards
    "QuantumTicTacToe": (2, 2, 2),
    "SpiteAndMalice": (2, 2, 2),
    # the numbers of players that their documentation gives
    "MarketEntryGame": (4, 2, 15),
    "PublicGoodsGame": (4, 2, 15),
    "ScorableGames": (2, 2, 15),
    # not to be asked where they do not run
    **dict.fromkeys(("BabyAiText", "GuessWho", "Klondike", "TwentyQuestions", "UltimateTexasHoldem"), (1, 1, 1)),
    **dict.fromkeys(("Checkers", "Chess", "Debate", "IteratedStagHunt", "ReverseTicTacToe", "ScenarioPlanning"), (2, 2, 2)),
    **dict.fromkeys(("UsedCar", "UsedCarNegotiation"), (2, 2, 2)),
}
"""Numbers of players (default, least, most) of the games that cannot be asked for them, by the names of their modules."""


def textarena_players(env_id: str, game: str) -> tuple[int, int, int]:
    """Return how many play a game by default, at least and at most: the numbers of up to 15 with which it can be reset."""
    if game in TEXTARENA_PLAYERS:
        return TEXTARENA_PLAYERS[game]
    accepted = []
    for number in range(1, 16):
        try:
            new_game(env_id, {}).reset(num_players=number, seed=0)
        except Exception:  # each game refuses in its own way
            if accepted:
                break
        else:
            accepted.append(number)
    return accepted[0], accepted[0], accepted[-1]


def textarena_registry() -> dict[str, Any]:
    """Describe every environment of the installed TextArena.

    Returns:
        ``version`` of TextArena and ``environments``: for each id without ``-raw`` and ``-train`` its ``game``, its ``players`` (by
        default, at least, at most), what is ``missing`` where it does not run everywhere, and its ``wrappers``: by what is added
        to the id, what a player is shown, and what is done to its moves.
    """
    registry = textarena().envs.registration.ENV_REGISTRY
    environments: dict[str, dict[str, Any]] = {}
    for env_id, spec in registry.items():
        base = env_id.removesuffix("-raw").removesuffix("-train")
        if base not in environments:
            game = spec.entry_point.split(".")[2]
            missing = {"missing": TEXTARENA_MISSING[game]} if game in TEXTARENA_MISSING else {}
            environments[base] = {"id": base, "game": game, "players": textarena_players(env_id, game), **missing, "wrappers": {}}
        described: dict[str, Any] = {"shows": "all", "moves": []}
        for wrapper in spec.default_wrappers or []:
            what, how = TEXTARENA_WRAPPERS[wrapper.__name__]
            if what == "shows":
                described["shows"] = how
            else:
                described["moves"].append(how)
        environments[base]["wrappers"][env_id.removeprefix(base)] = described
    return {"version": version("textarena"), "environments": list(environments.values())}


def one_a_line(registry: dict[str, Any]) -> str:
    """Return the text of a data file with each environment in a line."""
    lines = ",\n".join(json.dumps(environment) for environment in registry["environments"])
    return f'{{"version": {json.dumps(registry["version"])}, "environments": [\n{lines}\n]}}\n'


def pettingzoo_registry() -> dict[str, Any]:
    """Describe the classic games of the installed PettingZoo.

    Returns:
        ``version`` of PettingZoo and ``environments``: for each its ``id`` (``"classic/chess_v6"``) and the number of its ``players``.
    """
    import pettingzoo

    environments = []
    for registered in sorted(map(str, pettingzoo.aec_registry)):
        env_id = registered.replace("-v", "_v")
        if env_id.startswith("classic/"):
            env = pettingzoo.make("aec", env_id)
            environments.append({"id": env_id, "players": len(env.possible_agents)})
            env.close()
    return {"version": version("pettingzoo"), "environments": environments}


def main() -> None:
    """Write the data files."""
    registries = {"reasoning_gym": reasoning_gym_registry(), "gymnasium": gymnasium_registry(), "pettingzoo": pettingzoo_registry()}
    for name, registry in registries.items():
        path = DATA / f"{name}.json"
        path.write_text(json.dumps(registry, indent=1) + "\n")
        print(f"wrote {path}")
    path = DATA / "textarena.json"
    path.write_text(one_a_line(textarena_registry()))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
