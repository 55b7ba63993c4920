"""`to_gym`: a game that became a chat environment, as the game it was."""

from __future__ import annotations

import copy
from typing import Any, Literal, SupportsFloat, get_args

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.agents.base import seat_of
from vfgym.codecs import ActionNotFound
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import ConfigurationError, Error, InvalidAction
from vfgym.messages import AssistantMessage
from vfgym.state import State
from vfgym.wrappers.gymnasium.game import GymnasiumGame

By = Literal["text", "tool"]
"""What carries the actions."""


class NativeGame(gym.Env[Any, Any]):
    """A chat environment around a Gymnasium game, with the game's own spaces. Made by `to_gym`, which documents the arguments."""

    def __init__(self, chat: gym.Env[Any, Any], by: By = "text") -> None:
        if by not in get_args(By):
            raise ConfigurationError(f"by must be 'text' or 'tool', got {by!r}")
        self._seat: EpisodeSeat = seat_of(chat)
        definition = self._seat.definition
        if not isinstance(definition, GymnasiumGame):
            raise ConfigurationError(
                f"to_gym turns back what to_chat made of a Gymnasium game, and {type(definition).__name__} is another chat environment"
                " (which is a gymnasium.Env as it is)"
            )
        if by == "tool" and not definition.answers.as_tool:
            raise ConfigurationError('by="tool" needs a chat environment that offers its actions as a tool: to_chat(..., as_tool=True)')
        self.chat = chat
        """The chat environment that is played."""
        self.by = by
        self._answers = definition.answers
        # Spaces keep random numbers, so each environment has its own.
        self.action_space = copy.deepcopy(definition.game_action_space)
        self.observation_space = copy.deepcopy(definition.game_observation_space)
        self.metadata = definition.game_metadata
        self.render_mode = definition.game_render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode of the game.

        Args:
            seed: Given to the game as it is.
            options: Given to the game as they are.

        Returns:
            The game's own observation and info.
        """
        super().reset(seed=seed)
        self.chat.reset(seed=seed, options=None if options is None else {"game_options": options})
        state = self._state()
        return state["observation"], state["game_info"]

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play an action through the conversation.

        Args:
            action: A member of the game's action space.

        Returns:
            What the game answered: observation, reward, terminated, truncated, info. Wrappers of the chat environment and its own
            limits have their effect on reward and flags.

        Raises:
            InvalidAction: If it is none; the game stands as it was.
            Error: If an error ended the episode.
        """
        _, reward, terminated, truncated, _ = self.chat.step(self._message(action))
        state = self._state()
        if state["error"] is not None:
            raise state["error"]
        return state["observation"], reward, terminated, truncated, state["game_info"]

    def _message(self, action: Any) -> AssistantMessage:
        if self.by == "tool":
            message = self._answers.as_call(action, f"call_{len(self._state()['trajectory']) + 1}")
        else:
            message = self._answers.in_text(action)
        try:
            self._answers.read(message)  # which the chat environment would answer with what it does after an invalid answer
        except ActionNotFound as error:
            raise InvalidAction(str(error)) from None
        return message

    def _state(self) -> State:
        state = self._seat.state
        if state is None:
            raise Error("the chat environment has begun no episode")
        return state

    def render(self) -> Any:
        """Return what the game draws, in the render mode that the chat environment made it with."""
        return self._state().session.game.render()

    def close(self) -> None:
        """Close the chat environment, and with it the game."""
        self.chat.close()


def to_gym(env: gym.Env[Any, Any] | str | EnvSpec, by: By = "text") -> NativeGame:
    """Return a chat environment around a Gymnasium game as the game it was, with the original spaces.

    Actions travel through the conversation: each is written as a model would write it, as text or as a tool call, and read back by
    the chat environment. What comes back is the game's own, bit for bit.

    >>> from vfgym.wrappers.to_chat import to_chat
    >>> env = to_gym(to_chat("CartPole-v1"))
    >>> observation, info = env.reset(seed=0)
    >>> env.action_space, observation.dtype
    (Discrete(2), dtype('float32'))

    Args:
        env: What `vfgym.to_chat` made, wrapped or not, or the id of such an environment (``"gymnasium/CartPole-v1"``).
        by: ``"text"``, or ``"tool"`` where the chat environment offers its actions as a tool.

    Raises:
        ConfigurationError: If it is not around a Gymnasium game, or offers no tool.
    """
    if isinstance(env, str | EnvSpec):
        env = gym.make(env, disable_env_checker=True)
    return NativeGame(env, by)
