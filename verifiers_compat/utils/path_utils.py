"""Where results are, and a place for temporary files."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vfgym.results.files import METADATA, ROWS, default_results_path, is_in_use
from vfgym.results.reading import read_metadata


def write_temp_file(content: str | bytes, suffix: str = "") -> str:
    """Write a new temporary file and return its path. Whoever asked for it removes it.

    Args:
        content: Text (written as UTF-8, line ends as they are) or bytes.
        suffix: End of the file's name, as ``".py"``.
    """
    with tempfile.NamedTemporaryFile(mode="wb", suffix=suffix, delete=False) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
    return file.name


def get_results_path(env_id: str, model: str, base_path: str | Path = "./outputs", subdir: str = "evals") -> Path:
    """Return a fresh directory name: ``{base_path}/{subdir}/{env_id}--{model}/{8 hex digits}``, with ``--`` for each slash."""
    run = default_results_path(env_id, model)
    return Path(base_path, subdir, *run.parts[-2:])


def get_eval_results_path(config: Any) -> Path:
    """Return a fresh directory name for the results of an evaluation.

    Args:
        config: Its ``EvalConfig``, or any object or mapping with ``env_id``, ``model``, and optionally ``env_dir_path`` and
            ``output_dir``.
    """
    fields = config if isinstance(config, Mapping) else vars(config)
    runs = get_eval_runs_dir(fields["env_id"], fields["model"], fields.get("env_dir_path"), fields.get("output_dir"))
    return runs / default_results_path("", "").name


def get_eval_runs_dir(
    env_id: str, model: str, env_dir_path: str | Path | None = "./environments", output_dir: str | Path | None = None
) -> Path:
    """Return the directory that holds the runs of an environment with a model.

    Args:
        env_id: Id of the environment.
        model: Name of the model.
        env_dir_path: Where environments are developed. Where the environment has a directory there, ``outputs`` inside that is
            the base.
        output_dir: The base; by default the environment's own, else ``./outputs``.
    """
    return get_results_path(env_id, model, _outputs_dir(env_id, env_dir_path, output_dir)).parent


def get_gepa_results_path(
    env_id: str, model: str, env_dir_path: str | Path | None = "./environments", output_dir: str | Path | None = None
) -> Path:
    """Return a fresh directory name for a run that improves the prompt of an environment (see `get_eval_runs_dir`)."""
    return get_results_path(env_id, model, _outputs_dir(env_id, env_dir_path, output_dir), "gepa")


def _outputs_dir(env_id: str, env_dir_path: str | Path | None, output_dir: str | Path | None) -> Path:
    base = Path(output_dir) if output_dir else Path("./outputs")
    if not output_dir and env_dir_path:
        own = Path(env_dir_path) / env_id.rpartition("/")[2].replace("-", "_")
        base = own / "outputs" if own.is_dir() else base
    return base


def is_valid_eval_results_path(path: str | Path) -> bool:
    """Say whether a directory holds results: both ``results.jsonl`` and ``metadata.json``."""
    return (Path(path) / ROWS).is_file() and (Path(path) / METADATA).is_file()


def find_latest_incomplete_eval_results_path(
    env_id: str,
    model: str,
    num_examples: int,
    rollouts_per_example: int,
    env_dir_path: str | Path | None = "./environments",
    output_dir: str | Path | None = None,
) -> Path | None:
    """Return the newest run of an environment with a model that can be resumed, or None.

    That is one that is not being written to, with the same number of rollouts an example, with no more examples than asked for,
    and with fewer finished rollouts than that makes. The parameters are those of `get_eval_runs_dir`, and of the run that is asked for.
    """
    runs = get_eval_runs_dir(env_id, model, env_dir_path, output_dir)
    candidates = [path for path in runs.iterdir() if is_valid_eval_results_path(path)] if runs.is_dir() else []
    for path in sorted(candidates, key=lambda path: (path / METADATA).stat().st_mtime_ns, reverse=True):
        try:
            metadata = read_metadata(path)
            with (path / ROWS).open("rb") as rows:
                finished = sum(line.endswith(b"\n") for line in rows)
        except OSError:
            continue
        if is_in_use(path) or (metadata.get("env_id"), metadata.get("model")) != (env_id, model):
            continue
        is_same = metadata.get("rollouts_per_example") == rollouts_per_example and metadata.get("num_examples", 0) <= num_examples
        if is_same and finished < num_examples * rollouts_per_example:
            return path
    return None
