"""The harness: the order in which things happen, what ends a rollout, and what it leaves."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import Failing, Mute, calling
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


def test_taskset_and_harness_cannot_both_have_a_user() -> None:
    with pytest.raises(ConfigurationError, match="user"):
        vf.Env(vf.Taskset([{"question": "?"}], user=lambda state: None), vf.Harness(user=lambda state: None))


class Shared:
    made: list[Shared] = []

    def __init__(self) -> None:
        self.calls, self.is_closed = 0, False
        Shared.made.append(self)

    def close(self) -> None:
        self.is_closed = True


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

    def use(shared: Shared) -> None:
        """Use it."""

    Shared.made.clear()
    options: dict[str, Any] = {"bindings": {"use.shared": "objects.shared"}, "objects": {"shared": Shared}, "scope": "global"}
    tools = vf.Toolset([use], **options, teardowns=[leave_tools])
    client = ScriptedClient([calling(("use", {})), "done"])
    env = vf.Env(Tasks(ROWS, toolsets=[tools]), Player(client=client, model="m"))
    await env.evaluate(client, "m", rollouts_per_example=2)
    assert [shared.is_closed for shared in Shared.made] == [False]
    for _ in range(2):
        await (env.harness.teardown() if through == "harness" else env.aclose())
    assert log == ["taskset", "harness", "toolset"]
    assert [shared.is_closed for shared in Shared.made] == [True]


def score(task: Any, state: Any) -> float:
    return 1.0


async def test_code_wins_over_configuration_and_lists_are_joined() -> None:
    def other(task: Any, state: Any) -> float:
        return 2.0

    config = {"model": "a", "max_turns": 3, "rewards": [score], "sampling_args": {"temperature": 0.5, "top_p": 1.0}}
    player = vf.Harness(client=ScriptedClient(["x"]), model="b", rewards=[other], sampling_args={"temperature": 1.0}, config=config)
    assert (player.model, player.max_turns, player.sampling_args) == ("b", 3, {"temperature": 1.0, "top_p": 1.0})
    state = await player.run({"prompt": "?"})
    assert (state["reward"], state["metrics"]) == (3.0, {"other": 2.0, "score": 1.0})


ROWS = [{"question": "2 + 2?", "answer": "4"}]
