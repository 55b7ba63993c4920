"""Errors as chains and as data, and back."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.utils.error_utils import (
    ErrorChain,
    error_info,
    error_info_to_exception,
    error_type_name,
    get_error_chain,
    get_vf_error_chain,
)
from vfgym.errors import Error, MissingExtra, SandboxError, ToolCallError, ToolError


def _raised() -> ToolError:
    try:
        try:
            raise KeyError("k")
        except KeyError as error:
            raise SandboxError("s") from error
    except SandboxError as error:
        outer = ToolError("t")
        outer.__cause__ = error
        return outer


def test_chains_follow_the_causes_and_become_data_and_errors_again() -> None:
    error = _raised()
    chain = ErrorChain(error)
    assert (str(chain), repr(chain)) == ("ToolError -> SandboxError -> KeyError", "ToolError('t') -> SandboxError('s') -> KeyError('k')")
    assert SandboxError in chain
    assert ToolCallError not in chain
    assert [type(link) for link in get_vf_error_chain(error)] == [ToolError, SandboxError]
    assert get_error_chain(error, KeyError) == get_error_chain(error)[2:]
    assert get_error_chain(None) == []
    assert ErrorChain(_raised()) == chain
    assert len({ErrorChain(_raised()), chain}) == 1
    error = ToolError("t")
    error.__cause__ = SandboxError("s")
    error.__cause__.__cause__ = error
    assert str(ErrorChain(error)) == "ToolError -> SandboxError"
    info = error_info(_raised())
    assert info["error_chain_str"] == "ToolError -> SandboxError -> KeyError"
    back = error_info_to_exception(info)
    assert type(back) is ToolError
    assert str(back) == info["error_chain_repr"]
    assert error_type_name(None) is None


@pytest.mark.parametrize(
    ("error", "types", "kind"),
    [
        ("KeyError('k')", None, KeyError),
        ("SomethingElse('x')", None, Error),
        ({"error": "ToolError"}, None, ToolError),
        ({"error": "ToolError"}, [SandboxError], Error),
        ({"error": "Mine"}, {"Mine": LookupError}, LookupError),
        (MissingExtra.__name__, None, Error),
    ],
)
def test_the_type_is_found_by_its_name(error: Any, types: Any, kind: type[BaseException]) -> None:
    """One that is not known, or cannot be made of a text, is an `Error`."""
    assert type(error_info_to_exception(error, types)) is kind


@pytest.mark.parametrize("error", [_raised(), error_info(_raised()), "ToolError -> KeyError", "ToolError('t') -> KeyError('k')"])
def test_the_type_name_of_any_form(error: Any) -> None:
    assert error_type_name(error) == "ToolError"
