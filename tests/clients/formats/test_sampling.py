"""Sampling arguments for the APIs that name them differently from chat completions."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.clients.formats.sampling import check_sampling_args, create_arguments
from vfgym.errors import ConfigurationError


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ({}, {})),
        ({"n": 1, "stream": False, "temperature": 0}, ({"temperature": 0}, {})),
        ({"n": None, "stream": None, "max_tokens": 3, "timeout": 1}, ({"max_completion_tokens": 3}, {"timeout": 1})),
    ],
)
def test_one_whole_answer_is_asked_for(asked: dict[str, Any], expected: Any) -> None:
    assert check_sampling_args(asked, "The API") == expected


@pytest.mark.parametrize(
    ("wrong", "says"), [({"n": 2}, "The API gives one answer.*n=2"), ({"n": 0}, "n=0"), ({"stream": True}, "stream=True")]
)
def test_several_answers_and_streams_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        check_sampling_args(wrong, "The API")


class Resource:
    def create(self, model: str, stop: Any = None, extra_body: Any = None) -> None: ...


def any_keywords(**kwargs: Any) -> None: ...


@pytest.mark.parametrize(
    ("create", "options", "kwargs", "expected"),
    [
        (Resource().create, {}, None, {"stop": 0, "extra_body": {"top_k": 1}}),
        (Resource().create, {"extra_body": {"top_k": 2, "x": 3}}, None, {"stop": 0, "extra_body": {"top_k": 2, "x": 3}}),
        (Resource().create, {"extra_body": None, "timeout": 0}, {}, {"stop": 0, "extra_body": {"top_k": 1}, "timeout": 0}),
        (any_keywords, {}, None, {"stop": 0, "top_k": 1}),
        (any_keywords, {"extra_query": {"q": 1}, "extra_headers": {"A": "1", "B": "1"}}, {"extra_headers": {"B": "2"}},
         {"stop": 0, "top_k": 1, "extra_query": {"q": 1}, "extra_headers": {"A": "1", "B": "2"}}),
        (any_keywords, {"extra_headers": {}}, {"extra_headers": None}, {"stop": 0, "top_k": 1}),
    ],
)  # fmt: skip
def test_what_an_sdk_does_not_take_goes_into_the_body(create: Any, options: dict[str, Any], kwargs: Any, expected: dict[str, Any]) -> None:
    assert create_arguments(create, {"stop": 0, "top_k": 1}, options, kwargs) == expected
