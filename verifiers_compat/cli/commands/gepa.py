"""``vf-gepa``: improve the system prompt of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verifiers_compat.cli.evals.options import parse_options
from verifiers_compat.cli.program import FAILED, INTERRUPTED, Debug, create_app, run, take_options_of
from verifiers_compat.cli.prompts.fields import GepaFields, given_arguments, read_prompt
from vfgym.errors import ConfigurationError, Error
from vfgym.output.terminal import echo, echo_traceback

if TYPE_CHECKING:
    from verifiers_compat.gepa import OptimizedPrompt

app = create_app("vf-gepa", "Improve the system prompt of an environment, by the rewards that a model earns with it.")


@dataclass(frozen=True)
class _Prepared:
    """A run whose environment is loaded."""

    env: Any
    arguments: dict[str, Any]
    """Arguments of `optimize_prompt`."""
    run_dir: Path | None


@app.command()
@take_options_of(GepaFields)
def improve(
    env_id_or_config: Annotated[
        str,
        typer.Argument(metavar="ENV_OR_CONFIG", help="An installed environment (my-env, owner/my-env), a registered id, or a .toml file."),
    ],
    tui: Annotated[bool, typer.Option("--tui", "-u", help="Refused: there is no full-screen display.")] = False,
    alias: Annotated[
        bool, typer.Option("--alias", help="Let `import verifiers` mean this library even where verifiers itself is installed.")
    ] = False,
    debug: Debug = False,
    **options: Any,
) -> None:
    """Improve the system prompt of an environment, by the rewards that a model earns with it."""
    if tui:
        raise ConfigurationError("--tui cannot be given here: there is no full-screen display, a line is printed for each candidate")
    fields = _parse_fields(env_id_or_config, parse_options(options))
    try:
        prepared = _prepare(fields, alias=alias)
    except KeyboardInterrupt:
        echo("\nstopped", to_stderr=True)
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(_improve(prepared, debug=debug))


def _parse_fields(env_id_or_config: str, given: dict[str, Any]) -> GepaFields:
    """Return what is said: by a config file and by options, which win over it."""
    if not env_id_or_config.endswith(".toml"):
        return GepaFields.parse({"env_id": env_id_or_config, **given}, "vf-gepa")
    said = GepaFields.read(env_id_or_config).model_dump(exclude_none=True)
    return GepaFields.parse({**said, **given}, "vf-gepa")


def _prepare(fields: GepaFields, *, alias: bool) -> _Prepared:
    """Load the environment, and find out where the models are."""
    from verifiers_compat.cli.evals.runs import load_env, use_alias
    from verifiers_compat.cli.evals.settings import (
        DEFAULT_ENV_DIR,
        check_installed,
        resolve_env_attributes,
        resolve_model,
        resolve_sampling_args,
        without_version,
    )
    from verifiers_compat.utils.eval_utils import get_log_level
    from verifiers_compat.utils.logging_utils import setup_logging
    from verifiers_compat.utils.path_utils import get_gepa_results_path
    from vfgym.aio.background import run_to_end
    from vfgym.clients.http.reachable import check_reachable

    if not fields.env_id:
        raise ConfigurationError("a run needs the id of an environment (env_id)")
    if fields.no_save and fields.run_dir:
        raise ConfigurationError("--no-save writes nothing, and --run-dir says where to: give one of them")
    setup_logging(get_log_level(bool(fields.verbose)))
    use_alias(wins=alias)
    env_dir = fields.env_dir_path or DEFAULT_ENV_DIR
    check_installed(fields.env_id, env_dir)
    env_id = without_version(fields.env_id.strip())
    model, client = resolve_model(fields)
    reflecting = fields.model_copy(update={"model": fields.reflection_model, "endpoint_id": None}) if fields.reflection_model else fields
    reflection_model, reflection_client = resolve_model(reflecting)
    start = None if fields.system_prompt_file is None else read_prompt(fields.system_prompt_file)
    env = load_env(env_id, fields.env_args or {}, resolve_env_attributes(fields))
    for config in (client, reflection_client):
        run_to_end(check_reachable(config))
    run_dir = Path(fields.run_dir) if fields.run_dir else get_gepa_results_path(env_id, model, env_dir)
    arguments = {
        **{"client": client, "model": model, "reflection_client": reflection_client, "reflection_model": reflection_model},
        **{"system_prompt": start, "sampling_args": resolve_sampling_args(fields), **given_arguments(fields)},
    }
    return _Prepared(env, arguments, None if fields.no_save else run_dir)


def _improve(prepared: _Prepared, *, debug: bool) -> int:
    """Carry the run out, print what comes of it, and return the exit code."""
    from verifiers_compat.gepa import optimize_prompt
    from vfgym.aio.background import run_to_end
    from vfgym.envs.chat import ChatEnv

    found: list[OptimizedPrompt] = []

    def take_candidate(result: OptimizedPrompt) -> None:
        found[:] = [result]
        _print_candidate(result)

    where = prepared.run_dir
    to_go_on = "nothing was saved" if where is None else f"the same command with --run-dir {where} goes on from here"
    code = 0
    try:
        optimize_prompt(prepared.env, **prepared.arguments, run_dir=where, on_candidate=take_candidate)
    except KeyboardInterrupt:
        echo(f"\nstopped: {to_go_on}", to_stderr=True)
        code = INTERRUPTED
    except ConfigurationError:
        raise
    except Exception as error:
        if debug:
            echo_traceback(error)
        echo(f"error: {error if isinstance(error, Error) else f'{type(error).__name__}: {error}'}", to_stderr=True)
        echo(f"stopped: {to_go_on}", to_stderr=True)
        code = FAILED
    finally:
        run_to_end(ChatEnv.aclose(prepared.env.definition))
    for result in found:
        _print_result(result)
        if where is not None:
            echo(f"Run: {where} (report.md, report.json, best_prompt.txt)")
    return code


def _print_candidate(result: OptimizedPrompt) -> None:
    """Print the score of the candidate that was found last."""
    number, candidate = len(result.candidates) - 1, result.candidates[-1]
    name = f"candidate {number} (made from {', '.join(map(str, candidate.parents))})" if candidate.parents else "candidate 0 (the start)"
    echo(f"{name}: {candidate.score:.3f} on {len(candidate.scores)} validation examples, {candidate.calls} rollouts played", flush=True)


def _print_result(result: OptimizedPrompt) -> None:
    """Print the best prompt and what it brings."""
    if result.best is result.start:
        echo(f"No better prompt was found in {result.calls} rollouts: the score stays {result.start.score:.3f}")
        return
    echo(f"Score: {result.start.score:.3f} at the start, {result.best.score:.3f} with the best prompt, after {result.calls} rollouts")
    if result.failed_calls:
        echo(f"Failed rollouts: {result.failed_calls}")
    echo(f"\n{result.prompt}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, and exit: with 0, 1 (it broke off), 2 (refused) or 130 (stopped).

    Args:
        arguments: The arguments; by default those of the process.
    """
    run(app, arguments)


if __name__ == "__main__":
    main()
