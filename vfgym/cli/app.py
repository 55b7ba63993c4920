"""The commands and their options."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from vfgym.errors import ConfigurationError

# Plain help and plain errors: one line says what is wrong, in a terminal and in a log.
app = typer.Typer(
    name="vfgym",
    help="LLM environments as Gymnasium environments: list, look at, play, check and evaluate them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@dataclass
class Options:
    """What a command line says besides its command; typer keeps it in the context."""

    shows_tracebacks: bool = False


def _show_tracebacks(context: typer.Context, is_asked: bool) -> bool:
    if is_asked:
        context.find_root().ensure_object(Options).shows_tracebacks = True
    return is_asked


EnvId = Annotated[str, typer.Argument(metavar="ID", help="A registered id, such as reasoning-gym/leg_counting-v0.")]
EnvArgs = Annotated[str, typer.Option("--env-args", metavar="JSON", help="Arguments of the environment, as JSON: '{\"max_turns\": 5}'.")]
Debug = Annotated[bool, typer.Option("--debug", callback=_show_tracebacks, help="Show the traceback of an error.")]


def _print_version(is_asked: bool) -> None:
    if is_asked:
        import vfgym

        print(f"vfgym {vfgym.__version__}")
        raise typer.Exit


@app.callback()
def vfgym(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")] = False,
    debug: Debug = False,
) -> None:
    """Take the options that stand before a command."""


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

    print_info(env_id, _parsed(env_args))


@app.command("eval")
def evaluate(
    env_id: EnvId,
    # An option with a value that may be left out: typer 0.29 has none, so the value is an argument of its own.
    path: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="With --resume: the directory of the run's results.", show_default=False)
    ] = None,
    *,
    agent: Annotated[
        list[str],
        typer.Option("--agent", "-a", metavar="AGENT", help="random, oracle, human or module:callable; may be given several times."),
    ],
    num_examples: Annotated[int, typer.Option("--num-examples", "-n", help="Tasks to play; -1 for all.")] = 20,
    rollouts_per_example: Annotated[int, typer.Option("--rollouts-per-example", "-r", help="Episodes of each task.")] = 1,
    max_concurrent: Annotated[int, typer.Option("--max-concurrent", "-c", help="Most episodes at once; -1 for no limit.")] = 64,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of the run.")] = 0,
    env_args: EnvArgs = "{}",
    output_dir: Annotated[Path, typer.Option("--output-dir", "-o", help="Results go to a new directory below DIR/evals.")] = Path(
        "outputs"
    ),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in PATH, or with the newest such run that is not finished.")
    ] = False,
    redo_errors: Annotated[bool, typer.Option("--redo-errors", help="With --resume: play rollouts with an error again.")] = False,
    no_save: Annotated[bool, typer.Option("--no-save", help="Write no results.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first unexpected exception.")] = False,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw mean rewards into a picture.")] = None,
    debug: Debug = False,
) -> None:
    """Let agents play an environment's evaluation tasks, and compare them."""
    from vfgym.cli.compare import Settings, compare

    settings = Settings(
        env_id=env_id,
        env_args=_parsed(env_args),
        num_examples=num_examples,
        rollouts_per_example=rollouts_per_example,
        max_concurrent=max_concurrent,
        seed=seed,
        output_dir=None if no_save else output_dir,
        strict=strict,
        resume=resume,
        resumed_path=path,
        redo_errors=redo_errors,
    )
    raise typer.Exit(compare(settings, agent, plot))


@app.command("check")
def check(env_id: EnvId, debug: Debug = False) -> None:
    """Check an environment against the promises that every environment keeps."""
    from vfgym.cli.show import print_checks

    raise typer.Exit(0 if print_checks(env_id) else 1)


@app.command("play")
def play(
    env_id: EnvId,
    seed: Annotated[int | None, typer.Option("--seed", "-s", help="Seed of the episode.")] = None,
    env_args: EnvArgs = "{}",
    debug: Debug = False,
) -> None:
    """Play an environment yourself, in the terminal."""
    from vfgym.cli.play import play_in_terminal

    play_in_terminal(env_id, _parsed(env_args), seed)


def _parsed(env_args: str) -> dict[str, Any]:
    try:
        parsed = json.loads(env_args)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"--env-args must be JSON, got {env_args!r}: {error}") from None
    if not isinstance(parsed, dict):
        raise ConfigurationError(f"--env-args must be a JSON object, such as '{{\"max_turns\": 5}}', got {env_args!r}")
    return parsed
