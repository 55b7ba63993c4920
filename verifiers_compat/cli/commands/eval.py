"""``vf-eval``: evaluate a model in an environment, or what a config file lists."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verifiers_compat.cli.evals.fields import WITHOUT_EFFECT, EvalFields
from verifiers_compat.cli.evals.options import parse_options
from verifiers_compat.cli.program import FAILED, INTERRUPTED, STOPPED, Debug, create_app, print_note, run, take_options_of
from vfgym.errors import ConfigurationError, Error
from vfgym.output.terminal import echo, echo_traceback

if TYPE_CHECKING:
    from verifiers_compat.cli.evals.runs import Evaluation
    from vfgym.results import RolloutOutput

app = create_app("vf-eval", "Evaluate a model in an environment, or what a config file lists.")


@app.command()
@take_options_of(EvalFields)
def evaluate(
    env_id_or_config: Annotated[
        str,
        typer.Argument(metavar="ENV_OR_CONFIG", help="An installed environment (my-env, owner/my-env), a registered id, or a .toml file."),
    ],
    abbreviated_summary: Annotated[bool, typer.Option("--abbreviated-summary", "-A", help="Print means only.")] = False,
    disable_tui: Annotated[bool, typer.Option("--disable-tui", "-d", help="Print plain text, which is what happens anyway.")] = False,
    fullscreen: Annotated[
        bool, typer.Option("--fullscreen", "-f", help="Changes nothing but a note: there is no full-screen display.")
    ] = False,
    heartbeat_url: Annotated[
        str | None, typer.Option("--heartbeat-url", metavar="URL", help="Ask for this URL every minute while the evaluation runs.")
    ] = None,
    alias: Annotated[
        bool, typer.Option("--alias", help="Let `import verifiers` mean this library even where verifiers itself is installed.")
    ] = False,
    debug: Debug = False,
    **options: Any,
) -> None:
    """Evaluate a model in an environment, or what a config file lists."""
    if fullscreen and disable_tui:
        raise ConfigurationError("--fullscreen and --disable-tui contradict each other: leave one of them out")
    if fullscreen:
        print_note("there is no full-screen display: results are plain text. vf-tui browses saved ones, which -s makes")
    fields = _parse_evaluations(env_id_or_config, _parse_options(options))
    try:
        evaluations = _prepare(fields, alias=alias)
        code = _play(evaluations, is_abbreviated=abbreviated_summary, heartbeat_url=heartbeat_url, debug=debug) if evaluations else FAILED
    except KeyboardInterrupt:
        echo("\nstopped", to_stderr=True)
        code = INTERRUPTED
    raise typer.Exit(code)


def _parse_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were given as options."""
    given = parse_options(options)
    if given.get("resume") == "":
        given["resume"] = True
    return given


def _parse_evaluations(env_id_or_config: str, given: dict[str, Any]) -> list[EvalFields]:
    from verifiers_compat.cli.evals.files import load_toml_config

    if not env_id_or_config.endswith(".toml"):
        return [EvalFields.parse({"env_id": env_id_or_config, **given}, "vf-eval")]
    verbose = {"verbose": True} if given.pop("verbose", False) else {}
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ConfigurationError(f"{env_id_or_config} says what is evaluated, so these options have to stand in it: {names}")
    return [EvalFields.parse({**fields, **verbose}, env_id_or_config) for fields in load_toml_config(env_id_or_config)]


def _prepare(each: Sequence[EvalFields], *, alias: bool) -> list[Evaluation]:
    """Load the environments of all evaluations. Where any is not installed, say so of all that are not, and return none."""
    from verifiers_compat.cli.evals.runs import load_evaluation, use_alias
    from verifiers_compat.cli.evals.settings import DEFAULT_ENV_DIR, MissingEnvironment, check_installed, resolve_config
    from verifiers_compat.utils.eval_utils import get_log_level
    from verifiers_compat.utils.logging_utils import setup_logging

    setup_logging(get_log_level(any(fields.verbose for fields in each)))
    for name, reason in WITHOUT_EFFECT.items():
        if any(getattr(fields, name) not in (None, False) for fields in each):
            print_note(f"--{name.replace('_', '-')} changes nothing: {reason}")
    use_alias(wins=alias)
    missing = []
    for fields in each:
        try:
            check_installed(str(fields.env_id), fields.env_dir_path or DEFAULT_ENV_DIR)
        except MissingEnvironment as error:
            missing.append(str(error))
    for text in dict.fromkeys(missing):
        echo(f"error: {text}", to_stderr=True)
    return [] if missing else [load_evaluation(resolve_config(fields)) for fields in each]


def _play(evaluations: Sequence[Evaluation], *, is_abbreviated: bool, heartbeat_url: str | None, debug: bool) -> int:
    """Carry evaluations out, print what came of them, and return the exit code."""
    from verifiers_compat.cli.evals.report import print_results
    from verifiers_compat.cli.evals.runs import play_all

    try:
        outcomes, lag = asyncio.run(play_all(evaluations, heartbeat_url=heartbeat_url))
    except KeyboardInterrupt:
        saved = [str(evaluation.results_path) for evaluation in evaluations if evaluation.results_path is not None]
        what = f"what was finished is in {', '.join(saved)}; --resume goes on with it" if saved else "nothing was saved (-s saves)"
        echo(f"\nstopped: {what}", to_stderr=True)
        return INTERRUPTED
    errors: list[tuple[str, BaseException]] = []
    rows: list[RolloutOutput] = []
    for evaluation, outcome in zip(evaluations, outcomes, strict=True):
        if isinstance(outcome, BaseException):
            errors.append((evaluation.config.env_id, outcome))
            continue
        rows += outcome["outputs"]
        print_results(outcome, is_abbreviated=is_abbreviated, event_loop_lag=lag)
        if evaluation.results_path is not None:
            echo(f"Results: {evaluation.results_path}")
    for env_id, error in errors:
        if debug:
            echo_traceback(error)
        echo(f"error: {env_id}: {error if isinstance(error, Error) else f'{type(error).__name__}: {error}'}", to_stderr=True)
    if not errors and any(not isinstance(each, BaseException) and each["metadata"].get("stopped_by") for each in outcomes):
        return STOPPED
    has_only_errors = bool(rows) and all(row["error"] is not None for row in rows)
    return FAILED if errors or has_only_errors else 0


def with_bare_resume(arguments: Sequence[str]) -> list[str]:
    """Return arguments in which ``--resume`` without a value has an empty one: the library for options knows no optional values.

    >>> with_bare_resume(["my-env", "--resume", "-s"]), with_bare_resume(["my-env", "-R", "outputs/run"])
    (['my-env', '--resume=', '-s'], ['my-env', '-R', 'outputs/run'])
    """
    completed = []
    for argument, following in zip_longest(arguments, arguments[1:]):
        is_bare = argument in ("--resume", "-R") and (following is None or following.startswith("-"))
        completed.append("--resume=" if is_bare else argument)
    return completed


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, and exit.

    The exit code is 0, 1 (everything failed, or an environment is missing), 2 (refused), 3 (a limit ended a run) or 130 (stopped).

    Args:
        arguments: The arguments; by default those of the process.
    """
    run(app, with_bare_resume(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    main()
