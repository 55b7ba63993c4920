"""A forecast of a large run, in simulated time: how long it takes, what its workers' deaths cost, and where its bottleneck is.

``python benchmarks/scale_simulation.py --rollouts 1000000 --workers 64 --concurrent 16384`` prints the forecast of a million rollouts in
one to two minutes. Workers, the coordinator and a provider with a rate limit are simulated by the library's own rules:

- Each worker has its share of the places in which rollouts are played, and one core. Handling a request takes CPU time before it is sent
  and after its answer; what is ready at the same time waits in line.
- The coordinator has one core too, and takes CPU time for each row. It gives out rollouts and plays those of dead workers again as
  `vfgym.runs.executors.coordinator` does.
- The provider answers after a lognormal time. Its rate limit is a token bucket that holds the requests of one second; what is above it
  is refused with status 429 and ``Retry-After``. A worker then slows down as `vfgym.clients.pacing` does, and so do all others.
- Workers are killed at random: the time that each lives is exponential.

Messages between workers and coordinator take no time. The CPU times were measured (see `Options`); measure your own with ``--check``,
which plays a real run on this machine beside its forecast.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import heapq
import itertools
import json
import logging
import math
import multiprocessing
import resource
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import simpy

import vfgym
from vfgym.clients.config import ClientConfig
from vfgym.clients.pacing import _SECONDS_BETWEEN_CUTS
from vfgym.runs.executors.coordinator import _MOST_STARTS, _SECONDS_TO_JOIN, MOST_DEATHS

MOST_RETRIES: int = ClientConfig().max_retries


@dataclass(frozen=True, kw_only=True)
class Options:
    """A run that is simulated. Times are seconds."""

    rollouts: int = 10_000
    workers: int = 8
    concurrent: int = 1024
    """Most rollouts at once, in all workers together."""
    turns: int = 3
    """Requests of each rollout, one after the other."""
    median: float = 2.0
    """Of the time in which the model answers: lognormal."""
    sigma: float = 0.7
    """Standard deviation of the logarithm of that time."""
    mtbf: float = math.inf
    """Mean time until a worker dies."""
    requests_per_second: float = math.inf
    """What the provider's rate limit allows."""
    retry_after: float = 1.0
    """What a refused request is asked to wait."""
    cpu_rollout: float = 0.0027
    """CPU time of a worker for each rollout, all its turns together: 0.9 ms a request were measured."""
    cpu_row: float = 0.00045
    """CPU time of the coordinator for each row."""
    start: float = 2.0
    """Time from the start of a worker until it asks for rollouts."""
    network: float = 0.0
    """Time that each request takes beyond the model's."""
    seed: int = 0

    def latencies(self) -> np.ndarray:
        """Return the time in which the model answers, for each rollout and turn."""
        numbers = np.random.default_rng([self.seed, 0]).standard_normal((self.rollouts, self.turns))
        return self.median * np.exp(self.sigma * numbers)

    def lifetimes(self) -> Iterator[float]:
        """Give the time until a worker dies, for each that is started."""
        if self.mtbf == math.inf:
            return itertools.repeat(math.inf)
        random = np.random.default_rng([self.seed, 1])
        return (float(random.exponential(self.mtbf)) for _ in itertools.count())


CHECKED = Options(
    rollouts=10_000, workers=2, concurrent=16, turns=2, median=0.05, sigma=0.6, mtbf=20.0, requests_per_second=200.0, retry_after=1.0
)
"""The run that ``--check`` plays."""


class TokenBucket:
    """A rate limit: so many requests a second, and those of one second (at least one) at once."""

    def __init__(self, rate: float) -> None:
        """Begin with a full bucket."""
        self._rate, self._size = rate, max(1.0, rate)
        self._tokens, self._time = self._size, 0.0

    def take(self, now: float) -> bool:
        """Say whether a request is let through. Refused ones take nothing.

        Args:
            now: The time, in seconds since the bucket was made; never less than before.
        """
        if self._rate == math.inf:
            return True
        self._tokens = min(self._size, self._tokens + (now - self._time) * self._rate)
        self._time = now
        if self._tokens < 1 - 1e-9:
            return False
        self._tokens -= 1
        return True


# The simulation


class _Core:
    """One core, which does what it is given in order."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._free_at = 0.0
        self.busy = 0.0

    def take(self, seconds: float) -> float:
        """Do so much more, and return in how many seconds that is done."""
        self.busy += seconds
        self._free_at = max(self._free_at, self._env.now) + seconds
        return self._free_at - self._env.now

    def stop(self) -> None:
        """Leave undone what is not done yet."""
        self.busy -= max(0.0, self._free_at - self._env.now)


class Pace:
    """How many requests of a worker are under way at once: `vfgym.clients.pacing.Pace` in simulated time."""

    def __init__(self, env: simpy.Environment, most: int) -> None:
        self._env, self._most = env, most
        self._allowed = math.inf
        self._running = 0
        self._waiting: deque[simpy.Event] = deque()
        self._held_until = self._next_cut = -math.inf

    def enter(self) -> Iterator[simpy.Event]:
        """Wait until one more request may begin, and count it as under way."""
        while self._allowed < math.inf:
            held = self._held_until - self._env.now
            if held > 0:
                yield self._env.timeout(held)
            elif self._running < self._allowed:
                break
            else:
                turn = self._env.event()
                self._waiting.append(turn)
                yield turn
        self._running += 1

    def leave(self) -> None:
        """Count a request as over."""
        self._running -= 1
        self._wake()

    def note_answer(self) -> None:
        """Allow more, after an answer."""
        if self._allowed < math.inf:
            raised = self._allowed + 1 / self._allowed
            if raised < self._most:
                self._allowed = raised
            else:
                self._allowed = self._most if self._env.now < self._held_until else math.inf
            self._wake()

    def note_refusal(self, seconds: float) -> None:
        """Allow less, and let nothing begin for so many seconds."""
        now = self._env.now
        self._held_until = max(self._held_until, now + seconds)
        if now >= self._next_cut:
            self._next_cut = now + max(seconds, _SECONDS_BETWEEN_CUTS)
            self._allowed = max(1.0, min(self._allowed, self._most, self._running) / 2)

    def _wake(self) -> None:
        if self._waiting and self._running < self._allowed:
            self._waiting.popleft().succeed()


@dataclass(slots=True, eq=False)
class _Job:
    """A rollout, and what its present attempt has taken so far."""

    number: int
    deaths: int = 0
    began: float = 0.0
    model: float = 0.0
    cpu: float = 0.0
    requests: int = 0


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker that is connected."""

    number: int
    pace: Pace
    core: _Core
    places: list[simpy.Process] = field(default_factory=list)
    jobs: dict[_Job, None] = field(default_factory=dict)
    """What it plays, in the order in which it was given."""
    waiting: deque[simpy.Event] = field(default_factory=deque)
    """Places that want a rollout."""
    is_isolated: bool = False
    """Whether it plays one rollout alone, which may be what kills workers."""


class Simulation:
    """Plays a run in simulated time."""

    def __init__(self, options: Options) -> None:
        """Prepare it."""
        self._options = options
        self._env = simpy.Environment()
        self._num_workers = self._num_usable = min(options.workers, options.concurrent, options.rollouts)
        self._latencies = options.latencies()
        self._lifetimes = options.lifetimes()
        self._bucket = TokenBucket(options.requests_per_second)
        self._core = _Core(self._env)
        self._workers: dict[int, _Worker] = {}
        self._busy_before = 0.0
        """CPU time of workers that are gone."""
        self._left = options.rollouts
        self._fresh = map(_Job, range(options.rollouts))
        self._again: deque[_Job] = deque()
        self._suspects: deque[_Job] = deque()
        self._isolating: set[_Worker] = set()
        self._over = self._env.event()
        self._counts = dict.fromkeys(("deaths", "redone", "failed", "gave_up", "requests", "refused", "lost_requests"), 0)
        self._times = dict.fromkeys(("model", "workers", "rate_limit", "coordinator", "starting", "lost"), 0.0)
        """Of places: what they were waiting for."""

    def run(self) -> dict[str, Any]:
        """Return the forecast (see `forecast`).

        Raises:
            vfgym.errors.WorkersLost: If workers die before they have started, and none is left.
        """
        for number in range(self._num_workers):
            self._env.process(self._keep_worker(number))
        self._after(_SECONDS_TO_JOIN, self._feed_all)
        self._env.run(until=self._over)
        return self._forecast()

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        self._env.timeout(seconds).callbacks.append(lambda _: call())

    # Workers

    def _keep_worker(self, number: int) -> Iterator[simpy.Event]:
        """Start a worker, and start it again when it dies."""
        env, start = self._env, self._options.start
        places = self._options.concurrent // self._num_workers + (number < self._options.concurrent % self._num_workers)
        num_starts = 0
        while num_starts < _MOST_STARTS:
            num_starts += 1
            lifetime = next(self._lifetimes)
            yield env.timeout(min(start, lifetime))
            self._times["starting"] += places * min(start, lifetime)
            if lifetime > start:
                num_starts = 0
                worker = self._workers[number] = _Worker(number, Pace(env, places), _Core(env))
                worker.places = [env.process(self._play(worker)) for _ in range(places)]
                if lifetime == math.inf:
                    return
                yield env.timeout(lifetime - start)
                worker.core.stop()
                for place in worker.places:
                    place.interrupt()
                self._after(self._core.take(0.0), lambda worker=worker: self._lose(worker))  # type: ignore[misc]
            self._counts["deaths"] += 1
        self._num_usable -= 1
        if not self._num_usable:
            self._over.fail(
                vfgym.errors.WorkersLost(
                    f"no worker is left: each died {_MOST_STARTS} times in a row before it had started, within {self._options.start:g} s"
                )
            )

    def _play(self, worker: _Worker) -> Iterator[simpy.Event]:
        """Play one rollout after the other, in one of the places of a worker."""
        half = self._options.cpu_rollout / self._options.turns / 2
        wish = self._env.event()
        self._want(worker, wish)
        with contextlib.suppress(simpy.Interrupt):
            while True:
                job: _Job = yield wish
                is_answered = True
                for latency in self._latencies[job.number].tolist():
                    yield from self._compute(worker, job, half)
                    is_answered = yield from self._ask(worker, job, latency, half)
                    if not is_answered:
                        break
                wish = self._send_row(worker, job, is_answered)

    def _compute(self, worker: _Worker, job: _Job, seconds: float) -> Iterator[simpy.Event]:
        if seconds:
            took = worker.core.take(seconds)
            yield self._env.timeout(took)
            job.cpu += took

    def _ask(self, worker: _Worker, job: _Job, latency: float, cpu: float) -> Iterator[simpy.Event]:
        """Ask the model, and return whether it has answered: not if the provider refuses too often."""
        env, pace, pause = self._env, worker.pace, self._options.retry_after
        yield from pace.enter()
        for retries in range(MOST_RETRIES + 1):
            self._counts["requests"] += 1
            job.requests += 1
            if self._bucket.take(env.now):
                took = latency + self._options.network
                yield env.timeout(took)
                job.model += took
                yield from self._compute(worker, job, cpu)
                pace.note_answer()
                pace.leave()
                return True
            self._counts["refused"] += 1
            if self._options.network:
                yield env.timeout(self._options.network)
            is_last = retries == MOST_RETRIES
            for each in self._workers.values():
                each.pace.note_refusal(0.0 if is_last else pause)
            pace.leave()
            if not is_last:
                yield env.timeout(pause)
                yield from pace.enter()
        return False

    # The coordinator

    def _send_row(self, worker: _Worker, job: _Job, is_answered: bool) -> simpy.Event:
        """Send what came of a rollout, and want the next one."""
        now, wish = self._env.now, self._env.event()
        took = self._core.take(self._options.cpu_row)

        def take() -> None:
            if job in worker.jobs:
                self._times["model"] += job.model
                self._times["workers"] += job.cpu
                self._times["rate_limit"] += now - job.began - job.model - job.cpu
                self._times["coordinator"] += took
                self._counts["gave_up"] += not is_answered
                del worker.jobs[job]
                was_isolated = worker.is_isolated
                if was_isolated:
                    worker.is_isolated = False
                    self._isolating.discard(worker)
                self._done()
                if was_isolated:
                    self._feed_all()
            self._want(worker, wish)

        self._after(took, take)
        return wish

    def _done(self) -> None:
        self._left -= 1
        if not self._left:
            self._over.succeed()

    def _want(self, worker: _Worker, wish: simpy.Event) -> None:
        worker.waiting.append(wish)
        self._feed(worker)

    def _feed_all(self) -> None:
        for worker in tuple(self._workers.values()):
            self._feed(worker)

    def _feed(self, worker: _Worker) -> None:
        """Give a worker what it wants, as far as it is its turn."""
        if self._workers.get(worker.number) is not worker:
            return
        num_workers = max(1, self._num_usable if self._env.now < _SECONDS_TO_JOIN else len(self._workers))
        while worker.waiting and len(worker.jobs) < -(-self._left // num_workers):
            job = self._next_job(worker)
            if job is None:
                return
            job.began, job.model, job.cpu, job.requests = self._env.now, 0.0, 0.0, 0
            worker.jobs[job] = None
            worker.waiting.popleft().succeed(job)

    def _next_job(self, worker: _Worker) -> _Job | None:
        if worker.is_isolated:
            return None
        if self._suspects and (not self._isolating or worker in self._isolating):
            return self._next_suspect(worker)
        self._isolating.discard(worker)
        job = self._again.popleft() if self._again else next(self._fresh, None)
        return self._next_suspect(worker) if job is None and self._suspects else job

    def _next_suspect(self, worker: _Worker) -> _Job | None:
        self._isolating.add(worker)
        if worker.jobs:
            return None
        worker.is_isolated = True
        return self._suspects.popleft()

    def _lose(self, worker: _Worker) -> None:
        """Let others play what a dead worker was playing."""
        del self._workers[worker.number]
        self._busy_before += worker.core.busy
        self._isolating.discard(worker)
        for job in worker.jobs:
            self._times["lost"] += self._env.now - job.began
            self._counts["lost_requests"] += job.requests
            job.deaths += 1
            if job.deaths >= MOST_DEATHS:
                self._counts["failed"] += 1
                self._done()
                continue
            self._counts["redone"] += 1
            (self._suspects if job.deaths == MOST_DEATHS - 1 else self._again).append(job)
        worker.jobs.clear()
        self._feed_all()

    # The forecast

    def _forecast(self) -> dict[str, Any]:
        options, counts, seconds = self._options, self._counts, self._env.now
        busy = self._busy_before + sum(worker.core.busy for worker in self._workers.values())
        ideal = ideal_seconds(options, self._latencies)
        answered = counts["requests"] - counts["refused"]
        places = options.concurrent * seconds
        times = {name: max(0.0, _share(value, places)) for name, value in self._times.items()}
        times["no_rollout"] = max(0.0, 1 - sum(times.values()))
        use = {
            "the model": times["model"],
            "the CPU time of workers": _share(busy, self._num_workers * seconds),
            "the CPU time of the coordinator": _share(self._core.busy, seconds),
            "the rate limit": max(times["rate_limit"], _share(answered, options.requests_per_second * seconds)),
            "starts and deaths of workers": times["starting"] + times["lost"],
            "places without a rollout": times["no_rollout"],
        }
        return {
            "seconds": seconds,
            "rollouts_per_second": _share(options.rollouts, seconds),
            "ideal_seconds": ideal,
            "share_of_ideal": _share(ideal, seconds),
            "bottleneck": max(use, key=lambda name: use[name]),
            "workers_busy": use["the CPU time of workers"],
            "coordinator_busy": use["the CPU time of the coordinator"],
            **counts,
            "lost_place_seconds": self._times["lost"],
            "place_time": times,
        }


def forecast(options: Options) -> dict[str, Any]:
    """Simulate a run and return what is to be expected of it.

    Returns:
        ``seconds`` until the last row, ``rollouts_per_second``, ``ideal_seconds`` (see `ideal_seconds`) and ``share_of_ideal``;
        ``bottleneck``: what is used most; ``workers_busy`` and ``coordinator_busy``: the shares of the time in which their cores compute;
        ``deaths`` of workers, rollouts that were ``redone`` after one, those that ``failed`` since three workers died while they played
        them, and those that ``gave_up`` since the provider refused too often; ``requests`` that the provider received, those of them that
        were ``refused`` (429), and ``lost_requests`` of attempts that died; ``lost_place_seconds``: the time that these attempts took;
        ``place_time``: of the time of all places, the share that each thing took which they were waiting for.

    Raises:
        vfgym.errors.WorkersLost: If workers die before they have started, and none is left.
    """
    return Simulation(options).run()


def ideal_seconds(options: Options, latencies: np.ndarray) -> float:
    """Return how long the run takes where nothing but the model and its rate limit takes time, and no worker dies."""
    places = [0.0] * min(options.concurrent, options.rollouts)
    for seconds in latencies.sum(axis=1).tolist():
        heapq.heapreplace(places, places[0] + seconds)
    rate = options.requests_per_second
    allowed = 0.0 if rate == math.inf else (options.rollouts * options.turns - max(1.0, rate)) / rate
    return max(max(places), allowed)


def _share(part: float, whole: float) -> float:
    return 0.0 if not whole else part / whole


# A real run beside it


class Talk(vfgym.MultiTurnEnv):
    """Conversations of some turns, each with its number in the question."""

    def __init__(self, rollouts: int = 1, turns: int = 1) -> None:
        """Make so many tasks."""
        super().__init__(
            max_turns=turns, dataset=[{"question": str(number)} for number in range(rollouts)], rubric=vfgym.Rubric([long_enough])
        )

    def env_response(self, messages: Any, state: Any) -> Any:
        """Ask for more."""
        return [{"role": "user", "content": "Go on."}]


def long_enough(state: Any) -> float:
    """Return how many answers there were."""
    return float(len(state["trajectory"]))


def serve(options: Options) -> None:
    """Answer requests of `Talk` after the simulated latencies, below the rate limit, until the standard input ends.

    The first line that is printed is the URL, the last one how many requests there were.
    """
    import asyncio

    from aiohttp import web

    latencies, bucket, counts = options.latencies().tolist(), TokenBucket(options.requests_per_second), {"requests": 0, "refused": 0}
    began = time.monotonic()

    async def answer(request: web.Request) -> web.Response:
        counts["requests"] += 1
        if not bucket.take(time.monotonic() - began):
            counts["refused"] += 1
            return web.json_response(
                {"error": {"message": "too many requests"}}, status=429, headers={"Retry-After": f"{options.retry_after:g}"}
            )
        messages = (await request.json())["messages"]
        turn = sum(message["role"] == "assistant" for message in messages)
        await asyncio.sleep(latencies[int(messages[0]["content"])][turn])
        message = {"role": "assistant", "content": "Well."}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage})

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await runner.cleanup()

    asyncio.run(run())
    print(json.dumps(counts))


@dataclass
class _Server:
    url: str
    counts: dict[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def served(options: Options) -> Iterator[_Server]:
    """Serve in a process of its own; how many requests there were is known afterwards."""
    command = [sys.executable, __file__, "--serve", json.dumps(dataclasses.asdict(options))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        server = _Server(process.stdout.readline().strip())
        try:
            yield server
        finally:
            process.stdin.close()
            server.counts = json.loads(process.stdout.read())


@dataclass
class _Killer:
    """Kills the workers of this process when their time is over."""

    lifetimes: Iterator[float]
    deaths: int = 0

    @contextlib.contextmanager
    def at_work(self) -> Iterator[threading.Event]:
        """Kill until the event is set that is given, or the block is left."""
        over = threading.Event()
        thread = threading.Thread(target=self._kill, args=(over,))
        thread.start()
        try:
            yield over
        finally:
            over.set()
            thread.join()

    def _kill(self, over: threading.Event) -> None:
        ends: dict[int, float] = {}
        while not over.wait(0.01):
            for process in multiprocessing.active_children():
                if process.name == "vfgym-worker" and process.pid is not None:
                    end = ends.get(process.pid)
                    if end is None:
                        ends[process.pid] = time.monotonic() + next(self.lifetimes)
                    elif time.monotonic() >= end:
                        process.kill()
                        self.deaths += 1
                        ends[process.pid] = math.inf


def play(options: Options, url: str) -> dict[str, Any]:
    """Play a real run on workers of this machine.

    Returns:
        What `forecast` forecasts, as far as it can be seen from here; and ``first`` (seconds until the first row), ``cpu_workers`` and
        ``cpu_coordinator``.
    """
    module = Path(__file__).stem if __name__ == "__main__" else __name__
    agent = vfgym.ModelAgent(vfgym.ClientConfig(api_base_url=url, api_key="none"), "m")
    rows: list[float] = []
    killer = _Killer(options.lifetimes())

    def note(*_: Any) -> None:
        rows.append(time.perf_counter())
        if len(rows) == options.rollouts:
            over.set()

    cpu = {who: _cpu_seconds(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)}
    began = time.perf_counter()
    with killer.at_work() as over:
        results = vfgym.evaluate(
            f"{module}:Talk",
            agent,
            env_args={"rollouts": options.rollouts, "turns": options.turns},
            num_examples=options.rollouts,
            max_concurrent=options.concurrent,
            executor="process",
            workers=options.workers,
            progress=False,
            on_progress=note,
        )
    failed = [row["error"] for row in results["outputs"] if row["error"] is not None]
    died = sum(error["error"] == "WorkerDied" for error in failed)
    return {
        "seconds": rows[-1] - began,
        "first": rows[0] - began,
        "deaths": killer.deaths,
        "redone": results["metadata"].get("redone", 0),
        "failed": died,
        "gave_up": len(failed) - died,
        "cpu_workers": _cpu_seconds(resource.RUSAGE_CHILDREN) - cpu[resource.RUSAGE_CHILDREN],
        "cpu_coordinator": _cpu_seconds(resource.RUSAGE_SELF) - cpu[resource.RUSAGE_SELF],
    }


def _cpu_seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def calibrate(options: Options) -> Options:
    """Measure what rollouts, rows, starts and requests cost on this machine, by two short runs without deaths and without a rate limit."""
    few, many = (
        dataclasses.replace(options, rollouts=min(options.rollouts, number), mtbf=math.inf, requests_per_second=math.inf)
        for number in (200, 2200)
    )
    with served(many) as server:
        network = _seconds_of_a_request(server.url, many)
        short, long = play(few, server.url), play(many, server.url)
    more = max(1, many.rollouts - few.rollouts)
    quickest = float(many.latencies()[: many.concurrent].sum(axis=1).min())
    return dataclasses.replace(
        options,
        cpu_rollout=max(0.0, long["cpu_workers"] - short["cpu_workers"]) / more,
        cpu_row=max(0.0, long["cpu_coordinator"] - short["cpu_coordinator"]) / more,
        start=min(short["first"], long["first"]) - quickest,
        network=network,
    )


def _seconds_of_a_request(url: str, options: Options) -> float:
    """Return what a request takes beyond the model's time and the CPU time of who asks."""
    import asyncio

    import aiohttp

    latencies = options.latencies()[:, 0].tolist()[:50]

    async def ask() -> float:
        async with aiohttp.ClientSession() as session:
            began, cpu = time.perf_counter(), time.process_time()
            for number in range(len(latencies)):
                body = {"messages": [{"role": "user", "content": str(number)}]}
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    await response.read()
            return (time.perf_counter() - began) - (time.process_time() - cpu)

    return max(0.0, (asyncio.run(ask()) - sum(latencies)) / len(latencies))


CHECKED_FIGURES = ("seconds", "requests", "refused", "deaths", "redone", "failed", "gave_up")


def check(options: Options) -> dict[str, Any]:
    """Play a run, and return its figures beside those of the forecast.

    Returns:
        ``calibrated`` (the options with what was measured of this machine), and for each figure ``forecast``, ``measured`` and ``ratio``
        (None where nothing was measured).
    """
    logging.getLogger("vfgym").setLevel(logging.ERROR)  # each death is a warning
    options = calibrate(options)
    expected = forecast(options)
    with served(options) as server:
        measured = play(options, server.url)
    measured |= server.counts
    figures = {
        name: {"forecast": expected[name], "measured": measured[name], "ratio": expected[name] / measured[name] if measured[name] else None}
        for name in CHECKED_FIGURES
    }
    return {"calibrated": _as_json(options), "figures": figures}


# The command


def _as_json(options: Options) -> dict[str, Any]:
    """Return options as JSON takes them: what is unlimited is null."""
    return {name: None if value == math.inf else value for name, value in dataclasses.asdict(options).items()}


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return number


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, got {text!r}")
    return number


def _positive(text: str) -> float:
    if not (number := _number(text)):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number


OPTIONS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "rollouts": (_count, "N", "how many rollouts are played"),
    "workers": (_count, "N", "how many processes play them"),
    "concurrent": (_count, "N", "most rollouts at once, in all workers together"),
    "turns": (_count, "N", "requests of each rollout"),
    "median": (_number, "SECONDS", "median of the time in which the model answers"),
    "sigma": (_number, "SIGMA", "standard deviation of its logarithm"),
    "mtbf": (_positive, "SECONDS", "mean time until a worker dies; without it, none does"),
    "requests_per_second": (_positive, "RATE", "the provider's rate limit; without it, there is none"),
    "retry_after": (_positive, "SECONDS", "what the provider asks a refused request to wait"),
    "cpu_rollout": (_number, "SECONDS", "CPU time of a worker for each rollout"),
    "cpu_row": (_number, "SECONDS", "CPU time of the coordinator for each row"),
    "start": (_number, "SECONDS", "time from the start of a worker until it asks for rollouts"),
    "network": (_number, "SECONDS", "time that a request takes beyond the model's"),
    "seed": (int, "SEED", "of latencies and deaths"),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Forecast how a large run goes.", epilog="The defaults are those of a forecast; --check has a shorter run of its own."
    )
    defaults = Options()
    for name, (kind, metavar, what) in OPTIONS.items():
        default = getattr(defaults, name)
        shown = "" if default == math.inf else f" (default: {default:g})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar=metavar, default=argparse.SUPPRESS, help=f"{what}{shown}")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="play a real run on this machine, and print its figures beside the forecast")
    parser.add_argument("--serve", default=None, help=argparse.SUPPRESS)
    return parser


def _print_forecast(found: dict[str, Any]) -> None:
    times = found["place_time"]
    print(f"duration      {found['seconds']:.1f} s: {found['rollouts_per_second']:.1f} rollouts a second")
    print(f"ideal         {found['ideal_seconds']:.1f} s; the run reaches {found['share_of_ideal']:.1%} of that speed")
    print(f"bottleneck    {found['bottleneck']}")
    print(f"busy          workers {found['workers_busy']:.1%}, coordinator {found['coordinator_busy']:.1%}")
    print(f"requests      {found['requests']}, of them refused (429): {found['refused']}; {found['gave_up']} rollouts gave up")
    print(f"deaths        {found['deaths']}: {found['redone']} rollouts redone, {found['failed']} failed")
    print(f"  their cost  {found['lost_requests']} requests, {found['lost_place_seconds']:.1f} s of places")
    print("places        " + ", ".join(f"{name.replace('_', ' ')} {share:.1%}" for name, share in times.items()))


def _print_check(found: dict[str, Any]) -> None:
    told = found["calibrated"]
    print(
        f"calibrated: {told['cpu_rollout'] * 1e3:.2f} ms of CPU a rollout, {told['cpu_row'] * 1e3:.2f} ms a row,"
        f" {told['start']:.2f} s to start, {told['network'] * 1e3:.2f} ms a request"
    )
    print(f"{'':10}{'forecast':>10}{'measured':>10}{'ratio':>8}")
    for name, each in found["figures"].items():
        ratio = "" if each["ratio"] is None else f"{each['ratio']:.3f}"
        print(f"{name.replace('_', ' '):10}{each['forecast']:10.5g}{each['measured']:10.5g}{ratio:>8}")


def main(arguments: list[str] | None = None) -> None:
    """Print a forecast, or a check of one."""
    chosen = vars(_parser().parse_args(arguments))
    as_json, checks, served = (chosen.pop(name) for name in ("json", "check", "serve"))
    if served is not None:
        serve(Options(**json.loads(served)))
        return
    options = dataclasses.replace(CHECKED if checks else Options(), **chosen)
    try:
        found = check(options) if checks else {"options": _as_json(options), **forecast(options)}
    except vfgym.errors.WorkersLost as error:
        sys.exit(str(error))
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        (_print_check if checks else _print_forecast)(found)


if __name__ == "__main__":
    main()
