"""Tables of files and options: names that may be misspelt or have several spellings, and values that may not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vfgym.cli.fields import TableFields, parse_names, setting
from vfgym.errors import ConfigurationError


class Fields(TableFields):
    spellings = {"number": "count", "secret": "key"}
    hidden = frozenset({"key"})
    alternatives = (("count", "ids"),)

    count: int = 4
    ids: list[int] = []
    text: str | None = None
    key: str = ""
    table: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"number": 0}, "count", 0),
        ({"count": 7}, "count", 7),
        ({}, "count", 4),
        ({"text": ""}, "text", ""),
        ({"text": Path("a/b")}, "text", "a/b"),
        ({"table": {}}, "table", {}),
    ],
)
def test_fields_are_read_under_any_of_their_names(given: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(Fields.parse(given, "here"), field) == value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cuont": 3}, "here: there is no field 'cuont'. Did you mean `count`"),
        ({"xyzzy": 3}, "here: there is no field 'xyzzy'. There are count, ids, text, key, table, number, secret."),
        ({"number": 3, "count": 3}, "here says the same twice, as number and count: leave one of them out"),
        ({"number": "3"}, "here: number: Input should be a valid integer, got '3'"),
        ({"count": True}, "here: count: "),
        ({"ids": [1, "x"]}, "here: ids.1: "),
        ({"table": 3}, "here: table: must be a table, got 3"),
        ({"count": "x", "text": 3}, "count: .*; text: "),
    ],
)
def test_what_does_not_fit_is_named_as_it_was_given(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Fields.parse(given, "here")


def test_errors_show_no_secret_and_long_values_in_part() -> None:
    for given in ({"secret": ["sk-0123456789"]}, {"table": ["sk-0123456789"], "key": ["sk-0123456789"]}):
        with pytest.raises(ConfigurationError) as caught:
            Fields.parse(given, "here")
        assert "secret: " in str(caught.value) or "key: " in str(caught.value)
        assert "got list" in str(caught.value)
    with pytest.raises(ConfigurationError) as caught:
        Fields.parse({"table": {"api_key": "sk-0123456789"}, "ids": {"api_key": "sk-0123456789"}}, "here")
    assert "sk-0123456789" not in str(caught.value)
    with pytest.raises(ConfigurationError) as caught:
        Fields.parse({"count": "x" * 500}, "here")
    assert len(str(caught.value)) < 200


def test_further_names_are_let_through_where_they_are_allowed() -> None:
    assert Fields.rename({"number": 1, "more": 2}, "here", extra=["more"]) == {"count": 1, "more": 2}
    assert Fields.known_names(["more"])[-1] == "more"


@pytest.mark.parametrize(
    ("fields", "own", "merged"),
    [
        ({"count": 1, "text": "a"}, {"text": ""}, {"count": 1, "text": ""}),
        ({"count": 1}, {"ids": []}, {"ids": []}),
        ({"ids": [1]}, {"count": 0}, {"count": 0}),
        ({"count": 1, "ids": [1]}, {"count": 2, "ids": [2]}, {"count": 2, "ids": [2]}),
        ({"count": 1}, {}, {"count": 1}),
    ],
)
def test_own_fields_win_over_those_that_say_the_same(fields: dict[str, Any], own: dict[str, Any], merged: dict[str, Any]) -> None:
    assert Fields.override(fields, own) == merged


@pytest.mark.parametrize(("value", "names"), [("a, b,,c ", ["a", "b", "c"]), ("", []), (["a,b"], ["a,b"]), (3, 3)])
def test_names_may_be_one_text(value: Any, names: Any) -> None:
    assert parse_names(value) == names


@pytest.mark.parametrize(
    ("flags", "options", "help"),
    [
        (("--max-concurrent", "-c"), {}, "Most episodes at once; -1 for no limit."),
        (("--num-examples",), {"also": "20 by default."}, "Play the first so many tasks; -1 for all of them. 20 by default."),
        (("--max-retries",), {}, "How often a rollout is repeated where the infrastructure or an unusable response of the model ended it."),
    ],
)
def test_the_help_of_an_option_is_what_the_model_says_first(flags: tuple[str, ...], options: dict[str, Any], help: str) -> None:
    made = setting(*flags, metavar="X", **options)
    assert (made.help, made.metavar) == (help, "X")


def test_an_option_of_something_else_is_not_a_setting() -> None:
    with pytest.raises(KeyError, match="colour"):
        setting("--colour")
