"""``vf-setup``: the directories in which environments are developed and evaluated."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from verifiers_compat.cli.program import Debug, new_app, run
from verifiers_compat.cli.templates import ENDPOINTS, EVAL_CONFIG, PROVIDER_ENDPOINT
from vfgym.clients.config import PROVIDERS
from vfgym.errors import ConfigurationError
from vfgym.output.terminal import echo

app = new_app("vf-setup", "Make environments/ and configs/ in the current directory.")


@app.command()
def setup(
    prime_rl: Annotated[bool, typer.Option("--prime-rl", help="Refused: no trainer is installed from here.")] = False,
    agents: Annotated[str | None, typer.Option("--agents", help="Refused: no guides for coding agents are written.")] = None,
    skip_agents_md: Annotated[bool, typer.Option("--skip-agents-md", help="What happens anyway: no such guides are written.")] = False,
    skip_install: Annotated[bool, typer.Option("--skip-install", help="What happens anyway: nothing is installed.")] = False,
    no_interactive: Annotated[bool, typer.Option("--no-interactive", help="What happens anyway: nothing is asked.")] = False,
    debug: Debug = False,
) -> None:
    """Make environments/ and configs/ in the current directory. Nothing is downloaded, and no file is replaced."""
    if prime_rl:
        raise ConfigurationError("--prime-rl installs a trainer from its repository; install it as its own pages say, and leave this out")
    if agents is not None:
        raise ConfigurationError("--agents writes guides for coding agents, which there are none of here: leave it out")
    write_workspace(Path())


def write_workspace(folder: Path) -> None:
    """Write the directories and files of a workspace, but for those that are there already, and tell of each."""
    (folder / "environments").mkdir(parents=True, exist_ok=True)
    echo(f"made    {folder / 'environments'}")
    for name, text in {"configs/endpoints.toml": endpoints_text(), "configs/eval/example.toml": EVAL_CONFIG}.items():
        file = folder / name
        if file.exists():
            echo(f"kept    {file}")
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        echo(f"written {file}")


def endpoints_text() -> str:
    """Return an endpoint registry with one endpoint on this machine, and one of each provider as a comment."""
    examples = [
        string.Template(PROVIDER_ENDPOINT).substitute(provider=name, url=each.url, key=each.key_var, client_type=each.client_type)
        for name, each in PROVIDERS.items()
    ]
    return ENDPOINTS + "".join(examples)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, and exit.

    Args:
        arguments: The arguments; by default those of the process.
    """
    run(app, arguments)


if __name__ == "__main__":
    main()
