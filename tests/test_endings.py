"""How rollouts end: the same for one play, whoever plays it and wherever its ending is read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from vfgym import MultiTurnEnv, Rubric
from vfgym.clients import Client
from vfgym.endings import CUT_STOPS, TRUNCATING_STOPS, Ending, ending_of, failure_cause
from vfgym.errors import (
    AgentError,
    Error,
    InfraError,
    InvalidModelResponseError,
    ModelError,
    OverlongPromptError,
    SandboxError,
    ToolParseError,
    WorkerDied,
)
from vfgym.messages import AssistantMessage, Message, Response, UserMessage
from vfgym.results import GenerateOutputs, compare, load_results, processed_outputs
from vfgym.results.counting import counted_reward
from vfgym.state import State
from vfgym.training import samples
from vfgym.view import report_run

FAILURE_REWARD = -1.0
WAYS = {
    "done": Ending.TERMINATED,
    "on": Ending.TRUNCATED,
    "too long": Ending.CUT,
    "refuse": Ending.POLICY_FAILED,
    "trip": Ending.ENVIRONMENT_FAILED,
    "misjudge": Ending.ENVIRONMENT_FAILED,
    "outage": Ending.INFRASTRUCTURE_FAILED,
    "no judge": Ending.INFRASTRUCTURE_FAILED,
}
"""What a task asks to be answered with, and how an episode ends that is answered so: one of each kind, and the second ways to it."""
EACH = pytest.mark.parametrize(("way", "ending"), WAYS.items(), ids=[f"{way}: {ending}" for way, ending in WAYS.items()])
COUNTS_WITH = {
    Ending.TERMINATED: 0.5,
    Ending.TRUNCATED: 0.5,
    Ending.CUT: FAILURE_REWARD,
    Ending.POLICY_FAILED: FAILURE_REWARD,
    Ending.ENVIRONMENT_FAILED: FAILURE_REWARD,
    Ending.INFRASTRUCTURE_FAILED: None,
}


def half(state: State) -> float:
    said = state["answer"]
    if said == "misjudge":
        raise ValueError("a bug in the reward function")
    if said == "no judge":
        raise InfraError("the judge's host is gone")
    return 0.5


class Walk(MultiTurnEnv):
    """Ends as its task says, if it is answered with what that asks for."""

    def env_response(self, messages: list[Message], state: State) -> list[Message]:
        match messages[-1].content:
            case "done" | "misjudge" | "no judge":
                state["final_env_response"] = [UserMessage("well done")]
            case "trip":
                raise ValueError("a bug in the hook")
            case "outage":
                raise InfraError("the host of the sandbox is gone")
        return [UserMessage("go on")]


def make(kind: type[Any] = Walk) -> Any:
    rows = [{"question": way, "answer": way} for way in WAYS]
    return kind(dataset=rows, rubric=(vf.Rubric if kind is not Walk else Rubric)(half), max_turns=2, failure_reward=FAILURE_REWARD)


def error_of(way: str) -> Exception | None:
    """Return what whoever answers raises instead of an answer."""
    return {"too long": OverlongPromptError("more than the context"), "refuse": InvalidModelResponseError("no answer")}.get(way)


def agent(observation: list[Message], info: dict[str, Any]) -> str:
    way = str(observation[0].content)
    error = error_of(way)
    if error is not None:
        raise error
    return way


class Answers(Client):
    async def get_response(
        self, prompt: Sequence[Message], model: str, sampling_args: Any = None, tools: Any = None, **kwargs: Any
    ) -> Response:
        return Response("r", 0, model, None, AssistantMessage(agent(list(prompt), {})))


def evaluated(**options: Any) -> GenerateOutputs:
    return vfgym.evaluate(make(), agent, progress=False, **options)


def row_of(outputs: Any, way: str) -> Any:
    return next(row for row in outputs["outputs"] if row["answer"] == way)


# The table: each ending in each place that tells it


@EACH
def test_step(way: str, ending: Ending) -> None:
    env = make()
    observation, info = env.reset(options={"example_id": list(WAYS).index(way)})
    assert (info["ending"], env.state["ending"]) == (None, None)
    is_over = False
    while not is_over:
        try:
            answer = agent(observation, info)
        except Error as error:
            observation, _, terminated, truncated, info = env.fail(error)
        else:
            try:
                observation, _, terminated, truncated, info = env.step(answer)
            except ValueError:  # a hook's own exception is raised where it is stepped; the next reset begins anew
                assert way == "trip"
                return
        is_over = terminated or truncated
    assert (info["ending"], env.state["ending"], env.state.ending) == (str(ending), str(ending), ending)
    assert (terminated, truncated) == ending.flags
    assert env.state.failure_reward == (None if ending.counts_with_return else FAILURE_REWARD)


@EACH
def test_evaluate(way: str, ending: Ending) -> None:
    row = row_of(evaluated(), way)
    assert (row["ending"], row["failed"], row["counted_reward"]) == (str(ending), ending.failed, COUNTS_WITH[ending])
    assert row.get("failure_reward", "none") == ("none" if ending.counts_with_return else FAILURE_REWARD)


@EACH
def test_generate(way: str, ending: Ending) -> None:

    class WalkOfTheOtherApi(Walk, vf.MultiTurnEnv):
        pass

    outputs = make(WalkOfTheOtherApi).evaluate_sync(Answers(), "m")
    row = row_of(outputs, way)
    assert (row["ending"], row["failed"]) == (str(ending), ending.failed)
    assert "counted_reward" not in row
    assert outputs["metadata"]["mean_of"] == "reward"


@EACH
def test_rollout(way: str, ending: Ending) -> None:
    async def play() -> Any:
        groups = vfgym.rollout(make(), agent, example_ids=[list(WAYS).index(way)], group_size=2)
        return [group async for group in groups]

    (group,) = asyncio.run(play())
    assert [state["ending"] for state in group.states] == [str(ending)] * 2
    assert (group.terminated, group.truncated) == ([ending.kind == "terminated"] * 2, [ending.kind == "truncated"] * 2)
    assert (group.cut, group.failed, group.cause) == ([ending.kind == "cut"] * 2, [ending.failed] * 2, [ending.cause] * 2)


@EACH
def test_samples(way: str, ending: Ending) -> None:
    """What infrastructure or the environment broke teaches nothing, and is in no baseline."""

    async def play() -> list[State]:
        groups = vfgym.rollout(make(), agent, example_ids=[list(WAYS).index(way), 0], group_size=1)
        return [state async for group in groups for state in group.states]

    states = asyncio.run(play())
    for state in states:
        state["group"] = "one"
    found = samples(states)
    of_way = [sample for sample in found if states[sample.rollout]["answer"] == way]
    of_done = next(sample for sample in found if states[sample.rollout]["answer"] == "done")
    if ending.cause in ("environment", "infrastructure"):
        assert (of_way, of_done.advantage) == ([], 0.0)
    elif states[[state["answer"] for state in states].index(way)]["trajectory"]:
        (sample, *_) = of_way
        assert (sample.terminated, sample.truncated, sample.cut) == tuple(
            ending.kind == kind for kind in ("terminated", "truncated", "cut")
        )
        assert (sample.failed, sample.cause) == (ending.failed, ending.cause)


@EACH
def test_score(way: str, ending: Ending) -> None:
    """Scored again with the same rubric, a run is what it was; how it ended is kept but for what reward functions decide."""
    run = evaluated()
    again = vfgym.score(run, Rubric(half))
    assert (row_of(again, way)["ending"], row_of(again, way)["counted_reward"]) == (str(ending), COUNTS_WITH[ending])
    kindly = row_of(vfgym.score(run, Rubric(lambda: 0.25)), way)
    is_of_the_rubric = way in ("misjudge", "no judge")
    assert kindly["ending"] == ("terminated" if is_of_the_rubric else str(ending))


def test_metadata_and_page_tell_every_ending(tmp_path: Path) -> None:
    run = evaluated(results_path=tmp_path / "run")
    metadata = run["metadata"]
    assert metadata["endings"] == {
        "terminated": 1,
        "truncated": 1,
        "cut": 1,
        "policy_failed": 1,
        "environment_failed": 2,
        "infrastructure_failed": 2,
    }
    assert (metadata["num_failed"], metadata["num_cut"], metadata["num_missing"]) == (5, 1, 2)
    assert metadata["avg_reward"] == pytest.approx((0.5 + 0.5 - 4.0) / 6)
    assert metadata["avg_reward_missing_failed"] == pytest.approx((0.5 + 0.5 - 6.0) / 8)
    assert load_results(tmp_path / "run")["metadata"]["endings"] == metadata["endings"]
    told = " ".join(report_run(run).endings)
    assert all(ending in told for ending in WAYS.values())


# Causes


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        *[(InfraError("x"), "infrastructure"), (SandboxError("x"), "infrastructure"), (WorkerDied("x"), "infrastructure")],
        *[(AgentError("x"), "policy"), (InvalidModelResponseError("x"), "policy"), (ToolParseError("x"), "policy")],
        (ModelError("x"), "environment"),
        (ValueError("x"), "environment"),
    ],
)
def test_errors_know_by_whose_doing_they_are(error: Exception, cause: Any) -> None:
    assert (failure_cause(error, otherwise="environment"), Ending.of_cause(cause).cause) == (cause, cause)
    assert failure_cause(error, otherwise="policy") == ("policy" if cause == "environment" else cause)


def test_missing_rollouts_are_played_again_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.runs.step_player.seconds_before_retry", lambda attempt: 0.0)
    outages = iter([True, True, False])

    class Flaky(Walk):
        def setup_state(self, state: State) -> Any:
            if next(outages, False):
                raise InfraError("no sandbox")
            return super().setup_state(state)

    run = vfgym.evaluate(make(Flaky), lambda observation, info: "done", num_examples=1, max_retries=2, progress=False)
    assert [row["ending"] for row in run["outputs"]] == ["terminated"]
    outages = iter([True] * 9)
    run = vfgym.evaluate(make(Flaky), lambda observation, info: "done", num_examples=1, max_retries=2, progress=False)
    assert [(row["ending"], row["counted_reward"]) for row in run["outputs"]] == [("infrastructure_failed", None)]
    assert (run["metadata"]["avg_reward"], run["metadata"]["avg_reward_missing_failed"]) == (None, FAILURE_REWARD)


# The vocabulary


def test_every_ending_has_a_kind_flags_and_a_place_in_counting() -> None:
    for ending in Ending:
        assert ending.kind in ("terminated", "truncated", "cut", "failed")
        assert ending.failed == (ending.cause is not None) == (ending.kind == "failed")
        assert (sum(ending.flags), ending.counts_with_return) == (1, ending in ("terminated", "truncated"))
        assert counted_reward(ending, 0.5, FAILURE_REWARD) == COUNTS_WITH[ending]
        assert counted_reward(ending, -3.0, FAILURE_REWARD) == (None if ending.is_missing else -3.0), "the lower of both"
        assert counted_reward(ending, 0.0, None) == (0.0 if ending.counts_with_return else None)
        assert counted_reward(ending, 0.5, 0.0) == {0.5: 0.5, -1.0: 0.0, None: None}[COUNTS_WITH[ending]], "0 is a number"


def test_rows_of_older_versions_tell_as_much_as_they_know() -> None:
    assert ending_of({"failed": True, "error": None}) is Ending.POLICY_FAILED
    assert ending_of({"failed": False, "error": None, "stop_condition": "game_over"}) is Ending.TERMINATED
    assert ending_of({"error": {"error": "X"}}) is Ending.POLICY_FAILED
    assert {ending_of({"error": None, "stop_condition": stop}) for stop in TRUNCATING_STOPS} == {Ending.TRUNCATED}
    assert {ending_of({"error": None, "stop_condition": stop}) for stop in CUT_STOPS} == {Ending.CUT}


@pytest.mark.parametrize(
    ("row", "ending"),
    [
        *[({"stop_condition": name}, "truncated") for name in ("max_turns_reached", "game_truncated", "truncated")],
        *[({"stop_condition": name}, "cut") for name in ("limit_reached", "timeout_reached", "prompt_too_long", "quit")],
        ({"stop_condition": "max_total_completion_tokens_reached"}, "cut"),
        *[({"stop_condition": name}, "terminated") for name in (None, "", "game_over")],
        ({}, "terminated"),
        ({"stop_condition": "too_many_invalid_moves"}, "policy_failed"),
        ({"stop_condition": "too_many_invalid_moves", "failed": None}, "policy_failed"),
        ({"stop_condition": "too_many_invalid_moves", "failed": False}, "terminated"),
        ({"stop_condition": "quit", "failed": False, "error": "X"}, "cut"),
        ({"stop_condition": "quit", "error": "X"}, "policy_failed"),
        *[({"ending": ending.value, "failed": True, "error": "X", "stop_condition": "quit"}, ending.value) for ending in Ending],
        ({"ending": None, "stop_condition": "quit"}, "cut"),
    ],
    ids=str,
)
def test_how_a_row_ended(row: dict[str, Any], ending: str) -> None:
    assert ending_of(row) is Ending(ending)


@pytest.mark.parametrize(
    ("ending", "flags", "cause", "is_missing"),
    [
        *[("terminated", (True, False), None, False), ("truncated", (False, True), None, False), ("cut", (False, True), None, False)],
        *[("policy_failed", (True, False), "policy", False), ("environment_failed", (True, False), "environment", False)],
        ("infrastructure_failed", (True, False), "infrastructure", True),
    ],
)
def test_what_an_ending_says(ending: str, flags: tuple[bool, bool], cause: str | None, is_missing: bool) -> None:
    found = Ending(ending)
    assert (found.flags, found.cause, found.is_missing, found == ending) == (flags, cause, is_missing, True)
    assert found.kind == ("failed" if cause else ending)


@EACH
def test_processed_outputs_keep_no_tokens_of_what_others_broke(way: str, ending: Ending) -> None:
    rows = [row_of(evaluated(state_columns=["trajectory"]), way)]
    for row in rows:
        for step in row["trajectory"]:
            step["tokens"] = {
                **{"prompt_ids": [1], "prompt_mask": [0], "completion_ids": [2], "completion_mask": [1], "completion_logprobs": [-1.0]},
                **{"overlong_prompt": False, "is_truncated": False, "routed_experts": None},
            }
    found = processed_outputs(rows)
    is_kept = bool(rows[0]["trajectory"]) and ending.cause not in ("environment", "infrastructure")
    assert bool(found["completion_ids"]) == is_kept


def test_compare_pairs_what_is_valid_in_both() -> None:
    run = evaluated()
    pair = compare(run, run)["pairs"][0]
    assert (pair["rollouts"], pair["difference"]) == (sum(not ending.is_missing for ending in WAYS.values()), 0.0)
