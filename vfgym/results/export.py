"""`export`: the rollouts of a run in forms that other programs read: tables, data sets, and examples for training."""

from __future__ import annotations

import csv
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.results.counting import is_failed
from vfgym.results.dataset import results_dataset
from vfgym.results.files import ResultsError
from vfgym.results.metadata import GenerateOutputs
from vfgym.results.plain_json import as_json, json_text
from vfgym.results.reading import load_results
from vfgym.results.rows import row_order

ExportForm: TypeAlias = Literal["parquet", "csv", "hf", "sft", "preference"]
"""What is written. ``"parquet"`` and ``"csv"`` are tables with a row for each rollout, ``"hf"`` a directory that
`datasets.load_from_disk` reads, ``"sft"`` and ``"preference"`` JSONL files of examples for training."""

_SUFFIXES: Mapping[str, str] = {"parquet": ".parquet", "csv": ".csv", "hf": "", "sft": ".sft.jsonl", "preference": ".preference.jsonl"}


class Exported(TypedDict):
    """What `export` wrote."""

    path: str
    rows: int
    """How many rows or examples were written."""
    skipped: int
    """How many rollouts are in none of them."""


class _Example(TypedDict):
    """An example for training, and how many rollouts it was made of."""

    data: dict[str, Any]
    rollouts: int


def export(
    run: str | os.PathLike[str] | GenerateOutputs,
    to: ExportForm,
    path: str | os.PathLike[str],
    *,
    min_reward: float | None = None,
) -> Exported:
    """Write the rollouts of a run in another form.

    Args:
        run: The directory of a run, or what `vfgym.evaluate` returned.
        to: The form. Values without a column type of their own (messages, metrics) are JSON text in ``"csv"`` and columns of JSON in
            ``"parquet"`` and ``"hf"``. ``"sft"`` has the conversations that earned enough, as ``messages`` and ``tools``.
            ``"preference"`` has for each task with rewards that differ its best and its worst conversation, as ``prompt``, ``chosen``,
            ``rejected`` and ``tools``, which is what TRL reads. Failed rollouts are in neither.
        path: The file that is written (for ``"hf"`` the directory). There must be nothing yet.
        min_reward: For ``"sft"``, and for what is chosen in ``"preference"``: the lowest reward. For ``"sft"`` the ``pass_threshold`` of
            the run by default.

    Raises:
        ConfigurationError: If the form is none of these, there is something at the path, `min_reward` says nothing of the form, or no
            rollout is left to be written.
        ResultsError: If results cannot be read or written.
    """
    check_form(to, min_reward)
    path = Path(path)
    if os.path.lexists(path):  # a link that leads nowhere is something, too
        raise ConfigurationError(f"there is something at {path} already: choose another path, or remove it")
    results = load_results(Path(run)) if isinstance(run, str | os.PathLike) else run
    if not results["outputs"]:
        raise ConfigurationError("the run has no rollouts to export")
    rows = [as_json(row, fallback=repr) for row in sorted(results["outputs"], key=row_order)]
    try:
        if to in ("sft", "preference"):
            threshold = results["metadata"].get("pass_threshold") if to == "sft" and min_reward is None else min_reward
            examples = list((_conversations if to == "sft" else _preferences)(rows, threshold))
            if not examples:
                raise ConfigurationError(_nothing_left(to, threshold))
            _write_whole(path, lambda file: _write_lines(file, [example["data"] for example in examples]))
            return {"path": str(path), "rows": len(examples), "skipped": len(rows) - sum(example["rollouts"] for example in examples)}
        _write_whole(path, lambda file: _WRITERS[to](file, rows))
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror or error}") from error
    return {"path": str(path), "rows": len(rows), "skipped": 0}


def check_form(to: str, min_reward: float | None) -> None:
    """Check that there is such a form, and that a lowest reward says something of it.

    Raises:
        ConfigurationError: If not.
    """
    forms = get_args(ExportForm)
    if to not in forms:
        raise ConfigurationError(f"there is no form {to!r} of results: give one of {', '.join(forms)}.{did_you_mean(str(to), forms)}")
    if min_reward is not None and to not in ("sft", "preference"):
        raise ConfigurationError(f"a lowest reward is for sft and preference; {to} has all rollouts")


def default_export_path(run: Path, to: ExportForm) -> Path:
    """Return where a run is exported to if nobody says so: beside the working directory's files, named like the run."""
    return Path(f"{run.resolve().parent.name}-{run.resolve().name}{_SUFFIXES[to]}")


def _nothing_left(to: str, threshold: float | None) -> str:
    if to == "sft":
        return f"no rollout that did not fail has a reward of {threshold:g} or more: give another lowest reward"
    enough = "" if threshold is None else f" and one of {threshold:g} or more"
    return f"no task has two rollouts with rewards that differ{enough}: play several rollouts of each task"


def _write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file or a directory in a place of its own first: what stands at its path is whole, and nothing beside it is touched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=path.parent) as folder:
        temporary = Path(folder, path.name)
        write(temporary)
        if temporary.is_dir():
            temporary.rename(path)  # refused where anything but an empty directory stands there by now
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o666))  # refused where anything stands there by now
            os.replace(temporary, path)


def _write_parquet(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    results_dataset(rows).to_parquet(file)


def _write_directory(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    results_dataset(rows).save_to_disk(folder)


def _write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with file.open("w", newline="", encoding="utf-8", errors="replace") as target:
        table = csv.writer(target)
        table.writerow(columns)
        table.writerows([_cell(row.get(name)) for name in columns] for row in rows)


def _cell(value: Any) -> Any:
    return json_text(value) if isinstance(value, dict | list | bool) else value


def _write_lines(file: Path, examples: Sequence[Mapping[str, Any]]) -> None:
    with file.open("w", encoding="utf-8") as target:
        target.writelines(f"{json_text(example)}\n" for example in examples)


_WRITERS: Mapping[str, Callable[[Path, Sequence[Mapping[str, Any]]], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "hf": _write_directory,
}


def _has_conversation(row: Mapping[str, Any]) -> bool:
    prompt, completion = row.get("prompt"), row.get("completion")
    return not is_failed(row) and isinstance(prompt, list) and isinstance(completion, list) and bool(completion)


def _conversations(rows: Sequence[Mapping[str, Any]], threshold: float | None) -> Iterator[_Example]:
    """Give the conversations that earned enough."""
    for row in rows:
        if _has_conversation(row) and row["reward"] is not None and (threshold is None or row["reward"] >= threshold):
            yield {"data": {"messages": [*row["prompt"], *row["completion"]], **_tools(row)}, "rollouts": 1}


def _preferences(rows: Sequence[Mapping[str, Any]], threshold: float | None) -> Iterator[_Example]:
    """Give the best and the worst conversation of each task (of each prompt, where its rollouts were shown several)."""
    tasks: defaultdict[Hashable, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if _has_conversation(row) and row["reward"] is not None:
            tasks[row.get("fingerprint") or row["example_id"], json_text(row["prompt"])].append(row)
    for of_task in tasks.values():
        best, worst = max(of_task, key=_reward), min(of_task, key=_reward)
        if best["reward"] > worst["reward"] and (threshold is None or best["reward"] >= threshold):
            data = {"prompt": best["prompt"], "chosen": best["completion"], "rejected": worst["completion"], **_tools(best)}
            yield {"data": data, "rollouts": 2}


def _reward(row: Mapping[str, Any]) -> float:
    reward: float = row["reward"]
    return reward


def _tools(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tools of a conversation, in the form of OpenAI's API; nothing where there were none."""
    fields = ("name", "description", "parameters")
    tools = [{"type": "function", "function": {name: tool[name] for name in fields}} for tool in row.get("tool_defs") or ()]
    return {"tools": tools} if tools else {}
