"""``vf-eval``, against a server on this machine: what is asked, what is printed and saved, and how it ends."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.interruptions import ctrl_c
from tests.verifiers_compat.cli.options import check_spellings, command_line, declared_options
from verifiers_compat.cli.commands.eval import app
from verifiers_compat.cli.evals.fields import WITHOUT_EFFECT
from verifiers_compat.types import EvalConfig
from vfgym.clients.config import PROVIDERS
from vfgym.model_server import ModelServer, scripted
from vfgym.results import load_results

VfEval = Callable[..., Any]


def saved(workspace: Path) -> list[Path]:
    return sorted(file.parent for file in workspace.rglob("results.jsonl"))


def test_prints_what_came_out_in_sections(vf_eval: VfEval, server: ModelServer) -> None:
    done = vf_eval("yes-no", "-m", "yes", "-b", server.openai_url, "-n", "2", "-r", "2")
    assert done.code == 0, done.err
    for line in (
        *("Environment: yes-no", "Model: yes", f"Provider: {server.openai_url}", "Examples: 2", "Rollouts per example: 2"),
        *("Rewards:", "reward: avg - 1.000, std - 0.000", "r1: [1.0, 1.0]", "r2: [1.0, 1.0]", "pass@1: 1.0, pass@2: 1.0"),
        *("pass^1: 1.0, pass^2: 1.0", "is_right: avg - 1.000, std - 0.000"),
        *("Info:", "is_truncated: 0.0", "stop_conditions: max_turns_reached: 1.0", "errors: 0.0", "Timing:", "Usage:"),
    ):
        assert line in done.out.splitlines()
    assert "Is 0 a number?" in done.out
    assert server.num_requests == 4


def test_an_abbreviated_summary_has_no_single_values(vf_eval: VfEval, server: ModelServer) -> None:
    done = vf_eval("yes-no", "-m", "no", "-b", server.openai_url, "-n", "1", "-r", "1", "-A", "-d")
    assert done.code == 0
    assert "full-screen" not in done.err
    assert "reward: avg - 0.000" in done.out
    assert not [line for line in done.out.splitlines() if line.startswith(("r1:", "Timing:", "--- Example"))]


NOWHERE = "http://127.0.0.1:1/v1"
RECORDER = """
import logging
import verifiers as vf

class Env(vf.SingleTurnEnv):
    async def evaluate(self, client, model, **given):
        played.append({
            **client.model_dump(), **given, "model": model, "timeout": self.timeout_seconds, "colour": getattr(self, "colour", None),
            "size": self.env_args.get("size"), "level": logging.getLogger("verifiers").level,
        })
        raise vf.Error("recorded")

played = []

def load_environment(size=0):
    return Env(dataset=[{"question": "?"}], rubric=vf.Rubric())
"""
TOGETHER: dict[str, tuple[str | None, dict[str, Any]]] = {
    "env_args": ('{"size": 3}', {"size": 3}),
    "endpoints_path": ("registry.toml", {}),
    "model": ("registered", {"model": "org/registered"}),
    "api_client_type": ("openai_completions", {"client_type": "openai_completions"}),
    "api_key_var": ("OWN_KEY", {"api_key_var": "OWN_KEY"}),
    "headers": ("X-Mine: 4", {"extra_headers": {"X-Mine": "4"}}),
    "headers_from_state": ("X-Row: answer", {"extra_headers_from_state": {"X-Row": "answer"}}),
    "max_concurrent": ("5", {"max_concurrent": 5}),
    "max_tokens": ("6", {}),
    "temperature": ("0.0", {}),
    "sampling_args": ('{"seed": 7}', {"sampling_args": {"max_tokens": 6, "temperature": 0.0, "seed": 7}}),
    "timeout": ("8", {"timeout": 8.0}),
    "extra_env_kwargs": ('{"colour": 9}', {"colour": 9}),
    "verbose": (None, {"level": logging.DEBUG}),
    "num_examples": ("10", {"num_examples": 10}),
    "rollouts_per_example": ("11", {"rollouts_per_example": 11}),
    "max_concurrent_scoring": ("12", {"max_concurrent_scoring": 12}),
    "output_dir": ("there", {}),
    "save_results": (None, {"save_results": True}),
    "state_columns": ("a, b", {"state_columns": ["a", "b"]}),
    "redo_errors": (None, {"redo_errors": True}),
    "independent_scoring": (None, {"independent_scoring": True}),
    "max_retries": ("13", {"max_retries": 13}),
    "limits": ("tokens=14", {"limits": {"tokens": 14}}),
    "limits_each": ("turns=15", {"limits_each": {"turns": 15}}),
    "prices": ("prices.toml", {"prices": "prices.toml"}),
    "cache": (None, {"cache": True}),
    "save_to_hf_hub": (None, {"push_to_hf_hub": True}),
    "hf_hub_dataset_name": ("me/results", {"hf_hub_dataset_name": "me/results"}),
    "no_interleave_scoring": (None, {}),
    "seed": ("0", {"seed": 0}),
    "split": ("train", {"split": "train"}),
    "example_ids": ("3,5", {"example_ids": [3, 5]}),
    "pass_threshold": ("0.0", {"pass_threshold": 0.0}),
    "shard": ("0/17", {"shard": (0, 17)}),
    "tags": ("one, two", {"tags": ["one", "two"]}),
    "executor": ("process", {"executor": "process"}),
    "workers": ("18", {"workers": 18}),
    "strict": (None, {"strict": True}),
    "disable_env_server": (None, {}),
}
"""What each option is given, and what of the evaluation is then so."""
ALONE = {"num_workers", "provider", "api_base_url", "resume", "env_dir_path"}
OF_THE_COMMAND = {"abbreviated_summary", "disable_tui", "fullscreen", "heartbeat_url", "alias", "debug"}
"""Those that other tests are about."""


@pytest.fixture
def played(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """Gives what the environment ``recorder`` was last asked to evaluate. No model is asked."""
    monkeypatch.setattr("verifiers_compat.cli.evals.runs.check_reachable", lambda config: asyncio.sleep(0))
    (workspace / "modules" / "recorder.py").write_text(RECORDER)
    return lambda: dict(sys.modules["recorder"].played.pop())


def test_each_option_has_a_value_of_its_own_in_a_test_here() -> None:
    assert declared_options(app).keys() == TOGETHER.keys() | ALONE | OF_THE_COMMAND
    letters = (
        "a env_args, p provider, e endpoints_path, m model, k api_key_var, b api_base_url, c max_concurrent, t max_tokens, T temperature,"
        " S sampling_args, x extra_env_kwargs, v verbose, n num_examples, r rollouts_per_example, o output_dir, s save_results,"
        " C state_columns, R resume, i independent_scoring, H save_to_hf_hub, D hf_hub_dataset_name, N no_interleave_scoring,"
        " w num_workers, A abbreviated_summary, d disable_tui, f fullscreen"
    )
    others = {"headers": "--header", "headers_from_state": "--header-from-state", "limits": "--limit", "limits_each": "--limit-each"}
    check_spellings(app, letters, others)


@pytest.mark.parametrize("spelling", range(3))
def test_each_option_arrives_where_it_belongs(
    spelling: int, vf_eval: VfEval, workspace: Path, played: Callable[[], dict[str, Any]]
) -> None:
    """All together, so that none is taken for another; by each of its names."""
    row = f'[[endpoint]]\nendpoint_id = "registered"\nmodel = "org/registered"\nurl = "{NOWHERE}"\nkey = "K"\n'
    (workspace / "registry.toml").write_text(row)
    done = vf_eval("recorder", *command_line(app, {name: value for name, (value, _) in TOGETHER.items()}, spelling))
    assert (done.code, "error: recorder: recorded" in done.err) == (1, True), done.err
    found, expected = played(), {name: value for _, seen in TOGETHER.values() for name, value in seen.items()}
    assert {name: found[name] for name in expected} == expected
    assert found["api_base_url"] == NOWHERE
    assert found["results_path"].parent == Path("there/evals/recorder--org--registered")
    taken = [name for name in inspect.signature(vf.Environment.evaluate).parameters if name in EvalConfig.model_fields]
    assert {"max_concurrent", "max_retries", "state_columns"} <= set(taken) <= found.keys(), "whatever can be passed on is"
    notes = [line.split()[1] for line in done.err.splitlines() if line.startswith("note:")]
    assert notes == [f"--{name.replace('_', '-')}" for name in WITHOUT_EFFECT]


def test_options_that_stand_in_for_others_arrive_too(vf_eval: VfEval, workspace: Path, played: Callable[[], dict[str, Any]]) -> None:
    """A provider, a URL that wins over it, a directory for environments under three names, and a run to resume."""
    for option in ("--provider", "-p"):
        vf_eval("recorder", "-m", "m", option, "anthropic")
        found, place = played(), PROVIDERS["anthropic"]
        assert [found[name] for name in ("api_base_url", "api_key_var", "client_type")] == [place.url, place.key_var, place.client_type]
    for option in ("--api-base-url", "-b"):
        vf_eval("recorder", "-m", "m", "-p", "anthropic", option, NOWHERE)
        found = played()
        assert (found["api_base_url"], found["api_key_var"]) == (NOWHERE, place.key_var)
    assert (found["results_path"], found["save_results"]) == (None, False)
    (workspace / "envs" / "recorder").mkdir(parents=True)
    for option, folder in (("--env-dir-path", "envs"), ("-p", "envs"), ("--provider", "./envs")):
        vf_eval("recorder", "-m", "m", "-s", option, folder)
        assert played()["results_path"].parent == Path("envs/recorder/outputs/evals/recorder--m")
    for name in ("results.jsonl", "metadata.json"):
        (workspace / "envs" / name).write_text("")
    for option in ("--resume", "-R"):
        vf_eval("recorder", "-m", "m", option, "envs")
        assert played()["results_path"] == Path("envs")


def test_a_config_file_runs_several_evaluations(vf_eval: VfEval, server: ModelServer, workspace: Path) -> None:
    (workspace / "config.toml").write_text(
        f'api_base_url = "{server.openai_url}"\nnum_examples = 1\nrollouts_per_example = 1\nsave_results = true\n'
        '[[eval]]\nenv_id = "yes-no"\nmodel = "yes"\n'
        '[[ablation]]\nenv_id = "yes-no"\nmodel = "no"\n[ablation.sweep.args]\nanswer = ["yes", "no"]\n'
    )
    done = vf_eval("config.toml")
    assert done.code == 0, done.err
    metadata = [load_results(path)["metadata"] for path in saved(workspace)]
    found = sorted((each["model"], each["env_args"].get("answer"), each["avg_reward"]) for each in metadata)
    assert found == [("no", "no", 1.0), ("no", "yes", 0.0), ("yes", None, 1.0)]
    assert done.out.count("--- Evaluation ---") == 3


def test_an_evaluation_that_breaks_off_does_not_stop_the_others(vf_eval: VfEval, server: ModelServer, workspace: Path) -> None:
    (workspace / "config.toml").write_text(
        f'api_base_url = "{server.openai_url}"\nnum_examples = 1\nrollouts_per_example = 1\n'
        'model = "yes"\n[[eval]]\nenv_id = "yes-no"\nnum_examples = 2\nmax_concurrent = 1\nlimits = { requests = 1 }\n'
        "independent_scoring = true\n"
        '[[eval]]\nenv_id = "yes-no"\nsave_results = true\noutput_dir = "file"\n'
    )
    (workspace / "file").write_text("no directory")
    done = vf_eval("config.toml")
    assert done.code == 1, "which says more than that a limit ended another one"
    assert "reward: avg - 1.000" in done.out
    assert "Stopped: the limit on requests" in done.out
    assert "error: yes-no: cannot write results to file/evals" in done.err


def test_a_run_that_ctrl_c_stopped_is_saved_and_resumed(vf_eval: VfEval, workspace: Path) -> None:
    arguments = ["yes-no", "-m", "yes", "-n", "6", "-r", "1", "-a", '{"num_examples": 6}', "-c", "1", "-i"]
    for saves in (False, True):
        with ctrl_c() as interrupt:

            async def gets_stuck(request: Any, interrupt: Callable[[], None] = interrupt) -> str:
                if request.number > 3:
                    interrupt()
                    await asyncio.Event().wait()
                return "yes"

            with ModelServer({"yes": gets_stuck}) as server:
                done = vf_eval(*arguments, "-b", server.openai_url, *(["-s"] if saves else []))
        assert done.code == 130
        assert saves or "stopped: nothing was saved (-s saves)" in done.err
    (path,) = saved(workspace)
    assert f"stopped: what was finished is in {path.relative_to(workspace)}" in done.err
    assert len(load_results(path)["outputs"]) == 3

    with ModelServer({"yes": scripted(["yes"])}) as server:
        done = vf_eval(*arguments, "-b", server.openai_url, "--resume")
        assert (done.code, server.num_requests) == (0, 3)
        assert saved(workspace) == [path]
        assert [row["reward"] for row in load_results(path)["outputs"]] == [1.0] * 6
        done = vf_eval(*arguments, "-b", server.openai_url, "--resume")
        assert (done.code, "there is no run to resume" in done.err) == (2, True)
        assert vf_eval(*arguments, "-b", server.openai_url, "-R", str(path)).code == 0
        assert server.num_requests == 3


def test_environments_that_are_not_there_are_all_named(vf_eval: VfEval, workspace: Path) -> None:
    (workspace / "config.toml").write_text('[[eval]]\nid = "yes-no"\n[[eval]]\nid = "no-such"\n[[eval]]\nid = "nor/any-such@1"\n')
    done = vf_eval("config.toml")
    assert done.code == 1
    assert [line.partition(" is not")[0] for line in done.err.splitlines()] == [
        "error: the environment 'no-such'",
        "error: the environment 'nor/any-such'",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("yes-no", "-d", "-f"), "--fullscreen and --disable-tui contradict each other"),
        (("yes-no", "-a", "{"), "--env-args must be JSON"),
        (("yes-no", "-a", '{"anwser": 1}'), "takes no argument 'anwser'.*Did you mean `answer`"),
        (("yes-no", "-a", '{"key": "NO_SUCH_KEY"}'), "NO_SUCH_KEY"),
        (("yes-no", "-a", '{"fails": true}'), "the dataset of 'yes-no' cannot be built: ZeroDivisionError"),
        ((), "Missing argument 'ENV_OR_CONFIG'"),
        (("none.toml", "-m", "x", "-s"), "have to stand in it: --model, --save-results"),
    ],
)
def test_what_the_user_can_mend_is_one_line(vf_eval: VfEval, arguments: tuple[str, ...], message: str) -> None:
    done = vf_eval(*arguments)
    assert done.code == 2
    assert len([line for line in done.err.splitlines() if line.startswith("error: ")]) == 1
    assert "Traceback" not in done.err
    assert re.search(message, done.err, re.DOTALL)


def test_an_installed_peer_comes_first_unless_the_alias_is_asked_for(vf_eval: VfEval, server: ModelServer, workspace: Path) -> None:
    peer = workspace / "modules" / "verifiers"
    peer.mkdir()
    (peer / "__init__.py").write_text("class Environment:\n    def generate(self): ...\n")
    (workspace / "modules" / "foreign.py").write_text(
        "import verifiers as vf\n"
        "def load_environment():\n"
        "    if not hasattr(vf, 'SingleTurnEnv'): return vf.Environment()\n"
        "    return vf.SingleTurnEnv(dataset=[{'question': '?'}], rubric=vf.Rubric(funcs=[lambda completion: 1.0]))\n"
    )
    command = ("foreign", "-m", "yes", "-b", server.openai_url, "-r", "1")
    refused = vf_eval(*command)
    assert (refused.code, "with --alias, which lets" in refused.err) == (2, True), refused.err
    for name in ("foreign", "verifiers"):
        del sys.modules[name]
    done = vf_eval(*command, "--alias")
    assert done.code == 0, done.err
    assert "reward: avg - 1.000" in done.out


def test_a_limit_ends_an_evaluation(vf_eval: VfEval, server: ModelServer, workspace: Path) -> None:
    limits = ("--limit", "requests=3", "--limit-each", "turns=5")
    done = vf_eval("yes-no", "-m", "yes", "-b", server.openai_url, "-n", "4", "-r", "1", "-i", "-c", "1", "-s", *limits)
    assert done.code == 3, done.err
    assert "Stopped: the limit on requests is used up (3 of 3)" in done.out
    assert server.num_requests == 3
    (run,) = saved(workspace)
    assert load_results(run)["metadata"]["stopped_by"] == {"limit": "requests", "allowed": 3, "used": 3}
    assert load_results(run)["metadata"]["limits_each"] == {"turns": 5}
