"""`TextArenaEnv`: guesses in tags, the task's secret word, feedback of one's own; and any other game, opponents included."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.models import Model, texts
from tests.verifiers_compat.test_two_faces import comparable
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.testing import ScriptedClient, check_environment
from vfgym.wrappers.pettingzoo import to_pettingzoo

pytest.importorskip("textarena", reason="the extra textarena is not installed")

from vfgym.wrappers.textarena.env import TextArenaEnv as ChatTextArenaEnv


def guess(move: str) -> str:
    return f"<think>So [wrong] it is not.</think><guess>{move}</guess>"


def wordle(**kwargs: Any) -> vf.TextArenaEnv:
    return vf.TextArenaEnv(**{"num_train_examples": 6, **kwargs})


def test_rows_are_what_the_game_tells_first_and_its_secret_word() -> None:
    env = wordle(num_eval_examples=2, seed=4, system_prompt="Play.")
    train, evaluation = list(env.get_dataset()), list(env.get_eval_dataset())
    assert (len(train), len(evaluation)) == (6, 2)
    for row in (*train, *evaluation):
        assert row["question"].startswith("You are Playing Wordle.")
        assert [message["content"] for message in row["prompt"]] == ["Play.", row["question"]]
        assert re.fullmatch("[a-z]{5}", row["answer"])
    assert len({row["answer"] for row in (*train, *evaluation)}) > 4
    assert [row["example_id"] for row in evaluation] == [0, 1]
    assert list(env.get_dataset(n=3)) == train[:3]
    assert wordle(seed=4).get_dataset(n=1)["answer"] == [train[0]["answer"]]


def test_each_rollout_plays_for_the_word_of_its_task() -> None:
    env, model = wordle(), Model(lambda number, state: guess(f"[{state['answer']}]"))
    before = random.getstate()
    outputs = env.evaluate_sync(model, "m", max_concurrent=6)["outputs"]
    assert (random.getstate(), model.calls) == (before, 6)
    assert [(output["answer"], output["reward"]) for output in outputs] == [(answer, 1.0) for answer in env.get_dataset()["answer"]]
    assert {output["stop_condition"] for output in outputs} == {"has_final_env_response"}
    assert all("guessed the word correctly" in output["completion"][1]["content"] for output in outputs)


@pytest.mark.parametrize("answer", ["CRANE", "word", "longer", "", None, 1.5])
def test_a_word_that_the_game_cannot_hide_is_refused(answer: Any) -> None:
    env = wordle()
    with pytest.raises(ConfigurationError, match="answer"):
        env.reset(options={"task": {"question": "?", "answer": answer}})
    env.close()


def test_a_game_without_a_secret_word_takes_its_seed() -> None:
    env = vf.TextArenaEnv("Blackjack-v0", num_train_examples=2, seed=7)
    row = env.get_dataset()[1]
    assert row["answer"] == "8"
    model = Model(lambda number, state: guess("[Stand]"))
    first, again = (env.generate_sync([given], model, "m")["outputs"][0] for given in (row, {"answer": "8"}))
    assert texts(first["prompt"], "user") == texts(again["prompt"], "user") == [row["question"]]
    assert texts(first["completion"], "user") == texts(again["completion"], "user")
    with pytest.raises(ConfigurationError, match="seed of its game in its answer"):
        env.reset(options={"task": {"question": "?", "answer": "stand"}})


def test_only_what_stands_in_the_tags_is_played() -> None:
    env = wordle(feedback_fn=str.lower)
    env.reset(options={"task": {"question": "?", "answer": "crane"}})
    assert "s t o n e\nx x x g g" in env.step("<think>[crane] is too easy.</think><guess>[stone]</guess>").observation[-1].content
    missing = "There are no <guess> tags with a move in your answer."  # and the guess of an earlier message is not made again
    for empty in ("I say [crane].", "<guess> </guess>", "<guess>[crane]", None):
        message = vf.AssistantMessage(content=empty) if empty is not None else vf.AssistantMessage(reasoning_content="[crane]")
        assert env.step(message).observation[-1].content == missing, "as it is, since the game did not tell it"
    assert env.step("<guess>crane, I think</guess>").observation[-1].content.startswith("you attempted"), "it has the tags, and no word"
    outcome = env.step("<guess>[crane]</guess>")
    assert (outcome.reward, "Congratulations" in outcome.observation[-1].content) == (1.0, True), "the last one is left as it is"
    env.close()
    env = wordle(parser=vf.ThinkParser())
    env.reset(seed=0)
    assert env.step("[crane]").observation[-1].content == "There is no move in your answer."
    move = vf.AssistantMessage(content="[crane]")
    assert env.message_of(move) == move, "without tags it is the whole message"
    env.close()


def test_the_form_of_an_answer_is_told_unless_a_system_prompt_takes_its_place() -> None:
    shown = wordle().reset(seed=0)[0]
    assert [message.role for message in shown] == ["system", "user"]
    assert "your move in <guess> tags" in shown[0].content
    assert shown[0].content.endswith("<think>\n...\n</think>\n<guess>\n...\n</guess>")
    assert wordle().get_dataset(n=1)[0]["prompt"][0]["content"] == shown[0].content
    own_tags = wordle(parser=vf.XMLParser(["move"], answer_field="move")).reset(seed=0)[0]
    assert own_tags[0].content.endswith("\n\n<move>\n...\n</move>")
    assert wordle(system_prompt="Play.").reset(seed=0)[0][0].content == "Play."
    for without in ({"system_prompt": ""}, {"parser": vf.Parser()}, {"message_type": "completion"}):
        assert len(wordle(**without).reset(seed=0)[0]) == 1


def test_a_game_that_takes_any_text_does_not_get_a_message_without_tags() -> None:
    env = vf.TextArenaEnv("SimpleNegotiation-v0", num_train_examples=1, max_invalid_moves=2)
    env.reset(seed=0)
    table = env.state.session.game
    turn, before = table.turn, [*table.raw.state.logs]
    outcome = env.step("[Defect] [Propose] hello")
    assert (table.turn, table.raw.state.logs) == (turn, before)
    assert not outcome.terminated
    outcome = env.step("[Deny]")
    assert (outcome.terminated, outcome.info["stop_condition"]) == (True, "too_many_invalid_moves")
    env.close()


class FirstFree:
    """An opponent that takes the first square that it did not name before."""

    def __init__(self, form: str) -> None:
        self.form = form

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        taken = {
            square for message in observation for square in re.findall(r"\[(\d)\]", message["content"]) if message["role"] == "assistant"
        }
        return self.form.format(next(f"[{square}]" for square in "012345678" if square not in taken))


GAMES: dict[str, tuple[Callable[[], vf.TextArenaEnv], list[str]]] = {
    "Wordle": (lambda: wordle(system_prompt="Play."), ["[apple]", "[crane]", "nothing", "[crane]"]),
    "Blackjack": (lambda: vf.TextArenaEnv("Blackjack-v0", num_train_examples=6), ["[Hit]", "[Stand]"] * 20),
    "TicTacToe against random moves": (
        lambda: vf.TextArenaEnv("TicTacToe-v0", num_train_examples=6, seat=1, max_turns=3),
        ["[4]", "[0]", "[8]", "[2]"],
    ),
    "TicTacToe against an agent": (
        lambda: vf.TextArenaEnv("TicTacToe-v0", num_train_examples=6, opponents=FirstFree("<guess>{}</guess>")),
        ["[4]", "[8]", "[6]", "[2]", "[7]"],
    ),
}


@pytest.mark.parametrize("name", GAMES)
def test_tags_are_all_that_differs_from_the_bare_chat_environment_and_from_a_rollout(name: str) -> None:
    make, moves = GAMES[name]
    env, seen, answers = make(), [], [guess(move) for move in moves]
    env.add_rubric(vf.Rubric(lambda state: seen.append(state) or 0.0))
    opponents = FirstFree("{}") if isinstance(env._opponents, FirstFree) else "random"
    bare = ChatTextArenaEnv(env.game, seat=env.seat, opponents=opponents, max_turns=env.max_turns)

    def scored() -> dict[str, Any]:
        return {key: value for key, value in comparable(seen.pop()).items() if key != "opponents"}  # seats, each with its own identity

    for seed in range(3):
        env.reset(seed=seed)
        bare.reset(seed=seed)
        for answer, move in zip(answers, moves, strict=True):
            tagged, plain = env.step(answer), bare.step(move)
            assert tagged[1:4] == plain[1:4]
            assert texts(tagged.observation, "user") == texts(plain.observation, "user")
            if plain.terminated or plain.truncated:
                break
        assert plain.terminated or plain.truncated
        stepped = scored()
        env.generate_sync([env.get_dataset()[seed]], ScriptedClient(answers), "m", independent_scoring=bool(seed % 2))
        assert scored() == stepped
    env.close()
    bare.close()


def test_opponents_are_told_the_form_of_answers_and_keep_to_it() -> None:
    """Only what stands in the tags is said to the game, and so to the others."""
    shown: list[Any] = []

    def thinking(observation: Any, info: dict[str, Any]) -> str:
        shown.append(observation)
        return "Not [0]. <guess>[8]</guess>"

    env = vf.TextArenaEnv("TicTacToe-v0-raw", num_train_examples=1, opponents=thinking)
    prompt, _ = env.reset(seed=0)
    told = env.step("Not [1]: <guess>[4]</guess>").observation[-1].content
    assert "[Player 1] [8]" in told
    assert "Not" not in told
    assert shown[0][0] == prompt[0]
    assert "[Player 0] [4]" in shown[0][1].content
    env.close()
    env = vf.TextArenaEnv("TicTacToe-v0", num_train_examples=1, opponents=lambda observation, info: "[8]", max_invalid_moves=3)
    env.reset(seed=0)
    assert "the opponent at the seat of 1 found no valid move in 3 answers" in env.step(guess("[4]")).info["error"]


def test_the_form_holds_for_the_agents_of_pettingzoo() -> None:
    pytest.importorskip("pettingzoo")
    aec = to_pettingzoo(vf.TextArenaEnv("TicTacToe-v0", num_train_examples=1))
    aec.reset(seed=0)
    conversation, *_, info = aec.last()
    assert "your move in <guess> tags" in conversation[0].content
    assert "legal_actions" not in info
    aec.step("[4]")
    assert aec.agent_selection == "player_0"
    assert aec.last()[0][-1].content == "There are no <guess> tags with a move in your answer."
    aec.step("I think of [0], but: <guess>4</guess>")
    assert "[Player 0] [4]" in aec.last()[0][-1].content
    for agent in aec.agent_iter():
        over = any(aec.last()[2:4])
        aec.step(None if over else aec.action_space(agent).sample())


@pytest.mark.parametrize("name", GAMES)
def test_every_promise_of_a_chat_environment_holds(name: str) -> None:
    assert [check for check in check_environment(GAMES[name][0]) if not check.passed] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"game": "Wordle-v00"}, "Did you mean `Wordle-v0`"),
        ({"num_train_examples": -1}, "num_train_examples must be a whole number"),
        ({"game": "TicTacToe-v0", "opponents": "self"}, "plays one seat"),
        ({"dataset": [{"question": "?"}]}, "takes no 'dataset'"),
    ],
)
def test_arguments_that_cannot_work_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises((ConfigurationError, UnknownArgument), match=says):
        wordle(**arguments)
