"""The engine of every run: who plays what, when a group is done, and that players are closed however the run ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

import vfgym
from vfgym import Rubric, SingleTurnEnv
from vfgym.errors import ConfigurationError, ModelError
from vfgym.limits import RolloutMeter, Spending
from vfgym.runs.engine import Engine, GroupJob, PlayedRollout, _share
from vfgym.runs.inputs import Example

ROWS = [{"question": "2 + 2?", "answer": "4"}]


class Numbers:
    """Plays without an environment."""

    def __init__(self, played: list[int], closed: list[Numbers] | None = None) -> None:
        self.played = played
        self.closed = [] if closed is None else closed

    async def play(self, group: GroupJob, number: int, limit: RolloutMeter | None = None) -> PlayedRollout:
        self.played.append(group.example.example_id)
        await asyncio.sleep(0)
        return PlayedRollout(number, None, vfgym.State(), rows=[])  # type: ignore[arg-type]

    async def close(self) -> None:
        self.closed.append(self)


class Solver(Numbers):
    """Plays episodes that it ends itself: the members of a group end in the opposite order."""

    def __init__(self, env: SingleTurnEnv, failure: Exception | None = None) -> None:
        super().__init__([])
        self.env, self.failure = env, failure

    async def play(self, group: GroupJob, number: int, limit: RolloutMeter | None = None) -> PlayedRollout:
        for _ in range(20 - 5 * number):
            await asyncio.sleep(0)
        seat = self.env.fork()
        seat.defers_scoring = True
        seat.reset(seed=0)
        seat.step(str(number))
        failure = self.failure if number == 0 else None
        return PlayedRollout(number, self.env, seat.state, failure, route=("a",))  # type: ignore[arg-type]


def jobs(count: int, size: int = 2) -> list[GroupJob]:
    return [GroupJob(Example(place, place, size, place), range(size)) for place in range(count)]


def endless() -> Iterable[GroupJob]:
    place = 0
    while True:
        yield GroupJob(Example(place, place, 2, place), range(2))
        place += 1


def engine_of(player: Any, **options: Any) -> Engine:
    async def new_player() -> Any:
        return player

    return Engine(new_player, **{"in_groups": True, **options})


async def test_groups_without_end_are_given_as_they_finish_and_nobody_plays_far_ahead() -> None:
    played: list[int] = []
    before = asyncio.all_tasks()
    finished: AsyncIterator[GroupJob] = engine_of(Numbers(played)).finished(endless(), num_workers=3, most_waiting=2)
    taken = []
    async for group in finished:
        taken.append(group.example.example_id)
        assert len(group.played) == 2
        for _ in range(50):  # whoever takes is slow
            await asyncio.sleep(0)
        assert max(played) <= len(taken) + 2 + 3
        if len(taken) == 20:
            break
    await finished.aclose()  # type: ignore[attr-defined]
    assert sorted(taken) == list(range(20))
    assert asyncio.all_tasks() == before
    so_far = len(played)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(played) == so_far


async def test_what_a_player_raises_comes_out_of_the_groups() -> None:
    class Broken(Numbers):
        async def play(self, group: GroupJob, number: int, limit: RolloutMeter | None = None) -> PlayedRollout:
            if group.example.example_id == 3:
                raise LookupError("a bug")
            return await super().play(group, number)

    closed: list[Numbers] = []
    finished = engine_of(Broken([], closed)).finished(endless(), 1)
    assert [(await anext(finished)).example.example_id for _ in range(3)] == [0, 1, 2]
    with pytest.raises(LookupError, match="a bug"):
        await anext(finished)
    assert len(closed) == 1


@pytest.mark.parametrize(("in_groups", "sizes"), [(True, [2, 2, 2]), (False, [1] * 6)])
async def test_every_group_is_given_once_and_each_workers_player_is_closed(in_groups: bool, sizes: list[int]) -> None:
    closed: list[Numbers] = []
    engine = engine_of(Numbers([], closed), in_groups=in_groups)
    groups = [group async for group in engine.finished(jobs(3), 4)]
    assert [len(group.played) for group in groups] == sizes
    assert sorted((group.example.example_id, each.number) for group in groups for each in group.played) == [
        (place, number) for place in range(3) for number in range(2)
    ]
    assert len(closed) == 4


async def test_cancelling_closes_players() -> None:
    closed: list[Numbers] = []
    run = asyncio.ensure_future(engine_of(Numbers([], closed)).play(endless(), 3, lambda group: None))
    for _ in range(20):
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert len(closed) == 3


async def scored(env: SingleTurnEnv, size: int = 3, failure: Exception | None = None, **options: Any) -> list[GroupJob]:
    done: list[GroupJob] = []
    await engine_of(Solver(env, failure), **options).play(jobs(1, size), 3, done.append)
    return done


def share(completions: Any) -> list[float]:
    return [1.0 / len(completions)] * len(completions)


def number_of(completion: Any) -> float:
    return float(completion[-1]["content"])


async def test_groups_are_scored_in_order_with_advantages_and_rollouts_alone_without() -> None:
    (group,) = await scored(SingleTurnEnv(ROWS, rubric=Rubric(number_of)))
    assert [(each.number, each.state["reward"], each.state["advantage"]) for each in group.played] == [
        (0, 0.0, -1.0),
        (1, 1.0, 0.0),
        (2, 2.0, 1.0),
    ]
    groups = await scored(SingleTurnEnv(ROWS, rubric=Rubric(number_of)), in_groups=False)
    assert {each.number: each.state["reward"] for group in groups for each in group.played} == {0: 0.0, 1: 1.0, 2: 2.0}
    assert all(each.state.get("advantage") is None for group in groups for each in group.played)


@pytest.mark.parametrize("most", [1, 2, 0, -1])
async def test_no_more_is_scored_at_once_than_asked_for(most: int) -> None:
    now, peak = 0, 0

    async def slow() -> float:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        for _ in range(60):
            await asyncio.sleep(0)
        now -= 1
        return 1.0

    await scored(SingleTurnEnv(ROWS, rubric=Rubric(slow)), in_groups=False, max_concurrent_scoring=most)
    assert peak == (most if most > 0 else 3)


async def test_what_breaks_a_rollout_off_is_its_own_unless_the_run_is_strict(caplog: pytest.LogCaptureFixture) -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric(number_of))
    (group,) = await scored(env, failure=ModelError("it refuses"))
    assert [each.failure is None for each in group.played] == [False, True, True]
    assert [each.state["advantage"] for each in group.played[1:]] == [-0.5, 0.5]
    (group,) = await scored(SingleTurnEnv(ROWS, rubric=Rubric(share)), failure=ModelError("it refuses"))
    assert [each.state["reward"] for each in group.played[1:]] == [0.5, 0.5], "it has no part in its group"
    assert "rollout 0 of example 0 failed" in caplog.text
    with pytest.raises(ModelError, match="it refuses"):
        await scored(env, failure=ModelError("it refuses"), strict=True)


async def test_a_group_that_cannot_be_scored_keeps_the_reason_beside_those_of_members_that_broke_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unscorable(Rubric):
        def group_scoring_steps(self, states: list[vfgym.State]) -> Any:
            raise ZeroDivisionError("a bug of the rubric")

    env = SingleTurnEnv(ROWS, rubric=Unscorable(number_of))
    (group,) = await scored(env, failure=ModelError("it refuses"))
    assert [type(each.failure) for each in group.played] == [ModelError, ZeroDivisionError, ZeroDivisionError]
    assert "scoring the rollouts of example 0 failed" in caplog.text
    with pytest.raises(ZeroDivisionError, match="a bug of the rubric"):
        await scored(env, strict=True)


@pytest.mark.parametrize(("count", "shares"), [(1, [(7, 9.0, 3.0)]), (2, [(7, 4.5, 1.5), (0, 4.5, 1.5)])])
def test_what_scoring_spent_is_shared_equally_but_for_whole_requests(count: int, shares: list[Any]) -> None:
    members: Any = [PlayedRollout(number, None, vfgym.State(), spent=Spending()) for number in range(count)]  # type: ignore[arg-type]
    uncounted: Any = PlayedRollout(2, None, vfgym.State())  # type: ignore[arg-type]
    _share(Spending(requests=7, input_tokens=9, output_tokens=3), members)
    assert [(each.spent.requests, each.spent.input_tokens, each.spent.output_tokens) for each in members] == shares
    _share(Spending(requests=7), [uncounted])
    assert uncounted.spent is None


async def test_a_group_whose_members_were_scored_as_they_were_played_is_not_scored_again() -> None:
    class Scored(Solver):
        async def play(self, group: GroupJob, number: int, limit: RolloutMeter | None = None) -> PlayedRollout:
            played = await super().play(group, number)
            played.is_scored, played.state["reward"] = True, 4.0 * number
            return played

    done: list[GroupJob] = []
    for in_groups in (True, False):
        await engine_of(Scored(SingleTurnEnv(ROWS, rubric=Rubric(number_of))), in_groups=in_groups).play(jobs(1), 1, done.append)
    assert [(each.state["reward"], each.state.get("advantage")) for group in done for each in group.played] == [
        (0.0, -2.0),
        (4.0, 2.0),
        (0.0, None),
        (4.0, None),
    ]


@pytest.mark.parametrize("status", [401, 404])
async def test_a_refused_key_ends_the_run(status: int) -> None:
    refused: Any = type("APIStatusError", (Exception,), {"__module__": "openai", "status_code": status})("no such key")
    with pytest.raises(type(refused), match="no such key"):
        await scored(SingleTurnEnv(ROWS, rubric=Rubric(number_of)), failure=refused)


async def test_members_of_different_environments_are_not_compared() -> None:
    class Elsewhere(Solver):
        async def play(self, group: GroupJob, number: int, limit: RolloutMeter | None = None) -> PlayedRollout:
            played = await super().play(group, number)
            played.route = ("a", "b")[number : number + 1]
            return played

    env = SingleTurnEnv(ROWS, rubric=Rubric(number_of))
    with pytest.raises(ConfigurationError, match="example 0 belong to different environments"):
        await engine_of(Elsewhere(env), strict=True).play(jobs(1), 1, lambda group: None)
