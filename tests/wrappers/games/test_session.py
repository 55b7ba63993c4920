"""`GameSessionEnv`: a game belongs to its player, lives on one thread where it blocks, and is closed when its player leaves."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

import vfgym
from tests.wrappers.games.counting import Counting, Game, _rollout
from tests.wrappers.games.nim import Nim, NimEnv
from vfgym.aio.threads import Worker
from vfgym.errors import Error
from vfgym.state import State
from vfgym.testing import ScriptedClient
from vfgym.wrappers.games import session
from vfgym.wrappers.games.session import GameSession, close_or_log
from vfgym.wrappers.games.turns import Turn


def test_each_fork_has_a_game_of_its_own_and_closes_it() -> None:
    env = Counting(blocking=False)
    seats = [env.fork() for _ in range(3)]
    for turns, seat in enumerate(seats):
        seat.reset(seed=turns)
        for _ in range(turns):
            seat.step("up")
    assert [game.count for game in env.games] == [0, 1, 2]
    for seat in seats:
        seat.close()
        seat.close()
    assert [game.closed for game in env.games] == [1, 1, 1]


def test_blocking_games_run_at_once_in_async_runs_each_on_its_own_thread() -> None:
    """Every move waits until all eight games are in the middle of one: on the loop, or on a shared thread, none would return."""
    env = Counting()
    env.barrier = threading.Barrier(8)

    async def run() -> list[State]:
        return await asyncio.gather(*(_rollout(env, ScriptedClient(["up"] * 3)) for _ in range(8)))

    states = asyncio.run(run())
    assert [state["reward"] for state in states] == [1.5] * 8
    threads = [game.threads for game in env.games]
    assert all(len(own) == 1 for own in threads)
    assert threading.get_ident() not in set().union(*threads)
    assert len(set().union(*threads)) == 8


class BeginsSlowly(Counting):
    """Its first game lets the event loop have many turns before it has begun; the others begin once all of them do."""

    def __init__(self, others: int, *, fails: bool) -> None:
        super().__init__()
        self.barrier_of_others = threading.Barrier(others, timeout=20)
        self.fails = fails
        self.begun: list[str] = []
        self.loop: asyncio.AbstractEventLoop

    def begin_game(self, game: Game, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[vfgym.Message]:
        self.begun.append("begins")
        if len(self.begun) > 1:
            self.barrier_of_others.wait()
        else:
            asyncio.run_coroutine_threadsafe(self._have_turns(), self.loop).result(20)
            self.begun.append("has begun")
            if self.fails:
                raise Error("it cannot begin")
        return super().begin_game(game, state, seed, options)

    async def _have_turns(self) -> None:
        for _ in range(200):
            await asyncio.sleep(0)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("is_pickled", [False, True])
def test_the_first_game_on_a_thread_begins_alone_and_then_all_others_at_once(fails: bool, is_pickled: bool) -> None:
    """So what it imports is whole when the others want it. That it has begun elsewhere, in another process, says nothing."""

    async def run(env: BeginsSlowly) -> list[State]:
        env.loop = asyncio.get_running_loop()
        return await asyncio.gather(*(_rollout(env, ScriptedClient(["up"] * 3)) for _ in range(6)))

    env = BeginsSlowly(5, fails=fails)
    if is_pickled:
        env._imported_in = -1  # as it stands in a pickle of another process
    states = asyncio.run(run(env))
    assert env.begun == ["begins", "has begun", *["begins"] * 5]
    assert sorted(state["error"] is None for state in states) == [not fails, *[True] * 5]
    env.begun = ["begins"]
    env.barrier_of_others = threading.Barrier(6, timeout=20)
    asyncio.run(run(env))
    assert env.begun == ["begins"] * 7


class Busy(Counting):
    """The port of its first game is taken."""

    def open_game(self) -> Game:
        game = super().open_game()
        if len(self.games) == 1:
            raise RuntimeError("port busy")
        return game


def test_a_game_that_could_not_be_opened_is_opened_at_the_next_reset() -> None:
    env = Busy(blocking=False)
    with pytest.raises(RuntimeError, match="port busy"):
        env.reset(seed=0)
    for seed in (1, 2):
        env.reset(seed=seed)
        assert env.step("up").reward == 0.5
    env.close()
    assert [game.seeds for game in env.games] == [[], [1, 2]]
    assert [game.closed for game in env.games] == [0, 1]


@pytest.mark.parametrize("blocking", [False, True])
def test_a_game_that_could_not_be_opened_costs_one_episode_of_a_run(blocking: bool) -> None:
    results = vfgym.evaluate(Busy(blocking=blocking), lambda observation, info: "up", num_examples=4, max_concurrent=1, progress=False)
    errors = [row["error"] and row["error"]["error_chain_repr"] for row in results["outputs"]]
    assert errors == ["RuntimeError('port busy')", None, None, None]


@pytest.mark.parametrize("tell_legal_actions", [True, False])
@pytest.mark.parametrize("opponents", ["random", "self"])
def test_a_blocking_table_in_an_async_run_is_always_called_on_its_own_thread(opponents: str, tell_legal_actions: bool) -> None:
    tables: list[Nim] = []
    threads: set[int] = set()

    def note(function: Any) -> Any:
        return lambda *args: threads.add(threading.get_ident()) or function(*args)

    class Tables(NimEnv):
        def open_table(self) -> Nim:
            tables.append(Nim())
            for name in ("observe", "move", "legal_moves", "info", "sample_move", "reset"):
                setattr(tables[-1], name, note(getattr(tables[-1], name)))
            return tables[-1]

    env = Tables(blocking=True, opponents=opponents, tell_legal_actions=tell_legal_actions)
    results = vfgym.evaluate(env, "random", num_examples=1, progress=False)
    assert results["outputs"][0]["stop_condition"] == "game_over"
    assert (len(tables), len(threads), threading.get_ident() in threads) == (1, 1, False)


async def test_a_game_that_begins_inside_the_first_ones_beginning_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would wait for ends only after it."""
    waited: list[Any] = []

    async def wait(first: Any) -> None:
        waited.append(first)

    monkeypatch.setattr(session, "_wait_until_begun", wait)
    begun: list[str] = []

    class Agent:
        def for_episode(self, env: Any) -> Any:
            inner = NimEnv(sticks=9, blocking=True)
            inner.reset(seed=0)
            inner.close()
            begun.append("inside")
            return lambda observation, info: "1"

    env = NimEnv(sticks=5, opponents=Agent(), blocking=True)
    await env.areset(seed=0)
    await env.aclose()
    assert (begun, waited) == (["inside"], [])


async def test_others_begin_after_a_while_where_the_first_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_PATIENCE", 0.01)
    is_released = threading.Event()

    class Stuck(Counting):
        def begin_game(self, *args: Any) -> Any:
            is_released.wait(60)
            return super().begin_game(*args)

    stuck, env = Stuck(), Counting()
    first = asyncio.ensure_future(stuck.areset(seed=0))
    while session._first_begin is None:
        await asyncio.sleep(0)
    await env.areset(seed=0)
    assert not first.done()
    is_released.set()
    await first
    for each in (stuck, env):
        await each.aclose()
    assert session._first_begin is None


class Slow(Counting):
    """Its moves take as long as nobody releases them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.is_released, self.thinks = threading.Event(), threading.Event()

    def make_move(self, game: Any, message: vfgym.Message, state: State) -> Turn:
        if message.content == "think":
            self.thinks.set()
            self.is_released.wait(60)
        return super().make_move(game, message, state)


async def test_a_game_that_is_stuck_in_a_move_is_left_to_its_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next episode has another game; closing does not wait for long; and once the move ends, the game is closed after all."""
    monkeypatch.setattr(session, "_PATIENCE", 0.01)
    env = Slow()
    for episode in range(2):
        await env.areset(seed=episode)
        move = asyncio.ensure_future(env.astep("think"))
        await asyncio.to_thread(env.thinks.wait, 60)
        env.thinks.clear()
        move.cancel()
        with pytest.raises(asyncio.CancelledError):
            await move
        assert env.state.session.is_stuck
        assert env.render_picture(env.state) is None
    assert len(env.games) == 2
    await env.aclose()
    assert "a game of Slow is stuck in a move: it is left to its thread, and not closed" in caplog.text
    assert [game.closed for game in env.games] == [0, 0]
    env.is_released.set()
    while [game.closed for game in env.games] != [1, 1]:
        await asyncio.sleep(0)


class Drawing(Counting):
    """Draws itself, as long as it can."""

    pictures: list[Any]

    def draw_picture(self, game: Any) -> Any:
        game.touch()
        return self.pictures.pop(0)


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_game_is_drawn_where_it_is_played(blocking: bool) -> None:
    env = Drawing(blocking=blocking)
    assert Counting().draw_picture(None) is None
    assert env.render_picture(State({"input": {}})) is None
    env.pictures = ["a picture"]
    await env.areset(seed=0)
    assert env.render_picture(env.state) == "a picture"
    assert env.games[0].threads == {threading.get_ident()} if not blocking else len(env.games[0].threads) == 1
    await env.aclose()


def test_a_game_that_cannot_draw_itself_is_asked_once_and_that_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    env = Drawing(blocking=False)
    env.pictures = []
    env.reset(seed=0)
    assert [env.render_picture(env.state) for _ in range(2)] == [None, None]
    assert [record.message for record in caplog.records] == [
        "Drawing shows its conversation instead of the game, which cannot be drawn: IndexError('pop from empty list')"
    ]


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_game_whose_closing_fails_leaves_no_thread(blocking: bool, caplog: pytest.LogCaptureFixture) -> None:
    class Unclosable(Counting):
        def close_game(self, game: Any) -> None:
            super().close_game(game)
            raise OSError("gone")

    close_or_log(SimpleNamespace(close=lambda: 1 / 0))
    assert caplog.messages == ["a game of SimpleNamespace could not be closed: ZeroDivisionError('division by zero')"]
    env, unopened = Unclosable(blocking=blocking), Busy(blocking=blocking)
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="port busy"):
        await unopened.areset(seed=0)
    for thread in set(threading.enumerate()) - before:
        await asyncio.to_thread(thread.join, 20)
        assert not thread.is_alive()
    before = set(threading.enumerate())
    await env.areset(seed=0)
    await env.aclose()
    assert env.games[0].closed == 1
    assert "a game of Game could not be closed: OSError('gone')" in caplog.text
    for thread in set(threading.enumerate()) - before:
        await asyncio.to_thread(thread.join, 20)
        assert not thread.is_alive() or "asyncio" in thread.name


def test_closing_a_game_swallows_errors_only() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        close_or_log(SimpleNamespace(close=interrupt))
    session.GameSessionEnv.close_game(Counting(), object())  # has nothing to close


async def test_a_move_that_ends_while_it_is_waited_for_is_followed_by_the_closing(caplog: pytest.LogCaptureFixture) -> None:
    env = Slow()
    await env.areset(seed=0)
    move = asyncio.ensure_future(env.astep("think"))
    await asyncio.to_thread(env.thinks.wait, 60)
    move.cancel()
    with pytest.raises(asyncio.CancelledError):
        await move
    closing = asyncio.ensure_future(env.aclose())
    await asyncio.sleep(0)
    env.is_released.set()
    await closing
    assert ([game.closed for game in env.games], caplog.messages) == ([1], [])


def test_a_copy_of_a_session_has_its_game_and_no_thread() -> None:
    player = GameSession()
    player.game, player.has_game, player.worker = ["a game"], True, Worker()
    for twin in (copy.deepcopy(player), pickle.loads(pickle.dumps(player))):
        assert (twin.game, twin.has_game, twin.worker, twin.is_stuck) == (["a game"], True, None, False)
        assert twin.game is not player.game
    player.worker.close()
    closed: list[Any] = []
    unstarted = GameSession()
    unstarted.game, unstarted.has_game = "a game", True
    unstarted.abandon(closed.append)
    assert (unstarted.game, unstarted.has_game, unstarted.worker) == (None, False, None)
