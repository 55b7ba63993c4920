"""How the classic games of PettingZoo are shown in words: boards with marks, cards with suits, moves with names.

What is shown is read from the unwrapped environment, from the side of the player who looks: nothing that is hidden from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from vfgym.codecs import Codec
from vfgym.wrappers.pettingzoo.chess_moves import ChessMoves
from vfgym.wrappers.pettingzoo.openspiel import OPENSPIEL, OpenSpielMoves, read_position, resample_openspiel

Game: TypeAlias = Any
"""An unwrapped PettingZoo environment. It ships no types."""


@dataclass(frozen=True)
class Presentation:
    """How one game is shown."""

    show: Callable[[Game, str], str] | None
    """What an agent sees of the game; None for what the environment itself gives."""
    rules: str | None = None
    """The rules, where the game's own documentation does not tell them."""
    roles: tuple[str, ...] = ()
    """What the agents play, in order: a mark, a colour."""
    legend: str = ""
    """How to read what is shown."""
    how_to_act: str = ""
    """What an action is, where a list of all of them would not tell a reader."""
    action_names: Callable[[Game], Sequence[str]] | None = None
    """The names of the actions, in order."""
    moves: Callable[[Game], Codec] | None = None
    """The actions, where their names depend on the position."""
    moves_are_public: bool = True
    """Whether everybody sees each move when it is made."""
    resample: Callable[[Game, str, np.random.Generator], None] | None = None
    """Deals anew what is hidden from an agent; None where the game cannot."""


def nothing_hidden(game: Game, agent: str, rng: np.random.Generator) -> None:
    """Deal nothing anew: everybody sees everything."""


# Boards


def _tictactoe(game: Game, agent: str) -> str:
    marks = [{0: str(cell), 1: "X", 2: "O"}[owner] for cell, owner in enumerate(game.board.squares)]
    # The game counts its cells by columns.
    return "\n---+---+---\n".join(f" {marks[row]} | {marks[row + 3]} | {marks[row + 6]}" for row in range(3))


def _connect_four(game: Game, agent: str) -> str:
    cells = [".XO"[owner] for owner in game.board]
    rows = [" ".join(cells[start : start + 7]) for start in range(0, len(cells), 7)]
    return "\n".join([" ".join(map(str, range(7))), *rows])


_GO_COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
"""Letters of columns: there is no I, so that nobody reads it as a 1."""


def _go(game: Game, agent: str) -> str:
    position = game._go  # the board has no public name; what `observe` gives has lost which stones are whose
    size = len(position.board)
    columns = "   " + " ".join(_GO_COLUMNS[:size])
    marks = {0: ".", 1: "X", -1: "O"}
    rows = [f"{size - row:2} {' '.join(marks[stone] for stone in stones)}" for row, stones in enumerate(position.board.tolist())]
    black, white = position.caps
    return "\n".join([columns, *rows, f"Stones captured: by black {black}, by white {white}. Komi: {position.komi:g}."])


def _go_names(game: Game) -> list[str]:
    size = len(game.observation_space(game.possible_agents[0])["observation"].low)
    return [f"{_GO_COLUMNS[column]}{size - row}" for row in range(size) for column in range(size)] + ["pass"]


def _chess(game: Game, agent: str) -> str:
    board = game.board
    ranks = [f"{8 - row} {rank}" for row, rank in enumerate(str(board).splitlines())]
    check = f" {'White' if board.turn else 'Black'} is in check." if board.is_check() else ""
    return "\n".join([*ranks, "  a b c d e f g h", f"White's pieces are capitals. FEN: {board.fen()}.{check}"])


# Cards


_SUITS = {"S": "♠", "H": "♥", "D": "♦", "C": "♣"}


def _card(name: str) -> str:
    """Return a card of RLCard's, whose suit comes first, as players write it."""
    return f"{'10' if name[1] == 'T' else name[1]}{_SUITS[name[0]]}"


def _cards(names: Sequence[str]) -> str:
    return " ".join(map(_card, names)) or "none yet"


def _chips(game: Game, agent: str, chips: Sequence[int]) -> str:
    return ", ".join(f"{'you' if other == agent else other} {count}" for other, count in zip(game.possible_agents, chips, strict=True))


def _state_of(game: Game, agent: str) -> Mapping[str, Any]:
    """Return what a player knows of a game of RLCard."""
    state: Mapping[str, Any] = game.env.game.get_state(game.possible_agents.index(agent))
    return state


def _leduc(game: Game, agent: str) -> str:
    state = _state_of(game, agent)
    public = "none yet" if state["public_card"] is None else _card(state["public_card"])
    return f"Your card: {_card(state['hand'])}. Public card: {public}.\nChips bet: {_chips(game, agent, state['all_chips'])}."


def _texas(game: Game, agent: str) -> str:
    state = _state_of(game, agent)
    lines = [
        f"Your hand: {_cards(state['hand'])}. Public cards: {_cards(state['public_cards'])}.",
        f"Chips bet: {_chips(game, agent, state['all_chips'])}.",
    ]
    if "stakes" in state:
        lines.append(f"Chips left: {_chips(game, agent, state['stakes'])}.")
    return "\n".join(lines)


def _deal_anew(game: Game, agent: str, rng: np.random.Generator) -> None:
    """Shuffle others' hands and the deck of a game of RLCard."""
    table, own = game.env.game, game.possible_agents.index(agent)
    others = [player for number, player in enumerate(table.players) if number != own]
    hands = [player.hand if isinstance(player.hand, list) else [player.hand] for player in others]
    unseen = [card for cards in (*hands, table.dealer.deck) for card in cards]
    drawn = iter([unseen[place] for place in rng.permutation(len(unseen))])
    for player, hand in zip(others, hands, strict=True):
        dealt = [next(drawn) for _ in hand]
        player.hand = dealt if isinstance(player.hand, list) else dealt[0]
    table.dealer.deck[:] = drawn


def _limit_actions(game: Game) -> list[str]:
    return ["call", "raise", "fold", "check"]


def _no_limit_actions(game: Game) -> list[str]:
    return ["fold", "check/call", "raise half pot", "raise full pot", "all in"]


_HANABI_COLOURS = "RYGWB"


def _hanabi(game: Game, agent: str) -> str:
    text: str = game.hanabi_env.game_state.observation_string(game.possible_agents.index(agent))
    return text.strip()


def _hanabi_names(game: Game) -> list[str]:
    config = game._config  # the environment does not tell its arguments otherwise
    hand, others = range(config["hand_size"]), range(1, config["players"])
    return [
        *(f"discard {card}" for card in hand),
        *(f"play {card}" for card in hand),
        *(f"reveal player +{other} color {colour}" for other in others for colour in _HANABI_COLOURS[: config["colors"]]),
        *(f"reveal player +{other} rank {rank}" for other in others for rank in range(1, config["ranks"] + 1)),
    ]


# Choices


def _rps_names(game: Game) -> list[str]:
    count = int(game.action_space(game.possible_agents[0]).n)
    # The game's own list: its documentation has Spock and lizard the wrong way round.
    return [name.casefold() for name in game._moves[:count]]


def _rps(game: Game, agent: str) -> str:
    seen = int(game.observations[agent])
    names = _rps_names(game)
    return "No round has been played yet." if seen == len(names) else f"Your opponent's last choice: {names[seen]}."


_HOLDEM = (
    "Texas Hold'em is a poker game with a deck of 52 cards. Each player gets two cards of its own. There are four rounds of betting: then"
    " three public cards are shown, then one more, then another one. Whoever has not folded by the end shows its cards, and the best five"
    " of a player's two and the five public cards win the pot; if all others fold, the last player wins it."
)
_REWARDS = "Rewards: at the end, half of the chips that were won, or minus half of those that were lost."
_REWARDS_IN_FULL = "Rewards: at the end, the chips that were won, or minus those that were lost."
"""PettingZoo's documentation halves these too; RLCard 1.2 does not."""

PLAIN = Presentation(show=None, moves_are_public=False)
"""Of a game of which nothing is known, nothing is told but what it shows each of its players."""

PRESENTATIONS: Mapping[str, Presentation] = {
    OPENSPIEL: Presentation(read_position, moves=OpenSpielMoves, moves_are_public=False, resample=resample_openspiel),
    "tictactoe_v3": Presentation(
        _tictactoe, resample=nothing_hidden, roles=("X", "O"), how_to_act="the number of an empty cell; empty cells show their numbers"
    ),
    "connect_four_v3": Presentation(
        _connect_four, resample=nothing_hidden, roles=("X", "O"), how_to_act="the number of a column that is not full, from 0 to 6"
    ),
    "go_v5": Presentation(
        _go,
        resample=nothing_hidden,
        roles=("black stones, X", "white stones, O"),
        how_to_act="an empty point by column and row, like C3, or pass",
        action_names=_go_names,
    ),
    "chess_v6": Presentation(
        _chess,
        resample=nothing_hidden,
        rules="This is chess by the usual rules. A game is drawn as soon as a draw could be claimed (threefold repetition, fifty moves),"
        " and when nobody has enough pieces left to mate.\n\nRewards: 1 for the winner, -1 for the loser, 0 for a draw.",
        roles=("White", "Black"),
        how_to_act="a legal move in algebraic notation, like e4, Nf3, O-O or e8=Q",
        moves=ChessMoves,
    ),
    "leduc_holdem_v4": Presentation(
        _leduc,
        resample=_deal_anew,
        rules="Leduc Hold'em is a poker game for two with a deck of six cards: jack, queen and king of two suits. Each player gets one"
        " card and bets; then one public card is shown, and there is another round of betting. There are at most two raises in a round,"
        " of 2 chips in the first and 4 in the second. A card that pairs the public one wins the pot, else the higher card; equal cards"
        f" share it; who folds loses it.\n\n{_REWARDS}",
        action_names=_limit_actions,
    ),
    "texas_holdem_v4": Presentation(
        _texas,
        resample=_deal_anew,
        rules=f"{_HOLDEM} Bets have a fixed size, and there are at most four raises in a round.\n\n{_REWARDS}",
        action_names=_limit_actions,
    ),
    "texas_holdem_no_limit_v6": Presentation(
        _texas,
        resample=_deal_anew,
        rules=f"{_HOLDEM} There is no limit on the size of a raise: half of the pot, the whole pot, or all chips.\n\n{_REWARDS_IN_FULL}",
        action_names=_no_limit_actions,
    ),
    "hanabi_v5": Presentation(
        _hanabi,
        legend="Each hand has a card a line, from card 0 on; your own comes first. Of a card is written what you see (XX of your own),"
        " what its player was told of it, and which colors and ranks it can still have. Colors are R, Y, G, W, B: red, yellow, green,"
        " white, blue. Player +1 is the next one after you.",
        action_names=_hanabi_names,
    ),
    "rps_v2": Presentation(
        _rps,
        rules="In each round both players choose, and neither knows what the other one chooses. Paper beats rock, scissors beat paper, and"
        " rock beats scissors. In games with more choices, of two that both have odd or both have even numbers the lower number wins,"
        " of any other two the higher number.\n\nRewards: 1 for a round that is won, -1 for one that is lost, 0 for a draw.",
        action_names=_rps_names,
        moves_are_public=False,
    ),
}
"""The games with words of their own, by the ``name`` in their metadata."""
