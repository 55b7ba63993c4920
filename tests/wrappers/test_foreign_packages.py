"""Games of packages that others publish are played as they are meant: real ones, in an environment of their own.

``python scripts/peers.py games`` makes it. What each rule does is tested beside it, with small games.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from scripts.peers import python_of
from tests.wrappers.foreign_packages import PACKAGES

pytestmark = pytest.mark.peers

TOLD = {
    "crafter": ["You are playing Crafter.", "unlock an achievement", "5 (do)"],
    "flappy-bird-gymnasium": ["0 (IDLE), 1 (FLAP)"],
    "highway-env": ["0 (LANE_LEFT)", "presence, x, y, vx, vy"],
    "minatar": ["You move a paddle", "0 (no-op), 1 (left), 2 (right)", "p paddle, b ball", "\nr "],
    "mpe2": ["You are playing Simple Tag.", "predator-prey", "0 (no_action), 1 (move_left)"],
    "nle": ["You play NetHack", "0 (MORE)", "(CompassDirection N)", "HP:"],
    "pettingzoo[butterfly]": ["Zombies walk", "ACTION_FORWARD", "magnitude of the distance"],
    "popgym": ["answer how often that card was dealt", "[card that was dealt, card that is asked for]"],
    "scienceworld": ["You are playing ScienceWorld.", "boil water", "Legal actions: "],
    "textworld": ["You are playing TextWorld.", "Legal actions: ", "-="],
    "textworld-express": ["find the coin", "Legal actions: "],
    "vizdoom": ["shoot it", "ATTACK", "MOVE_LEFT"],
}
IMAGES = {"crafter", "vizdoom"}
WARNED = {"flappy-bird-gymnasium": "180 numbers of an observation have no labels"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PACKAGES)
def test_a_published_package_is_played(name: str, tmp_path: Path) -> None:
    python = python_of("games")
    if not python.exists():
        pytest.skip("there are no foreign games to play: python scripts/peers.py games")
    program = Path(__file__).parent / "foreign_packages.py"
    done = subprocess.run([str(python), str(program), name], capture_output=True, text=True, cwd=tmp_path, timeout=250, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    played = json.loads(done.stdout.splitlines()[-1])
    assert [text for text in TOLD[name] if text not in played["told"]] == []
    assert ("image_url" in played["types"]) == (name in IMAGES)
    assert len(played["warned"]) == (name in WARNED)
    assert WARNED.get(name, "") in "".join(played["warned"])
    assert (played["error"], played["invalid"]) == (None, 0)
