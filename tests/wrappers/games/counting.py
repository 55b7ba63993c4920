"""Games for one player that count, for tests of what all games share."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import vfgym
from vfgym.state import State
from vfgym.testing import ScriptedClient
from vfgym.wrappers.games.turns import Turn


class Game:
    """Counts; records what happened to it, and on which thread."""

    def __init__(self) -> None:
        self.seeds: list[int | None] = []
        self.threads: set[int] = {threading.get_ident()}
        self.count = 0
        self.closed = 0

    def touch(self) -> None:
        self.threads.add(threading.get_ident())


class Counting(vfgym.GameEnv):
    """Say "up" until the game has counted to three; each move is worth a half."""

    barrier: threading.Barrier | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.games: list[Game] = []

    def open_game(self) -> Game:
        self.games.append(Game())
        return self.games[-1]

    def begin_game(self, game: Game, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[vfgym.Message]:
        game.touch()
        game.seeds.append(seed)
        game.count = 0 if options is None else options["count"]
        return [vfgym.UserMessage("count to three")]

    def make_move(self, game: Game, message: vfgym.Message, state: State) -> Turn:
        game.touch()
        if self.barrier is not None:
            self.barrier.wait(timeout=20)
        if message.content != "up":
            return Turn([vfgym.UserMessage("say up")], is_valid=False)
        game.count += 1
        return Turn([vfgym.UserMessage(str(game.count))], reward=0.5, terminated=game.count == 3, info={"count": game.count})

    def close_game(self, game: Game) -> None:
        game.closed += 1


async def _rollout(env: vfgym.GameEnv, client: ScriptedClient) -> State:
    state = await env.rollout(env.tasks.input(0), client, "scripted")
    await env.rubric.score_rollout(state)
    return state


class Answering(vfgym.GameEnv):
    """Answers a move with what it is given. Its game, which has no `close`, is a dict."""

    def __init__(self, answer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.answer = answer

    def open_game(self) -> dict[str, int]:
        return {}

    def begin_game(self, game: Any, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[vfgym.Message]:
        return [vfgym.UserMessage("go")]

    def make_move(self, game: Any, message: vfgym.Message, state: State) -> Turn:
        return self.answer()  # type: ignore[no-any-return]
