"""`optimize_prompt`: the score of a planted task rises, a run goes on where it was stopped, and what goes wrong is said."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.interruptions import ctrl_c
from tests.verifiers_compat.environments import asking
from tests.verifiers_compat.gepa.planted import (
    NUM_ROLLOUTS,
    ROWS,
    SMALL,
    START,
    WRITTEN,
    asked,
    doubles,
    is_formatted,
    player,
    serve,
    writer,
)
from verifiers_compat.gepa import OptimizedPrompt, optimize_prompt
from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.messages import content_text
from vfgym.model_server import ModelRequest, ModelServer, RequestRefused, scripted
from vfgym.results import ResultsError, load_results


def improve(server: ModelServer, env: Any = None, **kwargs: Any) -> OptimizedPrompt:
    """Improve the planted task's prompt."""
    arguments = {"reflection_model": "writer", **SMALL, **kwargs}
    return optimize_prompt(doubles() if env is None else env, asking(server.openai_url), "player", **arguments)


def test_the_score_rises() -> None:
    """And the environment is what it was."""
    env = doubles()
    with serve() as server:
        result = improve(server, env)
        assert (asked(server, "player"), asked(server, "writer")) == (NUM_ROLLOUTS, 1)
    assert (result.start.prompt, result.start.score, result.best.prompt, result.best.score) == (START, 0.0, WRITTEN, 1.0)
    assert (result.prompt, result.best.parents, result.best.scores) == (WRITTEN, (0,), (1.0,) * 4)
    assert (result.calls, result.failed_calls, result.is_finished) == (NUM_ROLLOUTS, 0, True)
    assert env.system_prompt == START
    assert env.get_dataset()[0]["prompt"][0]["content"] == START


async def test_it_runs_in_a_thread_beside_an_event_loop() -> None:
    with serve() as server:
        assert (await asyncio.to_thread(improve, server)).best.score == 1.0


def test_what_is_written_says_what_came_of_it(tmp_path: Path) -> None:
    with serve() as server:
        improve(server, run_dir=tmp_path / "run", sampling_args={"temperature": 0.5})
    run = tmp_path / "run"
    report = json.loads((run / "report.json").read_text())
    assert {name: report[name] for name in ("model", "reflection_model", "start_score", "best_score", "calls", "max_calls")} == {
        **{"model": "player", "reflection_model": "writer", "start_score": 0.0, "best_score": 1.0},
        **{"calls": NUM_ROLLOUTS, "max_calls": 40},
    }
    assert (report["is_finished"], report["best_candidate"], report["sampling_args"]) == (True, 1, {"temperature": 0.5})
    assert [(each["prompt"], each["parents"], each["scores"]) for each in report["candidates"]] == [
        (START, [], [0.0] * 4),
        (WRITTEN, [0], [1.0] * 4),
    ]
    assert (run / "best_prompt.txt").read_text() == WRITTEN
    assert "| 1 (best) | 0 | 1.000 | 14 |" in (run / "report.md").read_text()
    evaluations = [load_results(path)["outputs"] for path in sorted((run / "evaluations").iterdir())]
    assert [len(rows) for rows in evaluations] == [4, 3, 3, 4]
    assert {row["prompt"][0]["content"] for row in evaluations[-1]} == {WRITTEN}


# Going on


def test_a_finished_run_asks_nobody_again_and_goes_on_with_a_larger_budget(tmp_path: Path) -> None:
    def silent(request: ModelRequest) -> str:
        return f"```\n{START} Write well.\n```"

    with serve(writer=silent) as server:
        small = improve(server, run_dir=tmp_path, max_calls=12)
        num_requests = server.num_requests
        assert improve(server, run_dir=tmp_path, max_calls=12) == small
        assert server.num_requests == num_requests
        assert improve(server, run_dir=tmp_path, max_calls=20, max_concurrent=1).calls > small.calls
        assert server.num_requests > num_requests
    with serve(writer=silent) as server:
        assert improve(server, max_calls=20).calls == server.num_requests - asked(server, "writer")


@pytest.mark.parametrize("stops_at", [2, 9])
def test_a_run_that_ctrl_c_stopped_comes_to_the_same_result(stops_at: int, tmp_path: Path) -> None:
    """Wherever it was stopped: only what was asked at that moment is asked twice."""
    with ctrl_c() as interrupt:

        async def is_interrupted(request: ModelRequest) -> str:
            if asked(server, "player") == stops_at:
                interrupt()
                await asyncio.Event().wait()
            return player(request)

        with serve(player=is_interrupted) as server, pytest.raises(KeyboardInterrupt):
            improve(server, run_dir=tmp_path, max_concurrent=1)
        assert asked(server, "player") == stops_at
    has_candidate = stops_at > 4
    assert (tmp_path / "report.json").exists() == has_candidate
    if has_candidate:
        assert json.loads((tmp_path / "report.json").read_text())["is_finished"] is False
    with serve() as server:
        result = improve(server, run_dir=tmp_path, max_concurrent=1)
        assert asked(server, "player") == NUM_ROLLOUTS - stops_at + 1
        assert asked(server, "writer") == (stops_at <= 7)
    assert (result.best.prompt, result.best.score, result.calls) == (WRITTEN, 1.0, NUM_ROLLOUTS)


def test_the_same_seed_makes_the_same_choices() -> None:
    seen: list[list[str]] = []

    def keeps(request: ModelRequest) -> str:
        seen[-1].append(content_text(request.messages[0]["content"]))
        return f"```\n{START} ({len(seen[-1])})\n```"

    with serve(writer=keeps) as server:
        for seed in (0, 0, 1):
            seen.append([])
            improve(server, seed=seed, max_calls=30, perfect_score=None)
    assert len(seen[0]) > 2
    assert seen[0] == seen[1] != seen[2]


def test_other_examples_are_refused(tmp_path: Path) -> None:
    with serve() as server:
        improve(server, run_dir=tmp_path)
        with pytest.raises(ConfigurationError, match=r"none of its 4 rows belongs to a task of this run"):
            improve(server, doubles(rows=[{**row, "answer": "0"} for row in ROWS]), run_dir=tmp_path)
        assert server.num_requests == NUM_ROLLOUTS + 1


def test_a_directory_is_that_of_one_run_at_a_time(tmp_path: Path) -> None:
    """Also where two processes start the same run: the second would pay for what the first one does."""

    def begins_again(request: ModelRequest) -> str:
        with pytest.raises(ResultsError, match="another run is writing its results to"):
            improve(server, run_dir=tmp_path)
        return writer(request)

    with serve(writer=lambda request: asyncio.to_thread(begins_again, request)) as server:
        assert improve(server, run_dir=tmp_path).best.score == 1.0
        assert improve(server, run_dir=tmp_path).best.score == 1.0


# What goes wrong


def test_a_run_without_answers_stops_and_goes_on(tmp_path: Path) -> None:
    """Such as one whose server broke down: what came of that is not kept."""
    with serve(player=scripted([])) as server, pytest.raises(vf.Error, match=r"answered in none of 4 rollouts: .*400"):
        improve(server, run_dir=tmp_path)
    with serve() as server:
        assert improve(server, run_dir=tmp_path).best.score == 1.0
        assert asked(server, "player") == NUM_ROLLOUTS


@pytest.mark.parametrize("refused", ["player", "writer"])
def test_a_refused_key_stops_a_run_at_once(refused: str) -> None:
    def refuse(request: ModelRequest) -> str:
        raise RequestRefused(401, "no such key")

    with serve(**{refused: refuse}) as server:
        with pytest.raises(Exception, match="no such key") as caught:
            improve(server, max_concurrent=1)
        assert type(caught.value).__name__ == "AuthenticationError"
        assert asked(server, refused) == 1


def test_keys_are_not_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also where a model has read one."""
    key = "sk-a-key-that-nobody-may-read"

    def repeats(request: ModelRequest) -> str:
        return f"```\nUse {request.headers['authorization']}. {WRITTEN}\n```"

    config = vf.ClientConfig(max_retries=0, api_key=key, extra_headers={"X-Secret": f"{key}-too"})
    with serve(writer=repeats) as server, caplog.at_level(logging.DEBUG):
        config = config.model_copy(update={"api_base_url": server.openai_url})
        arguments = {**SMALL, "max_calls": 20, "sampling_args": {"extra_headers": {"X-More": f"{key}-more"}}}
        env = doubles(env_args={"api_key": key})
        for _ in range(2):  # the second finds the first
            result = optimize_prompt(env, config, "player", reflection_model="writer", run_dir=tmp_path, **arguments)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 6
    for file in files:
        assert key not in file.read_text(), file
    assert key not in caplog.text
    assert key not in str(result)
    assert result.best.prompt == f"Use Bearer ***. {WRITTEN}"


# What the reflecting model is shown


def test_state_columns_are_shown_to_the_reflecting_model() -> None:
    def explains(completion: vf.Messages, answer: str, state: vf.State) -> float:
        score = is_formatted(completion, answer)
        state["feedback"] = "good" if score else "The answer stands between no tags."
        return score

    explains.__name__ = "is_formatted"

    def reads(request: ModelRequest) -> str:
        assert content_text(request.messages[0]["content"]).count("The answer stands between no tags.") == 3
        return writer(request)

    with serve(writer=reads) as server:
        assert improve(server, doubles(rubric=vf.Rubric(explains)), state_columns=["feedback"]).best.score == 1.0


def test_what_does_not_fit_is_said() -> None:
    """Before anybody is asked."""
    with serve() as server:
        for given, message in (
            ({"max_calls": 4}, "max_calls must be more than the 4 validation examples"),
            ({"num_train": 0}, "num_train must be an integer from 1, got 0"),
            ({"env": 3}, "expected an environment"),
        ):
            with pytest.raises(ConfigurationError, match=message):
                improve(server, **given)
        assert server.num_requests == 0


def test_the_run_of_other_settings_is_refused(tmp_path: Path) -> None:
    """Those of the environment, those of the run, and the prompt that it begins with."""
    with serve() as server:
        improve(server, run_dir=tmp_path)
        num_requests = server.num_requests
        for changed in ({"seed": 3}, {"system_prompt": "Go."}, {"num_train": 3}, {"env": doubles(env_id="mine")}):
            with pytest.raises(ConfigurationError, match="holds another run: "):
                improve(server, run_dir=tmp_path, **changed)
        assert server.num_requests == num_requests


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gepa", None)
    with pytest.raises(MissingExtra, match=r"improving a prompt \(vf-gepa\) needs an optional dependency: pip install 'vfgym\[gepa\]'"):
        optimize_prompt(None, None, "m")
