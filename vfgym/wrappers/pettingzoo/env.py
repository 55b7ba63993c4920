"""`PettingZooEnv`: one seat at a PettingZoo game as a chat environment."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from vfgym.data import reward_bounds
from vfgym.errors import UnknownArgument
from vfgym.rubrics.scoring import UNKNOWN_BOUNDS, Bounds
from vfgym.wrappers.games.multiplayer import MultiplayerEnv, Opponents
from vfgym.wrappers.games.pictures import draws_itself
from vfgym.wrappers.games.session import close_or_log
from vfgym.wrappers.pettingzoo.game import OnInvalid, PettingZooGame

_VERSION = re.compile(r"_v(?=\d+$)")
"""What PettingZoo writes before a version, where ids of Gymnasium have a hyphen."""


class PettingZooEnv(MultiplayerEnv):
    """A game of `PettingZoo <https://pettingzoo.farama.org>`_, from the seat of one player.

    The policy is told the rules and, each turn, what happened since its last one, and answers with an action (see
    `PettingZooGame`). Other players are agents, or the policy itself (see `MultiplayerEnv`).

    >>> env = PettingZooEnv("classic/connect_four_v3", opponents=lambda observation, info: info["legal_actions"][0])
    >>> conversation, info = env.reset(seed=0)
    >>> info["player"], info["legal_actions"]
    ('player_0', ['0', '1', '2', '3', '4', '5', '6'])
    >>> conversation, reward, terminated, truncated, info = env.step("<action>3</action>")
    """

    def __init__(
        self,
        game: str | Callable[..., Any],
        *,
        opponents: Opponents = "random",
        game_options: Mapping[str, Any] | None = None,
        action_names: Any = None,
        obs_to_text: Callable[[Any], str] | None = None,
        rules: str | None = None,
        on_invalid: OnInvalid = "feedback",
        invalid_reward: float = 0.0,
        max_moves: int = 1000,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            game: An id of PettingZoo's registry, or a function that makes an environment. The agents of a parallel one act in turn, and
                see nothing of each other's actions before all have acted.
            opponents: Who takes the other seats (see `MultiplayerEnv`).
            game_options: Arguments with which the environment is made.
            action_names: Names of the actions (see `PettingZooGame`, as for the following).
            obs_to_text: A function from what ``env.observe(agent)`` returns to text.
            rules: The rules; those of the environment's documentation without it.
            on_invalid: What an answer leads to that names no action, or one that is not legal now.
            invalid_reward: What such an answer earns its player.
            max_moves: Answers of all players, valid or not, after which a game is truncated.
            **kwargs: Passed to `MultiplayerEnv` (``seat``, ``max_turns``, ``system_prompt``, ...).

        Raises:
            ConfigurationError: If the game cannot be played in words.
            MissingExtra: If PettingZoo is not installed.
        """
        self.game = game
        self._table_options: dict[str, Any] = {
            "game_options": game_options,
            "action_names": action_names,
            "obs_to_text": obs_to_text,
            "rules": rules,
            "on_invalid": on_invalid,
            "invalid_reward": invalid_reward,
            "max_moves": max_moves,
            "draws": kwargs.get("render_mode") == "rgb_array",
        }
        table = self.open_table()  # what is wrong with the arguments is said now
        self.prompt_problems = table.prompt_problems
        """What a model cannot know from the prompt; empty where somebody gave rules."""
        close_or_log(table)
        if isinstance(game, str):
            kwargs.setdefault("blocking", not game.startswith("classic/"))
            kwargs.setdefault("env_id", f"pettingzoo/{_VERSION.sub('-v', game.rpartition('/')[2])}")
        super().__init__(opponents=opponents, **kwargs)
        self.check_players(table.players)
        if self.render_mode == "rgb_array" and draws_itself(table.env) and "render_fps" in table.env.metadata:
            self.metadata = {**self.metadata, "render_fps": table.env.metadata["render_fps"]}

    def _take_unknown_arguments(self, unknown: dict[str, Any]) -> None:
        if unknown:
            table = self.open_table()
            close_or_log(table)
            for name in unknown.keys() & inspect.signature(type(table.env.unwrapped)).parameters.keys():
                raise UnknownArgument(
                    f"{type(self).__name__} has no argument {name!r}, which is one of the game:"
                    f" give game_options={{{name!r}: {unknown[name]!r}}}"
                )
        super()._take_unknown_arguments(unknown)

    def open_table(self) -> PettingZooGame:
        """Make a table at which the game is played."""
        return PettingZooGame(self.game, **self._table_options)

    def _game_reward_bounds(self) -> Bounds:
        options = self._table_options
        known = reward_bounds("pettingzoo", self.game, options["game_options"] or {}) if isinstance(self.game, str) else None
        return UNKNOWN_BOUNDS if known is None else self._bounds_of(known, None, options["invalid_reward"], options["max_moves"])
