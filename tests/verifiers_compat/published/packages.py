"""The packages that stand for published ones: where they are, which model plays them, and what they are given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "packages"

KEYS = {"JUDGE_API_KEY": "judge", "BUYER_KEY": "buyer", "SOME_KEY": "none"}
"""Environment variables that the packages ask for."""


class Package(NamedTuple):
    """One package."""

    env_id: str
    model: str
    arguments: dict[str, Any]
    url_argument: str | None
    """The argument that says where a model of its own is."""
    rewards: list[float]
    """What two rollouts of its first two tasks earn; in groups, four."""

    @property
    def folder(self) -> Path:
        """Its project."""
        return FOLDER / self.env_id.replace("-", "_")

    def arguments_for(self, url: str) -> dict[str, Any]:
        """Return its arguments where models are served at `url`."""
        return self.arguments if self.url_argument is None else {**self.arguments, self.url_argument: url}


PACKAGES = [
    Package("story-judge", "writer", {}, "judge_base_url", [0.0, 0.0, 0.9, 0.9]),
    Package("unit-convert", "converter", {}, None, [1.0, 1.0, 1.0, 1.0]),
    Package("price-haggle", "seller", {}, "buyer_base_url", [0.74, 0.74, 0.750667, 0.750667]),
    Package("shortest-wins", "capitals", {}, None, [0.0, 0.0, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5]),
    Package("city-facts", "guide", {"config": {"taskset": {"bonus": 0.25}}}, None, [1.25, 1.25, 1.25, 1.25]),
    Package("echo-agent", "calculator", {}, None, [0.0, 0.0, 1.0, 1.0]),
]

"""Those that are installed, evaluated and stepped."""

MORE = [
    Package("bank-clerk", "clerk", {}, None, [0.5, 0.5, 1.15, 1.15]),
    Package("guess-thing", "asker", {}, None, [0.2, 0.2, 1.066667, 1.066667]),
    Package("mixed-tasks", "mixer", {"num_sums": 1}, None, [1.0, 1.0, 1.2, 1.2]),
    Package("shelf-mcp", "reader", {}, None, [0.0, 0.0, 1.0, 1.0]),
    Package("hill-gym", "climber", {}, None, [-0.2, -0.2, 0.9, 0.9]),
    Package("word-tower", "wordler", {}, None, [0.18, 0.18, 0.18, 0.18]),
    Package("fix-harbor", "scribe", {}, None, [0.0, 0.0, 1.0, 1.0]),
]
"""One for each further kind of environment: hidden tools, turns, groups, MCP, Gym, TextArena, Harbor."""


def import_path() -> str:
    """Return the ``PYTHONPATH`` under which all of them can be imported without being installed."""
    return os.pathsep.join(str(package.folder) for package in [*PACKAGES, *MORE])
