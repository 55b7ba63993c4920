"""The commands. The longer options stand in `vfgym.cli.options`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from vfgym.bounded_json import parse_json
from vfgym.cli.conventions import AsJson, Debug, Exit
from vfgym.cli.fields import setting
from vfgym.cli.options import (
    Agents,
    ApiKeyVar,
    CacheOption,
    ClientType,
    DryRun,
    EnvArgs,
    EnvId,
    Evaluated,
    ExampleIds,
    IndependentScoring,
    Isolate,
    LimitEachOption,
    LimitOption,
    ModelNames,
    NumExamples,
    OutputDir,
    PassThreshold,
    PricesOption,
    Provider,
    Reducers,
    Resume,
    ResumedPath,
    RubricArgs,
    RubricName,
    SamplingArgs,
    Sandboxed,
    SavedGameDir,
    Select,
    Shard,
    StateColumns,
    Tags,
    Vary,
    Workers,
)
from vfgym.errors import ConfigurationError
from vfgym.output.terminal import echo

# Plain help and plain errors: one line says what is wrong, in a terminal and in a log.
app = typer.Typer(
    name="vfgym",
    help="LLM environments as Gymnasium environments: list, look at, play, check and evaluate them.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        import vfgym

        echo(f"vfgym {vfgym.__version__}")
        raise typer.Exit


@app.callback()
def vfgym(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")] = False,
    debug: Debug = False,
) -> None:
    """Take the options that stand before a command; show the commands where none is named."""
    if context.invoked_subcommand is None:
        echo(context.get_help())
        raise typer.Exit(Exit.WRONG_INPUT)


@app.command("list")
def list_environments(
    pattern: Annotated[str, typer.Argument(metavar="[PATTERN]", help="Part of an id, or a pattern such as '*Lake*'.")] = "",
    debug: Debug = False,
) -> None:
    """List the registered environments."""
    from vfgym.cli.show import print_ids

    print_ids(pattern)


@app.command("info")
def info(env_id: EnvId, env_args: EnvArgs = "{}", debug: Debug = False) -> None:
    """Show what an environment is: its tasks, tools and metrics, and an example."""
    from vfgym.cli.show import print_info

    print_info(env_id, _parse_object(env_args))


@app.command("eval")
def evaluate(
    context: typer.Context,
    target: Evaluated,
    # An option with a value that may be left out: typer 0.29 has none, so the value is an argument of its own.
    path: ResumedPath = None,
    *,
    agents: Agents = None,
    models: ModelNames = None,
    provider: Provider = None,
    base_url: Annotated[str | None, typer.Option("--base-url", "-b", metavar="URL", help="Where the models are, as a URL.")] = None,
    api_key_var: ApiKeyVar = None,
    client_type: ClientType = None,
    sampling_args: SamplingArgs = "{}",
    num_examples: NumExamples = None,
    rollouts_per_example: Annotated[int, setting("--rollouts-per-example", "-r")] = 1,
    max_concurrent: Annotated[int, setting("--max-concurrent", "-c")] = 64,
    seed: Annotated[int, setting("--seed", "-s")] = 0,
    split: Annotated[Literal["train", "eval"], setting("--split")] = "eval",
    example_ids: ExampleIds = "",
    both_seats: Annotated[bool, setting("--both-seats")] = False,
    independent_scoring: IndependentScoring = None,
    pass_threshold: PassThreshold = None,
    shard: Shard = None,
    max_retries: Annotated[int, setting("--max-retries")] = 0,
    state_columns: StateColumns = None,
    tags: Tags = None,
    env_args: EnvArgs = "{}",
    output_dir: OutputDir = Path("outputs"),
    resume: Resume = False,
    redo_errors: Annotated[bool, typer.Option("--redo-errors", help="With --resume: play rollouts with an error again.")] = False,
    no_save: Annotated[bool, typer.Option("--no-save", help="Write no results.")] = False,
    isolate: Isolate = False,
    sandboxed: Sandboxed = False,
    limit: LimitOption = None,
    limit_each: LimitEachOption = None,
    prices: PricesOption = None,
    cache: CacheOption = False,
    executor: Annotated[Literal["local", "process", "ray"], setting("--executor")] = "local",
    workers: Workers = None,
    strict: Annotated[bool, setting("--strict")] = False,
    reducers: Reducers = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw mean rewards into a picture.")] = None,
    vary: Vary = None,
    select: Select = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Let agents and models play an environment's evaluation tasks, and compare them."""
    from vfgym.cli.eval import EvalCommand, run_evaluations
    from vfgym.cli.evaluations import EvalFields, is_run, read_evaluations
    from vfgym.limits import RolloutLimits, SpendingLimits

    options = {name: value for name, value in context.params.items() if name in EvalFields.model_fields}
    options |= {
        "agents": agents or [],
        "models": models or [],
        "sampling_args": _parse_object(sampling_args, "--sampling-args"),
        "example_ids": _parse_ids(example_ids),
        "state_columns": state_columns or [],
        "tags": tags or [],
        "env_args": _parse_object(env_args),
        "limits": SpendingLimits.parse(limit or (), "--limit"),
        "limits_each": RolloutLimits.parse(limit_each or (), "--limit-each"),
    }
    spelled = {"limits": "limit", "limits_each": "limit_each"}
    given = [name for name in options if _is_given(context, spelled.get(name, name))]
    command = EvalCommand(
        variations=vary or (),
        patterns=select or (),
        is_dry_run=dry_run,
        as_json=as_json,
        output_dir=None if no_save else output_dir,
        resume=resume,
        resumed_path=path or (Path(target) if resume and is_run(target) else None),
        redo_errors=redo_errors,
        plot=plot,
        reducers=[name for given in reducers or () for name in given.split(",")],
    )
    raise typer.Exit(run_evaluations(read_evaluations(target, options, given), command))


@app.command("check")
def check(env_id: EnvId, debug: Debug = False) -> None:
    """Check an environment, or a Gymnasium game as a chat environment, against the promises that every environment keeps."""
    from vfgym.cli.show import print_checks

    raise typer.Exit(Exit.GOOD if print_checks(env_id) else Exit.NOT_GOOD)


@app.command("compare")
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories of runs; the others are compared with the first.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare runs of the same tasks: differences with 95 % intervals, and whether they can tell which run is better."""
    from vfgym.cli.compare import print_comparison

    raise typer.Exit(print_comparison(runs, as_json=as_json))


@app.command("merge")
def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories of the parts (vfgym eval --shard).")],
    output_dir: Annotated[Path, typer.Option("--output-dir", "-o", metavar="DIR", help="The directory that gets the whole run.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make one run of its parts, and say what is missing."""
    from vfgym.cli.merge import merge_runs

    raise typer.Exit(merge_runs(runs, output_dir, as_json=as_json))


@app.command("score")
def score(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run; it stays as it is.")],
    rubric: RubricName,
    rubric_args: RubricArgs = "{}",
    output_dir: OutputDir = Path("outputs"),
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Score the rollouts of a run again, with another rubric and without asking any model."""
    from vfgym.cli.score import score_run

    raise typer.Exit(score_run(run, rubric, output_dir, rubric_args=_parse_object(rubric_args, "--rubric-args"), as_json=as_json))


@app.command("view")
def view(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories of runs.")],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one self-contained page of HTML, and open nothing.")
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the page to browsers of this machine; it follows runs that grow.")] = False,
    port: Annotated[int, typer.Option("--port", help="With --serve: the port; 0 is any free one.", min=0, max=65535)] = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Look at runs: which agent is better, what failed, every conversation; in the terminal, or as a page of HTML."""
    from vfgym.cli.view import open_viewer, serve_page, write_html

    if serve and (html is not None or as_json):
        raise ConfigurationError("--serve shows the page and writes nothing: leave out --html and --json")
    if port and not serve:
        raise ConfigurationError("--port belongs to --serve: give --serve too")
    if html is not None:
        write_html(runs, html, as_json=as_json)
    elif as_json:
        raise ConfigurationError("--json says what --html wrote: give --html FILE too")
    elif serve:
        serve_page(runs, port)
    else:
        open_viewer(runs)


cache_app = typer.Typer(help="Show what the cache of models' answers holds (`vfgym eval --cache`).", rich_markup_mode=None)
app.add_typer(cache_app, name="cache")


@cache_app.callback(invoke_without_command=True)
def cache(context: typer.Context, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show where the cache of models' answers is, and what it holds (`vfgym eval --cache` fills it)."""
    from vfgym.cli.cache import print_cache

    if context.invoked_subcommand is None:
        print_cache(as_json=as_json)


@cache_app.command("clear")
def clear_cache(as_json: AsJson = False, debug: Debug = False) -> None:
    """Forget all answers."""
    from vfgym.cli import cache

    cache.clear_cache(as_json=as_json)


@app.command("export")
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run; it stays as it is.")],
    to: Annotated[
        Literal["parquet", "csv", "hf", "sft", "preference"],
        typer.Option("--to", help="Tables, a Hugging Face data set, or examples for training."),
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="PATH", help="What is written; named like the run here.")] = None,
    min_reward: Annotated[float | None, typer.Option("--min-reward", help="For sft and preference: the lowest reward.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write the rollouts of a run in a form that other programs read."""
    from vfgym.cli.export import export_run

    raise typer.Exit(export_run(run, to, output, min_reward, as_json=as_json))


@app.command("sandboxes")
def sandboxes(
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show which sandboxes work on this machine, what each protects, and how to install what is missing."""
    from vfgym.cli.sandboxes import print_sandboxes

    print_sandboxes(as_json)


@app.command("play")
def play(
    env_id: EnvId,
    seed: Annotated[
        int | None, typer.Option("--seed", "-s", help="Seed of the episode; another one each time by default.", show_default=False)
    ] = None,
    opponent: Annotated[
        str | None,
        typer.Option(
            "--opponent", metavar="WHO", help="Who takes the other seats: random, module:name, model:NAME or human.", show_default=False
        ),
    ] = None,
    provider: Annotated[str | None, typer.Option("--provider", "-p", help="Where the model:NAME is: openai, openrouter, vllm, ...")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", "-b", metavar="URL", help="Where it is, as a URL.")] = None,
    api_key_var: ApiKeyVar = None,
    strict: Annotated[bool, typer.Option("--strict", help="Play every answer, as a model's: also one that is not a move.")] = False,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help="Record the game into a GIF.", show_default=False)] = None,
    output_dir: SavedGameDir = Path("outputs"),
    env_args: EnvArgs = "{}",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Play an environment yourself, in the terminal."""
    from vfgym.cli.play import ModelPlace, PlaySettings, play_in_terminal

    settings = PlaySettings(
        env_id=env_id,
        env_args=_parse_object(env_args),
        seed=seed,
        opponent=opponent,
        model_place=ModelPlace(provider, base_url, api_key_var),
        is_strict=strict,
        record=record,
        output_dir=output_dir,
        as_json=as_json,
    )
    raise typer.Exit(play_in_terminal(settings))


@app.command("serve-model")
def serve_model(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="echo, random, scripted, oracle, module:callable or NAME=module:callable."),
    ] = None,
    port: Annotated[int, typer.Option("--port", "-p", help="Port to listen on; 0 for any free one.")] = 8000,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    script: Annotated[Path | None, typer.Option("--script", metavar="FILE", help="Answers of the model scripted: JSON or JSONL.")] = None,
    env_id: Annotated[str | None, typer.Option("--env", metavar="ID", help="Environment whose answers the model oracle knows.")] = None,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of the model random and of the faults.")] = 0,
    latency: Annotated[float, typer.Option("--latency", help="Seconds before each answer.")] = 0.0,
    max_model_len: Annotated[int | None, typer.Option("--max-model-len", help="Most tokens (bytes) of a prompt and its answer.")] = None,
    api_keys: Annotated[list[str] | None, typer.Option("--api-key", metavar="KEY", help="A key to accept; any if none is given.")] = None,
    rate_limited: Annotated[float, typer.Option("--rate-limited", metavar="P", help="Share of requests that get status 429.")] = 0.0,
    retry_after: Annotated[float, typer.Option("--retry-after", help="Seconds that these are told to wait.")] = 0.01,
    server_error: Annotated[float, typer.Option("--server-error", metavar="P", help="Share that gets status 500.")] = 0.0,
    cut_connection: Annotated[float, typer.Option("--cut-connection", metavar="P", help="Share whose connection is cut.")] = 0.0,
    hung: Annotated[float, typer.Option("--hung", metavar="P", help="Share that is never answered.")] = 0.0,
    empty_reply: Annotated[float, typer.Option("--empty-reply", metavar="P", help="Share answered with nothing.")] = 0.0,
    malformed_json: Annotated[float, typer.Option("--malformed-json", metavar="P", help="Share answered with broken JSON.")] = 0.0,
    overlong: Annotated[float, typer.Option("--overlong", metavar="P", help="Share told that the prompt is too long.")] = 0.0,
    debug: Debug = False,
) -> None:
    """Serve models that are functions (echo, random, your own) over the APIs of OpenAI and Anthropic, until Ctrl-C."""
    from vfgym.cli.serve_model import load_models, serve
    from vfgym.model_server import Faults, ModelServer

    faults = Faults(seed, rate_limited, server_error, cut_connection, hung, empty_reply, malformed_json, overlong, retry_after)
    server = ModelServer(
        load_models(models or (), script, env_id, seed),
        faults=faults,
        latency=latency,
        max_model_len=max_model_len,
        api_keys=api_keys or None,
        host=host,
        port=port,
    )
    serve(server)


def _is_given(context: typer.Context, option: str) -> bool:
    """Say whether an option was given, and does not have its default."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _parse_object(text: str, option: str = "--env-args") -> dict[str, Any]:
    try:
        parsed = parse_json(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} must be JSON: {error}") from None  # the text itself may have keys in it
    if not isinstance(parsed, dict):
        raise ConfigurationError(f"{option} must be a JSON object, such as '{{\"NAME\": 5}}', got {type(parsed).__name__}")
    return parsed


def _parse_ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if text.strip()]
    except ValueError:
        raise ConfigurationError(f"--example-ids must be integers with commas between them, such as 3,5,8; got {text!r}") from None
