"""Runs for viewers to show: written as files, and played."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import vfgym
from vfgym.messages import AssistantMessage, ToolCall
from vfgym.results import load_results
from vfgym.view import report_run

HOSTILE = "</script><img src=x onerror=\"document.title='run'\">"
"""What a model may write to be run."""

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel
)
BOARD = "+---+---+\n| X | O |\n+---+---+"


def page_data(page: str) -> dict[str, Any]:
    """Return what a page unpacks."""
    (packed,) = re.findall(r'<script type="application/octet-stream" id="data">([^<]*)</script>', page)
    unpacked: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return unpacked


def row(example: int = 0, rollout: int = 0, reward: float = 1.0, **fields: Any) -> dict[str, Any]:
    """Return a row as it stands in results.jsonl."""
    return {
        "example_id": example,
        "prompt": [{"role": "user", "content": f"question {example}"}],
        "completion": [{"role": "assistant", "content": f"answer {example}.{rollout}"}],
        "reward": reward,
        "failed": False,
        "counted_reward": reward,
        "error": None,
        "timing": {"total": 0.5},
        "is_truncated": False,
        "stop_condition": "max_turns",
        "metrics": {"num_turns": 1.0},
        "rollout": rollout,
        "fingerprint": f"{example:016x}",
        **fields,
    }


def write_run(path: Path, rows: list[dict[str, Any]], **metadata: Any) -> Path:
    """Write the files of a run."""
    path.mkdir(parents=True)
    known = {"env_id": "a-game-v0", "model": "a-model", "rollouts_per_example": 1, "pass_threshold": 0.5, "state_columns": [], "time": 3.0}
    (path / "metadata.json").write_text(json.dumps({**known, **metadata}))
    (path / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def rich_row(example: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a row with a system prompt, reasoning, a tool call, an image and a board."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"where": "needle-in-arguments"}'}}
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    return row(
        example,
        prompt=[
            {"role": "system", "content": "needle-in-system"},
            {"role": "user", "content": [{"type": "text", "text": f"Your board:\n\n{BOARD}"}, image]},
        ],
        completion=[
            {"role": "assistant", "content": "", "reasoning_content": "needle-in-reasoning", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "needle-in-tool"}, image]},
            {"role": "assistant", "content": HOSTILE},
        ],
        tool_defs=[{"name": "look", "description": "Look somewhere.", "parameters": {}}],
        token_usage={"input_tokens": 100.0, "output_tokens": 20.0},
        **fields,
    )


def failed_row(example: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a row of a rollout that an error ended."""
    error = {
        "error": "ModelError",
        "error_chain_repr": "ModelError('needle-in-error: /srv/models/keys/model.bin is missing')",
        "error_chain_str": "ModelError",
    }
    return row(example, reward=0.0, failed=True, counted_reward=None, error=error, stop_condition="has_error", **fields)


def large_run(path: Path, rollouts: int = 1000, turns: int = 20) -> Path:
    """Write a run of text with some 5 MB of rows."""
    random_ = random.Random(0)
    syllables = ["ka", "lo", "mi", "ren", "tu", "sha", "vo", "pel", "dri", "na"]
    words = ["".join(random_.choices(syllables, k=random_.randint(1, 4))) for _ in range(5000)]

    def text() -> str:
        return " ".join(random_.choices(words, k=11))

    rows = []
    for number in range(rollouts):
        talk = [{"role": role, "content": text()} for _ in range(turns) for role in ("assistant", "user")]
        rows.append(
            row(number // 4, number % 4, round(random_.random(), 3), completion=[*talk[:-1], {"role": "user", "content": f"end {number}"}])
        )
    return write_run(path, rows, rollouts_per_example=4)


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One number.
        b: The other number.
    """
    return a + b


def exact(completion: list[Any], answer: str) -> float:
    return float(completion[-1]["content"] == answer)


def play_run(path: Path | None = None) -> Any:
    """Play a run with tools and trajectories."""
    env = vfgym.ToolEnv(
        tools=[add],
        dataset=[{"question": f"What is {n} and {n}?", "answer": str(2 * n)} for n in range(3)],
        rubric=vfgym.Rubric(funcs=[exact]),
        max_turns=3,
    )

    def agent(observation: list[Any], info: dict[str, Any]) -> AssistantMessage:
        if observation[-1]["role"] == "tool":
            return AssistantMessage(observation[-1]["content"])
        return AssistantMessage("", tool_calls=[ToolCall("c1", "add", '{"a": 1, "b": 1}')])

    return vfgym.evaluate(env, agent, rollouts_per_example=2, state_columns=["trajectory"], results_path=path, progress=False)


def reports_of(tmp_path: Path, *runs: list[dict[str, Any]], **metadata: Any) -> list[Any]:
    return [report_run(load_results(write_run(tmp_path / str(place), rows, **metadata))) for place, rows in enumerate(runs)]
