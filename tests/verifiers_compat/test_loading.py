"""Names that modules offer without importing what is behind them, and names that say why they are not offered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from verifiers_compat.loading import create_getattr
from verifiers_compat.not_offered import REASONS


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module that offers two names of `heavy`, and one of `broken`."""
    (tmp_path / "heavy_of_test.py").write_text("first, second, imports = [1], [2], []\n")
    (tmp_path / "broken_of_test.py").write_text("import no_such_module_of_test\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = ModuleType("light_of_test")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    made.__getattr__ = create_getattr(made.__name__, {"heavy_of_test": ["first", "second"], "broken_of_test": ["third"]})  # type: ignore[method-assign]
    yield made
    sys.modules.pop("heavy_of_test", None)


def test_a_name_is_imported_when_it_is_first_asked_for_and_kept(module: ModuleType) -> None:
    assert "heavy_of_test" not in sys.modules
    second = module.second
    assert (second, "second" in vars(module), "first" in vars(module)) == ([2], True, False)
    del sys.modules["heavy_of_test"]
    assert module.second is second
    assert module.first == [1]
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_test"):
        module.third  # noqa: B018


@pytest.mark.parametrize("name", ["imports", "fourth"])
def test_what_a_module_does_not_offer_is_an_attribute_error(module: ModuleType, name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'light_of_test' has no attribute '{name}'") as caught:
        getattr(module, name)
    assert caught.value.name == name
    assert not hasattr(module, name)


@pytest.mark.parametrize(
    ("module", "name", "documented"),
    [
        ("verifiers_compat", "BrowserEnv", "verifiers.BrowserEnv"),
        ("verifiers_compat.types", "CustomBaseModel", "verifiers.types.CustomBaseModel"),
        ("verifiers_compat.envs.integrations", "browser_env", "verifiers.envs.integrations.browser_env"),
    ],
)
def test_what_is_documented_and_not_offered_says_why(module: str, name: str, documented: str) -> None:
    find: Callable[[str], Any] = create_getattr(module)
    with pytest.raises(ImportError) as caught:
        find(name)
    assert str(caught.value) == f"{documented} is not offered: {REASONS[documented.partition('.')[2]]}"
    assert caught.value.name == module
    with pytest.raises(AttributeError):
        find("NoSuchEnv")
