"""Carrying evaluations out: at the same time, with a heartbeat, from Python, and what goes wrong in one of them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.cli.evals.runs import is_peer_installed, load_env, load_evaluation, play_all, use_alias
from verifiers_compat.types import ClientConfig, EvalConfig, EvalRunConfig
from verifiers_compat.utils.eval_utils import run_evaluation, run_evaluations
from verifiers_compat.utils.load_failures import EnvironmentLoadError
from vfgym.errors import ConfigurationError, Error
from vfgym.model_server import ModelServer
from vfgym.results import ResultsError

NOWHERE = "http://127.0.0.1:1/v1"


def frozen_lake(server: ModelServer | str, **fields: Any) -> EvalConfig:
    """Return a short evaluation in a registered environment."""
    return EvalConfig(
        **{"env_id": "gymnasium/FrozenLake-v1", "env_args": {"max_turns": 1}, "model": "yes", "num_examples": 2},
        **{"rollouts_per_example": 2, "max_concurrent": 2},
        client_config=ClientConfig(api_base_url=server if isinstance(server, str) else server.openai_url, api_key="none"),
    ).model_copy(update=fields)


async def test_evaluations_run_at_the_same_time() -> None:
    """They meet at a barrier."""
    both = threading.Barrier(2, timeout=60)

    async def meet(request: object) -> str:
        await asyncio.to_thread(both.wait)
        return "yes"

    with ModelServer({"meet": meet}) as server:
        config = frozen_lake(server, model="meet", num_examples=1, rollouts_per_example=1)
        outcomes, _ = await play_all([load_evaluation(config) for _ in range(2)])
    assert [len(each["outputs"]) for each in outcomes if not isinstance(each, BaseException)] == [1, 1]


@pytest.mark.parametrize("is_heard", [True, False])
async def test_a_heartbeat_is_sent_while_evaluations_run(is_heard: bool, caplog: pytest.LogCaptureFixture) -> None:
    """One that fails is noted once, and is no failure of the run."""
    path = "/health" if is_heard else "/nowhere"

    async def waits(request: object) -> str:
        while not (any(each.path == path for each in server.requests) if is_heard else caplog.records):
            await asyncio.sleep(0.001)
        return "left"

    with ModelServer({"waits": waits}) as server:
        config = frozen_lake(server, model="waits", num_examples=1, rollouts_per_example=1)
        url = f"{server.url}{path}"
        [outcome], _ = await play_all([load_evaluation(config)], heartbeat_url=url)
        assert [each.path for each in server.requests].count(path) == 1
    assert not isinstance(outcome, BaseException)
    noted = [record.getMessage().partition(" fails: 404")[0] for record in caplog.records]
    assert noted == ([] if is_heard else [f"the heartbeat to {url}"])
    assert len(asyncio.all_tasks()) == 1


async def test_results_come_back_and_what_is_told_meanwhile(server: ModelServer) -> None:
    progress: list[int] = []
    starts: list[int] = []
    config = frozen_lake(server)
    results = await run_evaluation(config, lambda *_: starts.append(1), on_progress=lambda _, new, metadata: progress.append(len(new)))
    assert (len(results["outputs"]), sum(progress), starts) == (4, 4, [1])
    assert json.loads(json.dumps(results["metadata"]["env_args"])) == {"max_turns": 1}
    assert results["metadata"]["env_id"] == "gymnasium/FrozenLake-v1"
    with pytest.raises(ConfigurationError, match="there is none"):
        await run_evaluation(config, on_log_file=print)


async def test_several_are_printed_and_the_first_error_is_raised_when_all_are_done(
    server: ModelServer, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = frozen_lake(server, independent_scoring=True, num_examples=1)
    results = await run_evaluations(EvalRunConfig(evals=[frozen_lake(server), config]))
    assert [len(each["outputs"]) for each in results] == [4, 2]
    assert capsys.readouterr().out.count("--- Evaluation ---") == 2
    (workspace / "file").write_text("no directory")
    with pytest.raises(ResultsError, match="file"):
        await run_evaluations(EvalRunConfig(evals=[frozen_lake(server, save_results=True, output_dir="file"), frozen_lake(server)]))
    assert capsys.readouterr().out.count("--- Evaluation ---") == 1


CLOSING = """
import asyncio
import verifiers as vf
closed = []
playing = asyncio.Event()

class Env(vf.SingleTurnEnv):
    @vf.teardown
    async def close(self):
        closed.append(1)

    async def evaluate(self, *args, **kwargs):
        playing.set()
        if self.ends == "badly":
            raise ZeroDivisionError
        await (asyncio.sleep(0) if self.ends == "well" else asyncio.Event().wait())

def load_environment():
    return Env(dataset=[{"question": "?"}], rubric=vf.Rubric())
"""


@pytest.mark.parametrize("carries_out", [lambda config: play_all([load_evaluation(config)], heartbeat_url=NOWHERE), run_evaluation])
@pytest.mark.parametrize("ends", ["well", "badly", "cancelled"])
async def test_environments_are_closed_however_an_evaluation_ends(
    ends: str, carries_out: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "modules" / "closing.py").write_text(CLOSING)
    use_alias(wins=True)
    module = importlib.import_module("closing")
    monkeypatch.setattr("verifiers_compat.cli.evals.runs.check_reachable", lambda config: asyncio.sleep(0))
    running = asyncio.ensure_future(carries_out(frozen_lake(NOWHERE, env_id="closing", env_args={}, extra_env_kwargs={"ends": ends})))
    await module.playing.wait()
    if ends == "cancelled":
        running.cancel()
    await asyncio.wait([running])
    if carries_out is not run_evaluation and ends == "badly":
        assert isinstance(running.result()[0][0], ZeroDivisionError)
    else:
        expected = {"well": None, "badly": ZeroDivisionError, "cancelled": asyncio.CancelledError}[ends]
        with pytest.raises(expected) if expected else contextlib.nullcontext():
            running.result()
    assert module.closed == [1]
    assert asyncio.all_tasks() == {asyncio.current_task()}, "no heartbeat goes on"


def test_a_directory_is_not_an_installed_library(workspace: Path) -> None:
    assert not is_peer_installed()
    (workspace / "modules" / "verifiers").mkdir()
    assert not is_peer_installed()
    (workspace / "modules" / "verifiers" / "__init__.py").write_text("")
    assert is_peer_installed()


def test_an_environment_is_loaded_with_what_is_set_on_it_and_its_first_task(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What fails there is named by the environment, before any model is asked."""
    use_alias(wins=True)
    env = load_env("yes-no", {"num_examples": 2}, {"max_seq_len": 7, "limit": 2, "colour": 1})
    assert (len(env.get_dataset()), env.max_seq_len, env.limit, env.colour) == (2, 7, 2, 1)
    assert (env.env_id, env.env_args) == ("yes-no", {"num_examples": 2})
    assert [record.args[1] for record in caplog.records if isinstance(record.args, tuple)] == ["colour"]
    with pytest.raises(EnvironmentLoadError, match=r"^the dataset of 'yes-no' cannot be built: ZeroDivisionError: .*\(yes_no.py:16\)$"):
        load_env("yes-no", {"fails": True}, {})


def test_what_is_made_with_another_library_and_what_this_one_raises_is_said(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_alias(wins=True)
    code = "import verifiers as vf\n\ndef rows():\n    raise vf.Error('no rows today')\n\n"
    (workspace / "modules" / "refusing.py").write_text(code + "def load_environment():\n    return vf.SingleTurnEnv(dataset=rows)\n")
    with pytest.raises(Error, match=r"^no rows today$") as caught:
        load_env("refusing", {}, {})
    assert type(caught.value) is Error
    monkeypatch.setattr("verifiers_compat.cli.evals.runs.load_environment", lambda env_id, **env_args: Path())
    with pytest.raises(
        ConfigurationError, match=r"^the environment 'foreign' is a pathlib.PosixPath, made with another library: .* --alias"
    ):
        load_env("foreign", {}, {})
