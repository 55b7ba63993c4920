"""What runs say together as lines of text, in the order of the page: what was found with its picture, then what to worry about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from vfgym.output.terminal import one_line
from vfgym.results.comparison import ComparedPair
from vfgym.results.intervals import format_estimate
from vfgym.view.findings import EnvironmentFindings, Findings, note_on
from vfgym.view.run_report import RunReport

_PICTURE = 24
"""Characters of the picture of an interval."""
_LONGEST_NAME = 28
_MOST_CONCERNS = 4


def summary_lines(reports: Sequence[RunReport], findings: Findings, place: int) -> Iterator[str]:
    """Return what runs say, in lines, with more of one of them.

    Args:
        reports: The runs.
        findings: What they say together.
        place: Which run is looked at; its environment is shown.
    """
    environment = next(each for each in findings.environments if place in each.runs)
    yield one_line(environment.env_id)
    for line in (
        [_pair(*each) for each in zip(environment.headlines, environment.pairs, strict=True)]
        if environment.pairs
        else environment.headlines
    ):
        yield one_line(line)
    yield from _means(reports, findings, environment, place)
    report = reports[place]
    yield one_line(note_on(report))
    for concern in report.concerns[:_MOST_CONCERNS]:
        yield one_line(
            f"! {len(concern.rollouts)} of {len(report.rows)}: {concern.title}{f': {concern.message}' if concern.message else ''}"
        )[:200]
    if len(report.concerns) > _MOST_CONCERNS:
        yield f"! and {len(report.concerns) - _MOST_CONCERNS} further troubles"
    for remark in report.remarks:
        yield one_line(f"! {remark}")


def _pair(headline: str, pair: ComparedPair) -> str:
    if pair["verdict"].startswith(headline):
        return pair["verdict"]
    return f"{headline}, {format_estimate(pair['difference'], pair['interval'], sign='+')}: {pair['verdict']}"


def _means(reports: Sequence[RunReport], findings: Findings, environment: EnvironmentFindings, place: int) -> Iterator[str]:
    width = min(max(len(findings.labels[run]) for run in environment.runs), _LONGEST_NAME)
    for run in environment.runs:
        mean = reports[run].reward
        marker = ">" if run == place and len(environment.runs) > 1 else " "
        name = one_line(findings.labels[run])
        name = name if len(name) <= width else f"{name[: width - 1]}…"
        yield f"{marker} {name:<{width}} {interval_picture(mean.value, mean.interval, environment.mean_scale)} {mean}"
    if environment.mean_scale:
        low, high = (f"{end:g}" for end in (environment.mean_scale[0], environment.mean_scale[-1]))
        yield f"  {'':<{width}} {low}{high:>{_PICTURE - len(low)}}"


def interval_picture(value: float | None, interval: Sequence[float] | None, scale: Sequence[float] | None) -> str:
    """Return a mean and its interval as they lie on a scale.

    >>> interval_picture(0.5, (0.25, 0.75), [0.0, 0.5, 1.0])
    '·····├─────●─────┤······'
    """
    line = ["·"] * _PICTURE
    if scale and value is not None and math.isfinite(value):
        low, high = interval or (value, value)
        first, middle, last = (_column(number, scale) for number in (low, value, high))
        line[first : last + 1] = "─" * (last + 1 - first)
        line[first], line[last], line[middle] = "├", "┤", "●"
    return "".join(line)


def _column(number: float, scale: Sequence[float]) -> int:
    share = (number - scale[0]) / (scale[-1] - scale[0])
    return min(max(int(share * (_PICTURE - 1)), 0), _PICTURE - 1)
