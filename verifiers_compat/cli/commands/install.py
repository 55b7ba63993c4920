"""``vf-install``: install an environment and what it needs, beside this library."""

from __future__ import annotations

import functools
import importlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verifiers_compat.cli.program import FAILED, Debug, create_app, print_note, run
from vfgym.errors import ConfigurationError
from vfgym.output.terminal import echo

if TYPE_CHECKING:
    from verifiers_compat.cli.packages.needs import Need
    from verifiers_compat.cli.packages.targets import Target

app = create_app("vf-install", "Install an environment and what it needs, beside this library.")

REPOSITORY = "https://github.com/PrimeIntellect-ai/verifiers"


@app.command()
def install(
    env: Annotated[
        str,
        typer.Argument(
            metavar="PACKAGE", help="An environment below DIR (word-count, word-count[extra]), a project's directory, a wheel or an sdist."
        ),
    ],
    path: Annotated[Path, typer.Option("--path", "-p", metavar="DIR", help="Where environments are developed.")] = Path("environments"),
    from_repo: Annotated[bool, typer.Option("--from-repo", "-r", help="Take it from environments/ in a git repository.")] = False,
    branch: Annotated[str, typer.Option("--branch", "-b", help="Branch or tag of that repository.")] = "main",
    repository: Annotated[str, typer.Option("--repository", metavar="URL", help="That repository.")] = REPOSITORY,
    check: Annotated[
        bool, typer.Option("--check", help="Install and run nothing: say what the package uses of verifiers, what is here, what differs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print that as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Install an environment and what it needs, beside this library.

    The requirement `verifiers` of published environments is left out: this library offers it. What verifiers would bring, and the
    environment imports without requiring it, is installed. uv is used where it is installed, else pip; options of theirs go into
    environment variables (UV_..., PIP_...).

    With --check, the exit code is 0 if everything that the package uses is here, and 1 if something is missing.
    """
    from verifiers_compat.cli.packages.targets import open_target

    if as_json and not check:
        raise ConfigurationError("--json prints what --check finds: give --check, too")
    with open_target(env, path, repository=repository if from_repo else None, branch=branch) as target:
        code = print_check(target, as_json=as_json) if check else install_target(target)
    raise typer.Exit(code)


def print_check(target: Target, *, as_json: bool) -> int:
    """Print what a package uses and what it will find here, and return the exit code: 1 if something is missing."""
    from verifiers_compat.cli.packages.check import check_target
    from verifiers_compat.cli.packages.report import report_lines

    report = check_target(target)
    echo(report.model_dump_json(indent=2) if as_json else "\n".join(report_lines(report)))
    return 0 if report.is_complete else FAILED


def install_target(target: Target) -> int:
    """Install what a package requires, and what it imports without requiring it, then itself.

    Returns:
        The exit code.
    """
    from verifiers_compat.cli.packages.check import check_package
    from verifiers_compat.cli.requirements import REPLACED, extra_requirements, requirements_of

    requirements = requirements_of(target.path, target.extras)
    report = check_package(requirements, target)
    for extra in requirements.unknown_extras:
        print_note(f"nothing here stands for the extra {REPLACED}[{extra}]: install what the environment needs of it yourself")
    for each in report.absent:
        if not each.is_optional:
            print_note(f"{requirements.name} uses {each.name} ({', '.join(each.places)}), which is not offered: {each.reason}")
    added = [each.requirement for each in report.imports if each.status == "added" and each.requirement is not None]
    installer = _find_installer()
    wanted = list(dict.fromkeys([*requirements.install, *extra_requirements(report.extras), *added]))
    if wanted and _install_requirements(installer, wanted):
        print_note("the environment was not installed: what it needs has to go together with what this library needs")
        return FAILED
    code = _run([*installer, "--no-deps", *(["--editable"] if target.is_editable else []), str(target.path.resolve())])
    if code:
        return FAILED
    echo(f"installed {requirements.name}")
    if requirements.replaced:
        replaced = ", ".join(requirements.replaced)
        echo(
            f"left out  {replaced}: vfgym offers it (verifiers_compat). `pip check` calls it missing, which does no harm: vf-eval lets"
            " `import verifiers` mean this library"
        )
    if added:
        echo(f"added     {', '.join(added)}: the environment imports it, and verifiers would bring it")
    _note_missing(requirements.name, report.imports)
    return 0


def _install_requirements(installer: Sequence[str], wanted: Sequence[str]) -> int:
    """Install requirements that go together with this library's, without `verifiers`; return the exit code."""
    from verifiers_compat.cli.requirements import REPLACED, constraints

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
        return _run([*installer, *options, *wanted])


def _note_missing(name: str, imports: Sequence[Need]) -> None:
    """Name what an environment imports and what is still not there, now that everything known is installed."""
    from verifiers_compat.cli.packages.needs import is_installed

    importlib.invalidate_caches()
    for each in imports:
        if not is_installed(each.module):
            todo = f"pip install {each.requirement or each.module}"
            print_note(f"{name} imports {each.module} ({', '.join(each.places)}), which nothing that it requires brings: try {todo}")


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
