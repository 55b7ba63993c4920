"""`dataframe`: runs as a table of pandas: a row for each rollout, turn, message or request."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from vfgym.endings import ending_of
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.messages.chat import content_text
from vfgym.results.metadata import GenerateOutputs
from vfgym.results.plain_json import as_json
from vfgym.results.reading import load_results

if TYPE_CHECKING:
    from pandas import DataFrame

FrameOf: TypeAlias = Literal["rows", "turns", "messages", "requests"]
"""What a table has a row for: each rollout, each turn of one, each message of its conversation, or each answer of a model in it."""


def dataframe(*runs: str | os.PathLike[str] | GenerateOutputs, what: FrameOf = "rows") -> DataFrame:
    """Return runs as one table.

    Every table begins with the columns ``run`` (its directory, or its number from 0 where it is none), ``env_id``, ``model``, ``tags``
    (text, commas between them), ``example_id`` and ``rollout``, by which tables are joined. Values that are one number, text or truth
    value are columns; those of objects are called by their path (``spent.cost``, ``timing.total``). Lists stand in the other tables.

    Args:
        *runs: Directories of runs, or what `vfgym.evaluate` returned.
        what: What a row is.

            * ``"rows"``: a rollout, with its reward, ending, metrics, tokens and times.
            * ``"turns"``: an answer, with ``turn`` (from 0), ``text``, ``num_tool_calls``, and ``reward``: what it earned, where that
              is known. Where the run kept trajectories (``state_columns=["trajectory"]``), also what they say of it.
            * ``"messages"``: a message of the whole conversation, with ``position`` (from 0), ``is_prompt``, ``role``, ``text`` and
              ``tool_calls`` (JSON).
            * ``"requests"``: an answer of a model, with ``asked_model``, ``created``, ``finish_reason`` and tokens. Only trajectories
              tell them: those of judges, and those that failed, stand in no row.

    Raises:
        ConfigurationError: If there is no such table, no run is given, or requests are asked of runs without trajectories.
        ResultsError: If a run cannot be read.
    """
    tables = get_args(FrameOf)
    if what not in tables:
        raise ConfigurationError(f"what must be one of {', '.join(tables)}, got {what!r}.{did_you_mean(str(what), tables)}")
    if not runs:
        raise ConfigurationError("dataframe needs the directory of a run, or what vfgym.evaluate returned")
    import pandas

    return pandas.DataFrame.from_records([record for place, run in enumerate(runs) for record in _records(run, place, what)])


def _records(run: str | os.PathLike[str] | GenerateOutputs, place: int, what: FrameOf) -> Iterator[dict[str, Any]]:
    """Give the rows of a table that are of one run."""
    if isinstance(run, str | os.PathLike):
        name: str | int = str(run)
        results = load_results(Path(run))
    else:
        path = run["metadata"].get("path_to_save")
        name, results = place if path is None else str(path), run
    metadata = results["metadata"]
    if what == "requests" and results["outputs"] and not any("trajectory" in row for row in results["outputs"]):
        raise ConfigurationError(
            f"the run {name} kept no trajectories, which tell the requests: play it with state_columns=['trajectory']"
            " (vfgym eval --state-column trajectory)"
        )
    for row in results["outputs"]:
        begin = {
            "run": name,
            "env_id": row.get("env_id", metadata["env_id"]),
            "model": metadata["model"],
            "tags": ",".join(metadata.get("tags") or ()),
            "example_id": row["example_id"],
            "rollout": row.get("rollout", 0),
        }
        for record in _TABLES[what](as_json(row, fallback=repr)):
            yield {**begin, **record}


def _rollout(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {
        "ending": str(ending_of(row)),
        **_flat({name: value for name, value in row.items() if name not in row["metrics"]}),
        **row["metrics"],
    }


def _turns(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    earned = row.get("step_rewards") or ()
    if "trajectory" in row:
        for turn, step in enumerate(row["trajectory"]):
            said = [message for message in step["completion"] if message["role"] == "assistant"]
            own = {name: value for name, value in step.items() if name not in ("prompt", "completion", "response")}
            reward = (step.get("extras") or {}).get("reward")
            yield {"turn": turn, **_said(said), **_flat(own), "reward": reward, **_tokens(step.get("response") or {})}
        return
    answers = [message for message in _messages_of(row.get("completion"), role="assistant") if message["role"] == "assistant"]
    for turn, message in enumerate(answers):
        yield {"turn": turn, **_said([message]), "reward": earned[turn] if len(earned) == len(answers) else None}


def _messages(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    prompt, completion = _messages_of(row.get("prompt")), _messages_of(row.get("completion"), role="assistant")
    for position, message in enumerate([*prompt, *completion]):
        calls = message.get("tool_calls")
        yield {
            "position": position,
            "is_prompt": position < len(prompt),
            "role": message["role"],
            "text": content_text(message.get("content")),
            "tool_calls": json.dumps(calls, ensure_ascii=False) if calls else None,
            "tool_call_id": message.get("tool_call_id"),
        }


def _requests(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for turn, step in enumerate(row.get("trajectory") or ()):
        response = step.get("response")
        if response and (response.get("model") or response.get("usage")):
            message = response.get("message") or {}
            yield {
                "turn": turn,
                "id": response.get("id"),
                "asked_model": response.get("model"),
                "created": response.get("created"),
                "finish_reason": message.get("finish_reason"),
                **_tokens(response),
            }


_TABLES = {"rows": _rollout, "turns": _turns, "messages": _messages, "requests": _requests}


def _messages_of(messages: Any, role: str = "user") -> Sequence[Mapping[str, Any]]:
    """Return the messages of a prompt or a completion, which may be one text."""
    return [{"role": role, "content": messages}] if isinstance(messages, str) else messages or ()


def _said(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "text": "\n".join(content_text(message.get("content")) for message in messages),
        "num_tool_calls": sum(len(message.get("tool_calls") or ()) for message in messages),
    }


def _tokens(response: Mapping[str, Any]) -> dict[str, Any]:
    usage = response.get("usage") or {}
    return {"input_tokens": usage.get("prompt_tokens"), "output_tokens": usage.get("completion_tokens")}


def _flat(data: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return what of some data is one number, text or truth value, by its path."""
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{path}{name}.")
        elif value is None or isinstance(value, str | int | float):
            flat[f"{path}{name}"] = value
    return flat
