"""``vfgym eval`` plays what it is told, says how it ended, and goes on where it was stopped."""

from __future__ import annotations

import contextlib
import inspect
import re
import signal
import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.cli.cases import DATASET, GAME, SECONDS, SHORT, cells, program, rewards, run_directories, table
from tests.commands import run_vfgym
from vfgym.agents.model import ModelAgent
from vfgym.cli import eval as eval_command
from vfgym.cli.conventions import Exit
from vfgym.cli.eval import EvalCommand, run_evaluations
from vfgym.cli.evaluations import EvalFields
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelRequest, ModelServer, RequestRefused
from vfgym.model_server.policies import echo
from vfgym.results import load_results

KEY = "sk-test-0123456789abcdef"
NOTHING = EvalCommand(output_dir=None, resume=False, resumed_path=None, redo_errors=False)


def run_eval(*arguments: str, exit_code: int = 0, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return run_vfgym("eval", *arguments, exit_code=exit_code, stdin=stdin, **environment)


class Reached(Exception):
    """A function was reached that is told what to play."""


def told(monkeypatch: pytest.MonkeyPatch, fields: EvalFields, command: EvalCommand) -> dict[str, Any]:
    """Return what `evaluate` is told, as an evaluation begins."""
    arguments: dict[str, Any] = {}

    def record(*args: Any, **kwargs: Any) -> Any:
        arguments.update(inspect.signature(vfgym.evaluate).bind(*args, **kwargs).arguments)
        raise Reached

    with monkeypatch.context() as patched:
        patched.setattr(eval_command, "evaluate", record)
        with pytest.raises(Reached):
            run_evaluations([fields], command)
    return arguments


def test_what_an_evaluation_says_is_what_is_played(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a spec says is what is played (`tests/runs/test_spec.py`)."""
    place: dict[str, Any] = {"base_url": server.openai_url, "client_type": "openai_responses", "api_key_var": "MINE"}
    fields = EvalFields(env_id=GAME, models=["echo"], sampling_args={"temperature": 0.0}, pass_threshold=0.0, **place)
    found = told(monkeypatch, fields, NOTHING)
    (spec,) = fields.specs()
    assert found["env"] == spec
    assert isinstance(found["agent"], ModelAgent)
    assert found["agent"].sampling_args == {"temperature": 0.0}
    assert (found["results_path"], found["resume"], found["redo_errors"]) == (None, False, False)


def test_what_the_command_is_told_is_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    for resume, redo_errors in ((False, False), (True, False), (True, True)):
        command = replace(NOTHING, output_dir=Path("there"), resume=resume, redo_errors=redo_errors)
        found = told(monkeypatch, EvalFields(env_id=GAME, agents=["random"]), command)
        assert (found["resume"], found["redo_errors"]) == (resume, redo_errors)
        assert found["results_path"].is_relative_to("there")


# Playing


def test_agents_are_compared_and_results_written(directory: Path) -> None:
    done = run_eval(DATASET, "--agent", "random", "-a", "oracle", "-n", "6", "--env-args", '{"num_eval_examples": 8}', "--plot", "p.png")
    header, random, oracle, *where, verdict, plot = done.stdout.splitlines()
    assert (plot, (directory / "p.png").read_bytes()[:4]) == ("plot: p.png", b"\x89PNG")
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


@pytest.mark.parametrize("isolate", [[], ["--isolate"]], ids=["here", "isolated"])
def test_errors_of_agents_are_a_line_in_tables_and_whole_in_rows(isolate: list[str], directory: Path) -> None:
    shown = run_eval(DATASET, "--agent", "mine:fails", "-n", "2", *isolate, exit_code=Exit.NOT_GOOD).stdout
    assert table(shown)["mine:fails"]["failed"] == "2/2"
    (said,) = [line for line in shown.splitlines() if "the first error is" in line]
    assert "first line" in said
    assert said.endswith("... (the rows have all of it)")
    assert "Traceback" not in shown
    (path,) = run_directories(directory)
    for row in load_results(path)["outputs"]:
        kept = "".join(row["error"].values())
        assert "second line " + "x" * 300 in kept
        assert re.search(r'mine\.py", line \d+, in fails', kept)


def test_isolated_agents_that_never_return_end_at_their_deadlines() -> None:
    """Their rollouts are time-outs, the next agent plays, and the library's own agents play here."""
    agents = [word for name in ("mine:never_returns", "mine:forty_two", "oracle") for word in ("--agent", name)]
    done = run_eval(DATASET, *agents, "--isolate", "--env-args", '{"timeout_seconds": 3}', "-n", "2", "--no-save")
    found = table(done.stdout)
    assert list(found) == ["mine:never_returns", "mine:forty_two", "oracle"]
    assert {row["failed"] for row in found.values()} == {"0/2"}
    assert rewards(done.stdout)["oracle"] == 1.0


# How it ends


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-a", "oracle"], Exit.GOOD),
        (["-a", "mine:fails"], Exit.NOT_GOOD),
        (["-a", "mine:fails", "-a", "oracle"], Exit.NOT_GOOD),
        (["-a", "mine:fails", "-a", "oracle", "--env-args", '{"failure_reward": 0}'], Exit.GOOD),
        (["-a", "mine:fails", "--env-args", '{"failure_reward": 0}'], Exit.NOT_GOOD),
        (["-a", "oracle", "--limit", "requests=1"], Exit.GOOD),
        (["-a", "mine:fails", "--limit", "errors=1", "-c", "1"], Exit.LIMIT),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value.name,
)
def test_the_exit_code_says_how_it_ended(arguments: list[str], code: Exit) -> None:
    run_eval(SHORT, *arguments, "--no-save", exit_code=code)


def test_a_limit_ends_a_run_which_can_be_resumed(server: ModelServer, directory: Path) -> None:
    arguments = (DATASET, "-m", "echo", "-b", server.openai_url, "-n", "8", "-c", "2")
    done = run_eval(*arguments, "--limit", "tokens=500,errors=5", "--limit", "time=600", exit_code=Exit.LIMIT)
    assert "of 8 rollouts: the limit on tokens is used up" in done.stdout
    (path,) = run_directories(directory)
    assert load_results(path)["metadata"]["stopped_by"] is not None
    run_eval(*arguments, "--resume")
    assert run_directories(directory) == [path]
    assert load_results(path)["metadata"]["stopped_by"] is None
    assert len(load_results(path)["outputs"]) == 8


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--limit", "tokens=0"], "--limit: the limit tokens must be a positive integer, got 0"),
        (["--limit", "tokens"], "--limit is written NAME=NUMBER"),
        (["--limit-each", "cost=5"], "--limit-each: there is no limit 'cost'"),
        (["--limit", "cost=5"], "a limit on cost needs the prices"),
        (["--limit", "cost=5", "--prices", "prices.toml"], "no price for the model echo"),
        (["--prices", "none.toml"], "none.toml cannot be read"),
        (["--reduce", "least"], "a reducer is one of"),
        (["--agent", "randm"], "there is no agent 'randm'"),
        (["--agent", "mine", "--isolate"], "an agent that is to run in a process of its own must be named as module:callable; got 'mine'"),
        (["--model", ""], "model must be the name of a model"),
        (["--env-args", '{"nothing": 1}'], "has no argument 'nothing'"),
        (["there"], "give --resume too, to go on with it"),
        (["--redo-errors"], "give --resume too"),
        (["--resume", "--no-save"], "leave out --no-save"),
        (["there", "--resume"], "there is no run to resume in there"),
        (["there", "--resume", "-a", "random"], "give one --agent with it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_one_line_and_nothing_is_asked_or_written(
    server: ModelServer, directory: Path, options: list[str], problem: str
) -> None:
    (directory / "prices.toml").write_text("[ech]\ninput = 1\noutput = 2\n")
    done = run_eval(DATASET, *options, "-m", "echo", "-b", server.openai_url, exit_code=Exit.WRONG_INPUT)
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
    assert server.num_requests <= 1, "whether somebody listens"
    assert not (directory / "outputs").exists()


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:{closed}/v1", "cannot be reached: the connection is refused. Is the URL right"),
        ("https://127.0.0.1:{open}/v1", "cannot be reached: "),
        ("http://a..b/v1", "http://a..b/v1 cannot be reached: "),
    ],
)
def test_a_place_where_nobody_answers_is_told_before_anything_is_played(url: str, message: str, server: ModelServer) -> None:
    place = url.format(closed=closed_port(), open=server.url.rpartition(":")[2])
    done = run_eval(DATASET, "-a", "mine:waits", "-m", "m", "-b", place, exit_code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


# Models


def test_an_agent_and_a_model_of_one_name_stay_apart(knows: Any, directory: Path) -> None:
    """In the table, on disk, and where runs are gone on with."""
    with ModelServer({"random": knows}) as server:
        both = [DATASET, "-a", "random", "-a", "oracle", "-m", "random", "-b", server.openai_url, "-n", "3"]
        done = run_eval(*both)
        assert list(table(done.stdout)) == ["random (agent)", "oracle", "random (model)"]
        assert rewards(done.stdout)["random (model)"] == 1.0
        evals = directory / "outputs" / "evals"
        names = ("agent=random", "random", "agent=oracle")
        folders = [evals / f"reasoning-gym--leg_counting-v0--{name}" for name in names]
        assert sorted(evals.iterdir()) == sorted(folders)
        for folder, is_model in zip(folders, (False, True), strict=False):
            (path,) = folder.iterdir()
            metadata = load_results(path)["metadata"]
            assert (metadata["model"], metadata["is_model"]) == ("random", is_model)
            rows = path / "results.jsonl"
            rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:2]))
        asked = server.num_requests
        resumed = run_eval(*both, "--resume").stdout
        assert server.num_requests == asked + 1
        for kind, folder in zip(("agent", "model"), folders, strict=False):
            assert f"random ({kind}): going on with {next(folder.iterdir()).relative_to(directory)}" in resumed
        other = str(next(folders[0].iterdir()))
        refused = run_eval(DATASET, other, "-m", "random", "-b", server.openai_url, "-n", "3", "--resume", exit_code=2)
    assert "its is_model is False, and this run's is True" in refused.stderr


@pytest.mark.parametrize(
    ("client_type", "key", "path"),
    [
        ("openai_chat_completions", None, "/v1/chat/completions"),
        ("openai_responses", "short", "/v1/responses"),
        ("openai_completions", "sk-wrong", "/v1/completions"),
        ("anthropic_messages", "sk-a-much-longer-wrong-key", "/v1/messages"),
    ],
)
def test_a_refused_key_stops_the_run_and_names_its_variable(client_type: str, key: str | None, path: str) -> None:
    with ModelServer({"m": echo}, api_keys={KEY}) as server:
        url = server.url if client_type == "anthropic_messages" else server.openai_url
        arguments = [DATASET, "--model", "m", "-b", url, "--client-type", client_type, "-k", "MY_KEY", "-c", "4"]
        done = run_eval(*arguments, "-n", "-1", exit_code=2, **({} if key is None else {"MY_KEY": key}))
        assert server.num_requests <= 8
        run_eval(*arguments, "-n", "1", "--no-save", "-S", '{"temperature": 0.25}', MY_KEY=KEY)
        assert (server.requests[-1].path, server.requests[-1].body["temperature"]) == (path, 0.25)
    *_, line = done.stderr.splitlines()
    assert line.startswith(f"error: the provider at {url} refused the API key: ")
    assert "MY_KEY" in line
    assert ("MY_KEY is not set" in line) is (key is None)
    assert "Error code: 401" in line
    assert key is None or key not in done.stdout + done.stderr


@pytest.mark.parametrize(("url", "says"), [("openai_url", "nobody"), ("url", "below its URL")])
def test_an_unknown_model_or_route_stops_the_run(url: str, says: str) -> None:
    with ModelServer({"m": echo}) as server:
        where = getattr(server, url)
        model = "nobody" if url == "openai_url" else "m"
        done = run_eval(DATASET, "-m", model, "-b", where, "-n", "-1", "-c", "4", exit_code=2)
        assert server.num_requests <= 8
    *_, line = done.stderr.splitlines()
    assert line.startswith(f"error: the provider at {where} does not know the model {model!r}, or there is no such API")
    assert says in line
    assert "Error code: 404" in line


def test_what_is_finished_is_shown_before_a_refusal(knows: Any) -> None:
    def forbids(request: ModelRequest) -> Any:
        raise RequestRefused(403, "this model is not for you")

    with ModelServer({"knows": knows, "forbids": forbids}) as server:
        done = run_eval(DATASET, "-m", "knows", "-m", "forbids", "-b", server.openai_url, "-n", "2", exit_code=2)
    assert rewards(done.stdout) == {"knows": 1.0}
    assert "this model is not for you" in done.stderr


@pytest.mark.parametrize("fails", [False, True])
def test_those_who_play_are_closed_however_it_ends(fails: bool, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []
    monkeypatch.setattr(eval_command, "close_agents", lambda runs: closed.extend(run.contestant.name for run in runs))
    fields = EvalFields(
        env_id=DATASET, agents=["random"], models=["nobody" if fails else "knows"], base_url=server.openai_url, num_examples=1
    )
    with pytest.raises(ConfigurationError) if fails else contextlib.nullcontext():
        run_evaluations([fields], NOTHING)
    assert closed == ["random", *fields.models]


# By hand


HOLE = '{"is_slippery": false}'
"""Where to go down and then right ends the game."""


def test_by_hand_one_question_is_asked_after_the_other_and_the_end_is_shown() -> None:
    """An empty line is no move."""
    arguments = [GAME, "--agent", "human", "-n", "2", "--no-save"]
    text = run_eval(*arguments, "--env-args", HOLE, stdin="\n".join(["", "down", "  ", "right"] * 2)).stdout
    assert text.count("F[H]FH") == 2, "the last board is shown"
    assert text.count("over (game_over): reward 0\n  game_reward: 0\n  num_turns: 2\n") == 2
    assert text.count("nothing was typed") == 4
    assert "[assistant]" not in text, "what was typed stands in the terminal already"
    assert table(text[text.rindex("agent  ") :])["human"]["failed"] == "0/2"


# Ctrl-C, on programs


def test_ctrl_c_stops_a_run_that_waits_for_a_model(directory: Path) -> None:
    waits = threading.Event()

    def hangs(request: ModelRequest) -> str | None:
        if request.number <= 3:
            return None
        waits.set()
        return "hung"

    with ModelServer(faults=hangs) as server:
        arguments = program("eval", GAME, "--env-args", '{"max_turns": 1}', "-m", "echo", "-b", server.openai_url, "-n", "20", "-c", "1")
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert waits.wait(SECONDS)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    path = directory / stdout.strip().removeprefix("stopped: what was finished is in ")
    assert len(load_results(path)["outputs"]) == 3


# Resuming


def test_the_run_that_is_given_or_the_newest_unfinished_one_is_gone_on_with(directory: Path) -> None:
    arguments = [DATASET, "-a", "oracle", "-n", "5"]
    run_eval(*arguments)
    (path,) = run_directories(directory)
    rows = path / "results.jsonl"
    whole = rows.read_bytes()
    for given in ([], [str(path)]):
        rows.write_bytes(whole[:-100])
        done = run_eval(*arguments, "--resume", *given)
        assert "5/5 (100%), reward 1.000, 0 failed" in done.stderr
        assert (f"oracle: going on with {path.relative_to(directory)}" in done.stdout) == (not given)
        assert len({row["example_id"] for row in load_results(path)["outputs"]}) == 5
        assert rows.read_bytes().splitlines()[:4] == whole.splitlines()[:4]
        assert len(rows.read_bytes().splitlines()) == 5
    assert "there is no unfinished run to resume with these settings, a new one begins" in run_eval(*arguments, "--resume").stdout
    assert len(run_directories(directory)) == 2
