"""`TextArenaGame`: the games that TextArena plays, with random numbers of their own, told once, and ended by something in every case."""

from __future__ import annotations

import copy
import logging
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sampling import SEED
from tests.wrappers.textarena.playing import Game, begun, play, play_natively, say, some_of_all
from vfgym.errors import ConfigurationError, ResetNeeded
from vfgym.messages import AssistantMessage
from vfgym.wrappers.games.turn_based import NO_MOVE
from vfgym.wrappers.textarena import TextArenaGame
from vfgym.wrappers.textarena.moves import LEGAL

textarena = pytest.importorskip("textarena", reason="needs the extra textarena")


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="vfgym.wrappers.textarena.match")


@pytest.fixture(autouse=True)
def _process_is_left_alone() -> Iterator[None]:
    """The random numbers of the process are not touched."""
    random.seed(SEED)
    np.random.seed(SEED % 2**32)
    before = random.getstate(), np.random.get_state()
    yield
    assert random.getstate() == before[0]
    np.testing.assert_equal(np.random.get_state(), before[1])


# The games


@some_of_all("default", "raw", "train")
def test_it_is_the_game_that_textarena_plays(env_id: str) -> None:
    """The same seed and moves give the same turns, the same talk and the same rewards as in TextArena, with its wrappers."""
    table = TextArenaGame(env_id, max_moves=120)
    game = play(table, SEED)
    native = play_natively(env_id, len(table.players), SEED, game.moves)
    assert native.moves == game.moves
    assert repr(native.logs) == repr(game.logs)
    if native.rewards is not None and any(isinstance(reward, str) for reward in native.rewards.values()):
        return  # see test_rewards_are_numbers
    assert native.rewards == game.rewards


@pytest.mark.parametrize("env_id", ["SecretMafia-v0", "Surround-v0"])
def test_more_players_than_by_default(env_id: str) -> None:
    table = TextArenaGame(env_id, 8, max_moves=120)
    game = play(table, SEED)
    assert table.players == tuple(range(8))
    native = play_natively(env_id, 8, SEED, game.moves)
    assert (native.moves, native.rewards) == (game.moves, game.rewards)


@pytest.mark.parametrize("env_id", ["Blackjack-v0", "Taboo-v0-full", "LiarsDice-v0"])
def test_a_seed_decides_everything(env_id: str) -> None:
    one, other = (play(TextArenaGame(env_id, max_moves=6), seed=7) for _ in range(2))
    assert one == other
    assert any(play(TextArenaGame(env_id, max_moves=6), seed=seed).shown[0] != one.shown[0] for seed in range(8, 30))


def test_a_reset_without_a_seed_goes_on_with_the_numbers_of_the_table() -> None:
    def games(table: TextArenaGame) -> list[Game]:
        return [play(table, seed) for seed in (3, None, None)]

    one, other = games(TextArenaGame("Blackjack-v0")), games(TextArenaGame("Blackjack-v0"))
    assert one == other
    assert one[0] != one[1] != one[2]
    # The first one starts anywhere.
    assert len({play(TextArenaGame("Blackjack-v0"), None).shown[0] for _ in range(5)}) > 1


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
        made = len(min(alone, key=lambda game: len(game.moves)).moves)
        assert repr(table.raw.state.logs) == repr(game.logs[: len(table.raw.state.logs)])
        assert made == table._moves_made


def test_tables_play_on_threads_at_the_same_time() -> None:
    def games(env_id: str) -> list[Game]:
        return [play(TextArenaGame(env_id), seed) for seed in range(15)]

    env_ids = ["Poker-v0-small", "Blackjack-v0", "LiarsDice-v0", "Bandit-v0"]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(games, env_ids)) == [games(env_id) for env_id in env_ids]


@some_of_all("train")
def test_copies_go_their_own_ways(env_id: str) -> None:
    """A table can be copied and pickled in the middle of a game, and goes on as if it had not been."""
    table, rng = begun(env_id, 5, max_moves=20), np.random.default_rng(5)
    for _ in range(4):
        if table.turn is not None:
            table.move(table.sample_move(table.turn, rng))
    copies = [copy.deepcopy(table), pickle.loads(pickle.dumps(table))]
    ends = []
    for one in (table, *copies):
        rng = np.random.default_rng(6)
        while one.turn is not None:
            played = one.move(one.sample_move(one.turn, rng))
            ends.append(played.rewards)
        ends.append([one.observe(player) for player in one.players])
    assert len(ends) % 3 == 0
    assert ends[: len(ends) // 3] * 3 == ends


def test_a_pickle_brings_its_game_into_a_new_process() -> None:
    """What is loaded there draws from the table too, and not from the process."""
    table = begun("Blackjack-v0", 3)
    code = (
        "import pickle, random, sys; state = random.getstate(); table = pickle.loads(sys.stdin.buffer.read());"
        "from vfgym.messages import AssistantMessage; table.move(AssistantMessage('[hit]'));"
        "assert random.getstate() == state; print(table.observe(0))"
    )
    process = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(table), capture_output=True, check=True)
    say(table, "[hit]")
    assert process.stdout.decode() == table.observe(0) + "\n"


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
    assert "[Player 0]" not in text
    assert text.count("Current Board:") == 1
    assert "Player 0 placed" in text


@pytest.mark.parametrize("env_id", ["TicTacToe-v0", "TicTacToe-v0-train", "Slitherlink-v0"])
def test_what_is_told_can_be_had_in_textarenas_form_too(env_id: str) -> None:
    """Each once, in whatever order the two are asked for, and however late."""
    text_first, raw_first, late = (begun(env_id, 1) for _ in range(3))
    everything: dict[int, list[Any]] = {player: [] for player in late.players}
    for _ in range(4):
        player = text_first.turn
        assert player is not None
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


def test_what_a_player_says_itself_is_not_told_to_it_again() -> None:
    """In SettlersOfCatan, where talk is not an action, neither."""
    table, said = begun("SettlersOfCatan-v0"), 0
    rng = np.random.default_rng(0)
    last: dict[int, str] = {}
    names = table.raw.state.role_mapping
    for _ in range(200):
        player = table.turn
        assert player is not None
        text = table.observe(player)
        assert f"[{names[player]}] " not in text
        said += any(f"[{names[other]}] {last[other]}" in text for other in last if other != player)
        last[player] = table.sample_move(player, rng)["content"]
        say(table, last[player])
    assert said


def test_random_moves_of_an_unknown_game_are_among_what_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a later version of textarena: all that is in brackets in its rules, and in what was told last."""
    monkeypatch.delitem(LEGAL, "TicTacToe")
    table = begun("TicTacToe-v0")
    for player, free in [(0, {0, 1, 2, 3, 4, 5, 6, 7, 8}), (1, {1, 2, 3, 4, 5, 6, 7, 8}), (0, {2, 3, 4, 5, 6, 7, 8})]:
        table.observe(player)
        drawn = {table.sample_move(player, np.random.default_rng(seed))["content"] for seed in range(200)}
        assert drawn >= {f"[{cell}]" for cell in free}
        say(table, f"[{min(free)}]")


def test_a_training_variant_shows_the_board_after_a_move_that_is_refused() -> None:
    table = begun("Sudoku-v0-train")
    board = table.observe(0).partition("\n\n")[2]
    assert not say(table, "nonsense").is_valid
    assert table.observe(0).splitlines()[-5:] == board.splitlines()[-5:]


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        (
            ["[0]", "[8]", "[1]", "[7]", "[2]"],
            ("You won. Player 0 has won! Your reward: 1.", "You lost. Player 0 has won! Your reward: -1."),
        ),
        (["[0]", "[1]", "[2]", "[4]", "[3]", "[5]", "[7]", "[6]", "[8]"], ("It is a draw. The game is a draw! Your reward: 0.",) * 2),
        (["[0]", "x", "y"], ("You won.", "You lost. The submitted move does not follow the correct format. Your reward: -1.")),
    ],
)
def test_in_the_end_everybody_is_told_how_the_game_ended(moves: list[str], told: tuple[str, str]) -> None:
    table = begun("TicTacToe-v0-raw")
    assert table.info(1) == {"role": "Player 1", "invalid_move": False, "turn_count": 0}
    played = say(table, *moves)
    assert set(played.rewards) == {0, 1}
    assert table.turn is None
    assert not table.was_truncated
    for player, text in enumerate(told):
        assert f"Game over. {text}" in table.observe(player)
        assert table.observe(player) == ""
        assert table.info(player)["reason"] in text or player == 0
    with pytest.raises(ResetNeeded, match="call reset"):
        say(table, "[5]")


def test_how_the_game_ended_is_told_in_whole_sentences() -> None:
    table = begun("Poker-v0-small")
    while table.turn is not None:
        say(table, "[fold]")
    assert table.observe(0).endswith("Game over. You lost. Final ranking (low→high): [0, 1]. Winner: Player 1. Your reward: -1.")


def test_who_is_neither_first_nor_last_is_told_so() -> None:
    """Rewards of games for many go by rank."""
    table = TextArenaGame("LiarsDice-v0-small", 5)
    game = play(table, 1, nonsense=0.0)
    assert game.rewards is not None
    told = {player: table.observe(player) for player in table.players}
    ranked = sorted(game.rewards, key=game.rewards.__getitem__)
    assert "You lost." in told[ranked[0]]
    assert all("You came in between." in told[player] for player in ranked[1:-1])
    assert "You won." in told[ranked[-1]]


# Moves


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[4]", "[4]"),
        ("<think>[0] or [4]?</think>\n\n4", "[4]"),
        ([{"type": "text", "text": "<think>[0]</think>"}, {"type": "text", "text": "[4]"}], "[4]"),
    ],
)
def test_others_read_a_move_without_its_thoughts(text: Any, said: str) -> None:
    table = begun("TicTacToe-v0")
    table.move(AssistantMessage(text))
    assert (0, said) in table.raw.state.logs


@pytest.mark.parametrize(
    "text",
    [
        *("", "[0] or [4]", "I could play [0] or [8], but [4] is best.", "<think>[4]", "[4]<think>I should have", "I look.\nThe middle."),
        *("<action>[4]</action> <action>[0]</action>", "The rules say:\n```\n[4]\n```\n[0]"),
    ],
)
def test_what_names_no_move_or_several_is_asked_again_and_does_not_get_to_the_game(text: str) -> None:
    table = begun("TicTacToe-v0")
    table.observe(0)
    before = table.raw.state.turn, list(table.raw.state.logs)
    assert table.move(AssistantMessage(text)) == NO_MOVE
    assert (table.raw.state.turn, table.raw.state.logs) == before
    assert table.turn == 0
    assert "Write your move in brackets" in table.observe(0)
    assert table.move(AssistantMessage("[4]")).is_valid


def test_brackets_and_clipping_are_those_of_textarenas_wrappers() -> None:
    long = "".join(map(str, range(1000)))
    for env_id, text, said in [
        ("TicTacToe-v0", "4", "[4]"),
        ("TicTacToe-v0-raw", "4", "4"),
        ("LogicPuzzle-v0-train", "4", "[4]"),
        ("TruthAndDeception-v0-train", long, long[-1000:]),
        ("TruthAndDeception-v0", long, long),
        ("TruthAndDeception-v0-train", "4", "4"),
    ]:
        table = begun(env_id)
        say(table, text)
        assert (table.turn if env_id.startswith("LogicPuzzle") else 0, said) in table.raw.state.logs


def test_a_refused_move_is_made_again_and_a_second_one_loses() -> None:
    table = begun("ConnectFour-v0")
    assert say(table, "[0]") == ({}, True)
    assert say(table, "nonsense") == ({}, False)
    assert table.turn == 1
    assert "invalid move" in table.observe(1)
    assert say(table, "[0]") == ({}, True)
    assert say(table, "[0]", "[0]") == ({}, True)
    assert say(table, "[99]") == ({}, False)
    assert say(table, "[99]") == ({0: -1.0, 1: 1.0}, False)


def test_valid_moves_of_a_player_who_was_refused_twice_are_valid() -> None:
    """Some games go on with a player whom they found wrong too often."""
    table = begun("PublicGoodsGame-v0")
    while table.raw.state.game_state["phase"] != "decision":
        assert say(table, "{Hello!}").is_valid
    player = table.turn
    verdicts = [say(table, text).is_valid for text in ("?", "?", "[5]")]
    assert verdicts == [False, False, True]
    assert table.turn != player


@pytest.mark.parametrize("env_id", ["Countdown-v0", "Cryptarithm-v0", "Slitherlink-v0", "ThreeCardMonte-v0"])
def test_rewards_are_numbers(env_id: str) -> None:
    """These games mix up reward and reason when invalid moves end them."""
    table = begun(env_id)
    rewards = say(table, "nonsense", "nonsense").rewards
    assert [type(reward) for reward in rewards.values()] == [float]
    native = play_natively(env_id, 1, 0, [(0, "nonsense")] * 2)
    assert native.rewards is not None
    assert native.rewards[0] in table.observe(0)
    assert 0.0 <= rewards[0] < 1.0


def test_a_game_that_does_not_end_is_cut_short() -> None:
    table = begun("SantoriniBaseFixed-v0", max_moves=5)
    say(table, *["nonsense"] * 4)
    assert table.turn is not None
    assert say(table, "nonsense") == ({0: 0.0, 1: 0.0}, False)
    assert table.turn is None
    assert table.was_truncated
    assert "The game was cut off before it was decided. The limit of 5 moves was reached. Your reward: 0." in table.observe(1)
    table.reset(0)
    assert not table.was_truncated


def test_tak_can_be_won() -> None:
    """In textarena 0.7.4 its winning move is a TypeError."""
    table = begun("Tak-v0-raw")
    for column in range(3):
        say(table, f"[place () {{(0,{column}): [F0]}}]", f"[place () {{(3,{column}): [F1]}}]")
    assert say(table, "[place () {(0,3): [F0]}]") == ({0: 1.0, 1: -1.0}, True)


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


def test_a_game_that_cannot_go_on_after_an_exception_is_cut_short() -> None:
    """One that raises when it is somebody else's turn already, and one that would have to go on without the player."""
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


def test_a_game_without_anybody_left_is_cut_short() -> None:
    """PublicGoodsGame may put out everybody, and would look for the next player for ever."""
    table = begun("PublicGoodsGame-v0")
    table.raw.state.elimination_order += table.players
    assert say(table, "{Is anybody here?}") == ({0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, True)
    assert table.was_truncated
    assert "Nobody is left in it." in table.observe(0)


ODD = st.one_of(
    st.sampled_from(
        ["", "[]", "[[]]", "][", "[-1]", "[²]", "[٣]", "[½]", "[1e999]", "[nan]", "[0][1]", "[1 2 3]", "[up]", "[A1]", "[a1b2]"]
    ),
    st.sampled_from(
        [HUGE, "{x}", "[None]", "[Player 0]", "[bid 99999999999999999999]", "[raise -5]", "[pass]", "\x00", "[0 0 0 0]", "[,]"]
    ),
    st.text(max_size=20).map(lambda text: f"[{text}]"),
    st.text(max_size=40),
)


@some_of_all("raw")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(moves=st.lists(ODD, min_size=1, max_size=12))
def test_no_text_breaks_a_game(env_id: str, moves: list[str]) -> None:
    table = begun(env_id, 0, max_moves=10)
    for move in moves:
        if table.turn is None:
            break
        played = say(table, move)
    if table.turn is None:
        assert all(type(played.rewards[player]) is float for player in table.players)
        assert all("Game over." in table.observe(player) for player in table.players)
    else:
        assert played.rewards == {}
        assert table.turn in table.players


# Tables


def test_options_of_the_game() -> None:
    assert "3-disk" in begun("TowerOfHanoi-v0").observe(0) or "3 disks" in begun("TowerOfHanoi-v0").observe(0)
    assert begun("TowerOfHanoi-v0", num_disks=4).raw.num_disks == 4
    table = TextArenaGame("TowerOfHanoi-v0", num_disks=4)
    table.reset(0, {"num_disks": 5})
    assert table.raw.num_disks == 5
    table.reset(0)
    assert table.raw.num_disks == 4


def test_a_move_before_the_first_reset_is_refused() -> None:
    with pytest.raises(ResetNeeded, match="has not begun"):
        say(TextArenaGame("TicTacToe-v0"), "[0]")


@pytest.mark.parametrize("max_moves", [0, -1, True, 1.5])
def test_the_limit_of_moves_is_a_positive_integer(max_moves: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"max_moves must be an integer of at least 1, got {max_moves!r}"):
        TextArenaGame("LiarsDice-v0", max_moves=max_moves)
