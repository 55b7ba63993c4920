"""The place where the model server stood before keeps working."""

from __future__ import annotations

import importlib

import pytest

import vfgym.model_server


def test_the_former_place_gives_the_same_names_and_tells_the_new_one() -> None:
    former = importlib.import_module("vfgym.testing.model_server")
    with pytest.warns(DeprecationWarning, match=r"is now vfgym\.model_server"):
        from vfgym.testing.model_server import ModelServer
    assert ModelServer is vfgym.model_server.ModelServer
    with pytest.warns(DeprecationWarning, match="model_server"):
        assert all(getattr(former, name) is getattr(vfgym.model_server, name) for name in vfgym.model_server.__all__)
    assert not hasattr(former, "anything else")
