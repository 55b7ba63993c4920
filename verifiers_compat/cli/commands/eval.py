"""``vf-eval``: evaluate a model in an environment, or what a config file lists."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verifiers_compat.cli.program import FAILED, INTERRUPTED, Debug, json_object, new_app, note, run
from vfgym.clients.config import PROVIDERS
from vfgym.errors import ConfigurationError, Error
from vfgym.output.terminal import echo, echo_traceback

if TYPE_CHECKING:
    from verifiers_compat.cli.evals.fields import EvalFields
    from verifiers_compat.cli.evals.runs import Evaluation, Finished

app = new_app("vf-eval", "Evaluate a model in an environment, or what a config file lists.")

_NOT_HERE: Mapping[str, str] = {
    "no_interleave_scoring": "--no-interleave-scoring changes nothing: a group is scored when its rollouts are finished, while others play",
    "num_workers": "--num-workers changes nothing: all rollouts run in this process; --max-concurrent says how many at once",
    "disable_env_server": "--disable-env-server changes nothing: there is no server process, the rollouts run in this one",
}
"""What is said about fields that cannot mean anything here."""


@app.command()
def evaluate(
    env_id_or_config: Annotated[
        str,
        typer.Argument(metavar="ENV_OR_CONFIG", help="An installed environment (my-env, owner/my-env), a registered id, or a .toml file."),
    ],
    env_args: Annotated[str | None, typer.Option("--env-args", "-a", metavar="JSON", help="Arguments of load_environment.")] = None,
    env_dir_path: Annotated[
        str | None, typer.Option("--env-dir-path", metavar="DIR", help="Where environments are developed. [./environments]")
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option("--provider", "-p", help=f"One of {', '.join(PROVIDERS)}; a directory is taken for --env-dir-path. [prime]"),
    ] = None,
    endpoints_path: Annotated[
        str | None, typer.Option("--endpoints-path", "-e", metavar="FILE", help="The endpoint registry. [./configs/endpoints.toml]")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A model, or a name in the endpoint registry. [openai/gpt-4.1-mini]")
    ] = None,
    api_client_type: Annotated[
        str | None, typer.Option("--api-client-type", help="The API that is spoken. [openai_chat_completions]")
    ] = None,
    api_key_var: Annotated[
        str | None, typer.Option("--api-key-var", "-k", metavar="NAME", help="Environment variable of the API key.")
    ] = None,
    api_base_url: Annotated[str | None, typer.Option("--api-base-url", "-b", metavar="URL", help="Where the model is.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="A header of every request; repeatable.")
    ] = None,
    header_from_state: Annotated[
        list[str] | None,
        typer.Option(
            "--header-from-state",
            metavar="'NAME: KEY'",
            help="A header whose value is an item of the rollout's state; repeatable. [X-Session-ID: example_id]",
        ),
    ] = None,
    num_examples: Annotated[
        int | None, typer.Option("--num-examples", "-n", help="Examples to play; -1 for all. [the environment's, else 5]")
    ] = None,
    rollouts_per_example: Annotated[
        int | None, typer.Option("--rollouts-per-example", "-r", help="Rollouts of each. [the environment's, else 3]")
    ] = None,
    max_concurrent: Annotated[
        int | None,
        typer.Option("--max-concurrent", "-c", "--max-concurrent-generation", help="Most rollouts at once; -1 for no limit. [32]"),
    ] = None,
    max_concurrent_scoring: Annotated[
        int | None, typer.Option("--max-concurrent-scoring", help="Most groups scored at once; -1 for no limit. [-1]")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", "-t", help="Most tokens of an answer.")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", "-T", help="Sampling temperature.")] = None,
    sampling_args: Annotated[
        str | None, typer.Option("--sampling-args", "-S", metavar="JSON", help="Further sampling arguments; they win over -t and -T.")
    ] = None,
    output_dir: Annotated[str | None, typer.Option("--output-dir", "-o", metavar="DIR", help="Results go below DIR/evals.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    save_results: Annotated[bool, typer.Option("--save-results", "-s", help="Save the results.")] = False,
    disable_tui: Annotated[bool, typer.Option("--disable-tui", "-d", help="Print plain text, which is what happens anyway.")] = False,
    fullscreen: Annotated[bool, typer.Option("--fullscreen", "-f", help="Refused: there is no full-screen display.")] = False,
    abbreviated_summary: Annotated[bool, typer.Option("--abbreviated-summary", "-A", help="Print means only.")] = False,
    no_interleave_scoring: Annotated[bool, typer.Option("--no-interleave-scoring", "-N", help="Changes nothing here.")] = False,
    state_columns: Annotated[
        str | None, typer.Option("--state-columns", "-C", metavar="NAMES", help="Items of the state to save, separated by commas.")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", "-R", metavar="[DIR]", help="Go on with a run, and save; without DIR with the newest unfinished one that fits."
        ),
    ] = None,
    redo_errors: Annotated[bool, typer.Option("--redo-errors", help="When resuming, play again what ended with an error.")] = False,
    independent_scoring: Annotated[bool, typer.Option("--independent-scoring", "-i", help="Score each rollout alone.")] = False,
    max_retries: Annotated[int | None, typer.Option("--max-retries", help="Repeat a rollout that met a passing failure. [0]")] = None,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="Time that a rollout may take.")] = None,
    num_workers: Annotated[str | None, typer.Option("--num-workers", "-w", help="Changes nothing here: there is one process.")] = None,
    disable_env_server: Annotated[bool, typer.Option("--disable-env-server", help="Changes nothing here: there is none.")] = False,
    extra_env_kwargs: Annotated[
        str | None, typer.Option("--extra-env-kwargs", "-x", metavar="JSON", help="Attributes to set on the environment.")
    ] = None,
    save_to_hf_hub: Annotated[
        bool, typer.Option("--save-to-hf-hub", "-H", help="Push the results to the Hugging Face hub, and save.")
    ] = False,
    hf_hub_dataset_name: Annotated[
        str | None, typer.Option("--hf-hub-dataset-name", "-D", metavar="NAME", help="What they are called there.")
    ] = None,
    heartbeat_url: Annotated[
        str | None, typer.Option("--heartbeat-url", metavar="URL", help="Ask for this URL every minute while the evaluation runs.")
    ] = None,
    alias: Annotated[
        bool, typer.Option("--alias", help="Let `import verifiers` mean this library even where verifiers itself is installed.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Evaluate a model in an environment, or what a config file lists."""
    if fullscreen:
        with_what = "together with --disable-tui " if disable_tui else ""
        raise ConfigurationError(f"--fullscreen cannot be given {with_what}here: there is no full-screen display, results are plain text")
    directory, provider = _directory_or_provider(provider, env_dir_path)
    objects = {"env_args": env_args, "sampling_args": sampling_args, "extra_env_kwargs": extra_env_kwargs}
    fields: dict[str, Any] = {
        **{name: None if text is None else json_object(f"--{name.replace('_', '-')}", text) for name, text in objects.items()},
        "env_dir_path": directory,
        "provider": provider,
        "endpoints_path": endpoints_path,
        "model": model,
        "api_client_type": api_client_type,
        "api_key_var": api_key_var,
        "api_base_url": api_base_url,
        "headers": header or None,
        "headers_from_state": header_from_state or None,
        "num_examples": num_examples,
        "rollouts_per_example": rollouts_per_example,
        "max_concurrent": max_concurrent,
        "max_concurrent_scoring": max_concurrent_scoring,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "output_dir": output_dir,
        "verbose": verbose or None,
        "save_results": save_results or None,
        "no_interleave_scoring": no_interleave_scoring or None,
        "state_columns": state_columns,
        "resume": True if resume == "" else resume,
        "redo_errors": redo_errors or None,
        "independent_scoring": independent_scoring or None,
        "max_retries": max_retries,
        "timeout": timeout,
        "num_workers": num_workers,
        "disable_env_server": disable_env_server or None,
        "save_to_hf_hub": save_to_hf_hub or None,
        "hf_hub_dataset_name": hf_hub_dataset_name,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        code = _run(env_id_or_config, given, is_abbreviated=abbreviated_summary, heartbeat_url=heartbeat_url, alias=alias, debug=debug)
    except KeyboardInterrupt:
        echo("\nstopped", to_stderr=True)
        code = INTERRUPTED
    raise typer.Exit(code)


def _directory_or_provider(provider: str | None, env_dir_path: str | None) -> tuple[str | None, str | None]:
    """Return the directory of environments and the provider: ``-p`` once meant the one, and means the other now."""
    if provider is None or provider in PROVIDERS:
        return env_dir_path, provider
    if "/" in provider or provider.startswith(".") or Path(provider).is_dir():
        if env_dir_path not in (None, provider):
            raise ConfigurationError(f"-p {provider} and --env-dir-path {env_dir_path} both name the directory of environments: give one")
        return provider, None
    return env_dir_path, provider  # resolve_model says which providers there are


def _run(env_id_or_config: str, given: dict[str, Any], *, is_abbreviated: bool, heartbeat_url: str | None, alias: bool, debug: bool) -> int:
    from verifiers_compat.cli.evals.runs import prepared, use_alias
    from verifiers_compat.cli.evals.settings import MissingEnvironment, check_installed, eval_config
    from verifiers_compat.utils.eval_utils import get_log_level
    from verifiers_compat.utils.logging_utils import setup_logging

    each = _evaluations(env_id_or_config, given)
    setup_logging(get_log_level(any(fields.verbose for fields in each)))
    for name, text in _NOT_HERE.items():
        if any(getattr(fields, name) not in (None, False) for fields in each):
            note(text)
    use_alias(wins=alias)
    missing = []
    for fields in each:
        try:
            check_installed(str(fields.env_id), fields.env_dir_path or "./environments")
        except MissingEnvironment as error:
            missing.append(str(error))
    if missing:
        for text in dict.fromkeys(missing):
            echo(f"error: {text}", to_stderr=True)
        return FAILED
    evaluations = [prepared(eval_config(fields)) for fields in each]
    return _play(evaluations, is_abbreviated=is_abbreviated, heartbeat_url=heartbeat_url, debug=debug)


def _evaluations(env_id_or_config: str, given: dict[str, Any]) -> list[EvalFields]:
    from verifiers_compat.cli.evals.fields import EvalFields
    from verifiers_compat.cli.evals.files import load_toml_config

    if not env_id_or_config.endswith(".toml"):
        return [EvalFields.of({"env_id": env_id_or_config, **given}, "vf-eval")]
    beside = {name: given.pop(name) for name in ("verbose",) if name in given}
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ConfigurationError(f"{env_id_or_config} says what is evaluated, so these options have to stand in it: {names}")
    return [EvalFields.of({**fields, **beside}, env_id_or_config) for fields in load_toml_config(env_id_or_config)]


def _play(evaluations: Sequence[Evaluation], *, is_abbreviated: bool, heartbeat_url: str | None, debug: bool) -> int:
    import asyncio

    from verifiers_compat.cli.evals.report import print_results
    from verifiers_compat.cli.evals.runs import finish_all

    try:
        finished, lag = asyncio.run(finish_all(evaluations, heartbeat_url=heartbeat_url))
    except KeyboardInterrupt:
        saved = [str(evaluation.results_path) for evaluation in evaluations if evaluation.results_path is not None]
        what = f"what was finished is in {', '.join(saved)}; --resume goes on with it" if saved else "nothing was saved (-s saves)"
        echo(f"\nstopped: {what}", to_stderr=True)
        return INTERRUPTED
    for each in finished:
        if each.results is not None:
            print_results(each.results, is_abbreviated=is_abbreviated, event_loop_lag=lag)
            if each.evaluation.results_path is not None:
                echo(f"Results: {each.evaluation.results_path}")
    broken = [each for each in finished if each.error is not None]
    for each in broken:
        if debug and each.error is not None:
            echo_traceback(each.error)
        echo(f"error: {each.evaluation.config.env_id}: {_told(each)}", to_stderr=True)
    return FAILED if broken or _all_failed(finished) else 0


def _told(finished: Finished) -> str:
    error = finished.error
    return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"


def _all_failed(finished: Sequence[Finished]) -> bool:
    rows = [row for each in finished if each.results is not None for row in each.results["outputs"]]
    return bool(rows) and all(row["error"] is not None for row in rows)


def with_bare_resume(arguments: Sequence[str]) -> list[str]:
    """Return arguments in which ``--resume`` without a value has an empty one: the library for options knows no optional values.

    >>> with_bare_resume(["my-env", "--resume", "-s"]), with_bare_resume(["my-env", "-R", "outputs/run"])
    (['my-env', '--resume=', '-s'], ['my-env', '-R', 'outputs/run'])
    """
    completed = []
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        is_bare = argument in ("--resume", "-R") and (following is None or following.startswith("-"))
        completed.append("--resume=" if is_bare else argument)
    return completed


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, and exit: with 0, 1 (everything failed, or an environment is missing), 2 (refused) or 130 (stopped).

    Args:
        arguments: The arguments; by default those of the process.
    """
    run(app, with_bare_resume(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    main()
