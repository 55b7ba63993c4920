"""``vfgym eval``: agents play the same tasks, and a table compares them."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium as gym

from vfgym.agents.base import Agent
from vfgym.agents.human import EndOfInput
from vfgym.agents.isolated import IsolatedAgent
from vfgym.agents.loading import load_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.background import run_to_end
from vfgym.cli.conventions import Exit
from vfgym.cli.environments import check_id
from vfgym.cli.table import print_table
from vfgym.clients import PROVIDERS, ClientConfig, is_permanent_refusal
from vfgym.clients.config import NO_KEY, check_client_type, make_config, provider_named
from vfgym.clients.http.reachable import check_reachable
from vfgym.errors import ConfigurationError, Error, MissingExtra
from vfgym.limits import RolloutLimits, SpendingLimits
from vfgym.output.redaction import REDACTED
from vfgym.output.terminal import echo
from vfgym.results import GenerateMetadata, GenerateOutputs, find_incomplete
from vfgym.results.files import METADATA, default_results_path
from vfgym.runs import evaluate
from vfgym.runs.spending import Budget
from vfgym.state import UNREADABLE
from vfgym.wrappers.to_chat import import_id


@dataclass(frozen=True, kw_only=True)
class EvalSettings:
    """What all agents play, and how (see `vfgym.evaluate`)."""

    env_id: str
    env_args: dict[str, Any]
    num_examples: int
    rollouts_per_example: int
    max_concurrent: int
    seed: int
    split: Literal["train", "eval"]
    example_ids: Sequence[int]
    """Play the tasks with these ids, instead of the first so many; empty for those."""
    both_seats: bool = False
    """Whether each game for two players is played from either seat (see `vfgym.evaluate`)."""
    max_retries: int
    state_columns: Sequence[str]
    output_dir: Path | None
    """Results go to a directory of their own below it; None for no results on disk."""
    isolate: bool
    """Whether agents run in processes of their own (see `vfgym.agents.isolated.IsolatedAgent`)."""
    strict: bool
    resume: bool
    """Whether runs that were stopped are gone on with."""
    resumed_path: Path | None
    """The directory of the run that is gone on with; None for each agent's newest one that is not finished."""
    redo_errors: bool
    limits: SpendingLimits = field(default_factory=SpendingLimits)
    """What each run may spend."""
    limits_each: RolloutLimits = field(default_factory=RolloutLimits)
    """What each rollout may spend."""
    prices: Path | None = None
    """What models cost (see `vfgym.prices`)."""
    cache: bool = False
    """Whether answers of models are kept in the user's cache, and not asked for twice."""


@dataclass(frozen=True, kw_only=True)
class Models:
    """Models that play, and where they are."""

    names: Sequence[str] = ()
    provider: str | None = None
    base_url: str | None = None
    api_key_var: str | None = None
    client_type: str | None = None
    sampling_args: dict[str, Any] = field(default_factory=dict)

    def config(self) -> ClientConfig | None:
        """Return where the models are; None where there are none.

        Raises:
            ConfigurationError: If that is not said, or in a way that cannot work.
        """
        given: dict[str, Any] = {
            "provider": self.provider,
            "api_base_url": self.base_url,
            "api_key_var": self.api_key_var,
            "client_type": self.client_type,
        }
        fields = {name: value for name, value in given.items() if value is not None}
        if not self.names:
            if fields or self.sampling_args:
                raise ConfigurationError(
                    "--provider, --base-url, --api-key-var, --client-type and --sampling-args are about a --model: name one"
                )
            return None
        if self.provider is None and self.base_url is None:
            raise ConfigurationError(f"say where {self.names[0]} is: --provider ({', '.join(PROVIDERS)}) or --base-url URL")
        if self.provider is not None:
            provider_named(self.provider)
        if self.client_type is not None:
            check_client_type(self.client_type)
        if self.base_url is not None and self.provider is None and self.api_key_var is None:
            fields["api_key_var"] = PROVIDERS["openai"].key_var
        return make_config(**fields)


class Contestant(NamedTuple):
    """Who plays."""

    name: str
    """The name of an agent or of a model, as it stands in results."""
    agent: Agent
    label: str
    """What stands in the table: the name, and which of the two it is where both have it."""


def compare_agents(settings: EvalSettings, names: Sequence[str], models: Models, plot: Path | None) -> int:
    """Let each agent and each model play, and print a table.

    Returns:
        The exit code.

    Raises:
        ConfigurationError: If something is wrong with the settings: before any agent plays, where that can be seen.
        MissingExtra: If there is to be a plot, and nothing to draw it with.
        Error: If the plot cannot be drawn after all.
    """
    if plot is not None:
        _check_plot(plot)
    _check_resume(settings, [*names, *models.names])
    check_id(settings.env_id)
    config = models.config()
    Budget.of(settings.limits, settings.limits_each, settings.prices, settings.cache, models.names)
    contestants = list(_contestants(settings, names, models, config))
    if config is not None:
        run_to_end(check_reachable(config))
    if not contestants:
        raise ConfigurationError("say who plays: --agent random, --agent module:callable, --model MODEL --provider PROVIDER, ...")
    results: dict[str, GenerateOutputs] = {}
    path: Path | None = None
    try:
        for contestant in contestants:
            path = _results_path(settings, contestant)
            results[contestant.label] = evaluate(
                settings.env_id,
                contestant.agent,
                model=contestant.name,
                num_examples=settings.num_examples,
                rollouts_per_example=settings.rollouts_per_example,
                max_concurrent=settings.max_concurrent,
                seed=settings.seed,
                split=settings.split,
                example_ids=settings.example_ids or None,
                both_seats=settings.both_seats,
                max_retries=settings.max_retries,
                state_columns=settings.state_columns,
                results_path=path,
                resume=settings.resume,
                redo_errors=settings.redo_errors,
                strict=settings.strict,
                env_args=settings.env_args,
                limits=settings.limits,
                limits_each=settings.limits_each,
                prices=settings.prices,
                cache=settings.cache,
            )
    except (KeyboardInterrupt, EndOfInput):
        _print_comparison(results)
        is_kept = path is not None and (path / METADATA).is_file()
        echo(f"\nstopped: what was finished is in {path}" if is_kept else "\nstopped")
        return Exit.INTERRUPTED
    except Exception as error:
        _print_comparison(results)
        if not is_permanent_refusal(error):
            raise
        raise ConfigurationError(_refusal(error, config)) from error
    finally:
        for contestant in contestants:
            if isinstance(contestant.agent, ModelAgent):
                run_to_end(contestant.agent.close())
            elif isinstance(contestant.agent, IsolatedAgent):
                contestant.agent.close()
    _print_comparison(results)
    if plot is not None:
        try:
            _draw(results, settings.env_id, plot)
        except Exception as error:
            raise Error(f"the plot {plot} cannot be drawn: {error}") from error
        echo(f"plot: {plot}")
    if any(result["metadata"]["stopped_by"] is not None for result in results.values()):
        return Exit.LIMIT
    has_means = all(result["metadata"]["avg_reward"] is not None for result in results.values())
    return Exit.GOOD if has_means and any(not row["failed"] for result in results.values() for row in result["outputs"]) else Exit.NOT_GOOD


def _contestants(settings: EvalSettings, names: Sequence[str], models: Models, config: ClientConfig | None) -> Iterator[Contestant]:
    for option, given in (("--agent", names), ("--model", models.names)):
        for name, count in Counter(given).items():
            if count > 1:
                raise ConfigurationError(f"{option} {name} is given {count} times: give it once")
    for name in names:
        agent = IsolatedAgent(name) if settings.isolate else load_agent(name)
        yield Contestant(name, agent, f"{name} (agent)" if name in models.names else name)
    if config is not None:
        for name in models.names:
            yield Contestant(name, ModelAgent(config, name, models.sampling_args), f"{name} (model)" if name in names else name)


def _refusal(error: Exception, config: ClientConfig | None) -> str:
    """Return what a permanent refusal is told as: who refused what, and what the provider says. Never the key, however short it is."""
    text = ". The provider says: ".join([*getattr(error, "__notes__", []), str(error)])
    key = NO_KEY if config is None else config.resolve_api_key()
    return text if key == NO_KEY else text.replace(key, REDACTED)


def _check_resume(settings: EvalSettings, names: Sequence[str]) -> None:
    if not settings.resume:
        if settings.resumed_path is not None:
            raise ConfigurationError(f"{settings.resumed_path} is the directory of a run: give --resume too, to go on with it")
        if settings.redo_errors:
            raise ConfigurationError("--redo-errors says what a resumed run plays again: give --resume too")
    elif settings.output_dir is None:
        raise ConfigurationError("--resume goes on with results on disk: leave out --no-save")
    elif settings.resumed_path is not None:
        if len(names) > 1:
            raise ConfigurationError(f"{settings.resumed_path} holds the run of one agent: give one --agent with it, or --resume alone")
        if not (settings.resumed_path / METADATA).is_file():
            raise ConfigurationError(f"there is no run to resume in {settings.resumed_path}: it has no {METADATA}")


def _results_path(settings: EvalSettings, contestant: Contestant) -> Path | None:
    """Return where the results of one who plays go."""
    name, agent, label = contestant
    if settings.output_dir is None:
        return None
    if settings.resumed_path is not None:
        return settings.resumed_path
    is_model = isinstance(agent, ModelAgent)
    path = default_results_path(settings.env_id, name, settings.output_dir, is_model=is_model)
    if not settings.resume:
        return path
    wanted = {
        "model": name,
        "is_model": is_model,
        "num_examples": len(settings.example_ids) or settings.num_examples,
        "rollouts_per_example": settings.rollouts_per_example * (2 if settings.both_seats else 1),
        "both_seats": settings.both_seats,
        "env_args": settings.env_args or _registered_arguments(settings.env_id),
        "seed": settings.seed,
        "sampling_args": agent.sampling_args if isinstance(agent, ModelAgent) else {},
        "limits_each": settings.limits_each.given(),
    }
    found = find_incomplete(path.parent, wanted, redo_errors=settings.redo_errors)
    new = "there is no unfinished run to resume with these settings, a new one begins"
    echo(f"{label}: {new if found is None else f'going on with {found}'}")
    return found or path


def _registered_arguments(env_id: str) -> dict[str, Any]:
    """Return the arguments with which an id was registered: those of a run that was given no others."""
    return dict(gym.spec(import_id(env_id)).kwargs)


def _check_plot(file: Path) -> None:
    """Refuse a picture that could not be written, before anything is played for it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra("plot", "--plot")
    from matplotlib.figure import Figure

    suffixes = Figure().canvas.get_supported_filetypes()
    if file.suffix.removeprefix(".").lower() not in suffixes:
        raise ConfigurationError(f"--plot cannot tell what kind of picture {file} is: give it one of the suffixes {', '.join(suffixes)}")
    if not os.access(file.parent, os.W_OK):
        raise ConfigurationError(f"--plot cannot write {file}: {file.parent} is not a directory that can be written")


def _print_comparison(results: dict[str, GenerateOutputs]) -> None:
    """Print a table of the runs, those without a mean last, and what failed in each."""
    if not results:
        return
    in_order = dict(sorted(results.items(), key=lambda item: item[1]["metadata"]["avg_reward"] is None))
    each = [result["metadata"] for result in results.values()]
    metrics = list(dict.fromkeys(name for metadata in each for name in (*metadata["avg_metrics"], *metadata["metrics_errors"])))
    ks = list(each[0]["pass_at_k"])
    columns = ["agent", "reward", *metrics, *(f"pass@{k}" for k in ks), *(f"pass^{k}" for k in ks), "failed", "seconds"]
    rows = []
    for label, result in in_order.items():
        metadata = result["metadata"]
        means = metadata["avg_metrics"]
        rows.append(
            [
                label,
                _mean(metadata),
                *(f"{means[metric]:.3f}" if metric in means else "-" for metric in metrics),
                *(f"{passes[k]:.3f}" for passes in (metadata["pass_at_k"], metadata["pass_all_k"]) for k in ks),
                f"{metadata['num_failed']}/{len(result['outputs'])}",
                f"{metadata['time']:.2f}",
            ]
        )
    print_table(columns, rows)
    for label, result in in_order.items():
        for line in _remarks(result):
            echo(f"{label}: {line}")


def _mean(metadata: GenerateMetadata) -> str:
    mean, error = metadata["avg_reward"], metadata["std_error"]
    return "-" if mean is None else f"{mean:.3f}" + ("" if error is None else f" ± {error:.3f}")


def _remarks(result: GenerateOutputs) -> Iterator[str]:
    """Give what there is to say of a run besides its numbers: what failed in it, and where it is."""
    rows, metadata = result["outputs"], result["metadata"]
    first_error = next((row["error"] for row in rows if row["error"] is not None), None)
    if first_error is not None:
        yield f"the first error is {first_error}"
    unread = sum(row["stop_condition"] == UNREADABLE for row in rows)
    if unread:
        yield f"the answers of {unread} of {len(rows)} rollouts could not be read"
    for function, count in metadata["metrics_errors"].items():
        first = next(row["metrics_errors"][function] for row in rows if function in (row.get("metrics_errors") or ()))
        yield f"reward function `{function}` failed in {count} of {len(rows)} rollouts: {first}"
    if metadata["num_failed"]:
        yield _what_failures_count_with(metadata, [row["counted_reward"] for row in rows if row["failed"]])
    if metadata["cost"] is not None:
        yield f"it cost {metadata['cost']:.4g}"
    stopped_by = metadata["stopped_by"]
    if stopped_by is not None:
        total = metadata["num_examples"] * metadata["rollouts_per_example"]
        yield (
            f"stopped after {len(rows)} of {total} rollouts: the limit on {stopped_by['limit']} is used up"
            f" ({stopped_by['used']:.6g} of {stopped_by['allowed']:.6g})"
        )
    if metadata["path_to_save"] is not None:
        yield f"results in {metadata['path_to_save']}"


def _what_failures_count_with(metadata: GenerateMetadata, counted: Sequence[float | None]) -> str:
    if metadata["avg_reward"] is not None:
        return f"failed rollouts count with {', '.join(f'{number:g}' for number in sorted(set(counted)))}"  # type: ignore[type-var]
    finished = metadata["avg_reward_finished"]
    others = "" if finished is None else f" (that of the others is {finished:.3f})"
    return f"no mean{others}, since nothing says what a failed rollout counts with: make the environment with failure_reward=..."


def _draw(results: dict[str, GenerateOutputs], title: str, file: Path) -> None:
    """Draw the means as bars. A run without a mean has none, and the picture says so."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    drawn = {label: result["metadata"] for label, result in results.items() if result["metadata"]["avg_reward"] is not None}
    left_out = [label for label in results if label not in drawn]
    axes.bar(
        list(drawn),
        [metadata["avg_reward"] or 0.0 for metadata in drawn.values()],
        yerr=[metadata["std_error"] or 0.0 for metadata in drawn.values()],
        capsize=4,
    )
    axes.set(title=title, ylabel="mean reward ± standard error")
    if left_out:
        axes.set_xlabel(f"without a mean, since rollouts failed: {', '.join(left_out)}")
        echo(f"the plot is without {', '.join(left_out)}: there is no mean to draw")
    figure.savefig(file)
