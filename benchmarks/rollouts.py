"""CPU time and memory of the rollout API, here and in another implementation of it.

``python benchmarks/rollouts.py`` measures this library. ``python benchmarks/rollouts.py --peer PYTHON`` runs the same workloads in
the other interpreter too (a virtual environment in which verifiers is installed, say), turn by turn, and prints ratios. Each number
is the best of several rounds. Nothing asserts on them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

ROUNDS = 3
LIMITS = {
    "single-turn rollout, 64 at once, µs": 115.0,
    "single-turn rollout, all at once, µs": 150.0,
    "further turn at 20, µs": 20.0,
    "further turn at 100, µs": 20.0,
    "further turn at 400, µs": 20.0,
    "further turn with its conversion at 20, µs": 50.0,
    "further turn with its conversion at 400, µs": 150.0,
    "tool turn, µs": 60.0,
    "tool turn with its conversion at 30, µs": 95.0,
    "tool turn with its conversion at 300, µs": 250.0,
    "five reward functions, µs": 20.0,
    "memory of a kept rollout, 1 turn, KB": 6.0,
    "memory of a kept rollout, 100 turns, KB": 130.0,
    "saving a 20-turn rollout with its trajectory, ms": 1.0,
    "import to the first environment class, s": 0.6,
    "memory after import, MB": 64.0,
    "HTTP, requests/s (more is better)": 2000.0,
}
"""What this project set itself, beside which its numbers are printed."""


# What is measured; `vf` is the package


def quiet(*_: Any) -> None:
    """Take the place of a progress bar."""


def fixed_client(vf: Any, message: Callable[[], Any]) -> Any:
    """Return a client that gives one answer, and converts prompts as the real one does."""
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
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message()}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
    )
    from openai import AsyncOpenAI

    return Fixed(AsyncOpenAI(api_key="none", base_url="http://localhost:1/v1"))


def bare_client(vf: Any, text: str, message: Any = None) -> Any:
    """Return a client that gives one prepared response, and does nothing else."""

    class Bare(vf.Client):  # type: ignore[misc, name-defined]
        def setup_client(self, config: Any) -> Any: ...
        async def to_native_prompt(self, messages: Any) -> Any: ...
        async def to_native_tool(self, tool: Any) -> Any: ...
        async def get_native_response(self, *args: Any, **kwargs: Any) -> Any: ...
        async def raise_from_native_response(self, response: Any) -> None: ...
        async def from_native_response(self, response: Any) -> Any: ...
        async def close(self) -> None: ...
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            return response

    if message is None:
        message = vf.ResponseMessage(content=text, finish_reason="stop", is_truncated=False, tokens=None)
    response = vf.Response(id="1", created=0, model="m", usage=None, message=message)
    return Bare(object())


def plain_client(vf: Any, text: str) -> Any:
    """Return a client as a user would write it: each documented conversion in a line, and an answer that is there at once."""

    class Plain(vf.Client):  # type: ignore[misc, name-defined]
        def setup_client(self, config: Any) -> Any:
            return None

        async def to_native_prompt(self, messages: Any) -> Any:
            return [{"role": message["role"], "content": message["content"]} for message in messages], {}

        async def to_native_tool(self, tool: Any) -> Any:
            return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}

        async def get_native_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any) -> Any:
            return {"id": "1", "model": model, "text": text}

        async def raise_from_native_response(self, response: Any) -> None: ...

        async def from_native_response(self, response: Any) -> Any:
            message = vf.ResponseMessage(content=response["text"], finish_reason="stop", is_truncated=False, tokens=None)
            return vf.Response(id=response["id"], created=0, model=response["model"], usage=None, message=message)

        async def close(self) -> None: ...

    return Plain(object())


def dataset(rows: int) -> Any:
    """Return questions as a Hugging Face dataset, which both implementations take."""
    from datasets import Dataset

    return Dataset.from_list([{"question": f"{i} + {i}?", "answer": "42"} for i in range(rows)])


def best(measure: Callable[[], float]) -> float:
    """Return the smallest of several measurements, with the garbage of the others out of the way."""
    values = []
    for _ in range(ROUNDS):
        gc.collect()
        values.append(measure())
    return min(values)


def cpu(run: Callable[[], Any]) -> float:
    """Return the CPU seconds that a coroutine function takes on a fresh loop."""
    started = time.process_time()
    asyncio.run(run())
    return time.process_time() - started


def evaluation(env: Any, client: Any, **kwargs: Any) -> Callable[[], Any]:
    """Return a coroutine function that evaluates, without a progress bar."""
    return lambda: env.evaluate(client=client, model="m", on_progress=quiet, **kwargs)


def exact(completion: Any, answer: str) -> float:
    """Return whether the last message is the answer."""
    return float(completion[-1]["content"] == answer)


def single_turn(vf: Any) -> dict[str, float]:
    """One question, one answer, one reward function, through `evaluate`."""
    count = 2000
    env = vf.SingleTurnEnv(dataset=dataset(count), rubric=vf.Rubric(funcs=[exact]))
    client = plain_client(vf, "42")
    return {
        f"single-turn rollout, {what}, µs": best(lambda limit=limit: cpu(evaluation(env, client, max_concurrent=limit))) / count * 1e6
        for what, limit in (("64 at once", 64), ("all at once", -1))
    }


def group_scoring(vf: Any) -> dict[str, float]:
    """Groups of eight with a reward function for one and one for the group."""

    def spread(completions: Any) -> list[float]:
        return [0.5] * len(completions)

    env = vf.SingleTurnEnv(dataset=dataset(200), rubric=vf.Rubric(funcs=[exact, spread]))
    client = bare_client(vf, "42")
    run = evaluation(env, client, rollouts_per_example=8, max_concurrent=64)
    return {"rollout in a scored group of 8, µs": best(lambda: cpu(run)) / 1600 * 1e6}


def turns(vf: Any) -> dict[str, float]:
    """A turn in the second half of an episode: the whole episode less one of half as many turns."""

    class GoOn(vf.MultiTurnEnv):  # type: ignore[misc, name-defined]
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            return [vf.UserMessage(content="go on")]

    found = {}
    for what, client in (
        ("further turn at", bare_client(vf, "and then?")),
        ("further turn with its conversion at", fixed_client(vf, lambda: {"content": "and then?"})),
    ):
        for length in (20, 100, 400):
            episodes = max(4, 2000 // length)

            def episode(turns: int, client: Any = client, episodes: int = episodes) -> float:
                env = GoOn(dataset=dataset(episodes), max_turns=turns, rubric=vf.Rubric())
                return best(lambda: cpu(evaluation(env, client, max_concurrent=4))) / episodes

            found[f"{what} {length}, µs"] = (episode(length) - episode(length // 2)) / (length - length // 2) * 1e6
    return found


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def tool_turn(vf: Any) -> dict[str, float]:
    """A turn that calls one plain tool: the whole episode less one of half as many turns."""
    call = {"id": "c1", "name": "add", "arguments": '{"a": 1, "b": 2}'}
    message = vf.ResponseMessage(
        content=None, tool_calls=[vf.ToolCall(**call)], finish_reason="tool_calls", is_truncated=False, tokens=None
    )  # fmt: skip
    native = {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
    converting = fixed_client(vf, lambda: {"content": None, "tool_calls": [native]})

    def turn(length: int, client: Any) -> float:
        def episode(turns: int) -> float:
            env = vf.ToolEnv(tools=[add], dataset=dataset(episodes), max_turns=turns, rubric=vf.Rubric())
            return best(lambda: cpu(evaluation(env, client, max_concurrent=4))) / episodes

        episodes = max(8, 2000 // length)
        return (episode(length) - episode(length // 2)) / (length - length // 2) * 1e6

    return {
        "tool turn, µs": turn(40, bare_client(vf, "", message)),
        **{f"tool turn with its conversion at {length}, µs": turn(length, converting) for length in (30, 300)},
    }


def gym_game(vf: Any) -> dict[str, float]:
    """CartPole through `GymEnv`, about ten moves an episode; its moves alone (with their observations as text); the constructor."""
    import gymnasium

    def constructed() -> float:
        started = time.process_time()
        vf.GymEnv(gymnasium.make, {"id": "CartPole-v1"}, action_parser=int)
        return time.process_time() - started

    def played_bare() -> float:
        started = time.process_time()
        for seed in range(count):
            str(game.reset(seed=seed)[0])
            while True:
                observation, _, terminated, truncated, _ = game.step(1)
                str(observation)
                if terminated or truncated:
                    break
        return time.process_time() - started

    count = 200
    game = gymnasium.make("CartPole-v1")
    env = vf.GymEnv(gymnasium.make, {"id": "CartPole-v1"}, action_parser=int, num_train_episodes=count, num_eval_episodes=0)
    client = bare_client(vf, "1")
    results = asyncio.run(evaluation(env, client, max_concurrent=1)())
    # Moves are what both play; there is one model call more an episode where the end of a game is noticed late.
    moves = sum(len(output["completion"]) // 2 for output in results["outputs"])
    return {
        "GymEnv CartPole move, µs": best(lambda: cpu(evaluation(env, client, max_concurrent=1))) / moves * 1e6,
        "the same move played bare, µs": best(played_bare) / moves * 1e6,
        "GymEnv constructor, ms": best(constructed) * 1e3,
    }


def reward_functions(vf: Any) -> dict[str, float]:
    """Five trivial reward functions: an episode with them less one with none."""

    def none(completion: Any) -> float:
        return 0.0

    def length(completion: Any) -> float:
        return float(len(completion))

    def asked(prompt: Any) -> float:
        return float(len(prompt))

    def taken(state: Any) -> float:
        return float(len(state["trajectory"]))

    client = bare_client(vf, "42")

    def run_of(functions: list[Any]) -> Callable[[], Any]:
        env = vf.SingleTurnEnv(dataset=dataset(1000), rubric=vf.Rubric(funcs=functions))
        return evaluation(env, client, max_concurrent=64)

    scored, unscored = run_of([exact, none, length, asked, taken]), run_of([])
    seconds: dict[Any, list[float]] = {scored: [], unscored: []}
    for _ in range(5 * ROUNDS):  # a small difference of large numbers: by turns, and the smallest of many
        for run, measured in seconds.items():
            gc.collect()
            measured.append(cpu(run))
    return {"five reward functions, µs": (min(seconds[scored]) - min(seconds[unscored])) / 1000 * 1e6}


def saving(vf: Any) -> dict[str, float]:
    """Saving rollouts of 20 turns with their trajectories, and resuming a run that is complete."""

    class GoOn(vf.MultiTurnEnv):  # type: ignore[misc, name-defined]
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            return [vf.UserMessage(content="go on " * 20)]

    count = 50
    env = GoOn(dataset=dataset(count), max_turns=20, rubric=vf.Rubric())
    client = bare_client(vf, "and then? " * 20)
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1000))

        def run(saves: bool) -> float:
            kwargs: dict[str, Any] = {"results_path": Path(folder, str(next(numbers))), "save_results": True} if saves else {}
            return cpu(evaluation(env, client, max_concurrent=1, state_columns=["trajectory"] if saves else [], **kwargs))

        saved = best(lambda: run(True)) - best(lambda: run(False))
        path = Path(folder, "resumed")
        resumed = evaluation(env, client, max_concurrent=4, results_path=path, save_results=True)
        cpu(resumed)
        again = best(lambda: cpu(resumed))
        size = sum(file.stat().st_size for file in Path(folder, "0").iterdir()) / count / 1024
    return {
        "saving a 20-turn rollout with its trajectory, ms": saved / count * 1e3,
        "a saved 20-turn rollout with its trajectory, KB": size,
        "resuming a complete run, ms a rollout": again / count * 1e3,
    }


def memory(vf: Any) -> dict[str, float]:
    """What a rollout that is kept (its state) takes, by tracemalloc."""

    class GoOn(vf.MultiTurnEnv):  # type: ignore[misc, name-defined]
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            return [vf.UserMessage(content=f"go on, {len(messages)}")]

    found = {}
    for length, count in ((1, 200), (100, 10)):
        env = GoOn(dataset=dataset(count), max_turns=length, rubric=vf.Rubric())
        message = vf.ResponseMessage(content="and then?", finish_reason="stop", is_truncated=False, tokens=None)

        class Client(type(bare_client(vf, ""))):  # type: ignore[misc]
            async def get_response(self, *args: Any, message: Any = message, **kwargs: Any) -> Any:
                return vf.Response(id="1", created=0, model="m", usage=None, message=type(message)(**dict(message)))

        client = Client(object())
        rows = [dict(row) for row in env.get_dataset()]

        async def play(env: Any = env, rows: Any = rows, client: Any = client) -> list[Any]:
            return [await env.rollout(row, client, "m", {}) for row in rows]

        asyncio.run(play())
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        kept = asyncio.run(play())
        gc.collect()
        size = (tracemalloc.get_traced_memory()[0] - before) / len(kept) / 1024
        tracemalloc.stop()
        found[f"memory of a kept rollout, {length} turn{'s' if length > 1 else ''}, KB"] = size
    return found


def http(vf: Any, url: str) -> dict[str, float]:
    """2,000 single-turn rollouts over real HTTP, 256 at once, with a server that takes 20 ms to answer."""
    env = vf.SingleTurnEnv(dataset=dataset(2000), rubric=vf.Rubric(funcs=[exact]))
    config = vf.ClientConfig(api_base_url=url, api_key_var="NO_SUCH_KEY")
    elapsed: list[float] = []

    def run() -> float:
        started = time.perf_counter()
        used = cpu(evaluation(env, config, max_concurrent=256, independent_scoring=True))
        elapsed.append(time.perf_counter() - started)
        return used

    used = best(run)
    return {"HTTP, requests/s (more is better)": 2000 / min(elapsed), "HTTP, ms of CPU a request": used / 2000 * 1e3}


def imports(package: str) -> dict[str, float]:
    """Import of the package up to its first environment class, in a fresh process."""
    code = f"import time; t = time.perf_counter(); import {package} as vf; vf.SingleTurnEnv; print(time.perf_counter() - t); " + (
        "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() for _ in range(ROUNDS)]
    return {
        "import to the first environment class, s": min(float(run[0]) for run in runs),
        "memory after import, MB": min(float(run[1]) for run in runs),
    }


WORKLOADS = (single_turn, turns, tool_turn, gym_game, reward_functions, group_scoring, saving, memory)


# How it is run


def measure(package: str, name: str, url: str) -> dict[str, float]:
    """Run one workload in this process."""
    if name == "imports":
        return imports(package)
    vf = import_module(package)
    if name == "http":
        return http(vf, url)
    return next(workload for workload in WORKLOADS if workload.__name__ == name)(vf)


def measured_in(python: str, package: str, name: str, url: str) -> dict[str, float]:
    """Run one workload in a process of its own, and return what it found."""
    command = [python, __file__, "--package", package, "--workload", name, "--url", url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())
    if done.returncode != 0:
        print(f"{package}: {name} failed: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return {}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", metavar="PYTHON", help="another interpreter to run the same in")
    parser.add_argument("--peer-package", default="verifiers", help="package to import there")
    every = ["imports", *(workload.__name__ for workload in WORKLOADS), "http"]
    parser.add_argument("--only", nargs="+", choices=every, default=every, help="names of the workloads to run")
    parser.add_argument("--package", help=argparse.SUPPRESS)
    parser.add_argument("--workload", help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.workload:
        print(json.dumps(measure(arguments.package, arguments.workload, arguments.url)))
        return
    print(f"{'':52}{'here':>10}{'limit':>8}" + (f"{'peer':>12}{'ratio':>8}" if arguments.peer else ""))
    with served() as url:
        for name in arguments.only:
            here = measured_in(sys.executable, "verifiers_compat", name, url)
            there = measured_in(arguments.peer, arguments.peer_package, name, url) if arguments.peer else {}
            for what, value in here.items():
                line = f"{what:52}{value:>10.2f}{LIMITS.get(what, ''):>8}"
                if what in there:
                    ratio = value / there[what] if "more is better" in what else there[what] / value
                    line += f"{there[what]:>12.2f}{ratio:>8.1f}"
                print(line, flush=True)


class served:  # noqa: N801 (used as a function is)
    """A model server in a process of its own, 20 ms away."""

    def __enter__(self) -> str:
        code = (
            "from vfgym.model_server import ModelServer, echo\nimport sys\n"
            "with ModelServer(models={'m': echo}, latency=0.02) as server:\n"
            "    print(server.openai_url, flush=True); sys.stdin.read()"
        )
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self.process.stdout.readline().strip() if self.process.stdout else ""

    def __exit__(self, *exception: object) -> None:
        self.process.communicate()


if __name__ == "__main__":
    main()
