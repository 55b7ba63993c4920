"""The packages side by side with verifiers 0.1.14: the same rows, prompts, completions, rewards, metrics and stop conditions.

``python scripts/peers.py verifiers`` makes the environment that verifiers runs in. Two kinds of packages are not played there: agents of
Harbor's need its hosted sandboxes, and games of TextArena word lists from the network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.peers import python_of
from tests.verifiers_compat.published.models import served
from tests.verifiers_compat.published.packages import KEYS, MORE, PACKAGES, Package, import_path

PLAY = Path(__file__).parent / "play.py"
ROOT = Path(__file__).parents[3]

PLAYED = [*PACKAGES, *(package for package in MORE if package.env_id not in ("fix-harbor", "word-tower"))]

pytestmark = pytest.mark.peers


def played(command: list[str], out: Path, **environment: str) -> dict[str, Any]:
    """Return what an implementation made of all packages."""
    with served() as server:
        packages = [[package.env_id, package.model, package.arguments_for(server.openai_url)] for package in PLAYED]
        request = json.dumps({"url": server.openai_url, "packages": packages, "out": str(out)})
        subprocess.run([*command, str(PLAY), request], env={**os.environ, **KEYS, **environment}, check=True, timeout=200)
    result: dict[str, Any] = json.loads(out.read_text())
    return result


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """What verifiers and this library made of all packages."""
    peer = python_of("verifiers")
    assert peer.exists(), "there is no verifiers to compare with: python scripts/peers.py verifiers"
    folder = tmp_path_factory.mktemp("played")
    path = import_path()
    theirs = played([str(peer)], folder / "theirs.json", PYTHONPATH=path)
    ours = played([sys.executable, "-m", "verifiers_compat"], folder / "ours.json", PYTHONPATH=os.pathsep.join((path, str(ROOT))))
    return theirs, ours


@pytest.mark.parametrize("package", PLAYED, ids=lambda package: package.env_id)
def test_both_play_the_same(package: Package, both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    theirs, ours = (result[package.env_id] for result in both)
    assert theirs["outputs"]
    if package.env_id == "hill-gym":
        theirs = without_what_follows_the_end(theirs)
    if package.env_id in ("hill-gym", "shelf-mcp"):  # which measure more here
        ours = with_metrics_of(theirs, ours)
    assert ours == theirs


def without_what_follows_the_end(played: dict[str, Any]) -> dict[str, Any]:
    """Return what verifiers made of a game without its last question, which is asked after the end, and the note that precedes it."""

    def shortened(output: dict[str, Any]) -> dict[str, Any]:
        *completion, _ = output["completion"]
        last = {**completion[-1], "content": completion[-1]["content"].removesuffix("\nEpisode already ended.")}
        metrics = {**output["metrics"], "num_turns": output["metrics"]["num_turns"] - 1}
        return {**output, "completion": [*completion[:-1], last], "metrics": metrics}

    return {**played, "outputs": [shortened(output) for output in played["outputs"]]}


def with_metrics_of(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """Return what was played here with those metrics only that verifiers has, too."""
    pairs = zip(ours["outputs"], theirs["outputs"], strict=True)
    outputs = [{**own, "metrics": {name: own["metrics"][name] for name in other["metrics"]}} for own, other in pairs]
    return {**ours, "outputs": outputs}
