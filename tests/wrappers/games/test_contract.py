"""What games promise whoever wraps, plays or converts them, in the corners where wrapping, histories and opponents meet."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

import verifiers_compat as vf
import vfgym
from tests.wrappers.games.nim import Nim, NimEnv
from vfgym.codecs import text_renderer
from vfgym.errors import ConfigurationError, Error, InvalidAction, ResetNeeded
from vfgym.messages import AssistantMessage, ToolCall, content_text
from vfgym.testing import ScriptedClient

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its tests make their environments in a way that it deprecates
    from pettingzoo.test import api_test


class Counter(gym.Env[Any, Any]):
    """Counts the steps: the observation is how many there were."""

    def __init__(self, info: Mapping[str, Any] | None = None, action_space: gym.Space[Any] | None = None) -> None:
        self.observation_space = gym.spaces.Discrete(1000)
        self.action_space = gym.spaces.Discrete(3) if action_space is None else action_space
        self.info = {} if info is None else info
        self.count = 0
        self.played: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.count, self.played = 0, []
        return self.count, self.info

    def step(self, action: Any) -> Any:
        self.count += 1
        self.played.append(action)
        return 100 + self.count, 1.0, self.count == 20, False, self.info


def calls(*actions: int) -> AssistantMessage:
    """Return a message that calls the tool once for each action."""
    return AssistantMessage(None, tool_calls=[ToolCall(f"call_{n}", "act", f'{{"action": {action}}}') for n, action in enumerate(actions)])


def text_of(conversation: list[Any]) -> str:
    """Return all that stands in a conversation."""
    return "\n".join(content_text(message["content"] or "") for message in conversation)


# A limited history


@pytest.mark.parametrize("history", [0, 1, 2])
def test_a_limited_history_shows_how_the_game_stands_after_answers_that_name_no_action(history: int) -> None:
    env = vfgym.to_chat(Counter, history=history)
    env.reset(seed=0)
    env.step("1")
    for _ in range(history + 2):
        shown, *_ = env.step("I do not know.")
    assert "101" in text_of(shown)
    assert "names no action" in content_text(shown[-1]["content"])


def test_a_limited_history_shows_the_board_after_an_illegal_move() -> None:
    env = vfgym.PettingZooEnv("classic/tictactoe_v3", history=0, opponents=lambda conversation, info: info["legal_actions"][0])
    env.reset(seed=0)
    env.step("<action>4</action>")
    shown, *_ = env.step("<action>4</action>")
    assert "You cannot play 4 now." in text_of(shown)
    assert "| X |" in text_of(shown)


@pytest.mark.parametrize(
    "make", [lambda: vfgym.PettingZooEnv("classic/tictactoe_v3", history=0), lambda: vfgym.TextArenaEnv("ConnectFour-v0", history=0)]
)
def test_a_limited_history_forgets_the_first_board(make: Any) -> None:
    """The rules stay, and not the board as it was before the first move."""
    env = make()
    conversation, info = env.reset(seed=0)
    first_board = {"classic/tictactoe_v3": " 0 | 3 | 6", "ConnectFour-v0": "\n".join([". . . . . . ."] * 6)}[env.game]
    assert first_board in text_of(conversation)
    shown, *_ = env.step("<action>0</action>" if isinstance(env, vfgym.PettingZooEnv) else info["legal_actions"][0])
    assert first_board not in text_of(shown)


def test_a_tools_result_that_only_points_at_an_image_does_not_become_part_of_the_prompt() -> None:
    env = vfgym.to_chat("CartPole-v1", observe="image", as_tool=True, history=0)
    env.reset(seed=0)
    shown, *_ = env.step(calls(1))
    env.close()
    assert "See below." not in text_of(shown)


# Answers that name no action


@pytest.mark.parametrize("options", [{"on_invalid": "noop", "noop_action": 0}, {"on_invalid": "random"}])
def test_whoever_calls_twice_is_shown_what_was_played_instead(options: dict[str, Any]) -> None:
    env = vfgym.to_chat(Counter, as_tool=True, **options)
    env.reset(seed=0)
    conversation, *_ = env.step(calls(1, 2))
    first, second = conversation[-2:]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("call_0", "call_1")
    assert "101" in first["content"]


@pytest.mark.parametrize("mask", [[0, 0, 1], (0, 0, 1), np.array([0, 0, 1]), np.array([False, False, True])], ids=str)
def test_a_random_action_keeps_to_any_mask_that_legal_actions_are_read_from(mask: Any) -> None:
    env = vfgym.to_chat(lambda: Counter({"action_mask": mask}), on_invalid="random")
    _, info = env.reset(seed=0)
    assert info["legal_actions"] == ["2"]
    env.step("I do not know.")
    assert env.state is not None
    assert env.state.session.game.played == [2]


def test_a_random_action_keeps_to_the_masks_of_several_choices() -> None:
    masks = (np.array([0, 1], np.int8), np.array([1, 0, 0], np.int8))
    env = vfgym.to_chat(lambda: Counter({"action_mask": masks}, gym.spaces.MultiDiscrete([2, 3])), on_invalid="random")
    for seed in range(10):
        env.reset(seed=seed)
        env.step("I do not know.")
        assert env.state is not None
        np.testing.assert_equal(env.state.session.game.played, [[1, 0]])


def test_what_is_played_at_random_is_the_same_in_steps_and_in_rollouts() -> None:
    answers = ["I do not know."] * 8

    def game() -> Any:
        return vfgym.to_chat(Counter, on_invalid="random", max_turns=len(answers))

    env = game()
    env.reset(seed=3)
    for answer in answers:
        env.step(answer)
    assert env.state is not None
    rolled_out = asyncio.run(vf.as_environment(game()).rollout({"prompt": [], "example_id": 3, "seed": 3}, ScriptedClient(answers), "m"))
    assert text_of(rolled_out["completion"]) == text_of(env.state["completion"])


# What a game says beside its observations


def test_what_a_turn_was_told_does_not_change_when_the_game_reuses_its_info() -> None:
    class Reusing(Counter):
        def step(self, action: Any) -> Any:
            observation, *rest, _ = super().step(action)
            self.info = getattr(self, "kept", {})
            self.kept = self.info
            self.info["count"] = self.count
            return observation, *rest, self.info

    env = vfgym.to_chat(Reusing)
    env.reset(seed=0)
    for _ in range(3):
        env.step("1")
    assert env.state is not None
    assert [step["extras"]["game_info"]["count"] for step in env.state["trajectory"]] == [1, 2, 3]


def test_a_game_may_tell_what_cannot_be_copied() -> None:
    lock = threading.Lock()
    env = vfgym.to_chat(lambda: Counter({"lock": lock, "lives": 3}))
    _, info = env.reset(seed=0)
    assert info["game_info"]["lives"] == 3
    _, reward, *_ = env.step("1")
    assert reward == 1.0


@pytest.mark.parametrize(
    ("space", "observation"),
    [
        (gym.spaces.Tuple((gym.spaces.Discrete(2),)), None),
        (gym.spaces.Tuple((gym.spaces.Discrete(2),)), 3),
        (gym.spaces.OneOf((gym.spaces.Discrete(2), gym.spaces.Discrete(3))), 1),
        (gym.spaces.OneOf((gym.spaces.Discrete(2),)), (7, 1)),
        (gym.spaces.Discrete(3), np.array(2)),
        (gym.spaces.Discrete(3), np.array([2])),
    ],
)
def test_an_observation_outside_its_space_is_rendered_by_what_it_is(space: Any, observation: Any) -> None:
    text = text_renderer(space, ["a", "b", "c"])(observation)
    assert str(np.asarray(observation).ravel()[-1]) in text


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"history": True},
        {"max_invalid_moves": "3"},
        {"max_invalid_moves": 1.5},
        {"invalid_reward": None},
        {"invalid_reward": "low"},
        {"obs_to_text": 5},
        {"prompt": 5},
        {"rules": 5},
    ],
    ids=str,
)
def test_an_option_of_the_wrong_kind_is_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigurationError, match=name):
        vfgym.to_chat("CartPole-v1", **options)


def test_a_chat_environment_is_not_made_a_chat_environment_again() -> None:
    with pytest.raises(ConfigurationError, match="chat environment"):
        vfgym.to_chat("gymnasium/CartPole-v1")


def test_an_id_may_name_the_module_that_registers_it() -> None:
    conversation, _ = vfgym.to_chat("gymnasium:CartPole-v1").reset(seed=0)
    assert "CartPole-v1" in text_of(conversation)


@pytest.mark.parametrize(
    "make", [lambda: vfgym.TextArenaEnv("TicTacToe-v0", seat=7), lambda: vfgym.PettingZooEnv("classic/tictactoe_v3", seat=7)]
)
def test_a_seat_that_the_game_does_not_have_is_refused_when_the_environment_is_made(make: Any) -> None:
    with pytest.raises(ConfigurationError, match="seat 7"):
        make()


def test_an_opponent_for_nobody_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="7"):
        NimEnv(opponents={1: "random", 7: "random"}).reset(seed=0)


# Opponents


class FindsNoMove:
    """An opponent that never finds a move. It gives up, so that a test that fails ends."""

    def __init__(self, most: int) -> None:
        self.asked = 0
        self.most = most

    def __call__(self, conversation: list[Any], info: dict[str, Any]) -> str:
        self.asked += 1
        if self.asked > self.most:
            raise AssertionError(f"asked {self.asked} times")
        return "I do not know."


@pytest.mark.parametrize("game", ["nim", "pettingzoo"])
def test_an_opponent_that_finds_no_move_is_not_asked_for_ever(game: str) -> None:
    opponent = FindsNoMove(most=100)
    env = NimEnv(opponents=opponent) if game == "nim" else vfgym.PettingZooEnv("classic/tictactoe_v3", opponents=opponent)
    _, info = env.reset(seed=0)
    _, _, terminated, truncated, _ = env.step(info["legal_actions"][0])
    assert terminated or truncated


def test_an_opponents_answer_that_is_no_message_is_the_opponents_error() -> None:
    env = NimEnv(opponents=lambda conversation, info: 42)
    env.reset(seed=0)
    *_, info = env.step("1")
    assert "opponent" in info["error"]
    assert "InvalidAction" not in info["error"]  # that is what the policy's own answers are told


@pytest.mark.parametrize("opponents", ["random", vfgym.ScriptedAgent(["1", "2", "3", "1", "2", "3"])], ids=["random", "scripted"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"])
def test_the_opponents_of_a_copy_play_on_as_those_of_the_original(opponents: Any, copied: Any) -> None:
    for seed in range(8):
        env = NimEnv(sticks=30, opponents=opponents)
        env.reset(seed=seed)
        env.step("1")
        twin = copied(env)
        for _ in range(3):
            assert twin.step("1")[0] == env.step("1")[0]


class OnOneThread(Nim):
    """A table that notes on which threads it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def _note(self) -> None:
        self.threads.add(threading.get_ident())

    def observe(self, player: Any) -> str:
        self._note()
        return super().observe(player)

    def move(self, message: Any) -> Any:
        self._note()
        return super().move(message)

    def legal_moves(self, player: Any) -> list[str]:
        self._note()
        return super().legal_moves(player)

    def info(self, player: Any) -> dict[str, Any]:
        self._note()
        return super().info(player)

    def sample_move(self, player: Any, rng: np.random.Generator) -> Any:
        self._note()
        return super().sample_move(player, rng)

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        self._note()
        super().reset(seed, options)


@pytest.mark.parametrize("tell_legal_actions", [True, False])
@pytest.mark.parametrize("opponents", ["random", "self"])
def test_a_blocking_table_in_an_async_run_is_always_called_on_its_own_thread(opponents: str, tell_legal_actions: bool) -> None:
    tables: list[OnOneThread] = []

    class Tables(NimEnv):
        def open_table(self) -> Nim:
            tables.append(OnOneThread())
            return tables[-1]

    env = Tables(blocking=True, opponents=opponents, tell_legal_actions=tell_legal_actions)
    results = vfgym.evaluate(env, "random", num_examples=1, progress=False)
    assert results["outputs"][0]["stop_condition"] == "game_over"
    (table,) = tables
    assert len(table.threads) == 1
    assert threading.get_ident() not in table.threads


# Self-play


def test_turns_of_self_play_are_told_of_the_player_who_made_them() -> None:
    env = vfgym.TextArenaEnv("TicTacToe-v0", opponents="self")
    env.reset(seed=0)
    for move in ("[0]", "[1]", "[2]"):
        env.step(move)
    assert env.state is not None
    roles = [(step["extras"]["player"], step["extras"]["game_info"]["role"]) for step in env.state["trajectory"]]
    assert roles == [(0, "Player 0"), (1, "Player 1"), (0, "Player 0")]


@pytest.mark.parametrize("opponents", ["random", "self"])
def test_everybodys_rewards_are_told_however_the_episode_ends(opponents: str) -> None:
    env = NimEnv(sticks=30, opponents=opponents, max_turns=2)
    env.reset(seed=0)
    env.step("1")
    _, _, _, truncated, info = env.step("1")
    assert truncated
    assert info["rewards"] == {0: 0.0, 1: 0.0}
    assert info["player"] == 0  # whose conversation the last observation is
    assert "legal_actions" not in info


@pytest.mark.parametrize(
    "make",
    [lambda: vfgym.to_chat(Counter, history=0, render_mode="human"), lambda: NimEnv(sticks=30, opponents="self", render_mode="human")],
)
def test_a_human_sees_every_turn(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    env = make()
    env.reset(seed=0)
    for _ in range(3):
        capsys.readouterr()
        shown, *_ = env.step("1")
        assert content_text(shown[-1]["content"]).rpartition("\n")[2] in capsys.readouterr().out


# Converted


def test_a_converted_game_with_a_limited_history_tells_its_one_player_what_happened() -> None:
    game = vfgym.to_textarena(vfgym.to_chat(Counter, history=0))
    game.reset(num_players=1, seed=0)
    game.get_observation()
    for count in (1, 2, 3):
        game.step("1")
        _, told = game.get_observation()
        assert str(100 + count) in "\n".join(text for _, text, _ in told)


def test_a_textarena_game_that_has_not_begun_says_so() -> None:
    game = vfgym.to_textarena("textarena/TicTacToe-v0")
    with pytest.raises(ResetNeeded):
        game.step("[4]")
    game.close()


@pytest.mark.parametrize("convert", [vfgym.to_textarena, vfgym.to_gym])
def test_what_is_no_environment_is_refused(convert: Any) -> None:
    with pytest.raises(Error, match="int"):
        convert(5)


@pytest.mark.parametrize(
    "make", [lambda: vfgym.to_chat("CartPole-v1"), lambda: vfgym.TextArenaEnv("TicTacToe-v0")], ids=["CartPole", "TicTacToe"]
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # it would rather have arrays
def test_pettingzoos_own_test_passes_for_what_any_chat_environment_becomes(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    api_test(vfgym.to_pettingzoo(make()), num_cycles=20)


@pytest.mark.parametrize("make", [NimEnv, lambda: vfgym.TextArenaEnv("TicTacToe-v0")], ids=["Nim", "TicTacToe"])
def test_a_table_where_nothing_has_begun_asks_for_reset(make: Any) -> None:
    env = vfgym.to_pettingzoo(make())
    with pytest.raises(ResetNeeded):
        env.last()
    with pytest.raises(ResetNeeded):
        env.observe("player_0")


@pytest.mark.parametrize("options", [{}, {"on_invalid": "random"}, {"on_invalid": "noop", "noop_action": [0.0]}], ids=str)
def test_an_action_outside_the_space_is_refused_and_not_replaced_on_the_way_back(options: dict[str, Any]) -> None:
    """The raw game clips such an action; what must not happen is that another one, or none, is played without a word."""
    game = vfgym.to_gym(vfgym.to_chat("Pendulum-v1", **options))
    bare = gym.make("Pendulum-v1").unwrapped
    game.reset(seed=0)
    bare.reset(seed=0)
    with pytest.raises(InvalidAction):
        game.step(np.array([5.0], np.float32))
    action = np.array([1.0], np.float32)
    np.testing.assert_equal(game.step(action)[0], bare.step(action)[0])


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("gymnasium/CartPole-v1", {"action_names": {0: "west", 1: "east"}}),
        ("textarena/TicTacToe-v0", {"opponents": {1: "random"}}),
    ],
)
def test_mappings_by_number_survive_a_spec_as_json(env_id: str, options: dict[str, Any]) -> None:
    """JSON has no numbers as keys."""
    env = gym.make(env_id, **options)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))  # type: ignore[union-attr]
    assert again.reset(seed=0)[0] == env.reset(seed=0)[0]
