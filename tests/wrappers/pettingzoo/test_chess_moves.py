"""`ChessMoves`: chess is played in algebraic notation, as players write it."""

from __future__ import annotations

import pytest

from tests.wrappers.pettingzoo.tables import opened, play
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
