"""Many rollouts against a model that fails, over real HTTP: all accounted for, none lost or doubled, nothing left behind.

Forty rollouts here; ``pytest -m exhaustive`` plays ten thousand.
"""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import right
from vfgym.messages import AssistantMessage, ToolCall
from vfgym.model_server import ModelRequest, ModelServer
from vfgym.results import load_results
from vfgym.state import State

CAUSES = {
    "rate_limited": "RateLimitError",
    "server_error": "InternalServerError",
    "cut_before_headers": "ServerDisconnectedError",
    "cut_in_body": "ClientPayloadError",
    "empty_reply": "EmptyModelResponseError",
    "hung": "APITimeoutError",
}
"""What the error of a rollout says of each fault."""
FAULT_OF = dict(zip(range(1, 19, 3), CAUSES, strict=True))
"""Which of 20 questions meet a fault: those with odd numbers in their second request."""
AT_ONCE = 16
SECONDS = 60.0
"""How long a run may hang before its test fails."""
COUNTS = [pytest.param(40, id="some"), pytest.param(10_000, id="ten_thousand", marks=pytest.mark.exhaustive)]

pytestmark = pytest.mark.usefixtures("young_heap")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.clients.http.retries._FIRST_PAUSE", 0.01)
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.01)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def questions(count: int) -> list[dict[str, Any]]:
    return [{"question": f"{number}+{number}", "answer": str(2 * number)} for number in range(count)]


def with_tool(count: int, **kwargs: Any) -> vf.ToolEnv:
    return vf.ToolEnv(tools=[add], dataset=questions(count), rubric=vf.Rubric(right), **kwargs)


def number_of(request: ModelRequest) -> int:
    return int(request.messages[0]["content"].partition("+")[0])


def adds(request: ModelRequest) -> Any:
    """Add the numbers of the question with the tool."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return last["content"]
    first, second = map(int, last["content"].split("+"))
    return AssistantMessage(None, tool_calls=[ToolCall("c", "add", json.dumps({"a": first, "b": second}))])


class FaultOfQuestion:
    """Fails the questions of `FAULT_OF`, every time or `once`."""

    def __init__(self, *, once: bool = False, without: str = "") -> None:
        self.once, self.without = once, without
        self.failed: set[int] = set()

    def __call__(self, request: ModelRequest) -> str | None:
        number = number_of(request)
        fault = FAULT_OF.get(number % 20)
        is_second = request.messages[-1]["role"] == "tool"
        if fault in (None, self.without) or is_second != number % 2 or (self.once and number in self.failed):
            return None
        self.failed.add(number)
        return fault


def config(server: ModelServer, **fields: Any) -> vf.ClientConfig:
    return vf.ClientConfig(api_base_url=server.openai_url, api_key="k", connect_timeout=30.0, **fields)


async def generated(env: vf.Environment, client: vf.ClientConfig, path: Path, count: int, **options: Any) -> Any:
    """Run `generate` on the environment's rows, and find nothing of it left afterwards."""
    before = open_sessions()
    options = {"max_concurrent": AT_ONCE, "results_path": path, "save_results": True, **options}
    try:
        async with asyncio.timeout(SECONDS if count <= 1000 else 10 * SECONDS):
            return await env.generate(questions(count), client, "m", **options)
    finally:
        assert asyncio.all_tasks() == {asyncio.current_task()}
        gc.collect()  # what was not closed warns, which is an error here
        assert open_sessions() <= before


def open_sessions() -> set[aiohttp.ClientSession]:
    return {each for each in gc.get_objects() if type(each) is aiohttp.ClientSession and not each.closed}


def check_complete(results: Any, path: Path, count: int) -> None:
    """Each rollout stands once in what was returned and once on disk, as the same row."""
    expected = [(number, 0) for number in range(count)]
    assert [(row["example_id"], row["rollout"]) for row in results["outputs"]] == expected
    lines = [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]
    assert [(row["example_id"], row["rollout"]) for row in lines] == expected
    assert [row["reward"] for row in lines] == [row["reward"] for row in results["outputs"]]
    assert load_results(path)["metadata"]["avg_error"] == results["metadata"]["avg_error"]


@pytest.mark.parametrize("count", COUNTS)
async def test_each_fault_is_the_error_of_one_rollout(count: int, tmp_path: Path) -> None:
    alive: list[int] = []

    def count_states() -> None:
        gc.collect()
        alive.append(sum(type(each) is State for each in gc.get_objects()))

    def count_now_and_then(outputs: Any, new: Any, metadata: Any) -> None:
        if len(outputs) % (count // 2) == 0:
            count_states()

    count_states()  # those that other tests keep
    with ModelServer({"m": adds}, faults=FaultOfQuestion(), keep_requests=0) as server:
        client = config(server, timeout=1.0, max_retries=0)
        results = await generated(with_tool(count), client, tmp_path, count, on_progress=count_now_and_then)
    check_complete(results, tmp_path, count)
    for row in results["outputs"]:
        fault = FAULT_OF.get(row["example_id"] % 20)
        if row["error"] is None:
            assert (fault, row["reward"], row["stop_condition"]) == (None, 1.0, "no_tools_called")
        else:
            causes = {name for name, cause in CAUSES.items() if cause in row["error"]["error_chain_repr"]}
            assert (causes <= {fault, "hung"}, len(causes)) == (True, 1)  # a busy machine may answer any request too late
            assert row["stop_condition"] == "has_error"
    # Each worker holds the rollout that it plays, and the one before until the next is played.
    assert max(alive) - alive[0] <= 3 * AT_ONCE


@pytest.mark.parametrize("count", COUNTS)
async def test_repeated_requests_and_rollouts_get_every_answer_and_count_once(count: int, tmp_path: Path) -> None:
    """The client repeats requests, but for an answer that is of no use, after which the rollout is repeated."""
    faults = FaultOfQuestion(once=True)
    with ModelServer({"m": adds}, faults=faults, keep_requests=0) as server:
        results = await generated(with_tool(count), config(server, timeout=0.7), tmp_path, count, max_retries=1)
        assert server.num_requests >= 2 * count + len(faults.failed)
        assert server.faults_given.keys() == CAUSES.keys()
    check_complete(results, tmp_path, count)
    assert [(row["reward"], row["num_turns"]) for row in results["outputs"]] == [(1.0, 2.0)] * count
