"""Forty environments of all families in tmux, narrow and wide: what is not an answer changes nothing, and saved games replay."""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vfgym
from tests.registered import playable_ids
from tests.sampling import SEED
from vfgym.play import Game
from vfgym.play.hints import hint_for
from vfgym.results import load_results
from vfgym.runs.replicas import make_env

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

IDS_OF_EACH = {"gymnasium": 11, "pettingzoo": 9, "reasoning-gym": 8, "textarena": 12}
ALL_IDS = playable_ids()
SAMPLE = [
    env_id
    for family, count in IDS_OF_EACH.items()
    for env_id in random.Random(SEED).sample([each for each in ALL_IDS if each.startswith(f"{family}/")], count)
]
SECONDS = 120.0
"""How long a prompt may take to come."""


class Tmux:
    """One command in a terminal of tmux, on a server of its own."""

    def __init__(self, command: list[str], folder: Path, columns: int) -> None:
        self._socket = folder / "tmux"
        code = folder / "exit_code"
        self._exit_code = code
        line = f"{shlex.join(command)}; echo $? > {shlex.quote(str(code))}; sleep 600"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", "300", "-c", str(folder), line)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-S", str(self._socket), *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def close(self) -> None:
        self._tmux("kill-server")

    def screen(self, *, joins_lines: bool = False) -> str:
        return self._tmux("capture-pane", "-p", *(["-J"] if joins_lines else [])).rstrip()

    def wait_for(self, *ends: str) -> str:
        """Return the screen once it ends with a prompt, or the command has ended."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            screen = self.screen()
            if self._exit_code.exists() or screen.endswith(ends):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"no prompt came:\n{self.screen()}")

    def type(self, line: str) -> str:
        """Type a line on a cleared screen, and return what is shown at the next prompt."""
        self._tmux("clear-history")
        self._tmux("send-keys", "-l", line)
        return self.press("Enter")

    def press(self, key: str, *ends: str) -> str:
        before = self.screen()
        self._tmux("send-keys", key)
        deadline = time.monotonic() + SECONDS
        while self.screen() == before and not self._exit_code.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.wait_for(*(ends or ("\n>",)))

    @property
    def exit_code(self) -> int:
        deadline = time.monotonic() + SECONDS
        while not (self._exit_code.exists() and self._exit_code.read_text().strip()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return int(self._exit_code.read_text())


@pytest.fixture
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Tmux, str]]:
    env_id, columns = request.param
    root = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {root!r}); import vfgym.cli; vfgym.cli.main()"
    tmux = Tmux([sys.executable, "-c", code, "play", env_id, "--seed", "5"], tmp_path, columns)
    yield tmux, env_id
    tmux.close()


def leave(tmux: Tmux, folder: Path) -> dict[str, Any]:
    """Leave the game, and return its row."""
    assert "Leave the game?" in tmux.press("C-d", "leave?")
    tmux.press("C-d")
    assert tmux.exit_code == 0, tmux.screen()
    return row_in(folder)


def row_in(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("outputs/evals/*/*")
    (row,) = load_results(path)["outputs"]
    return row


@pytest.mark.parametrize("terminal", [(env_id, columns) for env_id in SAMPLE for columns in (45, 110)], indirect=True, ids=str)
def test_a_game_in_tmux(terminal: tuple[Tmux, str], tmp_path: Path) -> None:
    tmux, env_id = terminal
    if "saved in" in tmux.wait_for("\n>"):  # an opponent folded before the first turn
        assert vfgym.replay(row_in(tmp_path), env_id).difference is None
        return
    for line in ("help", "?", "", "/", "/help", "/?", "/moves", "/tools", "/undo", "/show", "/no-such-command"):
        shown = tmux.type(line)
        assert "Traceback" not in shown, shown
    assert "Leave the game?" in tmux.press("C-d", "leave?")
    tmux.type("n")
    hint = tmux.type("/hint")
    row = leave(tmux, tmp_path)
    assert (row["stop_condition"], row["is_completed"], row["trajectory"]) == ("quit", False, [])
    assert ("answer" in row or "a possible move" in hint.replace("\n", " ")) == ("no hint" not in hint)
    observation, _ = make_env(env_id, {}).reset(seed=5)
    assert row["prompt"] == observation
    assert vfgym.replay(row, env_id).difference is None


def accepted_moves(env_id: str) -> list[str]:
    """Return up to three moves of one line that the game of the seed takes, one after the other."""
    env = make_env(env_id, {})
    game, rng, moves = Game(env, 5), np.random.default_rng(SEED), []
    for _ in range(30):
        hint = hint_for(game, rng)
        move = "I do not know" if hint is None else hint.partition(": ")[2].replace("\n", " ")
        if game.answer(move) is None:
            moves.append(move)
        if game.is_over or len(moves) == 3:
            break
    env.close()
    return moves


@pytest.mark.parametrize("terminal", [(env_id, 110) for env_id in SAMPLE[::4]], indirect=True, ids=str)
def test_moves_in_tmux_are_saved_as_they_were_typed(terminal: tuple[Tmux, str], tmp_path: Path) -> None:
    tmux, env_id = terminal
    moves = accepted_moves(env_id)
    tmux.wait_for("\n>")
    for move in moves:
        shown = tmux.type(move)
    is_over = "saved in" in shown
    row = row_in(tmp_path) if is_over else leave(tmux, tmp_path)
    assert [step["completion"][-1]["content"] for step in row["trajectory"]] == moves
    assert vfgym.replay(row, env_id).difference is None
