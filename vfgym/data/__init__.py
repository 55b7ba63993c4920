"""What vfgym knows of the packages behind its registered ids without importing them.

``scripts/generate_registry.py`` writes the JSON files beside this module.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, TypedDict


class ReasoningGymDataset(TypedDict):
    """A dataset of reasoning-gym."""

    name: str
    category: str
    oracle: str | None
    """Where an entry holds an answer that scores 1.0: ``"answer"``, ``"metadata:<key>"``, or None where it holds none."""
    oracle_is_json: bool
    """Whether that value must be JSON-encoded to be an answer."""


class GymnasiumEnvironment(TypedDict):
    """An environment of Gymnasium."""

    id: str
    group: str
    """``"toy_text"`` or ``"classic_control"``."""
    action_space: str
    observation_space: str


@functools.cache
def reasoning_gym_datasets() -> dict[str, ReasoningGymDataset]:
    """Return the datasets of reasoning-gym by name."""
    datasets: list[ReasoningGymDataset] = _read("reasoning_gym")["datasets"]
    return {dataset["name"]: dataset for dataset in datasets}


@functools.cache
def gymnasium_environments() -> dict[str, GymnasiumEnvironment]:
    """Return those environments of Gymnasium that are registered as chat environments, by id."""
    environments: list[GymnasiumEnvironment] = _read("gymnasium")["environments"]
    return {environment["id"]: environment for environment in environments}


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    return content
