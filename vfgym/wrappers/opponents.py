"""The opponents of a game for several players: agents at seats of their own."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeAlias, cast

import numpy as np

from vfgym.agents import Agent, Answering, RandomAgent, per_episode
from vfgym.envs.chat import ChatEnv
from vfgym.envs.face import Fork, as_response
from vfgym.errors import Error, InvalidAction
from vfgym.messages import AssistantMessage, Content, Message
from vfgym.responses import for_conversation
from vfgym.spaces import MessageSpace
from vfgym.state import State
from vfgym.wrappers.turn_based import Player, TurnBasedGame

Told: TypeAlias = tuple[Content, dict[str, Any], list[str] | None]
"""What a table tells a player, all at once, so that a blocking table is asked on its thread: what it sees, its info, its legal actions."""


class OpponentSeat(Fork):
    """What an agent that plays for an opponent sees of the environment: its own random numbers, a state of its own."""

    def __init__(self, env: ChatEnv, game: TurnBasedGame, player: Player, seed: list[int]) -> None:
        """Sit `player` down.

        Args:
            env: The environment.
            game: The table.
            player: Whose seat it is.
            seed: Seed of the seat's random numbers.
        """
        super().__init__(env)
        self.player = player
        self._game = game
        self.np_random = np.random.default_rng(seed)
        self._own_state = env.state_type(
            sampling_args=None, tool_defs=[], trajectory=[], trajectory_id=f"{player}", input={}, completion=None, error=None
        )
        self.conversation: list[Message] = []
        """What this opponent was told, and what it answered."""

    @property
    def state(self) -> State:
        """The opponent's own state; nothing of the episode's is shown to it."""
        return self._own_state

    @property
    def action_space(self) -> MessageSpace:  # type: ignore[override]
        """Random moves of the game."""
        return MessageSpace(_MoveSampler(self._game, self.player))


class _MoveSampler:
    """Draws random moves of the player whose turn it is."""

    def __init__(self, game: TurnBasedGame, player: Player) -> None:
        self._game = game
        self._player = player

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one move."""
        return cast(AssistantMessage, self._game.sample_move(self._player, rng))


class Opponent:
    """An agent at an opponent's seat, for one game."""

    __slots__ = ("_agent", "_answering", "_seat", "invalid_moves")

    def __init__(self, seat: OpponentSeat, agent: Agent) -> None:
        """Let `agent` play at `seat`."""
        self._seat = seat
        self._agent = agent
        self._answering: Answering | None = per_episode(agent)(seat)
        self.invalid_moves = 0
        """Answers in a row that were no valid move."""

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        # A closure cannot be pickled, and a deep copy would share it. A copy asks the agent for a new one.
        answering = None if isinstance(self._answering, FunctionType) else self._answering
        return None, {"_seat": self._seat, "_agent": self._agent, "_answering": answering, "invalid_moves": self.invalid_moves}

    @property
    def asks_the_table(self) -> bool:
        """Whether the agent's answers are the table's own random moves."""
        return isinstance(self._agent, RandomAgent)

    def answer(self, shown: Message, told: Told) -> Any:
        """Return the agent's answer to all that it was told; it may have to be awaited.

        Args:
            shown: The message of what the table tells it.
            told: What the table tells it.
        """
        conversation = self._seat.conversation
        conversation.append(shown)
        if self._answering is None:
            self._answering = per_episode(self._agent)(self._seat)
        info: dict[str, Any] = {"example_id": -1, "tools": [], "player": self._seat.player, "game_info": told[1]}
        if told[2] is not None:
            info["legal_actions"] = told[2]
        return self._answering(conversation.copy(), info)

    def take(self, answer: Any) -> Message:
        """Return the message that an answer is, which the agent will see again.

        Raises:
            Error: If it is none.
        """
        own = self._seat.definition.message_types
        if type(answer) is str:
            message: Message = own["assistant"]._of({"role": "assistant", "content": answer})
            self._seat.conversation.append(message)
            return message
        try:
            response = as_response(answer)
        except InvalidAction as error:
            raise Error(f"the opponent at the seat of {self._seat.player!r} gave no answer: {error}") from error
        message = for_conversation(response.message, own)
        self._seat.conversation.append(message)
        return message
