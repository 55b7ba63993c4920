"""The command line, run as its users run it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands import run_vfgym
from tests.programs import run_python
from vfgym import __version__
from vfgym.cli.table import render_table
from vfgym.results import load_results

DATASET = "reasoning-gym/leg_counting-v0"
GAME = "gymnasium/FrozenLake-v1"
SECONDS = 240.0
"""How long a command may hang before its test fails."""

AGENTS = """
import asyncio

def forty_two(observation, info):
    return "42"

def one_argument(observation):
    return "42"

def fails(observation, info):
    raise KeyError("a bug of mine")

def never_returns(observation, info):
    while True:
        pass

async def waits(observation, info):
    print("waiting", flush=True)
    await asyncio.Event().wait()
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_agents.py").write_text(AGENTS)
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "import vfgym.cli; vfgym.cli.main()", *arguments]


def run(*arguments: str, stdin: str = "", exit_code: int = 0, columns: int | None = None) -> subprocess.CompletedProcess[str]:
    environment = {} if columns is None else {"COLUMNS": str(columns)}
    return run_vfgym(*arguments, stdin=stdin, exit_code=exit_code, **environment)


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line)


# Looking


def test_version_and_help() -> None:
    assert run("--version").stdout == f"vfgym {__version__}\n"
    help_text = run("--help").stdout
    assert all(f"\n  {name} " in help_text for name in ("list", "info", "eval", "check", "play"))
    assert run(exit_code=2).stdout == help_text


def test_help_loads_no_environment_package() -> None:
    code = (
        "import sys, vfgym.cli\nsys.argv = ['vfgym', '--help']\n"
        "try: vfgym.cli.main()\nfinally: print({'rich', 'reasoning_gym', 'datasets', 'matplotlib'} & set(sys.modules))"
    )
    assert run_python(code, check=True).stdout.endswith("set()\n")


def test_list_shows_ids_with_a_description() -> None:
    lines = run("list").stdout.splitlines()
    assert len(lines) > 110
    assert [DATASET, "reasoning tasks: arithmetic"] in [cells(line) for line in lines]
    assert [cells(line)[0] for line in run("list", "gymnasium/frozenlake").stdout.splitlines()[1:]] == [GAME, "gymnasium/FrozenLake8x8-v1"]
    assert [cells(line)[0] for line in run("list", "gym*lake-v?").stdout.splitlines()[1:]] == [GAME]
    assert "no id matches 'leg_cuonting'" in run("list", "leg_cuonting", exit_code=2).stderr


def test_info_shows_an_example_and_its_answer() -> None:
    text = run("info", DATASET).stdout
    for part in ("evaluation tasks", "check_answer_reward_func", "MessageSpace", "how many legs", "a right answer:\n<answer>"):
        assert part in text
    text = run("info", GAME, "--env-args", '{"max_turns": 7}').stdout
    assert re.search(r"^evaluation tasks +endless$", text, re.MULTILINE)
    assert re.search(r"^turns +7$", text, re.MULTILINE)
    assert "a right answer" not in text


def test_check_says_which_promises_are_kept() -> None:
    lines = run("check", GAME).stdout.splitlines()
    assert cells(lines[0]) == ["promise", "kept", "detail"]
    assert {cells(line)[1] for line in lines[1:]} == {"yes"}


def test_list_describes_games_without_importing_them() -> None:
    code = (
        "import sys, vfgym.cli\nsys.argv = ['vfgym', 'list']\n"
        "try: vfgym.cli.main()\nfinally: print({'textarena', 'pettingzoo', 'reasoning_gym'} & set(sys.modules))"
    )
    lines = run_python(code, check=True).stdout.splitlines()
    described = dict(cells(line) for line in lines[:-1])
    assert lines[-1] == "set()"
    assert described["textarena/TicTacToe-v0"] == "game of TextArena for 2 players"
    assert described["textarena/Taboo-v0-city-country-train"] == "game of TextArena for 4 players, told as in training"
    assert described["textarena/GuessTheNumber-v0-raw"] == "game of TextArena for 1 player, moves untouched"
    assert described["pettingzoo/chess-v6"] == "game of PettingZoo for 2 players"
    assert described[GAME] == "game of Gymnasium's toy_text, discrete actions"
    assert not [env_id for env_id, description in described.items() if description.startswith("vfgym.")]


def test_list_names_the_extra_that_is_missing() -> None:
    code = (
        "import sys, vfgym.cli\nsys.argv = ['vfgym', 'list']\n"
        "for name in ('Box2D', 'mujoco', 'pettingzoo', 'reasoning_gym', 'textarena'): sys.modules[name] = None  # as if not installed\n"
        "vfgym.cli.main()"
    )
    lines = run_python(code, check=True).stdout.splitlines()
    described = dict(cells(line) for line in lines)
    extras = {
        "gymnasium/LunarLander-v3": "box2d",
        "gymnasium/Ant-v5": "mujoco",
        "pettingzoo/chess-v6": "pettingzoo",
        DATASET: "reasoning-gym",
        "textarena/TicTacToe-v0": "textarena",
    }
    for env_id, extra in extras.items():
        assert described[env_id].endswith(f" (cannot run here: pip install 'vfgym[{extra}]')")
    assert described[GAME] == "game of Gymnasium's toy_text, discrete actions"


def test_python_runs_it_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "vfgym", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"vfgym {__version__}\n"


def test_info_shows_what_a_game_is() -> None:
    text = run("info", GAME).stdout
    assert "game's action space       Discrete(4)" in text
    assert "game's observation space  Discrete(16)" in text
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    text = run("info", "pettingzoo/tictactoe-v3", "--env-args", '{"seat": 1}').stdout
    assert re.search(r"\nplayers +2: player_1, player_2\nthe policy's seat +1\ngame's action space +Discrete\(9\)\n", text)
    text = run("info", "pettingzoo/tictactoe-v3", "--env-args", '{"opponents": "self"}').stdout
    assert re.search(r"the policy's seat +every one \(self-play\)", text)


def test_info_tells_images_by_their_size() -> None:
    text = run("info", GAME, "--env-args", '{"observe": "image"}').stdout
    assert text.splitlines()[-1] == "[image 256x256]"
    assert "base64" not in text


@pytest.mark.parametrize("name", ["check", "info", "play"])
def test_a_game_that_cannot_run_here_says_why(name: str) -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    stderr = run(name, "textarena/Klondike-v0", exit_code=2).stderr
    assert stderr.startswith("error: Klondike-v0 cannot be played here: it needs a repair")
    assert stderr.count("\n") == 1
    assert "cannot run here: needs a repair" in run("list", "Klondike-v0-train").stdout


def test_check_fails_where_a_promise_is_broken(directory: Path) -> None:
    (directory / "broken.py").write_text(
        "import gymnasium, vfgym\n"
        "def make():\n"
        "    return vfgym.SingleTurnEnv([{'question': '?'}], rubric=vfgym.Rubric(lambda completions: [0.0]))\n"
        "gymnasium.register('Broken-v0', make)\n"
    )
    assert cells(run("check", "broken:Broken-v0", exit_code=1).stdout.splitlines()[1])[1] == "NO"


# Evaluating


def test_eval_compares_agents_and_writes_results(directory: Path) -> None:
    done = run("eval", DATASET, "--agent", "random", "-a", "oracle", "-n", "6", "--env-args", '{"num_eval_examples": 8}')
    header, random, oracle, *where, verdict = done.stdout.splitlines()
    assert cells(header) == ["agent", "reward (95 %)", "check_answer_reward_func", "format_reward_func", "num_turns", "failed", "seconds"]
    assert cells(random)[0] == "random"
    assert cells(oracle)[:3] == ["oracle", "1.000 (0.541 to 1.000)", "1.000"]
    assert cells(oracle)[5] == "0/6"
    assert re.fullmatch(r"oracle: oracle is better than random by \S+ \(95 % interval: \S+ to \S+\) with 6 tasks", verdict)
    assert "6/6 (100%), reward 1.000, 0 failed" in done.stderr
    paths = [Path(line.rpartition(" ")[2]) for line in where]
    assert [path.parent.name for path in paths] == [f"reasoning-gym--leg_counting-v0--agent={name}" for name in ("random", "oracle")]
    results = load_results(directory / paths[1])
    assert [row["reward"] for row in results["outputs"]] == [1.0] * 6
    assert (results["metadata"]["env_id"], results["metadata"]["env_args"]) == (DATASET, {"num_eval_examples": 8})
    assert "reasoning-gym" in results["metadata"]["versions"]


def test_eval_plays_an_agent_of_the_current_directory_several_times(directory: Path) -> None:
    done = run("eval", DATASET, "--agent", "my_agents:forty_two", "-n", "2", "-r", "2", "-s", "3", "--output-dir", "runs")
    assert cells(done.stdout.splitlines()[0])[5:9] == ["pass@1", "pass@2", "pass^1", "pass^2"]
    (path,) = (directory / "runs" / "evals").glob("*/*")
    metadata = load_results(path)["metadata"]
    assert (metadata["model"], metadata["seed"], metadata["rollouts_per_example"]) == ("my_agents:forty_two", 3, 2)


def test_eval_plays_chosen_tasks_and_keeps_what_was_asked_for(directory: Path) -> None:
    eval_leg_counting = ("eval", "reasoning-gym/leg_counting-v0", "--agent", "random")
    run(*eval_leg_counting, "--split", "train", "--example-ids", "5, 3", "--state-column", "timing", "--max-retries", "1")
    rows = [json.loads(line) for path in directory.glob("outputs/evals/*/*/results.jsonl") for line in path.read_text().splitlines()]
    assert sorted(row["example_id"] for row in rows) == [3, 5]
    assert all("timing" in row for row in rows)
    for wrong, said in [(["--example-ids", "3,x"], "'3,x'"), (["--example-ids", "3"], "whose ids begin with 1000")]:
        assert said in run(*eval_leg_counting, *wrong, exit_code=2).stderr
    assert "give one of them" in run(*eval_leg_counting, "--split", "train", "--example-ids", "3", "-n", "1", exit_code=2).stderr


def test_eval_without_saving_writes_nothing(directory: Path) -> None:
    run("eval", GAME, "--agent", "random", "-n", "2", "--no-save")
    assert not (directory / "outputs").exists()


def test_eval_tells_of_errors_and_strict_raises_them() -> None:
    done = run("eval", DATASET, "--agent", "my_agents:fails", "-n", "2", "--no-save", exit_code=1)
    assert "2/2" in cells(done.stdout.splitlines()[1])
    assert "my_agents:fails: the first error is KeyError('a bug of mine')" in done.stdout
    stderr = run("eval", DATASET, "--agent", "my_agents:fails", "--no-save", "--strict", exit_code=2).stderr
    assert stderr.splitlines()[-1] == "KeyError: 'a bug of mine'"
    assert not re.search(r"typer|asyncio|vfgym/runs", stderr)


def test_eval_isolates_agents() -> None:
    """The rollouts of one that never returns end at their deadlines, as time-outs, and the next agent plays."""
    arguments = ("--isolate", "--env-args", '{"timeout_seconds": 3}', "-n", "2", "--no-save")
    done = run("eval", DATASET, "--agent", "my_agents:never_returns", "--agent", "my_agents:forty_two", *arguments)
    _, *lines = done.stdout.splitlines()
    assert [cells(line)[0] for line in lines[:2]] == ["my_agents:never_returns", "my_agents:forty_two"]
    assert [cells(line)[5] for line in lines[:2]] == ["0/2", "0/2"]


def test_eval_isolates_only_agents_that_a_process_can_load() -> None:
    stderr = run("eval", DATASET, "--agent", "my_agents:forty_two", "--agent", "nobody", "--isolate", exit_code=2).stderr
    assert stderr.startswith("error: an agent that is to run in a process of its own must be named as module:callable; got 'nobody'")


def test_eval_succeeds_where_some_agent_does() -> None:
    run("eval", DATASET, "--agent", "my_agents:fails", "--agent", "oracle", "-n", "2", "--no-save")


def test_eval_tells_of_reward_functions_that_fail(directory: Path) -> None:
    (directory / "careless.py").write_text(
        "import gymnasium, vfgym\n"
        "def even(completion, info):\n"
        "    return 1.0 if info['number'] % 2 == 0 else None\n"
        "def make():\n"
        "    rows = [{'question': str(i), 'answer': 'x', 'info': {'number': i}} for i in range(4)]\n"
        "    return vfgym.SingleTurnEnv(rows, rubric=vfgym.Rubric(even))\n"
        "gymnasium.register('Careless-v0', make)\n"
    )
    done = run("eval", "careless:Careless-v0", "--agent", "oracle", exit_code=1)
    assert "oracle: reward function `even` failed in 2 of 4 rollouts: TypeError(" in done.stdout
    (path,) = (directory / "outputs" / "evals").glob("*/*")
    assert load_results(path)["metadata"]["metrics_errors"] == {"even": 2}


SHORT_ANSWERS = """
import gymnasium, vfgym

def brief(completion, parser):
    return float(len(parser.parse_answer(completion) or "") < 3)

def careless(completion):
    raise ValueError("no")

def make(**kwargs):
    rubric = vfgym.Rubric(careless if kwargs.pop("careless", False) else brief)
    return vfgym.SingleTurnEnv([{"question": str(i), "answer": str(i)} for i in range(4)], rubric=rubric, **kwargs)

gymnasium.register("Short-v0", make)
"""


def test_eval_puts_runs_without_a_mean_last(directory: Path) -> None:
    """They have none where a rollout failed, and nobody says what that counts with. An exit code says so, and the plot is without them."""
    (directory / "short.py").write_text(SHORT_ANSWERS)
    arguments = ("eval", "short:Short-v0", "-a", "my_agents:fails", "-a", "oracle", "--no-save")
    done = run(*arguments, exit_code=1)
    _, oracle, fails, *lines = done.stdout.splitlines()
    assert cells(oracle)[:3] == ["oracle", "1.000 (0.398 to 1.000)", "1.000"]
    assert cells(fails)[:3] == ["my_agents:fails", "-", "-"]
    assert (cells(oracle)[-2], cells(fails)[-2]) == ("0/4", "4/4")
    assert any("no mean, since nothing says what a rollout counts with that failed or was cut" in line for line in lines)
    declared = run(*arguments, "--env-args", '{"failure_reward": 0}')
    assert cells(declared.stdout.splitlines()[1])[:3] == ["my_agents:fails", "0.000 (0.000 to 0.602)", "-"]
    assert "my_agents:fails: what failed or was cut counts with 0" in declared.stdout
    run("eval", "short:Short-v0", "-a", "my_agents:fails", "--no-save", "--env-args", '{"failure_reward": 0}', exit_code=1)


def test_a_reward_function_that_always_fails_is_no_reward_of_zero(directory: Path) -> None:
    (directory / "short.py").write_text(SHORT_ANSWERS)
    done = run("eval", "short:Short-v0", "-a", "oracle", "--no-save", "--env-args", '{"careless": true}', exit_code=1)
    header, oracle, *_ = done.stdout.splitlines()
    found = dict(zip(cells(header), cells(oracle), strict=True))
    assert (found["reward (95 %)"], found["careless"], found["failed"]) == ("-", "-", "4/4")
    assert "oracle: reward function `careless` failed in 4 of 4 rollouts: ValueError('no')" in done.stdout


def test_the_plot_is_without_runs_that_have_no_mean(directory: Path) -> None:
    pytest.importorskip("matplotlib")
    (directory / "short.py").write_text(SHORT_ANSWERS)
    arguments = ("eval", "short:Short-v0", "-a", "my_agents:fails", "--no-save", "--plot", "rewards.png")
    for agents in ((), ("-a", "oracle")):
        done = run(*arguments, *agents, exit_code=1)
        assert "the plot is without my_agents:fails: there is no mean to draw" in done.stdout
        assert (directory / "rewards.png").read_bytes().startswith(b"\x89PNG")


def test_eval_by_hand_asks_one_question_after_the_other() -> None:
    done = run("eval", GAME, "--agent", "human", "-n", "2", "--no-save", "--env-args", '{"max_turns": 2}', stdin="up\nup\nup\nup\n")
    assert cells(done.stdout.splitlines()[-1])[3:6] == ["0.000", "0.000", "0/2"]


HOLE = '{"is_slippery": false}'
"""Where to go down and then right ends the game."""


def test_by_hand_the_end_is_shown_and_an_empty_line_is_no_move(directory: Path) -> None:
    arguments = ["eval", GAME, "--agent", "human", "-n", "2", "--no-save"]
    text = run(*arguments, "--env-args", HOLE, stdin="\n".join(["", "down", "  ", "right"] * 2)).stdout
    assert text.count("F[H]FH") == 2, "the last board is shown"
    assert text.count("over (game_over): reward 0\n  game_reward: 0\n  num_turns: 2\n") == 2
    assert text.count("nothing was typed") == 4
    assert "[assistant]" not in text, "what was typed stands in the terminal already"


def test_eval_by_hand_says_what_is_scored_later(directory: Path) -> None:
    (directory / "grouped.py").write_text(
        "import gymnasium, vfgym\n"
        "def make():\n"
        "    return vfgym.SingleTurnEnv([{'question': '?'}], rubric=vfgym.Rubric(lambda completions: [1.0, 0.0]))\n"
        "gymnasium.register('Grouped-v0', make)\n"
    )
    text = run("eval", "grouped:Grouped-v0", "-a", "human", "-r", "2", "--no-save", stdin="a\nb\n").stdout
    assert text.count("it is scored together with the other rollouts of its task") == 2


def test_eval_by_hand_reads_a_file(directory: Path) -> None:
    (directory / "answers.txt").write_text("up\nup\nup\nup")
    with open("answers.txt") as answers:
        arguments = command("eval", GAME, "-a", "human", "-n", "2", "--no-save", "--env-args", '{"max_turns": 2}')
        done = subprocess.run(arguments, stdin=answers, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert cells(done.stdout.splitlines()[-1])[3:6] == ["0.000", "0.000", "0/2"]


def on_terminal(*arguments: str, keys: Sequence[str]) -> tuple[int, str]:
    """Run a command on a terminal of its own, press keys at each prompt, and return its exit code and all that was shown."""
    master, slave = pty.openpty()
    with subprocess.Popen(command(*arguments), preexec_fn=functools.partial(os.login_tty, slave)) as process:
        os.close(slave)
        shown, waiting = "", list(keys)
        with contextlib.suppress(OSError):  # the other end is closed
            while select.select([master], [], [], SECONDS)[0]:
                shown += os.read(master, 4096).decode()
                if shown.endswith("> ") and waiting:
                    os.write(master, waiting.pop(0).encode())
        os.close(master)  # hangs up on a command that still waits
        return process.wait(SECONDS), shown


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_ctrl_c_or_ctrl_d_of_a_human_stops_an_evaluation_and_keeps_what_is_finished(directory: Path, key: str) -> None:
    exit_code, shown = on_terminal("eval", DATASET, "--agent", "human", "-n", "3", keys=["four legs\n", key])
    assert exit_code == 130
    assert "Traceback" not in shown
    assert not re.search(r"\b\d/3\b", shown), "no progress is drawn over the conversation"
    (path,) = (directory / "outputs" / "evals").glob("*/*")
    assert f"stopped: what was finished is in {path.relative_to(directory)}" in shown.replace("\r\n", "")
    (row,) = load_results(path)["outputs"]
    assert row["completion"] == [{"role": "assistant", "content": "four legs"}]
    assert row["error"] is None


def test_ctrl_c_stops_a_human_whose_answers_come_through_a_pipe() -> None:
    arguments = command("eval", DATASET, "--agent", "human", "--no-save")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        shown = b""
        while not shown.endswith(b"\n> "):
            shown += process.stdout.read(1)
        os.kill(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=SECONDS)
    assert (process.returncode, stderr) == (130, b"")


def test_ctrl_c_says_where_the_results_are(directory: Path) -> None:
    arguments = command("eval", DATASET, "--agent", "my_agents:waits", "-c", "1")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        os.kill(process.pid, signal.SIGINT)
        stdout, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    path = directory / stdout.strip().removeprefix("stopped: what was finished is in ")
    assert json.loads((path / "metadata.json").read_text())["num_examples"] == 20


def test_plot_draws_a_picture(directory: Path) -> None:
    pytest.importorskip("matplotlib")
    run("eval", GAME, "--agent", "random", "-n", "2", "--no-save", "--plot", "rewards.png")
    assert (directory / "rewards.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("nowhere/rewards.png", "nowhere is not a directory that can be written"),
        ("rewards.xyz", "give it one of the suffixes"),
        ("rewards", "give it one of the suffixes"),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_played(directory: Path, file: str, message: str) -> None:
    pytest.importorskip("matplotlib")
    done = run("eval", GAME, "--agent", "my_agents:waits", "-n", "2", "--plot", file, exit_code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (directory / "outputs").exists()


def test_a_picture_that_cannot_be_drawn_is_told_after_the_results(directory: Path) -> None:
    pytest.importorskip("matplotlib")
    (directory / "taken.png").mkdir()
    done = run("eval", GAME, "--agent", "random", "-n", "2", "--no-save", "--plot", "taken.png", exit_code=2)
    assert "0/2" in cells(done.stdout.splitlines()[1])
    assert done.stderr.splitlines()[-1].startswith("error: the plot taken.png cannot be drawn")


# What is wrong is said in one line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "leg_counting"], "there is no environment 'leg_counting'. Did you mean `reasoning-gym/leg_counting-v0`"),
        (["check", "gymnasium/CartPol-v1"], "Did you mean `gymnasium/CartPole-v1`"),
        (["play", "xyzzy"], "`vfgym list` shows all ids"),
        (["eval", GAME, "--agent", "randm"], "there is no agent 'randm'"),
        (["eval", GAME, "--agent", "random", "--agent", "my_agents:nobody"], "my_agents has no 'nobody'"),
        (["eval", GAME, "-a", "random", "-a", "random"], "--agent random is given 2 times: give it once"),
        (["eval", GAME, "--agent", "random", "--env-args", "{x}"], "--env-args must be JSON: "),
        (["eval", GAME, "--agent", "random", "--env-args", "[1]"], "--env-args must be a JSON object"),
        (["eval", GAME, "--agent", "random", "--env-args", '{"max_turn": 3}'], "has an argument 'max_turn'. Did you mean `max_turns`"),
        (["eval", GAME, "--agent", "random", "-n", "-1"], "say how many to play with num_examples"),
        (["eval", GAME, "--agent", "random", "--output-dir", "my_agents.py"], "cannot write results to my_agents.py"),
        (["eval", "FrozenLake-v1", "--agent", "random"], "take 'gymnasium/FrozenLake-v1', or wrap it with vfgym.to_chat('FrozenLake-v1')"),
        (["eval", "nowhere_at_all:CartPole", "--agent", "random"], "there is no module 'nowhere_at_all'"),
        (["check", "nowhere_at_all:CartPole"], "there is no module 'nowhere_at_all'"),
        (["info", "my_agents:CartPol-v1"], "Did you mean: `CartPole`"),
        (["eval", GAME, "--agent", "my_agents:one_argument"], "one_argument takes (observation)"),
        (["evaluate", GAME], "No such command 'evaluate'"),
        (["eval"], "Missing argument 'ID|FILE.toml'"),
        (["eval", GAME, "--num-example", "3"], "No such option: --num-example"),
        (["eval", GAME, "--num-examples", "many"], "Invalid value for '--num-examples'"),
        (["export", "run", "--to", "xls"], "Invalid value for '--to'"),
    ],
)
def test_errors_are_one_line(arguments: list[str], message: str) -> None:
    stderr = run(*arguments, exit_code=2).stderr
    assert message in stderr
    assert stderr.startswith("error: ")
    assert stderr.count("\n") == 1


MISTAKES = """
import gymnasium

def fails():
    raise RuntimeError("cannot be made")

gymnasium.register("Fails-v0", fails)
gymnasium.register("Missing-v0", "mistakes:missing")
gymnasium.register("Nothing-v0", lambda: None)
"""


@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        (["eval", GAME, "--agent", "no_python:agent"], '  File "{}/no_python.py", line 1', "SyntaxError: invalid syntax"),
        (["info", "no_python:Game-v0"], '  File "{}/no_python.py", line 1', "SyntaxError: invalid syntax"),
        (
            ["eval", GAME, "--agent", "needy:agent"],
            '  File "{}/needy.py", line 1, in <module>',
            "ModuleNotFoundError: No module named 'nowhere_at_all'",
        ),
        (
            ["check", "needy:Game-v0"],
            '  File "{}/needy.py", line 1, in <module>',
            "ModuleNotFoundError: No module named 'nowhere_at_all'",
        ),
        (["play", "mistakes:Fails-v0"], '  File "{}/mistakes.py", line 5, in fails', "RuntimeError: cannot be made"),
        (["eval", "mistakes:Fails-v0", "-a", "random"], '  File "{}/mistakes.py", line 5, in fails', "RuntimeError: cannot be made"),
    ],
)
def test_of_a_mistake_in_own_code_its_place_there_is_shown(directory: Path, arguments: list[str], first: str, last: str) -> None:
    (directory / "no_python.py").write_text("agent = ?")
    (directory / "needy.py").write_text("import nowhere_at_all")
    (directory / "mistakes.py").write_text(MISTAKES)
    lines = [line for line in run(*arguments, exit_code=2).stderr.splitlines() if not line.startswith("Traceback")]
    assert lines[0] == first.format(directory)
    assert lines[-1] == last
    assert len(lines) <= 4


def test_debug_shows_the_whole_traceback_of_a_mistake_in_own_code(directory: Path) -> None:
    (directory / "needy.py").write_text("import nowhere_at_all")
    assert "typer" in run("info", "needy:Game-v0", "--debug", exit_code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "mistakes:Missing-v0"], "error: AttributeError: module 'mistakes' has no attribute 'missing'"),
        *[
            ([*verb, "mistakes:Nothing-v0"], "error: TypeError: The environment must inherit from the gymnasium.Env class")
            for verb in (["info"], ["check"], ["eval", "-a", "random"])
        ],
    ],
)
def test_an_id_that_makes_no_environment_is_told_in_one_line(directory: Path, arguments: list[str], message: str) -> None:
    (directory / "mistakes.py").write_text(MISTAKES)
    stderr = run(*arguments, exit_code=2).stderr
    assert stderr.startswith(message)
    assert stderr.count("\n") == 1


def test_an_exception_of_the_library_itself_has_its_whole_traceback() -> None:
    code = (
        "import sys, vfgym.cli, vfgym.cli.show as show\nsys.argv = ['vfgym', 'list']\nshow.print_ids = None  # a defect\nvfgym.cli.main()"
    )
    done = run_python(code)
    assert done.returncode == 1
    assert "typer" in done.stderr


@pytest.mark.parametrize("arguments", [["--debug", "info", "xyzzy"], ["info", "xyzzy", "--debug"]])
def test_debug_shows_the_traceback(arguments: list[str]) -> None:
    assert "Traceback" in run(*arguments, exit_code=1).stderr


def test_debug_is_an_option_and_no_word_anywhere() -> None:
    assert "Traceback" not in run("info", "--", "--debug", exit_code=2).stderr


def test_tables_are_aligned() -> None:
    assert render_table(["a", "long name"], [["value", "1"], ["", "22"]]) == "a      long name\nvalue  1\n       22"


# Narrow output


@pytest.mark.parametrize("width", [30, 45])
def test_tables_are_readable_at_any_width(width: int) -> None:
    """Lines break between words: no number is cut, and no word is spelled one letter a line."""
    wide = run("eval", GAME, "-a", "random", "-n", "5", "-r", "2", "--no-save").stdout
    narrow = run("eval", GAME, "-a", "random", "-n", "5", "-r", "2", "--no-save", columns=width).stdout
    header, row = map(cells, wide.splitlines()[:2])
    expected = " ".join(["random", *(f"{column}: {cell}" for column, cell in zip(header[1:-1], row[1:-1], strict=True))])
    assert " ".join(narrow.split()).startswith(expected)
    assert all(len(line) <= width for line in narrow.splitlines()[: len(header)])
    for command_line in (("list", "*Lake*"), ("info", GAME), ("check", GAME)):
        lines = run(*command_line, columns=width).stdout.splitlines()
        too_long = [line for line in lines if len(line) > width]
        if command_line[0] != "info":  # which goes on with an example as it is
            assert all(len(line.split()) == 1 or ":" in line for line in too_long), too_long
        words = set(run(*command_line).stdout.split())
        assert {word for line in lines for word in line.split()} - words <= {"description:", "kept:", "detail:"}


def test_a_table_on_a_narrow_terminal_is_blocks() -> None:
    leader, follower = pty.openpty()
    env = {**os.environ, "COLUMNS": "45", "TERM": "xterm"}
    process = subprocess.Popen(command("list", "*Lake8x8*"), stdout=follower, stderr=subprocess.DEVNULL, env=env)
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal whose other side is closed
        while select.select([leader], [], [], SECONDS)[0] and (part := os.read(leader, 4096)):
            shown += part
    os.close(leader)
    process.wait(SECONDS)
    first, *further = shown.decode().split("\r\n")[:3]
    assert first == "gymnasium/FrozenLake8x8-v1"
    assert further == ["  description: game of Gymnasium's toy_text,", "    discrete actions"]
