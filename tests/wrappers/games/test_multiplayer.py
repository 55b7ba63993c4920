"""`MultiplayerEnv`: one seat at a game for several players, with agents or the policy itself at the others."""

from __future__ import annotations

from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

import vfgym
from tests.wrappers.games.nim import InBrackets, Nim, NimEnv, play, takes_one
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Message
from vfgym.testing import ScriptedClient, check_environment
from vfgym.wrappers.games.turn_based import Played
from vfgym.wrappers.pettingzoo import to_pettingzoo


def test_the_policy_sees_its_own_seat_and_what_the_opponents_did_since() -> None:
    env = NimEnv(sticks=6, opponents=takes_one)
    (first, info), *outcomes = play(env, ["1", "1", "1"])
    assert [message.content for message in first] == ["You are player 0. There are 6 sticks."]
    assert info["player"] == 0
    assert info["legal_actions"] == ["1", "2", "3"]
    told = [first[0].content, "1", "Player 1 takes 1, 4 are left.", "1", "Player 1 takes 1, 2 are left."]
    assert [message.content for message in outcomes[1].observation] == told
    assert outcomes[-1].observation[-1].content == "Player 1 takes 1, 0 are left.\nPlayer 1 wins."
    assert [outcome.reward for outcome in outcomes] == [0.0, 0.0, -1.0]
    assert outcomes[-1].terminated
    assert outcomes[-1].info["rewards"] == {0: -1.0, 1: 1.0}
    assert outcomes[-1].info["stop_condition"] == "game_over"
    table = env.state.session.game
    play(env, ["1"])
    assert (env.state.session.game is table, table.closed) == (True, 0)
    env.close()
    env.close()
    assert table.closed == 1


def test_opponents_before_the_policys_seat_move_first() -> None:
    env = NimEnv(num_players=3, sticks=6, seat=1, opponents=takes_one)
    observation, info = env.reset(seed=0)
    assert observation[-1].content == "You are player 1. There are 6 sticks.\nPlayer 0 takes 1, 5 are left."
    assert info["player"] == 1
    assert "legal_actions" not in NimEnv(tell_legal_actions=False).reset(seed=0)[1]
    outcome = env.step("2")
    assert outcome.observation[-1].content == "Player 2 takes 1, 2 are left.\nPlayer 0 takes 1, 1 are left."
    assert env.step("1").reward == 1.0


@pytest.mark.parametrize("blocking", [False, True])
async def test_moves_in_a_form_are_found_in_the_messages_of_the_policy_and_of_opponents(blocking: bool) -> None:
    answers = iter(["1", "one: [1]"])
    env = InBrackets(sticks=9, opponents=lambda observation, info: next(answers), blocking=blocking)
    await env.areset(seed=0)
    outcome = await env.astep("2")
    assert outcome.observation[-1].content == "Put your move into brackets.", "the game did not see the message"
    assert (await env.astep("I take [nine].")).observation[-1].content == "'nine' is not a move."
    outcome = await env.astep("I take [2], not 3.")
    assert outcome.observation[-1].content == "Player 1 takes 1, 6 are left."
    assert [step["extras"]["rewards"] for step in env.state["trajectory"]] == [{0: 0.0, 1: 0.0}] * 3
    await env.aclose()


def test_messages_without_the_form_are_limited_as_invalid_moves_are() -> None:
    outcome = play(InBrackets(max_invalid_moves=2, opponents=lambda *args: "[1]"), ["1", "[1]", "1", "1"])[-1]  # in a row
    assert (outcome.terminated, outcome.info["stop_condition"], outcome.info["ending"]) == (True, "too_many_invalid_moves", "policy_failed")
    outcome = play(InBrackets(max_invalid_moves=2, opponents=takes_one), ["[1]"])[-1]
    assert "seat of 1 found no valid move in 2 answers" in outcome.info["error"]


def test_moves_in_a_form_in_self_play_and_as_pettingzoo() -> None:
    env = InBrackets(sticks=9, opponents="self")
    outcomes = play(env, ["2", "[2]"])
    assert (outcomes[1].info["player"], outcomes[1].observation[-1].content) == (0, "Put your move into brackets.")
    assert outcomes[2].info["player"] == 1
    pytest.importorskip("pettingzoo")
    aec = to_pettingzoo(InBrackets(sticks=9, max_invalid_moves=3))
    aec.reset(seed=0)
    aec.step("2")
    assert aec.agent_selection == "player_0"
    assert [message.content for message in aec.last()[0]] == ["You are player 0. There are 9 sticks.", "2", "Put your move into brackets."]
    aec.step("[2]")
    assert aec.agent_selection == "player_1"
    assert aec.action_space("player_1").sample().content in {"[1]", "[2]", "[3]"}
    for answer in "abc":
        aec.step(answer)
    assert aec.last()[2:4] == (False, True)


def test_random_players_and_samples_answer_in_the_form() -> None:
    env = InBrackets(num_players=3)
    _, info = env.reset(seed=0)
    assert info["legal_actions"] == ["[1]", "[2]", "[3]"]
    assert {env.action_space.sample().content for _ in range(40)} == {"[1]", "[2]", "[3]"}
    assert all(row["stop_condition"] == "game_over" for row in vfgym.evaluate(env, "random", num_examples=4, seed=0)["outputs"])
    assert [check for check in check_environment(lambda: InBrackets(sticks=9)) if not check.passed] == []

    class Sampling:
        def for_episode(self, env: Any) -> Any:
            return lambda observation, info: env.action_space.sample()

    assert play(InBrackets(sticks=5, opponents=Sampling()), ["[1]", "[1]", "[1]"])[-1].info["stop_condition"] == "game_over"


@pytest.mark.parametrize("tell_legal_actions", [False, True])
@pytest.mark.parametrize("blocking", [False, True])
async def test_random_players_draw_their_moves_from_the_table(blocking: bool, tell_legal_actions: bool) -> None:
    """The author of this one thinks that somebody who plays at random takes one."""

    class CautiousEnv(NimEnv):
        def open_table(self) -> Nim:
            table = Nim(sticks=12)
            table.sample_move = lambda player, rng: AssistantMessage("1")  # type: ignore[method-assign]
            return table

    env = CautiousEnv(blocking=blocking, tell_legal_actions=tell_legal_actions)
    results = await vfgym.aevaluate(env, "random", num_examples=4, state_columns=["trajectory"], progress=False)
    assert {len(row["trajectory"]) for row in results["outputs"]} == {6}
    assert {row["reward"] for row in results["outputs"]} == {-1.0}


def test_a_game_that_is_over_before_the_policys_turn_has_its_reward() -> None:
    env = NimEnv(sticks=2, seat=1, opponents=lambda observation, info: "2")
    observation, info = env.reset(seed=0)
    assert observation[-1].content.endswith("Player 0 wins.")
    assert info["stop_condition"] == "game_over"
    outcome = env.step("1")
    assert (outcome.reward, outcome.terminated, env.state["reward"], env.state["trajectory"]) == (-1.0, True, -1.0, [])


def test_the_same_seed_gives_the_same_games_with_random_opponents_and_a_random_seat() -> None:
    def games(env: NimEnv) -> list[Any]:
        agent = vfgym.RandomAgent()
        told = []
        for seed in (3, None, None, 9):
            observation, info = env.reset(seed=seed)
            answer = agent.for_episode(env)
            told.append((observation, info))
            over = False
            while not over:
                outcome = env.step(answer(observation, info))
                observation, info, over = outcome.observation, outcome.info, outcome.terminated
                told.append(outcome)
        return told

    first, again, other = (NimEnv(num_players=3, seat="random") for _ in range(3))
    told = games(first)
    assert data_equivalence(told, games(again))
    assert data_equivalence(games(first), told)
    assert len({info["player"] for seed in range(20) for _, info in [other.reset(seed=seed)]}) == 3


def test_self_play_shows_the_conversation_of_whoever_is_to_move() -> None:
    env = NimEnv(sticks=4, opponents="self")
    (first, info), *outcomes = play(env, ["1", "2", "1"])
    assert [message.content for message in first] == ["You are player 0. There are 4 sticks."]
    assert info["player"] == 0
    assert outcomes[0].info["player"] == 1
    seen = [[message.content for message in outcome.observation] for outcome in outcomes[:2]]
    assert seen[0] == ["You are player 1. There are 4 sticks.\nPlayer 0 takes 1, 3 are left."]
    assert seen[1] == ["You are player 0. There are 4 sticks.", "1", "Player 1 takes 2, 1 are left."]
    assert (outcomes[2].terminated, outcomes[2].reward, outcomes[2].info["rewards"]) == (True, 1.0, {0: 1.0, 1: -1.0})
    assert [step["extras"]["player"] for step in env.state["trajectory"]] == [0, 1, 0]
    whole = [first[0].content, "1", "Player 1 takes 2, 1 are left.", "1", "Player 0 wins."]
    assert [message.content for message in outcomes[2].observation] == whole
    other = play(NimEnv(sticks=4, seat=1, opponents="self"), ["1", "2", "1"])[-1]  # reports its seat
    assert (other.reward, other.observation[0].content) == (-1.0, "You are player 1. There are 4 sticks.\nPlayer 0 takes 1, 3 are left.")


def test_a_turn_notes_what_its_moves_earned_everybody() -> None:
    """In self-play each move, else the policy's move and those of the opponents up to its next turn, those before its first included."""

    class Trickle(Nim):
        """Every move earns whoever makes it a bit."""

        def move(self, message: Message) -> Played:
            mover = self.turn
            played = super().move(message)
            return played._replace(rewards={**played.rewards, mover: played.rewards.get(mover, 0.0) + 0.25})

    env = NimEnv(seat=1, opponents=takes_one)
    env.open_table = lambda: Trickle(sticks=5)  # type: ignore[method-assign]
    play(env, ["1", "1"])
    assert [step["extras"]["rewards"] for step in env.state["trajectory"]] == [{0: 0.5, 1: 0.25}, {0: 1.25, 1: -0.75}]
    assert env.state["rewards"] == {0: 1.75, 1: -0.5}
    alone = NimEnv(sticks=4, opponents="self")
    play(alone, ["1", "2", "1"])
    told = [(step["extras"]["player"], step["extras"]["rewards"]) for step in alone.state["trajectory"]]
    assert told == [(0, {0: 0.0, 1: 0.0}), (1, {0: 0.0, 1: 0.0}), (0, {0: 1.0, 1: -1.0})]


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("opponents", ["random", "self"])
async def test_rollouts_ask_the_model_once_a_move_and_end_as_steps_do(opponents: str, blocking: bool) -> None:
    env = NimEnv(sticks=9, opponents=opponents, system_prompt="Win.", blocking=blocking)
    answers: list[Any] = []
    observation, info = await env.areset(options={"example_id": 5})
    agent = vfgym.RandomAgent(seed=1).for_episode(env)
    over = False
    while not over:
        answers.append(agent(observation, info))
        observation, _, over, _, info = await env.astep(answers[-1])
    client = ScriptedClient(answers)
    state = await env.rollout({"prompt": [], "example_id": 5, "seed": 5}, client, "scripted")
    await env.rubric.score_rollout(state)
    stepped = env.state
    for key in ("prompt", "completion", "reward", "metrics", "stop_condition", "rewards"):
        assert state[key] == stepped[key], key
    assert (len(state["trajectory"]), {*state["rewards"].values()}) == (len(answers), {1.0, -1.0})
    await env.aclose()


@pytest.mark.parametrize("opponents", ["random", "self"])
def test_it_keeps_every_promise(opponents: str) -> None:
    checks = check_environment(lambda: NimEnv(num_players=3, opponents=opponents))
    assert [check for check in checks if not check.passed] == []
    check_env(NimEnv(opponents=opponents), skip_render_check=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seat": 2}, "none of the 2 seats"),
        ({"seat": -1}, "from 0"),
        ({"seat": "first"}, "from 0"),
        ({"opponents": "nobody"}, "no agent 'nobody'"),
        ({"opponents": {2: "random"}}, "names no agent for 1"),
        ({"opponents": {1: "random", 2: "random"}}, "agents for 2, who do not play; the players are 0, 1"),
        ({"opponents": {"1": "random"}, "seat": "random"}, "names no agent for 0"),
        ({"opponents": {1: "self"}}, "every seat"),
        ({"opponents": "self", "history": 1}, "self-play"),
        ({"opponents": "oracle"}, "oracle cannot play"),
    ],
)
def test_what_cannot_work_is_said(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        NimEnv(**arguments).reset(seed=0)
    for make in (vfgym.TextArenaEnv, vfgym.PettingZooEnv) if arguments == {"seat": 2} else ():  # which know how many play
        with pytest.raises(ConfigurationError, match="seat 7"):
            make("TicTacToe-v0" if make is vfgym.TextArenaEnv else "classic/tictactoe_v3", seat=7)


@pytest.mark.parametrize("opponents", ["random", "self"])
def test_everybodys_rewards_are_told_however_the_episode_ends(opponents: str) -> None:
    env = NimEnv(sticks=30, opponents=opponents, max_turns=2)
    env.reset(seed=0)
    env.step("1")
    _, _, _, truncated, info = env.step("1")
    # The player is the one whose conversation the last observation is.
    assert (truncated, info["rewards"], info["player"], "legal_actions" in info) == (True, {0: 0.0, 1: 0.0}, 0, False)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, {0: None, 1: "random", 2: "random"}),
        ({"opponents": "self"}, {0: None, 1: None, 2: None}),
        ({"opponents": {0: takes_one, "2": "random"}, "seat": 1}, {0: "takes_one", 1: None, 2: "random"}),
    ],
)
def test_who_plays_is_named_by_its_agent(options: dict[str, Any], names: dict[int, str | None]) -> None:
    env = NimEnv(num_players=3, **options)
    env.reset(seed=0)
    assert env.who_plays(env.state) == names
