"""The agent's JSON is that of Python's package: what either writes the other reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.sandboxes.inside import wire

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(VALUES)
def test_messages_are_read_as_they_were_written(value: Any) -> None:
    assert wire.read(json.dumps(value).encode()) == value
    assert json.loads(wire.write(value)) == value


@pytest.mark.parametrize("data", [b"", b"{", b"[1", b"nonsense", b"\xff", b"[" * 100_000, b'"\\', b'{"a"}'])
def test_what_can_not_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a message that can't be read"):
        wire.read(data)


def test_what_is_no_json_is_not_sent() -> None:
    with pytest.raises(TypeError):
        wire.write({"a": object()})
