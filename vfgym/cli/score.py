"""``vfgym score``: the rollouts of a run are scored again with another rubric, as a new run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vfgym.agents.loading import import_object
from vfgym.calls import CallPlan
from vfgym.cli.conventions import Exit, print_json
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import redact_data
from vfgym.output.terminal import echo
from vfgym.results.files import default_results_path, write_results
from vfgym.rubrics import Rubric
from vfgym.runs.rescoring import score


def score_run(run: Path, rubric_name: str, output_dir: Path, *, rubric_args: Mapping[str, Any] | None = None, as_json: bool) -> Exit:
    """Score a run again, write the new one below a directory, and print where it is. Return whether it has a mean.

    Raises:
        ConfigurationError: If there is no such rubric, or it cannot score the run.
        vfgym.results.ResultsError: If results cannot be read or written.
    """
    results = score(run, load_rubric(rubric_name, rubric_args))
    results["metadata"]["scored_by"] = {"rubric": rubric_name, "rubric_args": redact_data(dict(rubric_args or {}))}
    metadata, rows = results["metadata"], results["outputs"]
    path = default_results_path(metadata["env_id"], metadata["model"], output_dir, is_model=metadata.get("is_model", True))
    write_results(path, results)
    mean = metadata["avg_reward"]
    if as_json:
        print_json({"path": str(path), "rollouts": len(rows), "avg_reward": mean})
    else:
        rollouts = "1 rollout" if len(rows) == 1 else f"{len(rows)} rollouts"
        echo(f"{rollouts} scored again: " + ("no mean" if mean is None else f"mean reward {mean:.3f}"))
        echo(f"results in {path}")
    return Exit.NOT_GOOD if mean is None else Exit.GOOD


def load_rubric(name: str, arguments: Mapping[str, Any] | None = None) -> Rubric:
    """Return the rubric that ``module:name`` refers to; the module may lie in the current directory.

    It may be a rubric, a class of rubrics, a function that returns one, or a reward function.

    Args:
        name: The name.
        arguments: What a class or a function is made or called with. Without any, a function that takes something is a reward function.

    Raises:
        ConfigurationError: If there is no such thing, it is none of these, or it does not take the arguments.
    """
    needed_by = f"--rubric {name}"
    if ":" not in name:
        raise ConfigurationError(f"{needed_by}: give it as module:name, such as my_rubrics:strict")
    found = import_object(name, needed_by)
    if arguments:
        return _make_rubric(found, arguments, needed_by)
    if callable(found) and not isinstance(found, Rubric) and not (isinstance(found, type) and not issubclass(found, Rubric)):
        found = found() if _needs_nothing(found, needed_by) else Rubric(found)
    if not isinstance(found, Rubric):
        raise ConfigurationError(f"{needed_by} must be a vfgym.Rubric, a function that makes one or a reward function, got {found!r}")
    return found


def _make_rubric(target: Any, arguments: Mapping[str, Any], needed_by: str) -> Rubric:
    """Return what a class of rubrics, or a function that makes one, makes with some arguments."""
    kind = "a class of rubrics or a function that makes one"
    if isinstance(target, Rubric) or not callable(target):
        raise ConfigurationError(f"{needed_by}: --rubric-args are for {kind}, and it is {target!r}")
    try:
        inspect.signature(target).bind(**arguments)
    except ValueError:
        raise ConfigurationError(f"{needed_by}: --rubric-args are for {kind}, and it is {target!r}") from None
    except TypeError as error:
        takes = getattr(target, "__name__", repr(target)) + str(inspect.signature(target))
        raise ConfigurationError(f"{needed_by}: {takes} does not take --rubric-args: {error}") from None
    made = target(**arguments)
    if not isinstance(made, Rubric):
        raise ConfigurationError(f"{needed_by}: --rubric-args are for {kind}, and it returned {type(made).__name__}, no vfgym.Rubric")
    return made


def _needs_nothing(target: object, needed_by: str) -> bool:
    """Say whether something can be called without arguments. A class of rubrics that cannot is refused: it scores nothing by itself."""
    if isinstance(target, type):
        try:
            inspect.signature(target).bind()
        except TypeError as error:
            raise ConfigurationError(
                f"{needed_by}: {target.__name__} cannot be made without arguments ({error}): name one that is made"
            ) from None
        return True
    plan = CallPlan(target)  # type: ignore[arg-type]
    return not plan.names and not plan.takes_any
