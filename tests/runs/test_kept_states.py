"""The state of a kept episode: what its row tells can be read, and what was lost is never taken for what never was."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest

from vfgym import SingleTurnEnv, evaluate
from vfgym.errors import ConfigurationError, Error, InfraError
from vfgym.results import GenerateOutputs
from vfgym.runs.kept_states import STATE_OF_TURN, KeptState, NotKept, kept_state


@functools.cache
def results() -> GenerateOutputs:
    env = SingleTurnEnv([{"question": "2 + 2?", "answer": "4", "info": {"level": 0}}], system_prompt="Add.")
    return evaluate(env, lambda observation, info: "4", progress=False, state_columns=["rng"])


def kept(**changes: Any) -> KeptState:
    row = {**copy.deepcopy(dict(results()["outputs"][0])), **changes}
    return kept_state(
        row, {"model": "m", "sampling_args": {"temperature": 0.0}, "state_columns": ["zero", "none", "text"]}, {"num_turns": 1.0}
    )


LOST_TASK = {"fingerprint": "of another"}


def test_a_row_tells_what_the_episode_had_before_it_was_scored() -> None:
    state = kept(zero=0, none=None, text="<not kept: a socket>", num_input_tokens=3, token_usage={"input_tokens": 3, "output_tokens": 0})
    assert (state["answer"], state["info"], state["task"]["example_id"]) == ("4", {"level": 0}, 0)
    assert (state["model"], state["sampling_args"], state["client"]) == ("m", {"temperature": 0.0}, None)
    assert (state["reward"], state["metrics"], state["error"], state["is_completed"]) == (None, None, None, True)
    assert state["completion"][0]["content"] == "4"
    assert state["trajectory"][0]["completion"][0]["content"] == "4"
    assert dict(state["usage"]) == {"input_tokens": 3.0, "output_tokens": 0.0}
    assert state["zero"] == 0
    assert (state.kept_metrics, state.has_whole_task, state.had_advantages) == ({"num_turns": 1.0}, True, False)
    assert state["timing"].generation.end == results()["outputs"][0]["timing"]["generation"]["end"]
    state.check_nothing_lost()


@pytest.mark.parametrize(
    "name", ["judge_response", "judge_model", "metrics_errors", "cleanup_errors", "advantage", "timed_out", "prompt_too_long"]
)
def test_what_no_episode_has_before_it_is_scored_is_missing_as_ever(name: str) -> None:
    state = kept()
    assert state.get(name, 7) == 7
    assert name not in state
    with pytest.raises(KeyError):
        state[name]
    state.check_nothing_lost()


@pytest.mark.parametrize(
    ("asks", "what"),
    [
        (lambda state: state["none"], "state['none']"),
        (lambda state: state["text"], "state['text']"),
        (lambda state: state.get("secret"), "state['secret']"),
        (lambda state: "secret" in state, "state['secret']"),
        (lambda state: state.pop("secret", None), "state['secret']"),
        (lambda state: state.setdefault("secret", 1) if "secret" in state else None, "state['secret']"),
        (lambda state: list(state), "all of the state"),
        (lambda state: dict(state.items()), "all of the state"),
        (lambda state: len(state), "all of the state"),
        (lambda state: state.copy(), "all of the state"),
        (lambda state: state["trajectory"][0]["response"], "step['response']"),
        (lambda state: state["trajectory"][0].get("reward", 0), "step['reward']"),
        (lambda state: state["trajectory"][0]["extras"]["move"], """step["extras"]['move']"""),
        (lambda state: state["trajectory"][0]["extras"].items(), 'all of step["extras"]'),
    ],
)
def test_what_is_in_no_row_cannot_be_read(asks: Callable[[Any], object], what: str) -> None:
    state = kept(text="<not kept: a socket>", none=None)
    with pytest.raises(NotKept) as raised:
        asks(state)
    assert str(raised.value) == what
    with pytest.raises(NotKept) as again:  # also where the function let it pass
        state.check_nothing_lost()
    assert str(again.value) == what


@pytest.mark.parametrize(
    ("names", "of_whole", "of_part"),
    [
        ({"state", "completion", "prompt", "step"}, None, None),
        ({"answer", "answers", "info", "infos", "states", "prompts", "completions"}, None, None),
        ({"column"}, None, "`column` of the task"),
        ({"task"}, None, "`task` of the task"),
        ({"tasks"}, None, "`tasks` of the task"),
        ({"**"}, None, "all columns of the task"),
        ({STATE_OF_TURN}, "the state of each turn", "the state of each turn"),
    ],
)
def test_functions_may_ask_for_what_is_known(names: set[str], of_whole: str | None, of_part: str | None) -> None:
    for state, what in ((kept(), of_whole), (kept(**LOST_TASK), of_part)):
        if what is None:
            state.check_has(names)
        else:
            with pytest.raises(NotKept) as raised:
                state.check_has(names)
            assert str(raised.value) == what


def test_what_a_row_does_not_hold_is_not_made_up() -> None:
    state = kept(**LOST_TASK)
    assert not state.has_whole_task
    assert (state["answer"], state["input"]["answer"]) == ("4", "4")
    for asks in (lambda: state["input"]["column"], lambda: state["input"].get("column"), lambda: "column" in state["input"]):
        with pytest.raises(NotKept, match="column"):
            asks()
    with pytest.raises(NotKept):
        kept(metrics={"num_turns": 2.0})["trajectory"]
    assert kept(metrics={"num_turns": 0.0}, completion=[])["trajectory"] == []
    kept()["info"]["level"] = 9
    assert kept()["info"] == {"level": 0}
    with pytest.raises(ConfigurationError, match="rollout 0 of example 0 cannot be scored again"):
        kept(completion=[{"role": "nobody"}])


@pytest.mark.parametrize(
    "task",
    [
        {"question": "2 + 2?", "answer": "4"},
        {"question": "2 + 2?"},
        {"question": "2 + 2?", "answer": ""},
        {"prompt": "2 + 2?"},
        {"prompt": "?", "answer": ""},
    ],
)
def test_the_task_of_a_row_is_whole_with_or_without_question_and_answer(task: dict[str, Any]) -> None:
    if isinstance(task.get("prompt"), str):
        task = {**task, "prompt": [{"role": "user", "content": task["prompt"]}]}
    played = evaluate(SingleTurnEnv([task]), lambda observation, info: "4", progress=False)
    state = kept_state(played["outputs"][0], played["metadata"], {})
    assert state.has_whole_task
    assert (state["task"]["example_id"], state["task"].get("answer", "")) == (0, task.get("answer", ""))


def test_turns_that_were_kept_are_as_scoring_finds_them_and_the_row_stays() -> None:
    answer = {"role": "assistant", "content": "4"}
    extras = {"reward": 1.0, "move": 2}
    steps: list[Any] = [
        {"prompt": [], "completion": [answer], "response": "odd", "reward": 0.5, "advantage": None, "extras": extras},
        {"prompt": [], "completion": [answer], "response": {"who": "knows"}, "reward": 0.0, "advantage": 0.0, "extras": {}},
    ]
    state = kept(trajectory=steps, reward=0.5)
    assert state.had_advantages
    assert [(step["reward"], step["advantage"], step["response"]) for step in state["trajectory"]] == [
        (None, None, "odd"),
        (0.0, None, {"who": "knows"}),
    ]
    assert [step["extras"] for step in state["trajectory"]] == [{"move": 2}, {}]
    state["trajectory"][0]["extras"]["move"] = 9
    assert extras == {"reward": 1.0, "move": 2}
    steps[1]["advantage"] = None
    without = kept(trajectory=steps, reward=0.5)
    assert not without.had_advantages
    assert [step["reward"] for step in without["trajectory"]] == [0.5, 0.0]


def test_what_is_known_is_read_in_every_way_and_tools_and_times_are_among_it() -> None:
    spans = {"spans": [{"start": 1.0, "end": 2.0}, {"start": 4.0, "end": 7.0}]}
    timing = {"start_time": 3.0, "setup": {"start": 0.5, "end": 0.75}, "generation": {"start": 1.0, "end": 9.0}, "model": spans, "env": {}}
    tool = {"name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}}
    state = kept(zero=0, timing=timing, tool_defs=[tool], is_truncated=True, ending="cut", **LOST_TASK)
    assert (state.get("zero", 7), "zero" in state, state.setdefault("zero", 7), state.pop("zero")) == (0, True, 0, 0)
    step = state["trajectory"][0]
    assert (step.get("completion"), step.setdefault("completion", 1), "completion" in step) == (step["completion"],) * 2 + (True,)
    assert step.pop("completion")[0]["content"] == "4"
    assert [tool.name for tool in state["tool_defs"]] == ["add"]
    assert (state["is_truncated"], state["ending"]) == (True, "cut")
    found = state["timing"]
    assert (found.start_time, found.setup.start, found.setup.end, found.generation.start, found.generation.end) == (
        3.0,
        0.5,
        0.75,
        1.0,
        9.0,
    )
    assert [(span.start, span.end) for span in found.model.spans] == [(1.0, 2.0), (4.0, 7.0)]
    assert [*found.env.spans] == []
    assert kept(timing=None)["timing"].start_time == 0.0
    state.check_nothing_lost()


@pytest.mark.parametrize(
    ("named", "kind"), [("InfraError", InfraError), ("ValueError", Error), ("did_you_mean", Error), ("annotations", Error)]
)
def test_an_error_is_of_its_class_where_that_is_the_librarys(named: str, kind: type[Error]) -> None:
    assert type(kept(error={"error": named, "error_chain_repr": "no disk"})["error"]) is kind


@pytest.mark.parametrize(("stop", "item"), [("prompt_too_long", "prompt_too_long"), ("timeout_reached", "timed_out")])
def test_the_stop_condition_tells_what_ended_it(stop: str, item: str) -> None:
    assert kept(stop_condition=stop)[item] is True
    assert kept(stop_condition=stop)["final_env_response"] is None
    with pytest.raises(NotKept):
        kept(stop_condition="has_final_env_response")["final_env_response"]
