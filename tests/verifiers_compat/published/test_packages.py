"""Packages in the manner of published ones: installed by ``vf-install``, run by ``vf-eval`` against models on this machine, and stepped.

Nothing here needs a network: they are built with the build backend that is installed. The quick suite plays them without installing them
(``test_kinds``).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import commands
from tests.programs import make_environment, run_module
from tests.verifiers_compat.published.models import served
from tests.verifiers_compat.published.packages import KEYS, MORE, PACKAGES, Package

OFFLINE = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PATH": "/usr/bin:/bin"}  # no uv; pip reads "0" as "do not isolate"
STEP = Path(__file__).parent / "step.py"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, empty; keys are set."""
    monkeypatch.chdir(tmp_path)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.mark.parametrize("package", [each for each in PACKAGES if each.url_argument], ids=lambda package: package.env_id)
def test_a_package_with_a_model_of_its_own_is_evaluated_and_stepped(package: Package, folder: Path) -> None:
    evaluate_and_step(package, folder, functools.partial(commands.run_module, PYTHONPATH=str(package.folder)))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "package", [*PACKAGES, *(each for each in MORE if each.env_id not in ("fix-harbor", "word-tower"))], ids=lambda package: package.env_id
)
def test_a_published_package_is_installed_evaluated_and_stepped(package: Package, folder: Path) -> None:
    python = make_environment(folder / "venv")
    installed = run_module("verifiers_compat.cli.commands.install", str(package.folder), python=python, **OFFLINE)
    assert f"installed {package.env_id}" in installed.stdout
    evaluate_and_step(package, folder, functools.partial(run_module, python=python))


def evaluate_and_step(package: Package, folder: Path, run: Callable[..., Any]) -> None:
    """Run ``vf-eval`` and the program that steps it; raise unless both give the package's rewards."""
    with served() as server:
        arguments = package.arguments_for(server.openai_url)
        rollouts = len(package.rewards) // 2
        sizes = ["-n", "2", "-r", str(rollouts), "-c", "1", "-s", "-o", "outputs"]
        model = ["-m", package.model, "-b", server.openai_url, "-k", "SOME_KEY"]
        run("verifiers_compat.cli.commands.eval", package.env_id, *model, *sizes, "-a", json.dumps(arguments))
    [saved] = (folder / "outputs").rglob("results.jsonl")
    rows = [json.loads(line) for line in saved.read_text().splitlines()]
    assert sorted(row["reward"] for row in rows) == pytest.approx(package.rewards, abs=1e-5)
    assert not any(row["error"] for row in rows) or package.env_id == "guess-thing"
    with served() as server:
        request = {"env_id": package.env_id, "model": package.model, "url": server.openai_url}
        request["arguments"] = package.arguments_for(server.openai_url)
        stepped = run("verifiers_compat", str(STEP), json.dumps(request))
    earned = sorted(json.loads(stepped.stdout.splitlines()[-1]))
    assert earned == pytest.approx(package.rewards[:: len(package.rewards) // len(earned)], abs=1e-5)
