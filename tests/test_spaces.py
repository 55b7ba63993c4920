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
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space
from jsonschema import validate

from tests.environments import Echo
from vfgym import AssistantMessage, ChatSpace, Message, MessageSpace, Response, Rubric, SingleTurnEnv, State, UserMessage
from vfgym.spaces import TextSampler, ToolCallSampler
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
    assert twin == space
    assert [twin.sample() for _ in range(5)] == [space.sample() for _ in range(5)]


def test_spaces_are_equal_when_they_hold_and_draw_the_same() -> None:
    assert ChatSpace() == ChatSpace(seed=3)
    assert MessageSpace() == MessageSpace(seed=3)
    assert MessageSpace(ToolCallSampler([TOOL])) == MessageSpace(ToolCallSampler((TOOL,)))
    different = [ChatSpace(), MessageSpace(), MessageSpace(ToolCallSampler([TOOL])), gym.spaces.Discrete(2)]
    assert [a == b for a in different for b in different] == [i == j for i in range(4) for j in range(4)]


@EACH
def test_samples_survive_json(space: gym.Space[Any]) -> None:
    space.seed(0)
    samples = [space.sample() for _ in range(10)]
    text = json.dumps(space.to_jsonable(samples))
    assert space.from_jsonable(json.loads(text)) == samples


@pytest.mark.parametrize("action", ["text", {"role": "assistant", "content": "text"}, AssistantMessage("text")])
def test_every_member_of_the_action_space_survives_json(action: Any) -> None:
    space = MessageSpace()
    [back] = space.from_jsonable(json.loads(json.dumps(space.to_jsonable([action]))))
    assert back in space
    assert back == action


@EACH
def test_a_space_has_neither_shape_nor_dtype(space: gym.Space[Any]) -> None:
    assert (space.shape, space.dtype, space.is_np_flattenable) == (None, None, False)


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
        "",
        "text",
        AssistantMessage("x"),
        AssistantMessage(None),
        {"role": "assistant", "content": None},
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


def test_each_seat_has_random_numbers_of_its_own_for_its_actions() -> None:
    env = TwoTurns()
    fork = env.fork()
    env.action_space.seed(1)
    fork.action_space.seed(1)
    first = [env.action_space.sample() for _ in range(5)]
    assert first == [fork.action_space.sample() for _ in range(5)]


# Environments to put into wrappers and vectors


def turns(completion: list[Message]) -> float:
    """Score the number of messages."""
    return float(len(completion))


class TwoTurns(Echo):
    """Two turns about one of ten tasks."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(dataset=[{"question": f"question {i}"} for i in range(10)], max_turns=2, rubric=Rubric(turns), **kwargs)


class AsyncTwoTurns(TwoTurns):
    """The same with an async hook, which needs the background event loop of its process."""

    async def env_response(self, messages: list[Message], state: State) -> Any:
        return super().env_response(messages, state)


# Wrappers


def test_frame_stacking_works() -> None:
    env = gym.wrappers.FrameStackObservation(TwoTurns(), 2, padding_type="zero")
    stacked, _ = env.reset(seed=0)
    assert [len(conversation) for conversation in stacked] == [0, 1]
    stacked, *_ = env.step("a")
    assert [len(conversation) for conversation in stacked] == [1, 3]
    assert stacked in env.observation_space


def test_delayed_observations_work() -> None:
    env = gym.wrappers.DelayObservation(TwoTurns(), 1)
    assert env.reset(seed=0)[0] == []
    first, *_ = env.step("a")
    assert len(first) == 1
    assert first in env.observation_space


def test_sticky_and_transformed_actions_work() -> None:
    env = gym.wrappers.TransformAction(gym.wrappers.StickyAction(TwoTurns(), 0.5), lambda text: text.upper(), None)
    env.reset(seed=0)
    assert env.step("a")[0][1]["content"] == "A"


def test_observations_can_be_transformed() -> None:
    env = gym.wrappers.TransformObservation(TwoTurns(), lambda messages: messages[-1:], ChatSpace())
    assert len(env.reset(seed=0)[0]) == 1
    assert env.step("a")[0] == [{"role": "user", "content": "you said a"}]


def test_time_limits_autoreset_and_statistics_work() -> None:
    env = gym.wrappers.Autoreset(gym.wrappers.RecordEpisodeStatistics(gym.wrappers.TimeLimit(TwoTurns(), 1)))
    env.reset(seed=0)
    *_, truncated, info = env.step("a")
    assert truncated
    assert info["episode"]["l"] == 1
    observation, *_ = env.step("b")
    assert len(observation) == 1, "the second step was a reset"


# Vectors


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("kind", [TwoTurns, AsyncTwoTurns])
def test_sync_vectors_work_under_every_autoreset_mode(mode: AutoresetMode, kind: type[TwoTurns]) -> None:
    envs = SyncVectorEnv([kind] * 3, autoreset_mode=mode)
    first, _ = envs.reset(seed=[1, 2, 1])
    assert first in envs.observation_space
    assert first[0] == first[2]
    envs.action_space.seed(0)
    actions = envs.action_space.sample()
    assert actions in envs.action_space
    observations, rewards, terminations, truncations, _ = envs.step(("a", "b", "c"))
    assert [conversation[-1]["content"] for conversation in observations] == ["you said a", "you said b", "you said c"]
    observations, rewards, terminations, truncations, infos = envs.step(("d", "e", "f"))
    assert rewards.tolist() == [3.0, 3.0, 3.0]
    assert (terminations.tolist(), truncations.tolist()) == ([False] * 3, [True] * 3)
    if mode == AutoresetMode.SAME_STEP:
        assert [len(conversation) for conversation in observations] == [1, 1, 1]
        assert [len(conversation) for conversation in infos["final_obs"]] == [4, 4, 4]
        assert infos["final_info"]["metrics"]["turns"].tolist() == [3.0] * 3
    else:
        assert [len(conversation) for conversation in observations] == [4, 4, 4]
        assert infos["metrics"]["turns"].tolist() == [3.0] * 3
    if mode == AutoresetMode.DISABLED:
        observations, _ = envs.reset(options={"reset_mask": np.array([True, False, True])})
        assert [len(conversation) for conversation in observations] == [1, 4, 1]
    if mode == AutoresetMode.NEXT_STEP:
        observations, rewards, *_ = envs.step(("", "", ""))
        assert ([len(conversation) for conversation in observations], rewards.tolist()) == ([1, 1, 1], [0.0] * 3)
    envs.close()


def test_metrics_that_come_late_are_not_cut_to_whole_numbers() -> None:
    """A vector's array of a metric has the type of the first value seen: it must be a float from the start."""

    class Half(TwoTurns):
        def __init__(self) -> None:
            super().__init__()
            self.add_rubric(Rubric(lambda state: 0.5))

    envs = SyncVectorEnv([TwoTurns, Half], autoreset_mode=AutoresetMode.DISABLED)
    _, infos = envs.reset(seed=0)
    envs.step(("a", "a"))
    *_, infos = envs.step(("b", "b"))
    assert infos["metrics"]["<lambda>"].tolist() == [0.0, 0.5]
    envs.close()


def test_async_vectors_work_without_shared_memory() -> None:
    """Also when this process, from which the workers are forked, has used its background loop already."""
    warm = AsyncTwoTurns()
    warm.reset(seed=0)
    warm.step("a")
    envs = AsyncVectorEnv([AsyncTwoTurns] * 2, shared_memory=False)
    try:
        first, _ = envs.reset(seed=[1, 2])
        alone = [TwoTurns().reset(seed=seed)[0] for seed in (1, 2)]
        assert list(first) == alone
        assert isinstance(first[0][0], Message)
        observations, *_ = envs.step((AssistantMessage("a"), "b"))
        assert [conversation[-1]["content"] for conversation in observations] == ["you said a", "you said b"]
        _, rewards, *_ = envs.step(("c", "d"))
        assert rewards.tolist() == [3.0, 3.0]
    finally:
        envs.close()


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


def test_without_copies_an_async_vector_shows_the_latest_conversations() -> None:
    envs = AsyncVectorEnv([TwoTurns] * 2, copy=False)
    try:
        assert list(envs.observations) == [[], []]
        first, _ = envs.reset(seed=[1, 2])
        lengths = [len(conversation) for conversation in first]
        latest, *_ = envs.step(("a", "b"))
        assert latest is first
        assert [len(conversation) for conversation in first] == [length + 2 for length in lengths]
        assert first[:1] == (first[0],)
        assert first[-1] == first[1]
        with pytest.raises(IndexError):
            first[2]
    finally:
        envs.close()


@pytest.mark.parametrize("env_id", ["gymnasium/FrozenLake-v1", "vfgym/gymnasium-FrozenLake-v1"])
def test_ids_are_made_in_processes_without_more_arguments(env_id: str) -> None:
    envs = gym.make_vec(env_id, num_envs=2, vectorization_mode="async")
    try:
        observations, _ = envs.reset(seed=[3, 4])
        assert list(observations) == [gym.make(env_id).reset(seed=seed)[0] for seed in (3, 4)]
    finally:
        envs.close()


def test_different_environments_can_stand_in_one_vector() -> None:
    envs = SyncVectorEnv([TwoTurns, lambda: SingleTurnEnv([{"question": "another"}])], observation_mode="different")
    first, _ = envs.reset(seed=0)
    assert first in envs.observation_space
    envs.close()


def test_vector_wrappers_work() -> None:
    envs = gym.wrappers.vector.RecordEpisodeStatistics(gym.wrappers.vector.DictInfoToList(SyncVectorEnv([TwoTurns] * 2)).env)
    envs.reset(seed=0)
    envs.step(("a", "b"))
    *_, infos = envs.step(("c", "d"))
    assert infos["episode"]["r"].tolist() == [3.0, 3.0]
    envs.close()


@EACH
def test_batches_are_tuples(space: gym.Space[Any]) -> None:
    batch = batch_space(space, 3)
    assert isinstance(batch, gym.spaces.Tuple)
    assert batch.sample() in batch
