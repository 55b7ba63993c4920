"""`ChessMoves`: chess is played in algebraic notation, as players write it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.wrappers.pettingzoo.tables import opened, play
from vfgym.codecs import ActionNotFound
from vfgym.messages import AssistantMessage


@pytest.mark.parametrize(
    ("answer", "move"),
    [
        ("e4", "e4"),
        ("e2e4", "e4"),
        ("<think>Nf3 or e4?</think>I play <action>e4</action>", "e4"),
        ("My move: **Nf3**!", "Nf3"),
        ("I develop the knight.\n\n**Nf3**", "Nf3"),
        ("\\boxed{e4}", "e4"),
        ("nf3", "Nf3"),
        ("The centre is free.\nMy move: e4 (it is mine)", "e4"),
        ("Action: e4\nIt opens the centre.", "e4"),
    ],
)
def test_chess_moves_are_read_as_players_write_them(answer: str, move: str) -> None:
    table = opened("chess_v6")
    table.observe("player_0")
    assert table.move(AssistantMessage(answer)).is_valid
    assert table.observe("player_1").count(f"player_0 played: {move}\n") == 1


@pytest.mark.parametrize(
    "answer",
    [
        *("e5", "Ke2", "--", "0000", "e4 or d4", "", "hello", "a knight", "O-O", "<action>e4</action><action>d4</action>"),
        *("Move: e4\nMove: d4", "I will not play e4.", "I don\u2019t play e4", "Avoid e4!", "<action>not e4</action>"),
        *(
            "e4?",
            "Should I play e4?",
            "If I play e4, I lose my queen.",
            "My last move was: Nf3",
            "The worst move is Nf3.",
            "I play e4.",
            "1. e4",
            "Move: e4 (or d4)",
        ),
    ],
)
def test_what_is_no_legal_chess_move_is_asked_for_again(answer: str) -> None:
    table = opened("chess_v6")
    assert not table.move(AssistantMessage(answer)).is_valid
    assert "Legal actions:" in table.observe("player_0")
    assert table.turn == "player_0"


def test_chess_has_castling_checks_promotion_and_mate_by_name() -> None:
    table = opened("chess_v6")
    play(table, "f4", "e5", "fxe5", "d6", "exd6", "Qe7", "dxc7", "Qe4")
    assert {"cxb8=Q", "cxb8=N", "cxb8=R"} <= set(table.legal_moves("player_0") or ())
    play(table, "cxb8=N", "Bc5", "e3", "Nf6", "b3", "O-O")
    assert "player_1 played: O-O" in table.observe("player_0")
    table.reset(0, None)
    played = play(table, "f3", "e5", "g4", "Qh4")
    assert played.rewards == {"player_0": -1.0, "player_1": 1.0}
    assert "player_1 played: Qh4#" in table.observe("player_0")


def codec_of(table: Any) -> Any:
    return table.codecs[table.turn]


def test_moves_of_both_sides_are_written_and_read_and_each_has_a_number_of_its_own() -> None:
    table = opened("chess_v6")
    for moves in ([], ["e4"]):  # Black sees the board from its own side
        play(table, *moves)
        codec, mask = codec_of(table), table.env.observe(table.turn)["action_mask"]
        texts = codec.legal_texts(mask)
        assert len({*texts}) == len(texts) == mask.sum() == 20
        assert ("e5" in texts, "e4" in texts) == ((True, False) if moves else (False, True))
        assert [codec.read(text) for text in texts] == [*np.flatnonzero(mask)]
        assert [codec.encode(action) for action in np.flatnonzero(mask)] == texts
        assert codec.legal_texts(None) is None


@pytest.mark.parametrize("data", ["e5", "", "--", 3, None, ["e4"]])
def test_data_that_is_no_legal_move_is_named(data: Any) -> None:
    with pytest.raises(ActionNotFound) as caught:
        codec_of(opened("chess_v6")).read(data)
    assert str(caught.value) == f"must be a legal move, got {data!r}"


def test_what_is_said_of_moves() -> None:
    codec = codec_of(opened("chess_v6"))
    listing = "a legal move in algebraic notation, like e4, Nf3, O-O or e8=Q"
    assert (codec.listing(), codec.schema, codec.names) == (listing, {"type": "string", "description": listing}, None)
    assert codec.encode(codec.representative()) == codec.example() == "Nf3"
    assert [codec.encode(action) for action in codec.mentioned_in("e4, then d4; or Nf3: not e5, a knight!")] == ["e4", "d4", "Nf3"]
    assert codec.read_exactly("e4") is None


def test_case_and_blanks_are_put_aside_where_they_tell_no_moves_apart() -> None:
    table = opened("chess_v6")
    play(table, "a4", "b5", "Nc3", "e6", "d4", "Bb4", "b3", "Bxc3", "Bd2", "Bb4")
    codec = codec_of(table)
    for text, move in (("BXB4", "Bxb4"), ("axb5", "axb5"), ("AXB5", "axb5"), (" +b x b4#", "Bxb4"), ("d2b4", "Bxb4"), ("nothing", None)):
        found = codec.lookup(text, None)
        assert (None if found is None else codec.encode(found)) == move
    table.reset(0, None)
    play(table, "e4", "d5", "Bc4", "a6", "b3", "dxc4")
    codec = codec_of(table)
    assert codec.encode(codec.lookup("bxc4", None)) == "bxc4"
    table.reset(0, None)
    play(table, "e4", "d5", "b3", "c5", "Ba6", "c4")
    codec = codec_of(table)
    assert [codec.encode(codec.lookup(text, None)) for text in ("bxc4", "Bxc4")] == ["bxc4", "Bxc4"]
    assert codec.lookup("BXC4", None) is None, "a pawn or the bishop"
