"""Ids that packages register as they are imported: their package is imported, or what installs it is said."""

from __future__ import annotations

import pytest

from vfgym.errors import MissingExtra
from vfgym.wrappers import foreign_ids
from vfgym.wrappers.to_chat import import_id


@pytest.mark.parametrize(
    ("env_id", "extra"), [("ALE/Pong-v5", "atari"), ("ale/Nothing-v0", "atari"), ("MiniGrid-Empty-5x5-v0", "minigrid")]
)
def test_an_id_whose_package_is_missing_names_the_extra(env_id: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_ids, "is_registered", lambda env_id: False)
    monkeypatch.setattr(foreign_ids.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(foreign_ids.gym, "registry", {})
    with pytest.raises(MissingExtra, match=rf"pip install 'vfgym\[{extra}\]'"):
        import_id(env_id)


@pytest.mark.parametrize("env_id", ["gymnasium/Nope-v0", "minihack/x-v0", "cartpol", "vfgym/x", "", "/", "v0"])
def test_other_ids_are_left_to_gymnasium(env_id: str) -> None:
    assert import_id(env_id) == env_id
