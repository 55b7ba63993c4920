"""Round trips of games for several players: an environment beside its table, and the table beside TextArena's or PettingZoo's own game."""

from __future__ import annotations

import contextlib
import copy
import math
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from vfgym.agents import RandomAgent
from vfgym.checks.comparison import Broken, expect_same, same
from vfgym.envs.seat import EpisodeSeat, as_response
from vfgym.messages import AssistantMessage, Message, content_text
from vfgym.state import State
from vfgym.wrappers.games.multiplayer import NOTHING_NEW, SELF, MultiplayerEnv
from vfgym.wrappers.games.turn_based import Player, TurnBasedGame, play_in_turn
from vfgym.wrappers.pettingzoo import PettingZooGame, to_pettingzoo
from vfgym.wrappers.textarena import textarena_games
from vfgym.wrappers.textarena.env import TextArenaEnv
from vfgym.wrappers.textarena.match import _OPTIONS
from vfgym.wrappers.textarena.package import textarena
from vfgym.wrappers.to_textarena import to_textarena

_SEED = 3
_MOVES = 100
"""Moves after which a game that goes on is left."""


class InSelfPlay(MultiplayerEnv):
    """The game of another environment, with the policy at every seat."""

    def __init__(self, env: MultiplayerEnv) -> None:
        self._env = env
        super().__init__(opponents=SELF, blocking=False)

    def open_table(self) -> TurnBasedGame:
        """Make a table as the environment does."""
        return self._env.open_table()


_Note: TypeAlias = tuple[Player, Message | None, Any]
"""A player, the message with which it moved (None if it was told something), and what the table answered."""


def _notes_of(table: TurnBasedGame) -> list[_Note]:
    """Return a list in which is noted from now on what a table is asked and what it answers."""
    notes: list[_Note] = []
    observe, move = table.observe, table.move

    def note_observe(player: Player) -> Any:
        received = observe(player)
        notes.append((player, None, received))
        return received

    def note_move(message: Message) -> Any:
        player = table.turn
        played = move(message)
        notes.append((player, message, played._replace(rewards=dict(played.rewards))))
        return played

    table.observe, table.move = note_observe, note_move  # type: ignore[method-assign]
    return notes


def is_its_table(env: MultiplayerEnv) -> str:
    """Play an episode, and then the same moves at a table without the environment."""
    seat = env.fork()
    seat.reset(seed=_SEED)
    state: State = seat.state  # type: ignore[assignment]  # an episode has begun
    notes = _notes_of(state.session.game)
    observation, info = seat.reset(seed=_SEED)  # at the same table, which is the player's
    state = seat.state  # type: ignore[assignment]
    before = state["rewards"][state["player"]]
    answer: Callable[..., Any] = RandomAgent().for_episode(seat)
    for _ in range(_MOVES):
        if state.session.game.turn is None:
            break
        observation, _, terminated, truncated, info = seat.step(answer(observation, info))
        if terminated or truncated:
            break
    seat.truncate()  # one that is over already is left as it is
    table = env.open_table()
    try:
        table.reset(_SEED, None)
        earned = dict.fromkeys(table.players, 0.0)
        for number, (player, message, answered) in enumerate(notes, 1):
            if message is None:
                expect_same(f"what {player!r} is told", answered, table.observe(player), f"in event {number}")
                continue
            expect_same("the player whose turn it is", player, table.turn, f"in event {number}")
            played = table.move(message)
            expect_same(f"what {player!r}'s move leads to", answered, played._replace(rewards=dict(played.rewards)), f"in event {number}")
            for each, reward in played.rewards.items():
                earned[each] += float(reward)
        moves = sum(message is not None for _, message, _ in notes)
        where = f"after {moves} moves"
        expect_same("state['rewards']", state["rewards"], earned, where)
        _expect_paid(sum(step["reward"] for step in state["trajectory"]), earned[state["player"]] - before, where)
        _expect_reports(
            state, [received or NOTHING_NEW for player, message, received in notes if message is None and player == state["player"]]
        )
        turn = state["turn"]
        is_over = turn is not None and (turn.terminated or turn.truncated)
        expect_same("whether the game is over", is_over, table.turn is None, where)
    finally:
        table.close()
        seat.close()
    return f"{moves} moves of {len(earned)} player(s)"


def _expect_paid(paid: float, earned: float, where: str) -> None:
    if not math.isclose(paid, earned, abs_tol=1e-9):  # a step pays the difference of two sums
        raise Broken(f"the steps paid the policy's seat {paid} {where}, and the table {earned}")


def _expect_reports(state: State, received: list[Any]) -> None:
    """Compare what the table told the policy's seat with what stands in its conversation, which may lack the answer to its last move."""
    sent = [message["content"] for message in (*state["prompt"], *state["completion"]) if message["role"] == "user"]
    if not same(sent, received[: len(sent)]) or len(sent) < len(received) - 1:
        raise Broken(f"the conversation of the policy's seat holds {sent!r:.150}, and the table sent it {received!r:.150}")


def takes_its_own_moves(env: MultiplayerEnv) -> str:
    """Play a game with the moves that the table samples and one with those that it calls legal, each in the form of an answer."""
    table, rng = env.open_game(), np.random.default_rng(_SEED)

    def expect_taken(name: str, move: Any) -> None:
        message = as_response(env.message_of(move)).message
        where = f"at its turn, player {table.turn!r} answers {content_text(message['content'])!r:.80}, which {name} gave"
        played, why = play_in_turn(table, message, env.move_of)
        if why:
            raise Broken(f"{where}: move_of finds no move in what message_of made of it ({why:.150})")
        if not played.is_valid:
            raise Broken(f"{where}: the table does not take it")

    try:
        table.reset(_SEED, None)
        sampled = 0
        # Where nobody knows what is legal, samples may well be refused.
        while table.turn is not None and sampled < _MOVES and table.legal_moves(table.turn):
            expect_taken("sample_move", table.sample_move(table.turn, rng))
            sampled += 1
        table.reset(_SEED, None)
        listed = 0
        while table.turn is not None and listed < _MOVES and (legal := table.legal_moves(table.turn)):
            expect_taken("legal_moves", AssistantMessage(legal[listed % len(legal)]))
            listed += 1
    finally:
        table.close()
    return f"{sampled} sampled and {listed} listed moves" if sampled else "not compared: the table does not know which moves are legal"


def draws_its_own_numbers(env: MultiplayerEnv) -> str:
    """Play two games one after the other and then by turns, and look at the random numbers of the process."""
    process = random.getstate(), np.random.get_state()
    alone = [_whole_game(env, seed) for seed in (_SEED, _SEED + 1)]
    seats = [env.fork(), env.fork()]
    by_turns: list[list[Any]] = [[seat.reset(seed=seed)] for seat, seed in zip(seats, (_SEED, _SEED + 1), strict=True)]
    for turn in range(max(len(actions) for actions, _ in alone)):
        for seat, (actions, _), outcomes in zip(seats, alone, by_turns, strict=True):
            if turn < len(actions):
                outcomes.append(tuple(seat.step(actions[turn])))
    for seat, (_, outcomes), others in zip(seats, alone, by_turns, strict=True):
        seat.close()
        if not same(outcomes, others):
            raise Broken("two games that are played by turns differ from the same two played one after the other")
    if not same(process, (random.getstate(), np.random.get_state())):
        raise Broken("the random numbers of the process were drawn from, or seeded")
    return "2 games by turns"


def _whole_game(env: MultiplayerEnv, seed: int) -> tuple[list[Any], list[Any]]:
    """Play an episode with random moves; return the actions, and all that came back."""
    seat: EpisodeSeat = env.fork()
    actions: list[Any] = []
    observation, info = seat.reset(seed=seed)
    outcomes: list[Any] = [(observation, info)]
    answer: Callable[..., Any] = RandomAgent().for_episode(seat)
    for _ in range(_MOVES):
        actions.append(answer(observation, info))
        outcomes.append(tuple(seat.step(actions[-1])))
        observation, _, terminated, truncated, info = outcomes[-1]
        if terminated or truncated:
            break
    seat.close()
    return actions, outcomes


# Games of TextArena


def is_textarenas_game(env: TextArenaEnv) -> str:
    """Play the environment's table, the environment turned back, and TextArena's own game with the same seed and moves."""
    environment = textarena_games()[env.game]
    options = {**_OPTIONS.get(environment["base"], {}), **env._table_options}
    options.pop("max_moves", None)  # which is the table's
    rng = np.random.default_rng(_SEED)
    table, back = env.open_table(), to_textarena(env)
    with _process_seeded(_SEED):
        own = textarena().make(f"{environment['base']}-raw", **options)
        own.reset(num_players=len(table.players), seed=_SEED)
        table.reset(_SEED, None)
        back.reset(num_players=len(table.players), seed=_SEED)
        earned = dict.fromkeys(table.players, 0.0)
        moves = 0
        while table.turn is not None and moves < _MOVES:
            where = f"at move {moves + 1}"
            expect_same("what the player whose turn it is is told", back.get_observation(), own.get_observation(), where)
            expect_same("the player whose turn it is", table.turn, own.state.current_player_id, where)
            text = content_text(table.sample_move(table.turn, rng)["content"]).strip()
            if environment["brackets"] and "[" not in text and "]" not in text:
                text = f"[{text}]"  # as TextArena's wrapper does, which is not around its raw game
            played = table.move(AssistantMessage(text))
            for player, reward in played.rewards.items():
                earned[player] += reward
            moves += 1
            try:
                is_over, info = own.step(text)
            except Exception as error:  # many games raise on odd input, and the table goes on (see `TextArenaGame`)
                return f"compared up to move {moves}, on which TextArena's own game raises {error!r:.80}"
            if table.was_truncated:
                return f"compared up to move {moves}, after which the table's limit ended it"
            expect_same("whether the game is over, and its info", back.step(text), (is_over, info), where)
            expect_same("whether the table's game is over", table.turn is None, is_over, where)
        rewards, received = own.close()
        mine, mine_received = back.close()
    where = f"after {moves} moves"
    if rewards is not None:
        # A few games mix up the reward and its reason where an invalid move ends them.
        given = {player: float(received[player]["reason"] if isinstance(reward, str) else reward) for player, reward in rewards.items()}
        expected = {player: given.get(player, 0.0) for player in table.players}
        expect_same("the table's rewards", earned, expected, where)
        expect_same("the rewards", mine, expected, where)
    expect_same("the info about the players", mine_received, received, where)
    return f"{moves} moves of {len(table.players)} player(s)"


@contextlib.contextmanager
def _process_seeded(seed: int) -> Iterator[None]:
    """Seed the random numbers of the process, from which TextArena's own games draw, as a table is seeded; restore them afterwards."""
    process = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(random.Random(seed).getrandbits(32))
    try:
        yield
    finally:
        random.setstate(process[0])
        np.random.set_state(process[1])


# Games of PettingZoo


def plays_pettingzoo(env: MultiplayerEnv) -> bool:
    """Say whether the table of an environment is one of PettingZoo."""
    table = env.open_table()
    table.close()
    return isinstance(table, PettingZooGame)


def is_pettingzoos_game(env: MultiplayerEnv) -> str:
    """Play the environment's table, the environment turned back, and PettingZoo's own game with the same seed and actions."""
    table: Any = env.open_table()
    own = env.open_table().env  # type: ignore[attr-defined]  # another table's environment, which is played without the table
    back: Any = to_pettingzoo(env.open_table)
    rng = np.random.default_rng(_SEED)
    table.reset(_SEED, None)
    own.reset(seed=_SEED)
    back.reset(seed=_SEED)
    moves = 0
    try:
        while table.turn is not None and moves < _MOVES:
            where = f"at move {moves + 1}"
            turn = _next_agent(own)
            expect_same("the agent whose turn it is", table.turn, turn, where)
            expect_same("the agent whose turn it is when turned back", back.players[back.agent_selection], turn, where)
            expect_same("the observation", table.env.observe(turn), own.observe(turn), where)
            message = table.sample_move(turn, rng)
            action = table.codecs[turn].decode(content_text(message["content"]))
            own.step(copy.deepcopy(action))  # an environment may write to what it is given
            rewards = {agent: float(reward) for agent, reward in own.rewards.items()}
            expect_same("the rewards", dict(table.move(message).rewards), rewards, where)
            back.step(message)
            expect_same(
                "the rewards when turned back", {back.players[agent]: reward for agent, reward in back.rewards.items()}, rewards, where
            )
            moves += 1
        if not table.was_truncated:
            expect_same("whether the game is over", table.turn is None, _next_agent(own) is None, f"after {moves} moves")
    finally:
        for each in (table, own, back):
            each.close()
    return f"{moves} moves of {len(table.players)} player(s)"


def _next_agent(env: Any) -> Any:
    """Return who acts next; agents who are out of the game take their last step, of None, before."""
    while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
        env.step(None)
    return env.agent_selection if env.agents else None
