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
from vfgym.endings import Ending
from vfgym.errors import ModelError
from vfgym.messages import ResponseTokens
from vfgym.reseeding import SeededNumbers
from vfgym.state import JudgeUsage, MessagesView, RolloutTiming, TimeSpan, TimeSpans, UsageTracker, make_placeholder_state, step_tokens

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


@pytest.mark.parametrize("field", ["answer", "mine"])
@pytest.mark.parametrize("value", [None, 0, "", False])
def test_an_item_that_says_nothing_is_an_item(field: str, value: Any) -> None:
    for state in (State(input={"answer": value, "mine": 1}, mine=value), State(answer=value, mine=value, input=None)):
        assert state.get(field, "default") is state.setdefault(field, "default") is state[field] is value
    assert (State(input=None).get("answer", 7), State().get("answer"), State().get("mine", 7)) == (7, None, 7)


def test_of_an_episode_that_has_not_begun_nothing_is_known() -> None:
    state = State()
    assert {name: getattr(state, name) for name in State.__slots__ if not name.startswith("_")} == {
        **dict.fromkeys(["ending", "failure_cause", "failure_reward", "game_state", "reply", "reward_failure_cause", "session"]),
        **{"emitted": [], "rewards": [], "step_metrics": {}, "is_cleaned_up": False, "is_cut_off": False, "time_limit": None},
    }
    assert state.emitted is not State().emitted


def test_random_numbers_are_those_of_the_player_and_go_on() -> None:
    state, numbers = State(), SeededNumbers(5)
    assert state.rng is state.rng
    state.begin("table", numbers)
    assert (state.session, state.rng) == ("table", numbers.generator)
    other = State()
    other.take_over(state)
    assert (other.session, other.rng) == ("table", numbers.generator)


def test_a_reward_function_that_failed_is_a_failure_and_so_is_an_error() -> None:
    state = State(error=None)
    assert (state.has_failed, state.has_reward_error) == (False, False)
    state.reward_failure_cause = "environment"
    assert (state.has_failed, state.has_reward_error) == (True, True)
    failed = State(error=ModelError("down"))
    assert (failed.has_failed, failed.has_reward_error) == (True, False)


@pytest.mark.parametrize("error", [None, ModelError("down"), ValueError("not an Error"), KeyboardInterrupt()])
def test_a_placeholder_holds_its_task_and_errors_of_the_library(error: BaseException | None) -> None:
    task = {"example_id": 0, "answer": ""}
    state = make_placeholder_state(task, error)
    assert dict(state) == {
        **{"input": task, "trajectory": [], "completion": [], "reward": 0.0, "metrics": {}},
        **{"error": error if isinstance(error, ModelError) else None, "stop_condition": None, "ending": None},
    }
    assert (state["example_id"], state.has_failed) == (0, isinstance(error, ModelError))


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
    assert (state.get("absent"), state.get("absent", 0)) == (None, 0)
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
    playing_itself = State()
    playing_itself.begin_game(Board(turn=8))
    playing_itself.take_over(state)
    assert playing_itself["turn"] == 8


def test_a_copy_has_the_attributes_too() -> None:
    state = playing()
    state.begin("table", SeededNumbers())
    values: dict[str, Any] = {
        **{"emitted": [0.5], "rewards": [1.5], "step_metrics": {"calls": 2.0}, "reply": ["moved"], "time_limit": 0.0},
        **{"ending": Ending.CUT, "failure_cause": "policy", "reward_failure_cause": "environment"},
        **{"failure_reward": -1.0, "is_cleaned_up": True, "is_cut_off": True},
    }
    for name, value in values.items():
        setattr(state, name, value)
    twin = copy.copy(state)
    assert {name: getattr(twin, name) for name in values} == values
    assert (twin.session, twin.rng, twin.game_state) == ("table", state.rng, state.game_state)
    assert {*values, "session", "game_state", "_numbers"} == set(State.__slots__)


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
    assert (TimeSpan(5.0).model_dump(), repr(TimeSpan(5.0, 7.5))) == (
        {"start": 5.0, "end": 0.0, "duration": 0.0},
        "TimeSpan(start=5.0, end=7.5)",
    )
    spans = TimeSpans([TimeSpan(0.0, 1.0), TimeSpan(3.0)])
    spans.add(4.0, 6.0)
    for _ in range(2):
        assert (spans.duration, [(span.start, span.end) for span in spans.spans]) == (3.0, [(0.0, 1.0), (3.0, 0.0), (4.0, 6.0)])
        assert spans.model_dump() == {"spans": [span.model_dump() for span in spans.spans], "duration": 3.0}
        spans.pack()
    spans.add(7.0, 7.5)
    assert (spans.duration, len(spans.spans)) == (3.5, 4)
    assert (TimeSpans().duration, TimeSpans().spans, TimeSpans().model_dump()) == (0.0, (), {"spans": [], "duration": 0})


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
    assert dumped["generation"] == {"start": 100.0, "end": 108.0, "duration": 8.0}
    assert dumped["scoring"] == {"start": 108.0, "end": 110.0, "duration": 2.0}
    assert dumped["env"] == {"spans": [{"start": 105.0, "end": 106.0, "duration": 1.0}], "duration": 1.0}
    assert RolloutTiming(start_time=0.0).start_time == 0.0
    assert dumped["model"] == {"spans": [{"start": 101.0, "end": 105.0, "duration": 4.0}], "duration": 4.0}


def test_a_usage_tracker_reads_as_a_mapping_that_cannot_be_written() -> None:
    usage = UsageTracker()
    assert (dict(usage), usage.seen) == ({"input_tokens": 0.0, "output_tokens": 0.0}, False)
    usage.add(0, 0)
    assert usage.seen, "no tokens were reported, which is not the same as nothing"
    usage.add(3, 4)
    usage.add(output_tokens=1)
    assert (dict(usage), usage.seen) == ({"input_tokens": 3.0, "output_tokens": 5.0}, True)
    for tokens in ((-1, 0), (7, -2)):
        problem = f"^token counts cannot be negative, got input_tokens={tokens[0]}, output_tokens={tokens[1]}$"
        with pytest.raises(ValueError, match=problem):
            usage.add(*tokens)
    assert (dict(usage), len(usage), repr(usage)) == ({"input_tokens": 3.0, "output_tokens": 5.0}, 2, repr(dict(usage)))
    assert usage.judges == JudgeUsage(requests=0, input_tokens=0, output_tokens=0)
    with pytest.raises(TypeError):
        usage["input_tokens"] = 0.0  # type: ignore[index]


TOKENS = ResponseTokens([1, 2, 3], [0, 0, 1], [4, 5], [1, 0], [-0.5, -0.25], routed_experts={"layers": 2})


@pytest.mark.parametrize(
    ("limit", "prompt", "completion", "overlong", "cut"),
    [
        (None, [1, 2, 3], [4, 5], False, False),
        (5, [1, 2, 3], [4, 5], False, False),
        (4, [1, 2, 3], [4], False, True),
        (3, [1, 2, 3], [], False, True),
        (2, [1, 2], [], True, True),
        (0, [], [], True, True),
    ],
)
def test_token_data_is_cut_to_the_length_of_a_sequence(
    limit: int | None, prompt: list[int], completion: list[int], overlong: bool, cut: bool
) -> None:
    tokens = step_tokens(TOKENS, limit)
    assert tokens is not None
    assert tokens == {
        **{"prompt_ids": prompt, "prompt_mask": [0, 0, 1][: len(prompt)], "completion_ids": completion},
        **{"completion_mask": [1, 0][: len(completion)], "completion_logprobs": [-0.5, -0.25][: len(completion)]},
        **{"overlong_prompt": overlong, "is_truncated": cut, "routed_experts": {"layers": 2}},
    }
