"""Limits, the cache and the pace of a run hold for all of its workers together."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import vfgym
from tests.models import answer
from tests.runs.executors.players import counting, without_drawn
from vfgym import ClientConfig, ModelAgent, Usage
from vfgym.errors import ConfigurationError, LimitReached
from vfgym.limits import SpendingLimits
from vfgym.model_server import ModelServer
from vfgym.results import load_results
from vfgym.runs.executors.link import WorkerLink
from vfgym.runs.executors.spending import Ledger, RemoteCache, ReportingMeter, ReportingPace

PRICES = {"echo": {"input": 1.0, "output": 10.0}}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def model(server: ModelServer, name: str = "echo") -> ModelAgent:
    return ModelAgent(ClientConfig(api_base_url=server.openai_url, api_key_var="NONE", max_retries=10), name)


def evaluate(*args: Any, **kwargs: Any) -> Any:
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        return vfgym.evaluate(*args, **{"progress": False, "executor": threads, **kwargs})


def spent_tokens(results: Any) -> float:
    return sum(row["spent"]["input_tokens"] + row["spent"]["output_tokens"] for row in results["outputs"])


def test_without_limits_models_are_asked_as_by_one_process(server: ModelServer) -> None:
    before = server.num_requests
    there = evaluate(counting, model(server))
    assert server.num_requests - before == 12
    here = vfgym.evaluate(counting, model(server), progress=False)
    assert without_drawn(there["outputs"]) == without_drawn(here["outputs"])
    assert (there["metadata"]["model"], there["metadata"]["is_model"]) == ("echo", True)


def test_no_more_requests_are_sent_than_the_run_may_send(server: ModelServer) -> None:
    before = server.num_requests
    results = evaluate(counting, model(server), limits={"requests": 5}, max_concurrent=8)
    assert server.num_requests - before <= 5
    assert results["metadata"]["stopped_by"] == {"limit": "requests", "allowed": 5, "used": 5}
    assert len(results["outputs"]) <= 5


@pytest.mark.parametrize(("limits", "name"), [({"tokens": 40}, "tokens"), ({"cost": 0.0003}, "cost")])
def test_a_limit_ends_the_run_in_all_workers_and_it_goes_on_with_more(
    server: ModelServer, tmp_path: Path, limits: dict[str, Any], name: str
) -> None:
    before = server.num_requests
    results = evaluate(
        counting, model(server), limits=limits, prices=PRICES, max_concurrent=2, results_path=tmp_path / "run", rollouts_per_example=4
    )
    stopped_by = results["metadata"]["stopped_by"]
    assert (stopped_by["limit"], stopped_by["allowed"]) == (name, limits[name])
    assert limits[name] <= stopped_by["used"] < limits[name] * 2
    sent = server.num_requests - before
    assert len(results["outputs"]) <= sent < 24
    assert load_results(tmp_path / "run")["metadata"]["stopped_by"] == stopped_by
    whole = evaluate(counting, model(server), prices=PRICES, results_path=tmp_path / "run", resume=True, rollouts_per_example=4)
    assert whole["metadata"]["stopped_by"] is None
    assert len(whole["outputs"]) == 48


def test_what_workers_spend_is_what_the_run_costs(server: ModelServer) -> None:
    there = evaluate(counting, model(server), prices=PRICES)
    here = vfgym.evaluate(counting, model(server), prices=PRICES, progress=False)
    assert there["metadata"]["cost"] == pytest.approx(here["metadata"]["cost"])
    assert [row["spent"] for row in there["outputs"]] == [row["spent"] for row in here["outputs"]]
    assert "abandoned_requests" not in there["metadata"]


def test_rollouts_that_fail_use_up_the_limit_on_errors() -> None:
    results = evaluate(counting, "tests.runs.executors.players:failing", limits={"errors": 3}, max_concurrent=2, rollouts_per_example=4)
    assert results["metadata"]["stopped_by"]["limit"] == "errors"
    assert 3 <= len(results["outputs"]) < 12


def test_a_limit_on_time_ends_what_is_running(server: ModelServer) -> None:
    results = evaluate(counting, "tests.runs.executors.players:waiting", limits={"time": 0.2})
    assert results["metadata"]["stopped_by"]["limit"] == "time"
    assert results["outputs"] == []


def test_limits_of_each_rollout_hold_in_workers(server: ModelServer) -> None:
    rows = evaluate("gymnasium/FrozenLake-v1", "random", num_examples=4, limits_each={"turns": 1})["outputs"]
    assert {row["stop_condition"] for row in rows} == {"limit_reached"}


def test_what_one_worker_has_asked_is_not_asked_again(server: ModelServer, tmp_path: Path) -> None:
    before = server.num_requests
    first = evaluate(counting, model(server), cache=tmp_path / "cache")
    assert server.num_requests - before == 12
    second = evaluate(counting, model(server), cache=tmp_path / "cache", rollouts_per_example=2)
    assert server.num_requests - before == 24, "each rollout has answers of its own"
    here = vfgym.evaluate(counting, model(server), cache=tmp_path / "cache", rollouts_per_example=2, progress=False)
    assert server.num_requests - before == 24
    assert [row["reward"] for row in here["outputs"]] == [row["reward"] for row in second["outputs"]]
    assert [row["completion"] for row in second["outputs"]][::2] == [row["completion"] for row in first["outputs"]]
    assert {row["spent"]["requests"] for row in here["outputs"]} == {0}


def test_a_model_without_a_price_ends_the_run_with_one_line(server: ModelServer) -> None:
    with pytest.raises(ConfigurationError, match="price"):
        evaluate(counting, model(server, "unpriced"), limits={"cost": 1.0}, prices=PRICES)


def test_a_busy_provider_is_left_alone_by_all_workers_until_it_answers_again() -> None:
    with ModelServer(faults=lambda request: "rate_limited" if request.number <= 3 else None) as server:
        results = evaluate(counting, model(server), limits={"requests": 100}, max_concurrent=4)
        assert [row["error"] for row in results["outputs"]] == [None] * 12
        assert server.num_requests == 15


class Wire:
    """Takes what is sent instead of a connection."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: Any) -> None:
        """Keep a message."""
        self.sent.append(message)


async def turn() -> None:
    """Let the event loop's turn end."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_a_refusal_elsewhere_slows_down_this_worker_and_is_told_no_further() -> None:
    wire = Wire()
    pace = ReportingPace(8.0, ledger := Ledger(cast(WorkerLink, wire)), asks_leave=False)
    ledger.pace = pace
    for _ in range(8):
        await pace.enter()
    ledger.take({"busy": 0.0})
    await turn()
    assert (pace.allowed, wire.sent) == (4.0, [])
    pace._note_refusal(0.5)
    await turn()
    assert wire.sent == [{"busy": 0.5}]


async def test_a_request_begins_when_it_is_let_and_a_leave_that_nobody_takes_is_given_back() -> None:
    wire = Wire()
    ledger = Ledger(cast(WorkerLink, wire))
    ledger.meter = ReportingMeter(SpendingLimits(requests=3), None, ledger)
    pace = ReportingPace(8.0, ledger, asks_leave=True)
    first, second = (asyncio.create_task(pace.enter()) for _ in range(2))
    await turn()
    assert wire.sent == [{"ask": 1}, {"ask": 1}]
    assert not first.done()
    first.cancel()
    await turn()
    ledger.take({"leave": 1})
    ledger.take({"leave": 1})
    await second
    ledger.meter.begin("m")
    await turn()
    assert wire.sent[-1]["leaves"] == 2, "that of the request that was cancelled counts as used"
    assert wire.sent[-1]["under_way"] == 1
    ledger.meter.count("m", Usage(prompt_tokens=1, completion_tokens=2))
    ledger.meter.end()
    await turn()
    assert wire.sent[-1]["under_way"] == 0
    assert (wire.sent[-1]["spent"]["requests"], wire.sent[-1]["spent"]["output_tokens"]) == (1, 2)


async def test_nothing_begins_where_the_coordinator_has_said_that_a_limit_is_used_up() -> None:
    ledger = Ledger(cast(WorkerLink, Wire()))
    meter = ledger.meter = ReportingMeter(SpendingLimits(tokens=1), None, ledger)
    meter.count("m", Usage(prompt_tokens=9, completion_tokens=9))
    assert meter.find_used_up() is None, "others may count otherwise: the coordinator says so"
    ledger.take({"used_up": {"limit": "tokens", "allowed": 1, "used": 18}})
    for begin in (lambda: meter.begin("m"), meter.begin_again, meter.refuse_if_used_up):
        with pytest.raises(LimitReached, match="tokens is used up: 18 of 1"):
            begin()
    assert meter.reached is not None


async def test_the_cache_of_the_coordinator_is_asked_from_any_loop() -> None:
    wire = Wire()
    ledger = Ledger(cast(WorkerLink, wire))
    cache = RemoteCache(ledger)
    kept = answer("kept", completion_tokens=3)
    finding = asyncio.create_task(asyncio.to_thread(asyncio.run, cache.find("key")))
    while not wire.sent:
        await asyncio.sleep(0)
    ledger.take({"question": wire.sent[0]["question"], "answer": kept.model_dump()})
    found = await finding
    assert wire.sent[0]["find"] == "key"
    assert found is not None
    assert found.model_dump() == kept.model_dump()
    keeping = asyncio.create_task(cache.keep("other", kept))
    await turn()
    assert wire.sent[1]["response"] == kept.model_dump()
    ledger.take({"question": wire.sent[1]["question"], "answer": None})
    assert await keeping is kept
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    kept.message = kept.message.replace(reasoning_details=deep)
    assert await cache.keep("deep", kept) is kept
    assert len(wire.sent) == 2, "what is nested too deeply is used and not kept"


@pytest.mark.parametrize("error", [asyncio.CancelledError(), OSError("the connection broke")])
async def test_a_question_that_is_given_up_is_forgotten_and_its_answer_goes_nowhere(error: BaseException) -> None:
    wire = Wire()
    ledger = Ledger(cast(WorkerLink, wire))
    given_up, other = (asyncio.create_task(ledger.ask({"find": key})) for key in "ab")
    await turn()
    ledger._questions[0].set_exception(error) if isinstance(error, OSError) else given_up.cancel()
    with pytest.raises(type(error)):
        await given_up
    ledger.take({"question": 0, "answer": "late"})
    ledger.take({"question": 7, "answer": "never asked"})
    assert not other.done()
    ledger.take({"question": 1, "answer": 0})
    ledger.take({"question": 1, "answer": "twice"})
    assert await other == 0
    assert wire.sent == [{"find": "a", "question": 0}, {"find": "b", "question": 1}]
    assert ledger._questions == {}


async def test_a_place_is_free_again_where_no_leave_came() -> None:
    """Whoever gives up while the coordinator is asked leaves its place to the next."""
    wire = Wire()
    ledger = Ledger(cast(WorkerLink, wire))
    pace = ReportingPace(1.0, ledger, asks_leave=True)
    pace.hold(0.0)  # one at once from now on
    for _ in range(3):
        asking = asyncio.create_task(pace.enter())
        await turn()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert wire.sent == [{"ask": 1}] * 3, "each got its place"
    ledger.take({"leave": 3})
    assert ledger._leaves_used == 3


def test_a_message_without_a_meter_or_a_pace_is_taken_in_all_the_same() -> None:
    async def take() -> None:
        ledger = Ledger(cast(WorkerLink, wire := Wire()))
        for message in ({"busy": 1.0}, {"used_up": {"limit": "tokens", "allowed": 1, "used": 2}}, {"leave": 0}):
            ledger.take(message)
        ledger.report()
        assert wire.sent == []

    asyncio.run(take())


@pytest.mark.parametrize(
    ("spend", "told"),
    [
        (lambda meter: meter.hold_place(), {"under_way": 1}),
        (lambda meter: meter.end(2), {"under_way": -2}),
        (lambda meter: meter.begin_again(), {"requests": 1}),
        (lambda meter: meter.count_failure(), {"requests": 1, "errors": 0}),
        (lambda meter: meter.count_given_up(), {"requests": 1, "abandoned": 1}),
        (lambda meter: meter.count("m", Usage(prompt_tokens=3, completion_tokens=4)), {"requests": 1, "input_tokens": 3, "cost": None}),
    ],
)
async def test_whatever_is_spent_is_told_at_the_end_of_the_turn(spend: Any, told: dict[str, Any]) -> None:
    wire = Wire()
    ledger = Ledger(cast(WorkerLink, wire))
    ledger.meter = ReportingMeter(SpendingLimits(), None, ledger)
    spend(ledger.meter)
    assert wire.sent == []
    await turn()
    (message,) = wire.sent
    nothing = {"requests": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "errors": 0, "abandoned": 0, "under_way": 0, "leaves": 0}
    said = {**message["spent"], "under_way": message["under_way"], "leaves": message["leaves"]}
    assert said == {**nothing, **told, **({"output_tokens": 4} if "input_tokens" in told else {})}
    ledger.report_if_due()
    assert len(wire.sent) == 1, "there is nothing new"
