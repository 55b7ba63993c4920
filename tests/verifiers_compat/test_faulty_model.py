"""Many rollouts against a model that fails, over real HTTP: all accounted for, none lost or doubled, nothing left behind.

Some hundred rollouts here; ``pytest -m exhaustive`` plays ten thousand.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

import verifiers_compat as vf
from vfgym.messages import AssistantMessage, ToolCall
from vfgym.model_server import Faults, ModelRequest, ModelServer, RequestRefused
from vfgym.results import load_results
from vfgym.state import State

FAULTS = Faults(seed=3, rate_limited=0.05, server_error=0.02, cut_connection=0.02, hung=0.01, empty_reply=0.01)
CAUSES = {
    "rate_limited": "RateLimitError",
    "server_error": "InternalServerError",
    "cut_before_headers": "ServerDisconnectedError",
    "cut_in_body": "ClientPayloadError",
    "empty_reply": "EmptyModelResponseError",
    "hung": "APITimeoutError",
}
"""What the error of a rollout says of each fault."""
AT_ONCE = 64
SECONDS = 60.0
"""How long a run may hang before its test fails."""
COUNTS = [pytest.param(300, id="some"), pytest.param(10_000, id="ten_thousand", marks=pytest.mark.exhaustive)]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.clients.http.retries._FIRST_PAUSE", 0.01)
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.01)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def right(completion: vf.Messages, answer: str) -> float:
    return float(bool(completion) and completion[-1].content == answer)


def questions(count: int) -> list[dict[str, Any]]:
    return [{"question": f"{number}+{number}", "answer": str(2 * number)} for number in range(count)]


def single_turn(count: int, **kwargs: Any) -> vf.SingleTurnEnv:
    return vf.SingleTurnEnv(dataset=questions(count), rubric=vf.Rubric(right), **kwargs)


def with_tool(count: int, **kwargs: Any) -> vf.ToolEnv:
    return vf.ToolEnv(tools=[add], dataset=questions(count), rubric=vf.Rubric(right), **kwargs)


def adds(request: ModelRequest) -> Any:
    """Add the numbers of the question, with a tool where there is one."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return last["content"]
    first, second = map(int, last["content"].split("+"))
    if not request.tools:
        return str(first + second)
    return AssistantMessage(None, tool_calls=[ToolCall("c", "add", json.dumps({"a": first, "b": second}))])


def config(server: ModelServer, **fields: Any) -> vf.ClientConfig:
    return vf.ClientConfig(api_base_url=server.openai_url, api_key="k", connect_timeout=30.0, **fields)


async def generated(env: vf.Environment, client: vf.ClientConfig, path: Path, count: int, **options: Any) -> Any:
    """Run `generate` on the environment's rows, and find nothing of it left afterwards."""
    rows = questions(count)
    before = open_sessions()
    try:
        async with asyncio.timeout(SECONDS if count <= 1000 else 10 * SECONDS):
            return await env.generate(rows, client, "m", max_concurrent=AT_ONCE, results_path=path, save_results=True, **options)
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


class Watch:
    """Counts the states that are alive while a run goes on."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.states = 0

    def __call__(self, outputs: Any, new: Any, metadata: Any) -> None:
        if len(outputs) % self.every == 0:
            gc.collect()
            self.states = max(self.states, sum(type(each) is State for each in gc.get_objects()))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("make", [single_turn, with_tool])
async def test_each_fault_is_the_error_of_one_rollout(make: Any, count: int, tmp_path: Path) -> None:
    watch = Watch(count // 2)
    with ModelServer({"m": adds}, faults=FAULTS, keep_requests=0) as server:
        results = await generated(make(count), config(server, timeout=1.0, max_retries=0), tmp_path, count, on_progress=watch)
        given = server.faults_given
    check_complete(results, tmp_path, count)
    found: Counter[str] = Counter()
    for row in results["outputs"]:
        if row["error"] is None:
            assert row["reward"] == 1.0
            continue
        assert row["stop_condition"] == "has_error"
        chain = row["error"]["error_chain_repr"]
        (fault,) = [fault for fault, cause in CAUSES.items() if cause in chain]
        found[fault] += 1
    assert found.keys() == CAUSES.keys()
    late = found["hung"] - given["hung"]  # requests that a busy machine answered too late, whatever else befell them
    assert late >= 0
    assert all(given[fault] - late <= found[fault] <= given[fault] for fault in CAUSES if fault != "hung")
    # Each worker holds the rollout that it plays, and the one before until the next is played.
    assert watch.states <= 3 * AT_ONCE


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("make", [single_turn, with_tool])
async def test_a_client_that_repeats_requests_gets_every_answer(make: Any, count: int, tmp_path: Path) -> None:
    faults = Faults(seed=3, rate_limited=0.05, server_error=0.02, cut_connection=0.02, hung=0.01)
    with ModelServer({"m": adds}, faults=faults, keep_requests=0) as server:
        results = await generated(make(count), config(server, timeout=0.7), tmp_path, count)
        assert server.num_requests >= (1 if make is single_turn else 2) * count + sum(server.faults_given.values())
        assert server.faults_given.keys() == CAUSES.keys() - {"empty_reply"}
    check_complete(results, tmp_path, count)
    assert [row["reward"] for row in results["outputs"]] == [1.0] * count


async def test_rollouts_with_an_unusable_answer_are_repeated_and_count_once(tmp_path: Path) -> None:
    with ModelServer({"m": adds}, faults=Faults(seed=3, empty_reply=0.1, rate_limited=0.05)) as server:
        results = await generated(with_tool(200), config(server), tmp_path, 200, max_retries=15)
        assert server.faults_given.keys() == {"empty_reply", "rate_limited"}
    check_complete(results, tmp_path, 200)
    assert results["metadata"]["avg_reward"] == 1.0
    assert {row["num_turns"] for row in results["outputs"]} == {2.0}


async def test_an_episodes_deadline_ends_what_hangs(tmp_path: Path) -> None:
    def hangs(request: ModelRequest) -> str | None:
        return "hung" if int(request.messages[0].content.partition("+")[0]) % 40 == 0 else None

    with ModelServer({"m": adds}, faults=hangs) as server:
        results = await generated(with_tool(200, timeout_seconds=1.0), config(server), tmp_path, 200)
    check_complete(results, tmp_path, 200)
    late = {row["example_id"] for row in results["outputs"] if row["stop_condition"] == "timeout_reached"}
    assert {0, 40, 80, 120, 160} <= late < set(range(200))
    for row in results["outputs"]:
        assert row["error"] is None
        assert row["reward"] == float(row["example_id"] not in late)


async def test_a_run_that_was_cancelled_half_way_goes_on(tmp_path: Path) -> None:
    count = 300
    half = asyncio.Event()

    def watch(outputs: Any, new: Any, metadata: Any) -> None:
        if len(outputs) >= count // 2:
            half.set()

    faults = Faults(seed=3, rate_limited=0.05, cut_connection=0.02, hung=0.02)
    with ModelServer({"m": adds}, faults=faults, keep_requests=10 * count) as server:
        client = config(server, timeout=1.0)
        run = asyncio.create_task(
            with_tool(count).generate(
                questions(count), client, "m", max_concurrent=AT_ONCE, results_path=tmp_path, save_results=True, on_progress=watch
            )
        )
        await half.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert asyncio.all_tasks() == {asyncio.current_task()}
        rows = load_results(tmp_path)["outputs"]
        finished = {row["example_id"]: row for row in rows}
        assert count // 2 <= len(rows) == len(finished) < count
        asked_before = server.num_requests

        results = await generated(with_tool(count), client, tmp_path, count)
        asked = {request.body["messages"][0]["content"] for request in server.requests if request.number > asked_before}
    check_complete(results, tmp_path, count)
    assert results["metadata"]["avg_reward"] == 1.0
    assert asked == {f"{number}+{number}" for number in range(count) if number not in finished}
    assert all(results["outputs"][number]["timing"] == row["timing"] for number, row in finished.items())


async def test_a_rate_limited_request_holds_up_no_other(tmp_path: Path) -> None:
    count = 100
    limited: list[int] = []
    others_done = asyncio.Event()

    def policy(request: ModelRequest) -> Any:
        if request.messages[0].content == "0+0" and not limited:
            limited.append(request.number)
            raise RequestRefused(429, "wait a minute", headers={"Retry-After": "60"})
        return adds(request)

    def watch(outputs: Any, new: Any, metadata: Any) -> None:
        if len(outputs) == count - 1:
            others_done.set()

    with ModelServer({"m": policy}) as server:
        run = asyncio.create_task(
            with_tool(count).generate(questions(count), config(server), "m", max_concurrent=2, results_path=tmp_path, on_progress=watch)
        )
        async with asyncio.timeout(SECONDS / 2):
            await others_done.wait()
        assert server.num_requests == 1 + 2 * (count - 1)  # the limited one obeys and still waits
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert [row["example_id"] for row in load_results(tmp_path)["outputs"]] == list(range(1, count))


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_refused_half_way_stops_the_run_and_keeps_what_was_finished(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALF_A_KEY", "my-secret")

    def policy(request: ModelRequest) -> Any:
        if request.messages[0].content == "150+150":
            raise RequestRefused(status, "your credit is used up")
        return adds(request)

    with ModelServer({"m": policy}) as server:
        client = vf.ClientConfig(api_base_url=server.openai_url, api_key_var="HALF_A_KEY")
        with pytest.raises(openai.APIStatusError, match="your credit is used up") as caught:
            await generated(single_turn(1000), client, tmp_path, 1000)
        assert caught.value.status_code == status
        assert "HALF_A_KEY" in caught.value.__notes__[0]
        assert "my-secret" not in str(caught.value) + caught.value.__notes__[0]
        assert server.num_requests <= 151 + 4 * AT_ONCE
    rows = load_results(tmp_path)["outputs"]
    assert 150 - AT_ONCE <= len(rows) < 1000
    assert {row["reward"] for row in rows} == {1.0}
