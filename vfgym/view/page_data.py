"""What a page holds of its runs, as JSON data: each message, image and tool once, and rows that refer to them by number."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vfgym.output.redaction import redact_data
from vfgym.results.counting import is_failed
from vfgym.results.files import NOT_WRITTEN
from vfgym.results.intervals import format_estimate
from vfgym.results.plain_json import NotPlain, as_json, number_as_text
from vfgym.results.trajectory import is_trajectory
from vfgym.view.findings import EnvironmentFindings, find, note_on, number_rows
from vfgym.view.public_text import shorten_paths
from vfgym.view.rollouts import (
    answers_of,
    asked_words,
    ended_by,
    failure_reason,
    messages_of,
    said_words,
    seconds_of,
    step_rewards_of,
    tokens_of,
)
from vfgym.view.run_report import RunReport
from vfgym.view.scales import histogram_of

_SHOWN_APART = frozenset(
    {
        *("example_id", "rollout", "prompt", "completion", "reward", "counted_reward", "failed", "error", "error_chain"),
        *("long_error_chain", "metrics", "metrics_errors", "cleanup_errors", "stop_condition", "ending", "is_truncated", "token_usage"),
        *("tool_defs", "trajectory", "fingerprint", "env_id"),
    }
)
"""Keys of a row that a page has a place for; the rest is listed as it is."""

_STEP_SHOWN_APART = frozenset({"prompt", "completion", "response", "tokens", "reward", "trajectory_id"})


class _Table:
    """Values by number, equal ones once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number_of(self, value: Any) -> int:
        """Return the number of a value, which is kept from now on."""
        key = json.dumps(value, sort_keys=True)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


class PageData:
    """Collects what the runs of one page hold."""

    def __init__(self, reports: Sequence[RunReport]) -> None:
        """Take the runs, in the order in which they are shown."""
        self._messages, self._images, self._tools = _Table(), _Table(), _Table()
        self._known: dict[int, tuple[Any, int]] = {}
        """Each message object of the row that is read, by its id, with its number: a trajectory has them many times."""
        findings = find(reports)
        self._environments = [_plain(_environment(each, reports)) for each in findings.environments]
        scales = {place: each.reward_scale for each in findings.environments for place in each.runs}
        self._runs = [self._run(report, findings.labels[place], scales[place]) for place, report in enumerate(reports)]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as JSON data."""
        tables = {"messages": self._messages.values, "images": self._images.values, "tools": self._tools.values}
        return {"format": 2, "environments": self._environments, "runs": self._runs, **tables}

    def _run(self, report: RunReport, label: str, scale: Sequence[float] | None) -> Any:
        metadata = {key: value for key, value in report.metadata.items() if key not in NOT_WRITTEN and key not in report.summary}
        asked = [asked_words(row) for row in report.rows]
        if len(report.tasks) > 1 and len(set(asked)) == 1:  # what every rollout begins with tells none from another
            asked = [""] * len(asked)
        numbers = [number for number in report.counted if number is not None]
        return _plain(
            {
                "name": report.name,
                "label": label,
                "env": str(report.metadata.get("env_id") or "an environment"),
                "mean": _estimate(report.reward.value, report.reward.interval),
                "note": note_on(report),
                "remarks": report.remarks,
                "concerns": [shorten_paths(dataclasses.asdict(concern)) for concern in report.concerns],
                "metadata": shorten_paths(redact_data({str(key): _as_data(value) for key, value in metadata.items()})),
                "histogram": histogram_of(numbers, scale) if scale else None,
                "endings": report.endings,
                "rows": [
                    {"asked": asked, **self._row(row, counted)}
                    for row, counted, asked in zip(report.rows, report.counted, asked, strict=True)
                ],
            }
        )

    def _row(self, row: Mapping[str, Any], counted: float | None) -> dict[str, Any]:
        self._known.clear()
        prompt, completion = self._numbers(messages_of(row, "prompt")), self._numbers(messages_of(row, "completion"))
        data: dict[str, Any] = {
            "example": row["example_id"],
            "rollout": row.get("rollout") or 0,
            "fingerprint": row.get("fingerprint"),
            "reward": row["reward"],
            "counted": counted,
            "ended": ended_by(row),
            "turns": len(answers_of(row)),
            "seconds": seconds_of(row),
            "tokens": tokens_of(row),
            "usage": row.get("token_usage") or {},
            "said": said_words(row),
            "metrics": row["metrics"],
            "prompt": prompt,
            "completion": completion,
        }
        if is_failed(row):
            data["failure"] = shorten_paths(list(failure_reason(row)))
        for key in ("metrics_errors", "cleanup_errors"):
            if row.get(key):
                data[key] = shorten_paths(_as_data(row[key]))
        if row.get("tool_defs"):
            data["tools"] = [self._tools.number_of(_as_data(tool)) for tool in row["tool_defs"]]
        trajectory = row.get("trajectory")
        if is_trajectory(trajectory):
            data["steps"] = self._steps(trajectory, prompt, completion)
        elif (earned := step_rewards_of(row)) is not None:
            data["steps"] = [{"at": at, "reward": reward} for at, reward in earned.items()]
        apart = _SHOWN_APART.union(row["metrics"], ["step_rewards"] if "steps" in data else ())
        data["rest"] = {str(key): _as_data(value) for key, value in row.items() if key not in apart and not _is_empty(value)}
        return data

    def _steps(self, trajectory: Sequence[Mapping[str, Any]], prompt: list[int], completion: list[int]) -> list[dict[str, Any]]:
        """Return the turns: where the answer of each stands in the completion, and what it was asked where that is another prompt."""
        steps, place = [], 0
        conversation = prompt + completion
        for step in trajectory:
            asked, answered = self._numbers(step["prompt"]), self._numbers(step["completion"])
            extras = step.get("extras") or {}
            data: dict[str, Any] = {"reward": extras.get("reward", step.get("reward"))}  # the other one may be of the whole rollout
            at = next((at for at in range(place, len(completion)) if answered and completion[at : at + len(answered)] == answered), None)
            if at is None:
                data["completion"] = answered
            else:
                data["at"], place = at, at + len(answered)
            if at is None or asked != conversation[: len(prompt) + at]:
                data["prompt"] = asked
            rest = {key: value for key, value in step.items() if key not in _STEP_SHOWN_APART and not _is_empty(value)}
            if rest:
                data["rest"] = {str(key): _as_data(value) for key, value in rest.items()}
            steps.append(data)
        return steps

    def _numbers(self, messages: Iterable[Any]) -> list[int]:
        return [self._number(message) for message in messages]

    def _number(self, message: Any) -> int:
        _, number = self._known.get(id(message), (None, None))
        if number is None:
            number = self._messages.number_of(self._message(_as_data(message)))
            self._known[id(message)] = message, number
        return number

    def _message(self, message: Any) -> dict[str, Any]:
        if not isinstance(message, Mapping):
            return {"role": "unknown", "content": str(message)}
        content = message.get("content")
        if not isinstance(content, list):
            return dict(message)
        return {**message, "content": [self._part(part) for part in content]}

    def _part(self, part: Any) -> Any:
        url = part.get("image_url") if isinstance(part, Mapping) else None
        url = url.get("url") if isinstance(url, Mapping) else url
        if not isinstance(url, str):
            return part
        return {"type": "image", "image": self._images.number_of(url)}


def _environment(findings: EnvironmentFindings, reports: Sequence[RunReport]) -> dict[str, Any]:
    return {
        "env": findings.env_id,
        "runs": findings.runs,
        "headlines": findings.headlines,
        "pairs": [
            {
                **{key: pair[key] for key in ("a", "b", "verdict", "distinguishable", "better", "worse", "equal")},
                "difference": _estimate(pair["difference"], pair["interval"], sign="+"),
            }
            for pair in findings.pairs
        ],
        "scales": {
            "mean": _scale(findings.mean_scale),
            "difference": _scale(findings.difference_scale),
            "reward": _scale(findings.reward_scale),
        },
        "numbers": number_rows([reports[place] for place in findings.runs]),
        "tasks": [dataclasses.asdict(task) for task in findings.tasks],
    }


def _estimate(value: float | None, interval: Sequence[float] | None, sign: str = "") -> dict[str, Any]:
    text = "not known" if value is None else format_estimate(value, interval, sign)
    return {"value": value, "interval": interval, "text": text}


def _scale(ticks: Sequence[float] | None) -> list[tuple[float, str]] | None:
    """Return the ticks of a scale, each with its text."""
    return None if ticks is None else [(tick, f"{tick:g}") for tick in ticks]


def _as_data(value: Any) -> Any:
    """Return a value as JSON data, or a note where it is nested too deeply."""
    try:
        return as_json(value, fallback=repr)
    except NotPlain as error:
        return f"({error})"


def _is_empty(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, list | dict) and not value)


def _plain(value: Any) -> Any:
    """Return data with numbers that JSON does not know as text."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return number_as_text(value)
