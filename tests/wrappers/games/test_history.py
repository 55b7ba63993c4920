"""`images` and `max_prompt_tokens`: a prompt holds the newest pictures and moves, and results hold everything."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import verifiers_compat as vf
import vfgym
from tests.environments import Brightening
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, ToolCall, content_text
from vfgym.state import State
from vfgym.testing import ScriptedClient
from vfgym.wrappers.games.history import (
    EARLIER_MOVES,
    OLDER_PICTURE,
    PICTURE_TOKENS,
    PromptHistory,
    PromptLimits,
    estimate_tokens,
    make_limits,
)
from vfgym.wrappers.games.turns import Turn


def tokens_of(conversation: list[Any], count: Callable[[str], int] = estimate_tokens) -> int:
    """Return the tokens of a conversation whose messages are text and images."""
    return sum(
        count(message.content)
        if isinstance(message.content, str)
        else sum(count(part["text"]) if part["type"] == "text" else PICTURE_TOKENS for part in message.content)
        for message in conversation
    )


def said(conversation: list[Any]) -> list[str]:
    return [message.content for message in conversation]


class Parrot(vfgym.GameEnv):
    """Answers with as many letters as an answer asks for; one that asks for nothing is not a move."""

    def open_game(self) -> Any:
        return object()

    def begin_game(self, game: Any, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[vfgym.Message]:
        state["rules"] = "Ask for letters."
        return [vfgym.UserMessage("Ask for letters.\n\n0:")]

    def make_move(self, game: Any, message: vfgym.Message, state: State) -> Turn:
        number = len(state["trajectory"])
        if not str(message.content).strip(" "):
            return Turn([vfgym.UserMessage("How many?")], is_valid=False)
        return Turn([vfgym.UserMessage(f"{number}: {'x' * int(str(message.content))}")], reward=1.0)


def parrot(*answers: str, **options: Any) -> Any:
    """Play some answers."""
    env = Parrot(blocking=False, **options)
    env.reset(seed=0)
    for answer in answers:
        env.step(answer)
    return env


def test_over_many_steps_of_humanoid_no_prompt_is_longer_than_the_budget() -> None:
    """Its observations are 9.5 kB each; all of the episode is in the results."""
    pytest.importorskip("mujoco")
    budget = 20_000
    env = vfgym.to_chat("Humanoid-v5", max_prompt_tokens=budget, terminate_when_unhealthy=False, blocking=False, max_turns=80)
    conversation, _ = env.reset(seed=0)
    rules = env.state["rules"]
    env.action_space.seed(0)
    lengths = [tokens_of(conversation)]
    for _ in range(80):
        outcome = env.step(env.action_space.sample())
        if outcome.truncated:
            break
        lengths.append(tokens_of(outcome.observation))
        assert outcome.observation[0].content.startswith(rules)
    assert len(lengths) == 80
    assert outcome.truncated
    assert budget * 0.8 < max(lengths) <= budget
    assert len(env.state["completion"]) == 160
    assert tokens_of(outcome.observation) > 8 * budget
    env.close()


ANSWERS = st.lists(st.sampled_from(["1", "9", "30", "80", " ", " " * 40]), max_size=25)


@given(ANSWERS, st.integers(12, 60), st.sampled_from([None, 0, 2]))
@settings(max_examples=40)
def test_as_many_of_the_last_turns_are_shown_as_fit(answers: list[str], budget: int, history: int | None) -> None:
    env = Parrot(blocking=False, max_prompt_tokens=budget, history=history, max_invalid_moves=100)
    shown, _ = env.reset(seed=0)
    whole = said(shown)
    observation = "0:"
    for number, answer in enumerate(answers, 1):
        shown = env.step(answer).observation
        reply = "How many?" if not answer.strip() else f"{number}: {'x' * int(answer)}"
        observation = reply if answer.strip() else observation
        whole += [answer, reply]
        opening, *rest = said(shown)
        assert rest == whole[len(whole) - len(rest) :], "what is shown are the last turns"
        assert opening.startswith("Ask for letters.\n\n")
        assert observation in "\n".join([opening, *rest]), "how the game stands is always shown"
        assert reply in (opening.rpartition("\n\n")[2], rest[-1] if rest else ""), "and so is the last reply"
        is_whole = [opening, *rest] == whole
        assert (EARLIER_MOVES in opening) != is_whole
        assert tokens_of(shown) <= budget or not rest
        if not is_whole and history is None:
            more = [f"Ask for letters.\n\n{EARLIER_MOVES}\n\n{whole[-len(rest) - 3]}", *whole[-len(rest) - 2 :]]
            before = whole[: len(whole) - len(rest) - 2]
            if before[1:] and before[-1] != "How many?":  # the turn before those that are shown follows a move
                assert sum(map(estimate_tokens, more)) > budget, "another turn would be too much"
    env.truncate()
    assert [whole[0], *said(env.state["completion"])] == whole


def test_what_a_prompt_begins_with_says_that_moves_are_left_out() -> None:
    env = parrot(*["40"] * 5, max_prompt_tokens=46)
    shown = said(env.episode.conversation())
    assert shown[0] == f"Ask for letters.\n\n{EARLIER_MOVES}\n\n3: {'x' * 40}"
    assert shown[1:] == ["40", f"4: {'x' * 40}", "40", f"5: {'x' * 40}"]


def test_a_limited_history_alone_says_nothing_of_it() -> None:
    assert EARLIER_MOVES not in parrot(*"123", history=1).episode.conversation()[0].content


def test_the_system_prompt_stays_and_counts() -> None:
    env = parrot(*["40"] * 5, max_prompt_tokens=45, system_prompt="Be brief. " * 4)
    shown = said(env.episode.conversation())
    assert shown[0] == "Be brief. " * 4
    assert len(shown) == 4
    assert tokens_of(env.episode.conversation()) <= 45


def test_tokens_can_be_counted_by_a_function() -> None:
    def count_words(text: str) -> int:
        return len(text.split())

    env = parrot(*["40"] * 5, max_prompt_tokens=16, count_tokens=count_words)
    shown = env.episode.conversation()
    assert tokens_of(shown, count_words) <= 16 < tokens_of(shown, count_words) + 3
    assert len(shown) == 5


def test_what_was_counted_once_is_not_counted_again() -> None:
    """The characters that are counted grow with the episode, and not with its square."""
    counted = [0]

    def count(text: str) -> int:
        counted[0] += len(text)
        return len(text)

    def characters(turns: int) -> int:
        counted[0] = 0
        parrot(*["30"] * turns, max_prompt_tokens=3000, count_tokens=count)
        return counted[0]

    assert characters(800) < 2.5 * characters(400)


def test_reasoning_and_tool_calls_count() -> None:
    limits = PromptLimits(tokens=1)
    answer = AssistantMessage("four", reasoning_content="eight ch", tool_calls=[ToolCall("call_1", "act", '{"a": 12345}')])
    assert limits.count([answer]) == 1 + 2 + 1 + 3
    assert limits.count([AssistantMessage(None, tool_calls=[ToolCall("call_1", "act", "{}")])]) == 2


def test_a_first_prompt_that_is_too_long_is_an_error_that_says_both_numbers() -> None:
    env = vfgym.to_chat("CartPole-v1", max_prompt_tokens=50)
    with pytest.raises(ConfigurationError, match=r"alone are \d{3} tokens, and max_prompt_tokens is 50"):
        env.reset(seed=0)


def test_an_observation_that_is_too_long_in_the_middle_is_shown_with_the_rules() -> None:
    env = parrot("1", "400", max_prompt_tokens=20)
    assert said(env.episode.conversation()) == [f"Ask for letters.\n\n{EARLIER_MOVES}\n\n2: {'x' * 400}"]
    env.step("1")
    assert tokens_of(env.episode.conversation()) <= 20


def test_an_answer_that_is_too_long_and_names_no_move_is_told_so_without_it() -> None:
    env = parrot("1", " " * 400, max_prompt_tokens=20)
    assert said(env.episode.conversation()) == [f"Ask for letters.\n\n{EARLIER_MOVES}\n\n1: x\n\nHow many?"]
    env = parrot(" " * 400, max_prompt_tokens=20)
    assert said(env.episode.conversation()) == [f"Ask for letters.\n\n0:\n\n{EARLIER_MOVES}\n\nHow many?"]


def test_a_rollout_asks_the_model_with_prompts_within_the_budget() -> None:
    prompts: list[int] = []

    class Client(ScriptedClient):
        async def get_response(self, prompt: Any, *args: Any, **kwargs: Any) -> Any:
            prompts.append(tokens_of(prompt))
            return await super().get_response(prompt, *args, **kwargs)

    env = Parrot(blocking=False, max_prompt_tokens=45, max_turns=12)
    state = asyncio.run(env.rollout(env.tasks.input(0), Client(["40"] * 12), "scripted"))
    assert len(prompts) == 12
    assert max(prompts) <= 45
    assert len(state["completion"]) == 24
    assert state["error"] is None


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: vfgym.TextArenaEnv("Nim-v0", **options),
        lambda **options: vfgym.PettingZooEnv("classic/connect_four_v3", **options),
        lambda **options: vfgym.to_chat("CliffWalking-v1", **options),
        lambda **options: vfgym.to_chat("Blackjack-v1", **options),
        lambda **options: vf.GymEnv(gym.make, {"id": "CartPole-v1"}, action_parser=int, **options),
    ],
)
def test_every_kind_of_game_keeps_to_the_budget_and_plays_the_same(make: Callable[..., Any]) -> None:
    free = make()
    conversation, info = free.reset(seed=0)
    budget = tokens_of(conversation) + 80
    limited = make(max_prompt_tokens=budget)
    limited.reset(seed=0)
    for _ in range(12):
        action = info["legal_actions"][0] if "legal_actions" in info else "1"
        whole, outcome = free.step(action), limited.step(action)
        assert outcome[1:4] == whole[1:4]
        if outcome.terminated or outcome.truncated:
            assert said(outcome.observation) == said(whole.observation), "results hold all"
            return
        assert tokens_of(outcome.observation) <= budget
        info = outcome.info
    assert len(outcome.observation) < len(whole.observation)


def test_a_copy_in_the_middle_goes_on_with_its_budget() -> None:
    env = parrot(*["30"] * 6, max_prompt_tokens=40)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert other.step("9").observation == copy.deepcopy(env).step("9").observation
        assert said(other.episode.conversation())[-1] == "7: " + "x" * 9


def test_the_game_itself_is_the_same_with_a_budget() -> None:
    back, native = vfgym.to_gym(vfgym.to_chat("CartPole-v1", max_prompt_tokens=700)), gym.make("CartPole-v1")
    np.testing.assert_equal(back.reset(seed=3), native.reset(seed=3))
    for action in (0, 1, 1, 0, 1, 0, 0, 1):
        np.testing.assert_equal(back.step(action), native.step(action))


def test_without_limits_the_library_builds_prompts_as_fast_as_ever() -> None:
    assert "get_prompt_messages" not in Parrot().replaced_hooks()
    assert "get_prompt_messages" in Parrot(images=1).replaced_hooks()
    assert "get_prompt_messages" in Parrot(max_prompt_tokens=10).replaced_hooks()


def test_wrapped_ids_take_the_limits() -> None:
    env: Any = gym.make("gymnasium/CartPole-v1", max_prompt_tokens=900, images=2, history=3, disable_env_checker=True)
    env = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()), disable_env_checker=True)
    env.reset(seed=0)
    for action in "0101":
        conversation, *_ = env.step(action)
    assert tokens_of(conversation) <= 900


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"images": 0}, "images must be a number of pictures from 1"),
        ({"images": "all"}, "images must be"),
        ({"max_prompt_tokens": 0}, "max_prompt_tokens must be a number of tokens from 1"),
        ({"max_prompt_tokens": 2.5}, "max_prompt_tokens must be"),
        ({"max_prompt_tokens": 9, "count_tokens": 4}, "count_tokens must be a function"),
        ({"count_tokens": len}, "count_tokens counts what max_prompt_tokens limits"),
    ],
)
def test_limits_that_cannot_be_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        vfgym.to_chat("CartPole-v1", **options)


@pytest.mark.parametrize("options", [{"images": 1}, {"max_prompt_tokens": 900}])
def test_self_play_shows_each_player_its_whole_conversation(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="cannot be limited in self-play"):
        vfgym.TextArenaEnv("Nim-v0", opponents="self", **options)


def pictures(conversation: list[Any]) -> list[int]:
    """Return the places of the messages with a picture."""
    return [
        place
        for place, message in enumerate(conversation)
        for part in (message.content if isinstance(message.content, list | tuple) else ())
        if part["type"] == "image_url"
    ]


def frames(*answers: Any, **options: Any) -> Any:
    env = vfgym.to_chat(Brightening, blocking=False, **options)
    env.reset(seed=0)
    for answer in answers:
        env.step(answer)
    return env


@pytest.mark.parametrize("images", [1, 2, 3])
def test_the_newest_pictures_are_shown_and_a_note_stands_for_each_older_one(images: int) -> None:
    pytest.importorskip("PIL")
    env, free = frames("0", "1", "0", images=images), frames("0", "1", "0")
    shown, whole = env.episode.conversation(), free.episode.conversation()
    assert pictures(whole) == [0, 2, 4, 6]
    assert pictures(shown) == [0, 2, 4, 6][-images:]
    for place in [0, 2, 4, 6][:-images]:
        assert shown[place].content[-1] == {"type": "text", "text": OLDER_PICTURE}
    assert shown[0].content[0] == whole[0].content[0]
    assert [shown[place] for place in pictures(shown)] == [whole[place] for place in pictures(shown)]
    env.truncate()
    free.truncate()
    assert env.state["completion"] == free.state["completion"], "results hold all pictures"
    assert env.state["prompt"] == free.state["prompt"]


def test_an_answer_that_names_no_action_takes_no_picture_away() -> None:
    pytest.importorskip("PIL")
    env = frames("0", "jump", "jump", images=1)
    assert pictures(env.episode.conversation()) == [2]


def test_a_tools_result_keeps_its_place_without_its_picture() -> None:
    pytest.importorskip("PIL")
    calls = [AssistantMessage(None, tool_calls=[ToolCall(f"call_{number}", "act", '{"action": 1}')]) for number in range(3)]
    shown = frames(*calls, images=1, as_tool=True).episode.conversation()
    assert [message.role for message in shown] == ["user", *["assistant", "tool", "user"] * 3]
    assert pictures(shown) == [9]
    assert shown[3].content == [{"type": "text", "text": OLDER_PICTURE}]


@pytest.mark.parametrize("history", [0, 1, 2])
def test_pictures_and_moves_are_limited_together(history: int) -> None:
    pytest.importorskip("PIL")
    shown = frames(*"010101", images=1, history=history).episode.conversation()
    assert len(shown) == 1 + 2 * history
    assert pictures(shown) == [2 * history]


@pytest.mark.parametrize("images", [None, 1])
def test_a_picture_counts_as_so_many_tokens(images: int | None) -> None:
    pytest.importorskip("PIL")
    env = vfgym.to_chat(Brightening, blocking=False, prompt="Look.", max_prompt_tokens=3 * PICTURE_TOKENS, images=images)
    env.reset(seed=0)
    for _ in range(20):
        shown = env.step("0").observation
        assert tokens_of(shown) <= 3 * PICTURE_TOKENS
    assert len(pictures(shown)) == (2 if images is None else 1)
    assert len(shown) == (3 if images is None else 41), "notes are much shorter than pictures"


def test_a_picture_too_many_in_the_first_prompt_is_left_out_of_it() -> None:
    class Album(Parrot):
        def begin_game(self, *args: Any) -> list[vfgym.Message]:
            picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
            return [vfgym.UserMessage([{"type": "text", "text": "Compare."}, picture, picture, picture])]

    env = Album(images=2, blocking=False)
    shown, _ = env.reset(seed=0)
    assert [part["type"] for part in shown[0].content] == ["text", "text", "image_url", "image_url"]


def text_of(conversation: list[Any]) -> str:
    """Return all that stands in a conversation."""
    return "\n".join(content_text(message["content"] or "") for message in conversation)


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


# The parts


@pytest.mark.parametrize(
    ("given", "limits", "drops_moves"),
    [
        ((None, None, None, None), False, False),
        ((0, None, None, None), True, True),
        ((None, 1, None, None), True, False),
        ((None, None, 1, None), True, True),
        ((None, None, np.int64(5), len), True, True),
    ],
)
def test_zero_is_a_limit_and_none_is_not(given: Any, limits: bool, drops_moves: bool) -> None:
    made = make_limits(*given)
    assert (bool(made), made.drop_moves) == (limits, drops_moves)
    assert (made.moves, made.images, made.tokens) == given[:3]
    assert made.count_tokens is (given[3] or estimate_tokens)


def test_what_counts_of_a_message_is_all_that_is_sent() -> None:
    limits = PromptLimits(count_tokens=len)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    call = ToolCall("call_1", "act", "{}")
    assert limits.count([vfgym.UserMessage("abc"), vfgym.UserMessage([{"type": "text", "text": "de"}, picture])]) == 5 + PICTURE_TOKENS
    assert limits.count([AssistantMessage("a", reasoning_content="bc", tool_calls=[call, call])]) == 3 + 2 * len("act{}")
    assert limits.count([]) == 0


def test_a_history_knows_what_is_shown_of_it() -> None:
    limits = PromptLimits(tokens=100, count_tokens=len)
    history = PromptHistory.begin([vfgym.UserMessage("begin")], limits)
    assert (history.last_observation(), history.first, history.total) == (None, 0, 0)
    turns = [("a", "one", True), ("bb", "what?", False), ("ccc", "two", True), ("d", "what?", False)]
    replies = []
    for answer, reply, is_move in turns:
        replies.append([vfgym.UserMessage(reply)])
        history.add([AssistantMessage(answer)], replies[-1], limits, is_move=is_move)
    assert (history.tokens, history.total, history.ends) == ([4, 7, 6, 6], 23, [1, 3])
    assert history.last_feedback() is None
    for first, total, observation in ((1, 19, "one"), (2, 12, "one"), (3, 6, "two"), (1, 6, "two"), (4, 0, "two")):
        history.drop_before(first)
        shown = history.last_observation()
        assert shown is not None
        assert (history.total, said(shown)) == (total, [observation])
    assert history.last_feedback() == replies[-1]
    history.add([AssistantMessage("e")], [vfgym.UserMessage("three")], limits, is_move=True)
    history.drop_before(5)
    assert history.last_feedback() is None


def test_pictures_are_left_out_oldest_first_and_save_their_tokens() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    limits = PromptLimits(images=1, tokens=5000, count_tokens=len)
    history = PromptHistory.begin([vfgym.UserMessage([picture])], limits)
    for _ in range(2):
        history.add([], [vfgym.UserMessage([picture])], limits, is_move=True)
    note = {"type": "text", "text": OLDER_PICTURE}
    assert [message.content for message in (*history.prompt, *history.rendered[0], *history.rendered[1])] == [[note], [note], [picture]]
    assert (history.tokens, history.total) == ([len(OLDER_PICTURE), PICTURE_TOKENS], len(OLDER_PICTURE) + PICTURE_TOKENS)
    assert [reply[0].content for reply in history.replies] == [[picture], [picture]], "what was replied is kept as it was"
