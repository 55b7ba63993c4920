"""Hints: a right answer or a legal move, where the environment knows one."""

from __future__ import annotations

import numpy as np

from vfgym.aio.background import wait
from vfgym.calls import is_awaitable
from vfgym.envs.seat import as_response, transcript
from vfgym.play.game import Game
from vfgym.wrappers.games.turns import GameTurnsEnv


def hint_for(game: Game, rng: np.random.Generator) -> str | None:
    """Return a hint for the position of a game, which stays as it is; None where nothing is known.

    Args:
        game: The game.
        rng: Picks one of several legal moves; the game's own numbers are left alone.
    """
    definition, state = game.definition, game.state
    known = definition.oracle(state)
    known = wait(known) if is_awaitable(known) else known
    if known is not None:
        return f"a right answer: {_in_words(known)}"
    legal = game.legal_actions
    move = None if legal else definition.random_action(state, rng)
    if legal:
        move = legal[int(rng.integers(len(legal)))]
    elif move is None and isinstance(definition, GameTurnsEnv):
        move = definition.action_sampler().sample(rng)
    return None if move is None else f"a possible move, which need not be a good one: {_in_words(move)}"


def _in_words(action: object) -> str:
    if isinstance(action, str):
        return action
    return transcript([as_response(action).message]).removeprefix("[assistant] ")
