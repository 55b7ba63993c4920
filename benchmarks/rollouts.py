"""CPU time of the rollout API, here and in verifiers, which runs the same code."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring import MICROSECONDS, MILLISECONDS, Bench, Figure, beside, cpu

# What is asked, and who answers; `vf` is the package


def ignore(*_: Any) -> None:
    """Take the place of a progress bar."""


def openai_client(vf: Any, message: dict[str, Any]) -> Any:
    """Return a client that gives one answer, and converts prompts as the one for the OpenAI SDK does."""
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion

    class Fixed(vf.OpenAIChatCompletionsClient):  # type: ignore[misc, name-defined]
        async def get_native_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any) -> Any:
            return completion

    completion = ChatCompletion.model_validate(
        {
            "id": "1",
            "created": 0,
            "model": "m",
            "object": "chat.completion",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
    )
    return Fixed(AsyncOpenAI(api_key="none", base_url="http://localhost:1/v1"))


def bare_client(vf: Any, message: Any) -> Any:
    """Return a client that gives one prepared message, and does nothing else."""

    class Bare(plain_class(vf)):  # type: ignore[misc]
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            return response

    if isinstance(message, str):
        message = vf.ResponseMessage(content=message, finish_reason="stop", is_truncated=False, tokens=None)
    response = vf.Response(id="1", created=0, model="m", usage=None, message=message)
    return Bare(object())


def plain_class(vf: Any) -> type:
    """Return a class of clients as a user would write it: each documented conversion in a line, and an answer that is there at once."""

    class Plain(vf.Client):  # type: ignore[misc, name-defined]
        def setup_client(self, config: Any) -> Any:
            return None

        async def to_native_prompt(self, messages: Any) -> Any:
            return [{"role": message["role"], "content": message["content"]} for message in messages], {}

        async def to_native_tool(self, tool: Any) -> Any:
            return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}

        async def get_native_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any) -> Any:
            return {"id": "1", "model": model, "text": "42"}

        async def raise_from_native_response(self, response: Any) -> None: ...

        async def from_native_response(self, response: Any) -> Any:
            message = vf.ResponseMessage(content=response["text"], finish_reason="stop", is_truncated=False, tokens=None)
            return vf.Response(id=response["id"], created=0, model=response["model"], usage=None, message=message)

        async def close(self) -> None: ...

    return Plain


def questions(bench: Bench, count: int) -> Any:
    """Return questions as a Hugging Face dataset, which both implementations take.

    Where little is done, this library gets them as a list: to import ``datasets`` takes longer than to measure.
    """
    rows = [{"question": f"{i} + {i}?", "answer": "42"} for i in range(count)]
    if bench.small and bench.package != "verifiers":
        return rows
    from datasets import Dataset

    return Dataset.from_list(rows)


def long_env(bench: Bench, count: int, turns: int, text: str = "go on") -> Any:
    """Return an environment that answers every message, for so many turns."""
    vf = bench.vf

    class GoOn(vf.MultiTurnEnv):  # type: ignore[misc, name-defined]
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            return [vf.UserMessage(content=text)]

    return GoOn(dataset=questions(bench, count), max_turns=turns, rubric=vf.Rubric())


def evaluation(env: Any, client: Any, **kwargs: Any) -> Callable[[], Any]:
    """Return a function that evaluates on a fresh event loop, without a progress bar."""
    return lambda: asyncio.run(env.evaluate(client=client, model="m", on_progress=ignore, **kwargs))


def exact(completion: Any, answer: str) -> float:
    """Return whether the last message is the answer."""
    return float(completion[-1]["content"] == answer)


# Measurements


@beside("verifiers")
def single_turn(bench: Bench) -> Iterator[Figure]:
    """One question, one answer, one reward function, through `evaluate`."""
    vf, count = bench.vf, bench.count(2000, 64)
    env = vf.SingleTurnEnv(dataset=questions(bench, count), rubric=vf.Rubric(funcs=[exact]))
    client = plain_class(vf)(object())
    for what, at_once, limit in (("64 at once", 64, 115.0), ("all at once", -1, 150.0)):
        run = evaluation(env, client, max_concurrent=at_once)
        [seconds] = bench.best(lambda run=run: cpu(run))
        yield Figure(f"single-turn rollout, {what}", seconds / count * MICROSECONDS, "µs", limit)


def cost_of_a_turn(bench: Bench, length: int, make_env: Callable[[int, int], Any], client: Any) -> float:
    """Return the microseconds of a turn in the second half of an episode: the whole episode less one of half as many turns.

    Args:
        bench: What is measured.
        length: Turns of the whole episode.
        make_env: Makes an environment of so many episodes and turns.
        client: Who answers.
    """
    episodes = bench.count(max(4, 2000 // length), 2)
    runs = [evaluation(make_env(episodes, turns), client, max_concurrent=4) for turns in (length, length // 2)]
    whole, half = bench.best(*(lambda run=run: cpu(run) for run in runs))  # type: ignore[misc]
    return (whole - half) / episodes / (length - length // 2) * MICROSECONDS


@beside("verifiers")
def turns(bench: Bench) -> Iterator[Figure]:
    """A further turn of a conversation, with a client that does nothing and with the SDK's conversion of the prompt."""
    vf = bench.vf
    for what, client, limits in (
        ("further turn", bare_client(vf, "and then?"), {20: 20.0, 100: 20.0, 400: 20.0}),
        ("further turn with its conversion", openai_client(vf, {"content": "and then?"}), {20: 50.0, 100: None, 400: 150.0}),
    ):
        for length, limit in limits.items():
            if length == 20 or not bench.small:
                cost = cost_of_a_turn(bench, length, lambda count, turns: long_env(bench, count, turns), client)
                yield Figure(f"{what}, at turn {length}", cost, "µs", limit)


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


@beside("verifiers")
def tool_turn(bench: Bench) -> Iterator[Figure]:
    """A turn that calls one plain tool."""
    vf = bench.vf
    call = {"id": "c1", "name": "add", "arguments": '{"a": 1, "b": 2}'}
    message = vf.ResponseMessage(
        content=None, tool_calls=[vf.ToolCall(**call)], finish_reason="tool_calls", is_truncated=False, tokens=None
    )  # fmt: skip
    native = {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
    converting = openai_client(vf, {"content": None, "tool_calls": [native]})

    def make_env(count: int, turns: int) -> Any:
        return vf.ToolEnv(tools=[add], dataset=questions(bench, count), max_turns=turns, rubric=vf.Rubric())

    yield Figure("tool turn", cost_of_a_turn(bench, 40, make_env, bare_client(vf, message)), "µs", 60.0)
    for length, limit in ((30, 95.0), (300, 250.0)):
        if length == 30 or not bench.small:
            cost = cost_of_a_turn(bench, length, make_env, converting)
            yield Figure(f"tool turn with its conversion, at turn {length}", cost, "µs", limit)


@beside("verifiers")
def reward_functions(bench: Bench) -> Iterator[Figure]:
    """Five trivial reward functions: an episode with them less one with none; and groups of eight with a function for the group."""
    vf, count = bench.vf, bench.count(1000, 32)
    client = bare_client(vf, "42")

    def none(completion: Any) -> float:
        return 0.0

    def length(completion: Any) -> float:
        return float(len(completion))

    def asked(prompt: Any) -> float:
        return float(len(prompt))

    def taken(state: Any) -> float:
        return float(len(state["trajectory"]))

    def spread(completions: Any) -> list[float]:
        return [0.5] * len(completions)

    def run_of(functions: list[Any]) -> Callable[[], Any]:
        return evaluation(vf.SingleTurnEnv(dataset=questions(bench, count), rubric=vf.Rubric(funcs=functions)), client, max_concurrent=64)

    scored, unscored = run_of([exact, none, length, asked, taken]), run_of([])
    # A small difference of large numbers: the smallest of many.
    with_five, with_none = bench.best(lambda: cpu(scored), lambda: cpu(unscored), rounds=15)
    yield Figure("five reward functions", (with_five - with_none) / count * MICROSECONDS, "µs", 20.0)
    env = vf.SingleTurnEnv(dataset=questions(bench, count // 8), rubric=vf.Rubric(funcs=[exact, spread]))
    grouped = evaluation(env, client, rollouts_per_example=8, max_concurrent=64)
    [seconds] = bench.best(lambda: cpu(grouped))
    yield Figure("rollout in a scored group of 8", seconds / (count // 8 * 8) * MICROSECONDS, "µs")


@beside("verifiers")
def saving(bench: Bench) -> Iterator[Figure]:
    """Saving rollouts of 20 turns with their trajectories, and resuming a run that is complete."""
    vf, count = bench.vf, bench.count(50, 4)
    env, client = long_env(bench, count, 20, "go on " * 20), bare_client(vf, "and then? " * 20)
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1000))

        def save() -> None:
            path = Path(folder, str(next(numbers)))
            evaluation(env, client, max_concurrent=1, state_columns=["trajectory"], results_path=path, save_results=True)()

        kept = evaluation(env, client, max_concurrent=1, state_columns=[])
        saved, unsaved = bench.best(lambda: cpu(save), lambda: cpu(kept))
        size = sum(file.stat().st_size for file in Path(folder, "0").iterdir())
        resume = evaluation(env, client, max_concurrent=4, results_path=Path(folder, "resumed"), save_results=True)
        resume()
        [again] = bench.best(lambda: cpu(resume))
    yield Figure("saving a 20-turn rollout with its trajectory", (saved - unsaved) / count * MILLISECONDS, "ms", 1.0)
    yield Figure("a saved 20-turn rollout with its trajectory", size / count / 1024, "KB")
    yield Figure("resuming a complete run, each rollout", again / count * MILLISECONDS, "ms")


MEASUREMENTS = (single_turn, turns, tool_turn, reward_functions, saving)
