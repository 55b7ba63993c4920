"""The promises of an environment as checks, each of which can be a test of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.checks.another_process import find_source, replays_elsewhere
from vfgym.checks.comparison import Promise
from vfgym.checks.environment import Check, CheckedEnvironment
from vfgym.checks.rewards import reward_promises
from vfgym.checks.tool_calls import message_promises


@dataclass(frozen=True)
class EnvironmentCheck:
    """One promise of an environment. Calling it checks the promise; as text it is the promise, which is what a test is named after."""

    promise: str
    """What is promised."""
    carry_out: Callable[[], Check]
    """Checks it, and says how it went."""

    def __call__(self) -> str:
        """Check the promise, and return what was compared.

        Raises:
            AssertionError: If it does not hold; the text says what is wrong.
        """
        check = self.carry_out()
        if not check.passed:
            raise AssertionError(f"a promise is broken: {check.promise}\n{check.detail}")
        return check.detail

    def __str__(self) -> str:
        return self.promise


def checks(env: str | EnvSpec | Callable[[], gym.Env[Any, Any]], *, paid_for_nothing: float = 0.0) -> list[EnvironmentCheck]:
    """Return a check for each promise that concerns an environment, to parametrize a test over.

    These are the promises of `check_environment`, and with them those of an author: that a seed gives the same episodes in another process,
    that no message is lost and each tool call is answered, that tools take what their schemas say, and that a right answer earns more than
    a wrong one, and silence nothing. The environment is made once to see what
    concerns it, and anew for each check.

    >>> import vfgym
    >>> def make():
    ...     def exact(completion, answer, parser) -> float:
    ...         return float((parser.parse_answer(completion) or "").strip() == answer)
    ...
    ...     rows = [{"question": "6 * 7?", "answer": "42"}, {"question": "2 + 2?", "answer": "4"}]
    ...     return vfgym.SingleTurnEnv(dataset=rows, rubric=vfgym.Rubric(exact))
    >>> for check in checks(make):
    ...     if "pays" in str(check):
    ...         print(f"{check}: {check()}")
    pays within the range that it declares: not compared: it declares none (`failure_reward`, or the ranges of its reward functions)
    pays more for a right answer than for a wrong one: 3 right answers
    pays nothing for silence, failure and garbage: 8 episodes

    Args:
        env: An id, a spec, or a function that makes the environment. Another process can make it too if it is a function of a module or a
            class, and no lambda.
        paid_for_nothing: The most that an episode may earn in which nobody answers, the model fails, or all answers are garbage. Of a game
            that pays for each turn survived, for one, it is more than 0.

    Raises:
        ConfigurationError: If there is no chat environment to check.
    """
    checked = CheckedEnvironment(env)
    promises: list[Promise] = checked.list_promises()
    if not checked.definition.requires_group_rollouts:
        promises += message_promises(checked.definition, checked.make)
        promises += reward_promises(checked.make, paid_for_nothing)
        source = find_source(env)
        if source is not None:
            promises.append(("replays the same episodes in another process", lambda: replays_elsewhere(checked, source)))
    return [_check_of(checked, promise) for promise in promises]


def _check_of(checked: CheckedEnvironment, promise: Promise) -> EnvironmentCheck:
    return EnvironmentCheck(promise[0], lambda: checked.carry_out(promise))
