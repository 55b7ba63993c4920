"""``vf-gepa``, against a server on this machine: the score of a planted task rises, a stopped run goes on, and what is wrong is said."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.interruptions import ctrl_c
from tests.verifiers_compat.cli.options import check_spellings, command_line, declared_options
from tests.verifiers_compat.gepa.planted import NUM_ROLLOUTS, START, WRITTEN, asked, player, serve
from verifiers_compat.cli.commands.gepa import app
from verifiers_compat.gepa import optimize_prompt
from vfgym.clients.config import PROVIDERS
from vfgym.model_server import ModelRequest, scripted

VfGepa = Callable[..., Any]


DOUBLES = """
import verifiers as vf
from tests.verifiers_compat.gepa import planted

def load_environment(**kwargs) -> vf.Environment:
    return planted.doubles(**kwargs)
"""


ARGUMENTS = ("doubles", "-m", "player", "-M", "writer", "-n", "4", "-N", "4", "-B", "40", "--perfect-score", "1", "-c", "1")


@pytest.fixture(autouse=True)
def _doubles(workspace: Path) -> None:
    """An installed environment with the planted task."""
    (workspace / "modules" / "doubles.py").write_text(DOUBLES)


def only_run(workspace: Path) -> Path:
    """Return the directory of the one run, relative to the workspace."""
    (settings,) = workspace.rglob("settings.json")
    return settings.parent.relative_to(workspace)


def test_prints_and_writes_a_better_prompt(vf_gepa: VfGepa, workspace: Path) -> None:
    with serve() as server:
        done = vf_gepa(*ARGUMENTS, "-b", server.openai_url, "-T", "0.5")
        assert done.code == 0, done.err
        assert {request.body["temperature"] for request in server.requests if request.body["model"] == "player"} == {0.5}
    run = only_run(workspace)
    assert run.parent == Path("outputs/gepa/doubles--player")
    assert done.out.splitlines() == [
        "candidate 0 (the start): 0.000 on 4 validation examples, 4 rollouts played",
        "candidate 1 (made from 0): 1.000 on 4 validation examples, 14 rollouts played",
        "Score: 0.000 at the start, 1.000 with the best prompt, after 14 rollouts",
        *("", WRITTEN, ""),
        f"Run: {run} (report.md, report.json, best_prompt.txt)",
    ]
    assert (run / "best_prompt.txt").read_text() == WRITTEN
    report = json.loads((run / "report.json").read_text())
    assert (report["env_id"], report["start_score"], report["best_score"]) == ("doubles", 0.0, 1.0)


NOWHERE = "http://127.0.0.1:1/v1"
TOGETHER: dict[str, tuple[str | None, dict[str, Any]]] = {
    "env_args": ('{"pass_threshold": 0.25}', {"pass_threshold": 0.25}),
    "endpoints_path": ("registry.toml", {}),
    "model": ("registered", {"model": "org/registered"}),
    "api_client_type": ("openai_completions", {"client_type": "openai_completions"}),
    "api_key_var": ("OWN_KEY", {"api_key_var": "OWN_KEY"}),
    "headers": ("X-Mine: 4", {"extra_headers": {"X-Mine": "4"}}),
    "headers_from_state": ("X-Row: answer", {"extra_headers_from_state": {"X-Row": "answer"}}),
    "max_concurrent": ("5", {"max_concurrent": 5}),
    "max_tokens": ("6", {}),
    "temperature": ("0", {}),
    "sampling_args": ('{"seed": 7}', {"sampling_args": {"max_tokens": 6, "temperature": 0.0, "seed": 7}}),
    "timeout": ("8", {"timeout_seconds": 8.0}),
    "extra_env_kwargs": ('{"max_seq_len": 9}', {"max_seq_len": 9}),
    "verbose": (None, {"level": logging.DEBUG}),
    "reflection_model": ("other", {"reflection_model": "org/other"}),
    "system_prompt_file": ("prompt.txt", {"system_prompt": "Begin so."}),
    "max_calls": ("10", {"max_calls": 10}),
    "num_train": ("11", {"num_train": 11}),
    "num_val": ("12", {"num_val": 12}),
    "minibatch_size": ("13", {"minibatch_size": 13}),
    "perfect_score": ("0.0", {"perfect_score": 0.0}),
    "state_columns": ("a,b", {"state_columns": ["a", "b"]}),
    "seed": ("14", {"seed": 14}),
    "run_dir": ("there", {"run_dir": Path("there")}),
}
"""What each option is given, and what of the run is then so."""


@pytest.fixture
def improved(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `optimize_prompt` was asked for, with what is in force then."""
    asked: list[dict[str, Any]] = []

    def record(env: Any, **given: Any) -> None:
        shown = {name: getattr(env, name) for name in ("pass_threshold", "timeout_seconds", "max_seq_len")}
        asked.append({**given["client"].model_dump(), **given, **shown, "level": logging.getLogger("verifiers").level})
        raise vf.Error("recorded")

    monkeypatch.setattr("verifiers_compat.gepa.optimize_prompt", record)
    monkeypatch.setattr("vfgym.clients.http.reachable.check_reachable", lambda config: asyncio.sleep(0))
    return asked


@pytest.mark.parametrize("spelling", range(3))
def test_each_option_arrives_where_it_belongs(spelling: int, vf_gepa: VfGepa, improved: list[dict[str, Any]]) -> None:
    """All together, so that none is taken for another; by each of its names. Those that are not here are in a test of their own."""
    alone = {"provider", "api_base_url", "env_dir_path", "no_save", "tui", "alias", "debug"}
    assert declared_options(app).keys() == TOGETHER.keys() | alone
    letters = (
        "a env_args, p provider, e endpoints_path, m model, k api_key_var, b api_base_url, c max_concurrent, t max_tokens, T temperature,"
        " S sampling_args, x extra_env_kwargs, v verbose, M reflection_model, B max_calls, n num_train, N num_val, o run_dir, u tui"
    )
    others = {"headers": "--header", "headers_from_state": "--header-from-state", "system_prompt_file": "--system-prompt"}
    check_spellings(app, letters, others)
    Path("prompt.txt").write_text("Begin so.\n")
    row = '[[endpoint]]\nendpoint_id = "{0}"\nmodel = "org/{0}"\nurl = "{1}"\nkey = "K"\n'
    Path("registry.toml").write_text("".join(row.format(name, NOWHERE) for name in ("registered", "other")))
    done = vf_gepa("doubles", *command_line(app, {name: value for name, (value, _) in TOGETHER.items()}, spelling))
    assert (done.code, "error: recorded" in done.err) == (1, True), done.err
    [found], expected = improved, {name: value for _, seen in TOGETHER.values() for name, value in seen.items()}
    assert {name: found[name] for name in expected} == expected
    assert (found["api_base_url"], found["reflection_client"].api_base_url) == (NOWHERE, NOWHERE)
    assert inspect.signature(optimize_prompt).parameters.keys() - found.keys() == {"env"}, "whatever can be passed on is"


def test_what_is_not_given_is_left_to_the_defaults(vf_gepa: VfGepa, improved: list[dict[str, Any]], workspace: Path) -> None:
    (workspace / "envs" / "doubles").mkdir(parents=True)
    for option in ("-b", "--api-base-url"):
        assert "stopped: nothing was saved" in vf_gepa("doubles", "-m", "m", option, NOWHERE, "--no-save").err
    for option, folder in (("--env-dir-path", "envs"), ("-p", "envs"), ("--provider", "./envs")):
        vf_gepa("doubles", "-m", "m", "-b", NOWHERE, option, folder)
    unsaved, _, *saved = improved
    vf_gepa("doubles", "-m", "m", "-p", "local", "-b", NOWHERE)
    assert improved[-1]["api_key_var"] == PROVIDERS["local"].key_var
    assert {each["run_dir"].parent for each in saved} == {Path("envs/doubles/outputs/gepa/doubles--m")}
    assert unsaved["run_dir"] is None
    assert (unsaved["model"], unsaved["reflection_model"], unsaved["system_prompt"], unsaved["sampling_args"]) == ("m", "m", None, {})
    assert not unsaved.keys() & {"max_calls", "num_train", "num_val", "minibatch_size", "perfect_score", "state_columns", "seed"}


@pytest.mark.parametrize("saves", [True, False])
def test_ctrl_c_leaves_what_was_found(saves: bool, vf_gepa: VfGepa, workspace: Path) -> None:
    with ctrl_c() as interrupt:

        async def is_interrupted(request: ModelRequest) -> str:
            if asked(server, "player") > NUM_ROLLOUTS:
                interrupt()
                await asyncio.Event().wait()
            return player(request)

        with serve(player=is_interrupted) as server:
            done = vf_gepa(*ARGUMENTS, "--perfect-score", "2", "-b", server.openai_url, *([] if saves else ["--no-save"]))
    assert done.code == 130
    assert "\n".join(("", WRITTEN, "")) in done.out
    if saves:
        run = only_run(workspace)
        assert f"stopped: the same command with --run-dir {run} goes on from here" in done.err
        assert (run / "best_prompt.txt").read_text() == WRITTEN
    else:
        assert "stopped: nothing was saved" in done.err
        assert not (workspace / "outputs").exists()


def test_a_config_file_says_it_all_and_options_win(vf_gepa: VfGepa, workspace: Path) -> None:
    (workspace / "prompt.txt").write_text(f"{START} Be brief.\n")
    with serve() as server:
        Path("run.toml").write_text(
            f'model = "player"\nreflection_model = "writer"\napi_base_url = "{server.openai_url}"\nsystem_prompt_file = "prompt.txt"\n'
            '[env]\nenv_id = "doubles"\nenv_args = { pass_threshold = 0.9 }\n'
            '[gepa]\nmax_calls = 40\nnum_train = 4\nnum_val = 2\nperfect_score = 1.0\nrun_dir = "run"\nseed = 5\n'
            "[sampling]\ntemperature = 0.25\n"
        )
        done = vf_gepa("run.toml", "-N", "4")
        assert done.code == 0, done.err
        assert server.requests[0].body["temperature"] == 0.25
    settings = json.loads(Path("run/settings.json").read_text())
    assert {name: settings[name] for name in ("env_args", "num_val", "seed", "system_prompt", "sampling_args")} == {
        **{"env_args": {"pass_threshold": 0.9}, "num_val": 4, "seed": 5},
        **{"system_prompt": f"{START} Be brief.", "sampling_args": {"temperature": 0.25}},
    }


def test_no_better_prompt_is_no_failure(vf_gepa: VfGepa) -> None:
    with serve(writer=scripted(["```Guess.```"])) as server:
        done = vf_gepa(*ARGUMENTS, "-B", "10", "-b", server.openai_url, "--no-save")
    assert (done.code, done.out.splitlines()[-1]) == (0, "No better prompt was found in 10 rollouts: the score stays 0.000")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("doubles", "--tui"), "no full-screen display"),
        (("doubles", "-a", "{"), "--env-args must be JSON"),
        (("doubles", "-B", "3"), "max_calls must be more than the 3 validation examples"),
        (("doubles", "--no-save", "-o", "run"), "--no-save writes nothing"),
        (("doubles", "-o", "modules"), "modules is not empty and holds no run"),
        (("doubles", "-b", "http://127.0.0.1:9/v1"), "cannot be reached|refused"),
        (("no-such-env",), "the environment 'no-such-env' is not installed"),
        (("typo.toml",), "there is no field 'num_trian'. Did you mean `num_train`"),
        (("no_env.toml",), "a run needs the id of an environment"),
    ],
)
def test_what_the_user_can_mend_is_one_line(arguments: tuple[str, ...], message: str, vf_gepa: VfGepa) -> None:
    Path("typo.toml").write_text("[gepa]\nnum_trian = 3\n")
    Path("no_env.toml").write_text("max_calls = 3\n")
    with serve() as server:
        where = () if "-b" in arguments else ("-b", server.openai_url)
        done = vf_gepa(*arguments, "-n", "3", "-N", "3", *where)
        assert server.num_requests == 0
    assert done.code == 2
    assert len([line for line in done.err.splitlines() if line.startswith("error: ")]) == 1
    assert "Traceback" not in done.err
    assert re.search(message, done.err, re.DOTALL)
