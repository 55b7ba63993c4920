"""`TurnBasedGame`: what a table offers, how its moves are made, and what its author does by mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.wrappers.games.nim import Nim, play, takes_one
from vfgym.codecs import ActionNotFound
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Message
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.turn_based import NO_MOVE, Played, Player, TurnBasedGame, check_begun, play_in_turn


class KnockOut(Nim):
    """Nim that a limit ends, after which those who took three sticks at once are out by the rules."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.out: set[Player] = set()

    def move(self, message: Message) -> Played:
        mover = self.turn
        played = super().move(message)
        if message["content"] == "3":
            self.out.add(mover)
        if self.sticks < 6 and self.turn is not None:
            self.turn, self.was_truncated = None, True
        return played

    def end_flags(self, player: Player) -> tuple[bool, bool]:
        return (True, False) if player in self.out else super().end_flags(player)


class KnockOutEnv(MultiplayerEnv):
    def open_table(self) -> KnockOut:
        return KnockOut(num_players=2, sticks=9)


@pytest.mark.parametrize("opponents", [takes_one, "self"])
@pytest.mark.parametrize(("seat", "ends"), [(0, (True, False)), (1, (False, True))])
def test_each_player_has_an_end_of_its_own(seat: int, ends: tuple[bool, bool], opponents: Any) -> None:
    agents = (lambda observation, info: "3") if seat == 1 and opponents != "self" else opponents
    outcome = play(KnockOutEnv(seat=seat, opponents=agents), ["3", "1"] if opponents == "self" else ["3" if seat == 0 else "1"])[-1]
    assert (outcome.terminated, outcome.truncated) == ends
    assert outcome.info["stop_condition"] == ("game_over" if outcome.terminated else "game_truncated")
    env = KnockOutEnv(seat=1, opponents=lambda observation, info: "3")  # a game that is over at once
    env.reset(seed=0, options={"game_options": {"sticks": 7}})
    assert env.step("1")[2:4] == (False, True)


class Mistaken(Nim):
    """Nim in which an author's function is put in the place of the last line of `reset` or `move`."""

    def __init__(self, begin: Any = None, outcome: Any = None) -> None:
        super().__init__(sticks=9)
        self.begin, self.outcome = begin, outcome

    def reset(self, *args: Any) -> None:
        super().reset(*args)
        if self.begin is not None:
            self.begin(self)

    def move(self, message: Message) -> Any:
        played = super().move(message)
        return played if self.outcome is None else self.outcome(self)


def turn_to_nobody(table: Nim) -> Played:
    table.turn = "q"
    return Played({})


def mistaken(opponents: Any, blocking: bool, **mistake: Any) -> MultiplayerEnv:
    class MistakenEnv(MultiplayerEnv):
        def open_table(self) -> Nim:
            return Mistaken(**mistake)

    return MistakenEnv(opponents=opponents, blocking=blocking)


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("opponents", [takes_one, "self"])
@pytest.mark.parametrize(
    ("outcome", "kind", "message"),
    [
        (lambda table: {"rewards": {}}, TypeError, "`move` of Mistaken must be .* returns a vfgym.Played, got dict"),
        (lambda table: None, TypeError, "returns a vfgym.Played, got NoneType"),
        (lambda table: Played({"zed": 1.0}), ValueError, r"the players are 0, 1; got \{'zed': 1.0\}"),
        (lambda table: Played({0: None}), ValueError, r"dict of numbers, by player; .* got \{0: None\}"),
        (lambda table: Played([0.5, 0.5]), ValueError, r"dict of numbers, by player; .* got \[0.5, 0.5\]"),
        (turn_to_nobody, ValueError, "`turn` of Mistaken is 'q', who does not play; the players are 0, 1"),
    ],
)
async def test_what_a_table_does_by_mistake_is_said(
    outcome: Any, kind: type[Exception], message: str, opponents: Any, blocking: bool
) -> None:
    env = mistaken(opponents, blocking, outcome=outcome)
    await env.areset(seed=0)
    with pytest.raises(kind, match=message):
        await env.astep("1")
    await env.aclose()


@pytest.mark.parametrize("opponents", [takes_one, "self"])
def test_a_game_that_nobody_can_begin_is_refused(opponents: Any) -> None:
    with pytest.raises(ConfigurationError, match="reset of Mistaken must set `turn`"):
        mistaken(opponents, blocking=False, begin=lambda table: vars(table).pop("turn")).reset(seed=0)
    with pytest.raises(ValueError, match="`turn` of Mistaken is 'q', who does not play"):
        mistaken(opponents, blocking=False, begin=turn_to_nobody).reset(seed=0)
    bare = type("Bare", (MultiplayerEnv,), {})(opponents=opponents)
    for begin in (bare.reset, bare.action_space.sample):
        with pytest.raises(ConfigurationError, match=r"open_table of Bare must return a vfgym\.TurnBasedGame, got NoneType"):
            begin()


class Picky(Nim):
    """Nim that hears no "0", and takes nothing of what was cut off."""

    def why_not(self, message: Message, *, is_cut_off: bool = False) -> str:
        return "Take something." if message["content"] == "0" else "It was cut off." if is_cut_off and message["content"] == "1" else ""

    def move_cut_off(self, message: Message) -> Played:
        return Played({0: -9.0}, is_valid=False)


def begun(table: Nim) -> Nim:
    table.reset(0, None)
    return table


@pytest.mark.parametrize(
    ("text", "is_cut_off", "outcome"),
    [
        ("2", False, (Played({}), "")),
        ("0", False, (NO_MOVE, "Take something.")),
        ("1", True, (NO_MOVE, "It was cut off.")),
        ("2", True, (Played({0: -9.0}, is_valid=False), "")),
        ("9", False, (Played({}, is_valid=False), "")),
    ],
)
def test_a_move_gets_to_the_game_if_it_is_whole_and_legal_as_far_as_the_table_knows(text: str, is_cut_off: bool, outcome: Any) -> None:
    table = begun(Picky(sticks=9))
    assert play_in_turn(table, AssistantMessage(text), is_cut_off=is_cut_off) == outcome
    assert table.sticks == (7 if outcome == (Played({}), "") else 9)


def test_a_form_finds_the_move_and_says_itself_whether_it_is_whole() -> None:
    def form(message: Message) -> Message:
        if message["content"] == "nothing":
            raise ActionNotFound("There is no move.")
        return AssistantMessage(str(message["content"])[1:-1])

    table = begun(Picky(sticks=9))
    assert play_in_turn(begun(Picky(sticks=9)), AssistantMessage("1")) == (Played({}), ""), "nothing was cut off"
    assert play_in_turn(table, AssistantMessage("nothing"), form) == (NO_MOVE, "There is no move.")
    assert play_in_turn(table, AssistantMessage("[0]"), form) == (NO_MOVE, "Take something.")
    assert play_in_turn(table, AssistantMessage("[1]"), form, is_cut_off=True) == (Played({}), "")
    assert table.sticks == 8


def test_what_a_table_need_not_offer() -> None:
    class Plain(TurnBasedGame):
        """Nothing but what every table must have."""

        def reset(self, seed: int | None, options: Any) -> None:
            self.turn = 0

        def observe(self, player: Player) -> str:
            return ""

        def move(self, message: Message) -> Played:
            return Played({})

        def sample_move(self, player: Player, rng: Any) -> Message:
            return AssistantMessage("")

    table = Plain()
    table.reset(0, None)
    message = AssistantMessage("1")
    assert (table.move_cut_off(message), table.why_not(message, is_cut_off=True)) == (Played({}), "")
    offered = (table.rules(0), table.describe_moves(0), table.legal_moves(0), table.info(0), table.render_picture())
    assert offered == (None, "", None, {}, None)
    for turn, was_truncated, flags in (
        (0, False, (False, False)),
        (0, True, (False, False)),
        (None, True, (False, True)),
        (None, False, (True, False)),
    ):
        table.turn, table.was_truncated = turn, was_truncated
        assert table.end_flags(0) == flags
    with pytest.raises(ConfigurationError, match="Plain cannot deal anew what is hidden from 0"):
        table.resample_hidden(0, np.random.default_rng(0))
    table.close()


def test_a_turn_of_nobody_is_one_only_where_reset_says_so() -> None:
    table = Nim()
    with pytest.raises(ConfigurationError, match="reset of Nim must set `turn`"):
        check_begun(table)
    table.turn = None
    check_begun(table)
    table.turn = 0
    with pytest.raises(ValueError, match="`turn` of Nim is 0, who does not play"):
        check_begun(table)
