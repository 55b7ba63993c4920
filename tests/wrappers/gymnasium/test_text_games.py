"""Games of commands without spaces are played by typing: written like TextWorld, TextWorld-Express, ScienceWorld and Jericho."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

import vfgym
from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium.text_games import CommandSpace, TextGame


class Attic:
    """Find the lamp. Written as Jericho's games are: `reset` and `step` of text, and a method `seed`."""

    envStepLimit = 5  # noqa: N815 -- as ScienceWorld has it

    def __init__(self) -> None:
        self.room, self.number = "attic", 0

    def seed(self, seed: int | None = None) -> None:
        self.number = random.Random(seed).randrange(1000)

    def load(self, room: str = "attic") -> None:
        self.room = room

    def reset(self) -> tuple[str, dict[str, Any]]:
        self.moves, self.is_over = 0, False
        return f"\nYou are in the {self.room} (room {self.number}).\n", self._info()

    def step(self, command: str) -> tuple[str, int, bool, dict[str, Any]]:
        self.moves += 1
        found = command == "take lamp"
        self.is_over = found or self.moves > self.envStepLimit
        return ("Taken." if found else f"I don't know how to {command}."), int(found), self.is_over, self._info()

    def _info(self) -> dict[str, Any]:
        return {"moves": self.moves, "valid": ["look", "take lamp", "look"], "taskDesc": "Your task is to find the lamp."}


def test_a_game_is_played_by_typing() -> None:
    """Beyond its own limit it is truncated. Random agents type what is understood."""
    assert vfgym.evaluate(vfgym.to_chat(Attic, rules="Type."), "random", num_examples=3, progress=False)["metadata"]["num_failed"] == 0
    env = vfgym.to_chat(Attic, rules="Type.")
    env.reset(seed=0)
    assert [env.step("wait")[2:4] for _ in range(6)] == [(False, False)] * 5 + [(False, True)]
    observation, info = env.reset(seed=3)
    expected = random.Random(3).randrange(1000)
    goal = "Your task is to find the lamp."
    told = f"{goal}\n\nYou are in the attic (room {expected}).\n\nLegal actions: look, take lamp"
    assert observation[-1].content.endswith(told)
    assert info["legal_actions"] == ["look", "take lamp"]
    observation, reward, terminated, *_ = env.step("<action>open window</action>")
    assert (reward, terminated) == (0.0, False)
    assert observation[-1].content.startswith("I don't know how to open window.")
    assert env.step("take lamp")[1:4] == (1.0, True, False)
    assert observation[-1].content.count(goal) == 0
    talkative = TextGame(Attic())
    talkative.game.reset = lambda: (f"{goal} Go!", {"taskDesc": goal})  # which is not told twice
    assert talkative.reset()[0] == f"{goal} Go!"


def test_options_choose_what_the_game_loads() -> None:
    env = vfgym.to_chat(Attic, rules="Type.")
    observation, _ = env.reset(seed=0, options={"game_options": {"room": "cellar"}})
    assert "You are in the cellar" in observation[-1].content

    class Fixed(Attic):
        load = None  # type: ignore[assignment]

    with pytest.raises(ConfigurationError, match="Fixed takes no options"):
        TextGame(Fixed()).reset(options={"room": "cellar"})


def test_what_returns_no_text_is_refused() -> None:
    class Numbers(Attic):
        def reset(self) -> tuple[Any, dict[str, Any]]:
            return 3, {}

    with pytest.raises(ConfigurationError, match=r"no action_space.*reset\(\) returned no text"):
        vfgym.to_chat(Numbers)


def test_scores_so_far_are_rewards_of_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """TextWorld's `step` returns the score, its loop without infos a state, which tells who has won."""

    class Scoring:
        __module__ = "textworld.core"

        def reset(self) -> dict[str, Any]:
            self.score = 0
            return self._state()

        def step(self, command: str) -> tuple[dict[str, Any], int, bool]:
            self.score += 2
            return self._state(), self.score, self.score == 6

        def _state(self) -> dict[str, Any]:
            return {"feedback": "Well.", "admissible_commands": ["go"], "won": False, "lost": False, "_facts": {object()}}

    game = TextGame(Scoring())
    observation, info = game.reset(seed=0)
    assert (observation, "_facts" in info) == ("Well.", False)
    assert [game.step("go")[1:4] for _ in range(3)] == [(2.0, False, False), (2.0, False, False), (2.0, False, True)]
    assert game.reset()[0] == "Well."
    assert game.step("go")[1] == 2.0


class Told:
    """Tells what it is given, after each command the next."""

    def __init__(self, *infos: dict[str, Any], is_over: bool = False, **attributes: Any) -> None:
        self.infos, self.is_over, self.turn = infos, is_over, 0
        vars(self).update(attributes)

    def reset(self) -> tuple[str, dict[str, Any]]:
        self.turn = 0
        return "Well.", self.infos[0]

    def step(self, command: str) -> tuple[str, float, bool, dict[str, Any]]:
        self.turn += 1
        return "Well.", 0.5, self.is_over, self.infos[self.turn]


@pytest.mark.parametrize("name", ["admissible_commands", "validActions", "valid_actions", "valid"])
@pytest.mark.parametrize("commands", [["look", "go", "look"], ("look", "go"), []])
def test_commands_that_are_understood_stand_in_one_place(name: str, commands: Any) -> None:
    game = TextGame(Told({name: commands, "score": 0}, {name: "look"}))
    assert game.reset()[1] == {name: commands, "score": 0, "admissible_commands": ["look", "go"] if commands else []}
    assert game.step("look")[4] == {name: "look"}


@pytest.mark.parametrize("name", ["objective", "taskDescription", "taskDesc"])
@pytest.mark.parametrize(("goal", "text"), [(" Find it.\n", "Find it.\n\nWell."), ("", "Well."), ("We", "Well."), (None, "Well.")])
def test_a_goal_stands_above_the_first_text_once(name: str, goal: Any, text: str) -> None:
    game = TextGame(Told({name: goal}, {name: goal}))
    assert (game.reset()[0], game.step("look")[0]) == (text, "Well.")
    assert TextGame(Told({"objective": "", "taskDesc": "Go."})).reset()[0] == "Go.\n\nWell."


@pytest.mark.parametrize(
    ("info", "limit", "is_cut_off"),
    [
        *(({name: moves}, 5, moves > 5) for name in ("moves", "numMoves") for moves in (0, 5, 6)),
        ({"moves": 0, "won": False, "lost": False}, 5, False),
        ({"moves": 6}, None, False),
        ({}, 5, False),
        ({"won": False, "lost": False}, 5, True),
        ({"won": False, "lost": False}, None, True),
        ({"won": True, "lost": False}, None, False),
        ({"won": False, "lost": True}, None, False),
        ({"won": False}, None, False),
        ({"lost": False}, None, False),
    ],
)
def test_what_a_limit_ended_is_truncated(info: dict[str, Any], limit: int | None, is_cut_off: bool) -> None:
    for is_over in (True, False):
        game = TextGame(Told({}, info, is_over=is_over, **({} if limit is None else {"envStepLimit": limit})))
        game.reset()
        assert game.step("look")[1:4] == (0.5, is_over and not is_cut_off, is_over and is_cut_off)


def test_of_a_state_what_is_plain_is_told() -> None:
    state = {"feedback": "\n Well.\n\n", "won": False, "score": 0, "share": 0.0, "name": "", "exits": ["a"], "facts": ("a",), "map": {}}
    game = TextGame(Told({}))
    game.game.reset = lambda: (state, {"score": 1})
    text, told = game.reset()
    assert (text, told) == (" Well.", {**{key: state[key] for key in ("feedback", "won", "share", "name", "exits")}, "score": 1})


def test_a_clone_is_a_copy_too_and_others_are_copied_whole() -> None:
    class Cloned(Attic):
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("a pointer")

        def clone(self) -> Attic:
            return type(self)()

    for make in (Cloned, Attic):
        game = TextGame(make())
        game.reset(seed=0)
        copied = copy.deepcopy(game)
        assert type(copied.game) is make
        assert copied.game is not game.game
        assert (copied.action_space, copied._score) == (game.action_space, game._score)
        assert copied.action_space is not game.action_space


def test_a_game_that_knows_how_is_copied_its_own_way() -> None:
    class Copied(Attic):
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("a pointer")

        def copy(self) -> Attic:
            other = Attic()
            other.__dict__.update(self.__dict__)
            return other

    env = vfgym.to_chat(Copied, rules="Type.")
    env.reset(seed=0)
    env.step("wait")
    branch = env.branch()
    assert branch.step("take lamp")[1] == env.step("take lamp")[1] == 1.0


def test_any_text_is_a_command_and_samples_mean_something() -> None:
    space = CommandSpace(seed=0)
    assert "nach Norden\ngehen" in space
    assert 3 not in space
    assert all(sample in space.examples for sample in (space.sample() for _ in range(20)))
    assert space.from_jsonable(space.to_jsonable(["look"])) == ["look"]
    assert space == CommandSpace()
    assert space != CommandSpace(["nod"])
