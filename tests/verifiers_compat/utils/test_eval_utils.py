"""What evaluations are made of, under the documented names."""

from __future__ import annotations

import logging

import datasets
import pytest

from verifiers_compat.utils.eval_utils import filter_inputs, get_log_level, quiet_datasets


def test_there_is_no_full_screen_display() -> None:
    with pytest.raises(ImportError, match="run_evaluations prints plain text"):
        from verifiers_compat.utils.eval_utils import run_evaluations_tui  # noqa: F401


@pytest.mark.parametrize(
    ("finished", "rollouts", "missing"),
    [([], 2, "abde"), ([0], 2, "ade"), ([0, 0, 1], 2, "d"), ([1], 3, "abcde"), ([0] * 4, 2, "de"), ([7], 1, "ad"), ([], 0, "")],
)
def test_inputs_that_are_still_to_be_played(finished: list[int], rollouts: int, missing: str) -> None:
    """The first rows of each example, as many as are missing."""
    rows = [{"example_id": number, "row": row} for number, row in zip((0, 0, 0, 1, 1), "abcde", strict=True)]
    left = filter_inputs(rows, [{"example_id": number} for number in finished], rollouts)
    assert "".join(str(row["row"]) for row in left) == missing


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
