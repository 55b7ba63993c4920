"""Packages in the manner of published ones: installed by ``vf-install``, run by ``vf-eval`` against models on this machine, and stepped.

Nothing here needs a network: they are built with the build backend that is installed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.programs import make_environment, run_module
from tests.verifiers_compat.published.models import served
from tests.verifiers_compat.published.packages import KEYS, MORE, PACKAGES, Package

OFFLINE = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PATH": "/usr/bin:/bin"}  # no uv; pip reads "0" as "do not isolate"
STEP = Path(__file__).parent / "step.py"


@pytest.fixture
def python(tmp_path: Path) -> str:
    """The Python of a fresh virtual environment that sees what is installed here."""
    return make_environment(tmp_path / "venv")


@pytest.mark.parametrize(
    "package",
    [*PACKAGES, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in MORE if each.env_id not in ("fix-harbor", "word-tower"))],
    ids=lambda package: package.env_id,
)
def test_a_published_package_is_installed_evaluated_and_stepped(
    package: Package, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    installed = run_module("verifiers_compat.cli.commands.install", str(package.folder), python=python, **OFFLINE)
    assert f"installed {package.env_id}" in installed.stdout
    with served() as server:
        arguments = package.arguments_for(server.openai_url)
        rollouts = len(package.rewards) // 2
        sizes = ["-n", "2", "-r", str(rollouts), "-c", "1", "-s", "-o", "outputs"]
        model = ["-m", package.model, "-b", server.openai_url, "-k", "SOME_KEY"]
        run_module("verifiers_compat.cli.commands.eval", package.env_id, *model, *sizes, "-a", json.dumps(arguments), python=python)
    [saved] = (tmp_path / "outputs").rglob("results.jsonl")
    rows = [json.loads(line) for line in saved.read_text().splitlines()]
    assert sorted(row["reward"] for row in rows) == pytest.approx(package.rewards, abs=1e-5)
    assert not any(row["error"] for row in rows) or package.env_id == "guess-thing"
    with served() as server:
        request = {"env_id": package.env_id, "model": package.model, "url": server.openai_url}
        request["arguments"] = package.arguments_for(server.openai_url)
        stepped = run_module("verifiers_compat", str(STEP), json.dumps(request), python=python)
    earned = sorted(json.loads(stepped.stdout.splitlines()[-1]))
    assert earned == pytest.approx(package.rewards[:: len(package.rewards) // len(earned)], abs=1e-5)
