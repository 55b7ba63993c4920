"""What is written about a run, for programs (``report.json``) and for people (``report.md``, ``best_prompt.txt``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifiers_compat.gepa.result import OptimizedPrompt
from verifiers_compat.gepa.run_directory import BEST_PROMPT, RunDirectory
from vfgym.output.redaction import redact_data
from vfgym.results.plain_json import json_text

REPORT = "report.json"
READABLE_REPORT = "report.md"


def write_report(directory: RunDirectory, settings: Mapping[str, Any], max_calls: int, result: OptimizedPrompt) -> None:
    """Write what came of a run so far.

    Args:
        directory: Where to.
        settings: What the run is about.
        max_calls: Its budget, in rollouts.
        result: What came of it.
    """
    fields = {**settings, "max_calls": max_calls, **summarize(result)}
    directory.write(REPORT, json_text(redact_data(fields), is_indented=True) + "\n")
    directory.write(READABLE_REPORT, readable_report(settings, max_calls, result))
    directory.write(BEST_PROMPT, result.prompt)


def summarize(result: OptimizedPrompt) -> dict[str, Any]:
    """Return what came of a run as data."""
    best = result.candidates.index(result.best)
    candidates = [
        {
            "score": candidate.score,
            "parents": list(candidate.parents),
            "calls": candidate.calls,
            "prompt": candidate.prompt,
            "scores": list(candidate.scores),
        }
        for candidate in result.candidates
    ]
    return {
        "is_finished": result.is_finished,
        "calls": result.calls,
        "failed_calls": result.failed_calls,
        "start_score": result.start.score,
        "best_score": result.best.score,
        "best_candidate": best,
        "candidates": candidates,
    }


def readable_report(settings: Mapping[str, Any], max_calls: int, result: OptimizedPrompt) -> str:
    """Return what came of a run as a page of Markdown."""
    best, start = result.best, result.start
    lines = [
        f"# A system prompt for {settings['env_id']}",
        "",
        f"Played by {settings['model']}, reflected on by {settings['reflection_model']}. {result.calls} of {max_calls} rollouts were played"
        f" ({result.failed_calls} failed); the run {'is finished' if result.is_finished else 'can go on'}.",
        "",
        f"Mean score on {len(start.scores)} validation examples: {start.score:.3f} at the start, {best.score:.3f} with the best prompt.",
        "",
        "| candidate | made from | score | rollouts played |",
        "|---|---|---|---|",
    ]
    for number, candidate in enumerate(result.candidates):
        parents = ", ".join(map(str, candidate.parents)) or "the start"
        mark = " (best)" if candidate is best else ""
        lines.append(f"| {number}{mark} | {parents} | {candidate.score:.3f} | {candidate.calls} |")
    for title, candidate in (("The best prompt", best), ("The prompt at the start", start)):
        lines += ["", f"## {title}", "", *_quoted(candidate.prompt)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> list[str]:
    """Return a text as a block of Markdown, whose fence is longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence, text, fence] if text else ["(none)"]
