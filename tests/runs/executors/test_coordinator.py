"""The coordinator: whom it lets play, and what it makes of workers that end, that say something odd, or that never come."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import vfgym
from tests.runs.executors.players import FOLDER, answer, counting, trace_of, without_drawn
from vfgym import ClientConfig, ModelAgent
from vfgym.errors import ConfigurationError, WorkersLost
from vfgym.results import load_results
from vfgym.runs.executors import coordinator, link
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


async def heard_so_far(link: WorkerLink) -> list[dict[str, Any]]:
    """Return what the coordinator has said to what it was told so far: it answers a question after that."""
    link.send({"question": 1, "find": "nothing"})
    heard = []
    while "answer" not in (message := await link.receive()):
        heard.append(message)
    return heard


async def never_connects(addresses: Sequence[str], token: str, number: int) -> None:
    raise OSError("no route to host")


async def dies_with_work(addresses: Sequence[str], token: str, number: int) -> None:
    link, _ = await joined(addresses, token, number)
    link.send({"want": 3})
    for _ in range(3):
        await link.receive()
    link.abort()


def test_what_a_worker_had_is_played_by_the_next_one(caplog: pytest.LogCaptureFixture) -> None:
    executor = Acting(dies_with_work)
    results = evaluate(executor)
    assert without_drawn(results["outputs"]) == without_drawn(vfgym.evaluate(counting, answer, progress=False)["outputs"])
    assert results["metadata"]["redone"] == 3
    assert executor.num_starts == 2
    assert "a worker died (its task ended): of the rollouts that it was playing, 3 are played again" in caplog.text


def test_a_worker_that_never_connects_ends_the_run_with_one_line_after_three_starts(tmp_path: Any) -> None:
    executor = Acting(*[never_connects] * 3)
    with pytest.raises(
        WorkersLost, match=r"no worker is left to play the run: worker 0 ended 3 times before it had connected: no route to host$"
    ) as caught:
        evaluate(executor)
    assert executor.num_starts == 3
    assert caught.value.outputs["outputs"] == []


def test_starts_without_a_connection_are_counted_anew_after_one() -> None:
    executor = Acting(never_connects, never_connects, dies_with_work, never_connects, never_connects)
    assert len(evaluate(executor)["outputs"]) == 12
    assert executor.num_starts == 6


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda future: future.cancel(), "its task was cancelled"),
        (lambda future: future.set_result(None), "its task ended"),
        (lambda future: future.set_exception(OSError("no route")), "no route"),
        (lambda future: future.set_exception(SystemExit()), "SystemExit"),
    ],
)
async def test_how_a_task_ended_is_told_in_words(end: Callable[[Any], object], words: str) -> None:
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    waiting = asyncio.create_task(coordinator._ended(future))
    await asyncio.sleep(0)
    assert not waiting.done()
    end(future)
    assert await waiting == await coordinator._ended(future) == words


def test_a_worker_that_connects_again_takes_the_place_of_its_first_connection() -> None:
    heard: list[Any] = []

    async def comes_twice(addresses: Sequence[str], token: str, number: int) -> None:
        first, _ = await joined(addresses, token, number)
        second, told = await joined(addresses, token, number)
        heard.extend(await read_on(first))
        assert "run" in told
        second.send({"want": 12})
        for _ in range(12):
            say_rows(second, await second.receive())
        assert await read_on(second) == [{"over": True}]

    executor = Acting(comes_twice)
    assert len(evaluate(executor)["outputs"]) == 12
    assert (heard, executor.num_starts) == ([], 1)


def test_one_that_does_not_come_leaves_the_run_to_the_others(caplog: pytest.LogCaptureFixture) -> None:
    executor = Acting(RuntimeError("cannot schedule new futures after shutdown"))
    results = evaluate(executor, workers=2)
    assert [row["error"] for row in results["outputs"]] == [None] * 12
    assert "the run goes on with fewer workers: Acting starts none: cannot schedule new futures after shutdown" in caplog.text


def test_why_an_executor_starts_none_is_told_where_its_error_has_no_text() -> None:
    with pytest.raises(WorkersLost, match=r"no worker is left to play the run: Acting starts none: NotImplementedError$"):
        evaluate(Acting(NotImplementedError()))


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


@pytest.mark.timeout(60)
def test_strangers_who_say_nothing_are_few_and_keep_no_worker_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "_MOST_STRANGERS", 2)
    monkeypatch.setattr(link, "_SECONDS_FOR_GREETING", 1000.0)
    closed: list[bool] = []

    async def crowd(addresses: Sequence[str], token: str, number: int) -> None:
        host, _, port = addresses[0].rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(5)]
        own, told = await joined(addresses, token, number)
        assert "run" in told
        for reader, _ in silent[:3]:  # each is told the first half of a greeting, and then nothing any more
            while await reader.read(1000):
                pass
            closed.append(True)
        for _, writer in silent:
            writer.close()
        own.abort()

    results = evaluate(Acting(crowd))
    assert len(results["outputs"]) == 12
    assert closed == [True] * 3


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


def test_registered_ids_with_secrets_are_told_on_this_machine_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[set[str]] = []

    async def listens(addresses: Sequence[str], token: str, number: int) -> None:
        link, order = await joined(addresses, token, number)
        heard.append({spec["id"] for text in order["registered"] if (spec := json.loads(text))["id"].startswith("t/")})
        link.send({"refused": {"limit": "time", "allowed": 1.0, "used": 2.0}})
        await read_on(link)

    for env_id, kwargs in (("t/Open-v0", {}), ("t/Secret-v0", {"api_key": "sk-0123456789abcdef"})):
        monkeypatch.setitem(gym.registry, env_id, EnvSpec(env_id, entry_point="a.b:c", kwargs=kwargs))
    for is_local, told in ((True, {"t/Open-v0", "t/Secret-v0"}), (False, {"t/Open-v0"})):
        monkeypatch.setattr(WorkerLink, "is_local", property(lambda self, is_local=is_local: is_local))
        with pytest.raises(vfgym.errors.LimitReached):
            evaluate(Acting(listens))
        assert heard.pop() == told


def test_no_worker_is_given_all_that_is_left_while_others_may_come() -> None:
    given: list[Any] = []

    async def greedy(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 12})
        given.extend(await heard_so_far(link))
        link.abort()

    results = evaluate(Acting(greedy), workers=3)
    assert len(given) == 4
    assert len(results["outputs"]) == 12


def row_of(job: dict[str, Any]) -> dict[str, Any]:
    """Return what a worker might say of a rollout that it was given."""
    row = {"example_id": job["example"][0], "rollout": 0, "reward": 0.5, "metrics": {}, "failed": False, "counted_reward": 0.5}
    return row | {"prompt": [], "completion": [], "error": None, "ending": "terminated", "is_truncated": False, "timing": {}}


def say_rows(link: WorkerLink, job: dict[str, Any], **more: Any) -> None:
    """Tell what came of a rollout."""
    link.send({"job": job["job"], "rows": [row_of(job)], "known": [], "unseen": [], **more})


def test_what_two_workers_died_of_is_played_alone() -> None:
    attempts: list[tuple[int, int]] = []

    async def dies(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 2})
        for _ in range(2):
            job = await link.receive()
            attempts.append((job["example"][0], job["attempt"]))
        link.abort()

    async def plays(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 4})
        for _ in range(2):
            job = await link.receive()
            attempts.append((job["example"][0], job["attempt"]))
            assert await heard_so_far(link) == [], "it plays that alone"
            say_rows(link, job)
        others = [await link.receive() for _ in range(2)]
        attempts.extend((job["example"][0], job["attempt"]) for job in others)
        for job in others:
            say_rows(link, job)
        await link.drain()
        await link.close()

    results = evaluate(Acting(dies, dies, plays))
    assert attempts[:6] == [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)]
    assert attempts[6:] == [(2, 1), (3, 1)]
    assert [row["reward"] for row in results["outputs"][:4]] == [0.5] * 4
    assert len(results["outputs"]) == 12
    assert results["metadata"]["redone"] == 4


def test_where_nothing_else_is_left_each_worker_plays_something_alone() -> None:
    """Two workers die twice with one rollout each; the next two play at the same time."""
    together = threading.Barrier(2, timeout=60)
    given: list[int] = []

    async def dies(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 1})
        await link.receive()
        together.wait()
        link.abort()

    async def plays(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 2})
        job = await link.receive()
        given.append(job["attempt"])
        together.wait()
        say_rows(link, job)
        await read_on(link)

    results = evaluate(Acting(dies, dies, dies, dies, plays, plays), workers=2, num_examples=2)
    assert given == [3, 3]
    assert [row["reward"] for row in results["outputs"]] == [0.5, 0.5]


def test_what_three_workers_died_of_is_a_failed_row() -> None:
    results = evaluate(Acting(*[dies_with_one] * 3))
    assert [row["ending"] for row in results["outputs"]].count("infrastructure_failed") == 1
    assert results["outputs"][0]["ending"] == "infrastructure_failed"
    assert results["outputs"][0]["error_chain"].startswith("WorkerDied('3 workers died while they played it, the last one so: ")
    assert results["metadata"]["redone"] == 2


async def dies_with_one(addresses: Sequence[str], token: str, number: int) -> None:
    link, _ = await joined(addresses, token, number)
    link.send({"want": 1})
    await link.receive()
    link.abort()


def test_requests_begin_while_the_limit_allows_and_no_more() -> None:
    heard: list[Any] = []

    async def asks(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"ask": 3})
        for _ in range(3):
            heard.append(await link.receive())
        spent = {"requests": 3, "input_tokens": 7, "output_tokens": 2, "cost": None, "errors": 0, "abandoned": 0}
        link.send({"spent": spent, "under_way": 0, "leaves": 3})
        link.send({"ask": 2})
        for _ in range(2):
            heard.append(await link.receive())
        link.send({"spent": {**spent, "requests": 4}, "under_way": 1, "leaves": 5})
        link.send({"ask": 1})
        heard.extend(await read_on(link))

    results = evaluate(Acting(asks), limits={"requests": 5})
    assert heard == [{"leave": 1}] * 5 + [{"over": True}]
    assert results["metadata"]["stopped_by"] == {"limit": "requests", "allowed": 5, "used": 5}
    assert results["metadata"]["abandoned_requests"] == 1, "one was under way when its worker ended"


@pytest.mark.parametrize(
    ("limits", "told", "used"),
    [
        ({"requests": 5}, [{"requests": 2}, {"requests": 5}], 5),
        ({"tokens": 47}, [{"input_tokens": 10, "output_tokens": 20}, {"input_tokens": 15, "output_tokens": 32}], 47),
        ({"cost": 1.0}, [{"cost": 0.75}, {"cost": 1.25}], 1.25),
    ],
)
def test_what_a_worker_has_spent_is_counted_from_what_it_told_before(limits: Any, told: list[Any], used: float) -> None:
    async def tells(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        for abandoned, spent in enumerate(told, start=1):
            nothing = {"requests": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "errors": 0}
            link.send({"spent": {**nothing, "abandoned": abandoned, **spent}, "under_way": 0, "leaves": 0})
        used_up = await link.receive()
        link.send({"refused": used_up["used_up"]})
        await read_on(link)

    metadata = evaluate(Acting(tells), limits=limits, prices={"m": {"input": 1.0, "output": 1.0}})["metadata"]
    [(limit, allowed)] = limits.items()
    assert metadata["stopped_by"] == {"limit": limit, "allowed": allowed, "used": used}
    assert metadata["abandoned_requests"] == 2


def test_requests_of_a_worker_that_died_are_given_up_and_their_places_are_free_again() -> None:
    heard: list[Any] = []

    async def dies_asking(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"ask": 2})
        for _ in range(2):
            await link.receive()
        link.abort()

    async def asks(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"ask": 3})
        for _ in range(3):
            heard.append(await link.receive())
        link.send({"spent": dict.fromkeys(("requests", "input_tokens", "output_tokens", "cost"), 0), "under_way": 0, "leaves": 3})
        await link.drain()
        await link.close()

    results = evaluate(Acting(dies_asking, asks), limits={"requests": 5})
    assert heard == [{"leave": 1}] * 3
    assert results["metadata"]["abandoned_requests"] == 2
    assert len(results["outputs"]) == 12


def test_all_workers_hear_of_a_limit_that_is_used_up_once() -> None:
    heard: dict[int, list[Any]] = {}
    both = threading.Barrier(2)

    async def listens(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        await asyncio.to_thread(both.wait)
        spent = {"requests": 1, "input_tokens": 30, "output_tokens": 0, "cost": None, "errors": 0, "abandoned": 0}
        if number == 0:
            for tokens in (30, 31):
                link.send({"spent": {**spent, "input_tokens": tokens}, "under_way": 0, "leaves": 0})
        heard[number] = [await link.receive()]
        if number == 1:
            link.send({"refused": heard[1][0]["used_up"]})
        heard[number] += await read_on(link)

    results = evaluate(Acting(listens, listens), workers=2, limits={"tokens": 30})
    told = {"used_up": {"limit": "tokens", "allowed": 30, "used": 30}}
    assert heard == {0: [told, {"over": True}], 1: [told, {"over": True}]}
    assert results["metadata"]["stopped_by"] == told["used_up"]


def test_a_busy_provider_is_told_to_the_others() -> None:
    heard: dict[int, list[Any]] = {}
    both = threading.Barrier(2)

    async def meets_it(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        await asyncio.to_thread(both.wait)
        if number == 0:
            link.send({"busy": 1.5})
            heard[number] = await read_on(link)
        else:
            heard[number] = [await link.receive()]
            await link.close()

    assert len(evaluate(Acting(meets_it, meets_it), workers=2)["outputs"]) == 12
    assert heard == {0: [{"over": True}], 1: [{"busy": 1.5}]}


def test_what_a_worker_logs_and_which_columns_it_misses_is_told_here(caplog: pytest.LogCaptureFixture) -> None:
    async def tells(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"log": "it is slow", "logger": "of.a.worker", "level": 30})
        link.send({"want": 12})
        for _ in range(12):
            say_rows(link, await link.receive(), unseen=["quesion"], known=["question", "prompt"])
        await read_on(link)

    evaluate(Acting(tells), state_columns=["quesion", "prompt"])
    assert ("of.a.worker", 30, "it is slow") in caplog.record_tuples
    assert "has the column 'quesion', so it is None in all rows. Did you mean `question`" in caplog.text


def test_a_worker_that_does_not_end_keeps_nobody_waiting_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(coordinator, "_SECONDS_TO_END", 0.2)
    closed = threading.Event()

    async def stays(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 12})
        for _ in range(12):
            say_rows(link, await link.receive())
        assert await link.receive() == {"over": True}
        with pytest.raises(LinkClosed):
            await link.receive()
        closed.set()
        await link.close()

    assert len(evaluate(Acting(stays))["outputs"]) == 12
    assert "workers of the run have not ended within" in caplog.text
    assert closed.wait(60), "its connection is closed all the same"


def test_a_connection_that_stays_open_after_its_task_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a machine is gone, and its executor knows."""
    monkeypatch.setattr(coordinator, "_SECONDS_TO_CLOSE", 0.2)
    kept: list[Any] = []

    async def leaves(addresses: Sequence[str], token: str, number: int) -> None:
        host, _, port = addresses[0].rpartition(":")
        sock = socket.create_connection((host, int(port)))
        kept.append(sock.dup())  # which stays open
        link = WorkerLink(*await asyncio.open_connection(sock=sock))
        await link.greet(token, {**this_process(), "number": number}, is_coordinator=False)
        await link.receive()
        link.send({"want": 2})
        for _ in range(2):
            await link.receive()
        link.abort()  # which closes its own end of it alone

    results = evaluate(Acting(leaves))
    assert results["metadata"]["redone"] == 2
    assert len(results["outputs"]) == 12
    kept[0].close()


@pytest.mark.parametrize(
    ("settings", "slots"),
    [({"max_concurrent": 3}, [2, 1]), ({"max_concurrent": 4}, [2, 2]), ({"max_concurrent": 1}, [1]), ({"max_concurrent": -1}, [6, 6])],
)
def test_rollouts_at_once_are_divided_among_workers(settings: dict[str, int], slots: list[int]) -> None:
    told: dict[int, int] = {}

    async def asks(addresses: Sequence[str], token: str, number: int) -> None:
        link, order = await joined(addresses, token, number)
        told[number] = order["slots"]
        while len(told) < len(slots):
            assert await heard_so_far(link) == []
        await link.close()

    assert len(evaluate(Acting(*[asks] * len(slots)), workers=2, **settings)["outputs"]) == 12
    assert [told[number] for number in sorted(told)] == slots


def test_that_nobody_comes_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(coordinator, "_SECONDS_UNTIL_WARNING", 0.1)

    async def comes_late(addresses: Sequence[str], token: str, number: int) -> None:
        while "no worker has connected" not in caplog.text:
            await asyncio.sleep(0.01)
        raise OSError("never mind")

    assert len(evaluate(Acting(comes_late))["outputs"]) == 12
    assert "is there room for one in the executor, and can it reach this process at " in caplog.text


def test_rows_that_are_none_end_the_run() -> None:
    async def errs(addresses: Sequence[str], token: str, number: int) -> None:
        link, _ = await joined(addresses, token, number)
        link.send({"want": 1})
        job = await link.receive()
        link.send({"job": job["job"], "rows": [{**row_of(job), "example_id": "first"}], "known": [], "unseen": []})
        await read_on(link)

    with pytest.raises(ValueError, match="it needs an integer example_id, got 'first'"):
        evaluate(Acting(errs))
