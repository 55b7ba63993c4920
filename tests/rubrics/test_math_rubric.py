"""`MathRubric`: which responses are equal, and that no expression, killed process, loop, thread or fork keeps others from a verdict."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import vfgym
from vfgym import Parser, Rubric, RubricGroup, SingleTurnEnv, State
from vfgym.errors import ConfigurationError, Error, InfraError, MissingExtra
from vfgym.rubrics import math_rubric, math_workers
from vfgym.rubrics.math_rubric import MathRubric, verify_response
from vfgym.rubrics.math_workers import VerificationTimeout
from vfgym.state import RolloutTiming
from vfgym.testing import ScriptedClient

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


def supervisor_pid() -> int:
    assert math_workers._supervisor is not None
    return math_workers._supervisor._process.pid


def children(pid: int, states: str = "RSD") -> list[int]:
    """Return the processes that a process started and that are in one of the states (running, sleeping, in the kernel)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        if int(parent) == pid and state in states:
            found.append(int(path.parent.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def end_of(pid: int) -> None:
    """Wait until a process has ended, whoever its parent is."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    has_ended = asyncio.Event()
    loop.add_reader(process, has_ended.set)
    try:
        await has_ended.wait()
    finally:
        loop.remove_reader(process)
        os.close(process)


async def end_of_some(pids: list[int], number: int) -> None:
    """Wait until so many of the processes have ended."""
    ends = [asyncio.ensure_future(end_of(pid)) for pid in pids]
    async with asyncio.timeout(20):
        for end in itertools.islice(asyncio.as_completed(ends), number):
            await end
    for task in ends:
        task.cancel()
    await asyncio.gather(*ends, return_exceptions=True)


on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")

# What is equal


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("42", "42"),
        ("0.5", r"\frac{1}{2}"),
        (r"\frac{2}{4}", "0.5"),
        ("1 + x^2", "x^2+1"),
        ("{2, 1}", r"\{1,2\}"),
        (r"\sqrt{8}", r"2\sqrt{2}"),
        ("1,000", "1000"),
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


async def test_an_answer_may_be_a_number() -> None:
    assert (await scored(MathRubric(), boxed("42.0"), 42))["reward"] == 1.0


async def test_a_response_that_is_too_long_scores_zero() -> None:
    rubric = MathRubric(max_verify_chars=5)
    assert (await scored(rubric, boxed("1/2+0"), "1/2"))["reward"] == 1.0
    assert (await scored(rubric, boxed("1/2+00"), "1/2"))["reward"] == 0.0
    assert await verify_response("1/2", "0.5", max_verify_chars=2) == 0.0


async def test_a_long_response_gets_a_verdict() -> None:
    assert await verify_response("é" * 50_000, "1/2") == 0.0
    assert await verify_response(" " * 49_000 + "0.5", "1/2") == 1.0


# The rubric


async def test_correct_answer_comes_after_the_functions_that_are_given() -> None:
    seen: list[str] = []

    def brief(completion: Any, parser: Parser) -> float:
        seen.append(str(parser.parse_answer(completion)))
        return 1.0

    rubric = MathRubric(brief, weights=[0.5])
    assert [function.__name__ for function in rubric.funcs] == ["brief", "correct_answer"]
    assert rubric.weights == [0.5, 1.0]
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
        {"max_workers": 0},
        {"max_workers": 1.5},
        {"timeout_seconds": 0},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": "5"},
        {"max_verify_chars": -1},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(options))} must be"):
        MathRubric(**options)


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


async def test_rollouts_are_scored_in_groups() -> None:
    env = asked(r"\frac{1}{2}")
    answers = ["0.5", "2^{-1}", "0.6", "no"]
    states = [await env.rollout(env.tasks.input(0), ScriptedClient([boxed(answer)]), "model") for answer in answers]
    await env.rubric.score_group(states)
    assert [state["reward"] for state in states] == [1.0, 1.0, 0.0, 0.0]
    assert [state["advantage"] for state in states] == [0.5, 0.5, -0.5, -0.5]


async def test_hundreds_at_once_get_their_own_verdicts() -> None:
    verdicts = await asyncio.gather(*(verify_response(f"{n // 2}.5", rf"\frac{{{2 * n + 1}}}{{2}}") for n in range(200)))
    assert verdicts == [float(n // 2 == n) for n in range(200)]


def test_any_number_of_loops_and_threads_may_ask() -> None:
    verdicts: dict[int, float] = {}

    def ask(number: int) -> None:
        verdicts[number] = asyncio.run(_verdict(f"{number}.0", str(number)))

    async def _verdict(response: str, answer: str) -> float:
        return await verify_response(response, answer)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == dict.fromkeys(range(4), 1.0)


def test_forked_children_ask_too() -> None:
    assert asyncio.run(_one_verdict()) == 1.0  # the parent's supervisor runs
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


@on_linux
async def test_a_hopeless_expression_holds_up_nobody() -> None:
    # More than there are workers for what is not hard, with the limits that a rubric has on a small machine.
    hopeless = [asyncio.ensure_future(verify_response(HOPELESS, str(n), timeout_seconds=600)) for n in range(3)]
    rubric = MathRubric(max_workers=2)
    good = await asyncio.gather(*(scored(rubric, boxed(f"{n}.0"), str(n)) for n in range(20)))
    assert [state["reward"] for state in good] == [1.0] * 20
    assert not any(task.done() for task in hopeless)
    at_work = children(supervisor_pid())
    for task in hopeless:
        task.cancel()
    await asyncio.gather(*hopeless, return_exceptions=True)
    await end_of_some(at_work, 3)  # nobody waits for them any more


async def test_a_time_out_is_not_mistaken_for_a_wrong_answer() -> None:
    rubric = MathRubric(timeout_seconds=0.5)
    hopeless, wrong, right = await asyncio.gather(*(scored(rubric, boxed(text), "4") for text in (HOPELESS, "5", "4.0")))
    assert [state["reward"] for state in (hopeless, wrong, right)] == [0.0, 0.0, 1.0]
    assert hopeless["metrics"] == wrong["metrics"] == {"correct_answer": 0.0}
    assert hopeless["metrics_errors"]["correct_answer"].startswith("VerificationTimeout(")
    assert "metrics_errors" not in wrong


def test_results_count_the_time_outs() -> None:
    env = SingleTurnEnv(dataset=[{"question": "4?", "answer": "4"}] * 3, rubric=MathRubric(timeout_seconds=0.5))
    results = vfgym.evaluate(env, lambda observation, info: boxed(HOPELESS))
    assert results["metadata"]["metrics_errors"] == {"correct_answer": 3}
    assert results["metadata"]["avg_reward"] == 0.0


async def test_a_time_out_names_the_expressions() -> None:
    with pytest.raises(VerificationTimeout, match=r"within 0\.2 s of CPU time on '9\^\{9\^\{9\}\}' for '4'") as caught:
        await verify_response(HOPELESS, "4", timeout_seconds=0.2)
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, Error)


@on_linux
async def test_a_killed_worker_is_replaced_and_its_question_asked_again() -> None:
    assert await verify_response("0.5", "1/2") == 1.0
    idle = set(children(supervisor_pid()))
    assert idle
    for pid in idle:
        os.kill(pid, signal.SIGKILL)
    assert await verify_response("1.5", "3/2") == 1.0
    with pytest.raises(InfraError, match="two worker processes died"):
        await asyncio.gather(verify_response(HOPELESS, "4", timeout_seconds=20), _kill_workers_at_work(supervisor_pid(), 2))
    assert await verify_response("2.5", "5/2") == 1.0


async def _kill_workers_at_work(supervisor: int, times: int) -> None:
    """Kill the one worker that computes, as often as told."""
    killed: set[int] = set()
    while len(killed) < times:
        await asyncio.sleep(0.01)
        for pid in set(children(supervisor, "R")) - killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)


async def test_a_killed_supervisor_is_replaced_and_its_questions_asked_again() -> None:
    assert await verify_response("0.5", "1/2") == 1.0
    killed = supervisor_pid()
    questions = asyncio.gather(*(verify_response(f"{n}.0", str(n)) for n in range(50)))
    await asyncio.sleep(0)
    os.kill(killed, signal.SIGKILL)
    assert await questions == [1.0] * 50
    assert supervisor_pid() != killed


async def test_a_supervisor_that_cannot_run_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)", encoding="utf-8")
    monkeypatch.setattr(math_workers, "_SCRIPT", broken)
    math_workers._close()
    with pytest.raises(InfraError, match="ended with exit code 3"):
        await verify_response("0.5", "1/2")
    monkeypatch.setattr(math_workers.sys, "executable", str(tmp_path / "nothing"))
    with pytest.raises(InfraError, match="could not be started"):
        await verify_response("0.5", "1/2")
    monkeypatch.undo()
    assert await verify_response("0.5", "1/2") == 1.0


async def test_who_is_cancelled_leaves_nothing_waiting() -> None:
    tasks = [asyncio.ensure_future(verify_response(HOPELESS, str(n), timeout_seconds=1)) for n in range(100)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    assert all(isinstance(result, asyncio.CancelledError) for result in await asyncio.gather(*tasks, return_exceptions=True))
    assert math_workers._supervisor is not None
    assert math_workers._supervisor.unanswered == {}
    assert await verify_response("0.5", "1/2") == 1.0


# Processes

SCRIPT = """
import asyncio, json, sys
from vfgym.rubrics import math_workers
from vfgym.rubrics.math_rubric import MathRubric, verify_response
MathRubric()

async def main():
    assert math_workers._supervisor is None
    assert await verify_response("1/2", "1/2") == 1.0 and await verify_response("", "1") == 0.0
    assert math_workers._supervisor is None  # nothing had to be verified yet
    print(json.dumps([await verify_response("0.5", "1/2"), math_workers._supervisor._process.pid, "math_verify" in sys.modules]))
    sys.stdout.flush()
    if len(sys.argv) > 1:
        questions = [verify_response(text, "1", timeout_seconds=100) for text in ("9^{9^{9}}", "1.0")]
        hopeless, quick = map(asyncio.ensure_future, questions)
        assert await quick == 1.0  # which was asked later
        print("at work", flush=True)
        await hopeless

asyncio.run(main())
"""


@on_linux
def test_a_script_needs_no_main_guard_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    for command in ([str(path)], ["-c", SCRIPT], ["-"]):
        done = subprocess.run(
            [sys.executable, "-W", "error", *command],
            input=SCRIPT,
            check=True,
            capture_output=True,
            text=True,
        )
        verdict, pid, is_loaded = json.loads(done.stdout)
        assert (verdict, is_loaded, done.stderr) == (1.0, False, "")
        assert not is_alive(pid)


@on_linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_workers_end_with_the_process_that_asked(number: signal.Signals) -> None:
    command = [sys.executable, "-c", SCRIPT, "hopeless"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        _, supervisor, _ = json.loads(process.stdout.readline())
        assert process.stdout.readline() == "at work\n"
        pids = [supervisor, *children(supervisor)]
        assert len(pids) > 1
        os.killpg(process.pid, number)  # as a terminal does, to the whole group
        process.wait(20)
        await end_of_some(pids, len(pids))
        assert "math_supervisor" not in process.stderr.read()
