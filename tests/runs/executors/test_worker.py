"""A worker: it plays what it is told, says how that went, and ends when its coordinator is gone."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import vfgym
from tests.runs.executors.players import FOLDER, answer, counting, without_drawn
from vfgym import ClientConfig, RunSpec
from vfgym.model_server import ModelServer
from vfgym.runs.executors.link import LinkClosed, WorkerLink
from vfgym.runs.executors.travelling import stepped_run
from vfgym.runs.executors.worker import serve_rollouts, this_process

PLAYERS = "tests.runs.executors.players"


def order(**settings: Any) -> dict[str, Any]:
    """Return what a coordinator tells first."""
    spec = RunSpec.of({"env_id": f"{PLAYERS}:counting", "agent": f"{PLAYERS}:answer", **settings}, "test")
    told = {"env_id": "counting", "env_module": None, "registered": [], "slots": 3, "has_cache": False}
    return {**told, "run": (run := stepped_run(spec)).data, "opened_by": run.opened_by, "made_as": run.made_as}


@asynccontextmanager
async def coordinated(number: int = 4) -> AsyncIterator[tuple[WorkerLink, dict[str, Any], concurrent.futures.Future[None]]]:
    """Start a worker in a thread: its connection, what it says of itself, and what becomes of its call."""
    connected: asyncio.Future[WorkerLink] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda reader, writer: connected.set_result(WorkerLink(reader, writer)), "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        future = threads.submit(serve_rollouts, [address], "token", number)
        link = await connected
        try:
            hello = await link.greet("token", this_process(), is_coordinator=True)
            yield link, hello, future
        finally:
            await link.close()
            await asyncio.wait_for(asyncio.wrap_future(future), 60)
            server.close()


async def heard(link: WorkerLink, name: str) -> dict[str, Any]:
    """Return the next message that has a certain item."""
    while name not in (message := await link.receive()):
        pass
    return message


def job(number: int, example: int, *numbers: int) -> dict[str, Any]:
    """Return what a coordinator tells of rollouts."""
    return {"job": number, "attempt": 1, "example": [example, example, 2, example], "numbers": list(numbers)}


async def test_it_says_who_it_is_and_asks_for_as_many_rollouts_as_it_may_play_at_once() -> None:
    async with coordinated(number=4) as (link, hello, _):
        assert hello == {**this_process(), "number": 4}
        link.send(order())
        assert await heard(link, "want") == {"want": 3}
        link.send({"over": True})


async def test_it_sends_the_rows_of_what_it_was_given_and_asks_for_more() -> None:
    whole = without_drawn(vfgym.evaluate(counting, answer, progress=False, env_id="counting", rollouts_per_example=2)["outputs"])
    async with coordinated() as (link, _, _):
        link.send(order(rollouts_per_example=2))
        await heard(link, "want")
        link.send(job(70, 1, 0))
        link.send(job(71, 3, 1))
        told = [await heard(link, "rows") for _ in range(2)]
        assert {each["job"]: without_drawn(each["rows"]) for each in told} == {70: [whole[2]], 71: [whole[7]]}
        link.send({"over": True})


async def test_groups_are_scored_where_they_are_played_and_sent_whole() -> None:
    async with coordinated() as (link, _, _):
        link.send(order(rollouts_per_example=2, independent_scoring=False))
        await heard(link, "want")
        link.send(job(5, 3, 0, 1))
        rows = (await heard(link, "rows"))["rows"]
        assert [(row["example_id"], row["rollout"]) for row in rows] == [(3, 0), (3, 1)]
        link.send({"over": True})


async def test_it_says_which_columns_no_state_has() -> None:
    async with coordinated() as (link, _, _):
        link.send(order(state_columns=["quesion", "answer"]))
        await heard(link, "want")
        link.send(job(5, 3, 0))
        message = await heard(link, "rows")
        assert message["unseen"] == ["quesion"]
        assert "question" in message["known"] or "answer" in message["known"]
        link.send({"over": True})


async def test_it_tells_what_was_spent_before_the_rows_that_it_was_spent_for() -> None:
    with ModelServer() as server:
        config = ClientConfig(api_base_url=server.openai_url, api_key_var="NONE")
        async with coordinated() as (link, _, _):
            link.send(order(agent=None, model="echo", client=config, prices={"echo": {"input": 1.0, "output": 1.0}}))
            await heard(link, "want")
            link.send(job(1, 0, 0))
            requests = 0
            while "rows" not in (message := await link.receive()):
                requests = message["spent"]["requests"] if "spent" in message else requests
            assert requests == message["rows"][0]["spent"]["requests"] == 1
            link.send({"over": True})


@pytest.mark.parametrize(
    ("settings", "name", "text"),
    [
        ({"env_id": "of_another_machine:make"}, "ConfigurationError", "there is no module 'of_another_machine'"),
        ({"env_id": "nowhere/Nothing-v0"}, "ConfigurationError", "nowhere"),
        ({"agent": f"{PLAYERS}:nobody"}, "ConfigurationError", "has no 'nobody'"),
        ({"env_args": {"num_task": 3}}, "UnknownArgument", "has no argument 'num_task'"),
    ],
)
async def test_what_it_cannot_make_it_says(settings: dict[str, Any], name: str, text: str) -> None:
    async with coordinated() as (link, _, _):
        link.send(order(**settings))
        error = (await heard(link, "error"))["error"]
        assert error["name"] == name
        assert text in error["text"]


async def test_the_module_that_registers_the_id_is_imported_where_it_is_not_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(gym.registry, "of-players/Counting-v0")
    monkeypatch.delitem(sys.modules, PLAYERS)
    async with coordinated() as (link, _, _):
        link.send({**order(env_id="of-players/Counting-v0", agent="random"), "env_module": PLAYERS})
        assert await heard(link, "want") == {"want": 3}
        link.send({"over": True})
    async with coordinated() as (link, _, _):
        link.send({**order(env_id="elsewhere/X-v0", agent="random"), "env_module": "of_another_machine"})
        text = (await heard(link, "error"))["error"]["text"]
        assert text.startswith("environment 'elsewhere/X-v0': there is no module 'of_another_machine'")


async def test_ids_that_its_coordinator_has_registered_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium warns of an id that is registered twice: the module that registers one of them is imported first."""
    monkeypatch.delitem(sys.modules, PLAYERS)
    told = EnvSpec("t/Told-v0", entry_point=f"{PLAYERS}:Counting", kwargs={"num_tasks": 3}, disable_env_checker=True)
    registered = [told.to_json(), gym.registry.pop("of-players/Counting-v0").to_json()]
    async with coordinated() as (link, _, _):
        link.send({**order(env_id="t/Told-v0", agent="random"), "env_module": PLAYERS, "registered": registered})
        assert await heard(link, "want") == {"want": 3}
        link.send({"over": True})
    assert gym.registry.pop("t/Told-v0") == told


async def test_strict_runs_end_with_the_exception() -> None:
    async with coordinated() as (link, _, _):
        link.send(order(agent=f"{PLAYERS}:failing", strict=True))
        await heard(link, "want")
        link.send(job(1, 0, 0))
        error = (await heard(link, "error"))["error"]
        assert (error["name"], error["text"]) == ("RuntimeError", "no answer")
        assert "players.py" in error["traceback"]


async def test_it_ends_when_its_coordinator_is_gone_in_the_middle() -> None:
    async with coordinated() as (link, _, future):
        link.send(order(agent=f"{PLAYERS}:waiting"))
        await heard(link, "want")
        link.send(job(1, 0, 0))
        await link.drain()
        link.abort()
        await asyncio.wait_for(asyncio.wrap_future(future), 60)


@pytest.mark.parametrize("env_id", [f"{PLAYERS}:counting", "nowhere/Nothing-v0"])
async def test_who_plays_is_closed_however_it_ends(env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    async with coordinated() as (link, _, _):
        link.send(order(env_id=env_id, agent=f"{PLAYERS}:Closing"))
        await heard(link, "want" if "Nothing" not in env_id else "error")
        link.send({"over": True})
    assert (tmp_path / "closed").exists()


async def test_one_that_nobody_wants_ends() -> None:
    async with coordinated() as (link, _, future):
        link.send({"over": True})
        await asyncio.wait_for(asyncio.wrap_future(future), 60)


def test_without_a_coordinator_it_says_so() -> None:
    with pytest.raises(LinkClosed, match="cannot reach the coordinator of its run"):
        serve_rollouts(["127.0.0.1:1"], "token", 0)
