"""`TextArenaEnv` and `to_textarena`: TextArena's games as chat environments, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

import vfgym
from tests.sampling import SEED
from tests.wrappers.textarena.playing import one_of_each_game, play_natively
from vfgym.errors import ConfigurationError
from vfgym.wrappers.textarena import textarena_games, why_not

pytest.importorskip("textarena", reason="needs the extra textarena")
pytestmark = pytest.mark.usefixtures("process_is_left_alone")

MOST_MOVES = 60


def self_play(env: vfgym.TextArenaEnv, seed: int) -> Iterator[tuple[int, str]]:
    """Play a game of random moves for everybody; yields who says what before it is said."""
    rng, is_over = np.random.default_rng(seed), False
    _, info = env.reset(seed=seed)
    while not is_over:
        move = env.random_action(env.state, rng)
        yield info["player"], move.content
        _, _, terminated, truncated, info = env.step(move)
        is_over = terminated or truncated


@one_of_each_game("default", "raw", "train")
def test_a_game_through_the_conversation_is_the_native_one_and_is_given_back(env_id: str, request: pytest.FixtureRequest) -> None:
    """Whole games where the whole family is played, else their first moves: the same talk, and the same rewards."""
    most_moves = 1000 if request.node.get_closest_marker("exhaustive") else MOST_MOVES
    env = vfgym.TextArenaEnv(env_id, opponents="self", max_moves=most_moves)
    moves = list(self_play(env, SEED))
    assert len(moves) == len(env.state["trajectory"])
    players = len(env.state.session.game.players)
    native = play_natively(env_id, players, SEED, moves)
    back = vfgym.to_textarena(env)
    back.reset(num_players=players, seed=SEED)
    for player, move in moves:
        current, told = back.get_observation()
        assert current == player
        assert all(len(item) == 3 for item in told)
        is_over, _ = back.step(move)
    assert repr(back.state.logs) == repr(native.logs)
    rewards, game_info = back.close()
    assert set(game_info) == set(range(players))
    if native.rewards is None:
        assert len(moves) == most_moves
    elif not any(isinstance(reward, str) for reward in native.rewards.values()):  # some games mix up reward and reason
        assert is_over
        assert env.state["rewards"] == rewards == native.rewards
        assert env.state["reward"] == native.rewards[0]
    env.close()


def test_what_is_known_of_an_environment_follows_from_its_id_and_its_options() -> None:
    env = vfgym.TextArenaEnv("ConnectFour-v0-train", max_moves=1, game_options={"num_cols": 9})
    assert (env.env_id, env.reward_range) == ("textarena/ConnectFour-v0-train", (-1.0, 1.0))
    _, info = env.reset(seed=0)
    assert info["legal_actions"] == [f"[col {col}]" for col in range(9)]
    assert env.step("[col 8]").truncated
    assert vfgym.TextArenaEnv("LightsOut-v0", max_moves=3).reward_range == (-24.0, 1.0)
    assert vfgym.TextArenaEnv("LightsOut-v0", game_options={"size": 4}).reward_range is None


def test_every_id_that_cannot_run_says_why() -> None:
    for game in textarena_games():
        if why_not(game) is not None:
            with pytest.raises(vfgym.errors.Error, match=r"cannot be played here: it needs .|pip install"):
                gymnasium.make(f"textarena/{game.replace('/', '-')}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"game": "TicTacTo-v0"}, "Did you mean"),
        ({"game": "TicTacToe-v0", "num_players": 3}, "is for 2 players"),
        ({"game": "TicTacToe-v0", "max_moves": 0}, "max_moves"),
        ({"game": "TicTacToe-v0", "game_options": {"board": 5}}, "refuses the options"),
    ],
)
def test_what_cannot_be_played_is_said_at_once(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        vfgym.TextArenaEnv(**arguments)


@pytest.mark.parametrize(("env_id", "opponents"), [("TicTacToe-v0", "self"), ("ConnectFour-v0-train", "random")])
def test_what_is_no_move_is_asked_again_and_spends_nothing(env_id: str, opponents: str) -> None:
    """The game goes on as if nothing had been said: TextArena's own would be lost by the second invalid move."""
    played = []
    for nonsense in ([], ["pass", "[center]", "I resign."]):
        env = vfgym.TextArenaEnv(env_id, opponents=opponents, max_invalid_moves=4)
        _, info = env.reset(seed=SEED)
        boards, ended = [], False
        while not ended:
            for text in nonsense:
                observation, reward, ended, _, told = env.step(text)
                assert (reward, ended, told["legal_actions"]) == (0.0, False, info["legal_actions"])
                assert "not" in observation[-1].content
            observation, reward, ended, _, info = env.step(info["legal_actions"][0])
            boards.append((observation[-1].content, reward))
        played.append(boards)
    assert played[0] == played[1]


def test_nobody_wins_by_answers_that_are_no_moves() -> None:
    env = vfgym.TextArenaEnv("TicTacToe-v0", opponents=lambda observation, info: "I'd play the centre.")
    for output in vfgym.evaluate(env, "random", num_examples=2)["outputs"]:
        assert (output["ending"], output["reward"]) == ("environment_failed", 0.0)
        assert "the opponent at the seat of 1 found no valid move in 10 answers" in output["error"]["error_chain_repr"]
    results = vfgym.evaluate(vfgym.TextArenaEnv("TicTacToe-v0"), lambda observation, info: "pass", num_examples=2)
    assert [output["ending"] for output in results["outputs"]] == ["policy_failed"] * 2


def test_an_opponent_that_a_game_puts_out_for_what_is_no_move_makes_nobody_win() -> None:
    """Where legal moves are not known, the game says what is one, and lets a player lose by a second invalid move."""
    env, ended = vfgym.TextArenaEnv("LiarsDice-v0", num_players=2, seat=0, opponents=lambda observation, info: "[Bid: 0, 9]"), False
    env.reset(seed=SEED)
    while not ended:
        *_, ended, _, info = env.step("[Bid: 1, 2]")
    assert "the opponent at the seat of 1 found no valid move" in info["error"]
    assert env.state["reward"] == 0.0


def test_self_play_is_of_the_same_game_and_changes_nothing_here() -> None:
    options = {"num_dice": 2}
    env = vfgym.TextArenaEnv("LiarsDice-v0", 3, max_moves=5, game_options=options, blocking=True, env_id="mine")
    assert (env.blocking, env.env_id, options) == (True, "mine", {"num_dice": 2})
    for asked_for, players in ((None, 3), (4, 4)):
        alone = env.self_play(asked_for)
        assert (alone.game, alone.num_players, alone.is_self_play, alone.tell_legal_actions) == ("LiarsDice-v0", players, True, False)
        assert (alone._table_options, alone.blocking) == ({"num_dice": 2, "max_moves": 5}, False)
        assert len(alone.open_table().players) == players
    assert (env._table_options, env.num_players, env.is_self_play) == ({"num_dice": 2, "max_moves": 5}, 3, False)
    assert vfgym.TextArenaEnv("LiarsDice-v0").self_play()._table_options == {}
