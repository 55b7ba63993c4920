"""`docstrings`: what somebody's docstring says to a player, and nothing that is for programmers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.wrappers.gymnasium.docstrings import numbered_elements, plain, player_sections, without_elements


def text_of(docstring: str) -> str:
    assert player_sections(docstring).keys() <= {""}
    return player_sections(docstring).get("", "")


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("the [hopper](#hopper) moves", "the hopper moves"),
        ("**Note:** the *tip* moves, ***always***", "Note: the tip moves, always"),
        ("3 * x and 4*y*z", "3 * x and 4*y*z"),
        ("a ``Box`` at `[0,0]`", "a Box at [0,0]"),
        ("see :meth:`~gymnasium.Env.step`", "see gymnasium.Env.step"),
        ("Timeout (see `max_steps`).", "Timeout."),
        ("theta<sup>2</sup>", "theta2"),
        ("a < b and b > c", "a < b and b > c"),
        ("$x + 1$ is more", "x + 1 is more"),
        (r"a snake\_case \*", "a snake_case *"),
        ("![the car](car.png) drives", "the car drives"),
        ("<b>bold</b> <br/> line", "bold line"),
        ("  many \t blanks ", "many blanks"),
    ],
)
def test_markup_becomes_plain_text(markup: str, text: str) -> None:
    assert plain(markup) == text


def test_lines_are_joined_and_lists_and_drawings_kept() -> None:
    """What belongs together is a line; a drawing stays as it was drawn."""
    told = "One\n sentence.\n\nRules:\n- first\n  rule\n- second\n    1. nested\n\nMap:\n\n    |A: |\n    | :B|\n\nEnd."
    assert text_of(told) == "One sentence.\n\nRules:\n- first rule\n- second\n  1. nested\n\nMap:\n\n    |A: |\n    | :B|\n\nEnd."


GOOGLE = "Args Arguments Attributes Example Examples Methods Parameters Raises Returns Usage Yields"
FOR_PROGRAMMERS = [
    *(
        "reset argument",
        "reset arguments",
        "argument",
        "arguments",
        "args",
        "attributes",
        "change log",
        "changelog",
        "citation",
        "citations",
    ),
    *("citing", "credits", "example", "examples", "import", "imports", "installation", "licence", "license", "methods", "notes on import"),
    *("note on imports", "observation encoding", "parameters", "raises", "references", "registered configurations", "returns", "see also"),
    *("usage", "vectorized environment", "version", "versions", "version history", "yields"),
]


@pytest.mark.parametrize(
    "noise",
    [
        *(":param size: How large it is,\n    in cells.", ":param int size: How large.\n:returns: Nothing.\n:rtype: None"),
        *(".. versionadded:: 1.2\n   It is new.", ".. code-block:: python\n\n   env.step(0)"),
        *("Args:\n    x: A number.\n\n        Any one.", "Returns:\n    A tuple."),
        *("```python\nenv = make()\n```", "```\nnever closed", ">>> play()\n1", "<!-- hidden\nwords -->", "![a car](car.png)"),
        *(f"## {heading}\n- v1: by Somebody" for heading in ("Changelog", "Version History", "Credits", "Citation", "Usage")),
        *("Parameters\n----------\nx : int\n    A number.", "References\n----------\nA book."),
        *(
            "Returns\n=======\nA tuple.",
            "Raises\n~~~\nAn error.",
            "'''\nenv = make()\n'''",
            "[![build](b.svg)](https://a)",
            "#!/usr/bin/python",
        ),
        *(f"{name}:\n    x: A number.\n\n    y: Another." for name in GOOGLE.split()),
        *(f"## {heading.upper()}\nx: A number." for heading in FOR_PROGRAMMERS),
    ],
)
def test_what_is_for_programmers_is_not_told(noise: str) -> None:
    assert text_of(f"Guess a number.\n\nIt is small.\n\n{noise}\n") == "Guess a number.\n\nIt is small."


@pytest.mark.parametrize(
    "sentence",
    [
        *(
            "It is adapted from the work of P. Wawrzynski.",
            "See https://example.com for more.",
            "Created by Somebody.",
            "Copyright Somebody.",
        ),
        *("Credits to Somebody for the idea.", "It is good for curriculum learning.", "Use gymnasium.make to make it."),
        *("To import it, say import games.", "Changed in v1.2."),
        *(
            "Its doi is 10.1.",
            "It is on arXiv as 1.",
            "It is by Sutton et al. in 1998.",
            "It is licensed by MIT.",
            "The author is Somebody.",
        ),
        *("Credit goes to Somebody.", "@article{one.", "Say from games import one.", "Say pip install games.", "Call gym.register first."),
        *("It is a gymnasium.Env of this.", "See info[0] for more.", "It is made for RL.", "It is for reinforcement learning."),
        *(
            "It has a naming convention.",
            "Added in version 2.",
            "Deprecated in 3.",
            "Fixed in v4.",
            "Removed in 5.",
            "Since in 5.",
            "TODO more.",
            "FIXME now.",
        ),
    ],
)
def test_sentences_of_credits_imports_and_changes_are_not_told(sentence: str) -> None:
    assert text_of(f"It walks. {sentence} It falls, e.g. Left.") == "It walks. It falls, e.g. Left."


def test_prose_goes_on_after_what_is_for_programmers() -> None:
    assert text_of("Guess.\n\nArgs:\n    x: A number.\n\nIt is small.\nExample: 5.\n\nNotes:\n    Below 9.") == (
        "Guess.\n\nIt is small. Example: 5.\n\nNotes: Below 9."
    )


def test_what_announces_code_goes_with_it() -> None:
    assert text_of("Drive well. To play yourself, type:\n\n```shell\npython car.py\n```\n") == "Drive well."


def test_tables_are_short_lines() -> None:
    assert (
        text_of("| Num | Action | Min |\n|---|---|---|\n| 0 | `Torque` | -2 |\n| 1 | Brake | |")
        == "Num, Action, Min\n0, Torque, -2\n1, Brake"
    )


def test_headings_split_and_headings_in_code_do_not() -> None:
    told = player_sections("Intro.\n\n## Rewards:\n+1\n\n```python\n# no heading\n```\n\n### Episode End\nAt 10.\n\n## Rewards\n-1")
    assert told == {"": "Intro.", "Rewards": "+1\n\n-1", "Episode End": "At 10."}


def test_underlined_headings_split_and_rules_and_maps_do_not() -> None:
    told = player_sections("Dig\n===\nA field.\n\nRules:\n------\nOnce.\n\nYou win.\n---\nOr not.\n\n    #######\n    # S #G#\n\nEnd")
    assert told == {"Dig": "A field.", "Rules": "Once.\n\nYou win. --- Or not.\n\n    #######\n    # S #G#\n\nEnd"}


@pytest.mark.parametrize("heading", ["## Goal{}now", "##{}Goal now{}:{}", "## Goal now{}:{}\u2003", "Goal{}now\n---", "Goal now:{}\n---{}"])
def test_headings_may_have_blanks_anywhere(heading: str) -> None:
    assert player_sections(f"Guess.\n\n{heading.replace('{}', ' ' * 4_000)}\nWin.") == {"": "Guess.", "Goal now": "Win."}


@pytest.mark.parametrize("line", ["{}: {}", "{} : {}", "{} = {}", "{} - {}", "- {}: {}", "* {} = {}", "  + {} - {}"])
def test_elements_are_listed_in_many_ways(line: str) -> None:
    section = "\n".join(line.format(number, name) for number, name in enumerate(("left", "right")))
    assert (numbered_elements(section), without_elements(section)) == (("left", "right"), "")
    for numbers in ((1, 2), (0, 2), (1, 0), (0, 0)):
        section = "\n".join(line.format(number, name) for number, name in zip(numbers, ("left", "right"), strict=True))
        assert (numbered_elements(section), without_elements(section)) == ((), section)


def test_one_list_that_is_numbered_from_0_is_one_of_elements() -> None:
    section = "Where to go:\n- 0: left\n- 1: right, with a jump"
    assert numbered_elements(section) == ("left", "right, with a jump")
    assert without_elements(section) == "Where to go:"
    two = "On land:\n- 0: walk\n- 1: run\n\nAt sea:\n- 0: swim\n- 1: dive"
    assert numbered_elements(two) == ()
    assert without_elements(two) == two
    assert numbered_elements("At 12:30 it is over.") == ()


@given(st.text(st.sampled_from("ab *_`$|\\{}<>[]()!#-0123:.\n'\"/ "), max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """A docstring of somebody who never heard of Markdown is not an error."""
    for heading, told in player_sections(text).items():
        assert told.strip()
        assert "\n" not in heading
        numbered_elements(told)
