"""The spaces of conversations and of assistant messages: what Gymnasium asks of a space, alone, in wrappers and in vectors."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.vector.utils import batch_differing_spaces, batch_space
from gymnasium.wrappers.utils import create_zero_array
from jsonschema import validate

from tests.environments import Echo
from vfgym import AssistantMessage, ChatSpace, Message, MessageSpace, Response, Rubric, UserMessage
from vfgym.spaces import WORDS, ChoiceSampler, TextSampler, ToolCallSampler
from vfgym.tools import ToolFunction


def search(query: str, limit: int = 3, exact: bool = False) -> str:
    """Search for something."""
    return query


TOOL = ToolFunction(search).definition
SPACES = [ChatSpace(), MessageSpace(), MessageSpace(ToolCallSampler([TOOL])), MessageSpace(TextSampler(("hit", "stay"), longest=1))]
EACH = pytest.mark.parametrize("space", SPACES, ids=["conversations", "text", "tool calls", "choices"])


# What a space does


@EACH
def test_samples_are_members(space: gym.Space[Any]) -> None:
    space.seed(0)
    assert all(space.sample() in space for _ in range(100))


@EACH
def test_a_seed_replays_the_samples(space: gym.Space[Any]) -> None:
    def samples(seed: int) -> list[Any]:
        space.seed(seed)
        return [space.sample() for _ in range(20)]

    assert samples(1) == samples(1)
    assert samples(1) != samples(2)


@EACH
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda space: pickle.loads(pickle.dumps(space))], ids=["deepcopy", "pickle"])
def test_a_copy_is_equal_and_samples_alike(space: gym.Space[Any], duplicate: Any) -> None:
    space.seed(5)
    twin = duplicate(space)
    assert (twin, [twin.sample() for _ in range(5)]) == (space, [space.sample() for _ in range(5)])


def test_spaces_are_equal_when_they_hold_and_draw_the_same() -> None:
    assert (ChatSpace(), MessageSpace()) == (ChatSpace(seed=3), MessageSpace(seed=3))
    assert MessageSpace(ToolCallSampler([TOOL])) == MessageSpace(ToolCallSampler((TOOL,)))
    different = [ChatSpace(), MessageSpace(), MessageSpace(ToolCallSampler([TOOL])), gym.spaces.Discrete(2)]
    assert [a == b for a in different for b in different] == [i == j for i in range(4) for j in range(4)]


@pytest.mark.parametrize("action", ["text", {"role": "assistant", "content": "text"}, AssistantMessage("text")])
def test_every_member_of_the_action_space_survives_json(action: Any) -> None:
    space = MessageSpace()
    [back] = space.from_jsonable(json.loads(json.dumps(space.to_jsonable([action]))))
    assert back in space
    assert back == action


@pytest.mark.parametrize(
    "member", [[], [UserMessage("x")], [{"role": "user", "content": "x"}], (UserMessage("x"),), [UserMessage("x"), AssistantMessage(None)]]
)
def test_conversations_are_members(member: Any) -> None:
    assert member in ChatSpace()


@pytest.mark.parametrize(
    "other", ["x", None, 3, {"role": "user", "content": "x"}, [5], ["x"], [{"role": "user"}], [{}], np.zeros(2), [{1: 2}]]
)
def test_what_is_no_list_of_messages_is_no_member(other: Any) -> None:
    assert other not in ChatSpace()


@pytest.mark.parametrize(
    "member",
    [
        *["", "text", AssistantMessage("x"), AssistantMessage(None), {"role": "assistant", "content": None}],
        Response("", 0, "", None, AssistantMessage("x")),
    ],
)
def test_assistant_messages_are_members(member: Any) -> None:
    """As text, as data, or as a response that brings token data with it."""
    assert member in MessageSpace()


@pytest.mark.parametrize(
    "other",
    [None, 3, [], [AssistantMessage("x")], UserMessage("x"), {"role": "user", "content": "x"}, {"content": "x"}, np.zeros(1), {1: 2}],
)
def test_anything_else_is_no_member(other: Any) -> None:
    assert other not in MessageSpace()


def test_samples_for_a_tool_environment_are_calls_that_fit_the_schema() -> None:
    space = MessageSpace(ToolCallSampler([TOOL]), seed=0)
    samples = [space.sample() for _ in range(100)]
    calls = [call for message in samples for call in message.tool_calls or ()]
    assert len(calls) > 50
    assert len(calls) < len(samples), "some answer in text, with which an episode ends"
    for call in calls:
        assert call.name == "search"
        validate(json.loads(call.arguments), dict(TOOL.parameters))


def draws(sampler: Any, count: int = 200) -> list[AssistantMessage]:
    rng = np.random.default_rng(0)
    return [sampler.sample(rng) for _ in range(count)]


def test_samples_of_text_have_one_to_so_many_of_the_words() -> None:
    texts = [message.content.split() for message in draws(TextSampler(("hit", "stay"), longest=3))]
    assert ({len(words) for words in texts}, {word for words in texts for word in words}) == ({1, 2, 3}, {"hit", "stay"})
    assert {len(message.content.split()) for message in draws(TextSampler())} == {1, 2, 3, 4, 5, 6}
    assert {word for message in draws(TextSampler()) for word in message.content.split()} == set(WORDS)
    assert {message.content for message in draws(ChoiceSampler(("a b", "c", "")))} == {"a b", "c", ""}


def test_samples_of_tool_calls_are_of_every_tool_and_text_where_there_is_none() -> None:
    other = TOOL.model_copy(update={"name": "look"})
    calls = [message.tool_calls[0] for message in draws(ToolCallSampler([TOOL, other])) if message.tool_calls]
    assert {call.name for call in calls} == {"search", "look"}
    assert len({call.id for call in calls}) > len(calls) / 2
    assert not any(message.tool_calls for message in draws(ToolCallSampler([])))
    tools = [TOOL]
    sampler = ToolCallSampler(tools)
    tools.append(other)
    assert sampler == ToolCallSampler([TOOL])


def test_conversations_that_are_drawn_end_with_the_user() -> None:
    space = ChatSpace(seed=0)
    samples = [space.sample() for _ in range(60)]
    assert {tuple(message.role for message in sample) for sample in samples} == {
        *[("user",), ("user", "assistant", "user"), ("user", "assistant", "user", "assistant", "user")]
    }


def test_how_spaces_are_written_and_what_gymnasium_makes_of_them() -> None:
    texts, chats = MessageSpace(ChoiceSampler(("a",))), ChatSpace()
    assert (repr(chats), repr(texts)) == ("ChatSpace()", "MessageSpace(ChoiceSampler(texts=('a',)))")
    assert (create_zero_array(chats), create_zero_array(texts)) == ([], AssistantMessage(""))
    assert batch_differing_spaces([texts, MessageSpace()]) == gym.spaces.Tuple([texts, MessageSpace()])
    assert batch_differing_spaces([chats, chats]) == gym.spaces.Tuple([chats, chats])
    assert [is_space_dtype_shape_equiv(texts, other) for other in (MessageSpace(), chats, gym.spaces.Discrete(2))] == [True, False, False]
    response = Response("", 0, "", None, AssistantMessage("x"))
    assert texts.to_jsonable([response, "text"]) == [{"role": "assistant", "content": "x"}, "text"]


# Environments to put into wrappers and vectors


def turns(completion: list[Message]) -> float:
    """Score the number of messages."""
    return float(len(completion))


class TwoTurns(Echo):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(dataset=[{"question": f"question {i}"} for i in range(10)], max_turns=2, rubric=Rubric(turns), **kwargs)


# Vectors


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_async_vectors_share_conversations_of_any_size(mode: AutoresetMode) -> None:
    shared = AsyncVectorEnv([TwoTurns] * 2, autoreset_mode=mode)
    sent = AsyncVectorEnv([TwoTurns] * 2, shared_memory=False, autoreset_mode=mode)
    made = shared.observations._shared._directory
    try:
        actions = [None, ("a" * 200_000, "b"), ("c", "d"), ("e", "f")]
        if mode is AutoresetMode.DISABLED:
            actions.pop()
        for action in actions:
            both = [envs.reset(seed=[1, 2]) if action is None else envs.step(action) for envs in (shared, sent)]
            assert data_equivalence(*(tuple(each[0]) for each in both))
            assert data_equivalence(*(each[1:] for each in both))
            kept = both[0][0]
        assert isinstance(kept, tuple), "what a step returned stays as it was"
        assert isinstance(kept[0][0], Message)
    finally:
        shared.close()
        sent.close()
    assert Path(made).is_dir()
    del shared
    gc.collect()
    assert not Path(made).exists(), "nothing is left behind"


@EACH
def test_batches_are_tuples(space: gym.Space[Any]) -> None:
    batch = batch_space(space, 3)
    assert isinstance(batch, gym.spaces.Tuple)
    assert batch.sample() in batch


@EACH
def test_samples_survive_json(space: gym.Space[Any]) -> None:
    space.seed(0)
    samples = [space.sample() for _ in range(10)]
    text = json.dumps(space.to_jsonable(samples))
    assert space.from_jsonable(json.loads(text)) == samples


@EACH
def test_a_space_has_neither_shape_nor_dtype(space: gym.Space[Any]) -> None:
    assert (space.shape, space.dtype, space.is_np_flattenable) == (None, None, False)
