"""Environment variables that an environment cannot do without."""

from __future__ import annotations

import pickle

import pytest

from verifiers_compat.utils.config_utils import MissingKeyError, ensure_keys


def test_missing_keys_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable counts as missing."""
    monkeypatch.setenv("THERE", "x")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("MISSING", raising=False)
    ensure_keys([])
    ensure_keys(["THERE"])
    with pytest.raises(ValueError, match="export MISSING=") as caught:
        ensure_keys(["MISSING", "THERE", "EMPTY", "MISSING"])
    assert isinstance(caught.value, MissingKeyError)
    assert caught.value.keys == ["MISSING", "EMPTY"]
    assert pickle.loads(pickle.dumps(caught.value)).keys == ["MISSING", "EMPTY"]
    with pytest.raises(TypeError, match=r"\['THERE'\]"):
        ensure_keys("THERE")
