"""``vfgym eval``: agents play the same tasks, and a table compares them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vfgym.agents import HumanAgent, load_agent
from vfgym.cli.environments import check_id
from vfgym.cli.table import print_table
from vfgym.errors import ConfigurationError
from vfgym.evaluation import evaluate
from vfgym.results import GenerateOutputs
from vfgym.results.files import default_results_path

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C stopped."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all agents play, and how (see `vfgym.evaluation.evaluate`)."""

    env_id: str
    env_args: dict[str, Any]
    num_examples: int
    rollouts_per_example: int
    max_concurrent: int
    seed: int
    output_dir: Path | None
    """Results go to a directory of their own below it; None for no results on disk."""
    strict: bool


def compare(settings: Settings, names: Sequence[str], plot: Path | None) -> int:
    """Let each agent play, and print a table.

    Returns:
        The exit code.

    Raises:
        ConfigurationError: If something is wrong with the settings: before any agent plays, where that can be seen.
    """
    if plot is not None and importlib.util.find_spec("matplotlib") is None:
        raise ConfigurationError("--plot needs matplotlib: pip install matplotlib")
    check_id(settings.env_id)
    agents = {name: load_agent(name) for name in names}
    results: dict[str, GenerateOutputs] = {}
    path: Path | None = None
    try:
        for name, agent in agents.items():
            if settings.output_dir is not None:
                path = default_results_path(settings.env_id, name, settings.output_dir)
            results[name] = evaluate(
                settings.env_id,
                agent,
                model=name,
                num_examples=settings.num_examples,
                rollouts_per_example=settings.rollouts_per_example,
                max_concurrent=1 if isinstance(agent, HumanAgent) else settings.max_concurrent,
                seed=settings.seed,
                results_path=path,
                strict=settings.strict,
                env_args=settings.env_args,
            )
    except KeyboardInterrupt:
        print("stopped" if path is None else f"stopped: what was finished is in {path}")
        return INTERRUPTED
    _print_comparison(results)
    if plot is not None:
        _draw(results, settings.env_id, plot)
        print(f"plot: {plot}")
    return 0


def _print_comparison(results: dict[str, GenerateOutputs]) -> None:
    each = [result["metadata"] for result in results.values()]
    metrics = list(dict.fromkeys(name for metadata in each for name in metadata["avg_metrics"]))
    ks = list(each[0]["pass_at_k"])
    columns = ["agent", "reward", *metrics, *(f"pass@{k}" for k in ks), *(f"pass^{k}" for k in ks), "errors", "seconds"]
    rows = []
    for name, result in results.items():
        metadata = result["metadata"]
        error = metadata["std_error"]
        num_errors = sum(row["error"] is not None for row in result["outputs"])
        rows.append(
            [
                name,
                f"{metadata['avg_reward']:.3f}" + ("" if error is None else f" ± {error:.3f}"),
                *(f"{metadata['avg_metrics'].get(metric, 0.0):.3f}" for metric in metrics),
                *(f"{passes[k]:.3f}" for passes in (metadata["pass_at_k"], metadata["pass_all_k"]) for k in ks),
                f"{num_errors}/{len(result['outputs'])}",
                f"{metadata['time']:.2f}",
            ]
        )
    print_table(columns, rows)
    for name, result in results.items():
        first_error = next((row["error"] for row in result["outputs"] if row["error"] is not None), None)
        if first_error is not None:
            print(f"{name}: the first error is {first_error}")
        if result["metadata"]["path_to_save"] is not None:
            print(f"{name}: results in {result['metadata']['path_to_save']}")


def _draw(results: dict[str, GenerateOutputs], title: str, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    each = [result["metadata"] for result in results.values()]
    axes.bar(
        list(results), [metadata["avg_reward"] for metadata in each], yerr=[metadata["std_error"] or 0.0 for metadata in each], capsize=4
    )
    axes.set(title=title, ylabel="mean reward ± standard error")
    figure.savefig(file)
