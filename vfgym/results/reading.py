"""Reading results back: this library's files, those that were cut off, and older ones in other spellings."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from vfgym.bounded_json import parse_json
from vfgym.messages import Message, MessageTypes, ResponseMessage, as_messages, as_tool_call
from vfgym.output.terminal import one_line
from vfgym.results.files import METADATA, ROWS, ResultsError, open_plain
from vfgym.results.metadata import GenerateOutputs
from vfgym.results.outputs import RunOutputs
from vfgym.results.plain_json import read_number
from vfgym.results.row_kinds import check_kinds, is_number
from vfgym.results.rows import STANDARD_KEYS, ErrorInfo, RolloutOutput, row_order
from vfgym.results.statistics import with_statistics
from vfgym.results.trajectory import KeptStep, decode_steps
from vfgym.state import MessagesView

logger = logging.getLogger(__name__)


_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What data that were read may raise where they are not what they should be."""


class ResultLine(NamedTuple):
    """A row, and where it stands in its file."""

    row: RolloutOutput
    start: int
    stop: int


class RowsFile(NamedTuple):
    """What a file of rows held when it was read."""

    lines: list[ResultLine]
    """The whole lines, in order."""
    identity: tuple[int, int]
    """Its inode and its size, which tell whether it was written to since."""
    is_whole: bool
    """Whether all of it is whole lines, with their ends."""
    is_cut: bool
    """Whether a part of a row was left out at the end, as a run that is killed may leave it."""


def load_results(path: str | Path) -> GenerateOutputs:
    """Read the results of a run back.

    A last line that is not whole (the run was killed while writing it) is left out, and reported in the log. The prompts of a
    trajectory's steps share their storage. Files of other writers are read too: tool calls may be JSON text, the error
    a plain string, and metrics may stand beside the other keys only.

    Args:
        path: Directory of the results.

    Returns:
        Rows by example and rollout, and the metadata as it was written last.

    Raises:
        ResultsError: If a file is missing, or another line than the last is not a row.
    """
    path = Path(path)
    metadata = read_metadata(path)
    file = read_rows(path, metadata)
    report_cut(path, file)
    outputs = sorted((line.row for line in file.lines), key=row_order)
    return cast(GenerateOutputs, RunOutputs(outputs=outputs, metadata={**metadata, "path_to_save": path}))


def read_metadata(path: Path) -> dict[str, Any]:
    """Read the metadata of a run.

    Raises:
        ResultsError: If there is none, or it is not a JSON object.
    """
    try:
        with open_plain(path / METADATA) as file:
            metadata = parse_json(file.read())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ResultsError(f"cannot read results from {path}: it is not the directory of a run, which has a {METADATA}") from error
    except (OSError, ValueError) as error:
        raise _cannot_read(path, error) from error
    if not isinstance(metadata, dict):
        raise ResultsError(f"cannot read results from {path}: {METADATA} is not a JSON object")
    return with_statistics(metadata, read_number)


def read_rows(path: Path, metadata: Mapping[str, Any]) -> RowsFile:
    """Read the rows of a run, with the places of their lines.

    Raises:
        ResultsError: If there are none, or another line than the last is not a row.
    """
    columns = metadata.get("state_columns")
    not_metrics = STANDARD_KEYS.union(columns if isinstance(columns, list) else ())
    lines: list[ResultLine] = []
    broken: tuple[int, Exception] | None = None
    is_whole = True
    end = 0
    try:
        with open_plain(path / ROWS) as file:
            for number, line in enumerate(file, start=1):
                if broken is not None:
                    raise _no_rollout(path, broken[0], str(broken[1])) from broken[1]
                start, end = end, end + len(line)
                is_whole = line.endswith(b"\n")
                try:
                    data = parse_json(line)
                except (json.JSONDecodeError, UnicodeDecodeError) as error:
                    broken = number, error
                    continue
                except ValueError as error:
                    raise _no_rollout(path, number, str(error)) from error
                try:  # what is whole JSON was not cut off, so such a line is never left out
                    lines.append(ResultLine(read_row(data, not_metrics), start, end))
                except _MALFORMED as error:
                    raise _no_rollout(path, number, str(error)) from error
            identity = os.fstat(file.fileno()).st_ino, end
    except ResultsError:
        raise
    except OSError as error:
        raise _cannot_read(path, error) from error
    return RowsFile(lines, identity, is_whole and broken is None, broken is not None)


def report_cut(path: Path, file: RowsFile) -> None:
    """Say in the log that a part of a row was left out."""
    if file.is_cut:
        logger.warning("the last line of %s is not whole and is left out: the run was stopped while writing it", path / ROWS)


def _no_rollout(path: Path, number: int, why: str) -> ResultsError:
    return ResultsError(f"line {number} of {path / ROWS} is not a rollout: {one_line(why)}")


def _cannot_read(path: Path, error: Exception) -> ResultsError:
    return ResultsError(f"cannot read results from {path}: {error}")


def read_row(data: Any, not_metrics: Collection[str]) -> RolloutOutput:
    """Return what a line says as a row with the keys that every row has.

    Args:
        data: The line's data, which become the row's own.
        not_metrics: Keys under which no metric stands: `STANDARD_KEYS`, and the state columns.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: If it is none.
    """
    if not isinstance(data, dict):
        raise ValueError(f"it must be a JSON object, got {type(data).__name__}")
    row = RolloutOutput(data)
    if type(row.get("example_id")) is not int:
        raise ValueError(f"it needs an integer example_id, got {row.get('example_id')!r}")
    check_kinds(row)
    row["reward"] = _number("reward", row.get("reward", 0.0))
    if "return" in row:
        row["return"] = _number("return", row["return"])
    metrics = row.get("metrics")
    if isinstance(metrics, dict):
        row["metrics"] = {name: _number(name, value) for name, value in metrics.items()}
        row.update({name: _read(row[name]) for name in metrics if name in row and name not in not_metrics})
    else:
        row["metrics"] = {key: value for key, value in row.items() if key not in not_metrics and type(value) in (int, float)}
    row["error"] = _error(row)
    if type(row.get("failed")) is not bool:  # a row of an older version or of another writer; it may have a metric of that name
        row.pop("counted_reward", None)
        row["failed"] = row["error"] is not None
    elif row.get("counted_reward") is not None:
        row["counted_reward"] = _number("counted_reward", row["counted_reward"])
    for key in ("prompt", "completion"):
        _read_tool_calls(row.get(key))
    trajectory = row.get("trajectory")
    if isinstance(trajectory, list) and all(isinstance(step, dict) and {"prompt", "completion"} <= step.keys() for step in trajectory):
        for step in trajectory:
            shown = step["prompt"]
            _read_tool_calls(shown["new"] if isinstance(shown, dict) else shown)
            _read_tool_calls(step["completion"])
        row["trajectory"] = decode_steps(trajectory, row.get("prompt"))
    return row


def _read(value: Any) -> Any:
    """Return what stands for a reward or a metric as it was; null, which stood for what JSON has no number for, as NaN."""
    return math.nan if value is None else read_number(value)


def _number(name: str, value: Any) -> float:
    number = _read(value)
    if not (isinstance(number, bool) or is_number(number)):
        raise ValueError(f"its {name} must be a number, got {value!r:.100}")
    return cast(float, number)


def _error(row: Mapping[str, Any]) -> ErrorInfo | None:
    error = row.get("error")
    if error is None:
        return None
    known = error if isinstance(error, dict) else {"error": error}
    text = known["error"]
    chain = {"error_chain_repr": row.get("error_chain") or text, "error_chain_str": row.get("long_error_chain") or text}
    return ErrorInfo({**chain, **known})


def _read_tool_calls(messages: Any) -> None:
    """Put the tool calls of messages into the form in which this library writes them."""
    if not isinstance(messages, list):
        return
    for message in messages:
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        if calls and not all([isinstance(call, dict) and "function" in call for call in calls]):
            message["tool_calls"] = [as_tool_call(call) for call in calls]


def take_messages(row: RolloutOutput, types: MessageTypes) -> bool:
    """Put message objects into a row that was read, wherever one that was just played has them.

    The prompts of a trajectory's steps share their storage as before.

    Args:
        row: The row. Where its messages are malformed, nothing of it is changed.
        types: The message class for each role.

    Returns:
        Whether its messages are well-formed.
    """
    try:
        row.update(_Messages(types).of_row(row))
    except _MALFORMED:
        return False
    return True


class _Messages:
    """The messages of one row: each is made once, however many lists hold it."""

    def __init__(self, types: MessageTypes) -> None:
        self._types = types
        self._made: dict[int, Message] = {}
        self._logs: dict[int, list[Message]] = {}

    def of_row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the items of a row that hold messages, with message objects."""
        items: dict[str, Any] = {key: self._of_list(row[key]) for key in ("prompt", "completion") if isinstance(row.get(key), list)}
        trajectory = row.get("trajectory")
        if isinstance(trajectory, list) and all(isinstance(step, KeptStep) for step in trajectory):
            items["trajectory"] = [self._of_step(step) for step in trajectory]
        return items

    def _of_list(self, data: list[Any]) -> list[Message]:
        new = [item for item in data if id(item) not in self._made]
        self._made.update(zip(map(id, new), as_messages(new, self._types), strict=True))
        return [self._made[id(item)] for item in data]

    def _of_step(self, step: KeptStep) -> KeptStep:
        kept = KeptStep(step)
        log, response = step["prompt"]._messages, step.get("response")
        if id(log) not in self._logs:
            self._logs[id(log)] = self._of_list(log)
        kept["prompt"] = MessagesView(self._logs[id(log)], len(step["prompt"]))
        kept["completion"] = self._of_list(step["completion"])
        if isinstance(response, Mapping) and isinstance(response.get("message"), Mapping):
            kept["response"] = {**response, "message": ResponseMessage.of_fields(response["message"])}
        return kept
