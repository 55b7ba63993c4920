"""`to_textarena` in detail: what TextArena's own wrappers and loops do with a game, they do with what an environment becomes.

`test_env` plays whole games of every kind there and back.
"""

from __future__ import annotations

import copy
import pickle
import random
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest

import vfgym
from vfgym.errors import ConfigurationError, InvalidAction, ResetNeeded

textarena = pytest.importorskip("textarena", reason="needs the extra textarena")

ACTION, MESSAGE = textarena.ObservationType.PLAYER_ACTION, textarena.ObservationType.GAME_MESSAGE


@pytest.fixture
def _seeded() -> Iterator[None]:
    """Native games draw from the process's random numbers, which are put back afterwards."""
    state = random.getstate()
    random.seed(4)
    yield
    random.setstate(state)


# A game of TextArena


NEEDS_312 = pytest.mark.skipif(sys.version_info < (3, 12), reason="its module needs Python 3.12")


@pytest.mark.parametrize(
    ("env_id", "players", "moves"),
    [
        ("TicTacToe-v0", 2, ["[4]", "[9]", "[0]", "[8]", "[1]", "[7]"]),
        # Adds to what a player is told, each time that it asks.
        ("TwoDollar-v0", 2, ["[Propose] $1.00", "Hm?", "[Reject]", "[Propose] $0.50", "[Propose] $0.75", "[Accept]"]),
        # Returns the reason of a refusal as the info of the step.
        pytest.param("UltimateTexasHoldem-v0", 1, ["Hm?", "[check]", "[check]"], marks=NEEDS_312),
    ],
)
@pytest.mark.usefixtures("_seeded")
def test_observations_and_infos_come_as_textarena_has_them(env_id: str, players: int, moves: list[str]) -> None:
    """However often the player whose turn it is asks for what it was told."""
    back, native = vfgym.to_textarena(f"textarena/{env_id}-raw"), textarena.make(f"{env_id}-raw")
    back.reset(num_players=players, seed=4)
    native.reset(num_players=players, seed=4)
    for place, move in enumerate(moves):
        for _ in range(2 - place % 2):
            assert repr(back.get_observation()) == repr(native.get_observation())
        assert back.step(move) == native.step(move)
    assert repr(back.get_observation()) == repr(native.get_observation())
    assert back.close() == native.close()


def test_the_info_of_a_step_is_that_of_the_last_move() -> None:
    game = vfgym.to_textarena("textarena/TicTacToe-v0")
    game.reset(num_players=2, seed=0)
    game.state.step_info["noted"] = 1
    assert [game.step(move) for move in ("[4]", "[0]")] == [(False, {"noted": 1}), (False, {})]


def test_what_the_game_itself_offers_is_there_once_it_has_begun_in_copies_too() -> None:
    game = vfgym.to_textarena("textarena/ConnectFour-v0")
    assert not hasattr(game, "get_board_str")
    for _ in range(2):  # before it began, and after its first move
        assert copy.deepcopy(game).env_id == pickle.loads(pickle.dumps(game)).env_id == "ConnectFour-v0"
        game.reset(num_players=2, seed=0)
        game.step("[col 1]")
    assert (game.num_rows, game.num_cols, game.get_board_str().count("X")) == (6, 7, 1)
    assert not any(hasattr(game, missing) for missing in ("no_such_thing", "_check_win"))
    other = pickle.loads(pickle.dumps(game))
    other.step("[col 1]")
    assert (game.get_board_str().count("O"), other.get_board_str().count("O")) == (0, 1)


def test_the_number_of_players_is_the_environments_own_unless_said() -> None:
    game = vfgym.to_textarena(vfgym.TextArenaEnv("Poker-v0", 3))
    played = []
    for number in (None, 5, None, 3):
        game.reset(number, seed=0)
        played.append(game.state.num_players)
    assert played == [3, 5, 3, 3]


def test_without_a_seed_the_random_numbers_go_on_for_as_many_players() -> None:
    def hands(*resets: dict[str, Any]) -> list[Any]:
        game = vfgym.to_textarena("textarena/Poker-v0")
        told = []
        for arguments in resets:
            game.reset(**arguments)
            told.append(game.get_observation())
        return told

    one, other = hands({"num_players": 2, "seed": 0}, {})
    assert [one, other] == hands({"seed": 0}, {"num_players": 2})
    assert one != other


@pytest.mark.parametrize("arguments", [{"num_players": 99}, {"num_players": True}, {"num_players": 3, "seed": "a"}])
def test_a_number_of_players_that_is_refused_leaves_the_running_game(arguments: dict[str, Any]) -> None:
    game, other = (vfgym.to_textarena("textarena/Poker-v0") for _ in range(2))
    for each in (game, other):
        each.reset(2, seed=0)
        each.step("[Call]")
    with pytest.raises((ConfigurationError, gymnasium.error.Error), match=r"num_players|seed"):
        game.reset(**arguments)
    assert game.step("[Check]") == other.step("[Check]")
    assert game.get_observation() == other.get_observation()


# Any chat environment, for one player


def lake(**options: Any) -> vfgym.GameEnv:
    return vfgym.to_chat("FrozenLake-v1", is_slippery=False, **options)


class Echo(vfgym.MultiTurnEnv):
    """Says again what it is told."""

    def env_response(self, messages: list[vfgym.Message], state: vfgym.State) -> list[vfgym.Message]:
        return [vfgym.UserMessage(messages[-1]["content"])]


def ended(turns: int, reason: str) -> Any:
    return {0: 0.5}, {0: {"role": "Player 0", "invalid_move": False, "turn_count": turns, "reason": reason}}


def test_any_chat_environment_is_a_textarena_game_for_one() -> None:
    env = vfgym.SingleTurnEnv([{"question": "6 * 7?", "answer": "42"}], rubric=vfgym.Rubric(lambda completion: 0.5))
    game = vfgym.to_textarena(env)
    assert game.close() == (None, {})
    game.reset(num_players=1, seed=0)
    player, told = game.get_observation()
    assert (player, [text for _, text, _ in told]) == (0, ["6 * 7?"])
    assert game.get_observation() == (0, [])
    assert game.step("42")[0]
    assert game.step("43") == (True, {})
    assert game.get_observation() == (0, [(0, "42", ACTION)])
    assert game.close() == ended(1, "max_turns_reached")
    with pytest.raises(ConfigurationError, match="one player"):
        game.reset(num_players=2)


def test_what_has_not_begun_says_so() -> None:
    game = vfgym.to_textarena(lake())
    for ask in (game.get_observation, lambda: game.step("right"), lambda: game.state):
        with pytest.raises(ResetNeeded):
            ask()
    assert game.close() == (None, {})


def test_an_answer_that_is_none_is_not_noted() -> None:
    game = vfgym.to_textarena(lake())
    game.reset(seed=0)
    game.get_observation()
    with pytest.raises(InvalidAction):
        game.step(5)  # type: ignore[arg-type]
    assert game.get_observation() == (0, [])


@pytest.mark.parametrize("history", [None, 1, 0])
def test_an_observation_is_what_is_new(history: int | None) -> None:
    """The player's own answer, and what the game said to it, however much of the conversation the environment shows again."""
    game = vfgym.to_textarena(lake(history=history))
    game.reset(seed=0)
    (_, rules, kind), *_ = game.get_observation()[1]
    assert kind is textarena.ObservationType.PROMPT
    assert "[S]FFF" in rules
    for move, board in (("right", "S[F]FF"), ("Hm?", "names no action"), ("right", "SF[F]F"), ("up", "SF[F]F"), ("down", "FH[F]H")):
        game.step(move)
        player, (own, (game_id, answer, game_kind)) = game.get_observation()
        assert (player, own, game_id, game_kind) == (0, (0, move, ACTION), -1, MESSAGE)
        assert board in answer
        assert "Frozen lake involves" not in answer


def test_an_agent_of_textarena_reads_the_whole_game_its_own_moves_among_it() -> None:
    game = textarena.wrappers.LLMObservationWrapper(vfgym.to_textarena(lake(history=0)))
    game.reset(num_players=1, seed=0)
    for move in ("right", "<think>The hole is below.</think>right"):
        game.get_observation()
        game.step(move)
    text = game.get_observation()[1]
    parts = ["[GAME] You are playing", "[Player 0] right", "S[F]FF", "[Player 0] <think>", "SF[F]F"]
    assert [text.count(part) for part in parts] == [1] * len(parts)
    assert sorted(parts, key=text.index) == parts


def test_a_wrapper_that_ends_the_game_ends_it_as_a_limit() -> None:
    """What is scored at the end is scored then, too."""
    env = Echo(dataset=[{"question": "?"}], rubric=vfgym.Rubric(lambda completion: 0.5), max_turns=9)
    game = vfgym.to_textarena(gymnasium.wrappers.TimeLimit(env, 2))
    game.reset(seed=0)
    assert [game.step(answer)[0] for answer in ("a", "b")] == [False, True]
    assert game.close() == ended(2, "truncated")


def test_a_second_episode_counts_anew() -> None:
    game = vfgym.to_textarena(Echo(dataset=[{"question": "?"}], rubric=vfgym.Rubric(lambda completion: 0.5), max_turns=2))
    for _ in range(2):
        game.reset(seed=0)
        assert game.get_observation()[1][0][1] == "?"
        assert [game.step(answer)[0] for answer in ("a", "b")] == [False, True]
        assert game.close() == ended(2, "max_turns_reached")
    game.reset(seed=0)
    assert game.close()[0] is None
    table = vfgym.to_textarena("textarena/TicTacToe-v0")
    for _ in range(2):
        table.reset(2, seed=0)
        assert [table.step(f"[{cell}]")[0] for cell in (0, 3, 1, 4, 2)] == [False] * 4 + [True]
        assert table.step("[5]") == (True, {})
        assert table.close()[0] == {0: 1.0, 1: -1.0}


def test_the_table_of_another_number_of_players_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    monkeypatch.setattr(vfgym.TextArenaEnv, "close_game", lambda env, game: closed.append(len(game.players)))
    game = vfgym.to_textarena(vfgym.TextArenaEnv("Poker-v0", 3))
    for number in (3, 3, 5):
        game.reset(number, seed=0)
    assert closed == [3]
    game.close()
    assert closed == [3, 5]
