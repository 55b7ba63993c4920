"""`images` and `max_prompt_tokens`: a prompt holds the newest pictures and moves, and results hold everything."""

from __future__ import annotations

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
from tests.wrappers.games.nim import NimEnv
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, ToolCall, content_text
from vfgym.state import State
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


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def parrot(*answers: str, **options: Any) -> Any:
    env = Parrot(blocking=False, **options)
    env.reset(seed=0)
    for answer in answers:
        env.step(answer)
    return env


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
        assert history is None or sum(bool(answer.strip()) for answer in rest[::2]) <= history
        if not is_whole and history is None:
            more = [f"Ask for letters.\n\n{EARLIER_MOVES}\n\n{whole[-len(rest) - 3]}", *whole[-len(rest) - 2 :]]
            before = whole[: len(whole) - len(rest) - 2]
            if before[1:] and before[-1] != "How many?":  # the turn before those that are shown follows a move
                assert sum(map(estimate_tokens, more)) > budget, "another turn would be too much"
    env.truncate()
    assert [whole[0], *said(env.state["completion"])] == whole


RULES, LEFT_OUT = "Ask for letters.", f"Ask for letters.\n\n{EARLIER_MOVES}\n\n"


@pytest.mark.parametrize(
    ("answers", "options", "expected"),
    [
        (["1"] * 3, {"history": 1}, [f"{RULES}\n\n2: x", "1", "3: x"]),  # alone it says nothing of what is left out
        (["40"] * 5, {"max_prompt_tokens": 46}, [f"{LEFT_OUT}3: {'x' * 40}", "40", f"4: {'x' * 40}", "40", f"5: {'x' * 40}"]),
        (["40"] * 5, {"max_prompt_tokens": 45, "system_prompt": "Be brief. " * 4}, ["Be brief. " * 4, f"{LEFT_OUT}4: {'x' * 40}", "40"]),
        (["40"] * 5, {"max_prompt_tokens": 16, "count_tokens": lambda text: len(text.split())}, [f"{LEFT_OUT}3: {'x' * 40}", "40"]),
        (["1", "400"], {"max_prompt_tokens": 20}, [f"{LEFT_OUT}2: {'x' * 400}"]),  # what is too long is shown with the rules
        (["1", " " * 400], {"max_prompt_tokens": 20}, [f"{LEFT_OUT}1: x\n\nHow many?"]),  # without the answer
        ([" " * 400], {"max_prompt_tokens": 20}, [f"{RULES}\n\n0:\n\n{EARLIER_MOVES}\n\nHow many?"]),
    ],
)
def test_what_a_prompt_begins_with_says_that_moves_are_left_out(answers: list[str], options: dict[str, Any], expected: list[str]) -> None:
    env = parrot(*answers, **options)
    assert said(env.episode.conversation())[: len(expected)] == expected
    env.step("1")
    if budget := options.get("max_prompt_tokens"):
        assert tokens_of(env.episode.conversation(), options.get("count_tokens", estimate_tokens)) <= budget


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


def test_a_first_prompt_that_is_too_long_is_an_error_that_says_both_numbers() -> None:
    env = vfgym.to_chat("CartPole-v1", max_prompt_tokens=50)
    with pytest.raises(ConfigurationError, match=r"alone are \d{3} tokens, and max_prompt_tokens is 50"):
        env.reset(seed=0)


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


def pictures(conversation: list[Any]) -> list[int]:
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


@pytest.mark.parametrize(
    ("make", "options", "problem"),
    [
        (vfgym.to_chat, {"images": 0}, "images must be a number of pictures from 1"),
        (vfgym.to_chat, {"images": "all"}, "images must be"),
        (vfgym.to_chat, {"max_prompt_tokens": 0}, "max_prompt_tokens must be a number of tokens from 1"),
        (vfgym.to_chat, {"max_prompt_tokens": 2.5}, "max_prompt_tokens must be"),
        (vfgym.to_chat, {"max_prompt_tokens": 9, "count_tokens": 4}, "count_tokens must be a function"),
        (vfgym.to_chat, {"count_tokens": len}, "count_tokens counts what max_prompt_tokens limits"),
        (NimEnv, {"opponents": "self", "images": 1}, "cannot be limited in self-play"),
        (NimEnv, {"opponents": "self", "max_prompt_tokens": 900}, "cannot be limited in self-play"),
    ],
)
def test_limits_that_cannot_be_are_refused(make: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        make(*(["CartPole-v1"] if make is vfgym.to_chat else []), **options)


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


@pytest.mark.parametrize(
    ("answers", "history", "length", "places"),
    [(["0", "jump", "jump"], None, 7, [2]), *((list("010101"), n, 1 + 2 * n, [2 * n]) for n in (0, 1, 2))],
)
def test_pictures_and_moves_are_limited_together(answers: list[str], history: int | None, length: int, places: list[int]) -> None:
    """An answer that names no action takes no picture away."""
    pytest.importorskip("PIL")
    shown = frames(*answers, images=1, history=history).episode.conversation()
    assert (len(shown), pictures(shown)) == (length, places)


def test_a_tools_result_keeps_its_place_without_its_picture() -> None:
    pytest.importorskip("PIL")
    calls = [AssistantMessage(None, tool_calls=[ToolCall(f"call_{number}", "act", '{"action": 1}')]) for number in range(3)]
    shown = frames(*calls, images=1, as_tool=True).episode.conversation()
    assert [message.role for message in shown] == ["user", *["assistant", "tool", "user"] * 3]
    assert pictures(shown) == [9]
    assert shown[3].content == [{"type": "text", "text": OLDER_PICTURE}]


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


def shown_text(conversation: list[Any]) -> str:
    return "\n".join(content_text(message["content"] or "") for message in conversation)


def test_a_limited_history_shows_the_board_after_an_illegal_move() -> None:
    env = vfgym.PettingZooEnv("classic/tictactoe_v3", history=0, opponents=lambda conversation, info: info["legal_actions"][0])
    env.reset(seed=0)
    env.step("<action>4</action>")
    shown, *_ = env.step("<action>4</action>")
    assert "You cannot play 4 now." in shown_text(shown)
    assert "| X |" in shown_text(shown)


@pytest.mark.parametrize(
    "make", [lambda: vfgym.PettingZooEnv("classic/tictactoe_v3", history=0), lambda: vfgym.TextArenaEnv("ConnectFour-v0", history=0)]
)
def test_a_limited_history_forgets_the_first_board(make: Any) -> None:
    """The rules stay, and not the board as it was before the first move."""
    env = make()
    conversation, info = env.reset(seed=0)
    first_board = {"classic/tictactoe_v3": " 0 | 3 | 6", "ConnectFour-v0": "\n".join([". . . . . . ."] * 6)}[env.game]
    assert first_board in shown_text(conversation)
    shown, *_ = env.step("<action>0</action>" if isinstance(env, vfgym.PettingZooEnv) else info["legal_actions"][0])
    assert first_board not in shown_text(shown)


@pytest.mark.parametrize(
    ("given", "limits", "drops_moves"),
    [
        ((None, None, None, None), False, False),
        ((0, None, None, None), True, True),
        ((None, 1, None, None), True, False),
        ((None, None, 1, None), True, True),
        ((3, 2, np.int64(5), len), True, True),
    ],
)
def test_zero_is_a_limit_and_none_is_not(given: Any, limits: bool, drops_moves: bool) -> None:
    made = make_limits(*given)
    assert (bool(made), made.drop_moves) == (limits, drops_moves)
    assert (made.moves, made.images, made.tokens) == given[:3]
    assert made.count_tokens is (given[3] or estimate_tokens)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        *(
            ((wrong, None, None, None), f"history must be a number of moves from 0, or None for all of them; got {wrong!r}")
            for wrong in (-1, 0.5, "1")
        ),
        *(
            ((None, wrong, None, None), f"images must be a number of pictures from 1, or None for all of them; got {wrong!r}")
            for wrong in (0, -1)
        ),
        ((None, None, 0, None), "max_prompt_tokens must be a number of tokens from 1, or None for no limit; got 0"),
        ((None, None, 1, 3), "count_tokens must be a function from a text to its number of tokens, got 3"),
        ((1, 1, None, len), "count_tokens counts what max_prompt_tokens limits: give that, too"),
    ],
    ids=str,
)
def test_a_limit_that_cannot_be_is_told_by_its_name(given: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_limits(*given)
    assert str(caught.value) == problem


def test_a_first_prompt_may_be_as_long_as_the_limit() -> None:
    prompt: list[vfgym.Message] = [vfgym.SystemMessage("abc"), vfgym.UserMessage("de")]
    assert PromptHistory.begin(prompt, PromptLimits(tokens=5, count_tokens=len)).prompt == prompt
    with pytest.raises(ConfigurationError, match="alone are 5 tokens, and max_prompt_tokens is 4"):
        PromptHistory.begin(prompt, PromptLimits(tokens=4, count_tokens=len))


def test_what_counts_of_a_message_is_all_that_is_sent() -> None:
    limits = PromptLimits(count_tokens=len)
    call = ToolCall("call_1", "act", "{}")
    assert limits.count([vfgym.UserMessage("abc"), vfgym.UserMessage([{"type": "text", "text": "de"}, PICTURE])]) == 5 + PICTURE_TOKENS
    assert limits.count([AssistantMessage("a", reasoning_content="bc", tool_calls=[call, call])]) == 3 + 2 * len("act{}")
    assert limits.count([]) == 0
    assert PromptLimits(tokens=1).count([AssistantMessage("four", reasoning_content="eight ch", tool_calls=[call])]) == 1 + 2 + 2


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
    limits = PromptLimits(images=1, tokens=5000, count_tokens=len)
    history = PromptHistory.begin([vfgym.UserMessage([PICTURE])], limits)
    for _ in range(2):
        history.add([], [vfgym.UserMessage([PICTURE])], limits, is_move=True)
    note = {"type": "text", "text": OLDER_PICTURE}
    prompt = PromptHistory.begin([vfgym.UserMessage([PICTURE, PICTURE])], limits).prompt  # too many in the first prompt
    assert prompt[0].content == [note, PICTURE]
    assert [message.content for message in (*history.prompt, *history.rendered[0], *history.rendered[1])] == [[note], [note], [PICTURE]]
    assert (history.tokens, history.total) == ([len(OLDER_PICTURE), PICTURE_TOKENS], len(OLDER_PICTURE) + PICTURE_TOKENS)
    assert [reply[0].content for reply in history.replies] == [[PICTURE], [PICTURE]], "what was replied is kept as it was"
    history.drop_before(2)
    history.drop_before(1)
    assert (history.first, history.total) == (2, 0)
    text = {"type": "text", "text": "now"}
    history.add([], [vfgym.UserMessage("see"), vfgym.UserMessage([text, PICTURE, text])], limits, is_move=True)
    assert history.total == 3 + 3 + PICTURE_TOKENS + 3, "a picture of a turn that is not shown saves nothing now"
    history.add([], [vfgym.UserMessage([PICTURE])], limits, is_move=True)
    assert [message.content for message in history.rendered[2]] == ["see", [text, note, text]]
