"""Task folders in Harbor's format, as data: what a task says, what it needs, and what its tests gave."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError, InfraError, did_you_mean

_MARKS_OF_A_TASK = ("task.toml", "instruction.md", "tests")
"""A folder with one of these is meant as a task, and must have all that one needs."""
_NEEDED = ("task.toml", "instruction.md", "tests/test.sh")
_NOT_OFFERED = (
    ("steps", "several steps"),
    ("environment.gpus", "GPUs"),
    ("environment.tpu", "TPUs"),
    ("environment.mcp_servers", "MCP servers"),
    ("environment.healthcheck", "a health check"),
    ("agent.user", "a user for the agent"),
    ("verifier.user", "a user for its tests"),
    ("verifier.environment", "an environment for its tests alone"),
    ("verifier.collect", "commands in services"),
)
"""Fields of ``task.toml``, and what they ask for that is not offered here."""


@dataclass(frozen=True)
class HarborTask:
    """One task: a folder with ``task.toml``, ``instruction.md``, ``tests/test.sh``, and perhaps ``environment`` and ``solution``."""

    name: str
    folder: Path
    instruction: str
    config: Mapping[str, Any]
    """``task.toml``, with dates as text."""

    def get(self, path: str, default: Any = None) -> Any:
        """Return a field of ``task.toml`` by its dotted path."""
        value: Any = self.config
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return default if value is None else value

    def variables(self, path: str) -> dict[str, str]:
        """Return a table of environment variables; ``${NAME}`` and ``${NAME:-default}`` stand for those of this process.

        Raises:
            ConfigurationError: If one has neither a value nor a default.
        """
        return {name: self._expand(path, str(value)) for name, value in self.get(path, {}).items()}

    def _expand(self, path: str, text: str) -> str:
        def value_of(match: re.Match[str]) -> str:
            value = os.environ.get(match["name"], match["default"])
            if value is None:
                raise ConfigurationError(f"the task {self.name!r} needs the environment variable {match['name']} ({path} in task.toml)")
            return value

        return re.sub(r"\$\{(?P<name>\w+)(:-(?P<default>[^}]*))?\}", value_of, text)

    @property
    def environment(self) -> Path:
        """The folder that its image is built from, if there is one."""
        return self.folder / "environment"

    @property
    def solution(self) -> Path:
        """The folder of the solution that it brings, if it does."""
        return self.folder / "solution"

    def what_is_not_offered(self) -> str | None:
        """Return what the task asks for that is not offered here; None where there is nothing."""
        if self.get("environment.os", "linux") != "linux":
            return f"the system {self.get('environment.os')}"
        if (self.environment / "docker-compose.yaml").exists():
            return "several containers (environment/docker-compose.yaml)"
        return next((f"{what} ({path} in task.toml)" for path, what in _NOT_OFFERED if self.get(path)), None)


def read_tasks(dataset_path: str | os.PathLike[str], names: Iterable[str] | None = None) -> list[HarborTask]:
    """Read the tasks of a folder, in the order of their names. The folder may be one task itself.

    Args:
        dataset_path: The folder.
        names: Which tasks, by the names of their folders; None for all.

    Raises:
        ConfigurationError: If there is none, one is not there, or a file of one is missing or cannot be read.
    """
    root = Path(dataset_path).absolute()
    if not root.is_dir():
        raise ConfigurationError(f"dataset_path must be a folder of tasks, and there is no folder {root}")
    folders = [root] if (root / "task.toml").exists() else sorted(root.iterdir())
    found = {folder.name: folder for folder in folders if any((folder / mark).exists() for mark in _MARKS_OF_A_TASK)}
    if not found:
        raise ConfigurationError(f"there is no task in {root}: a task is a folder with {', '.join(_NEEDED)}")
    if isinstance(names, str):
        raise ConfigurationError(f"tasks must be a list of names, got {names!r}")
    chosen = list(found) if names is None else list(names)
    for name in chosen:
        if name not in found:
            raise ConfigurationError(f"there is no task {name!r} in {root}.{did_you_mean(name, found)}")
    return [_read_task(found[name]) for name in chosen]


def _read_task(folder: Path) -> HarborTask:
    for name in _NEEDED:
        if not (folder / name).is_file():
            raise ConfigurationError(f"the task {folder.name!r} has no {name}: a task is a folder with {', '.join(_NEEDED)}")
    try:
        config = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
        instruction = (folder / "instruction.md").read_text(encoding="utf-8")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the task {folder.name!r} cannot be read: {error}") from error
    return HarborTask(folder.name, folder, instruction, parse_json(json.dumps(config, default=str)))


def read_reward(name: str, text: str) -> float:
    """Return the reward that tests wrote.

    Args:
        name: Name of the file: ``reward.txt`` has a number, any other an object in JSON with the number as ``reward``, or as its only one.
        text: What is in it.

    Raises:
        InfraError: If there is no finite number.
    """
    try:
        value = float(text) if name == "reward.txt" else _only_reward(parse_json(text))
    except (ValueError, TypeError, LookupError):
        value = math.nan
    if not math.isfinite(value):
        raise InfraError(f"the tests wrote no number as their reward to {name}: {text[:200]!r}")
    return value


def _only_reward(rewards: Mapping[str, Any]) -> float:
    if "reward" in rewards:
        return float(rewards["reward"])
    [value] = rewards.values()
    return float(value)
