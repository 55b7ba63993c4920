"""`TextArenaGame`: the games that TextArena plays, with random numbers of their own, told once, and ended by something in every case."""

from __future__ import annotations

import copy
import logging
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.programs import run_python
from tests.sampling import SEED
from tests.wrappers.textarena.playing import Game, begun, play, play_natively, say, some_of_all
from vfgym.errors import ConfigurationError, ResetNeeded
from vfgym.messages import AssistantMessage
from vfgym.wrappers.games.turn_based import NO_MOVE
from vfgym.wrappers.textarena import TextArenaGame, match
from vfgym.wrappers.textarena.moves import LEGAL

pytest.importorskip("textarena", reason="needs the extra textarena")
pytestmark = pytest.mark.usefixtures("process_is_left_alone")


# The games


@some_of_all("default", "raw", "train", number=10)
def test_it_is_the_game_that_textarena_plays(env_id: str) -> None:
    """The same seed and moves give the same turns, the same talk and the same rewards as in TextArena, with its wrappers."""
    table = TextArenaGame(env_id, max_moves=120)
    game = play(table, SEED)
    native = play_natively(env_id, len(table.players), SEED, game.moves)
    assert native.moves == game.moves
    assert repr(native.logs) == repr(game.logs)
    if native.rewards is None or not any(isinstance(reward, str) for reward in native.rewards.values()):  # see test_rewards_are_numbers
        assert native.rewards == game.rewards


@pytest.mark.parametrize("env_id", ["SecretMafia-v0", "Surround-v0"])
def test_more_players_than_by_default(env_id: str) -> None:
    table = TextArenaGame(env_id, 8, max_moves=120)
    game = play(table, SEED)
    assert table.players == tuple(range(8))
    native = play_natively(env_id, 8, SEED, game.moves)
    assert (native.moves, native.rewards) == (game.moves, game.rewards)


@pytest.mark.parametrize("env_id", ["Blackjack-v0", "LiarsDice-v0"])
def test_a_reset_without_a_seed_goes_on_with_the_numbers_of_the_table(env_id: str) -> None:
    def games(*seeds: int | None) -> list[Game]:
        table = TextArenaGame(env_id, max_moves=6)
        return [play(table, seed) for seed in seeds]

    one = games(3, None, None)
    assert one == games(3, None, None)
    assert one[0] != one[1] != one[2]
    assert len({games(seed)[0].shown[0] for seed in (*range(8), *[None] * 5)}) > 4, "without any seed it begins anywhere"


@some_of_all("raw")
def test_a_used_table_plays_as_a_new_one(env_id: str) -> None:
    used = TextArenaGame(env_id, max_moves=60)
    play(used, 1, nonsense=0.5)
    assert play(used, 2) == play(TextArenaGame(env_id, max_moves=60), 2)


@some_of_all("raw")
def test_tables_do_not_disturb_each_other(env_id: str) -> None:
    """Two games that are played by turns, while the process draws too, are the games that are played alone."""
    alone = [play(TextArenaGame(env_id, max_moves=40), seed) for seed in (1, 2)]
    tables = [begun(env_id, seed, max_moves=40) for seed in (1, 2)]
    for moves in zip(*(game.moves for game in alone), strict=False):
        for table, (player, move) in zip(tables, moves, strict=True):
            state = random.getstate()
            random.random()
            assert table.turn == player
            say(table, move)
            random.setstate(state)
    for table, game in zip(tables, alone, strict=True):
        assert repr(table.raw.state.logs) == repr(game.logs[: len(table.raw.state.logs)])


@some_of_all("train")
def test_copies_go_their_own_ways(env_id: str) -> None:
    """A table can be copied and pickled in the middle of a game, and goes on as if it had not been."""
    table, rng = begun(env_id, 5, max_moves=20), np.random.default_rng(5)
    for _ in range(4):
        if table.turn is not None:
            table.move(table.sample_move(table.turn, rng))
    ends = []
    for one in (table, copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
        rng, rewards = np.random.default_rng(6), []
        while one.turn is not None:
            rewards.append(one.move(one.sample_move(one.turn, rng)).rewards)
        ends.append((rewards, [one.observe(player) for player in one.players]))
    assert ends == [ends[0]] * 3


def test_a_pickle_brings_its_game_into_a_new_process() -> None:
    """What is loaded there draws from the table too, and not from the process."""
    table = begun("Blackjack-v0", 3)
    code = f"""
        import pickle, random
        state, table = random.getstate(), pickle.loads({pickle.dumps(table)!r})
        from vfgym.messages import AssistantMessage
        table.move(AssistantMessage('[hit]'))
        assert random.getstate() == state
        print(table.observe(0))
    """
    say(table, "[hit]")
    assert run_python(code, check=True).stdout == table.observe(0) + "\n"


# What is told


def test_what_a_player_is_told() -> None:
    table = begun("TicTacToe-v0")
    assert table.observe(0).startswith("You are Player 0 in Tic Tac Toe.")
    assert table.observe(0) == ""
    say(table, "[4]")
    text = table.observe(1)
    assert text.startswith("You are Player 1 in Tic Tac Toe.")
    assert "[Player 0] [4]\n\nPlayer 0 placed their symbol (O) in cell 4.\n\nCurrent Board:" in text
    assert text.count("Current Board:") == 1
    say(table, "[0]", "[3]", "[8]")
    text = table.observe(0)
    assert ("[Player 0]" in text, text.count("Current Board:"), "Player 0 placed" in text) == (False, 1, True)


@pytest.mark.parametrize("env_id", ["TicTacToe-v0", "TicTacToe-v0-train", "Slitherlink-v0"])
def test_what_is_told_can_be_had_in_textarenas_form_too(env_id: str) -> None:
    """Each once, in whatever order the two are asked for, and however late."""
    text_first, raw_first, late = (begun(env_id, 1) for _ in range(3))
    everything: dict[int, list[Any]] = {player: [] for player in late.players}
    for _ in range(4):
        player = int(text_first.turn or 0)
        text, told = text_first.observe(player), text_first.raw_observation(player)
        assert text
        assert told
        assert (raw_first.raw_observation(player), raw_first.raw_observation(player)) == (told, [])
        assert (raw_first.observe(player), raw_first.observe(player)) == (text, "")
        assert raw_first.raw_observation(player) == []
        assert late.observe(player) == text
        everything[player] += told
        message = text_first.sample_move(player, np.random.default_rng(1))
        for table in (text_first, raw_first, late):
            table.move(message)
    for player, told in everything.items():
        assert late.raw_observation(player) == told + text_first.raw_observation(player)


def test_random_moves_of_an_unknown_game_are_among_what_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a later version of textarena: all that is in brackets in its rules, and in what was told last."""
    monkeypatch.delitem(LEGAL, "TicTacToe")
    table = begun("TicTacToe-v0")
    for player, first in [(0, 0), (1, 1), (0, 2)]:
        table.observe(player)
        drawn = {table.sample_move(player, np.random.default_rng(seed))["content"] for seed in range(200)}
        assert drawn >= {f"[{cell}]" for cell in range(first, 9)}
        say(table, f"[{first}]")


DRAW = ["[0]", "[1]", "[2]", "[4]", "[3]", "[5]", "[7]", "[6]", "[8]"]


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        (
            ["[0]", "[8]", "[1]", "[7]", "[2]"],
            ("You won. Player 0 has won! Your reward: 1.", "You lost. Player 0 has won! Your reward: -1."),
        ),
        (DRAW, ("It is a draw. The game is a draw! Your reward: 0.",) * 2),
        (["[0]", "x", "y"], ("You won.", "You lost. The submitted move does not follow the correct format. Your reward: -1.")),
    ],
)
def test_in_the_end_everybody_is_told_how_the_game_ended(moves: list[str], told: tuple[str, str]) -> None:
    table = begun("TicTacToe-v0-raw")
    assert table.info(1) == {"role": "Player 1", "invalid_move": False, "turn_count": 0}
    assert set(say(table, *moves).rewards) == {0, 1}
    assert (table.turn, table.was_truncated) == (None, False)
    for player, text in enumerate(told):
        assert f"Game over. {text}" in table.observe(player)
        assert table.observe(player) == ""
        assert table.info(player)["reason"] in text or player == 0
    with pytest.raises(ResetNeeded, match="call reset"):
        say(table, "[5]")


def test_the_end_is_told_in_whole_sentences_to_who_is_in_between_too() -> None:
    """Rewards of games for many go by rank."""
    table = begun("Poker-v0-small")
    while table.turn is not None:
        say(table, "[fold]")
    assert table.observe(0).endswith("Game over. You lost. Final ranking (low→high): [0, 1]. Winner: Player 1. Your reward: -1.")
    table = TextArenaGame("LiarsDice-v0-small", 5)
    rewards = play(table, 1, nonsense=0.0).rewards or {}
    for place, player in enumerate(sorted(rewards, key=rewards.__getitem__)):
        assert ("You lost.", *["You came in between."] * 3, "You won.")[place] in table.observe(player)


# Moves


THOUGHT = [{"type": "text", "text": "<think>[0]</think>"}, {"type": "text", "text": "[4]"}]


@pytest.mark.parametrize("text", ["[4]", "<think>[0] or [4]?</think>\n\n4", THOUGHT])
def test_others_read_a_move_without_its_thoughts(text: Any) -> None:
    table = begun("TicTacToe-v0")
    table.move(AssistantMessage(text))
    assert (0, "[4]") in table.raw.state.logs


@pytest.mark.parametrize("text", ["", "[0] or [4]", "<think>[4]", "The rules say:\n```\n[4]\n```\n[0]"])
def test_what_names_no_move_or_several_is_asked_again_and_does_not_get_to_the_game(text: str) -> None:
    table = begun("TicTacToe-v0")
    table.observe(0)
    before = table.raw.state.turn, list(table.raw.state.logs)
    assert table.move(AssistantMessage(text)) == NO_MOVE
    assert (table.raw.state.turn, table.raw.state.logs) == before
    assert table.turn == 0
    assert "Write your move in brackets" in table.observe(0)
    assert table.move(AssistantMessage("[4]")).is_valid


LISTED = ", ".join(f"[{cell}]" for cell in range(9))
MANY = ", ".join(f"[{row} {col}]" for row in range(4) for col in range(5))


@pytest.mark.parametrize(
    ("env_id", "text", "reason"),
    [
        ("TicTacToe-v0", "9", f"[9] is not a legal move now. Legal moves: {LISTED}."),
        ("TicTacToe-v0", "9" * 200, f"[{'9' * 99} is not a legal move now. Legal moves: {LISTED}."),
        ("LightsOut-v0", "9 9", f"[9 9] is not a legal move now. Legal moves: {MANY}, ..."),
        *(("TicTacToe-v0", "[4]", ""), ("2048-v0", "up", ""), ("2048-v0", "UP", "")),  # other ways to write one
        *(("TicTacToe-v0-raw", "9", ""), ("Tak-v0", "9", ""), ("Poker-v0", "9", ""), ("TicTacToe-v0", "[0] or [1]", "")),
    ],
)
def test_what_is_not_a_legal_move_is_said_before_it_gets_to_the_game(env_id: str, text: str, reason: str) -> None:
    """Where moves are known, and read; of many, twenty are listed."""
    table = begun(env_id)
    assert table.why_not(AssistantMessage(text)) == reason
    assert table.raw.state.turn == 0


def test_legal_moves_are_a_list_of_ones_own_or_none_where_they_are_not_known() -> None:
    table = begun("TowerOfHanoi-v0")
    table.legal_moves(0).clear()  # type: ignore[union-attr]
    assert table.legal_moves(0) == ["[A B]", "[A C]"]
    table.reset(1)
    table.raw.state.game_state["towers"] = {"A": [], "B": [], "C": []}
    assert (table.legal_moves(0), begun("Poker-v0").legal_moves(0)) == ([], None)


def test_what_is_kept_of_a_move_is_forgotten_with_it_and_what_is_told_is_ones_own() -> None:
    table = begun("Breakthrough-v0")
    for player, ranks in ((0, "2 3"), (1, "7 6"), (0, "2 3")):
        assert {f"{move[2]} {move[4]}" for move in table.legal_moves(player) or []} == {ranks}
    say(table, "[a2] or [b2]")
    table.reset(1)
    assert "Write your move in brackets" not in table.observe(0)
    table.info(0)["invalid_move"] = True
    assert table.info(0)["invalid_move"] is False
    table.raw.step = lambda action: (False, {"noted": 1})
    say(table, "[a2a3]")
    assert table.step_info == {"noted": 1}
    table.raw.step = lambda action: 1 / 0
    say(table, "[a2a3]")
    assert table.step_info == {}


def test_twenty_legal_moves_are_all_of_them() -> None:
    table = begun("ThreePlayerTicTacToe-v0")
    say(table, *(f"[{cell}]" for cell in (0, 2, 4, 11, 13)))
    assert len(table.legal_moves(2) or []) == 20
    assert table.why_not(AssistantMessage("[0]")).endswith("[23], [24].")


def test_who_plays_alone_neither_wins_nor_loses() -> None:
    table = begun("GuessTheNumber-v0")
    say(table, f"[{table.raw.game_number}]")
    assert table.observe(0).endswith("Game over. Congratulations! You guessed the correct number. Your reward: 1.")


@pytest.mark.parametrize("error", [AssertionError("odd"), TypeError("odd"), ValueError("odd")])
def test_options_that_a_game_refuses_are_named(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(env_id: str, options: Any) -> Any:
        raise error

    table = TextArenaGame("TowerOfHanoi-v0", num_disks=4, max_turns=9)
    monkeypatch.setattr(match, "new_game", refuse)
    with pytest.raises(ConfigurationError, match=r"^TowerOfHanoi-v0 refuses the options \{'num_disks': 5, 'max_turns': 9\}: odd$"):
        table.reset(0, {"num_disks": 5})


LONG = "".join(map(str, range(1000)))


@pytest.mark.parametrize(
    ("env_id", "text", "said"),
    [
        *(("TicTacToe-v0", "4", "[4]"), ("TicTacToe-v0-raw", "4", "4"), ("LogicPuzzle-v0-train", "4", "[4]")),
        *(
            ("TruthAndDeception-v0-train", LONG, LONG[-1000:]),
            ("TruthAndDeception-v0", LONG, LONG),
            ("TruthAndDeception-v0-train", "4", "4"),
            *(("MarketEntryGame-v0", text, said) for text, said in (("E", "[E]"), ("E]", "E]"), ("[E", "[E"))),
        ),
    ],
)
def test_brackets_and_clipping_are_those_of_textarenas_wrappers(env_id: str, text: str, said: str) -> None:
    table = begun(env_id)
    say(table, text)
    assert (table.turn if env_id.startswith("LogicPuzzle") else 0, said) in table.raw.state.logs


def test_a_refused_move_is_made_again_and_a_second_one_loses() -> None:
    table = begun("ConnectFour-v0")
    assert say(table, "[0]") == ({}, True)
    assert say(table, "nonsense") == ({}, False)
    assert table.turn == 1
    assert "invalid move" in table.observe(1)
    assert say(table, "[0]", "[0]", "[0]") == ({}, True)
    assert say(table, "[99]") == ({}, False)
    assert say(table, "[99]") == ({0: -1.0, 1: 1.0}, False)


def test_valid_moves_of_a_player_who_was_refused_twice_are_valid() -> None:
    """Some games go on with a player whom they found wrong too often."""
    table = begun("PublicGoodsGame-v0")
    while table.raw.state.game_state["phase"] != "decision":
        assert say(table, "{Hello!}").is_valid
    player = table.turn
    assert [say(table, text).is_valid for text in ("?", "?", "[5]")] == [False, False, True]
    assert table.turn != player


@pytest.mark.parametrize("env_id", ["Countdown-v0", "Cryptarithm-v0", "Slitherlink-v0", "ThreeCardMonte-v0"])
def test_rewards_are_numbers(env_id: str) -> None:
    """These games mix up reward and reason when invalid moves end them."""
    table = begun(env_id)
    rewards = say(table, "nonsense", "nonsense").rewards
    assert [type(reward) for reward in rewards.values()] == [float]
    native = play_natively(env_id, 1, 0, [(0, "nonsense")] * 2)
    assert (native.rewards or {})[0] in table.observe(0)
    assert 0.0 <= rewards[0] < 1.0


def test_a_game_that_does_not_end_is_cut_short() -> None:
    table = begun("SantoriniBaseFixed-v0", max_moves=5)
    say(table, *["nonsense"] * 4)
    assert table.turn is not None
    assert say(table, "nonsense") == ({0: 0.0, 1: 0.0}, False)
    assert (table.turn, table.was_truncated) == (None, True)
    assert "The game was cut off before it was decided. The limit of 5 moves was reached. Your reward: 0." in table.observe(1)
    table.reset(0)
    assert not table.was_truncated


# Odd moves


HUGE = "[" + "9" * 5000 + "]"


def test_an_exception_is_an_invalid_move(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="vfgym.wrappers.textarena.match")
    table = begun("ConnectFour-v0")
    assert say(table, "[0]") == ({}, True)
    assert say(table, HUGE) == ({}, False)
    assert "ConnectFour-v0 raised ValueError" in caplog.text
    assert table.turn == 1
    assert "It cannot be read." in table.observe(1)
    assert say(table, HUGE) == ({0: 1.0, 1: -1.0}, False)
    assert "You lost. It cannot be read." in table.observe(1)


def test_a_game_that_cannot_go_on_is_cut_short() -> None:
    """It raised when it is somebody else's turn already, or would have to go on without the player, or has put out everybody."""
    table = begun("TicTacToe-v0")

    def half_a_step(action: str) -> Any:
        table.raw.state.current_player_id = 1
        raise KeyError("board")

    table.raw.step = half_a_step
    assert say(table, "[0]") == ({0: 0.0, 1: 0.0}, True)
    assert table.was_truncated
    table = begun("SettlersOfCatan-v0")
    say(table, "nonsense")
    table.raw.step = lambda action: 1 / 0
    say(table, "nonsense")
    assert table.was_truncated
    assert "The game was cut off before it was decided. The game cannot go on" in table.observe(0)
    table = begun("PublicGoodsGame-v0")
    table.raw.state.elimination_order += table.players
    assert say(table, "{Is anybody here?}") == (dict.fromkeys(range(4), 0.0), True)
    assert table.was_truncated
    assert "Nobody is left in it." in table.observe(0)


MARKED = ["", "[]", "[[]]", "][", "[-1]", "[²]", "[٣]", "[½]", "[1e999]", "[nan]", "[0][1]", "[1 2 3]", "[up]", "[A1]", "[a1b2]", "[,]"]
WORDED = [HUGE, "{x}", "[None]", "[Player 0]", "[bid 99999999999999999999]", "[raise -5]", "[pass]", "\x00", "[0 0 0 0]"]
ODD = st.one_of(st.sampled_from(MARKED + WORDED), st.text(max_size=20).map(lambda text: f"[{text}]"), st.text(max_size=40))


@some_of_all("raw")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(moves=st.lists(ODD, min_size=1, max_size=12))
def test_no_text_breaks_a_game(env_id: str, moves: list[str]) -> None:
    table = begun(env_id, 0, max_moves=10)
    for move in moves:
        if table.turn is not None:
            played = say(table, move)
    if table.turn is None:
        assert all(type(played.rewards[player]) is float for player in table.players)
        end = "The game was cut off" if table.was_truncated else "Game over."
        assert all(end in table.observe(player) for player in table.players)
    else:
        assert (played.rewards, table.turn in table.players) == ({}, True)


# Tables


def test_options_of_the_game() -> None:
    table = TextArenaGame("TowerOfHanoi-v0", num_disks=4)
    numbers = [begun("TowerOfHanoi-v0").raw.num_disks]
    for options in ({}, {"num_disks": 5}, None):
        table.reset(0, options)
        numbers.append(table.raw.num_disks)
    assert numbers == [3, 4, 5, 4]


def test_a_move_before_the_first_reset_is_refused() -> None:
    with pytest.raises(ResetNeeded, match="has not begun"):
        say(TextArenaGame("TicTacToe-v0"), "[0]")


@pytest.mark.parametrize("max_moves", [0, -1, True, 1.5])
def test_the_limit_of_moves_is_a_positive_integer(max_moves: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"max_moves must be an integer of at least 1, got {max_moves!r}"):
        TextArenaGame("LiarsDice-v0", max_moves=max_moves)
