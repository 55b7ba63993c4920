"""Games of OpenSpiel, as shimmy makes PettingZoo's of them: positions and moves as OpenSpiel writes them.

Nothing here imports `pyspiel` or `shimmy`: a game is asked.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from vfgym.codecs import ActionNotFound, Codec
from vfgym.codecs.reading import Where
from vfgym.data import OpenSpielPrompt, openspiel_prompts
from vfgym.errors import ConfigurationError

OPENSPIEL = "OpenSpielCompatibilityV0"
"""What shimmy's environments of OpenSpiel call themselves."""

_DECORATION = " \t\r\n.!?;,\"'`*"
"""What may stand around a move, and around what OpenSpiel writes of it (``pile:1, take:1;``, ``a3b2*``), and says nothing."""


def _undecorated(move: str) -> str:
    return move.strip(_DECORATION).casefold()


def read_position(game: Any, agent: str) -> str:
    """Return what a player sees of a position, in OpenSpiel's words."""
    state, player = game.game_state, game.agent_name_id_mapping[agent]
    if game.game_type.provides_observation_string:
        return _STYLE.sub("", state.observation_string(player))
    if game.game_type.provides_information_state_string:
        return _STYLE.sub("", state.information_state_string(player))
    return str(game.observe(agent))


_STYLE = re.compile(r"\x1b\[[\d;]*m")
"""Colours of a terminal, which some games have in their texts."""


def is_openspiel(game: Any) -> bool:
    """Say whether an unwrapped environment is a game of OpenSpiel."""
    return any(
        (cls.__module__, cls.__qualname__) == ("shimmy.openspiel_compatibility", "OpenSpielCompatibilityV0") for cls in type(game).__mro__
    )


def repair(game: Any) -> None:
    """Let a game that shimmy (2.0) made of one of OpenSpiel's be played as OpenSpiel plays it, from its next reset on.

    * Shimmy counts what chance decides (cards that are dealt, dice) against OpenSpiel's greatest number of moves, which does not: a game of
      Kuhn poker was over after its first move.
    * At a reset it loads the game by its name alone, and so forgets arguments that stand in the name (``"hex(board_size=3)"``) or that a
      game has which it was given.
    """
    if not is_openspiel(game):
        return
    decide_chance = game._execute_chance_node

    def decide_uncounted() -> None:
        moves = game.game_length
        decide_chance()
        game.game_length = moves

    game._execute_chance_node = decide_uncounted
    if game.config is None and _changed_arguments(game):
        game.config = game._env.get_parameters()


def resample_openspiel(game: Any, agent: str, rng: np.random.Generator) -> None:
    """Deal anew what is hidden from a player, where OpenSpiel can (``resample_from_infostate``).

    Raises:
        ConfigurationError: If it cannot for this game.
    """
    if game.game_type.information.name == "PERFECT_INFORMATION":
        return
    pyspiel = sys.modules["pyspiel"]
    try:
        resampled = game.game_state.resample_from_infostate(game.agent_name_id_mapping[agent], rng.random)
    except pyspiel.SpielError as error:
        raise ConfigurationError(f"OpenSpiel cannot deal anew what is hidden in {game.game_type.long_name}: {error}") from error
    game.game_state = resampled
    game._update_action_masks()
    game._update_observations()


def refuse_mean_field(game: Any) -> None:
    """Raise if a game of OpenSpiel has no players: in a mean field game, rewards follow from what a whole population does.

    Raises:
        ConfigurationError: If it is one.
    """
    if is_openspiel(game) and game.game_type.dynamics.name == "MEAN_FIELD":
        raise ConfigurationError(f"{game.game_type.long_name} is a mean field game, which a population plays and no player can")


_OUTCOMES = {"win": "1 for who wins, -1 for the other.", "draw": "1 for who wins, -1 for the other, 0 for a draw."}


def openspiel_prompt(game: Any) -> OpenSpielPrompt | None:
    """Return what is written about a game of OpenSpiel; None if nothing is."""
    return openspiel_prompts().get(game.game_type.short_name)


def read_openspiel_rules(game: Any) -> str:
    """Return the rules of a game of OpenSpiel and its rewards, as they are written; empty where nothing is."""
    prompt = openspiel_prompt(game)
    if prompt is None:
        return ""
    rules = prompt["rules"].replace("`", "")
    changed = _changed_arguments(game)
    if changed:
        rules += f" In this game, other than written here: {', '.join(f'{name} is {value}' for name, value in changed.items())}."
    goal = _OUTCOMES[prompt["outcome"]] if "outcome" in prompt else prompt["goal"]
    return "\n\n".join(filter(None, [rules, f"Rewards: {goal}", prompt.get("observation", "")]))


def _changed_arguments(game: Any) -> dict[str, Any]:
    """Return the arguments that a game was made with which are not those that it has by default; all of one that has to be given some."""
    pyspiel, given = sys.modules["pyspiel"], game._env.get_parameters()
    try:
        usual = pyspiel.load_game(game.game_type.short_name).get_parameters()
    except pyspiel.SpielError:
        usual = {}
    return {name: value for name, value in given.items() if name not in _UNSEEN and (name not in usual or value != usual[name])}


_UNSEEN = frozenset({"ansi_color_output", "egocentric", "egocentric_obs_tensor", "plain_obs_tensor", "rng_seed", "seed"})
"""Arguments of games that change nothing for a player."""


class OpenSpielMoves(Codec):
    """The actions of a game of OpenSpiel as ``action_to_string`` writes them, which depends on the position and the player."""

    def __init__(self, game: Any) -> None:
        """Read and write moves of the position in which `game`, an unwrapped ``OpenSpielCompatibilityV0``, stands at the time."""
        self.space = game.action_space(game.possible_agents[0])
        self.names = None
        self.schema = {"type": "string", "description": self.listing()}
        self._game = game
        state = game._env.new_initial_state()
        while state.is_chance_node():
            state.apply_action(state.legal_actions()[0])
        player = 0 if state.is_simultaneous_node() else state.current_player()
        self._first = int(state.legal_actions(player)[0])
        self._example = str(state.action_to_string(player, self._first))

    def to_json(self, action: Any) -> str:
        """Return a move of the position as OpenSpiel writes it."""
        state = self._game.game_state
        return str(state.action_to_string(self._player(), int(action)))

    def encode(self, action: Any) -> str:
        """Return a move of the position as OpenSpiel writes it."""
        return self.to_json(action)

    def read(self, data: Any) -> np.int64:
        """Return the action of a legal move.

        Raises:
            ActionNotFound: If it is none.
        """
        action: np.int64 | None = self._parse(data) if isinstance(data, str) else None
        if action is None:
            raise ActionNotFound(f"must be a legal move, got {data!r}")
        return action

    def read_exactly(self, text: str) -> None:
        """Return nothing: `lookup` reads what a legal move is called."""

    def lookup(self, text: str, where: Where) -> Any:
        """Return the action of the legal move that a text is; None if it is something else."""
        return self._parse(text)

    def mentioned_in(self, remark: str) -> list[Any]:
        """Return the legal moves that the words of a remark are."""
        return [action for word in remark.split() if (action := self._parse(word.strip(",;:"))) is not None]

    def listing(self) -> str:
        """Say what a move looks like."""
        return "a legal move, as it is listed below the position"

    def representative(self) -> np.int64:
        """Return an action that is legal at the beginning of a game."""
        return np.int64(self._first)

    def example(self) -> str:
        """Return a move that is legal at the beginning of a game."""
        return self._example

    def legal_texts(self, mask: Any) -> list[str] | None:
        """Return the moves that a mask allows."""
        return None if mask is None else [self.encode(action) for action in np.flatnonzero(mask)]

    def _player(self) -> int:
        player: int = self._game.agent_name_id_mapping[self._game.agent_selection]
        return player

    def _parse(self, text: str) -> Any:
        """Return the legal move that a text stands for, whatever its case; None if it is none, or several."""
        wanted, state, player = _undecorated(text), self._game.game_state, self._player()
        exact = [action for action in state.legal_actions(player) if _undecorated(state.action_to_string(player, action)) == wanted]
        return np.int64(exact[0]) if len(exact) == 1 else None
