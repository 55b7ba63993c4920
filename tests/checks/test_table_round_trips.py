"""Environments of games for several players beside their tables, and those beside the games that they were made of."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from tests.checks.promises import OWN_MOVES, OWN_NUMBERS, PETTINGZOO, SELF_PLAY, TABLE, TEXTARENA, broken, kept
from tests.wrappers.games.nim import Nim, NimEnv
from vfgym.checks.comparison import Broken
from vfgym.checks.table_round_trips import draws_its_own_numbers, is_its_table, is_textarenas_game, takes_its_own_moves
from vfgym.codecs import ActionNotFound
from vfgym.messages import AssistantMessage, Message, UserMessage, content_text
from vfgym.state import State
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.turn_based import Played, Player
from vfgym.wrappers.games.turns import Turn
from vfgym.wrappers.pettingzoo import PettingZooGame
from vfgym.wrappers.textarena import TextArenaGame
from vfgym.wrappers.textarena.env import TextArenaEnv


def nim_at(table: type[Nim]) -> Callable[[], NimEnv]:
    """Return an environment whose table is of some kind."""

    class TableEnv(NimEnv):
        def open_table(self) -> Nim:
            return table()

    return TableEnv


# Games for several players


@pytest.mark.parametrize("options", [{}, {"num_players": 3, "seat": "random"}, {"opponents": "self"}])
def test_a_game_for_several_players_is_its_table(options: dict[str, Any]) -> None:
    details = kept(lambda: NimEnv(**options))
    expected = [TABLE, OWN_MOVES, OWN_NUMBERS] if options.get("opponents") else [TABLE, SELF_PLAY, OWN_MOVES, OWN_NUMBERS]
    assert list(details) == expected
    assert details[TABLE].endswith(f"moves of {options.get('num_players', 2)} player(s)")


class Formed(NimEnv):
    """Nim whose moves stand in brackets, but not those that `message_of` writes."""

    def move_of(self, message: Message) -> Message:
        text = content_text(message["content"])
        if not text.startswith("["):
            raise ActionNotFound("Put your move into brackets.")
        return AssistantMessage(text.strip("[]"))


def test_moves_that_a_table_does_not_take_itself_are_reported() -> None:
    class Guessing(Nim):
        def sample_move(self, player: Player, rng: np.random.Generator) -> Message:
            return AssistantMessage("77")

    class Lying(Nim):
        def legal_moves(self, player: Player) -> list[str]:
            return ["1", "77"]

    assert broken(nim_at(Guessing))[OWN_MOVES] == "at its turn, player 0 answers '77', which sample_move gave: the table does not take it"
    assert broken(nim_at(Lying))[OWN_MOVES] == "at its turn, player 1 answers '77', which legal_moves gave: the table does not take it"
    assert "move_of finds no move in what message_of made of it (Put your move into brackets.)" in broken(Formed)[OWN_MOVES]


def test_the_moves_of_a_table_that_does_not_know_what_is_legal_may_be_refused() -> None:
    class Unsure(Nim):
        def legal_moves(self, player: Player) -> None:  # type: ignore[override]
            return None

        def sample_move(self, player: Player, rng: np.random.Generator) -> Message:
            return AssistantMessage(rng.choice(["1", "77"]))

    assert kept(nim_at(Unsure))[OWN_MOVES] == "not compared: the table does not know which moves are legal"


def test_an_environment_that_pays_its_seat_otherwise_is_reported() -> None:
    class Generous(NimEnv):
        def _take(self, turn: Turn, state: State) -> None:
            turn.reward += 1.0
            super()._take(turn, state)

    failed = broken(Generous)
    assert list(failed) == [TABLE]
    assert "the steps paid the policy's seat" in failed[TABLE]


def whispers(turn: Turn, state: State) -> None:
    turn.messages = [UserMessage("!")]


def repeats(turn: Turn, state: State) -> None:
    turn.messages = turn.messages * 2


def falls_silent(turn: Turn, state: State) -> None:
    if len(state["trajectory"]) > 1:
        turn.messages = []


def counts_again(turn: Turn, state: State) -> None:
    state["rewards"] = {player: reward + 0.5 for player, reward in state["rewards"].items()}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (whispers, "the conversation of the policy's seat holds .*'!'.* and the table sent it "),
        (falls_silent, "the conversation of the policy's seat holds"),
        (repeats, "the conversation of the policy's seat holds"),
        (counts_again, r"state\['rewards'\] after \d+ moves"),
    ],
)
def test_an_environment_that_tells_or_counts_otherwise_than_its_table_is_reported(change: Any, what: str) -> None:
    class Changed(NimEnv):
        def _take(self, turn: Turn, state: State) -> None:
            change(turn, state)
            super()._take(turn, state)

    with pytest.raises(Broken, match=what):
        is_its_table(Changed())


class Fickle(Nim):
    """A table that is another one each time, in what `differs` names."""

    made = 0
    differs = ""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        Fickle.made += 1
        self.number = Fickle.made

    def reset(self, seed: int | None, options: Any) -> None:
        super().reset(seed, options)
        if self.differs == "turn" and self.number % 2 == 0:
            self.turn = 1

    def observe(self, player: Player) -> str:
        return super().observe(player) + (f" {self.number}" if self.differs == "told" else "")

    def move(self, message: Message) -> Played:
        played = super().move(message)
        return played._replace(rewards={0: 0.5 * self.number, 1: 0.0}) if self.differs == "played" else played


@pytest.mark.parametrize(
    ("differs", "what"),
    [
        ("told", "what 0 is told in event 1 should be"),
        ("turn", "the player whose turn it is in event"),
        ("played", "what 0's move leads to in event"),
    ],
)
def test_a_table_that_is_another_one_the_next_time_is_reported(differs: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fickle, "differs", differs)
    with pytest.raises(Broken, match=what):
        is_its_table(nim_at(Fickle)())


@pytest.mark.parametrize("draw", [random.random, np.random.rand])
def test_a_table_that_draws_from_the_process_is_reported(draw: Callable[[], float]) -> None:
    class Careless(Nim):
        def move(self, message: Message) -> Played:
            draw()
            return super().move(message)

    assert broken(nim_at(Careless)) == {OWN_NUMBERS: "the random numbers of the process were drawn from, or seeded"}


def test_tables_that_disturb_each_other_are_reported() -> None:
    class Shared(Nim):
        left = [0]
        sticks = property(lambda self: self.left[0], lambda self, sticks: self.left.__setitem__(0, sticks))

    assert OWN_NUMBERS in broken(nim_at(Shared))


@pytest.mark.parametrize("check", [is_its_table, takes_its_own_moves, draws_its_own_numbers])
@pytest.mark.parametrize("breaks", [False, True])
def test_every_table_is_closed(check: Callable[[MultiplayerEnv], str], breaks: bool) -> None:
    opened: list[Nim] = []

    class Lying(Nim):
        def legal_moves(self, player: Player) -> list[str]:
            return ["77"] if breaks else super().legal_moves(player)

    class Noted(NimEnv):
        def open_table(self) -> Nim:
            opened.append(Lying())
            return opened[-1]

    env = Noted()
    with pytest.raises(Broken) if breaks and check is takes_its_own_moves else nullcontext():
        check(env)
    env.close()
    assert {table.closed for table in opened} == {1}


def test_an_episode_that_does_not_end_with_its_game_is_reported() -> None:
    class Endless(NimEnv):
        def _take(self, turn: Turn, state: State) -> None:
            turn.terminated = turn.truncated = False
            super()._take(turn, state)

    assert "whether the game is over after" in broken(Endless)[TABLE]


# Games of TextArena


@pytest.mark.parametrize(("game", "players"), [("TicTacToe-v0", 2), ("Poker-v0-train", 2), ("GuessTheNumber-v0", 1), ("Briscola-v0", 2)])
def test_a_game_of_textarena_is_textarenas_own(game: str, players: int) -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    details = kept(lambda: TextArenaEnv(game))
    assert list(details) == [TABLE, SELF_PLAY, OWN_MOVES, OWN_NUMBERS, TEXTARENA]
    assert details[TEXTARENA].endswith(f"moves of {players} player(s)")


class DoubleStakes(TextArenaGame):
    def move(self, message: Message) -> Played:
        played = super().move(message)
        return Played({player: 2.0 * reward for player, reward in played.rewards.items()}, played.is_valid)


class DoubleStakesEnv(TextArenaEnv):
    def open_table(self) -> TextArenaGame:
        return DoubleStakes(self.game)


def test_the_random_numbers_of_the_process_are_as_before_a_game_of_textarena() -> None:
    """Its own games draw from them."""
    pytest.importorskip("textarena", reason="needs the extra textarena")
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index, union-attr]
    for env in (TextArenaEnv("TicTacToe-v0"), DoubleStakesEnv("TicTacToe-v0")):
        with contextlib.suppress(Broken):
            is_textarenas_game(env)
        assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index, union-attr]


def test_a_table_that_is_not_textarenas_game_is_reported() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    failed = broken(lambda: DoubleStakesEnv("TicTacToe-v0"))
    assert list(failed) == [TEXTARENA]
    assert "the table's rewards after" in failed[TEXTARENA]


# Games of PettingZoo


class TicTacToe(MultiplayerEnv):
    def __init__(self, table: type[PettingZooGame]) -> None:
        self.table = table
        super().__init__()

    def open_table(self) -> PettingZooGame:
        return self.table("classic/tictactoe_v3")


class Sore(PettingZooGame):
    def move(self, message: Message) -> Played:
        played = super().move(message)
        return Played({player: 3.0 * min(reward, 0.0) for player, reward in played.rewards.items()}, played.is_valid)


def test_a_table_that_is_not_pettingzoos_game_is_reported() -> None:
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    assert kept(lambda: TicTacToe(PettingZooGame))[PETTINGZOO].endswith("moves of 2 player(s)")
    failed = broken(lambda: TicTacToe(Sore))
    assert list(failed) == [PETTINGZOO]
    assert "the rewards at move" in failed[PETTINGZOO]
