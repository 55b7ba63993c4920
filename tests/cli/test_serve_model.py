"""``vfgym serve-model``: which models are served, where, and until when."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cases import DATASET, GAME, SECONDS, SHORT, program, rewards
from tests.commands import own_modules, run_vfgym
from vfgym import ClientConfig, ModelAgent, evaluate
from vfgym.cli.serve_model import DEFAULT_MODELS, load_models, serve
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer

KEY = "sk-test-0123456789abcdef"


@contextlib.contextmanager
def served(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run ``vfgym serve-model`` as a program, and read its greeting."""
    command = program("serve-model", *arguments, "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        greeting = {}
        while (line := process.stdout.readline().strip()) and not line.startswith("Ctrl-C"):
            name, _, value = line.partition(": ")
            greeting[name] = value.strip()
        try:
            yield process, greeting
        finally:
            process.kill()


def test_served_models_are_evaluated_until_ctrl_c(directory: Path) -> None:
    """Its own example works, over both APIs, with a key and with faults; a model may be a function of the user."""
    (directory / "policies.py").write_text("def four(request):\n    return '4'\n")
    words = ("echo", "mine=policies:four", "--api-key", KEY, "--rate-limited", "0.3", "--seed", "1")
    with served(*words) as (process, greeting):
        assert greeting["models"] == "echo, mine"
        example = greeting["for example"].replace("ID", SHORT).split()
        assert example[0] == "vfgym"
        done = run_vfgym(*example[1:], "-m", "mine", "-n", "4", "--no-save", OPENAI_API_KEY=KEY)
        assert rewards(done.stdout) == {"echo": 1.0, "mine": 1.0}
        anthropic = ["-p", "anthropic", "-b", greeting["Anthropic base URL"], "--no-save"]
        assert rewards(run_vfgym("eval", SHORT, "-m", "echo", *anthropic, ANTHROPIC_API_KEY=KEY).stdout) == {"echo": 1.0}
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    count = re.search(r"stopped after (\d+) request", stdout)
    assert count is not None
    assert int(count[1]) > 12  # the rate-limited ones came again
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("names", "options", "served"),
    [
        ([], {}, [*DEFAULT_MODELS]),
        (["random"], {}, ["random"]),
        ([], {"script": Path("script.json")}, [*DEFAULT_MODELS, "scripted"]),
        (["scripted", "echo"], {"script": Path("script.json")}, ["scripted", "echo"]),
        (["echo"], {"env_id": DATASET}, ["echo", "oracle"]),
        (["other=echo", "builtins:repr"], {}, ["other", "builtins:repr"]),
    ],
)
def test_models_are_served_under_their_names(names: list[str], options: dict[str, Path], served: list[str], directory: Path) -> None:
    (directory / "script.json").write_text('["a", "b"]')
    with own_modules(directory):
        assert [*load_models(names, **options)] == served  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ecko"], "Did you mean `echo`"),
        (["oracle"], "--env ID"),
        (["oracle", "--env", "gymnasium/FrozenLak-v1"], "Did you mean"),
        (["scripted"], "--script FILE"),
        (["echo", "--rate-limited", "1.5"], "rate_limited must be a share of the requests, from 0 to 1"),
    ],
)
def test_what_cannot_be_served_is_one_line(words: list[str], message: str) -> None:
    stderr = run_vfgym("serve-model", *words, exit_code=2).stderr
    assert message in stderr
    assert stderr.count("\n") == 1


def test_an_address_that_is_taken_is_refused(server: ModelServer) -> None:
    busy = int(server.url.rpartition(":")[2])
    with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{busy}: .*give another --port"):
        serve(ModelServer(port=busy))


def test_the_seed_is_that_of_the_random_model() -> None:
    def answers(seed: int) -> list[str]:
        policy = load_models(["random"], seed=seed)["random"]
        with ModelServer({"random": policy}) as server:
            agent = ModelAgent(ClientConfig(api_base_url=server.openai_url, api_key_var="NONE"), "random")
            results = evaluate(GAME, agent, num_examples=3, max_concurrent=1, env_args={"max_turns": 2}, progress=False)
        return [message["content"] for row in results["outputs"] for message in row["completion"] if message["role"] == "assistant"]

    assert answers(1) == answers(1) != answers(2)
