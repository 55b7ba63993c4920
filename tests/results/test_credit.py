"""What each turn is credited with, and how far that is above what the group earned."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest

from vfgym.endings import Ending
from vfgym.errors import ConfigurationError
from vfgym.results.credit import (
    Account,
    Advantage,
    Baselines,
    Credit,
    NoTrajectory,
    accounts_of,
    check_choices,
    check_failures,
    failure_reward_of,
    group_of,
    is_dropped,
    settle_failures,
)
from vfgym.state import State


def row(*turns: dict[str, Any], reward: float | None = 0.0, **fields: Any) -> dict[str, Any]:
    return {"example_id": 3, "reward": reward, "error": None, "trajectory": [{"extras": extras} for extras in turns], **fields}


def failing(total: float, declared: float | None = None, ending: Ending = Ending.POLICY_FAILED) -> Account:
    return Account(None, [0], [total], total, ending, declared)


def test_turns_of_others_belong_to_the_seats_own_and_a_rollout_without_turns_has_its_return() -> None:
    account = Account.of_turns("b", [1, 3], [1.0, 2.0, 4.0, 8.0, 16.0])
    assert (account.earned, account.total) == ([7.0, 24.0], 31.0)
    idle = Account.of_turns("c", [], [1.0, 2.0])
    assert (idle.earned, idle.total) == ([], 3.0)
    account = Account(None, total=7.0)
    assert [account.credit("to_go", 0.5, first, 0) for first in (0, 1)] == [7.0, 0.0]
    assert account.credit("step", 1.0, 0, 1) == 0.0


@pytest.mark.parametrize(
    ("credit", "gamma", "first", "count", "expected"),
    [
        ("return", 1.0, 1, 1, 5.0),
        ("step", 1.0, 0, 1, 1.0),
        ("step", 1.0, 1, 1, 4.0),
        ("step", 1.0, 0, 2, 5.0),
        ("step", 1.0, 2, 1, 0.0),
        ("to_go", 1.0, 0, 0, 5.0),
        ("to_go", 0.5, 0, 0, 3.0),
        ("to_go", 0.5, 1, 0, 4.0),
        ("to_go", 0.0, 0, 0, 1.0),
        ("to_go", 0.5, 2, 0, 0.0),
    ],
)
def test_each_credit(credit: Credit, gamma: float, first: int, count: int, expected: float) -> None:
    account = Account.of_turns(None, [0, 1], [1.0, 3.0])
    account.settle(5.0)  # what the rollout earned beyond its turns, the last one did
    assert account.credit(credit, gamma, first, count) == expected


def test_each_seat_of_self_play_has_an_account_in_the_order_of_its_first_turn() -> None:
    turns = [{"player": player, "self_play": True, "rewards": {"0": 1.0, "1": -2.0, "2": 0.5}} for player in (1, 0, 1)]
    own = accounts_of(row(*turns))
    assert [(str(each.seat), each.turns, each.total) for each in own] == [("1", [0, 2], -6.0), ("0", [1], 3.0), ("2", [], 1.5)]
    assert [each.total for each in accounts_of(row(*turns), player="2")] == [1.5] * 3
    with pytest.raises(ConfigurationError, match="example 3 has no player '9'; its players are 0, 1, 2"):
        accounts_of(row(*turns), player="9")


def test_a_game_for_one_is_settled_with_its_reward_and_needs_its_trajectory() -> None:
    (account,) = accounts_of(row({"reward": 0.5}, {"reward": None}, reward=2.0, ending="cut", failure_reward=-1.0))
    assert (account.seat, account.earned, account.total) == (None, [0.5, 1.5], 2.0)
    assert (account.ending, account.failure_reward) == (Ending.CUT, -1.0)
    (account,) = accounts_of(row(reward=2.0))
    assert (account.turns, account.total) == ([], 2.0)
    with pytest.raises(NoTrajectory, match="example 3 has no trajectory"):
        accounts_of({"example_id": 3, "reward": 1.0})


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        (row({"reward": 0.0}, {"reward": math.nan}), "turn 1 of example 3 earned nan"),
        (row({"reward": -math.inf}), "turn 0 of example 3 earned -inf"),
        (row({"reward": 0.0}, reward=math.inf), "example 3 was rewarded with inf"),
        (row(reward=math.nan), "example 3 was rewarded with nan"),
        (row({"player": 0, "self_play": True}), "turn 0 of example 3 does not say what it earned each player"),
    ],
)
def test_what_cannot_be_credited_is_named(rollout: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        accounts_of(rollout)


def test_choices() -> None:
    for credit in get_args(Credit):
        for advantage in (*get_args(Advantage), None):
            check_choices(credit, 1, advantage)
    for gamma in (0, 0.5, 1.0):
        check_choices("to_go", gamma, None)
    check_failures("drop")
    check_failures("least")


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        (check_choices, ("retrun", 1.0, None), "credit must be one of .* Did you mean `return`"),
        (check_choices, ("step", 1.0, "mean"), "advantage must be one of"),
        (check_choices, ("step", 0.0, None), 'goes with credit="to_go" alone'),
        *((check_choices, ("to_go", gamma, None), "from 0 to 1, got") for gamma in (math.nan, "1", True, 1.5)),
        (check_failures, ("dorp",), r"failures must be one of 'drop', 'least'; got 'dorp'\. Did you mean `drop`"),
        (check_failures, (None,), "failures must be one of"),
    ],
)
def test_choices_that_there_are_not_are_refused(check: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check(*arguments)


@pytest.mark.parametrize("ending", Ending)
def test_only_what_says_nothing_of_the_policy_is_dropped(ending: Ending) -> None:
    assert is_dropped({"ending": ending}, "drop") == (ending in ("environment_failed", "infrastructure_failed"))
    assert not is_dropped({"ending": ending}, "least")
    declared = None if ending in ("terminated", "truncated") else 0.0
    assert failure_reward_of({"ending": ending, "failure_reward": 0.0, "counted_reward": 5.0}) == declared
    assert failure_reward_of({"ending": ending, "failure_reward": None, "counted_reward": 5.0}) is None
    assert failure_reward_of({"ending": ending, "counted_reward": 0.0}) == declared


def test_the_group_is_the_one_that_is_named() -> None:
    assert [group_of(each) for each in ({"example_id": 3}, {"group": None, "example_id": 3}, {"group": 0, "example_id": 3})] == [3, 3, 0]


@pytest.mark.parametrize(
    ("members", "settled"),
    [
        ([failing(2.0, ending=Ending.TERMINATED), failing(5.0), failing(1.0)], [2.0, 2.0, 1.0]),
        ([failing(2.0, ending=Ending.TRUNCATED), failing(5.0, 0.0), failing(-3.0, 0.0)], [2.0, 0.0, -3.0]),
        ([failing(3.0), failing(5.0, ending=Ending.CUT)], [0.0, 0.0]),
        ([failing(-1.0), failing(4.0)], [-1.0, -1.0]),
        ([failing(5.0, 1.0), failing(6.0)], [1.0, 1.0]),
        ([], []),
    ],
)
def test_nobody_gains_by_failing(members: list[Account], settled: list[float]) -> None:
    settle_failures(members)
    assert [member.total for member in members] == [sum(member.earned) for member in members] == settled


@pytest.mark.parametrize(
    ("advantage", "expected"),
    [
        ("group", [-1.0, 0.0, 1.0]),
        ("leave_one_out", [-1.5, 0.0, 1.5]),
        ("group_std", pytest.approx([-math.sqrt(1.5), 0.0, math.sqrt(1.5)])),
    ],
)
def test_each_advantage_is_over_the_own_group(advantage: Advantage, expected: Any) -> None:
    baselines = Baselines("return", 1.0, advantage)
    accounts = [Account(None, [0], [total], total) for total in (0.0, 1.0, 2.0)]
    alone, equal = Account(None, [0], [50.0], 50.0), [Account(None, [0], [0.1], 0.1) for _ in range(3)]
    for group, members in (("three", accounts), ("one", [alone]), ("equal", equal)):
        for member in members:
            baselines.add(group, [member])
    baselines.settle()
    assert [baselines.advantage("three", account, 0, 1) for account in accounts] == expected
    assert baselines.advantage("one", alone, 0, 1) == (50.0 if advantage == "leave_one_out" else 0.0)
    assert [baselines.advantage("equal", account, 0, 1) for account in equal] == [0.0] * 3


def test_turns_and_seats_are_compared_with_the_same_ones() -> None:
    baselines = Baselines("to_go", 1.0, "group")
    long, short = Account.of_turns("a", [0, 1], [1.0, 4.0]), Account.of_turns("a", [0], [3.0])
    other = Account.of_turns("b", [0], [100.0])
    baselines.add(0, [long, other])
    baselines.add(0, [short])
    baselines.settle()
    assert [baselines.advantage(0, long, first, 1) for first in (0, 1)] == [1.0, 2.0]
    assert baselines.advantage(0, other, 0, 1) == 50.0


def test_a_named_player_is_credited_in_a_game_that_is_not_self_play_and_nothing_is_settled() -> None:
    turns = [
        {"player": "a", "reward": 9.0, "rewards": {"a": 1.0, "b": -1.0}},
        {"player": "a", "reward": 9.0, "rewards": {"a": 2.0, "b": 0.0}},
    ]
    (account,) = accounts_of(row(*turns, reward=50.0), player="b")
    assert (account.seat, account.turns, account.earned, account.total) == ("a", [0, 1], [-1.0, 0.0], -1.0)
    (own,) = accounts_of(row(*turns, reward=50.0))
    assert (own.earned, own.total) == ([9.0, 41.0], 50.0)
    (nothing,) = accounts_of(row({"reward": 2.0}, reward=None))
    assert (nothing.earned, nothing.total) == ([0.0], 0.0)
    with_none = row({"reward": 1.0}, reward=1.0)
    with_none["trajectory"].append({"extras": None})
    assert accounts_of(with_none)[0].earned == [1.0, 0.0]


def test_of_a_state_the_declaration_is_its_own() -> None:
    state = State(failure_reward=5.0, ending=Ending.CUT)
    state.failure_reward = 0.0
    assert failure_reward_of(state) == 0.0
    state.failure_reward = None
    assert failure_reward_of(state) is None


def test_a_rollout_without_turns_counts_for_every_seat_and_one_in_which_a_seat_had_none_earned_it_nothing() -> None:
    baselines = Baselines("return", 1.0, "group")
    both = [Account.of_turns("a", [0], [4.0]), Account.of_turns("b", [0], [8.0])]
    baselines.add(0, both)
    baselines.add(0, [Account(None, total=-2.0, ending=Ending.POLICY_FAILED, failure_reward=-3.0)])
    baselines.add(0, [Account(None, total=6.0)])
    baselines.add(1, [idle := Account(None, total=3.0)])
    baselines.add(1, [Account(None, total=1.0)])
    baselines.settle()
    assert [baselines.advantage(0, account, 0, 1) for account in both] == [4.0 - (4.0 - 3.0 + 6.0) / 3, 8.0 - (8.0 - 3.0 + 6.0) / 3]
    assert baselines.advantage(1, idle, 0, 0) == 1.0, "nobody had a turn"
    alone = Baselines("return", 1.0, "group")
    alone.add(0, [seat := Account.of_turns("a", [0], [4.0])])
    alone.add(0, [Account.of_turns("b", [0], [50.0])])
    alone.settle()
    assert alone.advantage(0, seat, 0, 1) == 2.0
