"""What evaluations are made of, under the documented names."""

from __future__ import annotations

import logging

import datasets
import pytest

from verifiers_compat.utils.eval_utils import get_log_level, quiet_datasets


def test_there_is_no_full_screen_display() -> None:
    with pytest.raises(ImportError, match="run_evaluations prints plain text"):
        from verifiers_compat.utils.eval_utils import run_evaluations_tui  # noqa: F401


def test_datasets_are_quiet_inside_a_with() -> None:
    before, had_no_bars = logging.getLogger("datasets").level, datasets.are_progress_bars_disabled()
    with quiet_datasets():
        assert datasets.are_progress_bars_disabled()
        assert logging.getLogger("datasets").level == logging.ERROR
    assert datasets.are_progress_bars_disabled() == had_no_bars
    assert logging.getLogger("datasets").level == before


def test_log_level_is_that_of_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VF_LOG_LEVEL", raising=False)
    assert (get_log_level(False), get_log_level(True)) == ("INFO", "DEBUG")
    monkeypatch.setenv("VF_LOG_LEVEL", "ERROR")
    assert (get_log_level(False), get_log_level(True)) == ("ERROR", "DEBUG")
