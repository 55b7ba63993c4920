"""`to_pettingzoo`: conversations are PettingZoo environments."""

from __future__ import annotations

import copy
import functools
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

import vfgym
from tests.environments import Talk
from tests.wrappers.games.nim import Nim, NimEnv
from tests.wrappers.gymnasium.toys import Toy
from tests.wrappers.pettingzoo.tables import CLASSIC, Elimination, cut_off, factory
from vfgym.errors import ConfigurationError, InvalidAction, ResetNeeded
from vfgym.messages import AssistantMessage, Response, ResponseTokens, UserMessage
from vfgym.wrappers.pettingzoo import PettingZooEnv, PettingZooGame, to_pettingzoo

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its tests make their environments in a way that it deprecates
    from pettingzoo.test import api_test, seed_test
from pettingzoo.utils.conversions import aec_to_parallel

# PettingZoo's spaces of no-limit hold'em have more digits than their dtype.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")


def chat_aec(name: str, /, **options: Any) -> Any:
    return to_pettingzoo(functools.partial(PettingZooGame, factory(name)), **options)


def test_of_the_options_of_a_reset_those_that_are_known_are_handed_on() -> None:
    aec: Any = to_pettingzoo(PettingZooEnv(Elimination, max_invalid_moves=1))
    aec.reset(seed=0, options={"game_options": {"speed": "high"}, "options": 1})
    assert aec.game.env.options == {"speed": "high"}
    aec.step("[2, 0]")
    aec.step("banana")  # a limit of the chat environment truncates those who are still in the game
    assert aec.terminations == {"player_0": True, "player_1": False, "player_2": False}
    assert aec.truncations == {"player_0": False, "player_1": True, "player_2": True}
    closed: list[bool] = []
    solo: Any = to_pettingzoo(vfgym.to_chat(lambda: Toy(close=lambda: closed.append(True))))
    solo.reset(seed=0, options={"example_id": 7, "options": 1})
    assert solo.infos["player_0"]["example_id"] == 7
    looked_at = len(closed)
    solo.close()
    assert len(closed) == looked_at + 1


@pytest.mark.parametrize(
    "make",
    [
        *(functools.partial(lambda name, **options: chat_aec(name, **options), name) for name in CLASSIC),
        lambda **options: to_pettingzoo(vfgym.to_chat("CartPole-v1"), **options),
        lambda **options: to_pettingzoo(vfgym.TextArenaEnv("TicTacToe-v0"), **options),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # it would rather have arrays
def test_pettingzoos_own_tests_pass(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    env = make()
    for call in (env.last, lambda: env.observe("player_0")):
        with pytest.raises(ResetNeeded):
            call()
    api_test(env, num_cycles=30)
    assert "Passed API test" in capsys.readouterr().out
    seed_test(make, num_cycles=10)


def test_agents_have_conversations_of_their_own() -> None:
    env = chat_aec("tictactoe_v3")
    env.reset(seed=0)
    for move in ("4", "0", {"role": "assistant", "content": "Action: 1"}, AssistantMessage("<action>2</action>")):
        env.last()
        env.step(move)
    conversation, reward, terminated, truncated, info = env.last()
    assert env.agent_selection == "player_0"
    assert [message.role for message in conversation] == ["user", "assistant"] * 2 + ["user"]
    assert [message.content for message in conversation[1::2]] == ["4", "Action: 1"]
    assert "player_2 played: 0" in conversation[2].content
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info == {"player": "player_1", "game_info": {}, "legal_actions": ["3", "5", "6", "7", "8"]}
    assert env.observation_space("player_0").contains(conversation)
    assert env.observe("player_0") == conversation
    with pytest.raises(ConfigurationError, match="no agent 'nobody'; there are player_0"):
        env.observe("nobody")


def test_a_conversation_holds_what_was_said_and_nothing_of_how_it_was_sampled() -> None:
    env = chat_aec("tictactoe_v3")
    env.reset(seed=0)
    tokens = ResponseTokens([1], [0], [2], [1], [-0.1])
    env.step(Response("r", 0, "m", None, {"content": "4", "reasoning_content": "Hm.", "finish_reason": "stop", "tokens": tokens}))
    said = env.observe("player_0")[1]
    assert type(said) is AssistantMessage
    assert said == {"role": "assistant", "content": "4", "reasoning_content": "Hm."}


def test_an_agent_that_names_no_move_stays_selected_and_is_told() -> None:
    env = chat_aec("tictactoe_v3")
    env.reset(seed=0)
    env.step(cut_off("Action: 3"))
    assert "cut off" in env.observe(env.agent_selection)[-1].content
    env.reset(seed=0)
    env.step("somewhere")
    assert env.agent_selection == "player_0"
    conversation = env.last()[0]
    assert [message.role for message in conversation] == ["user", "assistant", "user"]
    with pytest.raises(InvalidAction):
        env.step(UserMessage("4"))
    assert env.last()[0] == conversation


def test_all_leave_when_the_game_is_over() -> None:
    env = chat_aec("tictactoe_v3", name="noughts_v0")
    assert str(env) == "noughts_v0"
    env.reset(seed=0)
    for move in "03142":
        env.step(move)
    ends = {}
    with pytest.raises(ValueError, match="None"):
        env.step("4")
    for agent in env.agent_iter():
        conversation, reward, terminated, truncated, info = env.last()
        ends[agent] = (reward, terminated, truncated)
        assert "The game is over." in conversation[-1].content
        assert "legal_actions" not in info
        env.step(None)
    assert ends == {"player_0": (1.0, True, False), "player_1": (-1.0, True, False)}
    assert env.agents == []
    with pytest.raises(ResetNeeded):
        env.step(None)
    env.reset(seed=0)
    assert env.agents == ["player_0", "player_1"]


def test_samples_are_legal_moves_of_whose_turn_it_is_and_words_else() -> None:
    env = chat_aec("connect_four_v3")
    env.reset(seed=0)
    assert {env.action_space("player_0").sample().content for _ in range(60)} == set("0123456")
    assert not {env.action_space("player_1").sample().content for _ in range(20)} <= set("0123456")


def test_it_is_copied_in_the_middle() -> None:
    env = chat_aec("tictactoe_v3")
    env.reset(seed=0)
    env.step("4")
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert twin.last() == env.last()
        twin.step("0")
        assert twin.agent_selection == "player_0"
        assert env.agent_selection == "player_1"
        assert twin.action_space("player_0").sample().content in twin.infos["player_0"]["legal_actions"]


def test_it_renders_conversations(capsys: pytest.CaptureFixture[str]) -> None:
    env = chat_aec("tictactoe_v3", render_mode="ansi")
    env.reset(seed=0)
    env.last()
    env.step("Action: 4")
    assert "player_0:\n[user] You are playing Tic Tac Toe." in env.render()
    assert "[assistant] Action: 4" in env.render()
    env = chat_aec("tictactoe_v3", render_mode="human")
    env.reset(seed=0)
    env.observe("player_1")
    env.step("4")
    assert env.render() is None
    printed = capsys.readouterr().out
    assert printed.count("[user] You are playing") == 2
    assert printed.count("[assistant] 4") == 1
    assert printed.count("player_1 played: 4") == 1
    with pytest.raises(ConfigurationError, match="render_mode must be one of ansi, human"):
        chat_aec("tictactoe_v3", render_mode="rgb_array")


def test_a_chat_environment_becomes_an_environment_of_one_agent(capsys: pytest.CaptureFixture[str]) -> None:
    def make(render_mode: str | None = None) -> Any:
        sums = vfgym.SingleTurnEnv(dataset=[{"question": "1 + 1", "answer": "2"}, {"question": "2 + 2", "answer": "4"}])
        return to_pettingzoo(sums, render_mode=render_mode)

    env = make("human")
    env.reset(seed=0)
    assert (env.agents, env.metadata["is_parallelizable"], chat_aec("rps_v2").metadata["is_parallelizable"]) == (["player_0"], True, False)
    conversation, *_ = env.last()
    assert conversation[-1].role == "user"
    env.step("2")
    conversation, reward, terminated, truncated, info = env.last()
    assert conversation[-1].content == "2"
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert "stop_condition" in info
    env.step(None)
    assert env.agents == []
    assert env.render() is None
    assert capsys.readouterr().out.count("[assistant] 2") == 1
    seed_test(make)
    parallel = aec_to_parallel(make())
    parallel.reset(seed=0)
    observations, rewards, terminations, _, _ = parallel.step({"player_0": "2"})
    assert terminations == {"player_0": True}
    assert rewards == {"player_0": 0.0}
    assert observations["player_0"][-1].content == "2"


def test_an_episode_that_a_wrapper_ends_is_scored_in_its_last_step() -> None:
    """As `evaluate` and `to_textarena` do."""

    def answers(completion: Any) -> float:
        return float(sum(message.role == "assistant" for message in completion))

    rubric = vfgym.Rubric(answers)
    rubric.add_step_reward_func(lambda: 0.25)
    env = to_pettingzoo(gym.wrappers.TimeLimit(Talk(rubric=rubric), 2))
    env.reset(seed=0)
    seen = []
    for _ in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        seen.append((reward, terminated, truncated, info["stop_condition"], info["metrics"]["answers"]))
        env.step(None if truncated else "a")
    assert seen == [(0.0, False, False, None, 0.0), (0.25, False, False, None, 0.0), (2.25, False, True, "truncated", 2.0)]
    env.reset(seed=1)
    assert env.last()[4]["stop_condition"] is None


def endings(aec: Any, answers: Iterator[str]) -> tuple[int, set[bool], set[str]]:
    aec.reset(seed=0)
    answered, conditions, truncations = 0, set(), set()
    for _ in aec.agent_iter():
        _, _, terminated, truncated, info = aec.last()
        if terminated or truncated:
            truncations.add(truncated)
            conditions.add(info["stop_condition"])
            aec.step(None)
        else:
            aec.step(next(answers))
            answered += 1
    return answered, truncations, conditions


@pytest.mark.parametrize("opponents", ["random", "self"])
def test_an_agent_that_finds_no_valid_move_truncates_the_game(opponents: str) -> None:
    """Invalid moves of one agent are none of another; a table has no limits but its own."""
    env = PettingZooEnv("classic/tictactoe_v3", max_invalid_moves=3, opponents=opponents)
    answers = ["4", "banana", "banana", "0", "banana", "banana", "8", "banana", "banana", "banana"]
    assert endings(to_pettingzoo(env), iter(answers)) == (10, {True}, {"too_many_invalid_moves"})
    table = to_pettingzoo(lambda: PettingZooGame("classic/tictactoe_v3", max_moves=30))
    assert endings(table, iter(["banana"] * 30)) == (30, {True}, {"game_truncated"})


def test_who_has_had_all_its_turns_truncates_the_game() -> None:
    """Each agent has as many turns as the policy has in the conversation; in self-play that are the turns of all."""
    moves = [f"[{cell}]" for cell in (0, 1, 2, 4, 3, 5, 7, 6, 8)]
    for most, together, answered in ((2, False, 4), (3, True, 3), (-1, False, 9)):
        env = vfgym.TextArenaEnv("TicTacToe-v0", max_turns=most, opponents="self" if together else "random")
        reason = "max_turns_reached" if most > 0 else "game_over"
        assert endings(to_pettingzoo(env), iter(moves)) == (answered, {most > 0}, {reason})


def test_each_episode_begins_anew_whatever_was_left_of_the_last_one() -> None:
    env = to_pettingzoo(NimEnv(3, sticks=9, system_prompt="Win.", max_turns=2, max_invalid_moves=2))
    for seed in (0, None):
        env.reset(seed=seed)
        for move in ("nothing", "1", "1"):
            assert env.infos[env.agent_selection]["legal_actions"] == ["1", "2", "3"]
            env.step(move)
        assert (env.agent_selection, env.truncations) == ("player_2", dict.fromkeys(env.possible_agents, False))
        assert (env.infos["player_0"], env.infos["player_1"]) == ({}, {})
        conversation = env.observe("player_0")
        assert [message["content"] for message in conversation] == [
            "Win.",
            "You are player 0. There are 9 sticks.",
            "nothing",
            "'nothing' is not a move.",
            "1",
            "Player 1 takes 1, 7 are left.",
        ]
        conversation.clear()
        assert len(env.observe("player_0")) == 6
    env.step("1")
    assert env.infos["player_0"] == {"player": 0, "game_info": {}, "stop_condition": "max_turns_reached"}
    assert set(env.truncations.values()) == {True}


def test_a_table_whose_next_game_has_other_players_is_refused() -> None:
    table = Nim(3)
    env: Any = to_pettingzoo(lambda: table, name=None)
    assert (env.possible_agents, env.metadata["name"]) == (["player_0", "player_1", "player_2"], "Nim")
    table.num_players = 2
    with pytest.raises(ConfigurationError, match="this table was opened for 3 players, and the game has begun with 2"):
        env.reset(seed=0)
    env.close()
    assert table.closed == 1


def test_a_reward_adds_up_from_ones_own_move_on() -> None:
    env = to_pettingzoo(lambda: PettingZooGame(Elimination))
    env.reset(seed=0)
    rewards = []
    for move in ("[0, 0]", "[0, 0]", "[0, 0]", "[0, 0]", "[2, 0]", "[0, 0]", "[2, 0]"):
        rewards.append(env.last(observe=False)[:2])
        env.step(move)
    assert rewards == [(None, 0.0)] * 3 + [(None, 0.25)] * 4
    ends = {}
    for agent in env.agent_iter():
        ends[agent] = env.last()[1:4]
        env.step(None)
    assert ends == {"player_0": (10.25, True, False), "player_1": (0.25, True, False), "player_2": (0.25, True, False)}


def test_the_end_is_printed_for_all_and_nothing_without_a_render_mode(capsys: pytest.CaptureFixture[str]) -> None:
    for mode, times in (("human", 1), (None, 0)):
        env = chat_aec("tictactoe_v3", render_mode=mode)
        env.reset(seed=0)
        for move in "03142":
            env.step(move)
        printed = capsys.readouterr().out
        totals = [printed.count(f"The game is over. Your total reward is {total}.") for total in ("1", "-1")]
        assert totals == [times, times]
    with pytest.warns(UserWarning, match="without a render mode: make the environment with render_mode='ansi' or 'human'"):
        assert env.render() is None


def test_what_has_not_begun_cannot_be_answered_and_has_the_name_of_its_environment() -> None:
    for env, name in (
        (to_pettingzoo(Talk()), "Talk"),
        (to_pettingzoo("gymnasium/CartPole-v1"), "gymnasium/CartPole-v1"),
        (to_pettingzoo(Talk(), name="chat"), "chat"),
        (to_pettingzoo(NimEnv()), "NimEnv"),
    ):
        assert env.metadata["name"] == name
        with pytest.raises(ResetNeeded, match="no episode to continue"):
            env.step("1")
    solo = to_pettingzoo(Talk())
    solo.reset(seed=0)
    with pytest.raises(InvalidAction):
        solo.step(UserMessage("hello"))
    assert [message["role"] for message in solo.observe("player_0")] == ["user"]
    solo.step("hello")
    assert [message["content"] for message in solo.observe("player_0")] == ["?", "hello", "go on"]
