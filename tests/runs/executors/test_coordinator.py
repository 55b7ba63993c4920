"""The coordinator: whom it lets play, and what it makes of workers that end, that say something odd, or that never come."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

import vfgym
from tests.runs.executors.players import FOLDER, answer, counting, trace_of, without_drawn
from vfgym import ClientConfig, ModelAgent
from vfgym.errors import ConfigurationError, WorkersLost
from vfgym.results import load_results
from vfgym.runs.executors.link import LinkClosed, WorkerLink, connect
from vfgym.runs.executors.worker import serve_rollouts, this_process

Worker = Callable[[Sequence[str], str, int], Awaitable[None]]


class Acting(concurrent.futures.Executor):
    """Starts threads that act as workers: as this test says, and as they should after so many starts."""

    def __init__(self, *acts: Worker | BaseException) -> None:
        self.acts = list(acts)
        self.num_starts = 0
        self.lock = threading.Lock()

    def submit(self, func: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Start the next one."""
        assert func is serve_rollouts
        self.num_starts += 1
        act = self.acts.pop(0) if self.acts else None
        if isinstance(act, BaseException):
            raise act
        future: concurrent.futures.Future[None] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                if act is None:
                    func(*args)
                else:
                    asyncio.run(act(*args))  # type: ignore[arg-type]
                future.set_result(None)
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future


def evaluate(executor: concurrent.futures.Executor, workers: int = 1, **kwargs: Any) -> Any:
    return vfgym.evaluate(counting, answer, progress=False, executor=executor, workers=workers, **kwargs)


async def joined(addresses: Sequence[str], token: str, number: int, **said: Any) -> tuple[WorkerLink, dict[str, Any]]:
    """Connect as a worker does."""
    link = await connect(addresses)
    await link.greet(token, {**this_process(), "number": number, **said}, is_coordinator=False)
    return link, await link.receive()


async def read_on(link: WorkerLink) -> list[dict[str, Any]]:
    """Return what the coordinator says until it closes the connection, or the run is over."""
    heard = []
    try:
        while not heard or "over" not in heard[-1]:
            heard.append(await link.receive())
    except LinkClosed:
        pass
    await link.close()
    return heard


async def never_connects(addresses: Sequence[str], token: str, number: int) -> None:
    raise OSError("no route to host")


async def dies_with_work(addresses: Sequence[str], token: str, number: int) -> None:
    link, _ = await joined(addresses, token, number)
    link.send({"want": 3})
    for _ in range(3):
        await link.receive()
    link.abort()


def test_what_a_worker_had_is_played_by_the_next_one() -> None:
    executor = Acting(dies_with_work)
    results = evaluate(executor)
    assert without_drawn(results["outputs"]) == without_drawn(vfgym.evaluate(counting, answer, progress=False)["outputs"])
    assert results["metadata"]["redone"] == 3
    assert executor.num_starts == 2


def test_a_worker_that_never_connects_ends_the_run_with_one_line_after_three_starts(tmp_path: Any) -> None:
    executor = Acting(*[never_connects] * 3)
    with pytest.raises(
        WorkersLost, match=r"no worker is left to play the run: worker 0 ended 3 times before it had connected: no route to host$"
    ) as caught:
        evaluate(executor)
    assert executor.num_starts == 3
    assert caught.value.outputs["outputs"] == []


def test_one_that_does_not_come_leaves_the_run_to_the_others(caplog: pytest.LogCaptureFixture) -> None:
    executor = Acting(RuntimeError("cannot schedule new futures after shutdown"))
    results = evaluate(executor, workers=2)
    assert [row["error"] for row in results["outputs"]] == [None] * 12
    assert "the run goes on with fewer workers: Acting starts none: cannot schedule new futures after shutdown" in caplog.text


def test_an_executor_that_is_shut_down_plays_nothing() -> None:
    executor = concurrent.futures.ThreadPoolExecutor(2)
    executor.shutdown()
    with pytest.raises(WorkersLost, match="ThreadPoolExecutor starts none: cannot schedule new futures after shutdown"):
        evaluate(executor, workers=2)


def test_what_was_finished_is_kept_where_no_worker_is_left(tmp_path: Any) -> None:
    async def plays_two(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 2})
        for _ in range(2):
            job = await link.receive()
            row = {"example_id": job["example"][0], "rollout": 0, "reward": 1.0, "metrics": {}, "failed": False, "counted_reward": 1.0}
            row |= {"prompt": [], "completion": [], "error": None, "ending": "terminated", "is_truncated": False, "timing": {}}
            link.send({"job": job["job"], "rows": [row], "known": [], "unseen": []})
        await link.drain()
        await link.close()

    executor = Acting(plays_two, *[RuntimeError("shut down")] * 3)
    with pytest.raises(WorkersLost, match="Acting starts none: shut down") as caught:
        evaluate(executor, results_path=tmp_path / "run")
    assert [row["example_id"] for row in caught.value.outputs["outputs"]] == [0, 1]
    assert len(load_results(tmp_path / "run")["outputs"]) == 2
    again = evaluate(Acting(), results_path=tmp_path / "run", resume=True)
    assert len(again["outputs"]) == 12


def test_rows_of_what_it_does_not_play_any_more_are_dropped() -> None:
    """A row under a number that was never sent, or twice under one, counts once or not at all."""

    async def says_it_twice(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 1})
        job = await link.receive()
        row = {"example_id": 0, "rollout": 0, "reward": 0.25, "metrics": {}, "failed": False, "counted_reward": 0.25, "error": None}
        row |= {"prompt": [], "completion": [], "ending": "terminated", "is_truncated": False, "timing": {}}
        for each in (job["job"], job["job"], job["job"] + 100):
            link.send({"job": each, "rows": [row], "known": [], "unseen": []})
        await link.drain()
        await link.close()

    results = evaluate(Acting(says_it_twice))
    assert [row["example_id"] for row in results["outputs"]] == list(range(12))
    assert results["outputs"][0]["reward"] == 0.25


@pytest.mark.parametrize(
    ("said", "message"),
    [({"version": "0.0.1"}, "has vfgym 0.0.1, and this process .*: install the same version in both places")],
)
def test_a_worker_of_another_version_ends_the_run_with_one_line(said: dict[str, Any], message: str) -> None:
    heard: list[Any] = []

    async def other(addresses: Sequence[str], token: str, number: int) -> None:
        link, first = await joined(addresses, token, number, **said)
        heard.append(first)
        await link.close()

    with pytest.raises(ConfigurationError, match=message):
        evaluate(Acting(other))
    assert heard == [{"over": True}], "it is not told what the run is"


def test_who_does_not_know_the_token_is_told_nothing_and_the_run_goes_on() -> None:
    heard: list[Any] = []

    async def stranger(addresses: Sequence[str], token: str, number: int) -> None:
        link = await connect(addresses)
        with pytest.raises(LinkClosed):
            await link.greet("guessed", {**this_process(), "number": number}, is_coordinator=False)
        heard.append(await read_on(link))

    results = evaluate(Acting(stranger))
    assert len(results["outputs"]) == 12
    assert heard == [[]]


def test_an_environment_that_workers_cannot_make_ends_the_run_with_their_error(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    trace_of("first").write_text("1")

    async def cannot(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send(
            {
                "error": {"module": "vfgym.errors", "name": "ConfigurationError", "text": "environment 'of:another': there is no module"}
                | {"notes": [], "attributes": {}, "traceback": ""}
            }
        )
        await read_on(link)

    with pytest.raises(ConfigurationError, match="environment 'of:another': there is no module"):
        evaluate(Acting(cannot), results_path=tmp_path / "run")
    assert not (tmp_path / "run").exists(), "nothing could be played"


def test_secrets_are_told_on_this_machine_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-0123456789abcdef"
    heard: list[Any] = []

    async def listens(addresses: Sequence[str], token: str, number: int) -> None:
        link, order = await joined(addresses, token, number)
        heard.append(order)
        link.send({"refused": {"limit": "time", "allowed": 1.0, "used": 2.0}})
        await read_on(link)

    agent = ModelAgent(ClientConfig(api_base_url="http://127.0.0.1:1/v1", api_key=key), "m")
    with pytest.raises(vfgym.errors.LimitReached):
        vfgym.evaluate(counting, agent, executor=Acting(listens), workers=1, progress=False)
    assert heard[0]["run"]["client"]["api_key"] == key
    monkeypatch.setattr(WorkerLink, "is_local", property(lambda self: False))
    with pytest.raises(ConfigurationError, match=r"would be sent secrets of the run in the clear: leave them out of .*api_key_var"):
        vfgym.evaluate(counting, agent, executor=Acting(listens), workers=1, progress=False)
    assert heard[1] == {"over": True}


def test_no_worker_is_given_all_that_is_left_while_others_may_come() -> None:
    given: list[int] = []

    async def greedy(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 12})
        first = await link.receive()
        given.append(first["numbers"][0])
        try:
            async with asyncio.timeout(0.3):
                while True:
                    await link.receive()
                    given.append(1)
        except TimeoutError:
            pass
        link.abort()

    results = evaluate(Acting(greedy), workers=3)
    assert len(given) == 4
    assert len(results["outputs"]) == 12
