"""Samples for trainers: what the model saw and wrote, token by token, with what it earned.

A seat whose prompts extend each other gives one sample, in which the model's tokens have a mask of 1 and what the environment put
between them 0: concatenated, they are exactly the ids that the model saw. A prompt that does not go on from the turn before (the history
was rewritten, or tokenised anew) begins another sample, whose ``fork`` says so.

What infrastructure or its environment broke says nothing of the policy: it gives no samples, and no baseline contains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vfgym.endings import Ending, ending_of
from vfgym.errors import ConfigurationError, FailureCause
from vfgym.messages import Message
from vfgym.results.credit import (
    Account,
    Advantage,
    Baselines,
    Credit,
    Failures,
    accounts_of,
    check_choices,
    check_failures,
    failure_reward_of,
    group_of,
    is_dropped,
    mean_of_credits,
    settle_failures,
    trajectory_of,
)
from vfgym.state import MessagesView


class NoTokens(ConfigurationError):
    """Token ids are asked for of a turn that has none."""


@dataclass(slots=True)
class Tokens:
    """The token data of turns that extend each other: one entry for each token."""

    ids: list[int]
    mask: list[int]
    logprobs: list[float]
    num_prompt: int
    """How many of the tokens are those of the first prompt."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Where the completion of each turn begins and ends."""
    is_truncated: bool = False


@dataclass(slots=True)
class Sample:
    """One sample: turns of one seat, each of whose prompts goes on from the turn before."""

    example_id: Any
    group: Hashable
    """What the rollouts that it is compared with have in common."""
    rollout: int
    """Which of the rollouts that were given it is of, from 0."""
    turns: list[int]
    """Its turns: indices into the trajectory, from 0."""
    player: Any
    """Whose turns they are, in games for several players; else None."""
    reward: float
    """Its credit."""
    advantage: float | None
    """How far its credit is above the baseline of its group; None where none was asked for."""
    policy_versions: list[Any]
    """For each turn the ``policy_version`` of the agent that answered; None where it has none."""
    fork: str | None
    """Where and why its first prompt does not extend the seat's turn before; None for the seat's first turn."""
    ending: Ending
    """How its rollout ended."""
    attempt: int
    """Which attempt at its rollout it is of, from 1: later ones stand for what was broken, or had become too old (see `vfgym.rollout`)."""
    last_observation: list[Message] | None = field(repr=False)
    """Of a rollout that was truncated, what a value function bootstraps from: the conversation with what the environment said last, or as
    much of it as the model would have been shown. In self-play, the seat's own up to its last answer. None for other endings."""
    last_ids: list[int] | None = field(repr=False)
    """The token ids of `last_observation`. None for other endings; and where they cannot be known: a turn has no tokens, or the environment
    said something that whoever answers cannot tokenise (see `vfgym.clients.Client.prompt_ids`), as in rows that were saved without them."""
    _tokens: Tokens | str = field(repr=False)
    """Its tokens, or why there are none."""

    @property
    def terminated(self) -> bool:
        """Whether the task of its rollout was over."""
        return self.ending is Ending.TERMINATED

    @property
    def truncated(self) -> bool:
        """Whether a limit that belongs to the task ended its rollout: what would have come is worth something (`last_observation`)."""
        return self.ending is Ending.TRUNCATED

    @property
    def cut(self) -> bool:
        """Whether a limit of whoever runs it, or of resources, ended its rollout."""
        return self.ending is Ending.CUT

    @property
    def failed(self) -> bool:
        """Whether its rollout failed."""
        return self.ending.failed

    @property
    def cause(self) -> FailureCause | None:
        """By whose doing its rollout failed; None where it did not."""
        return self.ending.cause

    @property
    def tokens(self) -> Tokens:
        """Its token data.

        Raises:
            NoTokens: If a turn has none; the text names it.
        """
        if isinstance(self._tokens, str):
            raise NoTokens(self._tokens)
        return self._tokens

    @property
    def ids(self) -> list[int]:
        """Token ids: the first prompt, the completions, and what came between (raises `NoTokens` where there are none)."""
        return self.tokens.ids

    @property
    def mask(self) -> list[int]:
        """For each id, 1 where the model wrote it and 0 where it was shown it."""
        return self.tokens.mask

    @property
    def logprobs(self) -> list[float]:
        """For each id, its log-probability (nats) when it was sampled; 0.0 where the mask is 0."""
        return self.tokens.logprobs

    @property
    def num_prompt_ids(self) -> int:
        """How many of the ids are those of the first prompt."""
        return self.tokens.num_prompt

    @property
    def is_truncated(self) -> bool:
        """Whether a limit cut something off of its tokens. How its rollout ended, `ending` says."""
        return self.tokens.is_truncated


class Samples(list[Sample]):
    """Samples of rollouts, and how many of these gave none because they say nothing of the policy."""

    def __init__(self, found: Iterable[Sample] = (), dropped: Mapping[FailureCause, int] | None = None) -> None:
        """Hold samples."""
        super().__init__(found)
        self.dropped: Counter[FailureCause] = Counter(dropped or {})
        """How many rollouts were left out, by whose doing they failed."""


def samples(
    rollouts: Iterable[Mapping[str, Any]],
    *,
    credit: Credit = "return",
    gamma: float = 1.0,
    advantage: Advantage | None = "group",
    player: str = "own",
    failures: Failures = "drop",
) -> Samples:
    """Return the samples of rollouts, in the order of rollouts and then of their first turns.

    Args:
        rollouts: States, or rows of results that were kept with ``state_columns=["trajectory"]``; both give the same.
        credit: What a sample is rewarded with. ``"return"``: all that the rollout earned its seat. ``"step"``: what the sample's own
            turns earned. ``"to_go"``: what was earned from its first turn on, each further turn discounted by `gamma`. What a seat earned
            in the turns of others belongs to its own last turn before them (its first, where it had none).
        gamma: Discount of each further turn of the seat, whatever others did in between; from 0 to 1, below 1 with ``"to_go"`` only.
        advantage: What is taken off the credit. ``"group"``: the mean over all rollouts of the group of what they earned from the same turn
            of the seat on (0 for one that has ended); with ``"step"``, of what each earned in the same turns; with ``"return"``, the
            mean return. ``"leave_one_out"``: the mean of the other rollouts; nothing where there are none. ``"group_std"``: as
            ``"group"``, divided by the population standard deviation; 0.0 where that is 0. None: no advantages.
        player: ``"own"``: each seat is credited with what it earned itself. Or the name of the player whose rewards count for all.
        failures: What becomes of rollouts that infrastructure or their environment broke. ``"drop"``: they give no samples, are in no
            baseline, and are counted in `Samples.dropped`. ``"least"``: they count as if the policy had failed.

    A group is ``rollout["group"]`` where there is one, else ``example_id``. A rollout that failed by the policy's doing, or was cut, counts
    with the least of what it earned, of its environment's ``failure_reward``, and of what the others of its group earned that came to an
    end of their own (see `vfgym.results.credit.settle_failures`). All equal, a group's advantages are exactly 0.0 (but for a single rollout
    with ``"leave_one_out"``, which has nothing taken off).

    Raises:
        ConfigurationError: If a rollout has no trajectory, a reward is no number, or a choice does not exist.
    """
    check_choices(credit, gamma, advantage)
    check_failures(failures)
    rollouts = list(rollouts)
    kept = {number: accounts_of(rollout, player) for number, rollout in enumerate(rollouts) if not is_dropped(rollout, failures)}
    baselines = Baselines(credit, gamma, advantage or "group")
    for number, own in kept.items():
        baselines.add(group_of(rollouts[number]), own)
    baselines.settle()
    causes = (ending_of(rollout).cause for number, rollout in enumerate(rollouts) if number not in kept)
    found = Samples(dropped=Counter(cause for cause in causes if cause is not None))
    for number, own in kept.items():
        of_rollout: list[Sample] = []
        for account in own:
            of_rollout += _of_seat(number, rollouts[number], account, credit, gamma, baselines if advantage is not None else None)
        found += sorted(of_rollout, key=lambda sample: sample.turns[0])
    return found


def group_rewards(rollouts: Sequence[Mapping[str, Any]], failures: Failures = "drop") -> list[float | None]:
    """Return what the rollouts of one group count with: their rewards, and what failing costs for those that failed or were cut.

    Args:
        rollouts: The rollouts.
        failures: As for `samples`. What is dropped has None.
    """
    members = {
        number: Account(
            None, total=float(rollout.get("reward") or 0.0), ending=ending_of(rollout), failure_reward=failure_reward_of(rollout)
        )
        for number, rollout in enumerate(rollouts)
        if not is_dropped(rollout, failures)
    }
    settle_failures(list(members.values()))
    return [members[number].total if number in members else None for number in range(len(rollouts))]


def group_advantages(rollouts: Sequence[Mapping[str, Any]], rewards: Sequence[float | None], *, has_own: bool) -> list[float]:
    """Return how far the rollouts of one group are above it: each reward minus the mean, or the rubric's own advantage.

    Args:
        rollouts: The rollouts; their rewards, where one failed, are not what they count with.
        rewards: What they count with (see `group_rewards`). One with None has an advantage of 0.0: nothing is learned from it.
        has_own: Whether their rubric gave them advantages of its own; not to those that failed or were cut.
    """
    counted = [reward for reward in rewards if reward is not None]
    mean = mean_of_credits(counted) if counted else 0.0
    return [
        0.0 if reward is None else rollout["advantage"] if has_own and ending_of(rollout).counts_with_return else reward - mean
        for rollout, reward in zip(rollouts, rewards, strict=True)
    ]


def _of_seat(
    number: int, rollout: Mapping[str, Any], account: Account, credit: Credit, gamma: float, baselines: Baselines | None
) -> Iterable[Sample]:
    trajectory = trajectory_of(rollout)
    group, example_id = group_of(rollout), rollout.get("example_id")
    last_observation, last_ids = _last_of_seat(rollout, account)
    first = 0
    for turns, fork in _chains(trajectory, account.turns):
        count = len(turns)
        yield Sample(
            example_id=example_id,
            group=group,
            rollout=number,
            turns=turns,
            player=account.seat,
            reward=account.credit(credit, gamma, first, count),
            advantage=None if baselines is None else baselines.advantage(group, account, first, count),
            policy_versions=[(trajectory[turn].get("extras") or {}).get("policy_version") for turn in turns],
            fork=fork,
            ending=account.ending,
            attempt=rollout.get("attempt") or 1,
            last_observation=last_observation,
            last_ids=last_ids,
            _tokens=_tokens_or_not(example_id, trajectory, turns),
        )
        first += count


def _last_of_seat(rollout: Mapping[str, Any], account: Account) -> tuple[list[Message] | None, list[int] | None]:
    """Return the last observation of a truncated rollout, as a seat saw it, and its token ids."""
    if account.ending is not Ending.TRUNCATED or not account.turns:
        return None, None
    last = trajectory_of(rollout)[account.turns[-1]]
    if (last.get("extras") or {}).get("self_play"):
        return [*last["prompt"], *last["completion"]], ids_with_answer(last)
    return last_observation_of(rollout), last_ids_of(rollout)


def last_observation_of(rollout: Mapping[str, Any]) -> list[Message]:
    """Return the whole conversation of a rollout; or what was noted as ``rollout["last_observation"]``, where the model is shown less."""
    noted = rollout.get("last_observation")
    return [*(rollout.get("prompt") or ()), *(rollout.get("completion") or ())] if noted is None else noted


def last_ids_of(rollout: Mapping[str, Any]) -> list[int] | None:
    """Return the token ids of the last observation of a rollout; None where they are not known."""
    noted = rollout.get("last_ids")
    if noted is not None:
        return list(noted)
    last, observation = trajectory_of(rollout)[-1], last_observation_of(rollout)
    has_more = len(observation) != len(last["prompt"]) + len(last["completion"])
    return None if has_more else ids_with_answer(last)


def ids_with_answer(step: Mapping[str, Any]) -> list[int] | None:
    """Return the token ids of a turn's prompt and answer; None where it has none, or not all of them."""
    tokens = step.get("tokens")
    if not isinstance(tokens, Mapping) or tokens.get("is_truncated"):
        return None
    return [*tokens["prompt_ids"], *tokens["completion_ids"]]


def _chains(trajectory: Sequence[Mapping[str, Any]], turns: Sequence[int]) -> Iterable[tuple[list[int], str | None]]:
    """Give the runs of turns in which each prompt extends the turn before, and why the first of them does not."""
    chain: list[int] = []
    reason: str | None = None
    for turn in turns:
        fork = None if not chain else _fork(trajectory, chain[-1], turn)
        if fork is not None:
            yield chain, reason
            chain, reason = [], fork
        chain.append(turn)
    if chain:
        yield chain, reason


def _fork(trajectory: Sequence[Mapping[str, Any]], before: int, turn: int) -> str | None:
    """Say where and why a turn does not extend the seat's turn before; None where it does."""
    earlier, later = trajectory[before], trajectory[turn]
    old, new = earlier.get("tokens"), later.get("tokens")
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        known, ids = [*old["prompt_ids"], *old["completion_ids"]], new["prompt_ids"]
        if ids[: len(known)] == known:
            return None
        place = next((i for i, (a, b) in enumerate(zip(known, ids, strict=False)) if a != b), min(len(known), len(ids)))
        part = "prompt" if place < len(old["prompt_ids"]) else "completion"
        is_same = _extends(earlier, later)
        why = "its messages go on from there, but were tokenised anew" if is_same else "its messages do not go on from there"
        return f"turn {turn} leaves turn {before} at token {place}, in the {part} of that turn: {why}"
    if _extends(earlier, later):
        return None
    return f"turn {turn} does not extend turn {before}: its messages do not go on from there"


def _extends(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    """Say whether the messages of a prompt begin with a turn's prompt and completion."""
    known, shown = earlier.get("prompt"), later.get("prompt")
    if not isinstance(known, list | MessagesView) or not isinstance(shown, list | MessagesView):
        return False
    told = [*known, *(earlier.get("completion") or [])]
    return len(shown) >= len(told) and list(shown[: len(told)]) == told


def join_tokens(example_id: Any, trajectory: Sequence[Mapping[str, Any]], turns: Sequence[int]) -> Tokens:
    """Return the tokens of turns that extend each other.

    Raises:
        NoTokens: If one of them has none.
        ConfigurationError: If its completion's ids, mask and log-probabilities are not as many.
    """
    joined = Tokens([], [], [], 0)
    for turn in turns:
        step = trajectory[turn]
        tokens = step.get("tokens")
        if not isinstance(tokens, Mapping):
            raise NoTokens(
                f"turn {turn} of example {example_id} has no token data: the model has to give token ids and log-probabilities"
                " (vfgym.ResponseTokens)"
            )
        prompt, completion = tokens["prompt_ids"], tokens["completion_ids"]
        mask, logprobs = tokens["completion_mask"], tokens["completion_logprobs"]
        if not len(completion) == len(mask) == len(logprobs):
            raise ConfigurationError(
                f"turn {turn} of example {example_id} has {len(completion)} completion ids, a mask of {len(mask)} and {len(logprobs)}"
                " log-probabilities: there must be one of each for each id"
            )
        between = prompt[len(joined.ids) :]
        if not joined.ids:
            joined.num_prompt = len(prompt)
        joined.ids += [*between, *completion]
        joined.spans.append((len(joined.ids) - len(completion), len(joined.ids)))
        joined.mask += [*[0] * len(between), *mask]
        joined.logprobs += [*[0.0] * len(between), *(value if kept else 0.0 for value, kept in zip(logprobs, mask, strict=True))]
        joined.is_truncated = joined.is_truncated or bool(step.get("is_truncated") or tokens.get("is_truncated"))
    return joined


def _tokens_or_not(example_id: Any, trajectory: Sequence[Mapping[str, Any]], turns: Sequence[int]) -> Tokens | str:
    try:
        return join_tokens(example_id, trajectory, turns)
    except NoTokens as error:
        return str(error)
