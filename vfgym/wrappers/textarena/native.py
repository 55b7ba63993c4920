"""Chat environments with TextArena's own interface. Imported by `vfgym.to_textarena` alone, since it imports TextArena."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from vfgym.agents.base import seat_of
from vfgym.envs.seat import EpisodeSeat, as_response, new_since
from vfgym.errors import ConfigurationError, Error, ResetNeeded
from vfgym.messages import Message, content_text
from vfgym.state import State
from vfgym.wrappers.games.turns import Turn
from vfgym.wrappers.textarena.catalogue import describe, number_of_players
from vfgym.wrappers.textarena.env import TextArenaEnv
from vfgym.wrappers.textarena.match import TextArenaGame
from vfgym.wrappers.textarena.package import textarena

_ta = textarena()

Observation = list[tuple[int, str, Any]]
"""What a player was told: who said it (-1 is the game), what, and TextArena's ``ObservationType``."""


class NativeTextArena(_ta.Env):  # type: ignore[misc, name-defined]
    """A chat environment around a TextArena game, as that game: `reset`, `get_observation`, `step`, `close` for all players.

    Moves travel through the conversations of the chat environment, in which the caller plays every seat. Whatever else the game
    itself offers (its ``get_board_str``, for one) is found here too, once a game has begun.
    """

    def __init__(self, env: TextArenaEnv) -> None:
        self.env_id = env.game
        self._definition = env
        self._chat = env.self_play(self._players(env.num_players))
        self._is_over = False

    def _players(self, asked_for: int | None) -> int:
        return number_of_players(describe(self.env_id), asked_for)

    def __getattr__(self, name: str) -> Any:
        # `hasattr` is how TextArena's wrappers ask; a name with an underscore is asked for by copies, which have no table yet.
        if name.startswith("_") or self._chat.state is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._table.raw, name)

    def reset(self, num_players: int | None = None, seed: int | None = None) -> None:
        """Begin a game. If it is not for so many players, the running one goes on.

        Args:
            num_players: Number of players; the chat environment's own without it.
            seed: The same seed gives the same game; None continues the random numbers, of a table for as many players.

        Raises:
            ConfigurationError: If the game is not for so many players.
        """
        players = self._players(self._definition.num_players if num_players is None else num_players)
        before, chat = self._chat, self._chat
        if players != before.num_players:
            chat = self._definition.self_play(players)
        chat.reset(seed=seed)
        if chat is not before:
            before.close()
        self._chat, self._is_over = chat, False

    @property
    def _table(self) -> TextArenaGame:
        state = self._chat.state
        if state is None:
            raise ResetNeeded("no game has begun: call reset(num_players) first")
        table: TextArenaGame = state.session.game
        return table

    @property
    def state(self) -> Any:
        """The state of TextArena's own game."""
        return self._table.raw.state

    def get_observation(self) -> tuple[int, Observation]:
        """Return whose turn it is, and what that player was told since it was last asked for."""
        player = self.state.current_player_id
        return player, self._table.raw_observation(player)

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """Make the move of the player whose turn it is.

        Args:
            action: The move, as the game takes it.

        Returns:
            Whether the game is over, and TextArena's info, which is empty in most games.

        Raises:
            ResetNeeded: If no game has begun.
            Error: If an error ended the episode.
        """
        if self._is_over:
            return True, {}
        _, _, terminated, truncated, _ = self._chat.step(action)
        error = self._chat.state["error"] if self._chat.state is not None else None
        if error is not None:
            raise error
        self._is_over = terminated or truncated
        return self._is_over, self._table.step_info

    def close(self) -> tuple[dict[int, float] | None, dict[int, dict[str, Any]]]:
        """Return the rewards of all players (None if the game is not over), and what the game says about each of them.

        Where no game has begun there is nothing to close, and nothing to say.
        """
        state = self._chat.state
        if state is None:
            return None, {}
        rewards = dict(state["rewards"]) if self._is_over else None
        game_info = self.state.game_info
        self._chat.close()
        return rewards, game_info


class OnePlayerTextArena(_ta.Env):  # type: ignore[misc, name-defined]
    """Any chat environment as a TextArena game for one player.

    The prompt is told as ``PROMPT``, the player's answers as its ``PLAYER_ACTION``, what the environment says to them as ``GAME_MESSAGE``.
    """

    def __init__(self, env: Any) -> None:
        self._chat = env
        self._seat: EpisodeSeat = seat_of(env)
        self.env_id = self._seat.definition.env_id or type(self._seat.definition).__name__
        self._state: Any = None
        self._seen: list[Message] = []
        self._total = 0.0

    def reset(self, num_players: int = 1, seed: int | None = None) -> None:
        """Begin an episode.

        Args:
            num_players: 1.
            seed: Given to the chat environment.

        Raises:
            ConfigurationError: If `num_players` is not 1.
        """
        if num_players != 1:
            raise ConfigurationError(f"{self.env_id} is played by one player, got num_players={num_players}")
        observation, _ = self._chat.reset(seed=seed)
        self._state = _ta.SinglePlayerState(num_players=1)
        self._state.reset(game_state={}, role_mapping={0: "Player 0"})
        self._tell(observation, _ta.ObservationType.PROMPT)
        self._seen, self._total = observation.copy(), 0.0

    @property
    def state(self) -> Any:
        """TextArena's state of a game for one player, as its wrappers know it (``role_mapping``, ``logs``, ``game_info``, ...)."""
        if self._state is None:
            raise ResetNeeded("no episode has begun: call reset() first")
        return self._state

    def _tell(self, messages: Sequence[Message], kind: Any) -> None:
        for message in messages:
            self._state.add_observation(content_text(message["content"]), kind)

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """Answer the conversation.

        Args:
            action: The answer's text.

        Returns:
            Whether the episode is over, and the chat environment's info.

        Raises:
            ResetNeeded: If no episode has begun.
            InvalidAction: If it is not an answer.
            Error: If an error ended the episode.
        """
        own = self.state
        if own.done:
            return True, {}
        answer = as_response(action).message
        observation, reward, terminated, truncated, info = self._chat.step(action)
        state = cast(State, self._seat.state)
        if isinstance(state["error"], Error):
            raise state["error"]
        own.add_observation(content_text(answer["content"]), _ta.ObservationType.PLAYER_ACTION, from_id=0)
        self._tell(self._messages_since_answer(observation, state), _ta.ObservationType.GAME_MESSAGE)
        self._seen = observation.copy()
        self._total += float(reward)
        if terminated or truncated:
            if not state["is_completed"]:  # a wrapper ended it, such as a `TimeLimit`
                self._total += self._seat.truncate().reward
            own.set_outcome(self._total, str(state["stop_condition"]))
        own.step()
        return own.done, info

    def _messages_since_answer(self, observation: list[Message], state: State) -> list[Message]:
        """Return what the environment said since the player's last answer."""
        new = new_since(self._seen, observation)
        if len(new) == len(observation):  # it was rewritten, as with a limited history, and begins with what the player knows
            answers = [place for place, message in enumerate(observation) if message["role"] == "assistant"]
            turn = state.get("turn")
            if answers:
                new = observation[answers[-1] + 1 :]
            elif isinstance(turn, Turn):
                new = turn.messages
        return [message for message in new if message["role"] != "assistant"]

    def close(self) -> tuple[dict[int, float] | None, dict[int, dict[str, Any]]]:
        """Return the total reward of player 0 (None if the episode is not over), and why it ended.

        Where no episode has begun there is nothing to say.
        """
        self._chat.close()
        return (None, {}) if self._state is None else self._state.close()
