"""Checks of what an environment pays: within its range, more for a right answer than for a wrong one, nothing for nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym

from vfgym.agents import OracleAgent
from vfgym.agents.base import seat_of
from vfgym.aio.background import wait
from vfgym.calls import is_awaitable
from vfgym.checks.comparison import Broken, Promise
from vfgym.checks.episodes import LONGEST, SILLY_ANSWERS, describe_message, episode_of, play_episode, score_of
from vfgym.errors import ConfigurationError, ModelError

_SLACK = 1e-9
"""By how much a sum of rewards may miss its range."""

_TASKS = 3
"""Tasks of which right and wrong answers are compared."""

_WRONG_ANSWERS = ("", "I do not know.", "\N{PILE OF POO}")


def reward_promises(make: Callable[[], gym.Env[Any, Any]], paid_for_nothing: float) -> list[Promise]:
    """Return what is promised of rewards.

    Args:
        make: Makes the environment.
        paid_for_nothing: The most that an episode of silence, of a failure, or of garbage may earn.
    """
    return [
        ("pays within the range that it declares", lambda: _pays_in_range(make)),
        ("pays more for a right answer than for a wrong one", lambda: _distinguishes_right_answers(make)),
        ("pays nothing for silence, failure and garbage", lambda: _pays_for_something(make, paid_for_nothing)),
    ]


def _silent_and_garbage(env: gym.Env[Any, Any]) -> Iterator[tuple[str, float]]:
    """Play episodes in which nothing is achieved; yield what was answered, and what the episode earned."""
    seat = seat_of(env)
    env.reset(seed=0)
    yield "that ended before any answer", score_of(env)
    env.reset(seed=0)
    seat.fail(ModelError("the model cannot be reached"))
    yield "in which the model failed", score_of(env)
    for answer in SILLY_ANSWERS:
        yield f"of nothing but the answer {describe_message(answer)}", _score_same(env, 0, answer)


def _pays_in_range(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    env.action_space.seed(1)
    definition = seat_of(env).definition
    low, high = definition.reward_range or (-math.inf, math.inf)
    if definition.failure_reward is not None:
        low = max(low, definition.failure_reward)
    if not definition.score_rollouts:
        return "not compared: its episodes are not scored"
    if (low, high) == (-math.inf, math.inf):
        return "not compared: it declares none (`failure_reward`, or the ranges of its reward functions)"
    episodes = [*_silent_and_garbage(env), *_sampled(env), *_right(env)]
    for what, score in episodes:
        if not low - _SLACK <= score <= high + _SLACK:
            raise Broken(f"an episode {what} earned {score}, which is not from {low:g} to {high:g}")
    return f"{len(episodes)} episodes from {low:g} to {high:g}"


def _sampled(env: gym.Env[Any, Any]) -> Iterator[tuple[str, float]]:
    for seed in range(3):
        play_episode(env, seed)
        yield f"of sampled answers (seed {seed})", score_of(env)


def _right(env: gym.Env[Any, Any]) -> Iterator[tuple[str, float]]:
    for number in range(_TASKS):
        example_id = _begin(env, number)
        if (score := _play_oracle(env)) is None:
            return
        yield f"of the oracle's answers to example {example_id}", score


def _begin(env: gym.Env[Any, Any], number: int) -> Any:
    """Begin the episode of one of the tasks, and return its ``example_id``."""
    _, info = env.reset(seed=number)
    return info["example_id"]


def _play_oracle(env: gym.Env[Any, Any]) -> float | None:
    """Play the episode that has begun as the oracle; return what it earned, None where there is no right answer."""
    try:
        answer = OracleAgent().for_episode(env)
    except ConfigurationError:
        return None
    observation, info = episode_of(env).conversation(), dict[str, Any]()  # which the oracle does not look at
    for _ in range(LONGEST):
        try:
            observation, _, terminated, truncated, info = env.step(answer(observation, info))
        except ModelError:  # it knows no right answer to a later turn
            return None
        if terminated or truncated:
            break
    return score_of(env)


class _RightAnswer(NamedTuple):
    """What the oracle says first to a task, and what its episode earns."""

    seed: int
    answer: Any
    score: float


def _distinguishes_right_answers(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    seat = seat_of(env)
    if not seat.definition.score_rollouts:
        return "not compared: its episodes are not scored"
    right: list[_RightAnswer] = []
    for seed in range(_TASKS):
        example_id = _begin(env, seed)
        first = seat.definition.oracle(seat.state)  # type: ignore[arg-type]  # an episode has begun
        first = wait(first) if is_awaitable(first) else first
        score = _play_oracle(env)
        if score is None:
            return "not compared: it knows no right answer (write `oracle`, or give the tasks an `answer`)"
        right.append(_RightAnswer(seed, first, score))
        for answer in _WRONG_ANSWERS:
            if answer != first and not (wrong := _score_same(env, seed, answer)) < score:
                told = f"the right answer {describe_message(first)} earned {score}, and {describe_message(answer)} earned {wrong}"
                raise Broken(f"example {example_id}: {told}")
    _expect_own_answers(env, right)
    return f"{_TASKS} right answers"


def _score_same(env: gym.Env[Any, Any], seed: int, answer: Any) -> float:
    """Return what an episode earns in which all answers are the same."""
    play_episode(env, seed, [answer] * LONGEST)
    return score_of(env)


def _expect_own_answers(env: gym.Env[Any, Any], right: list[_RightAnswer]) -> None:
    """Raise `Broken` if the right answer to another task is as good in all tasks. In some it may be right by chance."""
    told = ""
    for mine, other in zip(right, [*right[1:], right[0]], strict=True):
        if not isinstance(other.answer, str) or other.answer == mine.answer:
            continue
        score = _score_same(env, mine.seed, other.answer)
        if score < mine.score:
            return
        told = told or f"{describe_message(other.answer)} instead of {describe_message(mine.answer)} earned {score}"
    if told:
        raise Broken(f"the right answers to other tasks earn as much as those to the task itself: {told}")


def _pays_for_something(make: Callable[[], gym.Env[Any, Any]], most: float) -> str:
    env = make()
    if not seat_of(env).definition.score_rollouts:
        return "not compared: its episodes are not scored"
    num_episodes = 0
    for what, score in _silent_and_garbage(env):
        num_episodes += 1
        if not score <= most + _SLACK:
            metrics = seat_of(env).state["metrics"]  # type: ignore[index]  # an episode was played
            raise Broken(f"an episode {what} earned {score}, and should earn {most:g} at most; its metrics: {metrics}")
    return f"{num_episodes} episodes"
