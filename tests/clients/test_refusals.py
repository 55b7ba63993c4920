"""What is refused for good (the key, the model, the route) stops a run: nobody asks it for every rollout.

The server is a real one on loopback, and counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import verifiers_compat as vf
import vfgym
from tests.clients.canned_server import COMPLETION, Canned, CannedServer, canned_server
from tests.clients.every_client import KINDS, client_of
from vfgym.clients import is_permanent_refusal
from vfgym.errors import ModelError
from vfgym.messages import UserMessage
from vfgym.results import load_results

AT_ONCE = 8
ROWS = [{"question": f"{number}?", "answer": "x"} for number in range(100)]
HELLO = [UserMessage("hello")]

UNKNOWN = {
    "openai": {"error": {"message": "The model `m` does not exist", "type": "invalid_request_error", "code": "model_not_found"}},
    "vllm": {"object": "error", "message": "The model `m` does not exist.", "type": "NotFoundError", "code": 404},
    "anthropic": {"type": "error", "error": {"type": "not_found_error", "message": "model: m"}},
    "ollama": {"error": {"message": 'model "m" not found, try pulling it first', "type": "api_error"}},
    "a route of FastAPI": {"detail": "Not Found"},
    "a route of OpenAI": {"error": {"message": "Invalid URL (POST /v1/chat/completionz)"}},
    "a page": "<html><head><title>404 - File or directory not found.</title></head></html>",
}
"""How servers say that there is no such model, or no such route."""

NOT_FOUND = (openai.NotFoundError, anthropic.NotFoundError)


def refusing(server: CannedServer, body: Any, status: int = 404) -> None:
    server.answers = [Canned(body, status, content_type="application/json" if isinstance(body, dict) else "text/html")]


def asked(server: CannedServer) -> int:
    return len(server.paths)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_run_of_steps(kind: str, status: int) -> None:
    async with canned_server() as server:
        refusing(server, UNKNOWN["openai"], status)
        agent = vfgym.ModelAgent(client_of(kind, server.root), "m", {"max_tokens": 5})
        env = vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric())
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as caught:
            await vfgym.aevaluate(env, agent, max_concurrent=AT_ONCE, progress=False)
        await agent.close()
    assert caught.value.status_code == status  # type: ignore[attr-defined]
    assert "does not exist" in str(caught.value)
    assert asked(server) <= 2 * AT_ONCE
    (note,) = caught.value.__notes__
    assert server.root in note
    assert ("'m'" in note) is (status == 404)


async def test_what_was_finished_before_is_kept(tmp_path: Path) -> None:
    async with canned_server() as server:
        server.answers = [COMPLETION, COMPLETION, Canned(UNKNOWN["openai"], 401)]
        agent = vfgym.ModelAgent(client_of("openai_chat_completions", server.root), "m")
        env = vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric())
        with pytest.raises(openai.AuthenticationError):
            await vfgym.aevaluate(env, agent, max_concurrent=1, results_path=tmp_path, progress=False)
        await agent.close()
    assert (asked(server), [row["example_id"] for row in load_results(tmp_path)["outputs"]]) == (3, [0, 1])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_of_rollouts(kind: str) -> None:
    async with canned_server() as server:
        refusing(server, UNKNOWN["openai"])
        client = client_of(kind, server.root)
        env = vf.SingleTurnEnv(dataset=ROWS, rubric=vf.Rubric())
        with pytest.raises(NOT_FOUND):
            await env.generate(ROWS, client, "m", {"max_tokens": 5}, max_concurrent=AT_ONCE, max_retries=3, use_tqdm=False)
        await client.close()
    assert asked(server) <= 2 * AT_ONCE


@pytest.mark.parametrize("who", UNKNOWN)
async def test_how_it_is_said(who: str) -> None:
    for kind in ("openai_chat_completions", "anthropic_messages"):
        async with canned_server() as server:
            refusing(server, UNKNOWN[who])
            client = client_of(kind, server.root)
            with pytest.raises(NOT_FOUND) as caught:
                await client.get_response(HELLO, "m", {"max_tokens": 5})
            await client.close()
        assert is_permanent_refusal(caught.value)


OF_ONE_PROMPT = [
    (404, {"error": {"message": "No such File object: file-abc"}}),
    (404, {"error": {"message": "Previous response with id 'resp_1' not found.", "code": "previous_response_not_found"}}),
    (403, {"error": {"message": "Your prompt was flagged by our moderation system"}}),
]


@pytest.mark.parametrize(("status", "body"), OF_ONE_PROMPT)
async def test_what_one_prompt_names_is_that_rollouts_own_error(status: int, body: Any) -> None:
    async with canned_server() as server:
        server.answers = [Canned(body, status), *[COMPLETION] * 9]
        agent = vfgym.ModelAgent(client_of("openai_chat_completions", server.root), "m")
        env = vfgym.SingleTurnEnv(ROWS[:10], rubric=vfgym.Rubric())
        results = await vfgym.aevaluate(env, agent, max_concurrent=1, progress=False)
        await agent.close()
    assert [row["error"] is not None for row in results["outputs"]] == [True] + [False] * 9
    assert results["outputs"][0]["error"]["error"] == "ModelError"


async def test_after_an_answer_only_a_missing_model_stops_a_run() -> None:
    """A gateway that does not find a route for once says nothing about the others; a model that is gone stays gone."""
    async with canned_server() as server:
        client = client_of("openai_chat_completions", server.root)
        await client.get_response(HELLO, "m")
        refusing(server, UNKNOWN["a page"])
        with pytest.raises(ModelError) as caught:
            await client.get_response(HELLO, "m")
        assert not is_permanent_refusal(caught.value)
        refusing(server, UNKNOWN["vllm"])
        with pytest.raises(openai.NotFoundError):
            await client.get_response(HELLO, "m")
        refusing(server, UNKNOWN["a page"])
        with pytest.raises(openai.NotFoundError):  # of another model nothing is known yet
            await client.get_response(HELLO, "other")
        await client.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_half_of_a_surrogate_pair_is_that_rollouts_own_trouble(kind: str) -> None:
    """It has no UTF-8, and a model that is cut inside an emoji may write it. Who asks after that is answered as ever."""
    async with canned_server() as server:
        refusing(server, {"error": {"message": "no"}}, 400)
        client = client_of(kind, server.root, max_retries=0)
        with pytest.raises(ModelError):
            await client.get_response([UserMessage("a \ud83d b")], "m", {"max_tokens": 5})
        before = asked(server)
        with pytest.raises(ModelError, match="400"):
            await client.get_response(HELLO, "m", {"max_tokens": 5})
        await client.close()
    assert asked(server) > before
