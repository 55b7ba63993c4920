"""What a pause and a new version of a policy do to groups, rollouts and answers that are under way."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from vfgym.aio.bridge import bridge
from vfgym.errors import ConfigurationError
from vfgym.runs.updates import OnUpdate, PlayedVersions, PolicyUpdates, Superseded


class Policy:
    def __init__(self, version: Any = 0) -> None:
        self.policy_version = version


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def under_way(awaitable: Any) -> asyncio.Future[Any]:
    future = asyncio.ensure_future(awaitable)
    await settle()
    return future


def turns(*versions: int | None) -> list[list[dict[str, Any]]]:
    return [[{"extras": {} if version is None else {"policy_version": version}} for version in versions]]


@pytest.mark.parametrize("version", [None, "step-3", 1.5, True])
def test_staleness_needs_versions_that_can_be_counted(version: Any) -> None:
    with pytest.raises(ConfigurationError, match="needs an integer attribute policy_version"):
        PolicyUpdates(Policy(version), 0, "continue")
    assert PolicyUpdates(Policy(version), None, "continue").check_version() == version


@pytest.mark.parametrize(
    ("most", "versions", "staleness", "is_stale"),
    [
        (0, (5, 5), 0, False),
        (0, (5, 4), 1, True),
        (1, (4, 3, 5), 2, True),
        (2, (4, 3, 5), 2, False),
        (0, (6,), 1, True),
        (0, (None,), 0, False),
        (0, (), 0, False),
        (None, (0,), 0, False),
    ],
)
def test_the_oldest_turn_counts(most: int | None, versions: tuple[Any, ...], staleness: int, is_stale: bool) -> None:
    updates = PolicyUpdates(Policy(5), most, "continue")
    played = turns() + turns(*versions)
    assert (updates.staleness(played), updates.is_stale(played)) == (staleness, is_stale)


async def test_on_policy_groups_begin_when_they_are_waited_for_and_then_as_many_as_an_update_takes() -> None:
    policy = Policy()
    updates = PolicyUpdates(policy, 0, "continue")
    begun = [await under_way(updates.begin(place)) for place in range(2)]
    assert not any(each.done() for each in begun)
    for place in range(2):
        updates.start_taking()
        await settle()
        updates.stop_taking(place)
    assert all(each.done() for each in begun)
    too_early = await under_way(updates.begin(9))
    assert not too_early.done(), "nobody waits for one"
    too_early.cancel()
    policy.policy_version = 1
    updates.start_taking()
    updates.stop_taking(99)  # one of the two of this version
    ahead = [await under_way(updates.begin(place)) for place in (2, 3)]
    assert [each.done() for each in ahead] == [True, False]
    await asyncio.wait_for(updates.begin(2), 5)  # it has begun
    updates.give_up(2)
    await settle()
    assert ahead[1].done()


async def test_without_a_limit_every_group_may_begin_and_a_pause_that_is_over_waits_no_longer() -> None:
    updates = PolicyUpdates(Policy(None), None, "continue")
    assert all([(await under_way(updates.begin(place))).done() for place in range(9)])
    updates = PolicyUpdates(Policy(), None, "continue")
    with updates.asking():
        pause = await under_way(updates.pause())
        updates.resume()
        await settle()
        assert pause.done()


@pytest.mark.parametrize(("on_update", "waits_for"), [("continue", {"asking"}), ("finish", {"playing"}), ("drop", {"asking"})])
@pytest.mark.parametrize("context", ["asking", "playing"])
async def test_a_pause_waits_for_what_is_under_way(on_update: OnUpdate, waits_for: set[str], context: str) -> None:
    updates = PolicyUpdates(Policy(), None, on_update)
    with contextlib.suppress(LookupError), getattr(updates, context)():
        pause = await under_way(updates.pause())
        assert pause.done() is (context not in waits_for)
        raise LookupError
    await settle()
    assert pause.done()
    resumed = await under_way(updates.resumed())
    assert not resumed.done()
    updates.resume()
    await settle()
    assert resumed.done()


async def test_more_groups_begin_ahead_the_more_versions_may_pass_and_the_fewer_an_update_passes() -> None:
    for step, ahead in ((1, 6), (2, 4), (-2, 4), (3, 2)):
        policy = Policy(5)
        updates = PolicyUpdates(policy, 2, "continue")
        for place in range(2):
            updates.start_taking()
            await updates.begin(place)
            updates.stop_taking(place)
        policy.policy_version += step
        updates.start_taking()
        updates.start_taking()  # of the same version
        waiting = [await under_way(updates.begin(place)) for place in range(10, 20)]
        assert sum(each.done() for each in waiting) == ahead
        for each in waiting:
            each.cancel()


@pytest.mark.parametrize("error", [None, ZeroDivisionError, asyncio.CancelledError])
async def test_standing_still_waits_for_what_is_played_and_lets_it_go_on_however_it_ends(error: type[BaseException] | None) -> None:
    updates = PolicyUpdates(Policy(), None, "finish")
    stands, leave = asyncio.Event(), asyncio.Event()

    async def stand() -> None:
        async with updates.standing_still():
            stands.set()
            await leave.wait()
            if error is not None:
                raise error

    with updates.playing():
        standing = await under_way(stand())
        assert not stands.is_set()
        resumed = await under_way(updates.resumed())
        held = await under_way(bridge(updates.hold, Clock()))  # type: ignore[arg-type]
        assert stands.is_set(), "what is played is held, though it would be finished in a pause"
        assert not resumed.done()
        assert not held.done()
        leave.set()
        await asyncio.gather(held, resumed)
    assert isinstance((await asyncio.gather(standing, return_exceptions=True))[0], error or type(None))
    await updates.resumed()


async def test_a_state_says_all_that_a_run_goes_on_with_and_is_a_copy() -> None:
    policy = Policy()
    updates = PolicyUpdates(policy, 4, "drop")
    for place in (4, 3):
        updates.start_taking()
        await updates.begin(place)
    updates.stop_taking(4)
    policy.policy_version = 2
    updates.start_taking()
    await updates.begin(5)
    await updates.begin(9)
    updates.stop_taking(5)
    await updates.pause()
    updates.replayed["stale"] += 2
    policy.policy_version = 0
    state = updates.state_dict()
    expected = {"now": 0, "version": 2, "replayed": {"stale": 2}, "begun": [3, 9], "delivered": 1, "per_update": 1}
    expected |= {"versions_per_update": 2, "drops": 1}
    assert state == expected
    other = PolicyUpdates(policy, 4, "drop")
    other.check_state(state)
    other.load_state_dict(state)
    assert other.state_dict() == state
    other.replayed["stale"] += 1
    other.give_up(3)
    updates.replayed["updated"] += 1
    assert state == expected
    policy.policy_version = 1
    with pytest.raises(ConfigurationError, match="expected a policy of policy_version 0, as it was saved, and who answers has 1"):
        other.check_state(state)


def test_a_rollout_that_goes_on_elsewhere_knows_its_versions() -> None:
    policy = Policy(3)
    updates = PolicyUpdates(policy, 1, "continue")
    played, other = PlayedVersions(updates), PlayedVersions(updates)
    assert played.state() == (None, None, None)
    played.note_turn()
    policy.policy_version = 4
    played.note_turn()
    assert played.state() == (0, 3, 4)
    other.load_state(played.state())
    assert (other.state(), other.asked) == ((0, 3, 4), 4)
    policy.policy_version = 5
    with pytest.raises(Superseded, match="it began 2 versions of the policy ago"):
        other.note_turn()


class Clock:
    """Stands for an episode whose time is put off."""

    def put_off(self, seconds: float) -> None:
        """Take note of nothing."""


@pytest.mark.parametrize(("on_update", "is_held"), [("continue", True), ("drop", True), ("finish", False)])
async def test_an_episode_is_held_and_loses_none_of_its_time(on_update: OnUpdate, is_held: bool) -> None:
    seconds: list[float] = []

    class Episode:
        put_off = staticmethod(seconds.append)

    updates = PolicyUpdates(Policy(), None, on_update)
    await bridge(updates.hold, Episode())  # type: ignore[arg-type]
    assert seconds == []
    await updates.pause()
    held = await under_way(bridge(updates.hold, Episode()))  # type: ignore[arg-type]
    assert held.done() is not is_held
    updates.resume()
    await held
    assert len(seconds) == is_held


async def test_a_dropped_answer_is_superseded_and_a_cancelled_one_is_cancelled() -> None:
    updates = PolicyUpdates(Policy(), None, "drop")
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    dropped = await under_way(updates.unless_dropped(never))
    await updates.pause()
    with pytest.raises(Superseded):
        await dropped
    assert never.cancelled()
    cancelled = await under_way(updates.unless_dropped(asyncio.sleep(60)))
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert await updates.unless_dropped(asyncio.sleep(0, "said")) == "said"


@pytest.mark.parametrize("on_update", ["continue", "finish"])
async def test_only_drop_gives_answers_up(on_update: OnUpdate) -> None:
    updates = PolicyUpdates(Policy(), None, on_update)
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asked = await under_way(updates.unless_dropped(answer))
    await updates.pause()
    answer.set_result("said")
    assert await asked == "said"


@pytest.mark.parametrize(
    ("on_update", "most", "versions", "is_superseded"),
    [
        ("drop", None, (3, 3), False),
        ("drop", None, (3, 4), True),
        ("continue", None, (3, 9), False),
        ("continue", 1, (3, 4), False),
        ("continue", 1, (3, 4, 5), True),
        ("finish", 0, (3, 4), True),
        ("finish", 0, (0, 0), False),
    ],
)
def test_a_rollout_goes_on_under_versions_that_may_be_mixed(
    on_update: OnUpdate, most: int | None, versions: tuple[int, ...], is_superseded: bool
) -> None:
    policy = Policy(versions[0])
    played = PlayedVersions(PolicyUpdates(policy, most, on_update))
    *before, last = versions
    for policy.policy_version in before:
        played.note_turn()
        assert played.asked == policy.policy_version
    policy.policy_version = last
    if is_superseded:
        with pytest.raises(Superseded):
            played.note_turn()
        assert played.asked == before[-1]
    else:
        played.note_turn()
        assert played.asked == last


async def test_a_pause_drops_a_rollout_though_the_version_is_the_same() -> None:
    updates = PolicyUpdates(Policy(None), None, "drop")
    played, later = PlayedVersions(updates), PlayedVersions(updates)
    played.note_turn()
    await updates.pause()
    later.note_turn()
    with pytest.raises(Superseded):
        played.note_turn()
