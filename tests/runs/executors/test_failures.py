"""Exceptions that workers tell of are raised again as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vfgym.bounded_json import dump_json
from vfgym.clients import is_permanent_refusal
from vfgym.errors import ConfigurationError, Error, MissingExtra, ModelError
from vfgym.output.redaction import Secret
from vfgym.runs.executors.failures import as_data, from_data


def told(error: BaseException) -> Exception:
    return from_data(json.loads(dump_json(as_data(error))))


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


class Own(Exception):
    """One that takes more than a text."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


@pytest.mark.parametrize(
    "error", [ConfigurationError("there is no such id"), ModelError("no"), ZeroDivisionError("by zero"), Own(1, 2), KeyError("a")]
)
def test_it_has_its_class_and_its_text(error: Exception) -> None:
    again = told(error)
    assert type(again) is type(error)
    assert str(again).strip("'\"") == str(error).strip("'\"")


def test_what_is_not_of_the_library_tells_where_it_was_raised() -> None:
    (note,) = told(raised(ZeroDivisionError("by zero"))).__notes__
    assert note.startswith("in a worker:\nTraceback")
    assert "test_failures.py" in note
    assert not hasattr(told(raised(ConfigurationError("one line"))), "__notes__")


def test_notes_and_attributes_are_kept() -> None:
    error = MissingExtra("math", "verifying")
    error.add_note("first")
    again = told(error)
    assert isinstance(again, MissingExtra)
    assert (again.extra, again.__notes__, str(again)) == ("math", ["first"], str(error))


def test_a_class_that_is_not_known_here_becomes_an_error_with_its_name() -> None:
    data: dict[str, Any] = {**as_data(Own(1, 2)), "module": "of_another_machine"}
    again = from_data(data)
    assert type(again) is Error
    assert str(again) == "Own: 1 and 2"


def test_a_name_that_is_no_exception_is_made_no_object_of() -> None:
    for name in ("dict", "print", "KeyboardInterrupt"):
        assert type(from_data({**as_data(ModelError("x")), "module": "builtins", "name": name})) is Error


def test_a_refused_key_ends_the_run_here_too() -> None:
    openai = pytest.importorskip("openai")
    error = openai.AuthenticationError.__new__(openai.AuthenticationError)
    error.args, error.status_code = ("401: no such key",), 401
    error.add_note("the key of API_KEY")
    again = told(error)
    assert is_permanent_refusal(again)
    assert (str(again), again.__notes__[0]) == ("401: no such key", "the key of API_KEY")


def test_secrets_stay_where_they_are() -> None:
    key = Secret("sk-0123456789abcdef")
    assert "0123456789abcdef" not in dump_json(as_data(raised(ValueError(f"with {key!s}"))))
