"""The place where the model server stood before keeps working."""

from __future__ import annotations

import importlib
import sys

import pytest

import vfgym.model_server


def test_the_former_place_gives_the_same_names_and_tells_the_new_one() -> None:
    sys.modules.pop("vfgym.testing.model_server", None)
    with pytest.warns(DeprecationWarning, match=r"is now vfgym\.model_server"):
        former = importlib.import_module("vfgym.testing.model_server")
    assert {name: getattr(former, name) for name in vfgym.model_server.__all__} == {
        name: getattr(vfgym.model_server, name) for name in vfgym.model_server.__all__
    }
