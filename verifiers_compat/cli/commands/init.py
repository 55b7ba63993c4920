"""``vf-init``: make the project of a new environment."""

from __future__ import annotations

import functools
import keyword
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from verifiers_compat.cli.program import Debug, create_app, run
from verifiers_compat.cli.templates import fill_template, write_new
from vfgym.errors import ConfigurationError
from vfgym.output.terminal import echo

app = create_app("vf-init", "Make the project of a new environment.")

_TAKEN = frozenset({"verifiers", "verifiers_compat", "vfgym", "gymnasium", "datasets", "numpy", "openai", "anthropic", "pydantic"})
"""Modules that an environment must not hide, beside those of Python."""


def module_of(env: str) -> str:
    """Return the module of an environment that is to be made.

    >>> module_of("word-count")
    'word_count'

    Raises:
        ConfigurationError: If it cannot be a module, or there is one of that name which it would hide.
    """
    if "/" in env:
        raise ConfigurationError(
            f"{env!r} names an owner: a new environment has only a name of its own, such as {env.rpartition('/')[2]!r}"
        )
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*", env):
        raise ConfigurationError(f"an environment is named with letters, digits, '-' and '_', and a letter first; got {env!r}")
    module = env.replace("-", "_").lower()
    if keyword.iskeyword(module) or keyword.issoftkeyword(module) or module in sys.stdlib_module_names or module in _TAKEN:
        raise ConfigurationError(f"{module!r} is a word or module that Python programs use: choose another name, such as {env + '-env'!r}")
    return module


@app.command()
def init(
    env: Annotated[str, typer.Argument(metavar="ENV", help="Name of the environment, such as word-count.")],
    path: Annotated[Path, typer.Option("--path", "-p", metavar="DIR", help="The project goes into a directory below DIR.")] = Path(
        "environments"
    ),
    rewrite_readme: Annotated[bool, typer.Option("--rewrite-readme", help="Write README.md anew; other files are never replaced.")] = False,
    multi_file: Annotated[bool, typer.Option("--multi-file", help="Make a package instead of one module.")] = False,
    openenv: Annotated[bool, typer.Option("--openenv", help="Make an environment on a server of OpenEnv, which goes into proj/.")] = False,
    debug: Debug = False,
) -> None:
    """Make the project of a new environment."""
    folder = write_project(module_of(env), path, is_package=multi_file, rewrites_readme=rewrite_readme, has_server=openenv)
    name = folder.name.replace("_", "-")
    echo(f"\nnext: vf-install {name} -p {path}\n      vf-eval {name}")


_OF_SERVERS = {"server.py": "openenv_server.py", ".build.json": "openenv_build.json", "Dockerfile": "openenv_Dockerfile"}
"""The files of a server's project, with their templates."""


def write_project(module: str, path: Path, *, is_package: bool = False, rewrites_readme: bool = False, has_server: bool = False) -> Path:
    """Write the files of an environment, but for those that are there already, and print which.

    Args:
        module: Name of its module.
        path: The project is a directory below this one.
        is_package: Whether the environment is a package instead of a single module.
        rewrites_readme: Whether a README.md that is there is replaced.
        has_server: Whether the environment is one of OpenEnv's, with the project of its server beside its module: always a package,
            so that where several are installed, each has its own.

    Returns:
        The directory of the project.
    """
    is_package = is_package or has_server
    folder = path / module
    shape = "package" if is_package else "module"
    other = folder / f"{module}.py" if is_package else folder / module
    if other.exists():
        raise ConfigurationError(f"{other} is there already, so the environment cannot be a {shape}: remove it, or choose the other form")
    included = f"{module}/**" if is_package else f"{module}.py"
    kind = "openenv_" if has_server else ""
    home = f"{module}/" if is_package else ""
    files = {
        "README.md": fill_template(f"{kind}README.md", module),
        "pyproject.toml": fill_template("pyproject.toml", module, included=included),
        f"{home}{module}.py": fill_template(f"{kind}module.py", module),
        **{f"{home}proj/{name}": fill_template(template, module) for name, template in (_OF_SERVERS if has_server else {}).items()},
    }
    if is_package:
        files[f"{module}/__init__.py"] = fill_template("package_init.py", module)
    for name, text in files.items():
        write_new(folder / name, text, replaces=rewrites_readme and name == "README.md")
    return folder


main = functools.partial(run, app)


if __name__ == "__main__":
    main()
