"""The state of an episode and its parts: forwarded fields, prompts that share storage, timing, token counts, token data."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym import AssistantMessage, State, UserMessage
from vfgym.messages import ResponseTokens
from vfgym.state import MessagesView, RolloutTiming, TimeSpan, TimeSpans, UsageTracker, step_tokens

DUPLICATES = pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))], ids=["deepcopy", "pickle"]
)
FIELDS = ["prompt", "answer", "info", "example_id"]


def example() -> State:
    return State(input={"prompt": [UserMessage("q")], "answer": "4", "info": {"level": 1}, "example_id": 3}, reward=None)


# Forwarded fields


@pytest.mark.parametrize("field", FIELDS)
def test_the_fields_of_the_input_are_read_from_it(field: str) -> None:
    """`in`, iteration and dict() look at the state's own keys only."""
    state = example()
    assert state[field] == state.get(field) == state.setdefault(field, "default") == state["input"][field]
    assert field not in state
    assert field not in list(state)
    assert (dict(state).keys(), len(state)) == ({"input", "reward"}, 2)


WRITES: list[Callable[[State], Any]] = [
    lambda state: state.__setitem__("answer", "5"),
    lambda state: state.update(answer="5"),
    lambda state: state.update({"answer": "5"}),
    lambda state: state.__ior__({"answer": "5"}),
]


@pytest.mark.parametrize("write", WRITES)
def test_the_fields_of_the_input_are_written_to_it(write: Callable[[State], Any]) -> None:
    state = example()
    write(state)
    assert state["answer"] == state["input"]["answer"] == "5"
    assert "answer" not in state


@pytest.mark.parametrize("write", WRITES)
def test_a_field_that_the_input_does_not_have_is_an_ordinary_key(write: Callable[[State], Any]) -> None:
    state = State(input={"prompt": []})
    with pytest.raises(KeyError):
        state["answer"]
    assert state.get("answer", "default") == "default"
    write(state)
    assert state["answer"] == "5"
    assert "answer" in state
    assert state["input"] == {"prompt": []}


def test_setdefault_and_in_place_or_keep_the_state() -> None:
    state = example()
    same = state
    state |= {"mine": 1}
    assert state is same
    assert (state.setdefault("mine", 2), state.setdefault("theirs", 2), state["theirs"]) == (1, 2, 2)


@DUPLICATES
def test_a_state_survives_copies_with_its_random_numbers(duplicate: Callable[[State], State]) -> None:
    state = example()
    state["answer"] = "5"
    state["trajectory"] = [{"prompt": MessagesView([UserMessage("q"), AssistantMessage("a")], 1)}]
    state.rng = np.random.default_rng(3)
    state.emitted.append(0.5)
    twin = duplicate(state)
    assert type(twin) is State
    assert (twin, twin["answer"], twin.emitted, twin.is_cleaned_up) == (state, "5", [0.5], False)
    assert twin.rng.integers(1000) == state.rng.integers(1000)
    twin["info"]["level"] = 9
    twin.emitted.append(1.0)
    assert (state["info"], state.emitted) == ({"level": 1}, [0.5])


# Items that change at every move


@dataclass
class Board:
    turn: int = 1
    observation: Any = None


def playing() -> State:
    state = example()
    state["turn"] = "written before the game began"
    state.begin_game(Board(observation=[0]))
    return state


def test_what_changes_at_every_move_reads_and_writes_like_other_items() -> None:
    state = playing()
    state.game_state.turn = 2
    assert (state["turn"], state.get("turn"), state.setdefault("turn", 9)) == (2, 2, 2)
    state["turn"] = 3
    state.update(observation=[1])
    assert (state.game_state.turn, state["observation"]) == (3, [1])
    assert "turn" not in state
    with pytest.raises(KeyError, match="absent"):
        state["absent"]


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))], ids=["copy", "deepcopy", "pickle"]
)
def test_a_copy_goes_on_by_itself(duplicate: Callable[[State], State]) -> None:
    state = playing()
    twin = duplicate(state)
    twin["turn"] = 7
    twin["own"] = True
    assert (state["turn"], twin["turn"], twin["answer"], "own" in state) == (1, 7, "4", False)


def test_a_state_in_the_place_of_another_takes_over_what_its_game_wrote() -> None:
    state = playing()
    other = State(state)
    other.take_over(state)
    assert (other["turn"], other["observation"]) == (1, [0])


# Prompts that share storage

CONVERSATION = [UserMessage("a"), AssistantMessage("b"), UserMessage("c"), AssistantMessage("d")]
INDEXES = st.integers(-6, 6) | st.slices(6)


@given(stop=st.integers(0, 4), index=INDEXES)
def test_a_view_reads_like_the_list_it_stands_for(stop: int, index: Any) -> None:
    view, expected = MessagesView(list(CONVERSATION), stop), CONVERSATION[:stop]
    try:
        at: Any = expected[index]
    except IndexError:
        with pytest.raises(IndexError):
            view[index]
    else:
        assert view[index] == at
    assert (list(view), len(view), bool(view), repr(view)) == (expected, stop, bool(expected), repr(expected))
    assert (list(reversed(view)), CONVERSATION[0] in view) == (expected[::-1], CONVERSATION[0] in expected)
    assert view.count(UserMessage("a")) == expected.count(UserMessage("a"))


def test_a_view_equals_lists_and_views_of_the_same_messages_and_adds_to_lists() -> None:
    view = MessagesView(CONVERSATION, 2)
    assert (view, CONVERSATION[:2], view) == (CONVERSATION[:2], view, MessagesView(CONVERSATION[:2], 2))
    assert view != CONVERSATION
    assert view != tuple(CONVERSATION[:2])
    assert view + CONVERSATION[2:] == CONVERSATION
    assert CONVERSATION[2:] + view == [*CONVERSATION[2:], *CONVERSATION[:2]]
    assert type(view + CONVERSATION) is type(CONVERSATION + view) is type(view[:1]) is type(view.copy()) is list
    with pytest.raises(TypeError):
        hash(view)
    with pytest.raises(TypeError):
        view[0] = UserMessage("x")  # type: ignore[index]


def test_a_view_does_not_see_what_is_appended_later() -> None:
    storage = list(CONVERSATION[:2])
    view = MessagesView(storage, 2)
    storage.append(UserMessage("later"))
    assert list(view) == CONVERSATION[:2]


@DUPLICATES
def test_views_of_one_conversation_keep_sharing_it_in_copies(duplicate: Callable[[Any], Any]) -> None:
    """An episode of T turns keeps T messages, not T²/2, wherever it goes."""
    views = [MessagesView(CONVERSATION, stop) for stop in (1, 3)]
    twins = duplicate(views)
    assert twins == views
    assert twins[0]._messages is twins[1]._messages


# Timing and tokens


def test_a_span_that_has_not_ended_lasts_no_time() -> None:
    assert (TimeSpan(5.0).duration, TimeSpan(5.0, 7.5).duration) == (0.0, 2.5)
    assert (TimeSpans([TimeSpan(0.0, 1.0), TimeSpan(3.0, 5.0)]).duration, TimeSpans().duration) == (3.0, 0.0)


def test_the_total_runs_from_generation_to_the_end_of_scoring() -> None:
    timing = RolloutTiming(start_time=100.0)
    timing.generation.start, timing.generation.end = 100.0, 108.0
    timing.setup = TimeSpan(100.0, 101.0)
    timing.model.add(101.0, 105.0)
    timing.env.add(105.0, 106.0)
    assert timing.total == 0.0, "not scored yet"
    timing.scoring = TimeSpan(108.0, 110.0)
    assert (timing.total, timing.overhead) == (10.0, 10.0 - 1.0 - 4.0 - 1.0 - 2.0)
    dumped = timing.model_dump()
    assert (dumped["start_time"], dumped["total"], dumped["overhead"]) == (100.0, 10.0, 2.0)
    assert dumped["setup"] == {"start": 100.0, "end": 101.0, "duration": 1.0}
    assert dumped["model"] == {"spans": [{"start": 101.0, "end": 105.0, "duration": 4.0}], "duration": 4.0}


def test_a_usage_tracker_reads_as_a_mapping_that_cannot_be_written() -> None:
    usage = UsageTracker()
    assert (dict(usage), usage.seen) == ({"input_tokens": 0.0, "output_tokens": 0.0}, False)
    usage.add(3, 4)
    usage.add(output_tokens=1)
    assert (dict(usage), usage.seen) == ({"input_tokens": 3.0, "output_tokens": 5.0}, True)
    with pytest.raises(ValueError, match="negative"):
        usage.add(-1)
    with pytest.raises(TypeError):
        usage["input_tokens"] = 0.0  # type: ignore[index]


TOKENS = ResponseTokens([1, 2, 3], [0, 0, 0], [4, 5], [1, 1], [-0.5, -0.25])


@pytest.mark.parametrize(
    ("limit", "prompt", "completion", "overlong", "cut"),
    [
        (None, [1, 2, 3], [4, 5], False, False),
        (5, [1, 2, 3], [4, 5], False, False),
        (4, [1, 2, 3], [4], False, True),
        (3, [1, 2, 3], [], False, True),
        (2, [1, 2], [], True, True),
    ],
)
def test_token_data_is_cut_to_the_length_of_a_sequence(
    limit: int | None, prompt: list[int], completion: list[int], overlong: bool, cut: bool
) -> None:
    tokens = step_tokens(TOKENS, limit)
    assert tokens is not None
    assert (tokens["prompt_ids"], tokens["completion_ids"]) == (prompt, completion)
    assert [len(tokens[key]) for key in ("prompt_mask", "completion_mask", "completion_logprobs")] == [
        len(prompt),
        len(completion),
        len(completion),
    ]
    assert (tokens["overlong_prompt"], tokens["is_truncated"]) == (overlong, cut)
