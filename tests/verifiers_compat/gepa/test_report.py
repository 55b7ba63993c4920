"""What is written about a run, for programs and for people."""

from __future__ import annotations

import json
from pathlib import Path

from verifiers_compat.gepa.report import readable_report, summarize, write_report
from verifiers_compat.gepa.result import Candidate, OptimizedPrompt
from verifiers_compat.gepa.run_directory import RunDirectory

SETTINGS = {"env_id": "doubles", "model": "player", "reflection_model": "writer"}
RESULT = OptimizedPrompt([Candidate("", (0.0, 0.5), (), 2), Candidate("Use ``` and ````.", (1.0, 1.0), (0,), 9)], 9, 1, is_finished=True)


def test_the_summary_has_all_of_a_result() -> None:
    assert summarize(RESULT) == {
        **{"is_finished": True, "calls": 9, "failed_calls": 1, "start_score": 0.25, "best_score": 1.0, "best_candidate": 1},
        "candidates": [
            {"score": 0.25, "parents": [], "calls": 2, "prompt": "", "scores": [0.0, 0.5]},
            {"score": 1.0, "parents": [0], "calls": 9, "prompt": "Use ``` and ````.", "scores": [1.0, 1.0]},
        ],
    }


def test_the_page_has_a_line_for_each_candidate_and_both_prompts() -> None:
    """A prompt with fences in it stands between longer ones."""
    page = readable_report(SETTINGS, 40, RESULT)
    assert "# A system prompt for doubles\n\nPlayed by player, reflected on by writer. 9 of 40 rollouts were played (1 failed)" in page
    assert "the run is finished." in page
    assert "Mean score on 2 validation examples: 0.250 at the start, 1.000 with the best prompt." in page
    assert "| 0 | the start | 0.250 | 2 |\n| 1 (best) | 0 | 1.000 | 9 |\n" in page
    assert "## The best prompt\n\n`````\nUse ``` and ````.\n`````\n" in page
    assert page.endswith("## The prompt at the start\n\n(none)\n")
    assert "the run can go on." in readable_report(SETTINGS, 40, OptimizedPrompt(RESULT.candidates, 9))


def test_the_files_of_a_report(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, SETTINGS) as directory:
        write_report(directory, {**SETTINGS, "sampling_args": {"api_key": "a-secret-key"}}, 40, RESULT)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report == {**SETTINGS, "sampling_args": {"api_key": "***"}, "max_calls": 40, **summarize(RESULT)}
    assert (tmp_path / "best_prompt.txt").read_text() == RESULT.prompt
    assert (tmp_path / "report.md").read_text() == readable_report(SETTINGS, 40, RESULT)
