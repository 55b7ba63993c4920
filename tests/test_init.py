"""What `import vfgym` gives: every name, the registered environments, and log records that are safe to show."""

from __future__ import annotations

import importlib
import logging

import gymnasium
import pytest

import vfgym

LATER = {
    "CliAgentEnv": "vfgym.envs.cli_agent",
    "CodeRubric": "vfgym.rubrics.code_rubric",
    "HarborEnv": "vfgym.envs.harbor",
    "PythonEnv": "vfgym.envs.python",
    "RLMEnv": "vfgym.envs.rlm",
    "SandboxEnv": "vfgym.envs.sandbox",
}


def test_every_name_is_there_and_some_are_imported_when_they_are_asked_for() -> None:
    assert [name for name in vfgym.__all__ if getattr(vfgym, name, None) is None] == []
    for name, module in LATER.items():
        assert name not in vars(vfgym)
        assert getattr(vfgym, name) is getattr(importlib.import_module(module), name)
    assert set(LATER) < set(vfgym.__all__)


def test_another_name_is_missed_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'vfgym' has no attribute 'ChatEnvs'"):
        vfgym.ChatEnvs  # noqa: B018


def test_environments_are_registered_and_log_records_safe_once_it_is_imported() -> None:
    assert "gymnasium/CartPole-v1" in gymnasium.registry
    record = logging.getLogRecordFactory()("vfgym", logging.INFO, __file__, 1, "a\x1b[2Jb", (), None)
    assert "\x1b" not in record.getMessage()
