"""Ten thousand rollouts against a model that fails: nothing may be lost or doubled, and memory stays flat.

Run ``python benchmarks/faulty_model.py``. A model server in a process of its own gives 5% of the requests status 429, 2% status 500,
cuts the connection of 1% and never answers 1%. `generate` plays single-turn and tool rollouts against it, 256 at once, and saves
them. Each way to deal with faults is a row: retries of the client, none, a deadline of the episode instead of the request's, and
repeated rollouts. The exit code is 1 where a rollout was lost or doubled, where one ended with neither the right answer nor a
reason, or where a socket or a task was left. It reads ``/proc``, so it runs on Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import verifiers_compat as vf
from vfgym.messages import AssistantMessage, ToolCall
from vfgym.model_server import Faults, ModelRequest, ModelServer

FAULTS = Faults(seed=7, rate_limited=0.05, server_error=0.02, cut_connection=0.01, hung=0.01)
EMPTY = Faults(seed=7, rate_limited=0.05, server_error=0.02, cut_connection=0.01, empty_reply=0.03)
AT_ONCE = 256
LONG = 600.0
"""Seconds that nobody waits here."""


@dataclass(frozen=True)
class Variant:
    """One way to deal with faults."""

    name: str
    faults: Faults = FAULTS
    client_retries: int = 0
    rollout_retries: int = 0
    request_timeout: float = 1.5
    """Seconds that the client gives a request."""
    episode_timeout: float | None = None
    """Seconds that the environment gives an episode."""


VARIANTS = (
    Variant("the client repeats requests (5 times)", client_retries=5),
    Variant("nothing is repeated"),
    Variant("the episode has the deadline (10 s)", client_retries=5, request_timeout=LONG, episode_timeout=10.0),
    Variant("rollouts with an empty answer are repeated", faults=EMPTY, client_retries=5, rollout_retries=2),
)


# What is played


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def right(completion: Any, answer: str) -> float:
    """Return whether the last message is the answer."""
    return float(completion[-1].content == answer) if completion else 0.0


def single_turn(count: int, timeout: float | None) -> vf.MultiTurnEnv:
    """Return an environment of one question and one answer."""
    return vf.SingleTurnEnv(dataset=questions(count), rubric=vf.Rubric(right), timeout_seconds=timeout)


def with_tool(count: int, timeout: float | None) -> vf.MultiTurnEnv:
    """Return an environment whose questions take two requests: the model calls a tool, then says its result."""
    return vf.ToolEnv(tools=[add], dataset=questions(count), rubric=vf.Rubric(right), timeout_seconds=timeout)


def questions(count: int) -> list[dict[str, str]]:
    """Return sums, each another one."""
    return [{"question": f"{number}+{number}", "answer": str(2 * number)} for number in range(count)]


def model(request: ModelRequest) -> Any:
    """Add two numbers, with a tool where there is one."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return last["content"]
    first, second = map(int, last["content"].split("+"))
    if not request.tools:
        return str(first + second)
    return AssistantMessage(None, tool_calls=[ToolCall("call_1", "add", json.dumps({"a": first, "b": second}))])


# The server


def serve(faults: Faults) -> None:
    """Print where the server is, serve until the standard input ends, and print what happened."""
    with ModelServer({"m": model}, faults=faults, keep_requests=0) as server:
        print(server.openai_url, flush=True)
        sys.stdin.read()
    print(json.dumps({"requests": server.num_requests, "faults": server.faults_given}))


@dataclass
class Served:
    """A server in a process of its own."""

    url: str
    requests: int = 0
    faults: dict[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def served(faults: Faults) -> Iterator[Served]:
    """Run a server; what happened to it is known afterwards."""
    command = [sys.executable, __file__, "--serve", json.dumps(asdict(faults))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        server = Served(process.stdout.readline().strip())
        try:
            yield server
        finally:
            process.stdin.close()
            told = json.loads(process.stdout.read())
            server.requests, server.faults = told["requests"], told["faults"]


# Measuring


def resident() -> float:
    """Return the memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def open_sockets() -> int:
    """Return how many sockets this process has open."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the directory's own descriptor
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return found


def states_alive() -> int:
    """Return how many states of rollouts there are, garbage aside (the traceback of an error makes a cycle)."""
    gc.collect()
    return sum(type(each) is vf.State for each in gc.get_objects())


def size_of(rows: list[Any]) -> int:
    """Return the bytes that rows take, with all that is in them."""
    seen: dict[int, Any] = {}
    left: list[Any] = [rows]
    while left:
        each = left.pop()
        if id(each) not in seen and not isinstance(each, type | ModuleType | FunctionType):
            seen[id(each)] = each
            left += gc.get_referents(each)
    return sum(map(sys.getsizeof, seen.values()))


@dataclass
class Watch:
    """Memory and states while a run goes on."""

    every: int
    memory: dict[int, float] = field(default_factory=dict)
    most_states: int = 0

    def __call__(self, outputs: Any, new: Any, metadata: Any) -> None:
        """Look, as `generate` tells of finished rollouts."""
        if len(outputs) % self.every == 0:
            self.memory[len(outputs)] = resident()
            self.most_states = max(self.most_states, states_alive())


def cause(output: Any) -> str:
    """Return how a rollout ended: ``right``, or why not."""
    if output["error"] is not None:
        return str(output["error"]["error_chain_str"])
    return "right" if output["reward"] == 1.0 else str(output["stop_condition"])


async def play(variant: Variant, env: vf.MultiTurnEnv, url: str, count: int, path: Path, watch: Watch) -> tuple[Any, int, int]:
    """Play all rollouts; return the results, and how many sockets and tasks they left."""
    client = vf.ClientConfig(
        api_base_url=url, api_key="none", timeout=variant.request_timeout, max_retries=variant.client_retries, connect_timeout=30.0
    )
    sockets, tasks = open_sockets(), len(asyncio.all_tasks())
    results = await env.generate(
        questions(count),
        client,
        "m",
        max_concurrent=AT_ONCE,
        results_path=path,
        save_results=True,
        max_retries=variant.rollout_retries,
        on_progress=watch,
    )
    for _ in range(3):
        await asyncio.sleep(0)  # closed transports let go of their sockets in the next turn of the loop
    return results, open_sockets() - sockets, len(asyncio.all_tasks()) - tasks


def measure(variant: Variant, kind: str, count: int) -> bool:
    """Run one variant, print what came out, and return whether all is well."""
    env = (single_turn if kind == "single turn" else with_tool)(count, variant.episode_timeout)
    watch = Watch(every=max(1, count // 10))
    with tempfile.TemporaryDirectory() as folder, served(variant.faults) as server:
        path = Path(folder, "run")
        began, cpu = time.perf_counter(), time.process_time()
        results, sockets, tasks = asyncio.run(play(variant, env, server.url, count, path, watch))
        cpu, seconds = time.process_time() - cpu, time.perf_counter() - began
        on_disk = [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]
    wanted = set(range(count))
    problems = []
    for place, rows in (("returned", results["outputs"]), ("on disk", on_disk)):
        times = Counter(row["example_id"] for row in rows)
        lost, doubled = len(wanted - times.keys()), sum(number > 1 for number in times.values())
        print_fact(f"rows {place}", f"{len(rows)}, {lost} lost, {doubled} doubled")
        if lost or doubled:
            problems.append(f"rows {place}")
    causes = Counter(cause(output) for output in results["outputs"])
    print_fact("ended", ", ".join(f"{number} {name}" for name, number in causes.most_common()))
    problems += [name for name in causes if name not in ("right", "timeout_reached") and "Error" not in name]
    turns = 1 if kind == "single turn" else 2
    print_fact("requests", f"{server.requests} ({server.requests - turns * count:+d} to {turns} a rollout); faults: {server.faults}")
    print_fact("time", f"{seconds:.1f} s, {cpu:.1f} s of CPU, {count / seconds:.0f} rollouts/s")
    print_fact("memory, MB", "  ".join(f"{number}: {size:.0f}" for number, size in watch.memory.items()))
    sizes = list(watch.memory.items())
    (early, small), (late, large) = sizes[1], sizes[-1]
    row = size_of(results["outputs"]) / count / 1024
    print_fact("growth", f"{(large - small) / (late - early) * 1024:.1f} KB a rollout; the row that is returned takes {row:.1f} KB")
    print_fact("most states alive", f"{watch.most_states} ({AT_ONCE} rollouts at once)")
    print_fact("left at the end", f"{sockets} sockets, {tasks} tasks")
    if sockets or tasks:
        problems.append("something was left")
    if watch.most_states > 3 * AT_ONCE:
        problems.append("states of finished rollouts are kept")
    if problems:
        print_fact("WRONG", ", ".join(problems))
    return not problems


def print_fact(name: str, value: str) -> None:
    """Print one line."""
    print(f"    {name:20}{value}", flush=True)


def main() -> None:
    """Run every variant, each in a process of its own, whose memory is then that run's alone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rollouts", type=int, default=10_000)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the variants, from 0")
    parser.add_argument("--kinds", nargs="*", choices=["single turn", "tool"], default=["single turn", "tool"])
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(Faults(**json.loads(options.serve)))
        return
    numbers = range(len(VARIANTS)) if options.only is None else options.only
    runs = [(number, kind) for number in numbers for kind in options.kinds]
    if len(runs) == 1:
        ((number, kind),) = runs
        print(f"{number}. {VARIANTS[number].name}: {options.rollouts} rollouts, {kind}", flush=True)
        logging.getLogger("verifiers_compat").setLevel(logging.ERROR)
        sys.exit(0 if measure(VARIANTS[number], kind, options.rollouts) else 1)
    command = [sys.executable, __file__, "--rollouts", str(options.rollouts)]
    codes = [subprocess.run([*command, "--only", str(number), "--kinds", kind], check=False).returncode for number, kind in runs]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
