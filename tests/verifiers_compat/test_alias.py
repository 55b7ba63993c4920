"""``verifiers`` as a name of this package: the same modules, its version, and taking it back."""

from __future__ import annotations

import importlib
import importlib.metadata as metadata
import importlib.resources
import importlib.util
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat
import verifiers_compat.alias
import vfgym.errors
from verifiers_compat.alias import API_VERSION, install, uninstall
from verifiers_compat.envs.multiturn_env import MultiTurnEnv
from verifiers_compat.utils import data_utils


def aliases() -> dict[str, Any]:
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "verifiers"}


def num_finders() -> int:
    return sum(type(finder).__name__ == "AliasFinder" for finder in sys.meta_path)


@pytest.fixture(autouse=True)
def free_name() -> Iterator[None]:
    """Nothing has the name before a test, and nothing after it."""
    assert (aliases(), num_finders()) == ({}, 0)
    yield
    uninstall()
    for name in aliases():  # of another `verifiers`
        del sys.modules[name]


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Another `verifiers`, as if it were installed; it is not imported."""
    package = tmp_path / "verifiers"
    package.mkdir()
    (package / "__init__.py").write_text("IS_FAKE = True\n")
    (package / "own.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)


def test_both_names_give_the_same_modules() -> None:
    """Whichever is imported first, at any depth, and as an attribute, too."""
    install()
    alias = importlib.import_module("verifiers.utils.data_utils")
    assert alias is data_utils is sys.modules["verifiers_compat.utils.data_utils"]
    import verifiers as vf
    from verifiers import types
    from verifiers.envs.multiturn_env import MultiTurnEnv as Aliased

    assert vf is verifiers_compat
    assert vf.MultiTurnEnv is MultiTurnEnv is Aliased
    assert (types.State is vf.State, vf.errors is importlib.import_module("verifiers.errors")) == (True, True)


def test_modules_have_their_own_specs_and_are_reloaded() -> None:
    install()
    assert importlib.util.find_spec("verifiers").submodule_search_locations
    found = importlib.util.find_spec("verifiers.parsers.parser")
    assert (found.name, found.origin.endswith("parser.py"), found.has_location) == ("verifiers.parsers.parser", True, True)
    assert found.submodule_search_locations is None
    parser = importlib.import_module("verifiers.parsers.parser")
    assert parser.__spec__.name == parser.__name__ == "verifiers_compat.parsers.parser"
    assert importlib.reload(parser) is parser is importlib.import_module("verifiers_compat.parsers.parser")
    assert importlib.resources.files("verifiers").joinpath("alias.py").is_file()
    assert importlib.util.find_spec("verifiersx") is None


def test_a_module_that_is_not_there_is_not_found_under_its_own_name() -> None:
    install()
    assert importlib.util.find_spec("verifiers.no_such_module") is None
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("verifiers.no_such_module")
    assert caught.value.name == "verifiers.no_such_module"


def test_there_is_one_finder_even_when_the_module_was_reloaded() -> None:
    install()
    importlib.reload(verifiers_compat.alias).install()
    assert num_finders() == 1
    verifiers_compat.alias.uninstall()
    assert num_finders() == 0


def test_classes_are_pickled_under_either_name() -> None:
    """What was pickled with the alias loads without it, and a pickle that names ``verifiers`` loads with it."""
    install()
    import verifiers

    pickled = pickle.dumps(verifiers.UserMessage("hi"))
    assert pickle.loads(b"cverifiers.errors\nToolError\n.") is vfgym.errors.ToolError
    uninstall()
    assert pickle.loads(pickled)["content"] == "hi"


def test_the_installed_version_is_that_of_the_documented_api() -> None:
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version("verifiers")
    install()
    assert metadata.version("verifiers") == metadata.version("Verifiers") == API_VERSION == verifiers_compat.__version__
    assert metadata.distribution("verifiers").metadata["Name"] == "verifiers"
    assert "verifiers" in {distribution.metadata["Name"] for distribution in metadata.distributions()}
    assert metadata.version("vfgym") in metadata.distribution("verifiers").metadata["Summary"]
    assert list(metadata.distributions(name="no-such-distribution")) == []
    uninstall()
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version("verifiers")


@pytest.mark.usefixtures("another")
def test_uninstall_gives_the_name_back() -> None:
    """Both may be called twice; afterwards the name finds what is installed under it, which a further call leaves alone."""
    install()
    install()
    import verifiers

    importlib.import_module("verifiers.errors")
    assert not hasattr(verifiers, "IS_FAKE")
    assert num_finders() == 1
    uninstall()
    uninstall()
    assert aliases() == {}
    theirs = importlib.import_module("verifiers")
    assert theirs.IS_FAKE
    uninstall()
    assert sys.modules["verifiers"] is theirs


@pytest.mark.usefixtures("another")
def test_another_verifiers_that_is_imported_already_is_left_alone_unless_the_caller_insists() -> None:
    theirs = importlib.import_module("verifiers")
    importlib.import_module("verifiers.own")
    with pytest.raises(ValueError, match=r"install\(force=True\)") as caught:
        install()
    assert str(theirs.__file__) in str(caught.value)
    assert (sys.modules["verifiers"], num_finders()) == (theirs, 0)
    install(force=True)
    assert importlib.import_module("verifiers") is verifiers_compat
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("verifiers.own")
    assert theirs.IS_FAKE
