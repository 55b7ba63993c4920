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
from tests.verifiers_compat.gepa.planted import NUM_ROLLOUTS, SMALL, START, WRITTEN, asked, doubles, player, serve
from verifiers_compat.gepa import OptimizedPrompt, optimize_prompt
from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.messages import content_text
from vfgym.model_server import ModelRequest, ModelServer, RequestRefused


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


def test_candidates_are_told_as_they_come_and_the_report_says_what_was_played(tmp_path: Path) -> None:
    told: list[tuple[int, float]] = []
    with serve() as server:
        result = improve(server, run_dir=tmp_path, on_candidate=lambda so_far: told.append((len(so_far.candidates), so_far.best.score)))
    assert told == [(1, 0.0), (2, 1.0)]
    assert result.best.score == 1.0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["is_finished"] is True


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
        for given in ({}, {"seed": 0}, {"seed": 1}):
            seen.append([])
            improve(server, max_calls=30, perfect_score=None, **given)
    assert len(seen[0]) > 2
    assert seen[0] == seen[1] != seen[2]


# What goes wrong


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


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gepa", None)
    with pytest.raises(MissingExtra, match=r"improving a prompt \(vf-gepa\) needs an optional dependency: pip install 'vfgym\[gepa\]'"):
        optimize_prompt(None, None, "m")
