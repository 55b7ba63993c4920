"""Games of TextArena played at a table of vfgym, and the same games played natively."""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Collection
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.sampling import SEED
from vfgym.messages import AssistantMessage
from vfgym.wrappers.textarena import TextArenaGame, textarena_games, why_not
from vfgym.wrappers.textarena.table_random import RandomNumbers

SLOW = {"LetterAuction", "SpellingBee", "Sokoban", "Stratego", "Sudoku", "WordChains", "WordLadder", "WordSearch", "Wordle"}
"""Games that take seconds to make or to play."""

SHOWS = ("all", "messages", "messages and board", "board")

OPTIONS = {"DontSayIt-v0-unlimited": {"max_turns": 10**9}}
"""What native games need to run at all."""


def playable(*variants: str) -> list[str]:
    """Return the ids of some variants that can be played here."""
    games = textarena_games()
    return [env_id for env_id, described in games.items() if described["variant"] in variants and why_not(env_id) is None]


def some_of_all(*variants: str, shows: Collection[str] = SHOWS, but_not: Collection[str] = (), number: int = 6) -> pytest.MarkDecorator:
    """Return the parameters of a test: a few ids, drawn with the seed of the run, and all of them with the whole family.

    Args:
        *variants: The variants to test.
        shows: What they are to show.
        but_not: Games to leave out.
        number: How many ids outside of the whole family.
    """
    games = textarena_games()
    ids = [env_id for env_id in playable(*variants) if games[env_id]["shows"] in shows and games[env_id]["game"] not in but_not]
    return _drawn(ids, random.Random(SEED).sample([env_id for env_id in ids if games[env_id]["game"] not in SLOW], number))


def one_of_each_game(*variants: str) -> pytest.MarkDecorator:
    """Return the parameters of a test: an id of each game that is not slow, drawn with the seed of the run, and all ids with the family."""
    ids, rng, by_game = playable(*variants), random.Random(SEED), dict[str, list[str]]()
    for env_id in ids:
        by_game.setdefault(textarena_games()[env_id]["game"], []).append(env_id)
    return _drawn(ids, [rng.choice(of_game) for game, of_game in by_game.items() if game not in SLOW])


def _drawn(ids: list[str], drawn: list[str]) -> pytest.MarkDecorator:
    others = [pytest.param(env_id, marks=pytest.mark.exhaustive) for env_id in ids if env_id not in drawn]
    return pytest.mark.parametrize("env_id", [*drawn, *others])


def begun(env_id: str, seed: int = 0, num_players: int | None = None, **kwargs: Any) -> TextArenaGame:
    """Return a table at which a game has begun."""
    table = TextArenaGame(env_id, num_players, **kwargs)
    table.reset(seed)
    return table


def say(table: TextArenaGame, *texts: str) -> Any:
    """Make moves, and return what came of the last one."""
    for text in texts:
        played = table.move(AssistantMessage(text))
    return played


@dataclass
class Game:
    """A game that was played: who made which move, who was shown what before, the rewards if it is over, all that TextArena logged."""

    moves: list[tuple[int, str]] = field(default_factory=list)
    shown: list[tuple[int, str]] = field(default_factory=list)
    rewards: dict[int, float] | None = None
    logs: list[Any] = field(default_factory=list)


def play(table: TextArenaGame, seed: int | None, *, rng_seed: int = 0, nonsense: float = 0.1) -> Game:
    """Play a game with random moves and some nonsense."""
    table.reset(seed)
    rng, game = np.random.default_rng(rng_seed), Game()
    while table.turn is not None:
        player = table.turn
        game.shown.append((player, table.observe(player)))
        message = AssistantMessage("[Hm?]") if rng.random() < nonsense else table.sample_move(player, rng)
        game.moves.append((player, message["content"]))
        played = table.move(message)
    game.rewards = None if table.was_truncated else dict(played.rewards)
    game.logs = table.raw.state.logs
    return game


def play_natively(env_id: str, num_players: int, seed: int, moves: list[tuple[int, str]], *, observe: bool = False) -> Game:
    """Make moves in a game as TextArena makes it, wrappers included, with the process's random numbers (NumPy's too) seeded before that.

    With `observe`, TextArena is asked before each move what it shows.
    """
    import textarena

    numbers = RandomNumbers()
    numbers.seed(seed)
    states = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.set_state(numbers.numpy.get_state())
    try:
        env = textarena.make(env_id, **OPTIONS.get(env_id.removesuffix("-raw").removesuffix("-train"), {}))
        env.reset(num_players=num_players, seed=seed)
        game, is_over = Game(), False
        for _, move in moves:
            assert not is_over
            player = env.state.current_player_id
            if observe:
                game.shown.append((player, env.get_observation()[1]))
            game.moves.append((player, move))
            is_over, _ = env.step(move)
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
    rewards = env.close()[0]
    game.rewards = {player: rewards.get(player, 0) if rewards else 0 for player in range(num_players)} if is_over else None
    game.logs = env.state.logs
    return game


def original(name: str) -> ModuleType:
    """Return a module of TextArena as the package has it."""
    module = ModuleType(f"original.{name}")
    exec(compile(inspect.getsource(importlib.import_module(name)), name, "exec"), vars(module))
    return module
