"""A planted task: answers count only in a format that the system prompt must name, and models that play it and write prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import verifiers_compat as vf
from vfgym.messages import content_text
from vfgym.model_server import ModelRequest, ModelServer

START = "Double the number."
WRITTEN = "Double the number. Write <answer>NUMBER</answer>."
ROWS = [{"question": f"{number}, doubled?", "answer": str(2 * number)} for number in range(8)]
SMALL: Mapping[str, Any] = {"num_train": 4, "num_val": 4, "max_calls": 40, "perfect_score": 1.0}
"""A run in which one round is enough: 4 rollouts of the start, 3 of a round with the start, 3 and 4 with the prompt that is written."""
NUM_ROLLOUTS = 14


def is_formatted(completion: vf.Messages, answer: str) -> float:
    """Score the answer, in its format."""
    return float(completion[-1]["content"] == f"<answer>{answer}</answer>")


def doubles(**kwargs: Any) -> vf.SingleTurnEnv:
    """Return the environment of the task."""
    kwargs.setdefault("rubric", vf.Rubric(is_formatted))
    return vf.SingleTurnEnv(dataset=kwargs.pop("rows", ROWS), **{"system_prompt": START, **kwargs})


def player(request: ModelRequest) -> str:
    """Double the number, and write it in the format if the system prompt names it."""
    told = " ".join(content_text(message["content"]) for message in request.messages if message["role"] == "system")
    doubled = str(2 * int(content_text(request.messages[-1]["content"]).partition(",")[0]))
    return f"<answer>{doubled}</answer>" if "<answer>" in told else doubled


def writer(request: ModelRequest) -> str:
    """Propose the prompt that names the format, once the feedback says that answers without it score 0."""
    (message,) = request.messages
    shown = content_text(message["content"])
    assert "is_formatted: 0" in shown
    assert "Expected answer: " in shown
    return f"Answers lack their format.\n```\n{WRITTEN}\n```"


def serve(**policies: Any) -> ModelServer:
    """Return a server of the two models; others can take their places."""
    return ModelServer({"player": player, "writer": writer, **policies})


def asked(server: ModelServer, model: str) -> int:
    """Return how often a model was asked."""
    return sum(request.body["model"] == model for request in server.requests)
