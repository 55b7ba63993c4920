"""``vfgym eval`` with models, and ``vfgym serve-model``: the commands run as their users run them, against real servers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.commands import run_vfgym
from vfgym.model_server import ModelRequest, ModelServer, RequestRefused, environment_oracle
from vfgym.model_server.policies import echo
from vfgym.results import load_results

DATASET = "reasoning-gym/leg_counting-v0"
SECONDS = 240.0
"""How long a command may hang before its test fails."""
KEY = "sk-test-0123456789abcdef"

TOOLS = """
import gymnasium
import vfgym

def double(n: int) -> int:
    \"\"\"Double a number.\"\"\"
    return 2 * n

def right(completion, answer):
    return float(completion[-1].content == answer)

def make(**kwargs):
    rows = [{"question": str(n), "answer": str(2 * n)} for n in range(4)]
    return vfgym.ToolEnv([double], dataset=rows, rubric=vfgym.Rubric(right), sampling_args={"temperature": 0.5}, **kwargs)

gymnasium.register("doubling/Doubling-v0", make)

def doubles(request):
    last = request.messages[-1]
    if last["role"] == "tool":
        return last["content"]
    return {"tool_calls": [{"id": "c1", "name": "double", "arguments": '{"n": ' + last["content"] + "}"}]}
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doubling.py").write_text(TOOLS)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture(scope="module")
def knows() -> Any:
    with contextlib.closing(gymnasium.make(DATASET)) as env:
        return environment_oracle(env)


@pytest.fixture
def server(knows: Any) -> Iterator[ModelServer]:
    with ModelServer({"knows": knows, "echo": echo}) as server:
        yield server


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "import vfgym.cli; vfgym.cli.main()", *arguments]


def run(*arguments: str, exit_code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = run_vfgym(*arguments, exit_code=exit_code, **environment)
    assert "Traceback" not in done.stderr
    return done


def table(stdout: str) -> dict[str, dict[str, str]]:
    """Return the rows of a comparison by the names of their agents."""
    header, *rows = [re.split(r" {2,}", line) for line in stdout.splitlines() if "  " in line]
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def rewards(stdout: str) -> dict[str, float]:
    return {name: float(row["reward (95 %)"].partition(" ")[0]) for name, row in table(stdout).items()}


# Every API


@pytest.mark.parametrize(
    ("where", "path"),
    [
        (["--base-url", "{openai}"], "/v1/chat/completions"),
        (["--provider", "vllm", "--base-url", "{openai}"], "/v1/chat/completions"),
        (["--base-url", "{openai}", "--client-type", "openai_responses"], "/v1/responses"),
        (["--base-url", "{openai}", "--client-type", "openai_completions"], "/v1/completions"),
        (["--provider", "anthropic", "--base-url", "{anthropic}"], "/v1/messages"),
        (["--base-url", "{anthropic}", "--client-type", "anthropic_messages"], "/v1/messages"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_model_plays_through_every_api(server: ModelServer, where: Sequence[str], path: str) -> None:
    place = [each.format(openai=server.openai_url, anthropic=server.url) for each in where]
    done = run("eval", DATASET, "--model", "knows", *place, "-n", "3", "--no-save", "-S", '{"max_tokens": 200, "temperature": 0.25}')
    assert rewards(done.stdout) == {"knows": 1.0}
    assert table(done.stdout)["knows"]["failed"] == "0/3"
    assert {request.path for request in server.requests} == {path}
    limits = {"max_tokens", "max_completion_tokens", "max_output_tokens"}
    for request in server.requests:
        assert request.body["temperature"] == 0.25
        assert [request.body[name] for name in limits & request.body.keys()] == [200]


@pytest.mark.parametrize("client_type", ["openai_chat_completions", "openai_responses", "anthropic_messages"])
def test_a_model_calls_tools_through_every_api_that_has_them(client_type: str, directory: Path) -> None:
    def doubles(request: ModelRequest) -> Any:
        last = request.messages[-1]
        if last["role"] == "tool":
            return last["content"]
        return {"tool_calls": [{"id": "c1", "name": "double", "arguments": json.dumps({"n": int(last["content"])})}]}

    with ModelServer({"doubles": doubles}) as server:
        url = server.url if client_type == "anthropic_messages" else server.openai_url
        arguments = ["--base-url", url, "--client-type", client_type, "-S", '{"max_tokens": 100}', "-r", "2"]
        done = run("eval", "doubling:doubling/Doubling-v0", "-m", "doubles", *arguments)
        assert server.num_requests == 4 * 2 * 2
        assert {request.body["temperature"] for request in server.requests} == {0.5}  # the environment's own
    assert rewards(done.stdout) == {"doubles": 1.0}
    results = load_results(Path(done.stdout.split()[-1]))
    assert [(row["example_id"], row["rollout"]) for row in results["outputs"]] == [(i, r) for i in range(4) for r in range(2)]
    metadata = results["metadata"]
    assert (metadata["model"], metadata["base_url"], metadata["sampling_args"]) == ("doubles", url, {"max_tokens": 100})


def test_models_and_agents_stand_in_one_table(server: ModelServer, directory: Path) -> None:
    done = run("eval", DATASET, "-a", "random", "-a", "oracle", "-m", "knows", "-m", "echo", "-b", server.openai_url, "-n", "3")
    assert list(table(done.stdout)) == ["random", "oracle", "knows", "echo"]
    found = rewards(done.stdout)
    assert (found["oracle"], found["knows"], found["echo"]) == (1.0, 1.0, 0.0)
    folders = {path.name for path in (directory / "outputs" / "evals").iterdir()}
    assert folders == {f"reasoning-gym--leg_counting-v0--{name}" for name in ("agent=random", "agent=oracle", "knows", "echo")}


def test_an_agent_and_a_model_of_one_name_stay_apart(knows: Any, directory: Path) -> None:
    """In the table, on disk, and where runs are gone on with."""
    with ModelServer({"random": knows}) as server:
        both = ["eval", DATASET, "-a", "random", "-m", "random", "-b", server.openai_url, "-n", "3"]
        done = run(*both)
        assert list(table(done.stdout)) == ["random (agent)", "random (model)"]
        assert rewards(done.stdout)["random (model)"] == 1.0
        evals = directory / "outputs" / "evals"
        folders = [evals / f"reasoning-gym--leg_counting-v0--{name}" for name in ("agent=random", "random")]
        assert sorted(evals.iterdir()) == sorted(folders)
        for folder, is_model in zip(folders, (False, True), strict=True):
            (path,) = folder.iterdir()
            metadata = load_results(path)["metadata"]
            assert (metadata["model"], metadata["is_model"]) == ("random", is_model)
            rows = path / "results.jsonl"
            rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:2]))
        asked = server.num_requests
        resumed = run(*both, "--resume")
        assert server.num_requests == asked + 1
    assert [
        f"random ({kind}): going on with {next(folder.iterdir()).relative_to(directory)}" in resumed.stdout
        for kind, folder in (
            ("agent", folders[0]),
            ("model", folders[1]),
        )
    ] == [True, True]
    other = str(next(folders[0].iterdir()))
    with ModelServer({"random": knows}) as server:
        refused = run("eval", DATASET, other, "-m", "random", "-b", server.openai_url, "-n", "3", "--resume", exit_code=2)
    assert "its is_model is False, and this run's is True" in refused.stderr


def test_faults_are_the_errors_of_their_rollouts_only(knows: Any) -> None:
    with ModelServer({"knows": knows}, faults=lambda request: "malformed_json" if request.number == 2 else None) as server:
        done = run("eval", DATASET, "-m", "knows", "-b", server.openai_url, "-n", "4", "--no-save")
    assert table(done.stdout)["knows"]["failed"] == "1/4"
    assert rewards(done.stdout) == {"knows": 0.75}
    assert "knows: the first error is " in done.stdout


# Keys


def test_the_key_of_the_named_variable_is_sent(knows: Any) -> None:
    with ModelServer({"knows": knows}, api_keys={KEY}) as server:
        openai = ["eval", DATASET, "-m", "knows", "-b", server.openai_url, "-n", "1", "--no-save"]
        run(*openai, OPENAI_API_KEY=KEY)
        run(*openai, "--api-key-var", "MY_KEY", OPENAI_API_KEY="wrong", MY_KEY=KEY)
        run("eval", DATASET, "-m", "knows", "-p", "anthropic", "-b", server.url, "-n", "1", "--no-save", ANTHROPIC_API_KEY=KEY)


@pytest.mark.parametrize(
    ("client_type", "key"),
    [
        ("openai_chat_completions", None),
        ("openai_chat_completions", "short"),
        ("openai_chat_completions", "sk-a-much-longer-wrong-key"),
        ("openai_responses", "short"),
        ("openai_completions", "short"),
        ("anthropic_messages", "short"),
        ("anthropic_messages", None),
    ],
)
def test_a_refused_key_stops_the_run_and_names_its_variable(client_type: str, key: str | None) -> None:
    with ModelServer({"m": echo}, api_keys={KEY}) as server:
        url = server.url if client_type == "anthropic_messages" else server.openai_url
        variables = {} if key is None else {"MY_KEY": key}
        arguments = ["--model", "m", "-b", url, "--client-type", client_type, "-k", "MY_KEY", "-n", "-1", "-c", "4"]
        done = run("eval", DATASET, *arguments, exit_code=2, **variables)
        assert server.num_requests <= 8
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
        done = run("eval", DATASET, "-m", model, "-b", where, "-n", "-1", "-c", "4", exit_code=2)
        assert server.num_requests <= 8
    *_, line = done.stderr.splitlines()
    assert line.startswith(f"error: the provider at {where} does not know the model {model!r}, or there is no such API")
    assert says in line
    assert "Error code: 404" in line


def test_what_is_finished_is_shown_before_a_refusal(knows: Any) -> None:
    def forbids(request: ModelRequest) -> Any:
        raise RequestRefused(403, "this model is not for you")

    with ModelServer({"knows": knows, "forbids": forbids}) as server:
        done = run("eval", DATASET, "-m", "knows", "-m", "forbids", "-b", server.openai_url, "-n", "2", exit_code=2)
    assert rewards(done.stdout) == {"knows": 1.0}
    assert "this model is not for you" in done.stderr


# What is wrong is said at once


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "m"], "say where m is: --provider (prime, openai, anthropic,"),
        (["-p", "openai"], "are about a --model: name one"),
        (["-S", '{"temperature": 1}', "-a", "random"], "are about a --model: name one"),
        (["-m", "m", "-p", "opnai"], "there is no provider 'opnai'; known: prime, openai,"),
        (["-m", "m", "-p", "openai", "--client-type", "openai_response"], "Did you mean `openai_responses`"),
        (["-m", "m", "-b", "localhost:8000"], "expected the URL of an API, like http://localhost:8000/v1, got 'localhost:8000'"),
        (["-m", "m", "-b", "http://x/v1", "-S", "0.7"], "--sampling-args must be a JSON object"),
        (["-m", "m", "-b", "http://x/v1", "-S", "{x}"], "--sampling-args must be JSON: "),
        (["-m", "", "-b", "http://x/v1"], "model must be the name of a model"),
        (["-m", "m", "-b", "http://127.0.0.1:{closed}/v1"], "cannot be reached: the connection is refused. Is the URL right"),
        (["-m", "m", "-b", "https://127.0.0.1:{closed}/v1"], "cannot be reached: the connection is refused. Is the URL right"),
        (["-m", "m", "-b", "http://no-such-host.invalid/v1"], "http://no-such-host.invalid/v1 cannot be reached: "),
        (["-m", "m", "-b", "http://a..b/v1"], "http://a..b/v1 cannot be reached: "),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_cannot_work_is_one_line_before_anything_is_played(arguments: list[str], message: str, directory: Path) -> None:
    stderr = run(
        "eval", DATASET, *[each.format(closed=closed_port()) if "{closed}" in each else each for each in arguments], exit_code=2
    ).stderr
    assert stderr.startswith("error: ")
    assert message in stderr
    assert stderr.count("\n") == 1
    assert not (directory / "outputs").exists()


def test_https_where_http_is_spoken_is_told_at_once(server: ModelServer) -> None:
    url = server.openai_url.replace("http://", "https://")
    assert f"error: {url} cannot be reached: " in run("eval", DATASET, "-m", "knows", "-b", url, exit_code=2).stderr


def test_a_proxy_that_cannot_be_reached_is_named() -> None:
    proxy = f"http://127.0.0.1:{closed_port()}"
    variables = {"http_proxy": proxy, "no_proxy": "", "NO_PROXY": ""}
    stderr = run("eval", DATASET, "-m", "m", "-b", "http://models.example/v1", exit_code=2, **variables).stderr
    assert "http://models.example/v1 (by the proxy 127.0.0.1) cannot be reached: the connection is refused" in stderr


# Going on


def test_a_run_with_a_model_is_resumed_by_its_sampling_args(knows: Any, directory: Path) -> None:
    with ModelServer({"knows": knows}, faults=lambda request: "malformed_json" if request.number <= 2 else None) as server:
        arguments = ["eval", DATASET, "-m", "knows", "-b", server.openai_url, "-n", "5", "-S", '{"temperature": 0.5}']
        assert table(run(*arguments).stdout)["knows"]["failed"] == "2/5"
        assert "there is no unfinished run to resume" in run(*arguments, "--resume").stdout
        other = ["eval", DATASET, "-m", "knows", "-b", server.openai_url, "-n", "5", "--resume", "--redo-errors"]
        assert "there is no unfinished run to resume" in run(*other).stdout
        before = server.num_requests
        done = run(*arguments, "--resume", "--redo-errors")
        assert "knows: going on with " in done.stdout
        assert server.num_requests == before + 2
    assert rewards(done.stdout.partition("\n")[2]) == {"knows": 1.0}


def test_ctrl_c_stops_a_run_that_waits_for_a_model(directory: Path) -> None:
    waits = threading.Event()

    def hangs(request: ModelRequest) -> str | None:
        if request.number <= 3:
            return None
        waits.set()
        return "hung"

    with (
        ModelServer(faults=hangs) as server,
        subprocess.Popen(
            command("eval", DATASET, "-m", "echo", "-b", server.openai_url, "-n", "20", "-c", "1", "-o", "runs"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert waits.wait(SECONDS)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=SECONDS)
        assert process.returncode == 130, stderr
        assert "Traceback" not in stderr
    path = Path(stdout.split()[-1])
    assert len(load_results(path)["outputs"]) == 3


# serve-model


@contextlib.contextmanager
def served(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run ``vfgym serve-model`` and read its greeting."""
    with subprocess.Popen(
        command("serve-model", *arguments, "--port", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        greeting = {}
        while (line := process.stdout.readline().strip()) and not line.startswith("Ctrl-C"):
            name, _, value = line.partition(": ")
            greeting[name] = value.strip()
        try:
            yield process, greeting
        finally:
            process.kill()


def test_a_served_model_is_evaluated_until_ctrl_c() -> None:
    with served("oracle", "echo", "--env", DATASET, "--api-key", KEY, "--rate-limited", "0.3", "--seed", "1") as (process, greeting):
        assert greeting["models"] == "oracle, echo"
        example = greeting["for example"].replace("ID", DATASET).split()
        done = run(*example[1:], "-m", "echo", "-n", "4", "--no-save", OPENAI_API_KEY=KEY)
        assert rewards(done.stdout) == {"oracle": 1.0, "echo": 0.0}
        anthropic = ["-p", "anthropic", "-b", greeting["Anthropic base URL"]]
        assert (
            rewards(run("eval", DATASET, "-m", "oracle", *anthropic, "-n", "2", "--no-save", ANTHROPIC_API_KEY=KEY).stdout)["oracle"] == 1.0
        )
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    count = re.search(r"stopped after (\d+) request", stdout)
    assert count is not None
    assert int(count[1]) > 10  # the rate-limited ones came again
    assert "Traceback" not in stderr


def test_a_served_model_may_be_a_function_of_the_user() -> None:
    with served("mine=doubling:doubles") as (_, greeting):
        done = run("eval", "doubling:doubling/Doubling-v0", "-m", "mine", "-b", greeting["OpenAI base URL"], "--no-save")
        assert rewards(done.stdout) == {"mine": 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ecko"], "Did you mean `echo`"),
        (["oracle"], "--env ID"),
        (["scripted"], "--script FILE"),
        (["echo", "--rate-limited", "1.5"], "rate_limited must be a share of the requests, from 0 to 1"),
        (["echo", "--port", "{busy}"], "cannot listen on 127.0.0.1:{busy}"),
    ],
)
def test_what_cannot_be_served_is_one_line(arguments: list[str], message: str, server: ModelServer) -> None:
    busy = server.url.rpartition(":")[2]
    stderr = run("serve-model", *[each.format(busy=busy) for each in arguments], exit_code=2).stderr
    assert message.format(busy=busy) in stderr
    assert stderr.count("\n") == 1
