"""`play`: one scripted episode, and what came of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym

from vfgym.agents.base import seat_of
from vfgym.endings import Ending
from vfgym.envs.seat import Action, transcript
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Message, ToolCall, content_text
from vfgym.state import State

ScriptedAnswer: TypeAlias = "Action | ToolCall | Sequence[ToolCall] | BaseException | Callable[[list[Message], dict[str, Any]], Any]"
"""What is answered in a turn: text, a message or a response; tool calls (see `call`); an exception, with which the model fails; or a
function of observation and info that returns one of these."""

_TOLERANCE = 1e-9
"""By how much a number may differ from what was expected of it."""


def call(tool: str, /, *, call_id: str | None = None, **arguments: Any) -> ToolCall:
    """Return a tool call, for `play`.

    >>> call("lookup", city="Oslo")
    {'id': 'call_lookup', 'type': 'function', 'function': {'name': 'lookup', 'arguments': '{"city": "Oslo"}'}}

    Args:
        tool: Name of the tool.
        call_id: Id of the call. `play` numbers those that have none, turn by turn.
        **arguments: What the tool is called with, as the model would write it.
    """
    return ToolCall(call_id or f"call_{tool}", tool, json.dumps(arguments))


@dataclass(frozen=True)
class PlayedEpisode:
    """What came of a scripted episode, or of its beginning."""

    observations: list[list[Message]]
    """What was to be answered: the first is that of `reset`, and after each answer there is one more."""
    rewards: list[float]
    """What each answer earned."""
    infos: list[dict[str, Any]]
    """The info of `reset`, and of each answer."""
    terminated: bool
    """Whether the task is over."""
    truncated: bool
    """Whether a limit ended it."""
    state: State
    """The state of the episode."""

    @property
    def reward(self) -> float:
        """What the episode has earned: its rewards, added up in their order."""
        total = 0.0
        for reward in self.rewards:
            total += reward
        return total

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended."""
        return self.terminated or self.truncated

    @property
    def info(self) -> dict[str, Any]:
        """The last info."""
        return self.infos[-1]

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the last info: 0.0 until the episode is over."""
        return dict(self.info["metrics"])

    @property
    def stop_condition(self) -> str | None:
        """Name of the stop condition that ended it; None where it goes on."""
        stopped_by: str | None = self.info["stop_condition"]
        return stopped_by

    @property
    def ending(self) -> Ending | None:
        """How it ended; None where it goes on."""
        return Ending(self.info["ending"]) if self.is_over else None

    @property
    def messages(self) -> list[Message]:
        """The conversation so far."""
        return self.observations[-1]

    @property
    def replies(self) -> list[list[Message]]:
        """What the environment said after each answer."""
        replies = []
        for before, after in zip(self.observations, self.observations[1:], strict=False):
            replies.append([message for message in after[len(before) :] if message["role"] != "assistant"])
        return replies

    def expect(
        self,
        *,
        reward: float | None = None,
        metrics: Mapping[str, float] | None = None,
        stop_condition: str | None = None,
        ending: str | None = None,
        says: str | None = None,
    ) -> PlayedEpisode:
        """Compare what came with what should come, and return the same episode.

        Args:
            reward: What the episode should have earned.
            metrics: Some of the metrics, with their values.
            stop_condition: Name of the stop condition that should have ended it.
            ending: How it should have ended (see `vfgym.endings.Ending`).
            says: Text that should stand in what the environment said last.

        Raises:
            AssertionError: If something differs. The text has all that differs, and the conversation.
        """
        problems = []
        if reward is not None and not math.isclose(self.reward, reward, abs_tol=_TOLERANCE):
            problems.append(f"the reward should be {reward}, and is {self.reward} (by turns: {self.rewards})")
        for name, value in (metrics or {}).items():
            if name not in self.metrics:
                problems.append(f"there is no metric {name!r}; there are {', '.join(self.metrics)}")
            elif not math.isclose(self.metrics[name], value, abs_tol=_TOLERANCE):
                problems.append(f"the metric {name!r} should be {value}, and is {self.metrics[name]}")
        if stop_condition is not None and self.stop_condition != stop_condition:
            problems.append(f"it should have ended by {stop_condition!r}, and {_describe_end(self.stop_condition)}")
        if ending is not None and self.ending != ending:
            problems.append(f"its ending should be {ending!r}, and {_describe_end(self.ending)}")
        last = self.replies[-1] if self.replies else self.messages
        if says is not None and not any(says in content_text(message["content"]) for message in last):
            problems.append(f"{says!r} should stand in what the environment said last: {[content_text(each['content']) for each in last]}")
        if problems:
            raise AssertionError("\n".join([*problems, "", str(self)]))
        return self

    def __str__(self) -> str:
        how = f"ended by {self.stop_condition!r} ({self.ending})" if self.is_over else "not over"
        error = self.info.get("error")
        lines = [transcript(self.messages), f"[{len(self.rewards)} answers, reward {self.reward}, {how}]"]
        return "\n".join(lines + ([f"error: {error}"] if error else []))

    def __repr__(self) -> str:
        return f"PlayedEpisode({len(self.rewards)} answers, reward={self.reward}, stop_condition={self.stop_condition!r})"


def _describe_end(ended_by: str | None) -> str:
    return "goes on" if ended_by is None else f"is {str(ended_by)!r}"


def play(
    env: gym.Env[Any, Any], answers: Sequence[ScriptedAnswer], *, seed: int | None = 0, options: dict[str, Any] | None = None
) -> PlayedEpisode:
    """Play an episode with these answers, as a model would that gives them, and return what came.

    The episode may go on after the last answer. The environment is left open, with its state to look at.

    >>> import vfgym
    >>> def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> env = vfgym.ToolEnv(tools=[add], dataset=[{"question": "1 + 2?"}])
    >>> played = play(env, [call("add", a=1, b=2), "It is 3."])
    >>> played.replies[0][0].content, played.stop_condition, played.metrics["add_calls"]
    ('3', 'no_tools_called', 1.0)
    >>> _ = played.expect(reward=0.0, ending="terminated")

    Args:
        env: The environment, with wrappers or without.
        answers: What is answered, turn by turn: text, messages, tool calls (one, or a list of those of one message), an exception with
            which the model fails, or a function of observation and info that returns one of these.
        seed: Seed of the episode.
        options: Options of `reset`: ``{"example_id": 3}`` picks a task.

    Raises:
        AssertionError: If the episode is over before all answers are given. The text has the conversation.
        ConfigurationError: If the answers are one text.
    """
    if isinstance(answers, str):
        raise ConfigurationError(f"the answers of an episode must be a list, with one for each turn, got the text {answers!r:.80}")
    seat = seat_of(env)
    observation, info = env.reset(seed=seed, options=options)
    observations, infos, rewards = [observation], [info], list[float]()
    terminated = truncated = False

    def played() -> PlayedEpisode:
        return PlayedEpisode(observations, rewards, infos, terminated, truncated, seat.state)  # type: ignore[arg-type]  # it has begun

    for turn, answer in enumerate(answers, 1):
        if terminated or truncated:
            raise AssertionError(f"the episode was over after {turn - 1} of {len(answers)} answers\n\n{played()}")
        given = answer(observation, info) if callable(answer) and not isinstance(answer, type) else answer
        if isinstance(given, BaseException):
            outcome: Any = seat.fail(given)
        else:
            outcome = env.step(_as_action(given, turn))
        observation, reward, terminated, truncated, info = outcome
        observations.append(observation)
        rewards.append(float(reward))
        infos.append(info)
    return played()


def _as_action(answer: Any, turn: int) -> Any:
    """Return an answer as an action: tool calls become a message, and get ids of their own in the episode."""
    calls = [answer] if isinstance(answer, ToolCall) else answer
    if not isinstance(calls, list | tuple) or not all(isinstance(each, ToolCall) for each in calls):
        return answer
    numbered = [
        ToolCall(f"call_{turn}_{number}" if each.id == f"call_{each.name}" else each.id, each.name, each.arguments)
        for number, each in enumerate(calls, 1)
    ]
    return AssistantMessage(None, tool_calls=numbered)
