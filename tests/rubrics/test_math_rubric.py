"""`MathRubric`: which responses are equal, and that no expression, loop, thread or fork keeps others from a verdict.

What holds for worker processes whatever they do is tested in `tests/workers`.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import gymnasium
import pytest

import vfgym
from vfgym import Parser, Rubric, RubricGroup, SingleTurnEnv, State
from vfgym.errors import ConfigurationError, Error, InfraError, MissingExtra, WorkerDied
from vfgym.rubrics import math_rubric
from vfgym.rubrics.math_rubric import MathRubric, VerificationTimeout, verify_response
from vfgym.state import RolloutTiming
from vfgym.workers import Workers

HOPELESS = "9^{9^{9}}"
"""An integer with 370 million digits: one operation of the interpreter, which only the end of the process stops."""


def boxed(text: str) -> str:
    return f"I think it is \\boxed{{{text}}}."


def asked(answer: str, **options: Any) -> SingleTurnEnv:
    return SingleTurnEnv(dataset=[{"question": "6 * 7?", "answer": answer}], rubric=MathRubric(**options))


def played(completion: str, answer: Any) -> State:
    row = {"prompt": [], "answer": answer}
    message = vfgym.AssistantMessage(completion)
    return State(input=row, task=row, completion=[message], trajectory=[], reward=None, metrics=None, timing=RolloutTiming())


async def scored(rubric: Rubric, completion: str, answer: Any = "1/2") -> State:
    state = played(completion, answer)
    await rubric.score_rollout(state)
    return state


# What is equal


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        *(("42", "42"), ("0.5", r"\frac{1}{2}"), (r"\frac{2}{4}", "0.5"), ("1 + x^2", "x^2+1"), ("{2, 1}", r"\{1,2\}")),
        *((r"\sqrt{8}", r"2\sqrt{2}"), ("1,000", "1000")),
    ],
)
async def test_equal_expressions_score_one(response: str, answer: str) -> None:
    assert await verify_response(response, answer, 50_000, 5) == 1.0
    state = await scored(MathRubric(), boxed(response), answer)
    assert (state["reward"], state["metrics"]) == (1.0, {"correct_answer": 1.0})
    assert "metrics_errors" not in state


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (boxed("43"), "42"),
        ("42", "42"),  # no box
        (r"\boxed{42", "42"),  # cut off
        (boxed(""), "42"),
        (boxed("42"), ""),
        (boxed(r"\frac{"), "42"),
        (boxed(r"\notacommand{\left("), "42"),
        (boxed("四十二"), "42"),
        (boxed("\ud800\x00"), "42"),
        ("<think>\\boxed{42}</think> no idea", "42"),
        (r"\boxed{42} or rather \boxed{43}", "42"),
    ],
)
async def test_wrong_unfinished_and_unreadable_responses_score_zero(completion: str, answer: str) -> None:
    state = await scored(MathRubric(), completion, answer)
    assert (state["reward"], "metrics_errors" in state) == (0.0, False)


async def test_answers_may_be_numbers_and_have_so_many_characters() -> None:
    assert (await scored(MathRubric(), boxed("42.0"), 42))["reward"] == 1.0
    rubric = MathRubric(max_verify_chars=5)
    assert (await scored(rubric, boxed("1/2+0"), "1/2"))["reward"] == 1.0
    assert (await scored(rubric, boxed("1/2+00"), "1/2"))["reward"] == 0.0
    assert await verify_response("1/2", "0.5", max_verify_chars=2) == 0.0
    assert await verify_response("é" * 50_000, "1/2") == 0.0
    assert await verify_response(" " * 49_000 + "0.5", "1/2") == 1.0


async def test_what_is_verified_is_what_cannot_be_told_from_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class Recorded:
        async def call(self, *args: Any, **options: Any) -> bool:
            calls.append((args, options))
            return True

    monkeypatch.setattr(math_rubric, "_workers", Recorded())
    rubric = MathRubric(timeout_seconds=2.5, max_verify_chars=3)
    told = [("0", 0, 1.0), ("1", "", 0.0), ("1", " ", 0.0), ("1", None, 0.0), ("", "1", 0.0), ("1000", "1", 0.0), ("1000", "1000", 0.0)]
    assert [(await scored(rubric, boxed(response), answer))["reward"] for response, answer, _ in told] == [reward for *_, reward in told]
    assert calls == []
    assert (await scored(rubric, boxed("0.5"), "1/2"))["reward"] == 1.0
    assert await verify_response("b", "a", timeout_seconds=1.5) == 1.0
    assert calls == [
        (("is_right", "1/2", "0.5"), {"cpu_seconds": 2.5, "memory_mb": 1024}),
        (("is_right", "a", "b"), {"cpu_seconds": 1.5, "memory_mb": 1024}),
    ]


# The rubric


async def test_correct_answer_comes_after_the_functions_that_are_given() -> None:
    seen: list[str] = []

    def brief(completion: Any, parser: Parser) -> float:
        seen.append(str(parser.parse_answer(completion)))
        return 1.0

    rubric = MathRubric(brief, weights=[0.5])
    assert [function.__name__ for function in rubric.funcs] == ["brief", "correct_answer"]
    assert rubric.weights == [0.5, 1.0]
    assert [function.range for function in rubric.functions] == [None, (0.0, 1.0)]
    state = await scored(rubric, boxed("0.5"))
    assert (state["reward"], seen) == (1.5, ["0.5"])


async def test_another_parser_reads_the_response() -> None:
    rubric = MathRubric(parser=Parser(lambda text: text.split("####")[-1]))
    assert (await scored(rubric, "so #### 0.5"))["reward"] == 1.0


async def test_it_can_be_called_and_stand_in_a_group() -> None:
    rubric = MathRubric()
    assert await rubric.correct_answer(rubric.parser, boxed("0.5"), "1/2") == 1.0
    assert await rubric.correct_answer(rubric.parser, boxed("1/2"), "1/2") == 1.0
    assert (await scored(RubricGroup([rubric, MathRubric()]), boxed("0.5")))["metrics"] == {"correct_answer": 2.0}


@pytest.mark.parametrize(
    "options",
    [
        *[{"timeout_seconds": value} for value in (0, -1, float("nan"), float("inf"), "5")],
        *[{"max_verify_chars": value} for value in (-1, 1.5)],
    ],
)
async def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(options))} must be"):
        MathRubric(**options)
    with pytest.raises(ConfigurationError, match=f"{next(iter(options))} must be"):
        await verify_response("1", "1", **options)
    MathRubric(max_verify_chars=0)


async def test_without_math_verify_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math_rubric, "_is_installed", lambda: False)
    with pytest.raises(MissingExtra, match=r"vfgym\[math\]"):
        MathRubric()
    with pytest.raises(MissingExtra, match=r"vfgym\[math\]"):
        await verify_response("1", "2")


async def test_it_can_be_copied_and_pickled() -> None:
    for rubric in (copy.deepcopy(MathRubric()), pickle.loads(pickle.dumps(MathRubric()))):
        assert (await scored(rubric, boxed("0.5")))["reward"] == 1.0


# Episodes


def test_stepping_scores_in_plain_code() -> None:
    env = asked(r"\frac{1}{2}")
    for answer, reward in (("0.5", 1.0), ("0.6", 0.0), (r"\frac{1}{2}", 1.0)):
        env.reset(seed=0)
        assert env.step(boxed(answer)).reward == reward


async def test_hundreds_at_once_get_their_own_verdicts() -> None:
    verdicts = await asyncio.gather(*(verify_response(f"{n // 2}.5", rf"\frac{{{2 * n + 1}}}{{2}}") for n in range(200)))
    assert verdicts == [float(n // 2 == n) for n in range(200)]


def test_forked_children_ask_too() -> None:
    assert asyncio.run(_one_verdict()) == 1.0  # the parent's workers run
    envs = gymnasium.vector.AsyncVectorEnv([lambda: Scores()] * 2, context="fork")
    try:
        envs.reset(seed=0)
        assert list(envs.step([0, 1])[1]) == [0.0, 1.0]
    finally:
        envs.close()
    assert asyncio.run(_one_verdict()) == 1.0


async def _one_verdict() -> float:
    return await verify_response("0.5", "1/2")


class Scores(gymnasium.Env[Any, Any]):
    """A chat environment behind a plain space: action 1 is the right answer."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.env = asked("1/2")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        self.env.reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> Any:
        _, reward, terminated, truncated, _ = self.env.step(boxed("0.5" if action else "0.6"))
        return 0, reward, terminated, truncated, {}


# What goes wrong


async def test_hopeless_expressions_hold_up_nobody() -> None:
    """They are more than there are cores, and have more time than the others together could take."""
    hopeless = [asyncio.ensure_future(verify_response(HOPELESS, str(n), timeout_seconds=600)) for n in range(5)]
    rubric = MathRubric()
    good = await asyncio.gather(*(scored(rubric, boxed(f"{n}.0"), str(n)) for n in range(20)))
    assert [state["reward"] for state in good] == [1.0] * 20
    assert not any(task.done() for task in hopeless)
    for task in hopeless:
        task.cancel()
    await asyncio.gather(*hopeless, return_exceptions=True)


async def test_a_time_out_is_not_mistaken_for_a_wrong_answer() -> None:
    rubric = MathRubric(timeout_seconds=0.5)
    hopeless, wrong, right = await asyncio.gather(*(scored(rubric, boxed(text), "4") for text in (HOPELESS, "5", "4.0")))
    assert [state["reward"] for state in (hopeless, wrong, right)] == [0.0, 0.0, 1.0]
    assert hopeless["metrics"] == wrong["metrics"] == {"correct_answer": 0.0}
    assert hopeless["metrics_errors"]["correct_answer"].startswith("VerificationTimeout(")
    assert "metrics_errors" not in wrong


async def test_a_time_out_names_the_expressions() -> None:
    with pytest.raises(VerificationTimeout, match=r"within 0\.2 s of CPU time on '9\^\{9\^\{9\}\}' for '4'") as caught:
        await verify_response(HOPELESS, "4", timeout_seconds=0.2)
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, Error)


async def test_an_expression_is_verified_again_where_a_process_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: whatever needs all memory would kill one worker after the other."""
    deaths = 0

    async def killed(workers: Workers, *arguments: Any, **limits: Any) -> Any:
        nonlocal deaths
        deaths += 1
        raise WorkerDied("killed")

    monkeypatch.setattr(Workers, "call", killed)
    with pytest.raises(InfraError, match="killed"):
        await verify_response("0.5", "1/2")
    assert deaths == 2
