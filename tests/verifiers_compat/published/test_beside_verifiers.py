"""The packages side by side with verifiers 0.1.14: the same rows, prompts, completions, rewards, metrics and stop conditions.

``python scripts/peers.py verifiers`` makes the environment that verifiers runs in.
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
from tests.verifiers_compat.published.packages import KEYS, PACKAGES, import_path

PLAY = Path(__file__).parent / "play.py"
ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.peers


def played(command: list[str], out: Path, **environment: str) -> dict[str, Any]:
    """Return what an implementation made of all packages."""
    with served() as server:
        packages = [[package.env_id, package.model, package.arguments_for(server.openai_url)] for package in PACKAGES]
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


@pytest.mark.parametrize("env_id", [package.env_id for package in PACKAGES])
def test_both_play_the_same(env_id: str, both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    theirs, ours = (result[env_id] for result in both)
    assert theirs["outputs"]
    assert ours == theirs
