"""`PettingZooEnv`: one seat at a PettingZoo game as a chat environment."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from tests.wrappers.pettingzoo.tables import Elimination, Guessing, connect_four, cut_off, factory
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.testing import check_environment
from vfgym.wrappers.pettingzoo import PettingZooEnv, PettingZooGame
from vfgym.wrappers.pettingzoo import env as env_module

# PettingZoo's spaces of no-limit hold'em have more digits than their dtype.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")


@pytest.mark.parametrize(("flag", "ends"), [("terminations", (True, False)), ("truncations", (False, True)), ("none", (True, False))])
def test_an_environment_that_empties_its_agents_is_over(flag: str, ends: tuple[bool, bool]) -> None:
    """Itself, without a last step for each of them."""

    class Emptied(Elimination):
        def observe(self, agent: str) -> Any:
            return np.zeros(2, np.float32)

        def step(self, action: Any) -> None:
            super().step(action)
            if self.steps == 2:
                self.terminations = dict.fromkeys(self.possible_agents, flag == "terminations")
                self.truncations = dict.fromkeys(self.possible_agents, flag == "truncations")
                self.agents = []

    env = PettingZooEnv(lambda: Emptied(longest=2), opponents=lambda observation, info: "[0, 0]")
    env.reset(seed=0)
    outcome = env.step("[0, 0]")
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (*ends, "game_over" if ends[0] else "game_truncated")


def test_what_is_printed_and_what_close_raises_costs_no_game(caplog: pytest.LogCaptureFixture) -> None:
    def close() -> None:
        raise RuntimeError("already closed")

    def make() -> Elimination:
        made = Elimination()
        vars(made).update(render_mode="ansi", render=lambda: print("a drawing"), close=close)
        return made

    env = vfgym.to_chat(make)
    assert str(env.reset(seed=0)[0][-1].content).endswith("[0, 0]")
    results = vfgym.evaluate(env, agent=lambda observation, info: "[1, 2]", num_examples=1)
    assert [row["error"] for row in results["outputs"]] == [None]
    env.close()
    assert {message.partition(" could not be closed: ")[2] for message in caplog.messages} == {"RuntimeError('already closed')"}


def test_an_environment_that_is_there_is_refused_with_what_to_give() -> None:
    with pytest.raises(ConfigurationError, match="Guessing is an environment of PettingZoo, of which to_chat has to make more"):
        vfgym.to_chat(Guessing())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="give it its id, or a function that makes it"):
        vfgym.to_chat(factory("tictactoe_v3")())


def test_arguments_of_the_game_are_told_from_unknown_ones() -> None:
    with pytest.raises(UnknownArgument, match=r"'board_size', which is one of the game: give game_options=\{'board_size': 5\}"):
        vfgym.to_chat("classic/go_v5", board_size=5)
    with pytest.raises(UnknownArgument, match=r"no argument 'max_turn'\. Did you mean `max_turns`"):
        vfgym.to_chat("classic/go_v5", max_turn=5)


@pytest.mark.parametrize("name", ["leduc_holdem_v4", "rps_v2", pytest.param("chess_v6", marks=pytest.mark.exhaustive)])
def test_a_seat_is_all_that_an_environment_must_be(name: str) -> None:
    """Gymnasium's checks, seeds, copies in the middle of an episode, and the rest of what ``vfgym check`` looks at."""
    factory(name)
    checks = check_environment(functools.partial(PettingZooEnv, f"classic/{name}", max_turns=8))
    assert not [check for check in checks if not check.passed]


@pytest.mark.parametrize("env_id", [env_id for env_id, spec in gym.registry.items() if spec.namespace == "pettingzoo"])
def test_an_environment_has_the_name_under_which_it_is_registered(env_id: str) -> None:
    factory(gym.spec(env_id).kwargs["game"])
    assert gym.make(env_id).unwrapped.env_id == env_id


def test_a_seat_ends_as_its_player_does() -> None:
    """Red is out by the rules at its first move, and the limit of the environment ends the game of the others."""
    moves = {"red_0": "[2, 0]", "green_0": "[0, 0]", "blue_0": "[0, 1]"}
    for seat, (player, ends) in enumerate({"red_0": (True, False), "green_0": (False, True), "blue_0": (False, True)}.items()):
        others = {other: lambda observation, info, move=move: move for other, move in moves.items() if other != player}
        env = PettingZooEnv(functools.partial(Elimination, longest=4), seat=seat, opponents=others)
        env.reset(seed=0)
        ended = [False]
        while not any(ended):
            _, _, *ended, info = env.step(moves[player])
        assert (tuple(ended), info["stop_condition"]) == (ends, "game_over" if ends[0] else "game_truncated")
        env.close()


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("opponents", ["random", "self"])
async def test_a_sentence_that_was_cut_off_is_no_move(opponents: str, blocking: bool) -> None:
    env = connect_four(opponents=opponents, blocking=blocking)
    await env.areset(seed=0)
    said = "Action: 3"
    first = await env.astep(cut_off(said))
    assert "cut off" in first.observation[-1].content
    second = await env.astep(cut_off(f"<action>3</action> {said}, or rather"))
    assert "cut off" not in second.observation[-1].content
    whole = await env.astep(said)
    assert "names no action" not in whole.observation[-1].content
    await env.aclose()


def test_nobody_wins_by_answers_that_are_no_moves() -> None:
    env = vfgym.to_chat("classic/tictactoe_v3", opponents=lambda observation, info: "I'd play the centre.")
    for output in vfgym.evaluate(env, "random", num_examples=2)["outputs"]:
        assert (output["ending"], output["reward"]) == ("environment_failed", 0.0)
        assert "the opponent at the seat of 'player_2' found no valid move in 10 answers" in output["error"]["error_chain_repr"]
    for policy in (lambda observation, info: "pass", lambda observation, info: "center"):
        results = vfgym.evaluate(vfgym.to_chat("classic/tictactoe_v3"), policy, num_examples=2)
        assert [output["ending"] for output in results["outputs"]] == ["policy_failed"] * 2


def test_a_seat_takes_its_options_and_hands_them_to_its_tables() -> None:
    go = PettingZooEnv("classic/go_v5", game_options={"board_size": 5}, rules="Five by five.", opponents=lambda observation, info: "pass")
    (message,), info = go.reset(seed=0)
    assert ("Five by five." in message.content, len(info["legal_actions"]), go.env_id) == (True, 26, "pettingzoo/go-v5")
    assert go.step("pass")[2:4] == (True, False)
    env = PettingZooEnv("classic/tictactoe_v3", rules="", on_invalid="terminate", invalid_reward=-2, max_moves=0 + 7, opponents="self")
    table = env.open_table()
    assert (table.on_invalid, table.invalid_reward, table.max_moves) == ("terminate", -2.0, 7)
    assert (env.blocking, env.env_id, env.prompt_problems) == (False, "pettingzoo/tictactoe-v3", ())
    own = PettingZooEnv(Elimination, blocking=True, env_id="mine/elimination")
    assert (own.blocking, own.env_id) == (True, "mine/elimination")
    env.reset(seed=0)
    assert env.step("nowhere")[1:4] == (-2.0, True, False)


def test_a_table_is_closed_that_only_showed_what_is_wrong() -> None:
    closed: list[Any] = []

    class Closing(Elimination):
        def close(self) -> None:
            closed.append(self)

    PettingZooEnv(Closing)
    assert len(closed) == 1
    with pytest.raises(ConfigurationError, match="give obs_to_text"):
        PettingZooEnv(lambda: Closing(size=1000))
    assert len(closed) == 2


def test_bounds_of_rewards_are_known_of_classic_games_alone() -> None:
    factory("tictactoe_v3")
    assert PettingZooEnv("classic/tictactoe_v3").reward_range == (-1.0, 1.0)
    assert PettingZooEnv("classic/tictactoe_v3", invalid_reward=-1.0, max_moves=9).failure_reward == -10.0
    assert PettingZooEnv(Elimination).reward_range is None


def test_all_options_reach_each_table(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def make(game: Any, **options: Any) -> PettingZooGame:
        made.append((game, options))
        return PettingZooGame(Elimination)

    monkeypatch.setattr(env_module, "PettingZooGame", make)
    usual = {
        "game_options": None,
        "action_names": None,
        "obs_to_text": None,
        "rules": None,
        "on_invalid": "feedback",
        "invalid_reward": 0.0,
    }
    given = {"game_options": {"a": 0}, "action_names": {}, "obs_to_text": str, "rules": "", "on_invalid": "random", "invalid_reward": -1.0}
    for options, draws in ((usual, False), ({**given, "max_moves": 7}, True)):
        env = PettingZooEnv("mpe/simple_v30", render_mode="rgb_array" if draws else None, **options)
        assert made == [("mpe/simple_v30", {"max_moves": 1000, **options, "draws": draws})]
        env.open_table()
        assert made[1] == made.pop(0)
        made.clear()
        assert (env.blocking, env.env_id) == (True, "pettingzoo/simple-v30")
    assert PettingZooEnv("classic/go_v5").blocking is False
    assert PettingZooEnv("classic/go_v5", blocking=True, env_id="").env_id == ""
