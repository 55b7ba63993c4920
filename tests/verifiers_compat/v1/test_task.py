"""Tasks are immutable JSON."""

from __future__ import annotations

import copy
import json
import pickle
import types
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from vfgym.errors import InvalidMessage


def test_a_frozen_task_has_its_fields_as_messages() -> None:
    task = vf.Task({"prompt": [{"role": "user", "content": "hi", "name": None}]}, answer="42")
    task["more"] = 1
    task |= {"other": 2}
    assert (task.is_frozen, task.freeze() is task, task.freeze() is task, task.is_frozen) == (False, True, True, True)
    assert task == {"prompt": [{"role": "user", "content": "hi"}], "answer": "42", "more": 1, "other": 2}


CHANGES_DICTS = {name: () for name in sorted({*dir(dict)} - {*dir(types.MappingProxyType)}) if name not in ("fromkeys", "__init__")}
CHANGES_DICTS |= {"__setitem__": ("a", 1), "__delitem__": ("a",), "pop": ("a",), "setdefault": ("new", 1), "update": ({"a": 1},)}
CHANGES_DICTS |= {"__ior__": ({"a": 1},)}
CHANGES_LISTS = {name: () for name in sorted({*dir(list)} - {*dir(tuple)}) if name not in ("copy", "__reversed__")}
CHANGES_LISTS |= {"__setitem__": (0, 1), "__delitem__": (0,), "append": (1,), "extend": ([1],), "insert": (0, 1), "remove": ("a",)}
CHANGES_LISTS |= {"__iadd__": (["b"],), "__imul__": (2,)}


@pytest.mark.parametrize(
    ("place", "name", "arguments"),
    [
        *((place, *change) for place in ("task", "info", "inside") for change in CHANGES_DICTS.items()),
        *((place, *change) for place in ("tags", "prompt") for change in CHANGES_LISTS.items()),
    ],
)
def test_nothing_changes_a_frozen_task(place: str, name: str, arguments: tuple[Any, ...]) -> None:
    """No method of dicts and lists does, at any depth: it is refused before anything is changed."""
    row = {"prompt": [{"role": "user", "content": "hi"}], "a": 0, "info": {"a": 0, "tags": ["a"], "inside": [{"a": 0}]}}
    task = vf.Task(row).freeze()
    info = task["info"]
    places = {"task": task, "info": info, "inside": info["inside"][0], "tags": info["tags"], "prompt": task["prompt"]}

    with pytest.raises(TypeError, match="a frozen task cannot be changed"):
        getattr(places[place], name)(*arguments)
    assert json.loads(json.dumps(task)) == row


def test_adding_to_a_list_of_a_frozen_task_adds_nothing() -> None:
    task = vf.Task({"info": {"tags": ["a"]}}).freeze()
    tags = task["info"]["tags"]
    with pytest.raises(TypeError):
        task["info"]["tags"] += ["b"]
    with pytest.raises(TypeError):
        tags *= 2
    assert task["info"]["tags"] == tags == ["a"]


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
        ({"prompt": [{"role": "developer", "content": "x"}]}, ValueError, "system_prompt"),
        ({"prompt": [{"role": "user", "content": "x"}, {"role": "developer", "content": "x"}]}, ValueError, "system_prompt"),
        ({"prompt": [{"role": "nobody", "content": "x"}]}, ValueError, "role"),
        ({"system_prompt": [{"role": "user", "content": "x"}]}, ValueError, "system messages only"),
        ({"prompt": [3]}, InvalidMessage, "prompt"),
        ({"tools": ["a"]}, TypeError, "mapping"),
        ({"tools": {"only": ["a"]}}, ValueError, "show"),
        ({"tools": {"show": [1]}}, ValueError, "a task's tools: 'show' must be a list of names, got \\[1\\]"),
        ({"tools": {}}, ValueError, r"got the keys \(none\)"),
        ({"tools": {"show": [], "hide": []}}, ValueError, "got the keys show, hide"),
        ({"tools": {"hide": {"a": 1}}}, ValueError, "'hide' must be a list of names"),
        ({"max_turns": 3.0}, TypeError, "a task's max_turns must be an integer, got 3.0"),
        ({"runtime": None}, TypeError, "a task has no field 'runtime'"),
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


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_turns": 0}, {"max_turns": 0}),
        ({"max_turns": None, "tools": None, "sandbox": None, "program": None, "toolsets": None}, None),
        ({"prompt": None, "system_prompt": None}, None),
        ({"prompt": []}, {"prompt": []}),
        ({"system_prompt": []}, {"system_prompt": []}),
        ({"tools": {"hide": []}}, {"tools": {"hide": []}}),
        ({"tools": {"hide": ("a", "b")}}, {"tools": {"hide": ["a", "b"]}}),
        ({"program": {}, "toolsets": {}}, {"program": {}, "toolsets": {}}),
        ({"sandbox": {}}, {"sandbox": vf.SandboxConfig().model_dump(mode="json")}),
    ],
)
def test_empty_fields_are_not_absent_ones(fields: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert vf.Task(fields).freeze() == (fields if expected is None else expected)


def test_only_copies_by_pickle_stay_frozen() -> None:
    """A task that is not frozen stays so, too, and what stood in a frozen one is frozen by itself."""
    task = vf.Task({"info": {"tags": ["a"]}})
    assert [pickle.loads(pickle.dumps(task)).is_frozen, copy.copy(task).is_frozen] == [False, False]
    frozen = copy.copy(task).freeze()
    assert [twin.is_frozen for twin in (copy.copy(frozen), copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen)))] == [
        False,
        False,
        True,
    ]
    assert task.is_frozen is False
    info = pickle.loads(pickle.dumps(frozen["info"]))
    for change in (lambda: info.update(a=1), lambda: info["tags"].append("b")):
        with pytest.raises(TypeError, match="a frozen task cannot be changed"):
            change()
    for twin in (copy.copy(frozen["info"]), copy.deepcopy(frozen["info"])):
        twin["a"] = copy.copy(frozen["info"]["tags"])
        twin["a"].append("b")
        assert twin["a"] == ["a", "b"]
