"""Results: from states to rows, and rows and metadata on disk, as a dataset and on the Hugging Face hub."""

from __future__ import annotations

import importlib.metadata
import json
import mmap
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from verifiers_compat import types
from verifiers_compat.utils.usage_utils import extract_usage_tokens as extract_usage_tokens
from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError
from vfgym.results import (
    GenerateMetadata,
    GenerateOutputs,
    RolloutOutput,
    Run,
    push_to_hub,
    results_dataset,
    rollout_output,
)
from vfgym.results.dataset import hub_name
from vfgym.results.files import METADATA, ROWS, metadata_as_written
from vfgym.results.plain_json import NotPlain, as_json, json_text
from vfgym.results.reading import read_metadata, read_rows, report_cut
from vfgym.results.resume import check_settings
from vfgym.results.rows import row_line, row_order
from vfgym.state import RolloutTiming, State

if TYPE_CHECKING:
    from datasets import Dataset


def is_json_serializable(value: Any) -> bool:
    """Say whether a value has a form in JSON (see `vfgym.results.plain_json.as_json`: models, dates, paths, exceptions too)."""
    try:
        as_json(value)
    except NotPlain:
        return False
    return True


def make_serializable(value: Any) -> Any:
    """Return a value as data that JSON can hold; what has no form in JSON is replaced by its ``repr``."""
    return as_json(value, repr)


def serialize_timing(timing: RolloutTiming) -> dict[str, Any]:
    """Return where the time of a rollout went as plain data, in seconds, derived values included."""
    return timing.model_dump()


def state_to_output(state: State, state_columns: Sequence[str] | None = None) -> RolloutOutput:
    """Return what is kept of a rollout that was played and scored.

    Args:
        state: The rollout.
        state_columns: Further items of the state to keep. One that has no form in JSON is replaced by a text that says so.
    """
    return rollout_output(state, state_columns=state_columns or (), is_counted=False)


def states_to_outputs(states: Iterable[State], state_columns: Sequence[str] | None = None) -> list[RolloutOutput]:
    """Return what is kept of several rollouts, numbered within their examples."""
    seen: Counter[Any] = Counter()
    outputs = []
    for state in states:
        example_id = state.get("example_id", 0)
        outputs.append(rollout_output(state, rollout=seen[example_id], state_columns=state_columns or (), is_counted=False))
        seen[example_id] += 1
    return outputs


class GenerateOutputsBuilder:
    """Collects the outputs of a run, and gives its metadata at any time."""

    def __init__(
        self,
        env_id: str,
        env_args: Mapping[str, Any],
        model: str,
        num_examples: int,
        rollouts_per_example: int,
        *,
        results_path: str | Path | None = None,
        **settings: Any,
    ) -> None:
        """Begin a run now.

        Args:
            env_id: Id of the environment.
            env_args: Arguments that it was loaded with.
            model: Name of the model.
            num_examples: How many examples are played.
            rollouts_per_example: How often each is.
            results_path: Where the results are saved.
            **settings: What else its metadata say: ``base_url``, ``sampling_args``, ``state_columns``, ``pass_threshold``,
                ``version_info``, ``max_concurrent``, ``seed``.
        """
        own = {"vf_version": importlib.metadata.version("vfgym"), "vf_commit": None, "env_version": None, "env_commit": None}
        defaults = {"pass_threshold": 0.5, "version_info": own, "seed": 0, "state_columns": [], "max_concurrent": -1}
        self._run = Run(
            env_id=env_id,
            env_args=dict(env_args),
            model=model,
            num_examples=num_examples,
            rollouts_per_example=rollouts_per_example,
            path_to_save=None if results_path is None else Path(results_path),
            mean_of="reward",
            **{**defaults, **settings},
        )
        self.outputs: list[RolloutOutput] = []
        """The outputs so far, as they came."""

    def add_outputs(self, new_outputs: Iterable[RolloutOutput]) -> None:
        """Add outputs."""
        self.outputs.extend(new_outputs)

    def build_metadata(self) -> GenerateMetadata:
        """Return the metadata over the outputs so far."""
        return self._run.outputs(self.outputs)["metadata"]

    def build(self) -> types.GenerateOutputs:
        """Return the outputs so far, by example and rollout, and the metadata."""
        return types.GenerateOutputs(self._run.outputs(self.outputs))


def load_outputs(results_path: str | Path) -> list[RolloutOutput]:
    """Read the rows of ``results.jsonl`` back, by example and rollout. Nothing else needs to be there.

    A last line that is not whole (the run was killed while writing it) is left out, and reported in the log.

    Raises:
        vfgym.results.ResultsError: If there is no such file, or a line other than the last is not a row.
    """
    folder = Path(results_path)
    file = read_rows(folder, read_metadata(folder) if (folder / METADATA).exists() else {})
    report_cut(folder, file)
    return sorted((line.row for line in file.lines), key=row_order)


def validate_resume_metadata(results_path: str | Path, env_id: str, model: str, num_examples: int, rollouts_per_example: int) -> None:
    """Check that a run can go on with the results in a directory. What their metadata do not tell is not compared.

    Raises:
        ConfigurationError: If they are of another environment or model, of another number of rollouts an example, or of more
            examples (a ``ValueError``).
        vfgym.results.ResultsError: If there is no metadata to read.
    """
    settings = {"env_id": env_id, "model": model, "num_examples": num_examples, "rollouts_per_example": rollouts_per_example}
    check_settings(results_path, read_metadata(Path(results_path)), settings)


def save_outputs(outputs: Iterable[Mapping[str, Any]], results_path: str | Path, mode: Literal["w", "a"] = "w") -> None:
    """Write rows to ``results.jsonl``.

    Args:
        outputs: The rows.
        results_path: Directory of the results, made if there is none.
        mode: ``"w"`` replaces the file as a whole; ``"a"`` adds to it, after removing a last line that is not whole.

    Raises:
        ConfigurationError: If `mode` is another.
        OSError: If the file cannot be written.
    """
    if mode not in ("w", "a"):
        raise ConfigurationError(f"mode must be 'w' (replace the file) or 'a' (add to it), got {mode!r}")
    folder = Path(results_path)
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{row_line(output)}\n" for output in outputs).encode()
    if mode == "w":
        _replace(folder / ROWS, lines)
        return
    with (folder / ROWS).open("ab+") as file:
        kept, ending = _whole_lines(file.fileno())
        file.truncate(kept)
        file.write(ending + lines)


def save_new_outputs(new_outputs: Iterable[Mapping[str, Any]], results_path: str | Path) -> None:
    """Add rows to ``results.jsonl``, after removing a last line that is not whole (a killed run leaves one)."""
    save_outputs(new_outputs, results_path, mode="a")


def sanitize_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as it is written to disk: plain data, without the date and the path."""
    return {key: as_json(value, repr) for key, value in metadata_as_written(metadata).items()}


def save_metadata(metadata: Mapping[str, Any], result_path: str | Path) -> None:
    """Replace ``metadata.json`` in a directory: a reader sees the old file or the new one, never a part."""
    folder = Path(result_path)
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / METADATA, (json_text(sanitize_metadata(metadata), is_indented=True) + "\n").encode())


def make_dataset(results: GenerateOutputs | Sequence[Mapping[str, Any]]) -> Dataset:
    """Return the rows of a run as a Hugging Face ``Dataset`` (see `vfgym.results.results_dataset`)."""
    return results_dataset(results)


def push_results_to_hf_hub(results: GenerateOutputs, dataset_name: str | None = None) -> str:
    """Publish the rows of a run on the Hugging Face hub, and return the name (see `vfgym.results.push_to_hub`)."""
    return push_to_hub(results, dataset_name)


def get_hf_hub_dataset_name(outputs: GenerateOutputs) -> str:
    """Return the name under which the results of a run are published: environment, model, numbers of examples and rollouts."""
    return hub_name(outputs["metadata"])


def _replace(file: Path, content: bytes) -> None:
    temporary = file.with_name(f"{file.name}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _whole_lines(descriptor: int) -> tuple[int, bytes]:
    """Return up to where a file holds whole rows, and what the last of them needs as its end."""
    if os.fstat(descriptor).st_size == 0:
        return 0, b""
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
        end = content.rfind(b"\n") + 1
        try:
            parse_json(content[end:])
        except (json.JSONDecodeError, UnicodeDecodeError):
            return end, b""
        except ValueError:  # it is whole, so it stays: whoever reads the file is told which line cannot be read
            pass
        return len(content), b"\n"
