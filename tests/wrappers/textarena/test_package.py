"""TextArena in somebody else's process: no network, no output, and the random numbers are left alone."""

from __future__ import annotations

import importlib
import random
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from vfgym.errors import MissingExtra
from vfgym.wrappers.textarena import package
from vfgym.wrappers.textarena.package import Kinds, _tame, _without_nltk, kinds, load, new_game, textarena
from vfgym.wrappers.textarena.table_random import NUMPY, RANDOM
from vfgym.wrappers.textarena.words import NLTK_NAMES, Dictionary

pytest.importorskip("textarena", reason="needs the extra textarena")


def test_the_kinds_are_those_of_textarena() -> None:
    types = textarena().ObservationType
    assert kinds() == Kinds(types.PROMPT, types.PLAYER_ACTION, types.GAME_ADMIN, types.GAME_BOARD)


def test_a_game_is_made_without_wrappers_and_with_options_over_those_of_its_id() -> None:
    assert type(new_game("Nim-v0", {})) is load("Nim-v0") is load("Nim-v0-train")
    assert new_game("TowerOfHanoi-v0-hard", {}).num_disks > new_game("TowerOfHanoi-v0-hard", {"num_disks": 3}).num_disks == 3


def test_modules_draw_from_the_table_and_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for env_id in ("Nim-v0", "Hangman-v0", "Bandit-v0"):
        names = vars(sys.modules[load(env_id).__module__])
        assert (names.get("random", RANDOM), names.get("np", NUMPY)) == (RANDOM, NUMPY)
        names["print"]("loud")
    assert capsys.readouterr().out == ""


def test_only_what_a_module_knows_by_its_own_name_is_replaced() -> None:
    game, other = ModuleType("textarena.envs.Made.env"), ModuleType("textarena.core")
    for module in (game, other):
        vars(module).update(random=random, np=np, numpy=np, EnglishDictionary=object)
        _tame(module)
        assert (module.random, module.np, module.numpy) == (RANDOM, NUMPY, NUMPY)
    assert game.EnglishDictionary is Dictionary
    assert other.EnglishDictionary is object
    assert "print" not in vars(other)
    rendered = ModuleType("textarena.envs.Made.renderer")
    vars(rendered).update(EnglishDictionary=object, words="a list", pos_tag=len)
    _tame(rendered)
    assert (rendered.EnglishDictionary, rendered.words, rendered.pos_tag) == (object, "a list", len), "without nltk, names are its own"
    assert rendered.print("loud") == []
    named = ModuleType("textarena.envs.Named.env")
    vars(named).update(random="a word", nltk=object(), words=object())
    _tame(named)
    assert named.words is NLTK_NAMES["words"]
    assert not {"pos_tag", "en_uk_dict"} & vars(named).keys()
    assert named.random == "a word"
    assert named.nltk.download("words") is True


@pytest.mark.parametrize("is_loaded", [True, False])
def test_nltk_is_what_it_was_after_an_import(is_loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the import raises."""
    real = SimpleNamespace()
    for name in ("nltk", "nltk.corpus"):
        monkeypatch.setitem(sys.modules, name, real)  # type: ignore[arg-type]
        if not is_loaded:
            monkeypatch.delitem(sys.modules, name)

    def import_and_fail() -> None:
        with _without_nltk():
            assert importlib.import_module("nltk").corpus.words.words() == []
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        import_and_fail()
    assert [sys.modules.get(name) for name in ("nltk", "nltk.corpus")] == [real if is_loaded else None] * 2


def test_an_import_leaves_the_random_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(name: str) -> ModuleType:
        random.random()
        return ModuleType(name)

    monkeypatch.setattr(package.importlib, "import_module", draw)
    before = random.getstate()
    package._import_quietly("textarena.made_for_a_test")
    assert random.getstate() == before


@pytest.mark.parametrize(("missing", "expected"), [("textarena", MissingExtra), ("openai", ModuleNotFoundError)])
def test_what_is_missing_is_named(missing: str, expected: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that TextArena itself misses is not taken for TextArena."""

    def fail(name: str) -> ModuleType:
        raise ModuleNotFoundError(f"no module {missing}", name=missing)

    monkeypatch.setattr(package, "_import_quietly", fail)
    with pytest.raises(expected) as caught:
        textarena.__wrapped__()
    assert type(caught.value) is expected
