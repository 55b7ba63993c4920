"""The rules of an environment are those of its documentation, without what is for programmers."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from gymnasium.spaces import Box, Discrete

from vfgym.wrappers.pettingzoo.rules import Rules, read_rules, read_title

DOCUMENTATION = """
# Tic Tac Toe

```{figure} classic_tictactoe.gif
```

This environment is part of the classic environments.

| Import             | `from pettingzoo.classic import tictactoe_v3` |
|--------------------|-----------------------------------------------|
| Agents             | 2                                             |

Put three
in a row.

Our implementation wraps nothing.

### Observation Space
Two planes of cells.

#### Legal Actions
A mask.

### Action Space
- 0: left
- 1: right

### Rewards
1 for who wins.
If an illegal action is taken, the game ends.

### Version History
* v1: first
"""


def game(module: str, documentation: str, cls_doc: str | None = None, **attributes: Any) -> Any:
    sys.modules[module] = ModuleType(module, documentation)
    return type("raw_env", (), {"__module__": module, "__doc__": cls_doc, **attributes})()


@pytest.fixture(autouse=True)
def _forget_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pettingzoo.of_a_test", "games_of_a_test"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))


def test_a_module_of_pettingzoos_documents_its_game() -> None:
    made = game("pettingzoo.of_a_test", DOCUMENTATION, "Programmers read this.")
    assert read_title(made) == "Tic Tac Toe"
    assert read_rules(made) == Rules(
        text="Put three in a row.\n\nRewards:\n1 for who wins.",
        actions="- 0: left\n- 1: right",
        observations="Two planes of cells. \n\nLegal Actions A mask.".replace(" \n\n", "\n\n"),
    )


def test_of_others_the_class_does_and_else_a_module_with_a_title() -> None:
    made = game("games_of_a_test", DOCUMENTATION, "A duel.\n\n## Actions\n0: wait")
    assert (read_title(made), read_rules(made)) == ("raw_env", Rules(text="A duel.", actions="0: wait"))
    assert read_title(game("games_of_a_test", DOCUMENTATION)) == "Tic Tac Toe"
    unnamed = game("games_of_a_test", "Helpers.", metadata={"name": "duel_v0"})
    assert (read_title(unnamed), read_rules(unnamed)) == ("duel_v0", Rules())


def test_sections_are_cut_at_a_paragraph() -> None:
    sections = "\n\n".join(f"{number} " + "x" * 900 for number in range(5))
    actions = read_rules(game("games_of_a_test", "", f"A duel.\n\n## Action Space\n{sections}\n\n## Observations\n{'y' * 4000}")).actions
    assert [line[0] for line in actions.split("\n\n")] == ["0", "1", "2"]
    assert len(read_rules(game("games_of_a_test", "", f"A duel.\n\n## Observations\n{'y' * 4000}")).observations) == 3000


def test_all_is_told_to_who_sees_observations_as_they_are() -> None:
    assert Rules("Win.", "0: go", "").all == "Win.\n\nActions:\n0: go"
    assert Rules("", "", "Numbers.").all == "Observations:\nNumbers."
    assert Rules().all == ""


@pytest.mark.parametrize(
    ("rules", "declared", "names"),
    [
        (Rules(actions="- 0: left\n- 1: right"), {}, ("left", "right")),
        (Rules(text="Agent action space: `[stay, go]`"), {}, ("stay", "go")),
        (Rules(text="Agent action space: `[stay, go, no]`; the adversary's action space: `[a, b]`"), {}, ("a", "b")),
        (Rules(actions="- 0: left\n- 1: right"), {"action_names": ["west", "east"]}, ("west", "east")),
        (Rules(actions="- 0: left\n- 1: left"), {}, ()),
        (Rules(actions="- 0: left"), {}, ()),
    ],
)
def test_names_are_taken_where_there_is_one_for_each_action(rules: Rules, declared: dict[str, Any], names: tuple[str, ...]) -> None:
    made = game("games_of_a_test", "", **declared)
    assert rules.names_of(made, Discrete(2)) == names
    assert rules.names_of(made, Box(0, 1, (2,))) == ()


@pytest.mark.parametrize(
    "noise",
    [
        "# A Title\n",
        "```python\nenv.step(0)\n```",
        "This environment is part of the <a href='..'>classic environments</a>. Please read that page first.",
        *(f"| {name} | one |\n|---|---|\n| Agents | 2 |\n" for name in ("Creation", "Import", "Actions")),
        "Our implementation wraps OpenSpiel.",
        "Our implementation is a wrapper of OpenSpiel.",
        "If an illegal action is taken, the game ends.",
    ],
)
@pytest.mark.parametrize("heading", ["", "## Rewards\n\n"])
def test_what_is_for_programmers_is_not_told_in_any_section(noise: str, heading: str) -> None:
    if not (heading and noise.startswith("# ")):
        told = read_rules(
            game("games_of_a_test", "", f"{'' if heading else noise}{heading}\n\nWin.\n\n{noise if heading else ''}\n\nOr lose.")
        )
        assert told == Rules(text="Rewards:\nWin.\n\nOr lose." if heading else "Win.\n\nOr lose.")


def test_sections_go_by_either_name_in_any_case() -> None:
    sections = "## ACTIONS\nTwo.\n\n## action space\nOne.\n\n### Observations  \nFour.\n\n## Observation Space\nThree.\n\n## Rewards\n"
    assert read_rules(game("games_of_a_test", "", f"A duel.\n\n{sections}")) == Rules("A duel.", "One.\n\nTwo.", "Three.\n\nFour.")


@pytest.mark.parametrize(("length", "kept"), [(2999, 2999), (3000, 3000), (3001, 3000)])
def test_a_section_may_have_three_thousand_characters(length: int, kept: int) -> None:
    assert len(read_rules(game("games_of_a_test", "", f"A duel.\n\n## Actions\n{'y' * length}")).actions) == kept


def test_lists_and_tables_keep_their_lines() -> None:
    told = read_rules(game("games_of_a_test", "", "A duel\nof two:\n- one\n* two\n| a | b |\n| c | d |\n\n\n\nEnd."))
    assert told.text == "A duel of two:\n- one\n* two\n| a | b |\n| c | d |\n\nEnd."


@pytest.mark.parametrize(("metadata", "title"), [({}, "raw_env"), ({"name": ""}, "raw_env"), ({"name": "duel_v0"}, "duel_v0")])
def test_an_environment_without_a_title_has_a_name(metadata: dict[str, str], title: str) -> None:
    assert read_title(game("games_of_a_test", "", "A duel.", metadata=metadata)) == title
    assert read_title(game("games_of_a_test", "", "#  A duel  \n\nOf two.", metadata=metadata)) == "A duel"
    assert read_title(game("games_of_a_test", "", "## A duel\n\nOf two.", metadata=metadata)) == title
