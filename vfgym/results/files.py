"""Results on disk: rows appended as they come, metadata replaced as a whole."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

from vfgym.errors import Error
from vfgym.results.metadata import GenerateMetadata, GenerateOutputs
from vfgym.results.plain_json import json_text
from vfgym.results.rows import RolloutOutput, row_order

logger = logging.getLogger(__name__)

ROWS = "results.jsonl"
METADATA = "metadata.json"


class ResultsError(Error, OSError):
    """Results could not be written or read."""

    outputs: GenerateOutputs | None = None
    """What was finished when a write failed."""


def default_results_path(env_id: str, model: str, root: str | Path = "outputs") -> Path:
    """Return a fresh directory name below `root`: ``evals/{env_id}--{model}/{8 hex digits}``, with ``--`` for each slash."""
    return Path(root) / "evals" / f"{_as_name(env_id)}--{_as_name(model)}" / uuid.uuid4().hex[:8]


def _as_name(text: str) -> str:
    return re.sub(r"[^\w.+-]", "-", text.replace("/", "--"))


class ResultsWriter:
    """Writes one run's results into a directory."""

    def __init__(self, path: str | Path, metadata: Mapping[str, Any]) -> None:
        """Make the directory and both files, so that what is wrong with it shows before any rollout runs.

        Args:
            path: Directory of the results.
            metadata: What is known of the run as it begins.

        Raises:
            ResultsError: If the directory or the files cannot be made, or it holds results of another run.
        """
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Unbuffered: a row is one write call, and is with the system when that returns.
            self._rows: io.RawIOBase = open(self.path / ROWS, "ab", buffering=0)  # noqa: SIM115 (held open for the whole run)
        except OSError as error:
            raise self._failed(error) from error
        try:
            if self._rows.tell() > 0:
                raise ResultsError(f"{self.path} holds the results of another run already: choose another directory, or remove it")
            self.write_metadata(metadata)
        except BaseException:
            self._rows.close()
            raise

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one row.

        Raises:
            ResultsError: If it cannot be written.
        """
        line = memoryview((json_text(row) + "\n").encode())
        try:
            while line:  # a raw write may take a part only, when the disk is nearly full
                line = line[self._rows.write(line) or 0 :]
        except OSError as error:
            raise self._failed(error) from error

    def write_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Replace the metadata: a reader sees the old file or the new one, never a part.

        Raises:
            ResultsError: If it cannot be written.
        """
        kept = {key: value for key, value in metadata.items() if key != "path_to_save"}
        target = self.path / METADATA
        temporary = target.with_suffix(".json.tmp")
        try:
            temporary.write_text(json_text(kept, is_indented=True) + "\n", encoding="utf-8")
            os.replace(temporary, target)
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _failed(self, error: OSError) -> ResultsError:
        reason = error.strerror or str(error)
        return ResultsError(f"cannot write results to {self.path}: {reason}. Give a directory that can be written, with room on its disk")


def load_results(path: str | Path) -> GenerateOutputs:
    """Read the results of a run back.

    A last line that is not whole (the run was killed while writing it) is left out, and reported in the log.

    Args:
        path: Directory of the results.

    Returns:
        Rows by example and rollout, and the metadata as it was written last.

    Raises:
        ResultsError: If a file is missing, or another line than the last is no JSON object.
    """
    path = Path(path)
    try:
        metadata = json.loads((path / METADATA).read_text(encoding="utf-8"))
        lines = (path / ROWS).read_bytes().splitlines()
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot read results from {path}: {error}") from error
    outputs = []
    for number, line in enumerate(lines, start=1):
        try:
            outputs.append(RolloutOutput(json.loads(line)))
        except (ValueError, TypeError) as error:
            if number < len(lines):
                raise ResultsError(f"line {number} of {path / ROWS} is no rollout: {error}") from error
            logger.warning("the last line of %s is not whole and is left out: the run was stopped while writing it", path / ROWS)
    outputs.sort(key=row_order)
    return {"outputs": outputs, "metadata": cast(GenerateMetadata, {**metadata, "path_to_save": path})}
