"""`to_chat`: a game played in words is the game itself; what it can be made of, and how it is made to draw what is shown."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from tests.environments import Brightening
from tests.programs import run_python
from tests.wrappers.gymnasium.toys import Toy, first_content
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.wrappers.games.images import frame_of

GAMES = ["Acrobot-v1", "Blackjack-v1", "CartPole-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "FrozenLake8x8-v1", "Taxi-v4"]


class Recorded(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps what a game was given and said, so that it can be compared."""

    def __init__(self, env: gym.Env[Any, Any], history: list[Any]) -> None:
        super().__init__(env)
        self.history = history

    def reset(self, **kwargs: Any) -> Any:
        self.history.append((kwargs.get("seed"), self.env.reset(**kwargs)))
        return self.history[-1][1]

    def step(self, action: Any) -> Any:
        self.history.append((action, self.env.step(action)))
        return self.history[-1][1]


@pytest.mark.parametrize("game_id", GAMES)
def test_same_seeds_and_actions_give_the_bare_games_observations_rewards_and_flags(game_id: str) -> None:
    """Over several episodes of one seed's stream."""
    history: list[Any] = []
    chat = vfgym.to_chat(lambda: Recorded(gym.make(game_id), history), obs_to_text=str)
    bare = gym.make(game_id)
    bare.action_space.seed(5)
    for seed in (11, None, None):
        history.clear()
        _, info = chat.reset(seed=seed)
        native = bare.reset(seed=seed)
        np.testing.assert_equal(history, [(seed, native)])
        np.testing.assert_equal(info["game_info"], native[1])
        for _ in range(1, 200):
            action = bare.action_space.sample()
            _, reward, terminated, truncated, info = chat.step(chat.codec.encode(action))
            native = bare.step(action)
            np.testing.assert_equal(history[-1], (action, native))
            assert type(history[-1][0]) is type(action)
            assert (reward, terminated, truncated) == (float(native[1]), native[2], native[3])
            np.testing.assert_equal(info["game_info"], native[4])
            if terminated or truncated:
                assert info["stop_condition"] == ("game_over" if terminated else "game_truncated")
                break


@pytest.mark.parametrize(
    ("game", "options", "answers", "flags", "stop_condition"),
    [
        ("CartPole-v1", {"max_turns": 3}, "000", (False, True), "max_turns_reached"),  # the last move counts
        ("Blackjack-v1", {"max_turns": 1}, "0", (True, False), "game_over"),
        (lambda: gym.make("MountainCar-v0", max_episode_steps=2), {}, "11", (False, True), "game_truncated"),
    ],
)
def test_the_games_own_end_goes_before_a_limit(game: Any, options: Any, answers: str, flags: Any, stop_condition: str) -> None:
    env = vfgym.to_chat(game, **options)
    env.reset(seed=0)
    outcomes = [env.step(answer) for answer in answers]
    assert (outcomes[-1][2:4], outcomes[-1].info["stop_condition"]) == (flags, stop_condition)
    assert env.state["reward"] == sum(outcome.reward for outcome in outcomes)


def test_an_id_passes_other_arguments_to_the_game() -> None:
    env = vfgym.to_chat("gymnasium:FrozenLake-v1", map_name="8x8", max_turns=2)
    assert "FFFFFFFF" in first_content(env)
    assert (env.max_turns, env.env_id) == (2, "FrozenLake-v1")
    assert {"env", "observe", "max_turns"} <= inspect.signature(vfgym.to_chat).parameters.keys()


@pytest.mark.parametrize(
    "make", [lambda: gym.make("CartPole-v1"), lambda: gym.spec("CartPole-v1"), lambda: lambda: gym.make("CartPole-v1")]
)
def test_a_game_a_spec_and_a_factory_do_as_well_as_an_id(make: Any) -> None:
    assert first_content(vfgym.to_chat(make()), 4) == first_content(vfgym.to_chat("CartPole-v1"), 4)


@pytest.mark.parametrize(
    ("game", "options", "title"),
    [
        (lambda: gym.make("CartPole-v1"), {}, "CartPole-v1"),
        (lambda: gym.wrappers.TimeLimit(Toy(), 5), {}, "Toy"),
        (functools.partial(Toy, info={"a": 1}), {}, "Toy"),
        (Toy, {"name": "a small game"}, "a small game"),
        ("CartPole-v1", {"name": "the cart"}, "the cart"),
    ],
)
def test_a_game_is_called_by_its_id_or_its_class_whatever_makes_it(game: Any, options: dict[str, Any], title: str) -> None:
    assert first_content(vfgym.to_chat(game, **options)).startswith(f"You are playing {title}.\n")


class Unrecorded(gym.Wrapper[Any, Any, Any, Any]):
    """Does not record its arguments, so that nobody can make it again."""


@pytest.mark.parametrize(
    ("make", "options", "kind", "problem"),
    [
        (lambda: gym.make("CartPole-v1").unwrapped.__class__(), {}, ConfigurationError, "give to_chat a function"),
        (lambda: Unrecorded(gym.make("CartPole-v1")), {}, ConfigurationError, "Unrecorded does not say .* give to_chat a function"),
        (lambda: 3, {}, ConfigurationError, "takes an id, a spec, a game or a function that makes one, got int"),
        (lambda: lambda: [], {}, ConfigurationError, "made a list, which is not"),
        (lambda: "gymnasium/CartPole-v1", {}, ConfigurationError, "is a chat environment already"),
        (lambda: "no_such_games:Chess-v0", {}, ConfigurationError, "no module 'no_such_games'"),
        (lambda: gym.spec("CartPole-v1"), {"max_turn": 3}, UnknownArgument, "max_turns"),
        (lambda: "CartPole-v1", {"max_turn": 3}, UnknownArgument, "neither to_chat nor CartPole-v1 .*'max_turn'. Did you mean `max_turns`"),
        (lambda: "CartPole-v1", {"max_episode_steps": 5}, UnknownArgument, "Give max_turns, or a spec"),
    ],
)
def test_what_cannot_be_played_in_words_is_refused(make: Any, options: dict[str, Any], kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        vfgym.to_chat(make(), **options)


@pytest.mark.parametrize(
    ("entry_point", "options", "message"),
    [
        (lambda: Toy(), {"zzz": 1}, "neither to_chat nor Drawing-v0 has an argument 'zzz'. The game takes none."),
        (
            lambda width=1, colour=2: Toy(),
            {"width": 0, "color": 1},
            "neither to_chat nor Drawing-v0 has an argument 'color'. Did you mean `colour`? The game takes width, colour.",
        ),
    ],
)
def test_an_argument_that_a_game_does_not_have_is_told_with_those_that_it_has(
    register: Any, entry_point: Any, options: dict[str, Any], message: str
) -> None:
    register(entry_point)
    with pytest.raises(UnknownArgument) as caught:
        vfgym.to_chat("Drawing-v0", **options)
    assert str(caught.value) == message


def test_a_registered_game_and_a_spec_stay_as_they_are() -> None:
    spec = copy.deepcopy(gym.spec("FrozenLake-v1"))
    for source, options in ((spec, {}), ("FrozenLake-v1", {"map_name": "8x8"})):
        assert first_content(vfgym.to_chat(source, **options)).count("F") > 10
    assert spec == gym.spec("FrozenLake-v1")
    assert spec.kwargs == {"map_name": "4x4"}


def test_a_game_keeps_the_id_that_it_is_given() -> None:
    for source in ("CartPole-v1", gym.spec("CartPole-v1"), gym.make("CartPole-v1")):
        assert vfgym.to_chat(source).env_id == "CartPole-v1"
        assert vfgym.to_chat(source, env_id="my/cart").env_id == "my/cart"


@pytest.mark.parametrize(("source", "name"), [(Toy, "this game"), ("Drawing-v0", "Drawing-v0"), (gym.spec, "Drawing-v0")])
def test_a_game_of_many_nameless_numbers_is_warned_of_where_it_is_made(register: Any, source: Any, name: str) -> None:
    def make() -> Any:
        return Toy(observation_space=gym.spaces.Box(-1, 1, (30,)))

    register(make)
    source = make if source is Toy else source("Drawing-v0") if callable(source) else source
    with pytest.warns(UserWarning, match=f"^a model that plays {name} is told too little: .*30 numbers") as caught:
        vfgym.to_chat(source)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_factory_makes_one_game_to_look_at() -> None:
    made = []
    vfgym.to_chat(lambda: made.append(Toy()) or made[-1])  # type: ignore[func-returns-value]
    assert len(made) == 1


def test_a_factory_that_imports_pettingzoo_is_taken_the_first_time() -> None:
    pytest.importorskip("pettingzoo")
    program = """
import sys
import vfgym

def make():
    from pettingzoo.classic import tictactoe_v3
    return tictactoe_v3.env()

assert "pettingzoo" not in sys.modules
env = vfgym.to_chat(make, opponents="random")
assert type(env).__name__ == "PettingZooEnv", env
env.reset(seed=0)
print(env.step("4").reward)
"""
    assert run_python(program, check=True).stdout.split() == ["0.0"]


def frame_in(message: Any) -> np.ndarray[Any, Any]:
    (part,) = [part for part in message.content if part["type"] == "image_url"]
    return frame_of(part)


def test_a_drawing_is_shown_as_an_image() -> None:
    env, native = vfgym.to_chat("CartPole-v1", observe="image"), gym.make("CartPole-v1", render_mode="rgb_array")
    native.reset(seed=3)
    observation, _ = env.reset(seed=3)
    assert np.array_equal(frame_in(observation[-1]), native.render())
    assert observation[-1].content[0]["text"].startswith("You are playing CartPole-v1.")
    native.step(1)
    observation = env.step("right").observation
    assert np.array_equal(frame_in(observation[-1]), native.render())
    assert len(observation[-1].content) == 1
    env.close()


class Drawing(Brightening):
    """Draws what it does not show, if it is told to; over after three steps."""

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}
    observation_space = gym.spaces.Discrete(4)  # type: ignore[assignment]
    steps = 3

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def _frame(self) -> Any:
        return self.brightness

    def render(self) -> Any:
        return f"brightness {self.brightness}" if self.render_mode == "ansi" else super()._frame()


class Undrawing(Drawing):
    """Says that it draws, but cannot be told to."""

    def __init__(self) -> None:
        super().__init__()


@pytest.fixture
def register() -> Iterator[Any]:
    before = {*gym.registry}
    yield lambda entry_point: gym.register("Drawing-v0", entry_point)
    for game_id in {*gym.registry} - before:
        del gym.registry[game_id]


@pytest.mark.parametrize("entry_point", [Drawing, lambda **options: Drawing(**options), lambda render_mode=None: Drawing(render_mode)])
@pytest.mark.parametrize("source", ["Drawing-v0", gym.spec])
def test_whatever_makes_a_registered_game_it_is_made_to_draw_what_is_shown(register: Any, entry_point: Any, source: Any) -> None:
    register(entry_point)
    source = source if isinstance(source, str) else source("Drawing-v0")
    assert first_content(vfgym.to_chat(source)).endswith("\n\nbrightness 0")
    assert not frame_in(vfgym.to_chat(source, observe="image").reset(seed=0)[0][-1]).any()
    _, text, image = first_content(vfgym.to_chat(source, observe="both"))
    assert (text["text"], image["type"]) == ("0", "image_url")


@pytest.mark.parametrize("entry_point", [Undrawing, lambda: Drawing()])
def test_a_game_that_cannot_be_told_to_draw_is_shown_as_it_is(register: Any, entry_point: Any) -> None:
    register(entry_point)
    assert first_content(vfgym.to_chat("Drawing-v0")).endswith("\n\n0")
    for source in ("Drawing-v0", Toy, lambda: gym.make("CartPole-v1")):
        with pytest.raises(ConfigurationError, match=r"no images to show: .* to_chat\(gymnasium.make\(.*render_mode='rgb_array'"):
            vfgym.to_chat(source, observe="image")


@pytest.mark.parametrize(
    ("options", "text", "mode"),
    [
        ({}, "brightness 0", "ansi"),
        ({"render_mode": "rgb_array"}, "brightness 0", "ansi"),
        ({"obs_to_text": str}, "0", None),
        ({"obs_to_text": str, "render_mode": "rgb_array"}, "0", "rgb_array"),
    ],
    ids=str,
)
def test_a_registered_game_is_drawn_for_the_model_first(register: Any, options: dict[str, Any], text: str, mode: str | None) -> None:
    """What is not drawn as text draws pictures where the chat environment renders them."""
    made: list[Drawing] = []

    def make(render_mode: str | None = None) -> Drawing:
        made.append(Drawing(render_mode))
        return made[-1]

    register(make)
    assert first_content(vfgym.to_chat("Drawing-v0", **options)).endswith(f"\n\n{text}")
    assert made[-1].render_mode == mode


def test_a_game_with_a_render_mode_keeps_it(register: Any) -> None:
    register(Drawing)
    for mode, text in (("rgb_array", "0"), ("ansi", "brightness 0")):
        assert first_content(vfgym.to_chat(gym.make("Drawing-v0", render_mode=mode))).endswith(f"\n\n{text}")


def test_what_a_wrapper_makes_of_an_observation_is_shown_instead_of_the_drawing(register: Any) -> None:
    register(Drawing)
    games = gym.wrappers.TransformObservation(gym.make("Drawing-v0"), lambda seen: seen + 2, None), gym.make("Drawing-v0")
    assert [first_content(vfgym.to_chat(game)).rpartition("\n")[2] for game in games] == ["2", "brightness 0"]


def test_games_that_are_made_to_look_at_are_closed(register: Any) -> None:
    open_games: list[Drawing] = []

    class Closing(Drawing):
        def close(self) -> None:
            open_games.remove(self)

    def make(render_mode: str | None = None) -> Drawing:
        open_games.append(Closing(render_mode))
        return open_games[-1]

    register(make)
    env = vfgym.to_chat("Drawing-v0")
    env.reset(seed=0)
    env.close()
    assert open_games == []


def test_a_game_that_begins_only_with_options_is_drawn() -> None:
    class NeedsALevel(Drawing):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return super().reset(level=(options or {})["level"])

    conversation, _ = vfgym.to_chat(lambda: NeedsALevel("ansi")).reset(options={"game_options": {"level": 1}})
    assert conversation[-1].content.endswith("\n\nbrightness 0")


def test_a_game_that_prints_its_drawing_is_shown_by_its_observations(capsys: pytest.CaptureFixture[str]) -> None:
    class Printing(Drawing):
        def render(self) -> Any:
            print(f"brightness {self.brightness}")

    env = vfgym.to_chat(lambda: Printing("ansi"))
    assert first_content(env).endswith("\n\n0")
    assert env.step("1").observation[-1].content == "1"
    assert capsys.readouterr().out == ""
    Printing.observation_space = gym.spaces.Box(0, 1, (1000,))  # type: ignore[assignment]
    with pytest.raises(ConfigurationError, match="1000 numbers, which no model can read"):
        vfgym.to_chat(lambda: Printing("ansi"))


@pytest.mark.parametrize("wrap", [lambda game: game, lambda game: gym.wrappers.TimeLimit(game, 9)], ids=["bare", "wrapped"])
@pytest.mark.parametrize("options", [{}, {"render_mode": "rgb_array"}, {"on_invalid": "random"}], ids=str)
def test_a_game_may_call_anything_unwrapped(wrap: Any, options: dict[str, Any]) -> None:
    """As `jumanji.wrappers.JumanjiToGymWrapper` does; what has a `step` documents the game."""

    class OfAnotherLibrary(Toy):
        """Count the planets."""

        unwrapped = property(lambda self: "planets")  # type: ignore[assignment]

    env = vfgym.to_chat(lambda: wrap(OfAnotherLibrary()), **options)
    assert first_content(env).startswith("You are playing OfAnotherLibrary.\n\nCount the planets.")
    assert [env.step("1").reward for _ in range(3)] == [1.0, 1.0, 1.0]
