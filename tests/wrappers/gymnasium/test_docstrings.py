"""`docstrings`: Markdown as plain text for a player, and the tables and lists in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.wrappers.gymnasium.docstrings import numbered_lists, plain, prose, sections, tables


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("the [hopper](https://example.com/hopper) moves", "the hopper moves"),
        ("![A car](car.png) drives", "drives"),
        ("read https://example.com/a?b=c first", "read first"),
        ("**Note:** the *tip* moves, ***always***", "Note: the tip moves, always"),
        ("3 * x and 4*y*z", "3 * x and 4*y*z"),
        ("a `Box` at `[0,0]`", "a Box at [0,0]"),
        ("theta<sup>2</sup> + velocity<sub>t</sub> + velocity<sub>t+1</sub>", "theta^2 + velocity_t + velocity_(t+1)"),
        ("see :meth:`~gymnasium.Env.step`", "see gymnasium.Env.step"),
        ('by Sutton [<a href="#ref">1</a>].', "by Sutton."),
        ("a < b and b > c", "a < b and b > c"),
        (r"$w_{forward} \times \frac{dx}{dt}$, where", "w_forward * dx/dt, where"),
        (r"$\|action\|_2^2$", "norm(action)^2"),
        (r"$w \times \frac{z_{after\_action} - 0}{dt}$", "w * (z_after_action - 0)/dt"),
        (r"$[0.7, +\infty]$ if $|angle| < 0.2$ and $y \leq 1$", "[0.7, +inf] if abs(angle) < 0.2 and y <= 1"),
        ("it costs $5 and $10", "it costs $5 and $10"),
    ],
)
def test_markup_becomes_plain_text(markdown: str, text: str) -> None:
    assert plain(markdown) == text


def test_lines_are_joined_and_lists_and_drawings_kept() -> None:
    """What belongs together is a line; a drawing stays as it was drawn."""
    section = "One\n sentence.\n\nRules:\n- first\n  rule\n- second\n    1. nested\n\nMap:\n\n    |A: |\n    | :B|\n\nEnd."
    assert prose(section) == "One sentence.\n\nRules:\n- first rule\n- second\n  1. nested\n\nMap:\n\n    |A: |\n    | :B|\n\nEnd."


def test_what_announces_code_or_a_figure_goes_with_it() -> None:
    section = "Drive well. To play yourself, type:\n```shell\npython car.py\n```\nRemember to brake.\n\nLook at this:\n\n![x](y.png)"
    assert prose(section := sections(section)[""]) == "Drive well.\n\nRemember to brake.", section


def test_sentences_for_programmers_and_readers_of_papers_are_left_out_unless_the_text_is_wanted_whole() -> None:
    section = 'Based on ["A Robot"](https://example.com). It walks (in v3 too). Use `gymnasium.make`. It falls.'
    assert prose(section) == "It walks. It falls."
    assert prose("This is v2. It falls.", whole=True) == "This is v2. It falls."


def test_initials_and_abbreviations_end_no_sentence() -> None:
    assert prose('It is based on the work of P. Wawrzynski in ["A Cat"](https://example.com). It runs, e.g. Left.') == "It runs, e.g. Left."


def test_tables_are_short_lines_or_left_out() -> None:
    section = "| Num | Action | Min |\n|---|---|---|\n| 0 | `Torque` | -2 |\n| 1 | Brake | |\n\nBoth hurt."
    assert list(tables(section)) == [[["Num", "Action", "Min"], ["0", "Torque", "-2"], ["1", "Brake", ""]]]
    assert prose(section) == "Num: Action, Min\n0: Torque, -2\n1: Brake\n\nBoth hurt."
    assert prose(section, without_elements=True) == "Both hurt."


def test_lists_numbered_from_zero_are_found_one_by_one() -> None:
    section = "If continuous:\n- 0: steer\n- 1: gas\n\nIf discrete:\n- 0: nothing\n- 1: left\n- 2: right\n\nAlso:\n- 1: no\n- 3: list"
    assert list(numbered_lists(section)) == [("steer", "gas"), ("nothing", "left", "right")]


def test_numbered_lines_need_no_bullets() -> None:
    section = "Where to go:\n0: left\n1: right, with\n   a jump\n\nAt 12:30 it is over."
    assert list(numbered_lists(section)) == [("left", "right, with a jump")]
    assert prose(section) == "Where to go:\n- 0: left\n- 1: right, with a jump\n\nAt 12:30 it is over."


def test_headings_split_and_headings_in_code_do_not() -> None:
    text = "Intro.\n\n## Rewards:\n+1\n\n```python\n# no heading\n```\n\n### Episode End\nAt 10."
    assert {heading: prose(body) for heading, body in sections(text).items()} == {"": "Intro.", "Rewards": "+1", "Episode End": "At 10."}


def test_underlined_headings_split_and_rules_and_maps_do_not() -> None:
    text = "Dig\n===\nA field.\n\nRules:\n------\nOnce.\n\nYou win.\n---\nOr not.\n\n    #######\n    # S #G#\n\nEnd"
    assert {heading: prose(body) for heading, body in sections(text).items()} == {
        "": "",
        "Dig": "A field.",
        "Rules": "Once.\n\nYou win. --- Or not.\n\n    #######\n    # S #G#\n\nEnd",
    }


@pytest.mark.parametrize("heading", ["## Goal{}now", "##{}Goal now{}:{}", "## Goal now{}:{}\u2003", "Goal{}now\n---", "Goal now:{}\n---{}"])
def test_headings_may_have_blanks_anywhere(heading: str) -> None:
    found = sections(f"Guess.\n\n{heading.replace('{}', ' ' * 20_000)}\nWin.")
    assert {name: prose(body) for name, body in found.items()} == {"": "Guess.", "Goal now": "Win."}


def test_sections_of_the_same_heading_are_one() -> None:
    assert prose(sections("## Rules\nOne.\n## Goal\nWin.\n## Rules\nTwo.")["Rules"]) == "One.\n\nTwo."


@pytest.mark.parametrize("end", ["Args:\n    x: A number.", "Parameters\n----------\nx : int", ">>> play()\n1", "Example:\n    code"])
def test_what_describes_code_is_no_part_of_the_prose(end: str) -> None:
    found = sections(f"Guess a number.\n\nIt is small.\n\n{end}\n\n## Rules\nGuess well.\n\n{end}\n")
    assert prose(found[""]) == "Guess a number.\n\nIt is small."
    assert prose(found["Rules"]) == "Guess well."


@pytest.mark.parametrize(
    "code", ["Args:\n    x: A number.\n\n        Any one.", "Usage\n\n  code", ">>> play()\n1", "For example:\n\n>>> play()\n1"]
)
def test_prose_goes_on_after_what_describes_code(code: str) -> None:
    text = f"Guess.\n\n{code}\n\nIt is small.\nExample: 5.\n\nNotes:\n    Below 9.\n\nUsage:\n    code"
    assert prose(sections(text)[""]) == "Guess.\n\nIt is small. Example: 5.\n\nNotes: Below 9."


@given(st.text(st.sampled_from("ab *_`$|\\{}<>[]()!#-0123:.\n'\"/ "), max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """A docstring of somebody who never heard of Markdown is not an error."""
    for body in sections(text).values():
        assert isinstance(prose(body), str)
        for rows in tables(body):
            assert all(row for row in rows)
        assert all(names for names in numbered_lists(body))
