"""`vfgym.rollout`: groups that begin alike, in the order in which they finish, for as long as they are taken."""

from __future__ import annotations

import asyncio
import itertools
import sys
from typing import Any

import numpy as np
import pytest

import vfgym
from tests.environments import Talk
from vfgym.errors import ConfigurationError, Error, ModelError, SandboxError
from vfgym.messages import Message
from vfgym.runs.rollout import as_error
from vfgym.testing import ScriptedClient
from vfgym.training import Group, samples

ROWS = [{"question": f"question {number}", "answer": str(number)} for number in range(5)]


def is_right(completion: list[Message], answer: str) -> float:
    return float(completion[-1].content == answer)


def quiz(**kwargs: Any) -> vfgym.SingleTurnEnv:
    return vfgym.SingleTurnEnv(**{"dataset": ROWS, "rubric": vfgym.Rubric(is_right), **kwargs})


async def take(number: int, *args: Any, **kwargs: Any) -> list[Group]:
    """Return the first groups, by their index."""
    groups = vfgym.rollout(*args, **kwargs)
    taken = [group async for _, group in azip(range(number), groups)]
    await groups.aclose()
    return sorted(taken, key=lambda group: group.index)


async def azip(numbers: range, groups: Any) -> Any:
    for number in numbers:
        try:
            yield number, await anext(groups)
        except StopAsyncIteration:
            return


def by_answers(*answers: str) -> Any:
    said = itertools.cycle(answers)
    return lambda observation, info: next(said)


# What a group is


async def test_the_rollouts_of_a_group_have_one_task_and_their_own_rewards() -> None:
    [group] = await take(9, quiz(), by_answers("3", "no", "3", "3"), example_ids=[3], group_size=4, max_concurrent=1)
    assert (group.index, group.example_id) == (0, 3)
    assert group.rewards == [1.0, 0.0, 1.0, 1.0]
    assert group.advantages == [0.25, -0.75, 0.25, 0.25]
    assert group.errors == [None] * 4
    assert {state["prompt"][-1]["content"] for state in group.states} == {"question 3"}
    assert [sample.advantage for sample in samples(group.states)] == group.advantages
    assert len({state["group"] for state in group.states}) == 1


async def test_without_names_passes_without_repeats_go_on() -> None:
    groups = await take(12, quiz(), "random", max_concurrent=1)
    order = [group.example_id for group in groups]
    assert sorted(order[:5]) == sorted(order[5:10]) == list(range(5))
    assert [group.example_id for group in await take(12, quiz(), "random", max_concurrent=1)] == order
    assert [group.example_id for group in await take(12, quiz(), "random", max_concurrent=1, seed=1)] != order


async def test_the_same_seed_gives_the_same_groups_whatever_the_order_of_answers() -> None:
    async def slowly(observation: list[Message], info: dict[str, Any]) -> str:
        await asyncio.sleep(0.001 * (len(observation) % 3))
        return str(info["legal_actions"][len(observation) % len(info["legal_actions"])])

    def quickly(observation: list[Message], info: dict[str, Any]) -> str:
        return str(info["legal_actions"][len(observation) % len(info["legal_actions"])])

    played = []
    for agent, max_concurrent in ((slowly, 16), (quickly, 3)):
        groups = vfgym.rollout("textarena/TicTacToe-v0", agent, group_size=2, seed=5, max_concurrent=max_concurrent)
        kept = {}
        async for group in groups:
            kept[group.index] = [[message["content"] for message in state["completion"]] for state in group.states]
            if kept.keys() >= set(range(4)):
                break
        await groups.aclose()
        played.append([kept[index] for index in range(4)])
    assert played[0] == played[1]
    assert all(first == second for first, second in played[0])  # one seed, so the opponent answers the same moves alike
    assert len({str(group) for group in played[0]}) > 1


async def test_agents_have_random_numbers_of_their_own_in_each_rollout() -> None:
    [group] = await take(1, "gymnasium/CartPole-v1", "random", example_ids=[7], group_size=6)
    assert len({str(state["prompt"]) for state in group.states}) == 1
    assert len({str(state["completion"]) for state in group.states}) > 1


def shortest(completions: list[Any]) -> list[float]:
    lengths = [len(completion[-1]["content"]) for completion in completions]
    return [float(length == min(lengths)) for length in lengths]


async def test_a_group_is_scored_together_where_each_of_it_has_an_environment_of_its_own() -> None:
    """As from a function that makes one for each rollout at once."""
    made: list[Any] = []

    def make() -> Any:
        made.append(quiz(rubric=vfgym.Rubric(shortest)))
        return made[-1]

    said = by_answers("long", "a", "longer")

    async def answer(observation: list[Message], info: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return said(observation, info)

    [group] = await take(1, make, answer, group_size=3, example_ids=[0])
    assert len(made) >= 3
    assert sorted(group.rewards) == [0.0, 0.0, 1.0]
    assert group.errors == [None] * 3


async def test_a_client_answers_with_its_model_and_its_version_is_kept() -> None:
    class Versioned(ScriptedClient):
        policy_version = 12

    [group] = await take(1, quiz(), Versioned(["0"]), model="m", example_ids=[0])
    assert group.rewards == [1.0]
    assert samples(group.states)[0].policy_versions == [12]
    assert group.states[0]["trajectory"][0]["response"].model == "m"


async def test_the_tasks_that_are_named_are_played_once_in_their_order_and_from_their_split() -> None:
    named: list[Any] = [(iter([3, 1, 3]), [3, 1, 3]), ([np.int64(2), 0], [2, 0]), ([0], [0]), ([], [])]
    for example_ids, played in named:
        assert [group.example_id for group in await take(9, quiz(), "random", example_ids=example_ids, max_concurrent=1)] == played
    env = quiz(eval_dataset=[{"question": "of the other split", "answer": "yes"}])
    [group] = await take(1, env, by_answers("yes"), split="eval")
    assert (group.rewards, group.states[0]["prompt"][-1]["content"]) == ([1.0], "of the other split")


async def test_the_seed_is_that_of_the_episodes_too() -> None:
    async def drawn(**seed: int) -> list[float | None]:
        env = quiz(rubric=vfgym.Rubric(lambda state: state.rng.random()))
        return (await take(1, env, "random", example_ids=[0], group_size=2, **seed))[0].rewards

    assert await drawn() == await drawn(seed=0) != await drawn(seed=1)


class OwnAdvantages(vfgym.Rubric):
    """Gives advantages of its own."""

    provides_advantages = True

    async def score_group(self, states: list[vfgym.State], **kwargs: Any) -> None:
        await super().score_group(states, **kwargs)
        for number, state in enumerate(states):
            state["advantage"] = 7.0 - number


async def test_advantages_are_those_of_the_rubric_where_it_has_some() -> None:
    [group] = await take(1, quiz(rubric=OwnAdvantages(is_right)), by_answers("0", "no"), example_ids=[0], group_size=2, max_concurrent=1)
    assert (group.rewards, group.advantages) == ([1.0, 0.0], [7.0, 6.0])


async def test_what_was_counted_is_given_as_a_copy_and_nothing_follows_the_end() -> None:
    groups = vfgym.rollout(quiz(), "random")
    groups.replayed["stale"] += 1
    assert groups.replayed == {}
    await anext(groups)
    with pytest.raises(ZeroDivisionError):
        await groups.athrow(ZeroDivisionError())
    await groups.aclose()
    await groups.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(groups)
    with pytest.raises(ConfigurationError, match=r"this run is over: call vfgym\.rollout again"):
        await groups.state_dict()


# What fails


async def test_a_rollout_that_fails_counts_with_the_least_of_its_group_and_ends_no_other() -> None:
    numbers = itertools.count()

    def answer(observation: list[Message], info: dict[str, Any]) -> str:
        number = next(numbers)
        if number == 1:
            raise ModelError("the answer could not be read")
        if number == 2:
            raise ZeroDivisionError("a mistake of the agent")
        return "0" if number == 0 else "no"

    [group] = await take(1, quiz(failure_reward=-1.0), answer, example_ids=[0], group_size=4, max_concurrent=1)
    assert group.rewards == [1.0, -1.0, -1.0, 0.0]
    assert group.advantages == [1.25, -0.75, -0.75, 0.25]
    assert [type(error) for error in group.errors] == [type(None), ModelError, ZeroDivisionError, type(None)]
    assert group.cause == [None, "policy", "policy", None]
    assert group.failed == [False, True, True, False]
    assert group.attempt == [1, 1, 1, 1]
    assert [sample.advantage for sample in samples(group.states)] == [1.25, 0.25]  # the others gave no turn, and counted
    [declares_nothing] = await take(1, quiz(), by_raising(ModelError("down")), example_ids=[0], group_size=2, max_concurrent=1)
    assert declares_nothing.rewards == [0.0, 0.0]


def by_raising(error: Exception) -> Any:
    def answer(observation: list[Message], info: dict[str, Any]) -> str:
        raise error

    return answer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"group_size": 0}, "group_size must be a positive integer, got 0"),
        ({"max_concurrent": -1}, "max_concurrent must be a positive integer"),
        ({"seed": -1}, "seed must be an integer from 0"),
        ({"replace": -1}, "replace must be an integer from 0, got -1"),
        ({"replace": True}, "replace must be an integer from 0, got True"),
        ({"max_staleness": -1}, "max_staleness must be an integer from 0, or None for any number, got -1"),
        ({"max_staleness": True}, "max_staleness must be an integer from 0"),
        ({"max_staleness": 0.5}, "max_staleness must be an integer from 0"),
        ({"max_staleness": 0}, "counts versions of the policy.*RandomAgent has None"),
        ({"on_update": "finsh"}, "on_update must be one of 'continue', 'finish', 'drop'; got 'finsh'. Did you mean `finish`"),
        ({"on_update": None}, "on_update must be one of"),
        ({"example_ids": [9]}, "no task with example_id 9"),
        ({"model": "m"}, "is an agent: leave it out"),
        ({"split": "test"}, "split"),
    ],
)
async def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await take(1, quiz(), "random", **arguments)


async def test_an_empty_split_has_no_tasks_to_play() -> None:
    with pytest.raises(ConfigurationError, match="SingleTurnEnv has no tasks to play: its eval dataset is empty"):
        await take(1, quiz(eval_dataset=[]), "random", split="eval")


def test_an_exception_is_an_error_in_states_and_an_error_stays_itself() -> None:
    failure, own = ValueError("odd"), ModelError("down")
    assert as_error(own) is own
    error = as_error(failure)
    assert (type(error), str(error), error.__cause__) == (Error, "ValueError: odd", failure)


# How much is played


class Counting(vfgym.MultiTurnEnv):
    """Counts the episodes that begin and those that are cleaned up."""

    def __init__(self) -> None:
        super().__init__(dataset=ROWS, max_turns=2)
        self.begun = self.cleaned = 0

    def setup_state(self, state: vfgym.State) -> None:
        self.begun += 1

    def env_response(self, messages: Any, state: vfgym.State) -> list[Message]:
        return [vfgym.UserMessage("again")]

    @vfgym.cleanup
    def note(self, state: vfgym.State) -> None:
        self.cleaned += 1


@pytest.mark.parametrize("group_size", [1, 3, 50])
async def test_no_more_is_played_than_is_taken(group_size: int) -> None:
    env = Counting()
    groups = vfgym.rollout(env, "random", group_size=group_size, max_concurrent=4)
    most = max(4 * 4, group_size)
    for taken in range(1, 4):
        await anext(groups)
        for _ in range(200):
            await asyncio.sleep(0)
        assert env.begun <= taken * group_size + most
    await groups.aclose()


async def test_closing_leaves_no_task_and_no_episode() -> None:
    env = Counting()
    before = asyncio.all_tasks()

    async def never(observation: list[Message], info: dict[str, Any]) -> str:
        if len(observation) > 1:
            await asyncio.Event().wait()
        return "ok"

    groups = vfgym.rollout(env, never, max_concurrent=8)
    waiting = asyncio.ensure_future(anext(groups))
    while env.begun < 8:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await groups.aclose()
    assert asyncio.all_tasks() == before
    assert env.begun == env.cleaned == 8


# What infrastructure or the environment broke


class Flaky(Talk):
    """Breaks some of its rollouts: those whose numbers are named, in the order in which they begin."""

    def __init__(self, broken: Any, error: Exception, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, "max_turns": 1, **kwargs})
        self._broken, self._error, self._begun = set(broken), error, itertools.count()

    def setup_state(self, state: vfgym.State) -> None:
        if next(self._begun) in self._broken:
            raise self._error


BROKEN = [(SandboxError("the host went away"), "infrastructure"), (KeyError("a hook's mistake"), "environment")]


@pytest.mark.parametrize(("error", "cause"), BROKEN)
async def test_what_was_broken_is_played_again_alike(error: Exception, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[int] = []
    monkeypatch.setattr(sys.modules["vfgym.runs.rollout"], "seconds_before_retry", lambda number: delays.append(number) or 0.0)
    env = Flaky([1, 2, 5], error, rubric=vfgym.Rubric(lambda state: state.rng.random()))
    groups = vfgym.rollout(env, "random", example_ids=[0, 1], group_size=2, max_concurrent=1, replace=2)
    first, second = [group async for group in groups]
    assert groups.replayed == {cause: 3}
    assert delays == [0], "what failed once is played again at once"
    assert (first.attempt, second.attempt) == ([1, 3], [1, 2])
    assert first.failed == second.failed == [False, False]
    unbroken = await take(
        2, Flaky([], error, rubric=vfgym.Rubric(lambda state: state.rng.random())), "random", example_ids=[0, 1], group_size=2
    )
    assert [group.rewards for group in unbroken] == [first.rewards, second.rewards]
    assert [sample.attempt for sample in samples(first.states)] == [1, 3]


@pytest.mark.parametrize(("error", "cause"), BROKEN)
@pytest.mark.parametrize("replace", [0, 1])
async def test_what_stays_broken_is_in_no_sample_and_in_no_baseline(error: Exception, cause: str, replace: int) -> None:
    env = Flaky(range(1, replace + 2), error, rubric=vfgym.Rubric(is_right), failure_reward=-5.0)
    groups = vfgym.rollout(env, by_answers("0", "no", "0"), example_ids=[0], group_size=4, max_concurrent=1, replace=replace)
    [group] = [group async for group in groups]
    assert group.rewards == [1.0, None, 0.0, 1.0]
    assert group.advantages == [1 - 2 / 3, 0.0, -2 / 3, 1 - 2 / 3]
    assert (group.cause, group.attempt) == ([None, cause, None, None], [1, replace + 1, 1, 1])
    assert groups.replayed == ({cause: replace} if replace else {})
    found = samples(group.states)
    assert [(sample.rollout, sample.advantage) for sample in found] == [(0, 1 - 2 / 3), (2, -2 / 3), (3, 1 - 2 / 3)]
    assert found.dropped == {cause: 1}
    as_failures = samples(group.states, failures="least")
    assert [sample.advantage for sample in as_failures] == [1.0 - -0.75, 0.0 - -0.75, 1.0 - -0.75]
    assert not as_failures.dropped


async def test_a_group_whose_reward_function_fails_is_scored_again_and_a_group_of_nothing_is_given() -> None:
    numbers = {"0": itertools.count(), "1": itertools.count()}

    def score(answer: str) -> float:
        if (answer, next(numbers[answer])) in {("0", 1), *(("1", number) for number in range(4))}:
            raise ValueError("the judge's table is gone")
        return 1.0

    groups = vfgym.rollout(quiz(rubric=vfgym.Rubric(score)), "random", example_ids=[0, 1], group_size=2, max_concurrent=1, replace=1)
    first, second = sorted([group async for group in groups], key=lambda group: group.index)
    assert (first.rewards, first.attempt) == ([1.0, 1.0], [2, 2])
    assert (second.rewards, second.advantages, second.attempt) == ([None, None], [0.0, 0.0], [2, 2])
    assert groups.replayed == {"environment": 4}
    assert samples(second.states) == []


# A policy that is updated


class Versioned:
    """A policy with a version, whose answers take a while."""

    def __init__(self, version: Any = 0) -> None:
        self.policy_version = version
        self.num_asked = 0

    async def __call__(self, observation: list[Message], info: dict[str, Any]) -> str:
        self.num_asked += 1
        for _ in range(self.num_asked % 5):
            await asyncio.sleep(0)
        return "ok"


def versions_of(group: Group) -> list[Any]:
    return [version for sample in samples(group.states) for version in sample.policy_versions]


class LongTalk(Talk):
    def __init__(self, num_tasks: int) -> None:
        super().__init__(dataset=[{"question": str(number)} for number in range(num_tasks)], max_turns=4)


QUICK = [(0, 1, "drop"), (0, 6, "continue"), (1, 6, "finish"), (4, 1, "continue")]
OTHERS = sorted({*itertools.product((0, 1, 4), (1, 6), ("continue", "finish", "drop"))} - {*QUICK})


@pytest.mark.parametrize(
    ("max_staleness", "groups_an_update", "on_update"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in OTHERS)]
)
async def test_no_group_is_staler_than_was_promised_and_none_is_lost(max_staleness: int, groups_an_update: int, on_update: Any) -> None:
    agent, delivered = Versioned(), []
    groups = vfgym.rollout(
        LongTalk(60), agent, example_ids=range(60), group_size=4, max_concurrent=64, max_staleness=max_staleness, on_update=on_update
    )
    async with asyncio.timeout(60):
        async for group in groups:
            assert agent.policy_version - min(versions_of(group)) <= max_staleness
            delivered.append(group.example_id)
            if len(delivered) % groups_an_update == 0:
                await groups.pause()
                agent.policy_version += 1
                groups.resume()
    assert sorted(delivered) == list(range(60))
    played = 60 * 4 + sum(groups.replayed.values())
    assert played <= agent.num_asked <= 4 * played
    if on_update == "finish":
        assert set(groups.replayed) <= {"stale"}


@pytest.mark.parametrize("on_update", ["continue", "finish", "drop"])
async def test_nobody_is_asked_while_it_is_paused(on_update: Any) -> None:
    agent = Versioned()
    groups = vfgym.rollout(LongTalk(20), agent, example_ids=range(20), group_size=2, max_concurrent=8, on_update=on_update)
    first = await anext(groups)
    waiting = asyncio.ensure_future(anext(groups))  # the learner pauses while another task takes groups
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await groups.pause()
        num_asked, agent.policy_version = agent.num_asked, 1
        for _ in range(100):
            await asyncio.sleep(0)
        assert agent.num_asked == num_asked
        await groups.pause()  # a second one waits for nothing more
        groups.resume()
        groups.resume()
        rest = [await waiting, *[group async for group in groups]]
    assert {group.index for group in [first, *rest]} == set(range(20))
    mixed = [sample for group in rest for sample in samples(group.states) if len(set(sample.policy_versions)) > 1]
    assert all(sample.policy_versions == sorted(sample.policy_versions) for sample in mixed)
    assert bool(mixed) == (on_update == "continue")
    assert set(groups.replayed) == ({"updated"} if on_update == "drop" else set())


@pytest.mark.parametrize("on_update", ["continue", "finish", "drop"])
async def test_it_can_be_closed_while_it_is_paused_and_paused_before_and_after(on_update: Any) -> None:
    env, before = Counting(), asyncio.all_tasks()
    groups = vfgym.rollout(env, Versioned(), max_concurrent=4, on_update=on_update)
    await groups.pause()
    waiting = asyncio.ensure_future(anext(groups))
    for _ in range(50):
        await asyncio.sleep(0)
    assert env.begun == 0
    groups.resume()
    await waiting
    await groups.pause()
    await groups.aclose()
    await groups.pause()
    groups.resume()
    assert asyncio.all_tasks() == before
    assert env.begun == env.cleaned


async def test_a_version_that_gets_lost_ends_the_run() -> None:
    agent = Versioned()
    groups = vfgym.rollout(quiz(), agent, max_staleness=1)
    await anext(groups)
    agent.policy_version = None
    with pytest.raises(ConfigurationError, match="Versioned has None"):
        await anext(groups)


# Bootstrapping


async def test_what_a_truncated_game_would_have_shown_next_is_kept() -> None:
    env = vfgym.to_chat("CartPole-v1", history=0, max_turns=3)
    [group] = await take(1, env, "random", example_ids=[0], group_size=2)
    assert group.truncated == [True, True]
    for sample, state in zip(samples(group.states)[2::3], group.states, strict=True):
        *shown, last = sample.last_observation or []
        assert [message["role"] for message in shown] == [message["role"] for message in state["trajectory"][-1]["prompt"]][:-1]
        assert str(state["completion"][-1]["content"]) in str(last["content"])
        assert sample.last_ids is None
    whole = (await take(1, vfgym.to_chat("CartPole-v1", max_turns=3), "random", example_ids=[0]))[0]
    [sample] = samples(whole.states)
    assert sample.last_observation == [*whole.states[0]["prompt"], *whole.states[0]["completion"]]
    [over] = await take(1, "gymnasium/Blackjack-v1", "random", example_ids=[0])
    assert (over.terminated, over.truncated, over.cut, over.failed) == ([True], [False], [False], [False])
    assert {(s.terminated, s.truncated, s.last_observation, s.last_ids) for s in samples(over.states)} == {(True, False, None, None)}


class Typist:
    """Answers with token ids, and knows those of each prompt; but for pictures."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> vfgym.Response:
        said = "<action>left</action>"
        prompt, written = letters(observation), list(said.encode())
        tokens = vfgym.ResponseTokens(prompt, [0] * len(prompt), written, [1] * len(written), [-0.5] * len(written))
        return vfgym.Response("r", 0, "m", None, vfgym.ResponseMessage(said, tokens=tokens))

    async def prompt_ids(self, observation: list[Message], state: vfgym.State) -> list[int]:
        if self._error is not None:
            raise self._error
        return letters(observation)


def letters(messages: list[Message]) -> list[int]:
    return [letter for message in messages for letter in str(message["content"]).encode()]


@pytest.mark.parametrize("history", [None, 0])
async def test_the_ids_of_the_last_observation_are_kept_with_what_the_environment_said_last(history: int | None) -> None:
    env = vfgym.to_chat("FrozenLake-v1", history=history, max_turns=2)
    [group] = await take(1, env, Typist(), example_ids=[0])
    assert group.truncated == [True]
    longer = (await take(1, vfgym.to_chat("FrozenLake-v1", history=history, max_turns=3), Typist(), example_ids=[0]))[0]
    for sample in samples(group.states):
        assert sample.last_observation == list(longer.states[0]["trajectory"][2]["prompt"])  # what it would have been shown
        assert sample.last_ids == longer.states[0]["trajectory"][2]["tokens"]["prompt_ids"]


async def test_a_rollout_is_whole_without_the_ids_of_its_last_observation(caplog: pytest.LogCaptureFixture) -> None:
    env = vfgym.to_chat("FrozenLake-v1", max_turns=2)
    [group] = await take(1, env, Typist(ValueError("no route")), example_ids=[0])
    [sample] = samples(group.states)
    assert (sample.truncated, sample.last_ids) == (True, None)
    assert "the last observation of example 0 could not be tokenised: ValueError('no route')" in caplog.text
