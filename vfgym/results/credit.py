"""What each turn of a rollout is credited with, and how far that is above what the rollouts of its group earned on average.

A turn earns ``step["extras"]["reward"]``; in self-play, where each seat has an account of its own, ``step["extras"]["rewards"]`` of the
seat that is credited. What a seat earned in the turns of others belongs to its own last turn before them (to its first, where it had none),
so that what a seat's turns earned sums to its return. So does what a rollout was rewarded with beyond its turns: the last one earned it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from vfgym.endings import Ending, ending_of
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.state import State

Credit: TypeAlias = Literal["return", "step", "to_go"]
"""What a sample is credited with: all that its rollout earned; what its own turns earned; or all from its first turn on."""

Advantage: TypeAlias = Literal["group", "leave_one_out", "group_std"]
"""What is taken off a credit: the group's mean; the mean of the others; the group's mean, over its population deviation."""

Failures: TypeAlias = Literal["drop", "least"]
"""What becomes of rollouts that infrastructure or their environment broke: they are left out, or count like the policy's failures."""


class NoTrajectory(ConfigurationError):
    """A rollout whose turns are asked for was kept without them."""


@dataclass(slots=True)
class Account:
    """What one seat of one rollout earned, turn by turn."""

    seat: Any
    """Who is credited: the player of these turns, or None in games for one."""
    turns: list[int] = field(default_factory=list)
    """The seat's own turns: indices into the trajectory."""
    earned: list[float] = field(default_factory=list)
    """What each of them earned, with what the turns of others after it did."""
    total: float = 0.0
    """What the rollout earned the seat, which may be settled later (see `settle_failures`)."""
    ending: Ending = Ending.TERMINATED
    """How the rollout ended."""
    failure_reward: float | None = None
    """What its environment declares that failing counts with, where it failed or was cut; None where it declares nothing."""

    @classmethod
    def of_turns(cls, seat: Any, turns: list[int], earned: Sequence[float]) -> Account:
        """Return the account of a seat, of what each turn of the trajectory earned it, whoever's turn that was."""
        total = _sum(earned)
        if len(turns) == len(earned):
            return cls(seat, turns, list(earned), total)
        own = [0.0] * len(turns)
        for turn, reward in enumerate(earned if turns else ()):
            own[max(0, bisect_right(turns, turn) - 1)] += reward
        return cls(seat, turns, own, total)

    def settle(self, total: float) -> None:
        """Let the rollout have earned this in all: what differs was earned by the seat's last turn."""
        if self.earned and total != self.total:
            self.earned[-1] += total - self.total
        self.total = total

    def credit(self, credit: Credit, gamma: float, first: int, count: int) -> float:
        """Return what some of the seat's own turns are credited with.

        Args:
            credit: What they are credited with.
            gamma: Discount of each further turn of the seat, for ``"to_go"``.
            first: The first of them, as a number among the seat's own turns.
            count: How many they are.

        Returns:
            The credit; 0.0 for turns that the rollout does not have. The return of a rollout is that of all its turns.
        """
        if credit == "return":
            return self.total
        if credit == "step":
            return _sum(self.earned[first : first + count])
        if first >= len(self.turns):
            return self.total if first == 0 else 0.0
        if gamma == 1.0:
            return _sum(self.earned[first:])
        return _sum(gamma**distance * reward for distance, reward in enumerate(self.earned[first:]))


def _sum(numbers: Iterable[float]) -> float:
    """Add up from left to right, as the rewards of an episode are."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def mean_of_credits(numbers: Sequence[float]) -> float:
    """Return the mean of some numbers: of equal ones that very number, which their sum over their count need not be."""
    return _between(math.fsum(numbers) / len(numbers), numbers)


def _between(mean: float, numbers: Sequence[float]) -> float:
    """Return a mean that was rounded, no further out than the numbers that it is of."""
    return min(max(mean, min(numbers)), max(numbers))


def check_choices(credit: str, gamma: float, advantage: str | None) -> None:
    """Check what a caller chose.

    Raises:
        ConfigurationError: If there is no such credit or advantage, or the discount does not fit.
    """
    check_word("credit", credit, get_args(Credit))
    check_word("advantage", advantage, (*get_args(Advantage), None))
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0.0 <= gamma <= 1.0:
        raise ConfigurationError(f"gamma, the discount of a turn, must be a number from 0 to 1, got {gamma!r}")
    if gamma != 1.0 and credit != "to_go":
        raise ConfigurationError(f'gamma={gamma} discounts what is yet to come, so it goes with credit="to_go" alone, not with {credit!r}')


def check_word(name: str, value: object, known: Sequence[str | None]) -> None:
    """Check that a caller chose one of some words.

    Raises:
        ConfigurationError: If it is none of them.
    """
    if value not in known:
        words = ", ".join(map(repr, known))
        raise ConfigurationError(f"{name} must be one of {words}; got {value!r}.{did_you_mean(str(value), [str(each) for each in known])}")


def check_failures(failures: str) -> None:
    """Check what is to become of rollouts that failed.

    Raises:
        ConfigurationError: If there is no such choice.
    """
    check_word("failures", failures, get_args(Failures))


def is_dropped(rollout: Mapping[str, Any], failures: Failures) -> bool:
    """Say whether a rollout says nothing of the policy and is left out: infrastructure or its environment broke it."""
    return failures == "drop" and ending_of(rollout) in (Ending.ENVIRONMENT_FAILED, Ending.INFRASTRUCTURE_FAILED)


def trajectory_of(rollout: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the turns of a rollout.

    Raises:
        NoTrajectory: If it was kept without them.
    """
    trajectory = rollout.get("trajectory")
    if not isinstance(trajectory, list):
        raise NoTrajectory(
            f"example {rollout.get('example_id')} has no trajectory, and its turns stand there: keep it with state_columns=['trajectory']"
        )
    return trajectory


def group_of(rollout: Mapping[str, Any]) -> Hashable:
    """Return what names the group of a rollout: its ``group`` where it has one, else its ``example_id``."""
    group: Hashable = rollout.get("group")
    return rollout.get("example_id") if group is None else group


def accounts_of(rollout: Mapping[str, Any], player: str = "own") -> list[Account]:
    """Return what a rollout earned each seat, in the order of their first turns; then those that had none.

    Args:
        rollout: A state or a row, with its trajectory.
        player: ``"own"`` for what each seat earned itself, or the name of the player whose rewards all seats are credited with.

    Raises:
        ConfigurationError: If there is no such player, or a reward is not a finite number.
    """
    trajectory = trajectory_of(rollout)
    turns_of: dict[str, tuple[Any, list[int]]] = {}
    for index, step in enumerate(trajectory):
        seat = _extras(step).get("player")
        turns_of.setdefault(str(seat), (seat, []))[1].append(index)
    is_self_play = any(_extras(step).get("self_play") for step in trajectory)
    if is_self_play:
        for step in trajectory:
            for seat in _extras(step).get("rewards") or ():
                turns_of.setdefault(str(seat), (seat, []))
    accounts: list[Account] = []
    for seat, turns in turns_of.values():
        if is_self_play or player != "own":
            name = seat if player == "own" else player
            earned = [_reward_of_player(rollout, index, step, name) for index, step in enumerate(trajectory)]
        else:
            earned = [float(_extras(step).get("reward") or 0.0) for step in trajectory]
        _check_finite(rollout, earned)
        account = Account.of_turns(seat, turns, earned)
        if not is_self_play and player == "own":
            account.settle(float(rollout.get("reward") or 0.0))
        accounts.append(account)
    accounts = accounts or [Account(None, total=float(rollout.get("reward") or 0.0))]
    ending, declared = ending_of(rollout), failure_reward_of(rollout)
    for account in accounts:
        _check_total(rollout, account.total)
        account.ending, account.failure_reward = ending, declared
    return accounts


def _extras(step: Mapping[str, Any]) -> Mapping[str, Any]:
    return step.get("extras") or {}


def _reward_of_player(rollout: Mapping[str, Any], turn: int, step: Mapping[str, Any], name: Any) -> float:
    rewards = _extras(step).get("rewards")
    if not isinstance(rewards, Mapping):
        raise ConfigurationError(f"turn {turn} of example {rollout.get('example_id')} does not say what it earned each player")
    for known, reward in rewards.items():
        if known == name or str(known) == str(name):  # JSON's keys are text
            return float(reward)
    known = ", ".join(map(str, rewards))
    raise ConfigurationError(f"example {rollout.get('example_id')} has no player {name!r}; its players are {known}")


def _check_finite(rollout: Mapping[str, Any], earned: Iterable[float]) -> None:
    for turn, reward in enumerate(earned):
        if not math.isfinite(reward):
            raise ConfigurationError(
                f"turn {turn} of example {rollout.get('example_id')} earned {reward}: a reward must be a finite number"
            )


def _check_total(rollout: Mapping[str, Any], total: float) -> None:
    if not math.isfinite(total):
        raise ConfigurationError(f"example {rollout.get('example_id')} was rewarded with {total}, which is not a finite number")


def failure_reward_of(rollout: Mapping[str, Any]) -> float | None:
    """Return what the environment of a rollout declares that failing counts with; None where it declares nothing, or nothing failed."""
    if ending_of(rollout).counts_with_return:
        return None
    if isinstance(rollout, State):
        return rollout.failure_reward
    return rollout["failure_reward"] if "failure_reward" in rollout else rollout.get("counted_reward")


def settle_failures(members: Sequence[Account]) -> None:
    """Let the rollouts of a group that failed or were cut count with what failing earns, so that nobody gains by it.

    That is the least of their own return, of what their environment declares (``failure_reward``), and of what the rollouts earned that
    came to an end of their own. Where nothing is declared and none did, all count with the least of what they earned, and of 0.
    """
    finished = [member.total for member in members if member.ending.counts_with_return]
    failing = [member for member in members if not member.ending.counts_with_return]
    declared = [member.failure_reward for member in failing if member.failure_reward is not None]
    least = min([*finished, *declared] or [0.0, *(member.total for member in failing)], default=0.0)
    for member in failing:
        member.settle(min(member.total, least))


class Baselines:
    """What the rollouts of each group earned, seat by seat: what advantages are made of."""

    def __init__(self, credit: Credit, gamma: float, advantage: Advantage) -> None:
        """Compare credits of this kind in this way."""
        self._credit, self._gamma, self._advantage = credit, gamma, advantage
        self._groups: dict[Hashable, list[list[Account]]] = defaultdict(list)
        self._members: dict[tuple[Hashable, str], list[Account]] = {}
        self._credits: dict[tuple[Hashable, str, int, int], list[float]] = {}

    def add(self, group: Hashable, accounts: list[Account]) -> None:
        """Add the accounts of a rollout."""
        self._groups[group].append(accounts)

    def settle(self) -> None:
        """Settle the rollouts that failed or were cut, when all have been added."""
        for group, rollouts in self._groups.items():
            seats = dict.fromkeys(str(account.seat) for accounts in rollouts for account in accounts if account.turns)
            for seat in seats or {"None": None}:
                members = self._members[group, seat] = [_account_of(accounts, seat) for accounts in rollouts]
                settle_failures(members)

    def advantage(self, group: Hashable, account: Account, first: int, count: int) -> float:
        """Return how far a credit is above the group's (see `Account.credit`)."""
        if self._credit == "return":
            first = count = 0
        elif self._credit == "to_go":
            count = 0
        key = (group, str(account.seat), first, count)
        if key not in self._credits:
            self._credits[key] = [member.credit(self._credit, self._gamma, first, count) for member in self._members[key[:2]]]
        credits = self._credits[key]
        own = account.credit(self._credit, self._gamma, first, count)
        if self._advantage == "leave_one_out":
            return own - _between((math.fsum(credits) - own) / (len(credits) - 1), credits) if len(credits) > 1 else own
        mean = mean_of_credits(credits)
        if self._advantage == "group" or own == mean:
            return own - mean
        return (own - mean) / (math.hypot(*(each - mean for each in credits)) / math.sqrt(len(credits)))


def _account_of(accounts: list[Account], seat: str) -> Account:
    """Return the account of a seat; that of a rollout that gave nobody a turn counts for every seat."""
    for account in accounts:
        if str(account.seat) == seat:
            return account
    first = accounts[0]
    account = Account(seat, total=0.0 if first.turns else first.total, ending=first.ending, failure_reward=first.failure_reward)
    accounts.append(account)
    return account
