"""What a player of a TextArena game is told, as one text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sampling import SEED
from tests.wrappers.textarena.playing import begun, play, play_natively, say, some_of_all
from vfgym.messages import AssistantMessage
from vfgym.wrappers.textarena import TextArenaGame
from vfgym.wrappers.textarena.observations import MIXED_UP, PlayerLog, join_texts, put_in_order, render_messages, render_training_view
from vfgym.wrappers.textarena.package import Kinds, kinds

textarena = pytest.importorskip("textarena", reason="needs the extra textarena")


WITHOUT_BOARD = {"Breakthrough", "LightsOut"}


@some_of_all("default", shows=("all",), but_not=MIXED_UP)
def test_everything_is_told_once_but_own_moves_and_old_boards(env_id: str) -> None:
    table, rng, names = begun(env_id, SEED, max_moves=40), np.random.default_rng(SEED), kinds()
    adds_boards = type(table.raw).get_observation is not textarena.Env.get_observation  # to whoever's turn it is, or would be
    while True:
        for player in table.players if table.turn is None else (table.turn,):
            text, told = table.observe(player), table.raw_observation(player)
            for speaker, said, kind in told:
                is_own = speaker == player or (kind is names.action and speaker == -1 and len(table.players) == 1)
                if kind is not names.board and not is_own:
                    assert said.strip("\n") in text
                if kind is names.action and not is_own and speaker >= 0:
                    assert f"[{table.raw.state.role_mapping[speaker]}] {said}".strip("\n") in text
            if table.turn is not None or not adds_boards:
                assert next((said for _, said, kind in reversed(told) if kind is names.board), "").strip("\n") in text
            if table.turn is None:
                assert "Your reward: " in text
                assert table.observe(player) == ""
            assert "<think>" not in text
        if table.turn is None:
            break
        table.move(AssistantMessage(f"<think>secret thoughts</think>{table.sample_move(table.turn, rng)['content']}"))


@some_of_all("train", "default", shows=("messages", "messages and board", "board"), but_not={*MIXED_UP, *WITHOUT_BOARD})
def test_training_variants_show_what_their_wrappers_show(env_id: str) -> None:
    """Line by line: all that is shown now is on TextArena's page, and all of that page was shown by now."""
    table = TextArenaGame(env_id, max_moves=30)
    game = play(table, SEED)
    native = play_natively(env_id, len(table.players), SEED, game.moves, observe=True)
    assert len(game.shown) == len(native.shown)
    shown: dict[int, set[str]] = {player: set() for player in table.players}
    for (player, ours), (native_player, page) in zip(game.shown, native.shown, strict=True):
        lines, theirs = ({line.strip() for line in text.splitlines()} - {""} for text in (ours, page))
        shown[player] |= lines
        assert player == native_player
        assert lines <= theirs
        assert theirs <= shown[player]


@pytest.mark.parametrize("env_id", [f"{game}-v0{variant}" for game in sorted(MIXED_UP - {"Tak"}) for variant in ("", "-train")])
def test_moves_that_a_game_tells_in_the_wrong_order_are_not_told_to_their_player(env_id: str) -> None:
    table = begun(env_id)
    table.observe(0)
    say(table, "[Hm?]")
    assert "Hm?" in repr(table.raw.state.observations)
    text = table.observe(0)
    assert ("Hm?" in text, "[Player" in text) == (False, False)


def test_what_is_told_in_parts_is_one_text_and_a_board_that_is_told_again_is_told_once() -> None:
    table = begun("Tak-v0")
    say(table, "[place () {(0,0): [F0]}]", "[place () {(3,3): [F1]}]", "[move (0,0) {(0,1): [F0]}]")
    assert "\n\nPlayer 0 moved pieces from (0, 0) to [(0, 1)].\n\nCurrent Board" in table.observe(1)
    table = begun("SpiteAndMalice-v0")
    say(table, "nonsense", "nonsense")
    assert table.observe(1).count("--- Center Piles ---") == 1


TOLD = Kinds("prompt", "action", "admin", "board")


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([], ""),
        ([(-1, "\nRules.\n", "prompt"), (-1, "\n", "admin"), (-1, "  Go.", "admin")], "Rules.\n\n  Go."),
        ([(0, "[own]", "action"), (1, "[theirs]", "action"), (7, "[odd]", "action")], "[Ann] [theirs]\n\n[Player 7] [odd]"),
        ([(0, "own talk", "message"), (1, "their talk", "message")], "[Ann] their talk"),
        ([(-1, "old", "board"), (-1, "said", "admin"), (-1, "new", "board")], "said\n\nnew"),
        ([(-1, "first", "board"), (-1, "part", "board")], "first\n\npart"),
        ([(-1, "same", "board"), (-1, "said", "admin"), (-1, "same", "board")], "said\n\nsame"),
        ([(-1, "[left]", "action"), (-1, "Done.", "admin")], "[left]\n\nDone."),
    ],
)
def test_all_is_told_but_what_the_player_said_and_boards_that_come_again(messages: Any, text: str) -> None:
    assert render_messages(messages, 0, {-1: "GAME", 0: "Bob", 1: "Ann"}, TOLD) == text


def test_a_game_for_one_does_not_repeat_its_players_moves() -> None:
    assert render_messages([(-1, "[left]", "action"), (-1, "Done.", "admin")], 0, {-1: "GAME", 0: "Bob"}, TOLD) == "Done."


@pytest.mark.parametrize(
    ("shows", "first", "second"),
    [
        ("messages", "Rules.\n\nBoard 1\n\nHello.", "Board 2"),
        ("messages and board", "Rules.\n\nHello.\n\nBoard 1", "Board 2"),
        ("board", "Rules.\n\nBoard 1", "Board 2"),
    ],
)
def test_in_training_neither_moves_nor_complaints_are_told(shows: str, first: str, second: str) -> None:
    """The board is the one of the moment, also where nothing else is new."""
    log = PlayerLog()
    told = [(-1, "Rules.", "prompt"), (-1, "Board 1", "board"), (1, "[4]", "action"), (-1, "Wrong!", "admin"), (-1, "Hello.", "message")]
    assert render_training_view(told, log, shows, TOLD) == first
    assert render_training_view([(-1, "Board 2", "board"), (1, "[5]", "action")], log, shows, TOLD) == second
    assert render_training_view([(1, "[5]", "action")], log, shows, TOLD) == ("" if shows == "messages" else "Board 2")


def test_what_is_mixed_up_is_put_in_order_and_texts_are_joined_by_an_empty_line() -> None:
    mixed_up: Any = [("kind", 0, "text"), (1, "text", "kind"), (-1, ("two ", "parts"), "kind")]
    assert put_in_order(mixed_up) == [(0, "text", "kind"), (1, "text", "kind"), (-1, "two parts", "kind")]
    assert (join_texts(["\na\n", "", "\n", " b"]), join_texts([])) == ("a\n\n b", "")
