"""The commands, logging at DEBUG: no key in what they print and write, and no control character.

They run in forks (`tests.commands`). One failing run of each is a program of its own, as in a shell, in Python's development mode.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.commands import run_module
from tests.programs import SECONDS
from tests.secrecy.hostile_server import hostile_server
from tests.secrecy.planted import hits, hits_in_files, key, sampling_args, with_query, with_user
from vfgym.model_server import ModelRequest, ModelServer, RequestRefused, scripted

CONTROLS = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202eright to left \r overwritten"

ENVIRONMENT = '''
"""Questions that a judge decides. Requests are sent again at once. What loggers say goes to the standard error stream."""

import logging
import os

import vfgym
import verifiers_compat as vf
from vfgym.clients import ClientConfig
from vfgym.clients.http import retries

logging.basicConfig(level=logging.DEBUG)


retries._FIRST_PAUSE = retries._LONGEST_PAUSE = 0.001


def judge_client():
    url = os.environ["JUDGE_URL"]
    return ClientConfig(api_base_url=url, api_key=os.environ["JUDGE"], extra_headers={"X-Judge": os.environ["JUDGE"]}, max_retries=0)


async def verdict(judge, prompt, completion, answer, state):
    return float("yes" in await judge(prompt, completion, answer, state))


def bad(completion):
    raise ValueError(completion[-1]["content"])


def rows():
    return [{"question": "6 * 7?", "answer": "42"}]


def load_environment(secret_token=None, **arguments):
    rubric = vf.JudgeRubric(funcs=[verdict, bad], judge_client=judge_client())
    return vf.SingleTurnEnv(dataset=rows(), rubric=rubric)


def step_environment(secret_token=None, **arguments):
    rubric = vfgym.JudgeRubric([verdict, bad], judge_client=judge_client())
    return vfgym.SingleTurnEnv(rows(), rubric=rubric)


import gymnasium

gymnasium.register("Asked-v0", entry_point="asked:step_environment")
'''


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "asked.py").write_text(ENVIRONMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _variables(workspace: Path, judge_url: str) -> dict[str, str]:
    keys = {"SOME_KEY": key("variable"), "JUDGE": key("judge"), "JUDGE_URL": with_query(judge_url)}
    return {**keys, "VF_LOG_LEVEL": "DEBUG", "PYTHONPATH": str(workspace), "PYTHONASYNCIODEBUG": "1"}


def run(command: Sequence[str], workspace: Path, judge_url: str, code: int) -> str:
    """Run a command, and return what it printed."""
    module, *arguments = command
    done = run_module(module, *arguments, exit_code=code, **_variables(workspace, judge_url))
    return done.stdout + done.stderr


def run_program(command: Sequence[str], workspace: Path, judge_url: str, code: int) -> str:
    """Run a command as a program in Python's development mode, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-m", *command],
        env={**os.environ, **_variables(workspace, judge_url), "OPENAI_LOG": "debug", "ANTHROPIC_LOG": "debug"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == code, printed
    return printed


Command: TypeAlias = Callable[..., list[str]]


def vfgym_eval(url: str, *more: str) -> list[str]:
    arguments = ["--base-url", with_query(url), "--api-key-var", "SOME_KEY", "--sampling-args", json.dumps(sampling_args())]
    env_args = json.dumps({"secret_token": key("argument")})
    return ["vfgym", "eval", "asked:Asked-v0", "--model", "echo", "-n", "1", "--env-args", env_args, *arguments, *more]


def vf_options(url: str) -> list[str]:
    arguments = ["-b", with_query(url), "-k", "SOME_KEY", "-S", json.dumps(sampling_args()), "--header", f"X-Flag: {key('flag')}"]
    return ["asked", "-m", "echo", "-n", "1", "-v", "-o", "outputs", "-a", json.dumps({"secret_token": key("argument")}), *arguments]


def vf_eval(url: str, *more: str) -> list[str]:
    return ["verifiers_compat.cli.commands.eval", *vf_options(url), "-r", "1", "-s", *more]


def vf_gepa(url: str) -> list[str]:
    return ["verifiers_compat.cli.commands.gepa", *vf_options(url), "-M", "writes", "-N", "1", "-B", "9"]


@pytest.mark.parametrize("command", [vfgym_eval, vf_eval])
@pytest.mark.parametrize(
    "failure", [pytest.param("not_http", marks=pytest.mark.exhaustive), "redirects", "unknown_key_error", "bad_request"]
)
def test_a_failing_run(command: Command, failure: str, workspace: Path) -> None:
    start = run_program if failure == "bad_request" else run
    with hostile_server(failure) as port:
        url = f"http://127.0.0.1:{port}/v1"
        printed = start(command(url), workspace, url, 2 if failure == "unknown_key_error" and command is vfgym_eval else 1)
    assert "DEBUG" in printed
    assert hits("printed", printed) + hits_in_files(workspace / "outputs") == []
    assert list((workspace / "outputs").rglob("metadata.json"))


@pytest.mark.parametrize("command", [vfgym_eval, vf_eval])
def test_a_judge_that_fails(command: Command, workspace: Path) -> None:
    """The model answers; its answer tries to work the terminal, and is in the error of a reward function, too."""
    with ModelServer({"echo": scripted([CONTROLS])}) as server, hostile_server("page") as port:
        printed = run(command(server.openai_url), workspace, f"http://127.0.0.1:{port}/v1", code=1 if command is vfgym_eval else 0)
    assert "JudgeError" in printed
    assert hits("printed", printed) + hits_in_files(workspace / "outputs") == []
    assert "overwritten" in printed
    assert [character for character in printed if not character.isprintable() and character not in "\n\t"] == []


@pytest.mark.parametrize("command", [vfgym_eval, vf_eval])
@pytest.mark.parametrize("problem", ["user in the URL", "broken JSON", "key for a variable", "nobody there"])
def test_a_command_line_that_cannot_work(command: Command, problem: str, workspace: Path) -> None:
    url = with_user("http://127.0.0.1:9/v1") if problem == "user in the URL" else "http://127.0.0.1:9/v1"
    more = {"broken JSON": ["-S", f'{{"extra_headers": {{"X": "{key("broken")}"'], "key for a variable": ["-k", key("misplaced")]}
    is_refused = command is vfgym_eval or problem in more
    printed = run([*command(url), *more.get(problem, [])], workspace, url, code=2 if is_refused else 1)
    assert "error: " in printed
    assert hits("printed", printed) == []


def test_a_search_for_a_prompt_that_fails(workspace: Path) -> None:
    """``vf-gepa``: the key is refused when the model has answered, and the reflecting model is asked."""

    def refuses(request: ModelRequest) -> str:
        raise RequestRefused(401, f"{request.headers['authorization']} is not a key")

    with ModelServer({"echo": scripted(["42"]), "writes": refuses}) as server:
        printed = run(vf_gepa(server.openai_url), workspace, server.openai_url, code=1)
    assert "is not a key" in printed
    assert hits("printed", printed) + hits_in_files(workspace / "outputs") == []
    assert len(list((workspace / "outputs").rglob("results.jsonl"))) == 2


def test_an_endpoint_registry(workspace: Path) -> None:
    with hostile_server("bad_request") as port:
        url = f"http://127.0.0.1:{port}/v1"
        (workspace / "endpoints.toml").write_text(
            f"[[endpoint]]\nendpoint_id = 'here'\nmodel = 'm'\nurl = '{with_query(url)}'\nkey = 'SOME_KEY'\n"
            f"headers = {{ X-Registry = {json.dumps(key('registry'))} }}\n"
        )
        program = ["verifiers_compat.cli.commands.eval", "asked", "-m", "here", "-e", "endpoints.toml", "-n", "1", "-r", "1", "-s", "-v"]
        printed = run([*program, "-o", "outputs", "--debug"], workspace, url, code=1)
    assert hits("printed", printed) + hits_in_files(workspace / "outputs") == []
