"""What viewers show of one rollout, as its row says it: its messages, its answers, how it ended, in a few words what was said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from vfgym.codecs.thinking import drop_thinking
from vfgym.endings import ending_of

_FIRST_WORDS = 120
"""Characters of the first words of a rollout."""
_WORDS_OF_TURN = 40
"""Characters of one answer among several."""


def task_and_rollout(row: Mapping[str, Any]) -> str:
    """Return which rollout a row is of: the id of its task, and its number: ``"7/1"``."""
    return f"{row['example_id']}/{row.get('rollout') or 0}"


def seconds_of(row: Mapping[str, Any]) -> float:
    """Return how long a rollout took; 0.0 where its row does not say."""
    timing = row.get("timing")
    total = timing.get("total") if isinstance(timing, Mapping) else None
    return float(total) if isinstance(total, int | float) else 0.0


def tokens_of(row: Mapping[str, Any]) -> float | None:
    """Return how many tokens the model of a rollout read and wrote; None where its row does not say."""
    usage = row.get("token_usage") or {}
    known = [usage[kind] for kind in ("input_tokens", "output_tokens") if kind in usage]
    return sum(known) if known else None


def messages_of(row: Mapping[str, Any], key: Literal["prompt", "completion"]) -> list[Mapping[str, Any]]:
    """Return the prompt or the completion of a row as messages: a text is one message."""
    messages = row.get(key) or ()
    if isinstance(messages, str):
        return [{"role": "user" if key == "prompt" else "assistant", "content": messages}]
    return list(messages)


def answers_of(row: Mapping[str, Any]) -> list[int]:
    """Return where the model's answers stand in the completion of a row."""
    return [at for at, message in enumerate(messages_of(row, "completion")) if message.get("role") == "assistant"]


def step_rewards_of(row: Mapping[str, Any]) -> dict[int, float] | None:
    """Return what turns earned, by the places of their answers in the completion; None where the row does not say, or of other turns."""
    earned, answers = row.get("step_rewards"), answers_of(row)
    if not isinstance(earned, list) or len(earned) != len(answers) or not all(isinstance(each, int | float) for each in earned):
        return None
    return dict(zip(answers, earned, strict=True))


def ended_by(row: Mapping[str, Any]) -> str:
    """Return how a rollout ended, and the stop condition that ended it where there is one: ``"cut (limit_reached)"``."""
    stop_condition = row.get("stop_condition")
    return f"{ending_of(row)} ({stop_condition})" if stop_condition else str(ending_of(row))


def failure_reason(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return why a rollout failed: in a word, by which failures are grouped, and in full."""
    error = row.get("error")
    if error is not None:
        return str(error.get("error") or "error"), str(error.get("error_chain_repr") or error)
    raised = row.get("metrics_errors")
    if raised:
        name, message = next(iter(raised.items()))
        return f"reward function {name}", str(message)
    return str(row.get("stop_condition") or "no reason given"), "its answers could not be read"


def asked_words(row: Mapping[str, Any]) -> str:
    """Return the first words of what a rollout begins with: of the last message of its prompt."""
    prompt = messages_of(row, "prompt")
    return _words(prompt[-1], _FIRST_WORDS) if prompt else ""


def said_words(row: Mapping[str, Any]) -> str:
    """Return the first words of the answers: ``"down · down · right"``."""
    completion, answers = messages_of(row, "completion"), answers_of(row)
    said: list[str] = []
    length = 0
    for at in answers:
        words = _words(completion[at], _WORDS_OF_TURN if len(answers) > 1 else _FIRST_WORDS) or "(no text)"
        length += len(words) + 3
        if said and length > _FIRST_WORDS + 3:
            return " · ".join([*said, "…"])
        said.append(words)
    return " · ".join(said)


def _words(message: Mapping[str, Any], most: int) -> str:
    """Return the first words of a message, in one line: of its text without its thinking, and of the tools that it calls."""
    words = ""
    for text in _texts(message):
        said, _ = drop_thinking(text)
        words = f"{words} {' '.join(said[: 4 * most].split())}".strip()
        if len(words) > most:
            return f"{words[:most].rstrip()}…"
    return words


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield text
    for call in message.get("tool_calls") or ():
        made = call.get("function") or call if isinstance(call, Mapping) else {}
        yield f"{made.get('name')}({made.get('arguments')})"
