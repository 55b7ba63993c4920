"""`check_environment` plays and scores what an environment was made of beside it, and reports what differs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

import vfgym
from tests.wrappers.games.nim import Nim, NimEnv
from vfgym.codecs import ActionNotFound
from vfgym.codecs.discrete import DiscreteCodec
from vfgym.messages import AssistantMessage, Message, content_text
from vfgym.state import State
from vfgym.testing import check_environment
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.turn_based import Played, Player
from vfgym.wrappers.games.turns import Turn
from vfgym.wrappers.gymnasium.game import GymnasiumGame
from vfgym.wrappers.pettingzoo import PettingZooGame
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.textarena import TextArenaGame
from vfgym.wrappers.textarena.env import TextArenaEnv

WORDS, TEXT, TOOL = (
    "reads each action of its game as it writes it",
    "is its game again when turned back with to_gym, by text",
    "is its game again when turned back with to_gym, by tool call",
)
TABLE, SELF_PLAY, OWN_MOVES, OWN_NUMBERS = (
    "tells and pays what the table does for the same moves",
    "tells and pays the same in self-play",
    "takes the moves that it samples and those that it calls legal",
    "draws from no random numbers but its own",
)
TEXTARENA = "is TextArena's own game again, with to_textarena too"
PETTINGZOO = "is PettingZoo's own game again, with to_pettingzoo too"
SCORE = "pays what the dataset's own scorer gives"
DATASET = "is its dataset again when turned back with to_reasoning_gym"
ROUND_TRIPS = {WORDS, TEXT, TOOL, TABLE, SELF_PLAY, OWN_MOVES, OWN_NUMBERS, TEXTARENA, PETTINGZOO, SCORE, DATASET}


def kept(env: Any) -> dict[str, str]:
    """Return the round trips of an environment that keeps all promises, with what the checks say of them."""
    checks = check_environment(env)
    assert [check for check in checks if not check.passed] == []
    return {check.promise: check.detail for check in checks if check.promise in ROUND_TRIPS}


def broken(env: Any) -> dict[str, str]:
    """Return the promises that do not hold, with what the checks say."""
    return {check.promise: check.detail for check in check_environment(env) if not check.passed}


def nim_at(table: type[Nim]) -> Callable[[], NimEnv]:
    """Return an environment whose table is of some kind."""

    class TableEnv(NimEnv):
        def open_table(self) -> Nim:
            return table()

    return TableEnv


# Games of Gymnasium


def cartpole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1")


@pytest.mark.parametrize("env_id", ["gymnasium/CartPole-v1", "gymnasium/Taxi-v4", "gymnasium/Pendulum-v1", "gymnasium/Blackjack-v1"])
def test_a_game_of_gymnasium_is_the_game_again(env_id: str) -> None:
    assert kept(env_id) == {WORDS: "100 samples", TEXT: "100 moves", TOOL: "100 moves"}


class Altered(GymnasiumGame):
    def __init__(self, change: Callable[[Turn, State], None], **kwargs: Any) -> None:
        super().__init__(cartpole, name="CartPole", **kwargs)
        self.change = change

    def make_move(self, game: Any, message: Message, state: State) -> Turn:
        turn = super().make_move(game, message, state)
        self.change(turn, state)
        return turn


def pays_more(turn: Turn, state: State) -> None:
    turn.reward += 0.25


def rounds(turn: Turn, state: State) -> None:
    state["observation"] = np.round(state["observation"], 5)


def widens(turn: Turn, state: State) -> None:
    state["observation"] = state["observation"].astype(np.float64)


def goes_on(turn: Turn, state: State) -> None:
    turn.terminated = False


def tells_more(turn: Turn, state: State) -> None:
    state["game_info"] = {**state["game_info"], "hint": "left"}


@pytest.mark.filterwarnings("ignore:.*even though this environment has already returned terminated:UserWarning")
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (pays_more, "the game's reward of move 1"),
        (rounds, "the observation of move 1"),
        (widens, "the observation of move 1"),
        (goes_on, "terminated and truncated of move"),
        (tells_more, "the info of move 1"),
    ],
)
def test_a_game_that_is_not_the_same_any_more_is_reported(change: Any, what: str) -> None:
    failed = broken(lambda: Altered(change))
    assert list(failed) == [TEXT]
    assert what in failed[TEXT]
    failed = broken(lambda: Altered(change, as_tool=True))
    assert list(failed) == [TEXT, TOOL]
    assert what in failed[TOOL]


class MirroredText(DiscreteCodec):
    def encode(self, action: Any) -> str:
        return self.names[-1 - int(action)]


class MirroredData(DiscreteCodec):
    def from_json(self, data: Any) -> Any:
        return self.space.n - 1 - super().from_json(data)


@pytest.mark.parametrize("codec", [MirroredText, MirroredData])
def test_a_codec_that_reads_another_action_than_it_wrote_is_reported(codec: type[DiscreteCodec]) -> None:
    def make() -> vfgym.ChatEnv:
        env: Any = vfgym.to_chat("FrozenLake-v1")
        env.codec = codec(env.codec.space, env.codec.names)
        return env

    assert "which is read as" in broken(make)[WORDS]


# Games for several players


@pytest.mark.parametrize("options", [{}, {"num_players": 3, "seat": "random"}, {"opponents": "self"}])
def test_a_game_for_several_players_is_its_table(options: dict[str, Any]) -> None:
    details = kept(lambda: NimEnv(**options))
    expected = [TABLE, OWN_MOVES, OWN_NUMBERS] if options.get("opponents") else [TABLE, SELF_PLAY, OWN_MOVES, OWN_NUMBERS]
    assert list(details) == expected
    assert details[TABLE].endswith(f"moves of {options.get('num_players', 2)} player(s)")


class Formed(NimEnv):
    """Nim whose moves stand in brackets, but not those that `message_of` writes."""

    def move_of(self, message: Message) -> Message:
        text = content_text(message["content"])
        if not text.startswith("["):
            raise ActionNotFound("Put your move into brackets.")
        return AssistantMessage(text.strip("[]"))


def test_moves_that_a_table_does_not_take_itself_are_reported() -> None:
    class Guessing(Nim):
        def sample_move(self, player: Player, rng: np.random.Generator) -> Message:
            return AssistantMessage("77")

    class Lying(Nim):
        def legal_moves(self, player: Player) -> list[str]:
            return ["1", "77"]

    assert broken(nim_at(Guessing))[OWN_MOVES] == "at its turn, player 0 answers '77', which sample_move gave: the table does not take it"
    assert broken(nim_at(Lying))[OWN_MOVES] == "at its turn, player 1 answers '77', which legal_moves gave: the table does not take it"
    assert "move_of finds no move in what message_of made of it (Put your move into brackets.)" in broken(Formed)[OWN_MOVES]


def test_the_moves_of_a_table_that_does_not_know_what_is_legal_may_be_refused() -> None:
    class Unsure(Nim):
        def legal_moves(self, player: Player) -> None:  # type: ignore[override]
            return None

        def sample_move(self, player: Player, rng: np.random.Generator) -> Message:
            return AssistantMessage(rng.choice(["1", "77"]))

    assert kept(nim_at(Unsure))[OWN_MOVES] == "not compared: the table does not know which moves are legal"


def test_an_environment_that_pays_its_seat_otherwise_is_reported() -> None:
    class Generous(NimEnv):
        def _take(self, turn: Turn, state: State) -> None:
            turn.reward += 1.0
            super()._take(turn, state)

    failed = broken(Generous)
    assert list(failed) == [TABLE]
    assert "the steps paid the policy's seat" in failed[TABLE]


@pytest.mark.parametrize("draw", [random.random, np.random.rand])
def test_a_table_that_draws_from_the_process_is_reported(draw: Callable[[], float]) -> None:
    class Careless(Nim):
        def move(self, message: Message) -> Played:
            draw()
            return super().move(message)

    assert broken(nim_at(Careless)) == {OWN_NUMBERS: "the random numbers of the process were drawn from, or seeded"}


def test_tables_that_disturb_each_other_are_reported() -> None:
    class Shared(Nim):
        left = [0]
        sticks = property(lambda self: self.left[0], lambda self, sticks: self.left.__setitem__(0, sticks))

    assert OWN_NUMBERS in broken(nim_at(Shared))


# Games of TextArena


@pytest.mark.parametrize(("game", "players"), [("TicTacToe-v0", 2), ("Poker-v0-train", 2), ("GuessTheNumber-v0", 1), ("Briscola-v0", 2)])
def test_a_game_of_textarena_is_textarenas_own(game: str, players: int) -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    details = kept(lambda: TextArenaEnv(game))
    assert list(details) == [TABLE, SELF_PLAY, OWN_MOVES, OWN_NUMBERS, TEXTARENA]
    assert details[TEXTARENA].endswith(f"moves of {players} player(s)")


class DoubleStakes(TextArenaGame):
    def move(self, message: Message) -> Played:
        played = super().move(message)
        return Played({player: 2.0 * reward for player, reward in played.rewards.items()}, played.is_valid)


def test_a_table_that_is_not_textarenas_game_is_reported() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")

    class DoubleStakesEnv(TextArenaEnv):
        def open_table(self) -> TextArenaGame:
            return DoubleStakes(self.game)

    failed = broken(lambda: DoubleStakesEnv("TicTacToe-v0"))
    assert list(failed) == [TEXTARENA]
    assert "the table's rewards after" in failed[TEXTARENA]


# Games of PettingZoo


class TicTacToe(MultiplayerEnv):
    def __init__(self, table: type[PettingZooGame]) -> None:
        self.table = table
        super().__init__()

    def open_table(self) -> PettingZooGame:
        return self.table("classic/tictactoe_v3")


class Sore(PettingZooGame):
    def move(self, message: Message) -> Played:
        played = super().move(message)
        return Played({player: 3.0 * min(reward, 0.0) for player, reward in played.rewards.items()}, played.is_valid)


def test_a_table_that_is_not_pettingzoos_game_is_reported() -> None:
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    failed = broken(lambda: TicTacToe(Sore))
    assert list(failed) == [PETTINGZOO]
    assert "the rewards at move" in failed[PETTINGZOO]


# Datasets of reasoning-gym


def legs(kind: type[ReasoningGymEnv] = ReasoningGymEnv, **arguments: Any) -> Callable[[], ReasoningGymEnv]:
    pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")
    return lambda: kind(**{"gym": "leg_counting", "num_train_examples": 4, "num_eval_examples": 2, **arguments})


@pytest.mark.parametrize("gym", ["leg_counting", "graph_color", ["chain_sum", "boxnet"]])
def test_a_dataset_of_reasoning_gym_is_scored_by_its_own_scorer(gym: Any) -> None:
    assert kept(legs(gym=gym)) == {SCORE: "answers to 3 task(s)", DATASET: "3 entries"}


def test_another_score_than_the_datasets_is_reported() -> None:
    class Lenient(ReasoningGymEnv):
        def check_answer_reward_func(self, completion: Any, info: Any) -> float:
            return math.sqrt(super().check_answer_reward_func(completion, info))

    class Strict(ReasoningGymEnv):
        def check_answer_reward_func(self, completion: Any, info: Any) -> float:
            return math.floor(super().check_answer_reward_func(completion, info))

    for kind in (Lenient, Strict):
        failed = broken(legs(kind, gym="graph_color"))
        assert list(failed) == [SCORE]
        assert "and the dataset's scorer gives 0.01" in failed[SCORE]


def test_entries_that_were_changed_are_reported() -> None:
    class Polite(ReasoningGymEnv):
        def setup_state(self, state: State) -> Any:
            self.items.entry(state["example_id"])["question"] = "Please count."
            return super().setup_state(state)

    def make() -> ReasoningGymEnv:
        env = legs(Polite)()
        env.reset(options={"example_id": 0})
        return env

    failed = broken(make)
    assert DATASET in failed
    assert "the entry number 0 should be" in failed[DATASET]
