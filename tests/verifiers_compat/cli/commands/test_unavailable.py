"""Commands that are documented and do not exist here: they say why, what to use, and exit with 2."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest

from verifiers_compat.cli.commands.unavailable import REASONS

ROOT = Path(__file__).parents[4]
INSTEAD = {"vf-build": "docker build", "vf-rl": "guide of training", "vf-train": "guide of training", "vf-vllm": "vllm serve"}


@pytest.mark.parametrize("command", {**INSTEAD, **REASONS})
def test_they_say_what_to_use(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts[command].partition(":")
    with pytest.raises(SystemExit) as ended:
        getattr(importlib.import_module(module), function)()
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {command} does not exist here: ")
    assert INSTEAD[command] in err
