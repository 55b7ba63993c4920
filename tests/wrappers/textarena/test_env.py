"""`TextArenaEnv` and `to_textarena`: TextArena's games as chat environments, and back.

Each run takes one id of each game; ``pytest -m exhaustive`` takes all that run here.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

import vfgym
from tests.sampling import SEED
from tests.wrappers.textarena.playing import one_of_each_game, play_natively, some_of_all
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient
from vfgym.wrappers.textarena import textarena_games, why_not

textarena = pytest.importorskip("textarena", reason="needs the extra textarena")

MOST_MOVES = 60


@pytest.fixture(autouse=True)
def _process_is_left_alone(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The random numbers of the process are not touched."""
    caplog.set_level(logging.ERROR, logger="vfgym.wrappers.textarena.match")
    random.seed(SEED)
    before = random.getstate()
    yield
    assert random.getstate() == before


def self_play(env: vfgym.TextArenaEnv, seed: int) -> Iterator[tuple[int, str]]:
    """Play a game of random moves for everybody; yields who says what before it is said."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    while True:
        move = env.random_action(env.state, rng)
        yield info["player"], move.content
        _, _, terminated, truncated, info = env.step(move)
        if terminated or truncated:
            return


def rewards_of(env: vfgym.TextArenaEnv) -> dict[int, float] | None:
    """Return the rewards of a game that was played to its own end."""
    return env.state["rewards"] if env.state["turn"].terminated else None


def as_numbers(rewards: dict[int, Any] | None) -> dict[int, float] | None:
    """Return TextArena's rewards, or None where a game mixes up reward and reason."""
    if rewards is None or any(isinstance(reward, str) for reward in rewards.values()):
        return None
    return {player: float(reward) for player, reward in rewards.items()}


@one_of_each_game("default", "raw", "train")
def test_a_game_through_the_conversation_has_the_rewards_of_the_native_one(env_id: str, request: pytest.FixtureRequest) -> None:
    """Whole games where the whole family is played, else their first moves."""
    most_moves = 1000 if request.node.get_closest_marker("exhaustive") else MOST_MOVES
    env = vfgym.TextArenaEnv(env_id, opponents="self", max_moves=most_moves)
    moves = list(self_play(env, SEED))
    assert len(moves) == len(env.state["trajectory"])
    players = env.state.session.game.players
    native = play_natively(env_id, len(players), SEED, moves)
    expected = as_numbers(native.rewards)
    if rewards_of(env) is not None and expected is not None:
        assert env.state["rewards"] == expected
        assert env.state["reward"] == expected[0]
    else:
        assert expected is None or len(moves) == most_moves
    env.close()


@some_of_all("default")
def test_two_environments_played_by_turns_do_not_disturb_each_other(env_id: str) -> None:
    alone = [list(self_play(vfgym.TextArenaEnv(env_id, opponents="self", max_moves=20), seed)) for seed in (1, 2)]
    envs = [vfgym.TextArenaEnv(env_id, opponents="self", max_moves=20) for _ in alone]
    together: list[list[Any]] = [[], []]
    games = [self_play(env, seed) for env, seed in zip(envs, (1, 2), strict=True)]
    for moves in zip(*games, strict=False):
        for told, move in zip(together, moves, strict=True):
            told.append(move)
    for told, moves in zip(together, alone, strict=True):
        assert told == moves[: len(told)]


@some_of_all("default")
def test_one_seat_against_random_opponents_plays_to_an_end(env_id: str) -> None:
    """And again the same under the same seed."""
    games = []
    for _ in range(2):
        env = vfgym.TextArenaEnv(env_id, seat="random", max_moves=MOST_MOVES)
        agent = vfgym.RandomAgent()
        observation, info = env.reset(seed=SEED)
        answer = agent.for_episode(env)
        told, total, is_over = [observation], 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, info = env.step(answer(observation, info))
            told.append(observation)
            total += reward
            is_over = terminated or truncated
        assert env.state["reward"] == total == env.state["rewards"][env.state["player"]]
        assert all(type(reward) is float for reward in info["rewards"].values())
        games.append((told, info))
        env.close()
    assert games[0] == games[1]


@some_of_all("raw")
def test_to_textarena_gives_the_game_back(env_id: str) -> None:
    """Everything that TextArena's raw game tells, in its own form, and the same rewards."""
    env = vfgym.TextArenaEnv(env_id, opponents="self", max_moves=MOST_MOVES)
    moves = list(self_play(env, SEED))
    back = vfgym.to_textarena(env)
    back.reset(num_players=len(env.state.session.game.players), seed=SEED)
    native = play_natively(env_id, len(env.state.session.game.players), SEED, moves)
    for player, move in moves:
        current, told = back.get_observation()
        assert current == player
        assert all(len(item) == 3 for item in told)
        is_over, info = back.step(move)
    assert info == {}
    assert repr(back.state.logs) == repr(native.logs)
    rewards, game_info = back.close()
    expected = as_numbers(native.rewards)
    if expected is not None:
        assert is_over
        assert rewards == expected
    assert set(game_info) == set(env.state.session.game.players)


def test_opponents_do_not_see_what_the_policy_thinks() -> None:
    seen: list[str] = []

    def listening(observation: list[Any], info: dict[str, Any]) -> str:
        seen.extend(message.content for message in observation)
        return "[0]"

    env = vfgym.TextArenaEnv("TicTacToe-v0-raw", opponents=listening)
    env.reset(seed=0)
    env.step("<think>The middle wins.</think>Hello! [4]")
    assert any("Hello!" in text for text in seen)
    assert not any("middle" in text for text in seen)
    assert "middle" in env.state["trajectory"][0]["completion"][0].content


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
        ({"game": "Klondike-v0"}, "cannot be played here"),
        ({"game": "TicTacToe-v0", "max_moves": 0}, "max_moves"),
        ({"game": "TicTacToe-v0", "game_options": {"board": 5}}, "refuses the options"),
    ],
)
def test_what_cannot_be_played_is_said_at_once(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        vfgym.TextArenaEnv(**arguments)


async def test_a_model_plays_it_with_one_call_a_move() -> None:
    env = vfgym.TextArenaEnv("TicTacToe-v0", opponents=lambda observation, info: info["legal_actions"][-1])
    client = ScriptedClient(["[0]", "[1]", "[2]"])
    state = await env.rollout({"prompt": [], "example_id": 3, "seed": 3}, client, "scripted")
    await env.rubric.score_rollout(state)
    assert state["reward"] == 1.0
    assert len(state["trajectory"]) == 3


@pytest.mark.parametrize("opponents", ["random", "self"])
@pytest.mark.parametrize("env_id", ["TicTacToe-v0", "ConnectFour-v0-train"])
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
                assert (reward, ended) == (0.0, False)
                assert "not" in observation[-1].content
                assert told["legal_actions"] == info["legal_actions"]
            observation, reward, ended, _, info = env.step(info["legal_actions"][0])
            boards.append((observation[-1].content, reward))
        played.append(boards)
    assert played[0] == played[1]


def test_nobody_wins_by_answers_that_are_no_moves() -> None:
    env = vfgym.TextArenaEnv("TicTacToe-v0", opponents=lambda observation, info: "I'd play the centre.")
    results = vfgym.evaluate(env, "random", num_examples=2)
    for output in results["outputs"]:
        assert (output["ending"], output["reward"]) == ("environment_failed", 0.0)
        assert "the opponent at the seat of 1 found no valid move in 10 answers" in output["error"]["error_chain_repr"]
    for policy in (lambda observation, info: "pass", lambda observation, info: "center"):
        results = vfgym.evaluate(vfgym.TextArenaEnv("TicTacToe-v0"), policy, num_examples=2)
        assert [output["ending"] for output in results["outputs"]] == ["policy_failed"] * 2


def test_an_opponent_that_a_game_puts_out_for_what_is_no_move_makes_nobody_win() -> None:
    """Where legal moves are not known, the game says what is one, and lets a player lose by a second invalid move."""
    env = vfgym.TextArenaEnv("LiarsDice-v0", num_players=2, seat=0, opponents=lambda observation, info: "[Bid: 0, 9]")
    _, info = env.reset(seed=SEED)
    ended = False
    while not ended:
        *_, ended, _, info = env.step("[Bid: 1, 2]")
    assert "the opponent at the seat of 1 found no valid move" in info["error"]
    assert env.state["reward"] == 0.0


def test_other_ways_to_write_a_legal_move_are_played() -> None:
    env = vfgym.TextArenaEnv("2048-v0")
    _, info = env.reset(seed=SEED)
    written = info["legal_actions"][0].lower()
    assert written not in info["legal_actions"]
    env.step(written)
    assert not env.state["trajectory"][-1]["extras"].get("invalid_answer")
