"""What a seat does for its player, what it refuses, and what it prints: conversations as text, and what is new in them."""

from __future__ import annotations

import base64
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.environments import Quiz, RandomTalk, Talk
from vfgym import Rubric, State
from vfgym.envs.seat import EpisodeSeat, as_response, new_since, transcript
from vfgym.errors import ConfigurationError, InvalidAction, ModelError, ResetNeeded
from vfgym.messages import AssistantMessage, Response, ToolMessage, UserMessage
from vfgym.wrappers.games.images import image_part

MESSAGES = st.lists(st.sampled_from("abc").map(UserMessage), max_size=6)


@given(MESSAGES, MESSAGES)
def test_what_continues_a_conversation_is_new(seen: list[Any], more: list[Any]) -> None:
    assert new_since(seen, [*seen, *more]) == (more or seen)


@given(MESSAGES, MESSAGES)
def test_of_a_conversation_that_does_not_continue_what_was_seen_all_is_new(seen: list[Any], observation: list[Any]) -> None:
    assume(observation[: len(seen)] != seen)
    assert new_since(seen, observation) == observation


def test_what_is_new_is_a_list_of_its_own() -> None:
    observation = [UserMessage("a")]
    new_since([UserMessage("b")], observation).clear()
    assert len(observation) == 1


@pytest.mark.parametrize("shape", [(40, 96), (96, 40, 3), (1, 300, 4)])
def test_an_image_is_told_by_its_size(shape: tuple[int, ...]) -> None:
    pytest.importorskip("PIL")
    message = UserMessage([{"type": "text", "text": "Look:"}, image_part(np.zeros(shape, np.uint8))])
    assert transcript([message, AssistantMessage("I see.")]) == f"[user] Look:\n\n[image {shape[1]}x{shape[0]}]\n[assistant] I see."


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}, "[image]"),
        ({"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AAQSkZJRg=="}}, "[image]"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}, "[image]"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,no base64, surely, and long"}}, "[image]"),
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(bytes(99)).decode()}"}}, "[image]"),
        ({"type": "image_url", "image_url": {}}, "[image]"),
        ({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, "[input_audio]"),
        ({"type": "text", "text": ""}, ""),
    ],
    ids=str,
)
def test_what_is_no_png_here_is_told_by_its_kind(part: dict[str, Any], text: str) -> None:
    assert transcript([UserMessage([part, {"type": "text", "text": "!"}])]) == f"[user] {text}\n\n!"


def test_an_end_from_outside_prints_nothing_again(capsys: pytest.CaptureFixture[str]) -> None:
    env = Talk(dataset=[{"question": "Who are you?"}], render_mode="human")
    env.reset(seed=0)
    env.step("Ada.")
    printed = capsys.readouterr().out
    assert printed == "[user] Who are you?\n[assistant] Ada.\n[user] go on\n"
    env.truncate()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (AssistantMessage(None, tool_calls=[{"id": "1", "function": {"name": "f", "arguments": "{}"}}]), "[assistant] f({})"),
        (
            AssistantMessage(
                "Both:", tool_calls=[{"id": str(number), "function": {"name": name, "arguments": "{}"}} for number, name in enumerate("fg")]
            ),
            "[assistant] Both: f({}) g({})",
        ),
        (AssistantMessage(None), "[assistant] "),
        (ToolMessage("4", tool_call_id="1"), "[tool] 4"),
    ],
)
def test_calls_are_printed_behind_the_text(message: Any, text: str) -> None:
    assert transcript([message]) == text


# The player's own


def test_an_action_is_the_response_that_it_stands_for() -> None:
    message = AssistantMessage("a")
    for action in ("a", message, {"role": "assistant", "content": "a"}):
        response = as_response(action)
        assert (response.id, response.created, response.model, response.usage, response.message) == ("", 0, "", None, message)
    given = Response("id", 1, "m", None, message)  # type: ignore[arg-type]
    assert as_response(given) is given
    with pytest.raises(InvalidAction, match=r"^an action must be an assistant message, got one with the role 'user'$"):
        as_response(UserMessage("a"))
    with pytest.raises(
        InvalidAction, match=r"^an action must be an assistant message \(its text, a dict with role .*, or a Response\): .*int"
    ):
        as_response(3)
    for name in ("definition", "failure_reward"):
        with pytest.raises((NotImplementedError, AttributeError)):
            getattr(EpisodeSeat(), name)


def test_a_generator_that_is_given_is_gone_on_with_and_its_seed_is_not_known() -> None:
    env = Talk()
    env.reset(seed=5)
    assert (env.np_random_seed, env.np_random.random()) == (5, np.random.default_rng(5).random())
    env.reset()
    assert env.np_random_seed == 5
    env.np_random = np.random.default_rng(7)
    assert (env.np_random_seed, env.np_random.random()) == (-1, np.random.default_rng(7).random())
    env.reset(seed=0)
    assert (env.np_random_seed, env.np_random.random()) == (0, np.random.default_rng(0).random())


@pytest.mark.parametrize(
    ("seed", "options", "says"),
    [
        (0, ["split"], "reset options must be a dict, got list"),
        (0, {"exampel_id": 1}, "unknown reset option 'exampel_id'; known: example_id, split, task, game_options, player. Did you mean"),
        (0, {"split": "test"}, "the reset option 'split' must be 'train' or 'eval', got 'test'"),
        (0, {"task": "?"}, "the reset option 'task' must be a row (a dict), got str"),
        (0, {"game_options": {}}, "Quiz is not a wrapped game, so there are no 'game_options'"),
        (0, {"player": 0}, "Quiz is not a game for several players, so there is no 'player' to choose"),
        (-1, None, "the seed of reset must be an integer from 0, or None to go on with the same numbers; got -1"),
        (1.0, None, "the seed of reset must be an integer from 0, or None to go on with the same numbers; got 1.0"),
    ],
)
def test_a_reset_that_is_refused_leaves_the_episode_as_it_was(seed: Any, options: Any, says: str) -> None:
    env, twin = Quiz(), Quiz()
    for each in (env, twin):
        each.reset(seed=3)
        each.step("a")
    with pytest.raises((ConfigurationError, gym.error.Error), match=re.escape(says)):
        env.reset(seed=seed, options=options)
    assert (env.step("b"), env.reset(), env.cleaned) == (twin.step("b"), twin.reset(), 1)


def test_a_seed_restarts_the_stream_of_each_split_and_no_seed_goes_on() -> None:
    env = Quiz(eval_dataset=[{"question": f"e{number}"} for number in range(6)])

    def meet(split: str, seed: int | None) -> Any:
        return env.reset(seed=seed, options={"split": split})[0][0].content

    first = [meet("eval", 0), *(meet("eval", None) for _ in range(5)), meet("train", None)]
    assert sorted(first[:6]) == [f"e{number}" for number in range(6)], "each is met once"
    assert first[6].startswith("question")
    assert [meet("eval", 0), *(meet("eval", None) for _ in range(5)), meet("train", None)] == first


def test_a_fork_has_what_the_environment_is_and_an_episode_of_its_own() -> None:
    env = Quiz(render_mode="ansi", failure_reward=-2.0)
    env.spec = gym.envs.registration.EnvSpec("Quiz-v0")
    env.metadata = {**env.metadata, "own": True}
    env.reset(seed=0)
    fork = env.fork()
    assert (fork.definition, fork.spec, fork.render_mode, fork.failure_reward) == (env, env.spec, "ansi", -2.0)
    assert (fork.metadata, fork.observation_space, fork.episode, fork.state) == (env.metadata, env.observation_space, None, None)
    assert (fork.fork().definition, Talk().fork().metadata, fork.render()) == (env, EpisodeSeat.metadata, "")
    fork.reset(seed=1)
    fork.step("hello")
    question = env.state["prompt"][0].content
    assert env.render() == f"[user] {question}", "the fork's episode is another one"
    assert fork.render().splitlines()[1:] == ["[assistant] hello", "[user] you said hello"]


def test_a_branch_may_draw_anew_what_was_hidden() -> None:
    class Hiding(RandomTalk):
        def resample_hidden(self, state: State, rng: np.random.Generator) -> None:
            state["hidden"] = rng.integers(1 << 30)

    env = Hiding()
    env.reset(seed=0)
    assert "hidden" not in env.branch(4).state
    assert env.branch(4, "resample").state["hidden"] == np.random.default_rng([4, 1]).integers(1 << 30)
    for arguments, says in (
        ((4, "look"), "hidden must be one of 'keep', 'resample'; got 'look'"),
        ((None, "resample"), "hidden='resample' draws at random: give a seed, too"),
    ):
        with pytest.raises(ConfigurationError, match=f"^{says}$"):
            env.branch(*arguments)
    plain = RandomTalk()
    plain.reset(seed=0)
    with pytest.raises(
        ConfigurationError, match="RandomTalk cannot draw anew what the policy has not seen: branch without hidden='resample', or"
    ):
        plain.branch(0, "resample")
    with pytest.raises(ConfigurationError, match=r"^restore takes what snapshot\(\) returned, got dict$"):
        env.restore({})  # type: ignore[arg-type]


class Keeping(Talk):
    """Keeps something between episodes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.opened = 0
        self.closed: list[int] = []

    def setup_state(self, state: State) -> Any:
        if state.session is None:
            self.opened += 1
            state.session = self.opened
        return super().setup_state(state)

    def close_session(self, session: int) -> None:
        self.closed.append(session)


async def test_what_is_kept_between_episodes_is_closed_once_however_the_seat_is() -> None:
    env = Keeping()
    fork = env.fork()
    await fork.areset(seed=0)
    snapshot = await fork.asnapshot()
    await fork.areset()
    assert (env.opened, env.closed, env.cleaned) == (1, [], 1)
    await fork.arestore(snapshot)
    assert (env.closed, env.cleaned) == ([1], 2), "a moment brings what was kept then"
    branch = await fork.abranch()
    await fork.aclose()
    await fork.aclose()
    assert (env.closed, env.cleaned) == ([1, 1], 3)
    assert (await branch.astep("a")).observation[-1] == UserMessage("go on")
    env.reset(seed=0)
    env.close()
    assert (env.opened, env.closed, env.cleaned) == (2, [1, 1, 2], 4)


async def test_ends_from_async_code_are_those_of_plain_code() -> None:
    def talk() -> Talk:
        env = Talk(rubric=Rubric(lambda completion: 1.0))
        env.reset(seed=0)
        return env

    assert await talk().atruncate() == talk().truncate()
    outcome = await talk().afail(ModelError("busy"))
    assert outcome == talk().fail(ModelError("busy"))
    assert (outcome.terminated, outcome.info["error"]) == (True, "ModelError('busy')")
    env = talk()
    env.defers_scoring = True
    cut = env.truncate()
    assert (env.truncate(), cut.reward, env.state["reward"]) == (cut, 0.0, None)
    with pytest.raises(ResetNeeded, match=r"^the episode is over: call reset\(\) first$"):
        env.fail(ModelError("late"))
    env = talk()
    env.throws_away = lambda state: state["is_completed"]
    env.truncate()
    assert env.state["reward"] is None
    env.reset()
    env.close()
    with pytest.raises(ResetNeeded, match=r"^the episode was broken off, by an exception or by close\(\): call reset\(\) first$"):
        env.step("a")


def test_pictures_are_the_games_own_or_the_page_and_all_of_the_first_ones_shape() -> None:
    pytest.importorskip("PIL")

    class Drawing(Talk):
        picture: Any = None

        def render_picture(self, state: State) -> Any:
            return self.picture

    env = Drawing(render_mode="rgb_array")
    env.reset(seed=0)
    env.picture = np.full((8, 9, 3), 200, np.uint8)
    assert np.array_equal(env.render(), env.picture)  # type: ignore[arg-type]
    env.picture = np.full((16, 18, 3), 90, np.uint8)
    assert env.render().shape == (8, 9, 3)  # type: ignore[union-attr]
    page = Talk(render_mode="rgb_array")
    empty = page.render()
    page.reset(seed=0)
    asked = page.render()
    page.step("a")
    assert len({picture.tobytes() for picture in (empty, asked, page.render())}) == 3  # type: ignore[union-attr]
    assert empty.shape == asked.shape  # type: ignore[union-attr]


def test_without_a_render_mode_nothing_is_drawn_and_a_warning_says_what_to_do() -> None:
    with pytest.warns(UserWarning, match="make the environment with one of ansi, human, rgb_array"):
        assert Talk().render() is None
    assert Talk(render_mode="human").render() is None
