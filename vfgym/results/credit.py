"""What each turn of a rollout is credited with, and how far that is above what the rollouts of its group earned on average.

A turn earns ``step["extras"]["reward"]``; in self-play, where each seat has an account of its own, ``step["extras"]["rewards"]`` of the
seat that is credited. What a rollout was rewarded with beyond its turns (a failed one counts with less than it earned) is earned by its
last turn.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.results.counting import is_failed
from vfgym.state import State

Credit: TypeAlias = Literal["return", "step", "to_go"]
"""What a sample is credited with: all that its rollout earned; what its own turns earned; or all from its first turn on."""

Advantage: TypeAlias = Literal["group", "leave_one_out", "group_std"]
"""What is taken off a credit: the group's mean; the mean of the others; the group's mean, over its population deviation."""


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
    """What each turn of the trajectory earned the seat."""
    total: float = 0.0
    """What the rollout earned the seat, which may be settled later (see `settle_failures`)."""
    failed: bool = False
    failure_reward: float | None = None
    """What failing counts with, as the environment declares; None where it declares nothing."""

    def settle(self, total: float) -> None:
        """Let the rollout have earned this in all: what differs was earned by the seat's last turn."""
        if self.earned and total != self.total:
            self.earned[self.turns[-1] if self.turns else -1] += total - self.total
        self.total = total

    def credit(self, credit: Credit, gamma: float, first: int, count: int) -> float:
        """Return what some of the seat's own turns are credited with.

        Args:
            credit: What they are credited with.
            gamma: Discount a turn of the trajectory, for ``"to_go"``.
            first: The first of them, as a number among the seat's own turns.
            count: How many they are.

        Returns:
            The credit; 0.0 for turns that the rollout does not have. The return of a rollout is that of all its turns.
        """
        if credit == "return":
            return self.total
        if credit == "step":
            return _sum(self.earned[turn] for turn in self.turns[first : first + count])
        if first >= len(self.turns):
            return self.total if first == 0 else 0.0
        begin = self.turns[first]
        if gamma == 1.0:
            return _sum(self.earned[begin:])
        return _sum(gamma**distance * reward for distance, reward in enumerate(self.earned[begin:]))


def _sum(numbers: Iterable[float]) -> float:
    """Add up from left to right, as the rewards of an episode are."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def check_choices(credit: str, gamma: float, advantage: str | None) -> None:
    """Check what a caller chose.

    Raises:
        ConfigurationError: If there is no such credit or advantage, or the discount does not fit.
    """
    for name, value, known in (("credit", credit, get_args(Credit)), ("advantage", advantage, (*get_args(Advantage), None))):
        if value not in known:
            words = ", ".join(map(repr, known))
            raise ConfigurationError(
                f"{name} must be one of {words}; got {value!r}.{did_you_mean(str(value), [str(each) for each in known])}"
            )
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0.0 <= gamma <= 1.0:
        raise ConfigurationError(f"gamma, the discount of a turn, must be a number from 0 to 1, got {gamma!r}")
    if gamma != 1.0 and credit != "to_go":
        raise ConfigurationError(f'gamma={gamma} discounts what is yet to come, so it goes with credit="to_go" alone, not with {credit!r}')


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
    seats: dict[str, Account] = {}
    for index, step in enumerate(trajectory):
        seat = _extras(step).get("player")
        seats.setdefault(str(seat), Account(seat)).turns.append(index)
    is_self_play = any(_extras(step).get("self_play") for step in trajectory)
    if is_self_play:
        for step in trajectory:
            for seat in _extras(step).get("rewards") or ():
                seats.setdefault(str(seat), Account(seat))
    for account in seats.values():
        if is_self_play or player != "own":
            name = account.seat if player == "own" else player
            account.earned = [_reward_of_player(rollout, index, step, name) for index, step in enumerate(trajectory)]
        else:
            account.earned = [float(_extras(step).get("reward") or 0.0) for step in trajectory]
        account.total = _sum(account.earned)
        if not is_self_play and player == "own":
            account.settle(float(rollout.get("reward") or 0.0))
        _check_finite(rollout, account)
    accounts = list(seats.values()) or [Account(None, total=float(rollout.get("reward") or 0.0))]
    for account in accounts:
        account.failed, account.failure_reward = failure_of(rollout)
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


def _check_finite(rollout: Mapping[str, Any], account: Account) -> None:
    for turn, earned in enumerate(account.earned):
        if not math.isfinite(earned):
            raise ConfigurationError(
                f"turn {turn} of example {rollout.get('example_id')} earned {earned}: a reward must be a finite number"
            )
    if not math.isfinite(account.total):
        raise ConfigurationError(f"example {rollout.get('example_id')} was rewarded with {account.total}, which is not a finite number")


def failure_of(rollout: Mapping[str, Any]) -> tuple[bool, float | None]:
    """Say whether a rollout failed, and what its environment declares that failing counts with; None where it declares nothing."""
    if isinstance(rollout, State):
        return rollout.has_failed, rollout.failure_reward
    failed = ("error" in rollout or "failed" in rollout) and is_failed(rollout)
    return failed, rollout.get("counted_reward") if failed else None


def settle_failures(members: Sequence[Account]) -> None:
    """Let the failed rollouts of a group count with what failing earns, so that nobody gains by it.

    That is the least of what their environment declares (``failure_reward``) and of what the rollouts earned that did not fail; 0 where
    nothing is declared and all failed.
    """
    finished = [member.total for member in members if not member.failed]
    for member in members:
        if member.failed:
            declared = [] if member.failure_reward is None else [member.failure_reward]
            member.settle(min([*declared, *finished], default=0.0))


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
        """Settle the failed rollouts, when all have been added."""
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
            return own - (math.fsum(credits) - own) / (len(credits) - 1) if len(credits) > 1 else own
        mean = math.fsum(credits) / len(credits)
        if self._advantage == "group":
            return own - mean
        deviation = math.sqrt(math.fsum((each - mean) ** 2 for each in credits) / len(credits))
        return (own - mean) / deviation if deviation else 0.0


def _account_of(accounts: list[Account], seat: str) -> Account:
    """Return the account of a seat; that of a rollout that gave nobody a turn counts for every seat."""
    for account in accounts:
        if str(account.seat) == seat:
            return account
    first = accounts[0]
    account = Account(seat, total=0.0 if first.turns else first.total, failed=first.failed, failure_reward=first.failure_reward)
    accounts.append(account)
    return account
