"""`TextArenaEnv`: one seat at a TextArena game as a chat environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vfgym.data import reward_bounds, textarena_environments
from vfgym.rubrics.scoring import UNKNOWN_BOUNDS, Bounds
from vfgym.wrappers.games.multiplayer import MultiplayerEnv, Opponents
from vfgym.wrappers.games.session import close_or_log
from vfgym.wrappers.textarena.match import TextArenaGame


class TextArenaEnv(MultiplayerEnv):
    """A game of `TextArena <https://github.com/LeonGuertler/TextArena>`_, from the seat of one player.

    The policy is told the rules and, each turn, what happened since its last one, and answers with its move in the game's own
    notation. Other players are agents, or the policy itself (see `MultiplayerEnv`). They see moves without the thinking before
    them. Rewards come at the end of the game, those of all players in ``info["rewards"]``. The game takes one invalid move in a
    row and says what was wrong; after a second one, the player loses.

    The same seed gives the same game, whatever else draws random numbers in the process.

    >>> env = TextArenaEnv("TicTacToe-v0", opponents=lambda observation, info: info["legal_actions"][0])
    >>> conversation, info = env.reset(seed=0)
    >>> info["player"], info["legal_actions"][:3]
    (0, ['[0]', '[1]', '[2]'])
    >>> conversation, reward, terminated, truncated, info = env.step("[4]")
    """

    def __init__(
        self,
        game: str,
        num_players: int | None = None,
        *,
        opponents: Opponents = "random",
        max_moves: int | None = None,
        game_options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            game: TextArena's id, ``"TicTacToe-v0"``. Ids that end in ``-train`` show what TextArena shows in training: the current
                board and the game's messages only.
            num_players: Number of players, where the game leaves a choice; the fewest that it is good for without it.
            opponents: Who takes the other seats (see `MultiplayerEnv`).
            max_moves: Moves of all players after which a game is truncated; the catalogue's limit without it.
            game_options: Arguments of the game's constructor, over those that its id stands for.
            **kwargs: Passed to `MultiplayerEnv` (``seat``, ``max_turns``, ``history``, ...).

        Raises:
            MissingExtra: If textarena is not installed.
            ConfigurationError: If there is no such game, it cannot run here, or not with so many players.
        """
        self.game = game
        self.num_players = num_players
        self._table_options = {**(game_options or {})}
        if max_moves is not None:
            self._table_options["max_moves"] = max_moves
        table = self.open_table()  # what is wrong with the arguments is said now
        close_or_log(table)
        kwargs.setdefault("blocking", False)
        kwargs.setdefault("env_id", f"textarena/{game.replace('/', '-')}")
        super().__init__(opponents=opponents, **kwargs)
        self.check_players(table.players)

    def open_table(self) -> TextArenaGame:
        """Make a table at which the game is played."""
        return TextArenaGame(self.game, self.num_players, **self._table_options)

    def _game_reward_bounds(self) -> Bounds:
        environment = textarena_environments().get(self.game)
        options = self._table_options.keys() - {"max_moves"}
        known = None if environment is None else reward_bounds("textarena", environment["game"], options)
        return UNKNOWN_BOUNDS if known is None else self._bounds_of(known, None, 0.0, None)

    def self_play(self, num_players: int | None = None) -> TextArenaEnv:
        """Return this game with every seat played by the policy.

        Args:
            num_players: Number of players; as many as here without it.
        """
        players = self.num_players if num_players is None else num_players
        options = dict(self._table_options)
        max_moves = options.pop("max_moves", None)
        return TextArenaEnv(self.game, players, opponents="self", max_moves=max_moves, game_options=options, tell_legal_actions=False)
