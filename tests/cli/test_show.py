"""``vfgym list``, ``vfgym info`` and ``vfgym check``: what they print of environments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.cases import DATASET, GAME, SHORT, cells
from tests.commands import run_vfgym


def listed(*arguments: str) -> list[str]:
    return [cells(line)[0] for line in run_vfgym("list", *arguments).stdout.splitlines()[1:]]


def test_list_shows_ids_and_a_pattern_that_fits_none_is_refused() -> None:
    lines = run_vfgym("list").stdout.splitlines()
    assert len(lines) > 110
    assert [DATASET, "reasoning tasks: arithmetic"] in [cells(line) for line in lines]
    stderr = run_vfgym("list", "leg_cuonting", exit_code=2).stderr
    assert "no id matches 'leg_cuonting'. Near are " in stderr
    assert DATASET in stderr


@pytest.mark.parametrize(
    ("pattern", "found"), [("gymnasium/frozenlake", [GAME, "gymnasium/FrozenLake8x8-v1"]), ("gym*lake-v?", [GAME]), (GAME.upper(), [GAME])]
)
def test_list_shows_ids_with_a_part_or_of_a_pattern(pattern: str, found: list[str]) -> None:
    assert listed(pattern) == found


def test_info_shows_an_example_and_its_answer() -> None:
    text = run_vfgym("info", DATASET).stdout
    for part in ("evaluation tasks", "check_answer_reward_func", "MessageSpace", "how many legs", "a right answer:\n<answer>"):
        assert part in text


@pytest.mark.parametrize(
    ("env_id", "env_args", "lines", "not_there"),
    [
        (GAME, '{"max_turns": 7}', [r"evaluation tasks +endless", r"turns +7", r"game's action space +Discrete\(4\)"], "a right answer"),
        (GAME, '{"max_turns": -1}', [r"turns +unlimited", r"game's observation space +Discrete\(16\)"], "tool "),
        (GAME, '{"as_tool": true}', [r"tool act: .*", r"arguments +\{.*'as_tool': True\}"], "a right answer"),
        (SHORT, '{"reward": "group"}', [r"evaluation tasks +4", r"goes back +yes", r"The rubric scores whole groups: .*"], "an example"),
        (
            "pettingzoo/tictactoe-v3",
            '{"seat": 1}',
            [r"players +2: player_1, player_2", r"the policy's seat +1", r"game's action space +Discrete\(9\)"],
            "self-play",
        ),
        ("pettingzoo/tictactoe-v3", '{"opponents": "self"}', [r"the policy's seat +every one \(self-play\)"], "a right answer"),
        (GAME, '{"observe": "image"}', [r"\[image 256x256\]"], "base64"),
    ],
)
def test_info_shows_what_an_environment_is(env_id: str, env_args: str, lines: list[str], not_there: str) -> None:
    if env_id.startswith("pettingzoo"):
        pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    text = run_vfgym("info", env_id, "--env-args", env_args).stdout
    for line in lines:
        assert re.search(f"^{line}$", text, re.MULTILINE), text
    assert not_there not in text


def test_check_says_which_promises_are_kept_or_broken(directory: Path) -> None:
    lines = run_vfgym("check", GAME).stdout.splitlines()
    assert cells(lines[0]) == ["promise", "kept", "detail"]
    assert {cells(line)[1] for line in lines[1:]} == {"yes"}
    (directory / "broken.py").write_text("import gymnasium, mine\ngymnasium.register('Broken-v0', lambda: mine.make('broken'))\n")
    assert cells(run_vfgym("check", "broken:Broken-v0", exit_code=1).stdout.splitlines()[1])[1] == "NO"


def test_a_game_that_cannot_run_here_says_why() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    stderr = run_vfgym("check", "textarena/Klondike-v0", exit_code=2).stderr
    assert stderr.startswith("error: Klondike-v0 cannot be played here: it needs a repair")
    assert stderr.count("\n") == 1
    assert "cannot run here: needs a repair" in run_vfgym("list", "Klondike-v0-train").stdout
