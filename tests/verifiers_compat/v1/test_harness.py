"""The harness: the order in which things happen, what ends a rollout, and what signals may do."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import Failing, InOrder, Mute, calling
from vfgym import blocking
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Response, ResponseMessage
from vfgym.testing import ScriptedClient


def get(key: str) -> str:
    """Return a value."""
    return f"value of {key}"


def fail() -> str:
    """Raise an error."""
    raise LookupError("no such thing")


def harness(*answers: Any, **kwargs: Any) -> vf.Harness:
    return vf.Harness(client=ScriptedClient(answers), model="m", **kwargs)


def contents(state: vf.State, role: str) -> list[Any]:
    return [message["content"] for message in state["completion"] if message["role"] == role]


# The base loop


async def test_the_base_loop_calls_tools_until_the_model_calls_none() -> None:
    state = await harness(calling(("get", {"key": "a"}), ("zzz", {}), ("fail", {})), "done", toolsets=[[get, fail]]).run({"prompt": "go"})
    assert (state["stop_condition"], state["is_completed"], state["num_model_requests"]) == ("no_tools", True, 2)
    assert contents(state, "tool") == ["value of a", "'zzz'", "no such thing"]
    assert state["prompt"] == [{"role": "user", "content": "go"}]
    assert state["completion"][-1] == {"role": "assistant", "content": "done"}
    assert all(type(message) is dict for message in state["completion"])
    assert [len(step["prompt"]) for step in state["trajectory"]] == [1, 5]
    assert json.loads(json.dumps(state))["trajectory"][0]["completion"][0]["tool_calls"][1]["function"]["name"] == "zzz"


async def test_the_turn_limit_ends_the_loop_after_the_tools() -> None:
    call = calling(("get", {"key": "a"}))
    state = await harness(call, call, call, toolsets=[get], max_turns=2).run({"prompt": "go"})
    assert (state["stop_condition"], state["num_model_requests"]) == ("max_turns_reached", 2)
    assert state["completion"][-1]["role"] == "tool"
    state = await harness(call, call, call, toolsets=[get], max_turns=2).run({"prompt": "go", "max_turns": 1})
    assert state["num_model_requests"] == 1


async def test_a_task_may_lift_the_turn_limit() -> None:
    """A limit that is not positive is none, also where a task says so and the harness has one."""
    call = calling(("get", {"key": "a"}))
    state = await harness(call, call, "done", toolsets=[get], max_turns=1).run({"prompt": "go", "max_turns": 0})
    assert (state["stop_condition"], state["num_model_requests"]) == ("no_tools", 3)


async def test_stop_conditions_are_checked_before_the_program_and_after_each_tool() -> None:
    def never(task: Any, state: Any) -> bool:
        return True

    state = await harness(stops=[never]).run({"prompt": "go"})
    assert (state["stop_condition"], state["num_model_requests"], state["completion"]) == ("never", 0, [])

    def finish(state: vf.State) -> str:
        """Finish."""
        state.stop("finished")
        return "ok"

    state = await harness(calling(("finish", {}), ("finish", {})), toolsets=[finish]).run({"prompt": "go"})
    assert (state["stop_condition"], contents(state, "tool")) == ("finished", ["ok"])


async def test_done_in_the_state_stops_as_state_done() -> None:
    def finish(state: vf.State) -> None:
        """Finish."""
        state["done"] = True

    state = await harness(calling(("finish", {})), toolsets=[finish]).run({"prompt": "go"})
    assert state["stop_condition"] == "state_done"


async def test_a_user_goes_on_where_the_model_calls_no_tool() -> None:
    seen: list[int] = []

    def user(transcript: list[Any], state: vf.State) -> Any:
        seen.append(len(transcript))
        return [{"role": "user", "content": "and?"}] if len(seen) < 3 else None

    state = await harness("one", "two", "three", user=user).run({"prompt": "go"})
    assert contents(state, "user") == ["and?", "and?"]
    assert (state["stop_condition"], seen) == ("no_tools", [2, 4, 6])


async def test_what_was_cut_is_truncated() -> None:
    cut = Response("r", 0, "m", None, ResponseMessage("x", finish_reason="length"))
    state = await harness(cut).run({"prompt": "go"})
    assert state["is_truncated"] is True


async def test_an_error_is_recorded_and_scored_all_the_same() -> None:
    def score(task: Any, state: Any) -> float:
        return 1.0

    failing = vf.Harness(client=Failing(vf.ModelError("down")), model="m", rewards=[score])
    state = await failing.run({"prompt": "go"})
    assert (state["stop_condition"], state["is_completed"], state["reward"]) == ("has_error", True, 1.0)
    assert state["error"]["error"] == "ModelError"
    assert "down" in state["error"]["error_chain_repr"]
    assert state["completion"] == []


async def test_an_overlong_prompt_is_a_truncation() -> None:
    state = await vf.Harness(client=Failing(vf.OverlongPromptError("too long")), model="m").run({"prompt": "go"})
    assert (state["stop_condition"], state["is_truncated"], state["error"]) == ("prompt_too_long", True, None)


async def test_a_foreign_exception_goes_through_after_the_cleanup() -> None:
    cleaned: list[bool] = []

    def tidy(task: Any, state: Any) -> None:
        cleaned.append(True)

    with pytest.raises(ZeroDivisionError):
        await vf.Harness(client=Failing(ZeroDivisionError()), model="m", cleanups=[tidy]).run({"prompt": "go"})
    assert cleaned == [True]


async def test_a_slow_cleanup_finishes_though_the_run_is_cancelled() -> None:
    """Also where the cancellation comes while it runs already; the run has then ended when the cancellation is raised."""
    log: list[str] = []
    is_cleaning = asyncio.Event()

    async def tidy(task: Any, state: Any) -> None:
        is_cleaning.set()
        await asyncio.sleep(0.05)
        log.append("tidy")

    async def then(task: Any, state: Any) -> None:
        log.append("then")

    client = Mute()
    for awaited in (client.asked, is_cleaning):
        player = vf.Harness(client=client if awaited is client.asked else ScriptedClient(["x"]), model="m", cleanups=[tidy, then])
        run = asyncio.create_task(player.run({"prompt": "go"}))
        is_cleaning.clear()
        await awaited.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert log == ["then", "tidy"] * 2


async def test_without_a_client_the_loop_says_what_is_missing() -> None:
    with pytest.raises(ConfigurationError, match="client"):
        await vf.Harness().run({"prompt": "go"})


# Order


class Ordered(vf.Taskset):
    log: list[str]

    @vf.stop
    async def is_over(self, task: Any, state: Any) -> bool:
        self.log.append("stop")
        return False

    @vf.setup
    async def prepare(self, task: Any, state: Any) -> None:
        self.log.append("setup")

    @vf.update
    async def sync(self, task: Any, state: Any) -> None:
        self.log.append(f"update {len(state['completion'] or [])}")

    @vf.reward(weight=2.0)
    async def good(self, task: Any, state: Any) -> float:
        self.log.append("reward")
        return 1.0

    @vf.metric
    async def length(self, task: Any, state: Any) -> float:
        self.log.append("metric")
        return 3

    @vf.reward(weight=0.5, stage="group")
    async def best(self, tasks: Any, states: Any) -> list[float]:
        self.log.append("group")
        return [1.0] * len(states)

    @vf.cleanup
    async def tidy(self, task: Any, state: Any) -> None:
        self.log.append("cleanup")

    @vf.cleanup(stage="group")
    async def tidy_group(self, tasks: Any, states: Any) -> None:
        self.log.append("group cleanup")


async def test_everything_happens_in_the_documented_order() -> None:
    taskset = Ordered([{"question": "?"}], toolsets=[get])
    taskset.log = []
    client = ScriptedClient([calling(("get", {"key": "a"})), "done"])
    output = (await vf.Env(taskset).run_group([taskset.dataset_rows()[0]], client, "m"))[0]
    stops = ["stop"] * 4
    assert taskset.log == [
        *["stop", "setup", *stops[1:]],
        *["update 3", "reward", "metric", "cleanup", "group", "group cleanup"],
    ]
    assert output["stop_condition"] == "no_tools"
    assert output["metrics"] == {"good": 1.0, "length": 3.0, "best": 1.0}
    assert output["reward"] == 2.5


async def test_priority_then_name_orders_handlers() -> None:
    log: list[str] = []

    def b(task: Any, state: Any) -> None:
        log.append("b")

    def a(task: Any, state: Any) -> None:
        log.append("a")

    def late(task: Any, state: Any) -> None:
        log.append("late")

    await harness("x", setups=[b, {"fn": late, "priority": -1}, a, a]).run({"prompt": "go"})
    assert log == ["a", "b", "late"]


# Signals


def test_two_signals_of_one_name_are_refused() -> None:
    def score(task: Any, state: Any) -> float:
        return 1.0

    def other() -> Callable[..., float]:
        def score(task: Any, state: Any) -> float:
            return 2.0

        return score

    with pytest.raises(ValueError, match="score"):
        vf.Env(vf.Taskset([{"question": "?"}], rewards=[score]), vf.Harness(metrics=[other()]))


@pytest.mark.parametrize("result", [[1.0], "12", None, ["x", "y"]])
async def test_a_group_signal_must_return_a_number_for_each_rollout(result: Any) -> None:
    def best(tasks: Any, states: Any) -> Any:
        return result

    player = vf.Harness(rewards=[best])
    states = [vf.State.for_task({}), vf.State.for_task({})]
    with pytest.raises((TypeError, ValueError), match="best"):
        await player.score_group([vf.Task(), vf.Task()], states)


async def test_what_a_signal_raises_goes_through() -> None:
    def score(task: Any, state: Any) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await harness("x", rewards=[score]).run({"prompt": "go"})


async def test_rollout_scoring_can_be_left_out() -> None:
    def score(task: Any, state: Any) -> float:
        return 1.0

    state = vf.State.for_task({"prompt": "go"})
    state["runtime"]["score_rollout"] = False
    state = await harness("x", rewards=[score]).run({"prompt": "go"}, state)
    assert (state["reward"], state["metrics"]) == (0.0, {})


async def test_the_times_of_a_rollout_are_those_of_its_stages() -> None:
    """``scoring_ms`` holds neither the set-up nor the model's turns, ``generation_ms`` no scoring, and ``total_ms`` all of it."""
    seconds = {"set up": 0.05, "update": 0.05, "score": 0.03}

    async def prepare(task: Any, state: Any) -> None:
        await asyncio.sleep(seconds["set up"])

    async def sync(task: Any, state: Any) -> None:
        await asyncio.sleep(seconds["update"])

    async def score(task: Any, state: Any) -> float:
        clock.append(time.perf_counter())
        await asyncio.sleep(seconds["score"])
        clock.append(time.perf_counter())
        return 1.0

    clock: list[float] = []
    started = time.perf_counter()
    state = await harness("x", setups=[prepare], updates=[sync], rewards=[score]).run({"prompt": "go"})
    ended = time.perf_counter()
    timing = state["timing"]
    before_scoring, in_scoring = (1e3 * (later - sooner) for sooner, later in ((started, clock[0]), clock))
    slack = 5.0  # milliseconds by which two clocks may differ
    assert in_scoring - slack <= timing["scoring_ms"] <= 1e3 * (ended - started) - timing["generation_ms"] + slack
    assert 1e3 * (seconds["set up"] + seconds["update"]) - slack <= timing["generation_ms"] <= before_scoring + slack
    assert timing["generation_ms"] + timing["scoring_ms"] - slack <= timing["total_ms"] <= 1e3 * (ended - started) + slack


async def test_advantages_come_from_their_own_function_only() -> None:
    def centred(tasks: Any, states: Any) -> list[float]:
        return [state["reward"] - 1.0 for state in states]

    states = [vf.State.for_task({}), vf.State.for_task({})]
    for state, reward in zip(states, (1.0, 3.0), strict=True):
        state["reward"] = reward
        state["trajectory"].append({"advantage": None})
    await vf.Harness().score_group([vf.Task(), vf.Task()], states)
    assert "advantage" not in states[0]
    player = vf.Harness(advantages=[centred])
    assert player.provides_advantages
    assert player.requires_group_rollouts
    await player.score_group([vf.Task(), vf.Task()], states)
    assert [state["advantage"] for state in states] == [0.0, 2.0]
    assert [state["trajectory"][0]["advantage"] for state in states] == [0.0, 2.0]


@pytest.mark.parametrize(
    ("scoring", "reward"), [({"score": {"weight": 3.0}}, 3.0), ({"score": {"skip": True}}, 0.0), ({"score": {"priority": 5}}, 1.0)]
)
async def test_a_run_may_change_its_signals(scoring: Any, reward: float) -> None:
    def score(task: Any, state: Any) -> float:
        return 1.0

    state = await harness("x", rewards=[score], config={"scoring": scoring}).run({"prompt": "go"})
    assert state["reward"] == reward


def test_scoring_that_names_no_signal_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="scor"):
        _ = vf.Harness(config={"scoring": {"nope": {"skip": True}}}).all_handlers
    with pytest.raises(ValueError, match="wait"):
        vf.Harness(config={"scoring": {"nope": {"wait": 1.0}}})


@pytest.mark.parametrize(
    ("lists", "says"),
    [
        ({"rewards": [lambda task, state, nope: 0.0]}, "nope"),
        ({"stops": [3]}, "function"),
        ({"metrics": [{"fn": lambda task, state: 0.0, "weight": 1.0}]}, "weight"),
        ({"stops": [{"fn": lambda tasks, states: True, "stage": "group"}]}, "group"),
        ({"rewards": ["no_such_module_here:f"]}, "no_such_module_here"),
    ],
)
def test_functions_that_cannot_be_handlers_are_refused(lists: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        vf.Harness(**lists)


async def test_a_failing_cleanup_is_recorded_and_stops_nothing() -> None:
    log: list[str] = []

    def a(task: Any, state: Any) -> None:
        raise ZeroDivisionError

    def b(task: Any, state: Any) -> None:
        log.append("b")

    state = await harness("x", cleanups=[a, b]).run({"prompt": "go"})
    assert log == ["b"]
    assert "ZeroDivisionError" in state["cleanup_errors"]["a"]


# System prompts


async def test_a_system_prompt_comes_before_the_prompt() -> None:
    state = await harness("x", system_prompt="be kind").run({"prompt": "go"})
    assert [message["role"] for message in state["prompt"]] == ["system", "user"]


@pytest.mark.parametrize(
    ("merge", "expected"), [("concat", ["h", "s", "t"]), ("task", ["t"]), ("taskset", ["s"]), ("harness", ["h"]), ("reject", None)]
)
async def test_several_system_prompts_are_merged_as_asked(merge: str, expected: list[str] | None) -> None:
    player = harness("x", system_prompt="h", config={"system_prompt_merge": merge})
    player.attach(vf.Taskset([], system_prompt="s"))
    if expected is None:
        with pytest.raises(ValueError, match="system_prompt_merge"):
            await player.run({"prompt": "go", "system_prompt": "t"})
    else:
        state = await player.run({"prompt": "go", "system_prompt": "t"})
        assert [message["content"] for message in state["prompt"]] == [*expected, "go"]


# Borrowing


async def test_a_child_rollout_borrows_model_tools_and_transcript() -> None:
    child = vf.Harness()

    async def ask_somebody(state: vf.State) -> str:
        """Ask a helper."""
        own = state.for_task({"prompt": "help"}, borrow="model", tools="get", transcript="append")
        done = await child.run({"prompt": "help"}, own)
        assert [message["content"] for message in done["completion"] if message["role"] == "tool"] == ["value of b"]
        return str(done["completion"][-1]["content"])

    client = InOrder(calling(("ask_somebody", {})), calling(("get", {"key": "b"})), "helped", "done")
    state = await vf.Harness(client=client, model="m", toolsets=[[ask_somebody, get]]).run({"prompt": "go"})
    assert contents(state, "tool") == ["helped"]
    assert (len(state["trajectory"]), state["num_model_requests"]) == (4, 4)


async def test_a_function_that_is_listed_keeps_what_its_mark_says_and_the_list_may_say_otherwise() -> None:
    """Weight, stage and priority of a decorated function; the mark of another kind says nothing about this one."""
    order: list[str] = []

    @vf.metric
    @vf.reward(weight=3.0, priority=-5)
    def late(task: Any, state: Any) -> float:
        order.append("late")
        return 1.0

    @vf.reward(weight=0.5, stage="group")
    def together(states: Any) -> list[float]:
        return [1.0] * len(states)

    @vf.reward(priority=7)
    def soon(task: Any, state: Any) -> float:
        order.append("soon")
        return 10.0

    player = harness("x", rewards=[late, soon, together])
    assert player.requires_group_rollouts
    state = await player.run({"prompt": "go"})
    assert (state["reward"], order) == (13.0, ["soon", "late"])
    order.clear()
    changed = harness("x", rewards=[{"fn": late, "weight": 2.0, "priority": 9}, {"fn": soon, "weight": 1.0}])
    assert not changed.requires_group_rollouts
    assert ((await changed.run({"prompt": "go"}))["reward"], order) == (12.0, ["late", "soon"])


async def test_blocking_handlers_tools_and_users_leave_the_event_loop_alone() -> None:
    threads: dict[str, int] = {}

    @blocking
    def look() -> str:
        """Look around."""
        threads["tool"] = threading.get_ident()
        return "seen"

    @blocking
    def user(state: Any) -> Any:
        threads["user"] = threading.get_ident()
        return None

    @blocking
    def score(task: Any, state: Any) -> float:
        threads["reward"] = threading.get_ident()
        return 2.0

    state = await harness(calling(("look", {})), "done", toolsets=[[look]], rewards=[score], user=user).run({"prompt": "go"})
    assert (state["reward"], contents(state, "tool")) == (2.0, ["seen"])
    assert threads.keys() == {"tool", "user", "reward"}
    assert threading.get_ident() not in threads.values()


async def test_a_harness_says_which_turns_are_kept() -> None:
    class Choosy(vf.Harness):
        async def keep_trajectory_step(self, step: Any, state: vf.State) -> bool:
            return step["completion"][0]["content"] != "answer 2"

    class Numbering(ScriptedClient):
        async def get_response(self, *args: Any, **kwargs: Any) -> Response:
            self.calls += 1
            return Response("", 0, "m", None, AssistantMessage(f"answer {self.calls}"))

    def user(transcript: Any) -> str | None:
        return "more" if len(transcript) < 5 else None

    player = Choosy(client=Numbering([]), model="m", user=user)
    state = await player.run({"prompt": "go"})
    assert [step["completion"][0]["content"] for step in state["trajectory"]] == ["answer 1", "answer 3"]
    assert state["num_model_requests"] == 3


async def test_the_program_of_the_configuration_is_completed_by_that_of_the_code(tmp_path: Path) -> None:
    program = {"command": [sys.executable, "-c", "import os; print(os.environ['A'], os.environ['B'])"], "env": {"A": "1", "B": "2"}}
    player = vf.Harness({"env": {"B": "3"}}, client=ScriptedClient([]), model="m", config={"program": program})
    state = await player.run({"prompt": "go"})
    assert state["completion"] == [{"role": "assistant", "content": "1 3"}]


async def test_the_model_is_reached_over_http_only_while_the_program_runs() -> None:
    async def score(task: Any, state: vf.State) -> float:
        state.get_endpoint_config()
        return 1.0

    with pytest.raises(ConfigurationError, match="only while the program"):
        await harness("x", rewards=[score]).run({"prompt": "go"})
