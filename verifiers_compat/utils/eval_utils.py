"""What evaluations are made of, under the documented names: config files, the endpoint registry, runs, and what is printed about them."""

from __future__ import annotations

import contextlib
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from verifiers_compat.cli.evals.endpoints import load_endpoints, resolve_endpoints_file
from verifiers_compat.cli.evals.files import invalid_ablation_sweep_fields, load_toml_config, normalize_env_id_alias
from verifiers_compat.cli.evals.report import (
    get_env_outputs,
    output_env_id,
    print_info,
    print_results,
    print_rewards,
    print_timing,
    print_usage,
    to_col_order,
)
from verifiers_compat.cli.evals.runs import run_evaluation, run_evaluations
from verifiers_compat.envs.datasets import without_progress_bars
from verifiers_compat.loading import create_getattr
from verifiers_compat.utils.logging_utils import LEVEL_VAR, log_level

__all__ = [
    "filter_inputs",
    "get_env_outputs",
    "get_log_level",
    "invalid_ablation_sweep_fields",
    "load_endpoints",
    "load_toml_config",
    "normalize_env_id_alias",
    "output_env_id",
    "print_info",
    "print_results",
    "print_rewards",
    "print_timing",
    "print_usage",
    "quiet_datasets",
    "resolve_endpoints_file",
    "run_evaluation",
    "run_evaluations",
    "to_col_order",
]

__getattr__ = create_getattr(__name__)


def filter_inputs(
    inputs: Iterable[Mapping[str, Any]], outputs: Iterable[Mapping[str, Any]], rollouts_per_example: int
) -> list[Mapping[str, Any]]:
    """Return the inputs of a run that are still to be played.

    Args:
        inputs: Rows, each as often as it is to be played; those of one example have one ``example_id``.
        outputs: What was finished already.
        rollouts_per_example: How often an example is played.

    Returns:
        For each example its first rows, as many as rollouts are missing.
    """
    played = Counter(output["example_id"] for output in outputs)
    missing = []
    for row in inputs:
        if played[row["example_id"]] < rollouts_per_example:
            played[row["example_id"]] += 1
            missing.append(row)
    return missing


def get_log_level(verbose: bool) -> str:
    """Return the level of the log: ``"DEBUG"`` where more is asked for, else that of ``VF_LOG_LEVEL``, else ``"INFO"``."""
    return "DEBUG" if verbose else os.environ.get(LEVEL_VAR) or "INFO"


@contextlib.contextmanager
def quiet_datasets() -> Iterator[None]:
    """Show no progress bars and no messages below errors of `datasets`, inside a ``with``."""
    with without_progress_bars(), log_level(logging.ERROR, "datasets"):
        yield
