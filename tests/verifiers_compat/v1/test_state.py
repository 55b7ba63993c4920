"""States protect what the harness writes, and leave their live handles behind; what one lends to another."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf0
import verifiers_compat.v1 as vf
from tests.models import InOrder
from vfgym.errors import ConfigurationError


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


def test_a_state_survives_copies_and_pickling() -> None:
    state = vf.State.for_task({"prompt": "hi"})
    state.stop("solved")
    state["mine"] = [1]
    for other in (copy.deepcopy(state), copy.copy(state), pickle.loads(pickle.dumps(state))):
        assert type(other) is vf.State
        assert other == state
    assert state.finalize() is state
    copy.deepcopy(state)["mine"].append(2)
    assert state["mine"] == [1]
    state["handle"] = object()
    with pytest.raises(TypeError, match="handle"):
        state.finalize()


@pytest.mark.parametrize(
    ("error", "name", "stop"), [(vf.ModelError("x"), "ModelError", "has_error"), (vf.OverlongPromptError("x"), None, "prompt_too_long")]
)
def test_an_error_ends_a_state_and_an_overlong_prompt_truncates_it(error: Any, name: str | None, stop: str) -> None:
    state = vf.State.for_task({})
    state.record_error(error)
    assert (state["error"] and state["error"]["error"], state["stop_condition"], state["is_truncated"]) == (name, stop, name is None)


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


CHILD = {"prompt": [{"role": "user", "content": "help"}]}


async def search(key: str) -> str:
    """Search for a key."""
    return f"value of {key}"


async def test_what_cannot_be_borrowed_says_why() -> None:
    said: list[str] = []

    async def program(state: vf.State) -> None:
        for wanted in ({"borrow": ["model", "sandbox"]}, {"borrow": "client"}, {"tools": "serch"}, {"transcript": "shared"}):
            with pytest.raises(ConfigurationError) as raised:
                state.for_task(CHILD, **wanted)  # type: ignore[arg-type]
            said.append(str(raised.value))

    state = await vf.Harness(program, client=InOrder(), model="m", toolsets=[search]).run({"prompt": "go"})
    sandbox, client, tool, transcript = said
    assert "there is no sandbox: the program of the rollout has none" in sandbox
    assert "only 'model' and 'sandbox' can be borrowed, got 'client'" in client
    assert "Did you mean `search`?" in tool
    assert "'private' or 'append'" in transcript
    with pytest.raises(ConfigurationError, match="not running"):
        state.for_task(CHILD, borrow="model")


async def test_who_borrows_the_model_asks_it_as_the_rollout_does() -> None:
    """By its name, with its sampling arguments (a copy), and with its bound of tokens."""

    async def program(state: vf.State) -> None:
        state.handles.max_seq_len = 7
        lent = state.for_task(CHILD, borrow="model").handles
        own = state.for_task(CHILD).handles
        assert (lent.model, lent.sampling_args, lent.max_seq_len, lent.client is None) == ("m", {"top_p": 0.5}, 7, False)
        assert (own.model, own.sampling_args, own.max_seq_len, own.client) == (None, None, None, None)
        lent.sampling_args["top_p"] = 1.0
        assert state.live("look").sampling_args == {"top_p": 0.5}

    state = await vf.Harness(program, client=InOrder(), model="m", sampling_args={"top_p": 0.5}).run({"prompt": "go"})
    assert state["error"] is None


async def test_a_model_without_a_name_is_that_of_the_harness() -> None:
    asked: list[str] = []
    state = vf.State.for_task({"prompt": "go"})
    state["runtime"]["model"] = ""
    await vf.Harness(lambda state: asked.append(state.get_model()), model="m").run({"prompt": "go"}, state)
    assert asked == ["m"]
