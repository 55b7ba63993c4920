"""The harness: the order in which things happen, what ends a rollout, and what it leaves."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import Failing, InOrder, Mute, calling
from tests.verifiers_compat.v1.playing import ROWS, Counter, contents, counting, get, harness, noting, noting_groups
from vfgym import blocking
from vfgym.errors import ConfigurationError
from vfgym.messages import Response, ResponseMessage
from vfgym.testing import ScriptedClient


def score(task: Any, state: Any) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("error", "stop", "cut", "name"),
    [(vf.ModelError("down"), "has_error", False, "ModelError"), (vf.OverlongPromptError("too long"), "prompt_too_long", True, None)],
)
async def test_a_model_that_fails_ends_the_rollout_which_is_scored_all_the_same(error: Any, stop: str, cut: bool, name: Any) -> None:
    state = await vf.Harness(client=Failing(error), model="m", rewards=[score]).run({"prompt": "go"})
    assert (state["stop_condition"], state["is_completed"], state["is_truncated"]) == (stop, True, cut)
    assert (state["reward"], state["completion"], state["error"] and state["error"]["error"]) == (1.0, [], name)
    assert name is None or "down" in state["error"]["error_chain_repr"]


async def test_what_was_cut_is_truncated_and_a_stop_condition_is_named() -> None:
    cut = Response("r", 0, "m", None, ResponseMessage("x", finish_reason="length"))
    state = await harness(cut).run({"prompt": "go"})
    assert (state["is_truncated"], state["prompt"][-1]["content"], state["completion"]) == (
        True,
        "go",
        [{"role": "assistant", "content": "x"}],
    )
    assert (await harness(stops=[noting([], "enough", True)]).run({"prompt": "go"}))["stop_condition"] == "enough"


@pytest.mark.parametrize("begins_anew", [False, True])
async def test_what_a_program_asked_and_was_told_is_its_prompt_and_completion(begins_anew: bool) -> None:
    """All of the last conversation is its completion, where that is another one; what the program says of it itself is kept."""
    first, told, second = ({"role": role, "content": text} for role, text in (("user", "go"), ("assistant", "one"), ("user", "on")))

    async def program(state: vf.State) -> Any:
        for messages in ([first], [second] if begins_anew else [first, told, second]):
            await state.get_client().chat.completions.create(model="any", messages=messages)
        return {"completion": [told]} if state["task"].get("says") else None

    told_last = {"role": "assistant", "content": "two"}
    state = await vf.Harness(program, client=InOrder("one", "two"), model="m").run({"prompt": "ignored"})
    assert (state["prompt"], state["completion"]) == ([first], [second, told_last] if begins_anew else [told, second, told_last])
    state = await vf.Harness(program, client=InOrder("one", "two"), model="m").run({"prompt": "ignored", "says": True})
    assert state["completion"] == [told]


async def test_a_foreign_exception_goes_through_after_the_cleanup() -> None:
    log: list[str] = []
    with pytest.raises(ZeroDivisionError):
        await vf.Harness(client=Failing(ZeroDivisionError()), model="m", cleanups=[noting(log, "tidy")]).run({"prompt": "go"})
    assert log == ["tidy"]
    with pytest.raises(ConfigurationError, match="client"):
        await vf.Harness().run({"prompt": "go"})


async def test_a_slow_cleanup_finishes_though_the_run_is_cancelled() -> None:
    """Also where the cancellation comes while it runs already; the run has then ended when the cancellation is raised."""
    log: list[str] = []
    is_cleaning = asyncio.Event()

    async def tidy(task: Any, state: Any) -> None:
        is_cleaning.set()
        await asyncio.sleep(0.05)
        log.append("tidy")

    client, then = Mute(), noting(log, "then")
    for awaited in (client.asked, is_cleaning):
        player = vf.Harness(client=client if awaited is client.asked else ScriptedClient(["x"]), model="m", cleanups=[tidy, then])
        run = asyncio.create_task(player.run({"prompt": "go"}))
        is_cleaning.clear()
        await awaited.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert log == ["then", "tidy"] * 2


async def test_everything_happens_in_the_documented_order() -> None:
    log: list[Any] = []

    def sync(task: Any, state: Any) -> None:
        log.append(f"update {len(state['completion'] or [])}")

    group = {"fn": noting_groups(log, "best", 1.0), "weight": 0.5}
    lists: dict[str, Any] = {name: [noting(log, name)] for name in ("stops", "setups", "cleanups")}
    lists |= {"updates": [sync], "metrics": [noting(log, "length", 3)], "rewards": [{"fn": noting(log, "good", 1.0), "weight": 2.0}, group]}
    lists["cleanups"] += [noting_groups(log, "tidy")]
    taskset = vf.Taskset(ROWS[:1], toolsets=[get], **lists)
    client = ScriptedClient([calling(("get", {"key": "a"})), "done"])
    [output] = await vf.Env(taskset).run_group([taskset.dataset_rows()[0]], client, "m")
    before = ["stops", "setups", "stops", "stops", "stops"]
    assert log == [*before, "update 3", "good", "length", "cleanups", ("best", 1), ("tidy", 1)]
    assert (output["stop_condition"], output["reward"]) == ("no_tools", 2.5)
    assert output["metrics"] == {"good": 1.0, "length": 3.0, "best": 1.0}


async def test_rollout_scoring_can_be_left_out() -> None:
    state = vf.State.for_task({"prompt": "go"})
    state["runtime"]["score_rollout"] = False
    state = await harness("x", rewards=[score]).run({"prompt": "go"}, state)
    assert (state["reward"], state["metrics"]) == (0.0, {})


async def test_the_times_of_a_rollout_are_those_of_its_stages() -> None:
    """``scoring_ms`` holds neither the set-up nor the model's turns, ``generation_ms`` no scoring, and ``total_ms`` all of it."""
    spent: dict[str, float] = {}

    def taking(name: str) -> Any:
        async def stage(task: Any, state: Any) -> float:
            started = time.perf_counter()
            await asyncio.sleep(0.02)
            spent[name] = 1e3 * (time.perf_counter() - started)
            return 1.0

        stage.__name__ = name
        return stage

    timing = (await harness("x", setups=[taking("a")], updates=[taking("b")], rewards=[taking("c")]).run({"prompt": "go"}))["timing"]
    slack = 5.0  # milliseconds by which two clocks may differ
    assert (timing["generation_ms"] + slack > spent["a"] + spent["b"], timing["scoring_ms"] + slack > spent["c"]) == (True, True)
    assert timing["generation_ms"] + timing["scoring_ms"] <= timing["total_ms"] + slack


async def test_advantages_come_from_their_own_function_only() -> None:
    def centred(tasks: Any, states: Any) -> list[float]:
        return [state["reward"] - 1.0 for state in states]

    states = [vf.State({"reward": reward, "trajectory": [{"advantage": None}]}) for reward in (1.0, 3.0)]
    await vf.Harness().score_group([vf.Task(), vf.Task()], states)
    assert "advantage" not in states[0]
    player = vf.Harness(advantages=[centred])
    assert (player.provides_advantages, player.requires_group_rollouts) == (True, True)
    await player.score_group([vf.Task(), vf.Task()], states)
    assert [(state["advantage"], state["trajectory"][0]["advantage"]) for state in states] == [(0.0, 0.0), (2.0, 2.0)]


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
            return step["completion"][0]["content"] != "two"

    def user(transcript: Any) -> str | None:
        return "more" if len(transcript) < 5 else None

    state = await Choosy(client=InOrder("one", "two", "three"), model="m", user=user).run({"prompt": "go"})
    assert [step["completion"][0]["content"] for step in state["trajectory"]] == ["one", "three"]
    assert state["num_model_requests"] == 3


@pytest.mark.parametrize("through", ["harness", "env"])
async def test_teardown_handlers_of_all_owners_run_once_and_global_objects_are_closed(through: str) -> None:
    log: list[str] = []

    class Tasks(vf.Taskset):
        @vf.teardown(priority=1)
        async def leave_tasks(self) -> None:
            log.append("taskset")

    class Player(vf.Harness):
        @vf.teardown
        def leave_player(self) -> None:
            log.append("harness")

    def leave_tools() -> None:
        log.append("toolset")

    client = ScriptedClient([calling(("count", {})), "done"])
    env = vf.Env(Tasks(ROWS[:1], toolsets=[counting("global", teardowns=[leave_tools])]), Player(client=client, model="m"))
    await env.evaluate(client, "m", rollouts_per_example=2)
    assert [counter.is_closed for counter in Counter.made] == [False]
    for _ in range(2):
        await (env.harness.teardown() if through == "harness" else env.aclose())
    assert log == ["taskset", "harness", "toolset"]
    assert [counter.is_closed for counter in Counter.made] == [True]


async def test_a_program_is_stopped_by_what_the_state_says_before_and_after_it() -> None:
    """A state that is done, and a condition that holds when the program is over."""

    def does(state: vf.State) -> None:
        state["turned"] = True

    def turned(task: Any, state: vf.State) -> bool:
        return bool(state.get("turned"))

    def ready(task: Any, state: vf.State) -> None:
        state["done"] = True

    for given, name, is_played in (
        ({}, "program_completed", True),
        ({"stops": [turned]}, "turned", True),
        ({"setups": [ready], "stops": [turned]}, "state_done", True),
    ):
        state = await vf.Harness(does, **given).run({"prompt": "go"})
        assert (state["stop_condition"], state.get("turned", False)) == (name, is_played)
    state = vf.State.for_task({"prompt": "go"})
    state["done"] = True
    state = await vf.Harness(does).run({"prompt": "go"}, state)
    assert (state["stop_condition"], "turned" in state) == ("state_done", False)


async def test_a_rollout_without_a_group_is_cleaned_up_as_a_group_of_one() -> None:
    seen: list[Any] = []

    @vf.cleanup(stage="group")
    def tidy(tasks: Any, states: Any) -> None:
        seen.append(([task["prompt"][0]["content"] for task in tasks], [state["is_completed"] for state in states]))

    await harness("x", cleanups=[tidy]).run({"prompt": "go"})
    assert seen == [(["go"], [True])]
