"""``vf-setup``: the directories in which environments are developed and evaluated."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from verifiers_compat.cli.program import Debug, create_app, run
from verifiers_compat.cli.templates import fill_template, write_new
from vfgym.clients.config import PROVIDERS
from vfgym.errors import ConfigurationError
from vfgym.output.terminal import echo

app = create_app("vf-setup", "Make environments/ and configs/ in the current directory.")

_ACCEPTED = "Accepted for command lines of verifiers, without effect"


@app.command()
def setup(
    prime_rl: Annotated[bool, typer.Option("--prime-rl", help="Refused: no trainer is installed from here.")] = False,
    agents: Annotated[str | None, typer.Option("--agents", help="Refused: no guides for coding agents are written.")] = None,
    skip_agents_md: Annotated[bool, typer.Option("--skip-agents-md", help=f"{_ACCEPTED}: no such guides are written.")] = False,
    skip_install: Annotated[bool, typer.Option("--skip-install", help=f"{_ACCEPTED}: nothing is installed.")] = False,
    no_interactive: Annotated[bool, typer.Option("--no-interactive", help=f"{_ACCEPTED}: nothing is asked.")] = False,
    debug: Debug = False,
) -> None:
    """Make environments/ and configs/ in the current directory. Nothing is downloaded, and no file is replaced."""
    if prime_rl:
        raise ConfigurationError("--prime-rl installs a trainer from its repository; install it as its own pages say, and leave this out")
    if agents is not None:
        raise ConfigurationError("--agents writes guides for coding agents, which this package does not have: leave it out")
    write_workspace(Path())


def write_workspace(folder: Path) -> None:
    """Write the directories and files of a workspace, but for those that are there already, and print which."""
    (folder / "environments").mkdir(parents=True, exist_ok=True)
    echo(f"made    {folder / 'environments'}")
    write_new(folder / "configs/endpoints.toml", endpoints_text())
    write_new(folder / "configs/eval/example.toml", fill_template("eval_config.toml"))


def endpoints_text() -> str:
    """Return an endpoint registry with one endpoint on this machine, and one of each provider as a comment."""
    examples = [
        fill_template("provider_endpoint.toml", provider=name, url=each.url, key=each.key_var, client_type=each.client_type)
        for name, each in PROVIDERS.items()
    ]
    return fill_template("endpoints.toml") + "".join(examples)


main = functools.partial(run, app)


if __name__ == "__main__":
    main()
