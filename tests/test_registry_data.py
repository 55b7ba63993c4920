"""The data files that vfgym registers its ids from describe the installed packages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scripts import generate_registry
from vfgym.wrappers.reasoning_gym.package import reasoning_gym

ADVICE = "run `python scripts/generate_registry.py`"


def data_file(name: str) -> dict[str, Any]:
    return json.loads((generate_registry.DATA / f"{name}.json").read_text())


def test_reasoning_gym_ids_are_those_of_the_installed_package() -> None:
    """The whole family compares where right answers stand, too."""
    pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")
    known = {dataset["name"]: dataset["category"] for dataset in data_file("reasoning_gym")["datasets"]}
    installed = reasoning_gym().factory.DATASETS
    assert known == {name: kind.__module__.split(".")[1] for name, (kind, _) in installed.items()}, ADVICE


@pytest.mark.exhaustive
def test_right_answers_stand_where_the_installed_package_has_them() -> None:
    pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")
    assert data_file("reasoning_gym")["datasets"] == generate_registry.reasoning_gym_registry()["datasets"], ADVICE


def test_gymnasium_ids_are_those_of_the_installed_package() -> None:
    assert data_file("gymnasium")["environments"] == generate_registry.gymnasium_registry()["environments"], ADVICE


def without_players(environments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in environment.items() if key != "players"} for environment in environments]


def test_textarena_ids_are_those_of_the_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    monkeypatch.setattr(generate_registry, "textarena_players", lambda env_id, game: None)
    installed = without_players(generate_registry.textarena_registry()["environments"])
    assert without_players(data_file("textarena")["environments"]) == installed, ADVICE


@pytest.mark.exhaustive
def test_textarena_players_are_those_with_whom_games_can_be_reset() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    registry = generate_registry.textarena_registry()
    assert data_file("textarena") == json.loads(generate_registry.one_a_line(registry)), ADVICE
