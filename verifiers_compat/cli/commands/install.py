"""``vf-install``: install an environment and what it needs, beside this library."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from verifiers_compat.cli.program import FAILED, Debug, create_app, print_note, run
from vfgym.errors import ConfigurationError
from vfgym.output.terminal import echo

app = create_app("vf-install", "Install an environment and what it needs, beside this library.")

REPOSITORY = "https://github.com/PrimeIntellect-ai/verifiers"


@app.command()
def install(
    env: Annotated[
        str,
        typer.Argument(metavar="ENV", help="An environment below DIR (word-count, word-count[extra]), a project's directory, or a wheel."),
    ],
    path: Annotated[Path, typer.Option("--path", "-p", metavar="DIR", help="Where environments are developed.")] = Path("environments"),
    from_repo: Annotated[bool, typer.Option("--from-repo", "-r", help="Take it from environments/ in a git repository.")] = False,
    branch: Annotated[str, typer.Option("--branch", "-b", help="Branch or tag of that repository.")] = "main",
    repository: Annotated[str, typer.Option("--repository", metavar="URL", help="That repository.")] = REPOSITORY,
    debug: Debug = False,
) -> None:
    """Install an environment and what it needs, beside this library.

    The requirement `verifiers` of published environments is left out: this library offers it. uv is used where it is installed, else
    pip; options of theirs go into environment variables (UV_..., PIP_...).
    """
    name, extras = _split_extras(env)
    if from_repo:
        with tempfile.TemporaryDirectory() as clone:
            folder = _clone(repository, branch, Path(clone))
            code = install_target(_find_project(name, folder / "environments"), extras, is_editable=False)
    else:
        target = _find_local(name, path)
        code = install_target(target, extras, is_editable=target.suffix != ".whl")
    raise typer.Exit(code)


def _split_extras(env: str) -> tuple[str, list[str]]:
    match = re.fullmatch(r"(.*?)(?:\[([^\]]*)\])?", env)
    name, extras = (match[1], match[2]) if match else (env, None)
    return name, [extra.strip() for extra in (extras or "").split(",") if extra.strip()]


def _find_local(name: str, path: Path) -> Path:
    """Return the wheel or project that is meant."""
    given = Path(name)
    if given.suffix == ".whl":
        if not given.is_file():
            raise ConfigurationError(f"there is no wheel {name}")
        return given
    if ("/" in name or name in (".", "..")) and (given / "pyproject.toml").is_file():
        return given
    if "@" in name or re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise ConfigurationError(
            f"{name!r} is on the hosted hub of environments, which vf-install does not ask: download its wheel there and run"
            " vf-install PATH/TO/WHEEL.whl"
        )
    return _find_project(name, path)


def _find_project(name: str, path: Path) -> Path:
    folder = path / name.replace("-", "_")
    if not folder.is_dir():
        there = sorted(each.parent.name for each in path.glob("*/pyproject.toml"))
        known = f"there are {', '.join(there)}" if there else "there are none"
        raise ConfigurationError(f"there is no environment {name!r} in {path}: no directory {folder.name}; {known}")
    return folder


def _clone(repository: str, branch: str, folder: Path) -> Path:
    command = ["git", "clone", "--quiet", "--depth", "1", "--branch", branch, "--", repository, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ConfigurationError("--from-repo needs git, which is not installed") from None
    if done.returncode:
        raise ConfigurationError(f"{branch} of {repository} cannot be cloned: {done.stderr.strip()}")
    return folder


def install_target(target: Path, extras: Sequence[str] = (), *, is_editable: bool) -> int:
    """Install what a project or wheel requires, then itself.

    Args:
        target: Directory of the project, or the wheel.
        extras: Its extras that are wanted.
        is_editable: Whether later changes of the project take effect at once.

    Returns:
        The exit code.
    """
    from verifiers_compat.cli.requirements import REPLACED, constraints, requirements_of

    requirements = requirements_of(target, extras)
    for extra in requirements.unknown_extras:
        print_note(f"nothing here stands for the extra {REPLACED}[{extra}]: install what the environment needs of it yourself")
    installer = _find_installer()
    if requirements.install:
        with tempfile.TemporaryDirectory() as folder:
            limits = Path(folder, "constraints.txt")
            options = ["--constraint", str(limits)]
            lines = constraints()
            if installer[0] == sys.executable:
                lines.append(f"{REPLACED}<0")  # pip cannot leave out what is required further down, so it refuses that
            else:
                overrides = Path(folder, "overrides.txt")
                overrides.write_text(f"{REPLACED}; python_version < '0'\n", encoding="utf-8")
                options += ["--override", str(overrides)]
            limits.write_text("\n".join(lines) + "\n", encoding="utf-8")
            code = _run([*installer, *options, *requirements.install])
        if code:
            print_note("the environment was not installed: what it needs has to go together with what this library needs")
            return FAILED
    code = _run([*installer, "--no-deps", *(["--editable"] if is_editable else []), str(target.resolve())])
    if code:
        return FAILED
    echo(f"installed {requirements.name}")
    if requirements.replaced:
        replaced = ", ".join(requirements.replaced)
        echo(
            f"left out  {replaced}: vfgym offers it (verifiers_compat). `pip check` calls it missing, which does no harm: vf-eval lets"
            " `import verifiers` mean this library"
        )
    return 0


def _find_installer() -> list[str]:
    """Return the command that installs into this environment: uv's, else pip's."""
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]


def _run(command: Sequence[str]) -> int:
    echo("$", *command, flush=True)
    return subprocess.run(command, check=False).returncode


main = functools.partial(run, app)


if __name__ == "__main__":
    main()
