"""Tasks are immutable JSON; states protect what the harness writes, and leave their live handles behind."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf0
import verifiers_compat.v1 as vf
from vfgym.errors import ConfigurationError, InvalidMessage

# Tasks


def test_a_frozen_task_has_messages_and_cannot_be_changed() -> None:
    row = {"prompt": [{"role": "user", "content": "hi", "name": None}], "info": {"tags": ["a"]}}
    task = vf.Task(row, answer="42")
    task["more"] = 1
    assert task.freeze() is task
    assert task["prompt"] == [{"role": "user", "content": "hi"}]
    changes: list[Callable[[], Any]] = [
        lambda: task.__setitem__("answer", "43"),
        lambda: task.pop("answer"),
        lambda: task.update(answer="43"),
        lambda: task.setdefault("new", 1),
        lambda: task.clear(),
        lambda: task.__ior__({"a": 1}),
        lambda: task["info"].update(tags=[]),
        lambda: task["info"]["tags"].append("b"),
        lambda: task["prompt"][0].__setitem__("content", "ho"),
    ]
    for change in changes:
        with pytest.raises(TypeError):
            change()
    assert json.loads(json.dumps(task))["info"] == {"tags": ["a"]}


def test_a_task_is_a_copy_and_its_copies_can_be_changed() -> None:
    row = {"info": {"tags": ["a"]}}
    task = vf.Task(row).freeze()
    row["info"]["tags"].append("b")
    assert task["info"]["tags"] == ["a"]
    for other in (copy.deepcopy(task), copy.copy(task)):
        other["info"]["tags"].append("c")
        assert type(other["info"]) is dict
        assert other["info"]["tags"] == ["a", "c"]
    assert pickle.loads(pickle.dumps(task)) == task
    assert pickle.loads(pickle.dumps(task)).is_frozen


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"prompt": [{"role": "system", "content": "x"}]}, ValueError, "system_prompt"),
        ({"prompt": [{"role": "nobody", "content": "x"}]}, ValueError, "role"),
        ({"system_prompt": [{"role": "user", "content": "x"}]}, ValueError, "system messages only"),
        ({"tools": ["a"]}, TypeError, "mapping"),
        ({"tools": {"only": ["a"]}}, ValueError, "show"),
        ({"tools": {"show": [1]}}, ValueError, "names"),
        ({"toolsets": ["a"]}, TypeError, "mapping"),
        ({"program": "x"}, TypeError, "mapping"),
        ({"sandbox": {"cpu": 1}}, ValueError, "cpu"),
        ({"max_turns": True}, TypeError, "integer"),
        ({"max_turns": "3"}, TypeError, "integer"),
        ({"runtime": {}}, TypeError, "state"),
        ({"info": {"a": object()}}, TypeError, "info"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(fields: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        vf.Task(fields).freeze()


def test_fields_of_a_task_are_normalised() -> None:
    task = vf.Task(prompt="hi", system_prompt="be kind", sandbox={"cpu_cores": 2}, tools={"show": "a"}).freeze()
    assert task["prompt"] == [{"role": "user", "content": "hi"}]
    assert task["system_prompt"] == [{"role": "system", "content": "be kind"}]
    assert (task["sandbox"]["cpu_cores"], task["sandbox"]["image"]) == (2, "python:3.11-slim")
    assert task["tools"] == {"show": ["a"]}


# States


def test_a_state_starts_from_its_task_without_the_answer() -> None:
    task = vf.Task(prompt="hi", answer="42", info={"a": 1}, example_id=3).freeze()
    state = vf.State.for_task(task)
    assert isinstance(state, vf0.State)
    assert state["task"] == task
    assert (state["prompt"], state["info"], state["example_id"]) == (task["prompt"], {"a": 1}, 3)
    assert (state["trajectory"], state["metrics"], state["reward"], state["completion"]) == ([], {}, 0.0, None)
    assert (state["is_completed"], state["stop_condition"], state["is_truncated"], state["error"]) == (False, None, False, None)
    assert "answer" not in state
    with pytest.raises(KeyError, match="task"):
        state["answer"]
    state["info"]["a"] = 2
    assert task["info"]["a"] == 1


@pytest.mark.parametrize("key", ["is_completed", "stop_condition", "is_truncated", "error"])
def test_protected_items_cannot_be_written(key: str) -> None:
    state = vf.State.for_task({})
    writes: list[Callable[[], Any]] = [
        lambda: state.__setitem__(key, True),
        lambda: state.__delitem__(key),
        lambda: state.update({"fine": 1, key: True}),
        lambda: state.pop(key),
        lambda: state.setdefault(key, True),
        lambda: state.__ior__({key: True}),
        lambda: vf.State({key: True}),
        lambda: state.popitem(),
        lambda: state.clear(),
    ]
    for write in writes:
        with pytest.raises(RuntimeError):
            write()
    assert "fine" not in state


def test_items_of_ones_own_are_written_and_removed() -> None:
    state = vf.State.for_task({})
    state.update({"a": 1}, b=2)
    assert (state.setdefault("a", 9), state.setdefault("c", 3), state.pop("b"), state.pop("b", None)) == (1, 3, 2, None)
    del state["a"]
    assert ("a" in state, state.get("a", "none"), state["c"]) == (False, "none", 3)


def test_stop_completes_a_state() -> None:
    state = vf.State.for_task({})
    state.stop()
    assert (state["is_completed"], state["stop_condition"], state["done"]) == (True, "state_done", True)
    state.stop("solved")
    assert state["stop_condition"] == "solved"


def test_a_state_survives_copies_and_pickling() -> None:
    state = vf.State.for_task({"prompt": "hi"})
    state.stop("solved")
    state["mine"] = [1]
    for other in (copy.deepcopy(state), copy.copy(state), pickle.loads(pickle.dumps(state))):
        assert type(other) is vf.State
        assert other == state
    copy.deepcopy(state)["mine"].append(2)
    assert state["mine"] == [1]


def test_finalize_wants_json() -> None:
    state = vf.State.for_task({})
    assert state.finalize() is state
    state["handle"] = object()
    with pytest.raises(TypeError, match="handle"):
        state.finalize()


def test_what_needs_a_running_rollout_says_so() -> None:
    state = vf.State.for_task({})
    calls: list[Callable[[], Any]] = [
        state.get_tools,
        state.get_client,
        state.get_model,
        state.get_endpoint_config,
        lambda: state.for_task({}, borrow="model"),
        lambda: vf.State.for_task({}, borrow="model"),
        lambda: vf.State.for_task({}, tools="bash"),
        lambda: vf.State.for_task({}, transcript="append"),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="rollout"):
            call()
    with pytest.raises(ConfigurationError, match="borrowed"):
        vf.State.for_task({}, borrow="money")
    assert state.get_max_turns(7) == 7


def test_a_message_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidMessage):
        vf.Task(prompt=[3]).freeze()
