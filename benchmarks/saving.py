"""What keeping a rollout costs: making its row, writing it, reading it back, and its size in memory and on disk.

Run ``python benchmarks/saving.py``. Times are CPU time of this process, the best of several rounds (the machine may be shared),
beside the aim that the project set itself. Nothing asserts on these numbers.
"""

from __future__ import annotations

import gc
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import vfgym
from vfgym.messages import AssistantMessage, Message, Response, Usage, UserMessage
from vfgym.results import EarlierRun, ResultsWriter, RolloutOutput, Run, Slot, fingerprint_of, load_results, rollout_output
from vfgym.results.metadata import version_info
from vfgym.results.rows import row_line
from vfgym.state import State

ROUNDS = 5
WORDS = "the quick brown fox jumps over the lazy dog " * 3
NUM_ROWS = 200


class GoOn(vfgym.MultiTurnEnv):
    """Answers every message with a text of about 130 characters."""

    def env_response(self, messages: list[Message], state: State) -> list[Message]:
        """Ask for more."""
        return [UserMessage(f"{len(messages)} {WORDS}")]


def played(turns: int) -> State:
    """Return the state of an episode of so many turns."""
    env = GoOn(dataset=[{"question": WORDS, "answer": "42"}], max_turns=turns, rubric=vfgym.Rubric(lambda completion: 1.0))
    env.reset(seed=0)
    for turn in range(turns):
        env.step(Response(f"r{turn}", 0, "m", Usage(10, 0, 5, 15), AssistantMessage(f"{turn} {WORDS}")))
    assert env.state is not None
    return env.state


def best(measure: Callable[[], object], count: int) -> float:
    """Return the CPU microseconds that each of the `count` things that `measure` does takes, in its best round."""
    values = []
    for _ in range(ROUNDS):
        gc.collect()
        started = time.process_time()
        measure()
        values.append((time.process_time() - started) / count * 1e6)
    return min(values)


def kept_bytes(turns: int) -> float:
    """Return the memory that one more kept rollout takes, messages included."""
    gc.collect()
    tracemalloc.start()
    rows = [rollout_output(played(turns), state_columns=["trajectory"]) for _ in range(20)]
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size / len(rows)


def tell(what: str, value: str, aim: str = "") -> None:
    """Print one line of the table."""
    print(f"{what:<58}{value:>14}   {aim}")


def main() -> None:
    """Measure and print."""
    for turns in (1, 20, 100):
        state = played(turns)
        row = rollout_output(state, state_columns=["trajectory"])
        with tempfile.TemporaryDirectory() as directory, ResultsWriter(directory, {}) as writer:

            def save(state: State = state, writer: ResultsWriter = writer) -> None:
                for _ in range(NUM_ROWS):
                    writer.append(rollout_output(state, state_columns=["trajectory"]))

            aim = {20: "aim: at most 1000"}.get(turns, "")
            tell(f"{turns} turns with trajectory: row and append, µs", f"{best(save, NUM_ROWS):.0f}", aim)
            tell(f"{turns} turns with trajectory: read back, µs", f"{best(lambda w=writer: load_results(w.path), NUM_ROWS * ROUNDS):.0f}")
        tell(f"{turns} turns with trajectory: on disk, KB", f"{len(row_line(row)) / 1000:.1f}")
        aim = {1: "aim: at most 5", 100: "aim: at most 100"}.get(turns, "")
        tell(f"{turns} turns with trajectory: in memory, KB", f"{kept_bytes(turns) / 1000:.1f}", aim)
    state = played(1)
    tell("1 turn without trajectory: row, µs", f"{best(lambda: [rollout_output(state) for _ in range(NUM_ROWS)], NUM_ROWS):.1f}")
    task = state["input"]
    tell("fingerprint of a task, µs", f"{best(lambda: [fingerprint_of(task) for _ in range(1000)], 1000):.1f}")
    measure_resuming(rollout_output(state), fingerprint_of(task))


def measure_resuming(row: RolloutOutput, fingerprint: str) -> None:
    """Measure what it costs to go on with a run of which most is done."""
    count = 5000
    run = Run(
        env_id="e",
        env_args={},
        model="m",
        num_examples=count,
        rollouts_per_example=1,
        pass_threshold=0.5,
        version_info=version_info(None),
        seed=0,
        state_columns=[],
        max_concurrent=1,
        path_to_save=None,
    )
    slots = [Slot(i, 0, f"{i}{fingerprint}") for i in range(count)]
    with tempfile.TemporaryDirectory() as directory:
        with ResultsWriter(directory, run.metadata([])) as writer:
            for slot in slots[: count // 2]:
                writer.append({**row, "example_id": slot.example_id, "fingerprint": slot.fingerprint})
        tell("resuming: reading and matching a row, µs", f"{best(lambda: EarlierRun.load(Path(directory), run, slots), count // 2):.0f}")


if __name__ == "__main__":
    main()
