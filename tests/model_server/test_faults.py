"""Faults: asked for, by chance, and how often."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import openai
import pytest

from tests.model_server.asked import BODIES, HELLO, PATHS, post
from vfgym.errors import ConfigurationError
from vfgym.model_server import FAULTS, Faults, ModelRequest, ModelServer
from vfgym.model_server.faults import exact_kind

STATUS_OF = {"rate_limited": 429, "server_error": 500, "overlong": 400}


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_every_fault_can_be_asked_for(server: ModelServer, path: str, is_stream: bool) -> None:
    body = {**BODIES[path], "stream": is_stream}
    for kind in FAULTS:
        asking = post(server, path, body, **{"X-Fault": kind})
        if kind in STATUS_OF:
            status, answer = await asking
            assert status == STATUS_OF[kind]
            assert answer["error"]["message"]
        elif kind.startswith("cut"):
            with pytest.raises(aiohttp.ClientError):
                await asking
        elif kind == "hung":
            task = asyncio.create_task(asking)
            while not server.faults_given["hung"]:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        elif kind == "empty_reply":
            status, answer = await asking
            assert status == 200
            assert "llo" not in str(answer)
        elif is_stream:
            _, text = await asking
            data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
            with pytest.raises(json.JSONDecodeError):
                [json.loads(line) for line in data]
        else:
            with pytest.raises(json.JSONDecodeError):
                await asking
    assert server.faults_given == dict.fromkeys(FAULTS, 1)
    status, _ = await post(server, path, body)
    assert status == 200


async def test_the_sdks_retry_what_passes() -> None:
    def twice(request: ModelRequest) -> str | None:
        return "rate_limited" if request.number < 3 else None

    async with ModelServer(faults=twice) as server:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=2) as gpt:
            answer = await gpt.chat.completions.create(model="echo", messages=HELLO)
        assert answer.choices[0].message.content == "héllo 😀"
        assert server.num_requests == 3
        assert server.faults_given == {"rate_limited": 2}


async def test_rate_limits_say_when_to_come_back() -> None:
    async def header(faults: Faults) -> str | None:
        async with (
            ModelServer(faults=faults) as server,
            aiohttp.ClientSession() as session,
            session.post(server.openai_url + "/completions", json=BODIES["/v1/completions"]) as response,
        ):
            assert response.status == 429
            return response.headers.get("Retry-After")

    assert await header(Faults(rate_limited=1, retry_after=2.5)) == "2.5"
    assert await header(Faults(rate_limited=1, retry_after=None)) is None


async def test_faults_by_chance_replay_under_their_seed() -> None:
    faults = Faults(seed=3, rate_limited=0.2, server_error=0.2, empty_reply=0.1)

    async def statuses() -> list[int]:
        async with ModelServer(faults=faults) as server:
            found = [(await post(server, "/v1/completions", BODIES["/v1/completions"]))[0] for _ in range(40)]
            assert server.faults_given["rate_limited"] == found.count(429)
            assert server.faults_given["server_error"] == found.count(500)
            return found

    found = await statuses()
    assert {200, 429, 500} == set(found)
    assert await statuses() == found


def test_faults_come_as_often_as_asked_for() -> None:
    faults = Faults(seed=1, rate_limited=0.1, cut_connection=0.2)
    drawn = [faults.drawn(number) for number in range(1, 4001)]
    assert 300 < drawn.count("rate_limited") < 500
    assert 300 < drawn.count("cut_in_body") < 500
    assert 300 < drawn.count("cut_before_headers") < 500
    assert drawn != [Faults(seed=2, rate_limited=0.1, cut_connection=0.2).drawn(number) for number in range(1, 4001)]


@pytest.mark.parametrize("arguments", [{"hung": 1.5}, {"hung": -0.1}, {"hung": 0.6, "overlong": 0.6}, {"retry_after": -1}, {"hung": True}])
def test_shares_that_cannot_be_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="must"):
        Faults(**arguments)


async def test_an_unknown_fault_is_refused(server: ModelServer) -> None:
    status, answer = await post(server, "/v1/completions", BODIES["/v1/completions"], **{"X-Fault": "server_eror"})
    assert status == 400
    assert "Did you mean `server_error`" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("name", "number", "kind"), [("cut_connection", 1, "cut_in_body"), ("cut_connection", 2, "cut_before_headers"), ("hung", 1, "hung")]
)
def test_a_fault_by_its_name(name: str, number: int, kind: str) -> None:
    assert exact_kind(name, number) == kind


def test_a_fault_that_is_not_known() -> None:
    with pytest.raises(ConfigurationError, match="hung"):
        exact_kind("hang", 1)


@pytest.mark.parametrize("name", ["rate_limited", "server_error", "cut_connection", "hung", "empty_reply", "malformed_json", "overlong"])
def test_a_share_of_one_is_every_request(name: str) -> None:
    drawn = {Faults(**{name: 1.0}).drawn(number) for number in range(1, 9)}
    assert drawn == ({"cut_in_body", "cut_before_headers"} if name == "cut_connection" else {name})
    assert Faults(**{name: 0}).drawn(1) is None
