"""`Rubric.funcs` and `Rubric.weights` are lists: what is written to them counts, whenever it is written."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from tests.verifiers_compat.environments import ROW, WAYS, replacing, right, single
from tests.verifiers_compat.models import Model, evaluated, rolled_out


def one(completion: Any) -> float:
    return 1.0


def ten(completion: Any) -> float:
    return 10.0


def grouped(completions: Any) -> list[float]:
    return [100.0 for _ in completions]


class Own(vf.Rubric):
    """Sets its lists itself."""

    def __init__(self) -> None:
        super().__init__()
        self.funcs = [self.hundred]
        self.weights = [0.5]

    def hundred(self, completion: Any) -> float:
        return 100.0


async def reward_and_metrics(rubric: vfgym.Rubric) -> tuple[float, dict[str, float]]:
    env = vf.SingleTurnEnv(dataset=[{"question": "q"}], rubric=rubric)
    [output] = (await env.evaluate(Model(lambda number, state: "x"), "m"))["outputs"]
    assert output["error"] is None
    return output["reward"], {name: value for name, value in output["metrics"].items() if name != "num_turns"}


WRITES: list[tuple[Callable[[vf.Rubric], Any], float, dict[str, float]]] = [
    (lambda rubric: rubric.weights.__setitem__(0, 3.0), 3.0, {"one": 1.0}),
    (lambda rubric: setattr(rubric, "weights", [4.0]), 4.0, {"one": 1.0}),
    (lambda rubric: (setattr(rubric, "funcs", [one, ten]), setattr(rubric, "weights", [1, 2])), 21.0, {"one": 1.0, "ten": 10.0}),
    (lambda rubric: (setattr(rubric, "weights", [1, 2]), setattr(rubric, "funcs", [one, ten])), 21.0, {"one": 1.0, "ten": 10.0}),
    (lambda rubric: (rubric.funcs.append(ten), rubric.weights.append(0.5)), 5.5, {"one": 1.0, "ten": 10.0}),
    (lambda rubric: (rubric.weights.append(0.5), rubric.funcs.append(ten)), 5.5, {"one": 1.0, "ten": 10.0}),
    (lambda rubric: rubric.funcs.append(ten), 10.5, {"one": 1.0, "ten": 10.0}),
    (lambda rubric: (rubric.funcs.insert(0, ten), rubric.weights.insert(0, 0.0)), 0.5, {"one": 1.0, "ten": 10.0}),
    (lambda rubric: (rubric.funcs.clear(), rubric.weights.clear()), 0.0, {}),
    (lambda rubric: rubric.funcs.__setitem__(0, ten), 5.0, {"ten": 10.0}),
    (lambda rubric: (rubric.weights.append(0.1), rubric.add_reward_func(ten, 0.2)), 2.5, {"one": 1.0, "ten": 10.0}),
    (lambda rubric: (rubric.add_reward_func(ten, 0.2), rubric.weights.__setitem__(1, 2.0)), 20.5, {"one": 1.0, "ten": 10.0}),
    (lambda rubric: (rubric.funcs.append(grouped), rubric.weights.append(1)), 100.5, {"one": 1.0, "grouped": 100.0}),
]


@pytest.mark.parametrize(("write", "reward", "metrics"), WRITES)
async def test_what_is_written_counts(write: Callable[[vf.Rubric], Any], reward: float, metrics: dict[str, float]) -> None:
    rubric = vf.Rubric([one], weights=[0.5])
    write(rubric)
    assert await reward_and_metrics(rubric) == (reward, metrics)


async def test_augmented_assignments_and_lists_that_a_subclass_sets_count() -> None:
    rubric = vf.Rubric([one])
    rubric.funcs += [ten]
    rubric.weights += [0.5]
    assert await reward_and_metrics(rubric) == (6.0, {"one": 1.0, "ten": 10.0})
    assert (rubric.funcs, rubric.weights, rubric.metric_names) == ([one, ten], [1.0, 0.5], ["one", "ten"])
    assert await reward_and_metrics(Own()) == (50.0, {"hundred": 100.0})


def test_a_list_that_was_taken_goes_on_telling() -> None:
    rubric = vf.Rubric([one])
    funcs, weights = rubric.funcs, rubric.weights
    rubric.add_reward_func(ten, 0.5)
    assert (rubric.funcs, rubric.weights) == (funcs, weights) == ([one, ten], [1.0, 0.5])
    with pytest.raises(vf.Error, match="weight"):
        weights[0] = "much"  # type: ignore[call-overload]


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_has_lists_of_its_own(twin_of: Callable[[Any], Any]) -> None:
    rubric = vf.Rubric([one], weights=[0.5])
    rubric.funcs.append(ten)
    twin = twin_of(rubric)
    twin.weights[1] = 7.0
    assert [function.weight for function in twin.functions] == [0.5, 7.0]
    assert [function.weight for function in rubric.functions] == [0.5, 1.0]


async def test_a_cleanup_handler_is_called_with_the_scored_state() -> None:
    seen: list[Any] = []
    rubric = vf.Rubric([one])
    rubric.add_cleanup_handler(lambda state: seen.append(state["reward"]))
    await reward_and_metrics(rubric)
    assert seen == [1.0]


REFUSED: list[Callable[[vf.Rubric], Any]] = [
    lambda rubric: rubric.funcs.append(3),
    lambda rubric: rubric.funcs.extend([ten, 3]),
    lambda rubric: rubric.funcs.__setitem__(0, 3),
    lambda rubric: setattr(rubric, "funcs", [3]),
    lambda rubric: rubric.weights.__setitem__(0, "much"),
    lambda rubric: rubric.funcs.extend(1 / 0 for _ in "x"),
]


@pytest.mark.parametrize("write", REFUSED)
async def test_what_is_refused_does_not_stay(write: Callable[[vf.Rubric], Any]) -> None:
    rubric = vf.Rubric(funcs=[one], weights=[0.5])
    with pytest.raises((TypeError, ValueError, ZeroDivisionError)):
        write(rubric)
    assert (rubric.funcs, rubric.weights) == ([one], [0.5])
    rubric.funcs.append(ten)
    assert await reward_and_metrics(rubric) == (10.5, {"one": 1.0, "ten": 10.0})


async def test_parsers_that_never_call_their_base() -> None:
    @dataclass
    class Word(vf.Parser):
        position: int = -1

        def parse(self, text: str) -> str:
            return text.split()[self.position]

    class Proxy:
        def __init__(self, inner: vf.Parser) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    def parsed(parser: Any, completion: Any, answer: str) -> float:
        return float(parser.parse_answer(completion) == answer)

    for parser in (Word(), Proxy(Word())):
        rubric = vf.Rubric([parsed, parser.get_format_reward_func()], parser=parser)
        (output,) = await evaluated(single(parser=parser, rubric=rubric), "it is 2")
        assert (output["error"], output["metrics"]["parsed"], output["metrics"]["format_reward_func"]) == (None, 1.0, 1.0)


def test_rubrics_tell_their_functions() -> None:
    def bonus(completion: Any) -> float:
        return 0.0

    env = vf.SingleTurnEnv(dataset=[ROW], rubric=vf.Rubric([right, bonus], weights=[1.0, 0.5]))
    assert isinstance(env.rubric, vf.RubricGroup)
    own = env.rubric.rubrics[0]
    assert (own.funcs, own.weights) == ([right, bonus], [1.0, 0.5])
    assert own._get_reward_func_names() == ["right", "bonus"]
    assert own._get_reward_funcs() == [right, bonus]
    assert own._get_reward_weights() == [1.0, 0.5]
    assert env.rubric._get_reward_func_names()[:2] == ["right", "bonus"]
    assert len(env.rubric._get_reward_funcs()) == len(env.rubric._get_reward_weights()) == len(env.rubric._get_reward_func_names())


@pytest.mark.parametrize("of_group", [False, True], ids=["of the rubric that was given", "of env.rubric"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["score_group", "score_rollout", "cleanup", "teardown"])
async def test_a_replaced_hook_of_a_rubric_is_what_is_called(name: str, way: str, of_group: bool) -> None:
    calls: list[str] = []
    env = single(rubric=vf.Rubric(right) if of_group else replacing(vf.Rubric, name, way, calls, right))
    if of_group:
        env.rubric = replacing(vf.RubricGroup, name, way, calls, env.rubric.rubrics)
    (output,) = await evaluated(env, "2", independent_scoring=name == "score_rollout")
    await env.aclose()
    assert (calls, output["reward"], output["metrics"]["num_turns"]) == ([name], 1.0, 1.0)


async def test_a_hook_that_was_put_on_env_rubric_stays_when_a_rubric_is_added() -> None:
    async def score_group(states: Any) -> None:
        for state in states:
            state["reward"], state["metrics"] = 3.0, {"own": 3.0}

    env = single()
    env.rubric.score_group = score_group
    env.add_rubric(vf.Rubric(lambda: 0.5))
    (output,) = await evaluated(env, "2")
    assert (output["reward"], output["metrics"]) == (3.5, {"own": 3.0, "<lambda>": 0.5})


async def test_a_task_of_a_hook_that_waits_can_be_cancelled() -> None:
    class Waiting(vf.Rubric):
        @vf.cleanup
        async def clean_up(self, state: Any) -> None:
            began.set()
            await asyncio.Event().wait()

    began, state = asyncio.Event(), await rolled_out(single(), "2")
    task = asyncio.create_task(Waiting().cleanup(state))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    before_it_ran = asyncio.create_task(Waiting().cleanup(state))
    before_it_ran.cancel()
    with pytest.raises(asyncio.CancelledError):
        await before_it_ran
