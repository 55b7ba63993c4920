"""No key leaves the process with a failure, whichever door it came in by, whatever the endpoint does, whoever asks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from tests.secrecy.hostile_server import FAILURES, hostile_server
from tests.secrecy.planted import Log, hits, hits_in_error, hits_in_files, hits_in_object, key, sampling_args, with_query
from vfgym.agents.model import ModelAgent
from vfgym.clients import ClientConfig, ClientType, resolve_client
from vfgym.messages import UserMessage

CLIENTS: tuple[ClientType, ...] = (
    *("openai_chat_completions", "openai_completions", "openai_responses", "openai_chat_completions_token", "anthropic_messages"),
    "nemorl_chat_completions",
)
"""All but the renderer, which needs a tokenizer to ask anything (tests/clients/providers/test_renderer.py)."""


@pytest.fixture
def log() -> Iterator[Log]:
    root, handler = logging.getLogger(), Log()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(level)
    root.removeHandler(handler)


def config(client_type: ClientType, port: int, **changes: Any) -> ClientConfig:
    fields: dict[str, Any] = {
        "client_type": client_type,
        "api_key": key("api-key"),
        "api_base_url": with_query(f"http://127.0.0.1:{port}/v1"),
        "extra_headers": {"X-Config": key("config-header"), "Cookie": f"session={key('cookie')}; theme=dark"},
        "max_retries": 0,
        "timeout": 0.3,
    }
    return ClientConfig(**{**fields, **changes})


def questions() -> vfgym.SingleTurnEnv:
    return vfgym.SingleTurnEnv(dataset=[{"question": "6 * 7?", "answer": "42"}], rubric=vfgym.Rubric(right))


def right(answer: str, completion: Any) -> float:
    return float(completion[-1]["content"] == answer)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("client_type", CLIENTS)
async def test_an_error_is_told_without_keys(client_type: ClientType, failure: str, log: Log, capfd: pytest.CaptureFixture[str]) -> None:
    with hostile_server(failure) as port:
        client = resolve_client(config(client_type, port))
        with pytest.raises(Exception) as raised:  # noqa: PT011 (a refused key is the SDK's own error)
            await client.get_response([UserMessage("hi")], "model", sampling_args())
        await client.close()
    printed = capfd.readouterr()
    assert hits_in_error("error", raised.value) + hits("log", "\n".join(log.lines)) + hits("printed", printed.out + printed.err) == []


@pytest.mark.parametrize("failure", ["not_http", "long_header", "redirects", "bad_request", "refused"])
@pytest.mark.parametrize("client_type", CLIENTS)
def test_a_run_writes_no_keys(
    client_type: ClientType, failure: str, log: Log, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both runs, over both faces; the key is in an environment variable."""
    monkeypatch.setenv("SOME_KEY", key("variable"))
    with hostile_server("cut" if failure == "refused" else failure) as port:
        where = config(client_type, 9 if failure == "refused" else port, api_key=None, api_key_var="SOME_KEY", connect_timeout=0.3)
        env = questions()
        agent = ModelAgent(where, "model", sampling_args())
        results = vfgym.evaluate(env, agent, num_examples=1, results_path=tmp_path / "step")
        other = vf.SingleTurnEnv(dataset=[{"question": "6 * 7?", "answer": "42"}], rubric=vf.Rubric(funcs=[right]))
        rolled = other.evaluate_sync(
            where, "model", sampling_args(), num_examples=1, rollouts_per_example=1, results_path=tmp_path / "rollout", save_results=True,
            state_columns=["sampling_args", "client", "error"],
        )  # fmt: skip
    assert results["outputs"][0]["error"] is not None
    assert rolled["outputs"][0]["error"] is not None
    printed = capfd.readouterr()
    found = hits_in_files(tmp_path) + hits("log", "\n".join(log.lines)) + hits("printed", printed.out + printed.err)
    for name, value in {"results": results, "rolled": rolled, "env": env, "other": other, "agent": agent, "config": where}.items():
        found += hits_in_object(name, value)
    assert found == []
    assert (tmp_path / "step" / "metadata.json").is_file()
    assert (tmp_path / "rollout" / "metadata.json").is_file()
