"""The opponents of a game for several players: agents at seats of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any, TypeAlias

import numpy as np

from vfgym.agents.base import Agent, Answering, per_episode
from vfgym.agents.random import RandomAgent
from vfgym.aio.background import in_event_loop
from vfgym.aio.threads import on_thread
from vfgym.calls import is_async
from vfgym.copying import deep_copy
from vfgym.envs.chat import ChatEnv
from vfgym.envs.seat import Fork, as_response
from vfgym.errors import Error, InfraError, ModelError
from vfgym.lifecycle import is_blocking
from vfgym.messages import AssistantMessage, Content, Message
from vfgym.messages.responses import for_conversation
from vfgym.spaces import MessageSpace
from vfgym.state import State
from vfgym.wrappers.games.turn_based import Player, TurnBasedGame
from vfgym.wrappers.games.turns import NATIVE_OBSERVATION, copy_value

PlayerView: TypeAlias = tuple[Content, dict[str, Any], list[str] | None]
"""What a table tells a player, all at once, so that a blocking table is asked on its thread: what it sees, its info, its legal actions.

The legal actions are None where they are not known or not to be told. Random opponents, which ask the table for a move, are told nothing
but what they see.
"""


def native_observation(game: TurnBasedGame, player: Player) -> dict[str, Any]:
    """Return the item of an info that holds what the game itself showed a player; nothing where it showed nothing of its own."""
    shown = game.native_observations
    return {NATIVE_OBSERVATION: copy_value(shown[player])} if player in shown else {}


class OpponentSeat(Fork):
    """What an agent that plays for an opponent sees of the environment: its own random numbers, a state of its own."""

    def __init__(
        self, env: ChatEnv, game: TurnBasedGame, player: Player, seed: list[int], message_of: Callable[[Message], Message] | None = None
    ) -> None:
        """Give `player` a seat.

        Args:
            env: The environment.
            game: The table.
            player: Whose seat it is.
            seed: Seed of the seat's random numbers.
            message_of: Puts the random moves of the action space into the form of an answer.
        """
        super().__init__(env)
        self.player = player
        self.message_types = env.message_types
        """The message class for each role."""
        self._game = game
        self._message_of = message_of
        self.np_random = np.random.default_rng(seed)
        self._own_state = env.state_type(
            sampling_args=None, tool_defs=[], trajectory=[], trajectory_id=f"{player}", input={}, completion=None, error=None
        )
        # As in self-play and `to_pettingzoo`: it says what holds for every seat, such as the form of an answer.
        self.conversation: list[Message] = [env.message_types["system"](env.system_prompt)] if env.system_prompt else []
        """What this opponent was told, the system prompt first, and what it answered."""

    @property
    def state(self) -> State:
        """The opponent's own state; nothing of the episode's is shown to it."""
        return self._own_state

    def native_observation(self) -> dict[str, Any]:
        """Return what the game itself showed the player, for its info."""
        return native_observation(self._game, self.player)

    @functools.cached_property
    def action_space(self) -> MessageSpace:  # type: ignore[override]
        """Random moves of the game, drawn with the seat's random numbers."""
        return MessageSpace(_MoveSampler(self._game, self.player, self._message_of), self.np_random)


class _MoveSampler:
    """Draws random moves of the player whose turn it is."""

    def __init__(self, game: TurnBasedGame, player: Player, message_of: Callable[[Message], Message] | None) -> None:
        self._game = game
        self._player = player
        self._message_of = message_of

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one move."""
        move: Any = self._game.sample_move(self._player, rng)
        return move if self._message_of is None else self._message_of(move)  # type: ignore[return-value]


def _copy_closure(function: FunctionType, memo: dict[int, Any]) -> FunctionType:
    """Return a function that goes on alike with variables of its own, which a deep copy of a function shares."""
    cells = tuple(CellType(deep_copy(cell.cell_contents, memo)) for cell in function.__closure__ or ())
    made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    return made


class Opponent:
    """An agent at an opponent's seat, for one game."""

    __slots__ = ("_agent", "_answering", "_seat", "answers_with_moves", "blocks", "invalid_moves", "is_cut_off", "never_waits")

    def __init__(self, seat: OpponentSeat, agent: Agent) -> None:
        self._seat = seat
        self._agent = agent
        self.answers_with_moves = type(agent) is RandomAgent
        """Whether the agent's answers are the table's own random moves, as they are."""
        self._answering: Answering | None = per_episode(agent)(seat)
        self.blocks = is_blocking(self._answering)
        """Whether the agent is called on a thread where an event loop runs."""
        self.never_waits = self.answers_with_moves or self.blocks or is_async(self._answering)
        """Whether the agent's plain code, if it has any, waits for nothing."""
        self.invalid_moves = 0
        """Answers in a row that were not a valid move."""
        self.is_cut_off = False
        """Whether the last answer was cut off by the limit of its length."""

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        # A closure cannot be pickled. What comes out of a pickle asks the agent for a new one.
        answering = None if isinstance(self._answering, FunctionType) else self._answering
        return None, {**{name: getattr(self, name) for name in self.__slots__}, "_answering": answering}

    def __deepcopy__(self, memo: dict[int, Any]) -> Opponent:
        memo.setdefault(id(memo), [])
        made = memo[id(self)] = object.__new__(type(self))
        for name in self.__slots__:
            setattr(made, name, deep_copy(getattr(self, name), memo))
        if isinstance(self._answering, FunctionType) and self._answering is not self._agent:
            made._answering = _copy_closure(self._answering, memo)
        return made

    def answer(self, prompt: Message, view: PlayerView) -> Any:
        """Return the agent's answer to all that it was told; it may have to be awaited.

        Args:
            prompt: The message of what the table tells it.
            view: What the table tells it.
        """
        conversation = self._seat.conversation
        conversation.append(prompt)
        if self._answering is None:
            self._answering = per_episode(self._agent)(self._seat)
        if self.answers_with_moves:
            return self._answering(conversation, {})  # which looks at neither
        info: dict[str, Any] = {"example_id": -1, "tools": [], "player": self._seat.player, "game_info": view[1]}
        if view[2] is not None:
            info["legal_actions"] = view[2]
        info |= self._seat.native_observation()
        if self.blocks and in_event_loop():
            return on_thread(self._answering, conversation.copy(), info)
        return self._answering(conversation.copy(), info)

    def take(self, answer: Any) -> Message:
        """Return the message that an answer is, which the agent will see again.

        Raises:
            InvalidAction: If it is none.
        """
        seat, is_cut_off = self._seat, False
        own = seat.message_types
        if type(answer) is str:
            message: Message = own["assistant"]._of({"role": "assistant", "content": answer})
        elif type(answer) is own["assistant"]:
            message = answer
        else:
            response = as_response(answer)
            is_cut_off = response.is_truncated
            message = for_conversation(response.message, own)
        seat.conversation.append(message)
        self.is_cut_off = is_cut_off
        return message

    def forget(self) -> None:
        """Begin with an empty conversation and an agent that remembers nothing: what it saw is not so any more."""
        seat = self._seat
        seat.conversation[:] = [message for message in seat.conversation[:1] if message["role"] == "system"]
        if not self.answers_with_moves:  # a random one remembers nothing but its random numbers
            self._answering = None

    def failure(self, error: Error) -> Error:
        """Return the error of the episode in which this opponent could not answer.

        It is none of the policy's: neither an overlong prompt nor a timeout, which would end the episode as a truncation, nor a
        `ModelError`. A model that fails here fails underneath the environment, and the rollout may be worth repeating.
        """
        kind = InfraError if isinstance(error, InfraError | ModelError) else Error
        return kind(f"the opponent at the seat of {self._seat.player!r}: {str(error) or type(error).__name__}")
