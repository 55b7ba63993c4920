"""``vfgym play`` on real terminals: what is typed, what is shown, how it ends, and what is saved."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.cli.cases import GAME
from tests.commands import run_vfgym
from tests.terminals import CTRL_C, CTRL_D, SECONDS, play_on_terminal
from vfgym.model_server import ModelServer
from vfgym.results import load_results
from vfgym.runs.replicas import make_env

RULES = '{"is_slippery": false}'


def saved_row(directory: Path, *, env_args: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the only row that was saved, after it was replayed to the same reward."""
    (path,) = directory.glob("outputs/evals/*/*")
    (row,) = load_results(path)["outputs"]
    assert vfgym.replay(row, make_env(row["env_id"], env_args or {})).difference is None
    return row


def answers(row: dict[str, Any]) -> list[str]:
    return [message["content"] for message in row["completion"] if message["role"] == "assistant"]


def test_a_game_is_played_saved_and_recorded(directory: Path) -> None:
    pytest.importorskip("PIL", reason="needs the extra images")
    keys = ["help\n", "?\n", "\n", "/\n", "nonsense\n", "right\n", "/undo\n", "down\n", CTRL_D, "n\n", "right\n"]
    seen = play_on_terminal(GAME, "--seed", "1", "--env-args", RULES, "--record", "game.gif", keys=keys, columns=45)
    assert seen.exit_code == 0, seen.text
    for part in ("You are playing FrozenLake", "is not a move", "costs no turn", "taken back", "Leave the game?", "F[H]FH"):
        assert part in seen.text
    assert "The game is over.\n\nYour reward: 0\n  game_reward: 0\n  num_turns: 2\n" in seen.text
    assert max(map(len, seen.text[seen.text.index(GAME) : seen.text.index("saved in")].splitlines())) <= 45
    row = saved_row(directory, env_args={"is_slippery": False})
    assert (row["stop_condition"], row["seed"], answers(row)) == ("game_over", 1, ["down", "right"])
    assert row["human"] == {"hints": 0, "undone": 1, "refused": 1}
    assert "With 1 move taken back, 1 answer refused\n" in seen.text
    assert (directory / "game.gif").read_bytes().startswith(b"GIF8")


def test_ctrl_d_asks_once_and_leaves_a_saved_game_behind(directory: Path) -> None:
    seen = play_on_terminal(GAME, "--seed", "1", keys=["/say help\n", "up\n", CTRL_D, CTRL_D], term="dumb")
    assert seen.exit_code == 0, seen.text
    assert seen.text.count("Leave the game?") == 1
    assert "\x1b" not in seen.raw, "a simple terminal gets no escape sequences"
    row = saved_row(directory)
    assert (row["stop_condition"], row["is_completed"], answers(row)) == ("quit", False, ["up"])


@pytest.mark.parametrize("keys", [["up\n", CTRL_C], ["up\n"]], ids=["Ctrl-C", "closed"])
def test_ctrl_c_and_a_terminal_that_is_closed_leave_a_saved_game_behind(keys: list[str], directory: Path) -> None:
    seen = play_on_terminal(GAME, "--seed", "1", keys=keys)
    if CTRL_C in keys:
        assert seen.exit_code == 130, seen.text
    assert "Traceback" not in seen.text
    row = saved_row(directory)
    assert (row["stop_condition"], answers(row)) == ("quit", ["up"])


def test_ctrl_c_takes_back_the_move_that_a_model_thinks_about(directory: Path) -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    asked: list[Any] = []
    press: list[Callable[[str], object]] = []
    is_over = threading.Event()

    def opponent(request: Any) -> str:
        asked.append(request)
        if len(asked) > 1:
            press[0](CTRL_C)
            is_over.wait(SECONDS)
        return "[1]"

    with ModelServer({"m": opponent}) as server:
        arguments = ["textarena/TicTacToe-v0", "--seed", "1", "--opponent", "model:m", "--base-url", server.openai_url]
        seen = play_on_terminal(*arguments, keys=["[0]\n", "[4]\n"], on_open=press.append, OPENAI_API_KEY="key-of-a-test")
        is_over.set()
    assert seen.exit_code == 130, seen.text
    assert "Traceback" not in seen.text
    (path,) = directory.glob("outputs/evals/*/*")
    results = load_results(path)
    assert answers(results["outputs"][0]) == ["[0]"]
    assert results["metadata"]["env_args"]["opponents"] == "model:m"
    assert results["outputs"][0]["stop_condition"] == "quit"


def test_two_people_play_at_one_terminal(directory: Path) -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    keys = ["[0]\n", "\n", "[3]\n", "[4]\n", "\n", "[1]\n", "\n", "/undo\n", "\n", "[1]\n", "\n", "[4]\n", "\n", "[2]\n"]
    seen = play_on_terminal("textarena/TicTacToe-v0", "--seed", "1", "--opponent", "human", keys=keys)
    assert seen.exit_code == 0, seen.text
    assert "(player 0, player 1: all of them sit here, and take turns)" in seen.text
    assert "(player 1 is to move)" in seen.text
    assert seen.text.count("nothing was sent: press Enter alone") == 1
    assert seen.raw.count("\x1b[3J") == 6, "cleared between players, and what can be scrolled back to"
    assert "player 0 won." in seen.text
    assert seen.text.count("You are Player 0") == 1, "what a player was shown is not shown again"
    row = saved_row(directory, env_args={"opponents": "self"})
    assert [step["completion"][0]["content"] for step in row["trajectory"]] == ["[0]", "[3]", "[1]", "[4]", "[2]"]


def test_json_stands_alone_on_standard_output(directory: Path) -> None:
    code = (
        "import os, pty, subprocess, sys\n"
        "master, slave = pty.openpty()\n"
        "command = [sys.executable, '-c', 'import vfgym.cli; vfgym.cli.main()', 'play', sys.argv[1], '--seed', '1', '--json']\n"
        "process = subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)\n"
        "os.write(master, b'nonsense\\nup\\n/quit\\ny\\n')\n"
        "stdout, stderr = process.communicate()\n"
        "assert 'You are playing' in stderr and 'saved in' in stderr, stderr\n"
        "print(stdout)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, GAME], capture_output=True, text=True, timeout=SECONDS, check=True)
    told = json.loads(done.stdout)
    row = saved_row(directory)
    assert told == {
        "path": told["path"],
        "ending": "cut",
        "human": {"hints": 0, "undone": 0, "refused": 1},
        **{name: row[name] for name in ("reward", "stop_condition", "is_completed", "is_truncated", "seed")},
    }
    assert (Path(told["path"]) / "results.jsonl").is_file()


def test_without_a_terminal_there_is_nobody_to_play(directory: Path) -> None:
    done = run_vfgym("play", GAME, stdin="up\n", exit_code=2)
    assert done.stdout == ""
    assert "vfgym play reads from a terminal, and standard input is none" in done.stderr.splitlines()[-1]
    assert [*directory.iterdir()] == [directory / "mine.py"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--record", "game.png"], "the file must end in .gif"),
        (["--opponent", "random"], "--opponent says who takes the other seats of a game, and gymnasium/FrozenLake-v1 has none"),
        (["--opponent", "model:m"], "say where m is: --provider"),
        (["--opponent", "nobody"], "there is no agent 'nobody'"),
        (["--base-url", "http://localhost:1"], "say where an --opponent model:NAME is"),
        (["--seed", "-1"], "--seed must be an integer from 0"),
        (["--opponent", "random", "--env-args", '{"opponents": "self"}'], "give one of them"),
    ],
)
def test_wrong_input_is_refused_and_writes_nothing(arguments: list[str], message: str, directory: Path) -> None:
    assert message in run_vfgym("play", GAME, *arguments, exit_code=2).stderr
    assert [*directory.iterdir()] == [directory / "mine.py"]
