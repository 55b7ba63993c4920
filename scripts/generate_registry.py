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
from gymnasium.spaces import Discrete

DATA = Path(__file__).parent.parent / "vfgym" / "data"
GYMNASIUM_GROUPS = ("toy_text", "classic_control")


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
    """Describe the toy-text and classic-control environments of the installed Gymnasium that have discrete actions.

    Returns:
        ``version`` of Gymnasium and ``environments``: for each the newest version's ``id``, its ``group`` (``"toy_text"`` or
        ``"classic_control"``), and the class names of its ``action_space`` and its ``observation_space``.
    """
    environments = []
    for env_id, spec in sorted(gymnasium.registry.items()):
        group = gymnasium_group(spec)
        if group is None or spec.version != find_highest_version(spec.namespace, spec.name):
            continue
        env = gymnasium.make(env_id)
        if isinstance(env.action_space, Discrete):
            spaces = {"action_space": type(env.action_space).__name__, "observation_space": type(env.observation_space).__name__}
            environments.append({"id": env_id, "group": group, **spaces})
        env.close()
    return {"version": version("gymnasium"), "environments": environments}


def main() -> None:
    """Write both data files."""
    for name, registry in {"reasoning_gym": reasoning_gym_registry(), "gymnasium": gymnasium_registry()}.items():
        path = DATA / f"{name}.json"
        path.write_text(json.dumps(registry, indent=1) + "\n")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
