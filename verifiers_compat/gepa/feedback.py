"""What the reflecting model is shown of a rollout: the conversation, what it was rewarded with, and why, as far as the rubric says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verifiers_compat.gepa.prompts import has_system_message
from vfgym.endings import ending_of
from vfgym.messages import content_text
from vfgym.results.plain_json import json_text


def reflective_record(row: Mapping[str, Any], score: float, state_columns: Sequence[str]) -> dict[str, str]:
    """Return what is shown of a rollout: inputs, generated outputs, feedback, and the state columns that were asked for.

    Args:
        row: The rollout.
        score: What it counts with.
        state_columns: Items of the state that stand in the row.
    """
    prompt = row["prompt"][1:] if has_system_message(row["prompt"]) else row["prompt"]
    columns = {name: _as_text(row[name]) for name in state_columns if row.get(name) is not None}
    return {
        "Inputs": conversation_text(prompt),
        "Generated Outputs": conversation_text(row["completion"]) or "(nothing)",
        "Feedback": _feedback(row, score),
        **columns,
    }


def _feedback(row: Mapping[str, Any], score: float) -> str:
    lines = [f"Score: {score:g}"]
    lines += [f"{name}: {value:g}" for name, value in row["metrics"].items()]
    if row.get("answer"):
        lines.append(f"Expected answer: {_as_text(row['answer'])}")
    if row["is_truncated"] or ending_of(row).kind in ("truncated", "cut"):
        lines.append(f"The rollout was cut off ({row['stop_condition']}).")
    if row["error"] is not None:
        lines.append(f"The rollout failed: {row['error']['error_chain_repr']}")
    for name, error in (row.get("metrics_errors") or {}).items():
        lines.append(f"{name} could not be computed: {_as_text(error)}")
    return "\n".join(lines)


def conversation_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return messages as text: the content of a single one, else each with who said it."""
    texts = [_message_text(message) for message in messages]
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"[{message['role']}]\n{text}" for message, text in zip(messages, texts, strict=True))


def _message_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = [content_text(content)]
    if isinstance(content, list | tuple):
        parts += [f"[{part.get('type')}]" for part in content if isinstance(part, Mapping) and part.get("type") != "text"]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        parts.append(f"calls {function['name']}({function['arguments']})")
    return "\n".join(part for part in parts if part)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)
