"""Going back in an episode: snapshots are moments, branches go on from one, and neither disturbs the other."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from typing import Any

import pytest

from tests.clocks import later
from tests.environments import AsyncRandomTalk, RandomTalk, Talk
from vfgym import EnvGroup, Rubric, State, StatefulToolEnv, UserMessage, cleanup
from vfgym.errors import ConfigurationError, EpisodeBusy, EpisodeNotPicklable, ResetNeeded
from vfgym.messages import AssistantMessage


def turns(state: State) -> float:
    """Return the number of turns."""
    return float(len(state["trajectory"]))


def talk(**kwargs: Any) -> RandomTalk:
    return RandomTalk(**{"max_turns": 4, "rubric": Rubric(turns), "dataset": [{"question": f"{n}?"} for n in range(50)], **kwargs})


def play(seat: Any, answers: int = 3) -> list[Any]:
    return [seat.step(f"answer {number}")[:4] for number in range(answers)]


def rows(number: int) -> list[dict[str, Any]]:
    return [{"question": str(index)} for index in range(number)]


class Basket(StatefulToolEnv):
    """A tool that fills a basket of its episode, and counts its calls for all."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": rows(3), "max_turns": 9, **kwargs})
        self.calls = 0
        self.lock = threading.Lock()
        self.add_tool(self.put, args_to_skip=["basket"])
        self.cleaned: list[list[int]] = []

    def setup_state(self, state: State) -> Any:
        state["basket"], state["guard"] = [], self.lock
        return super().setup_state(state)

    def put(self, item: int, basket: list[int]) -> str:
        """Put something in."""
        self.calls += 1
        basket.append(item)
        return str(basket)

    def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: State, **kwargs: Any) -> dict[str, Any]:
        return {**tool_args, "basket": state["basket"]}

    @cleanup
    def note(self, state: State) -> None:
        self.cleaned.append(state["basket"])


def put(item: int) -> AssistantMessage:
    return AssistantMessage(None, tool_calls=[{"id": "1", "function": {"name": "put", "arguments": {"item": item}}}])


# What a moment is


@pytest.mark.parametrize("through_pickle", [False, True])
def test_restoring_gives_observation_and_info_of_the_moment_any_number_of_times(through_pickle: bool) -> None:
    env = talk()
    env.reset(seed=3)
    observation, _, _, _, info = env.step("answer")
    snapshot = env.snapshot()
    if through_pickle:
        snapshot = pickle.loads(pickle.dumps(snapshot))
    first = play(env)
    for _ in range(2):
        assert (env.restore(snapshot), play(env)) == ((observation, info), first)
    assert (first[-1][2:], env.state["metrics"]["turns"]) == ((False, True), 4.0)


def test_random_numbers_tasks_and_samples_are_those_of_the_moment() -> None:
    env = talk()
    env.reset(seed=3)
    env.action_space.seed(1)
    env.action_space.sample()

    def future() -> list[Any]:
        return [env.action_space.sample(), float(env.np_random.random()), *(env.reset()[1]["example_id"] for _ in range(60))]

    snapshot, branch = env.snapshot(), env.branch()
    expected = future()
    for each in (snapshot, pickle.loads(pickle.dumps(snapshot))):
        env.restore(each)
        assert future() == expected
    env = branch  # type: ignore[assignment]
    assert future() == expected


def test_the_time_that_was_left_is_left_again(monkeypatch: pytest.MonkeyPatch) -> None:
    env = talk(timeout_seconds=60, max_turns=-1)
    env.reset(seed=0)
    later(monkeypatch, "monotonic", 40)
    snapshot = env.snapshot()
    later(monkeypatch, "monotonic", 500)
    for each in (snapshot, pickle.loads(pickle.dumps(snapshot))):
        env.restore(each)
        assert 19 < env.episode.deadline - time.monotonic() < 21
    assert env.branch().step("a").info["stop_condition"] is None


# Branches


def test_branches_of_a_tool_environment_are_apart_and_share_the_definition() -> None:
    env = Basket()
    env.reset(seed=0)
    env.step(put(1))
    branch = env.branch()
    assert branch.definition is env
    assert branch.state["guard"] is env.lock
    branch.step(put(2))
    deeper = branch.branch(seed=4)
    env.step(put(3))
    deeper.step(put(4))
    assert ([seat.state["basket"] for seat in (env, branch, deeper)], env.calls) == ([[1, 3], [1, 2], [1, 2, 4]], 4)
    assert [message.content for message in deeper.step("done").observation if message.role == "tool"] == ["[1]", "[1, 2]", "[1, 2, 4]"]
    branch.close()
    assert env.cleaned == [[1, 2, 4], [1, 2]]
    env.step(put(5))


def test_a_seed_lets_a_branch_go_another_way_and_no_seed_the_same() -> None:
    env = talk(max_turns=9)
    env.reset(seed=3)
    env.step("begin")
    alike, *apart = (play(env.branch(seed)) for seed in (None, 1, 1, 2))
    assert apart[0] == apart[1] != apart[2]
    assert play(env) == alike not in apart


def test_messages_and_answers_are_shared_and_what_hooks_write_is_not() -> None:
    env = talk()
    env.reset(seed=0)
    env.step("a")
    env.state["trajectory"][0]["extras"]["notes"] = ["before"]
    branch = env.branch()
    env.state["trajectory"][0]["extras"]["notes"].append("after")
    [mine], [copied] = env.state["trajectory"], branch.state["trajectory"]
    assert copied["extras"]["notes"] == ["before"]
    assert copied["response"] is mine["response"]
    assert copied["completion"][0] is mine["completion"][0]
    assert [*map(id, copied["prompt"])] == [*map(id, mine["prompt"])]
    # Prompts share the conversation of their own branch: an episode of T turns holds T messages.
    assert copied["prompt"]._messages is branch.episode._conversation  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [100, 100_000])
def test_no_task_is_copied(number: int) -> None:
    class Row(dict[str, Any]):
        def __deepcopy__(self, memo: Any) -> Any:
            raise AssertionError("a row was copied")

    data = rows(number)
    data[number - 1] = Row(data[number - 1])
    env = talk(dataset=data)
    env.rows_again = data  # type: ignore[attr-defined]
    env.reset(seed=0)
    assert len(pickle.dumps(env.snapshot())) < 10_000
    assert env.branch(seed=1).definition.tasks is env.tasks


async def test_async_hooks_are_gone_back_in_from_async_code() -> None:
    env = AsyncRandomTalk(max_turns=9)
    await env.areset(seed=3)
    await env.astep("begin")
    snapshot, branches = env.snapshot(), [env.branch() for _ in range(3)]
    futures = await asyncio.gather(*(branch.astep("a") for branch in branches))
    assert futures[0] == futures[1] == futures[2] == await env.astep("a")
    await env.arestore(snapshot)
    assert await env.astep("a") == futures[0]


def test_an_unfinished_episode_is_cleaned_up_once_where_another_is_restored() -> None:
    env = talk()
    env.reset(seed=0)
    snapshot = env.snapshot()
    env.step("a")
    env.restore(snapshot)
    assert env.cleaned == 1
    env.close()
    assert env.cleaned == 2


def test_a_group_goes_back_in_the_environment_that_plays() -> None:
    def group() -> EnvGroup:
        return EnvGroup([talk(), Basket()], ["talk", "basket"])

    env, other = group(), group()
    env.reset(options={"example_id": 51})
    env.step(put(1))
    snapshot = pickle.loads(pickle.dumps(env.snapshot()))
    branch = env.branch(seed=2)
    assert branch.episode.definition is env.envs[1]
    other.restore(snapshot)
    other.step(put(2))
    branch.step(put(3))
    assert (other.state["basket"], branch.state["basket"], env.state["basket"]) == ([1, 2], [1, 3], [1])
    assert (other.envs[1].calls, env.can_go_back) == (1, True)  # type: ignore[attr-defined]


# Which environment a snapshot is of


@pytest.mark.parametrize("through_pickle", [False, True])
def test_a_snapshot_fits_an_environment_that_was_made_alike(through_pickle: bool) -> None:
    env = talk()
    env.reset(seed=3)
    env.step("a")
    snapshot = env.snapshot()
    if through_pickle:
        snapshot = pickle.loads(pickle.dumps(snapshot))
    other = talk()
    other.restore(snapshot)
    other.fork().restore(snapshot)
    assert other.episode.definition is other
    assert play(other) == play(env)
    assert (other.cleaned, env.cleaned) == (1, 1)
    assert other.reset() == env.reset()


@pytest.mark.parametrize(
    "other",
    [
        lambda: Talk(max_turns=4, rubric=Rubric(turns), dataset=rows(50)),
        lambda: talk(max_turns=5),
        lambda: talk(system_prompt="Answer."),
        lambda: talk(dataset=rows(51)),
        lambda: talk(dataset=[*rows(49), {"question": "another"}]),
        lambda: EnvGroup([talk()]),
    ],
)
def test_another_environments_snapshot_is_refused_and_nothing_has_happened(other: Any) -> None:
    env = talk(dataset=rows(50))
    env.reset(seed=3)
    refusing = other()
    refusing.reset(seed=0)
    refusing.step("a")
    before = refusing.episode.conversation()
    for snapshot in (env.snapshot(), pickle.loads(pickle.dumps(env.snapshot()))):
        with pytest.raises(ConfigurationError, match="does not fit: it is of"):
            refusing.restore(snapshot)
    assert refusing.episode.conversation() == before
    refusing.step("b")


# What cannot be


def test_without_an_episode_there_is_nothing_to_go_back_to() -> None:
    env = talk()
    for call in (env.snapshot, env.branch):
        with pytest.raises(ResetNeeded, match="call reset"):
            call()
    env.reset(seed=0)
    env.close()
    with pytest.raises(ResetNeeded, match="broken off"):
        env.snapshot()


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_a_branch_takes_a_seed_from_0(seed: Any) -> None:
    env = talk()
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match="integer from 0"):
        env.branch(seed)


def test_an_item_of_the_state_that_cannot_be_copied_is_named() -> None:
    env = talk()
    env.reset(seed=0)
    env.state["connection"] = threading.Lock()
    for call in (env.snapshot, env.branch):
        with pytest.raises(EpisodeNotPicklable, match=r"state\['connection'\] is a lock"):
            call()
    env.step("the refusal did no harm")
    env.state["connection"] = lambda: 1
    branch, snapshot = env.branch(), env.snapshot()
    assert branch.state["connection"]() == 1
    with pytest.raises(EpisodeNotPicklable, match=r"state\['connection'\] is a function"):
        pickle.dumps(snapshot)


class Inverted(Talk):
    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await self.init_state(input, client, model, sampling_args)
        await self.get_model_response(state, state["prompt"])
        state["completion"] = []
        return state


def test_an_episode_that_is_parked_in_an_authors_rollout_is_refused() -> None:
    env = Inverted()
    assert not env.can_go_back
    assert talk().can_go_back
    env.reset(seed=0)
    for call in (env.snapshot, env.branch):
        with pytest.raises(EpisodeNotPicklable, match=r"Inverted plays its own rollout"):
            call()
    assert env.step("go on").terminated


async def test_an_episode_that_is_being_stepped_is_refused() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    class Slow(Talk):
        async def env_response(self, messages: Any, state: State) -> Any:
            begun.set()
            await may_end.wait()
            return [UserMessage("?")]

    env = Slow()
    await env.areset(seed=0)
    snapshot = env.snapshot()
    step = asyncio.ensure_future(env.astep("a"))
    await begun.wait()
    for call in (env.snapshot, env.branch, lambda: env.restore(snapshot)):
        with pytest.raises(EpisodeBusy):
            call()
    may_end.set()
    await step
