"""Chat environments with TextArena's own interface. Imported by `vfgym.to_textarena` alone, since it imports TextArena."""

from __future__ import annotations

from typing import Any

from vfgym.agents import seat_of
from vfgym.envs.face import EpisodeFace, new_since
from vfgym.errors import ConfigurationError, Error, ResetNeeded
from vfgym.messages import Message, content_text
from vfgym.wrappers.textarena.env import TextArenaEnv
from vfgym.wrappers.textarena.match import TextArenaGame
from vfgym.wrappers.textarena.package import textarena

_ta = textarena()

Observation = list[tuple[int, str, Any]]
"""What a player was told: who said it (-1 is the game), what, and TextArena's ``ObservationType``."""


class NativeTextArena(_ta.Env):  # type: ignore[misc, name-defined]
    """A chat environment around a TextArena game, as that game: `reset`, `get_observation`, `step`, `close` for all players.

    Moves travel through the conversations of the chat environment, in which the caller plays every seat.
    """

    def __init__(self, env: TextArenaEnv) -> None:
        """Take the chat environment back into TextArena's terms."""
        self.env_id = env.game
        self._definition = env
        self._chat = env.self_play()
        self._is_over = False

    def reset(self, num_players: int | None = None, seed: int | None = None) -> None:
        """Begin a game.

        Args:
            num_players: Number of players; the chat environment's own without it.
            seed: The same seed gives the same game; None continues the random numbers.

        Raises:
            ConfigurationError: If the game is not for so many players.
        """
        if num_players is not None and num_players != self._chat.num_players:
            self._chat.close()
            self._chat = self._definition.self_play(num_players)
        self._chat.reset(seed=seed)
        self._is_over = False

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
            Whether the game is over, and TextArena's info, which is empty.

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
        return self._is_over, {}

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
    """Any chat environment as a TextArena game for one player."""

    def __init__(self, env: Any) -> None:
        """Take a chat environment, wrapped or not."""
        self._chat = env
        self._seat: EpisodeFace = seat_of(env)
        self.env_id = self._seat.definition.env_id or type(self._seat.definition).__name__
        self._told: Observation = []
        self._seen: list[Message] = []
        self._total = 0.0
        self._turns = 0
        self._ending: str | None = None

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
        self._told = [(_ta.GAME_ID, content_text(message["content"]), _ta.ObservationType.PROMPT) for message in observation]
        self._seen, self._total, self._turns, self._ending = observation.copy(), 0.0, 0, None

    def get_observation(self) -> tuple[int, Observation]:
        """Return player 0, and what it was told since it was last asked for."""
        told, self._told = self._told, []
        return 0, told

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """Answer the conversation.

        Args:
            action: The answer's text.

        Returns:
            Whether the episode is over, and the chat environment's info.

        Raises:
            Error: If an error ended the episode.
        """
        if self._ending is not None:
            return True, {}
        observation, reward, terminated, truncated, info = self._chat.step(action)
        state = self._seat.state
        if state is not None and isinstance(state["error"], Error):
            raise state["error"]
        kind = _ta.ObservationType.GAME_MESSAGE
        new = [message for message in new_since(self._seen, observation) if message["role"] != "assistant"]
        self._told += [(_ta.GAME_ID, content_text(message["content"]), kind) for message in new]
        self._seen = observation.copy()
        self._total += float(reward)
        self._turns += 1
        if terminated or truncated:
            self._ending = str(info["stop_condition"])
        return self._ending is not None, info

    def close(self) -> tuple[dict[int, float] | None, dict[int, dict[str, Any]]]:
        """Return the total reward of player 0 (None if the episode is not over), and why it ended."""
        info = {"role": "Player 0", "invalid_move": False, "turn_count": self._turns}
        if self._ending is not None:
            info["reason"] = self._ending
        self._chat.close()
        return None if self._ending is None else {0: self._total}, {0: info}
