"""What is known of TextArena's ids: how many there are, and which of them can be played here, without importing TextArena."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.wrappers.textarena import TextArenaGame, catalogue, textarena_games, why_not

KEYED = ["Debate-v0", "GuessWho-v0", "ScenarioPlanning-v0", "TwentyQuestions-v0"]


@pytest.fixture
def _installed() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")


def test_all_ids_of_textarena_are_listed() -> None:
    games = textarena_games()
    assert len(games) == 712
    assert [sum(game["variant"] == variant for game in games.values()) for variant in ("default", "raw", "train")] == [238, 237, 237]
    assert len({game["game"] for game in games.values()}) == 96
    assert all(least <= default <= most for default, least, most in (game["players"] for game in games.values()))
    textarena_games().clear()
    assert textarena_games() == games
    assert games["TicTacToe-v0-train"] == {
        **{"id": "TicTacToe-v0-train", "base": "TicTacToe-v0", "game": "TicTacToe", "variant": "train", "shows": "messages and board"},
        **{"brackets": True, "clips": False, "players": (2, 2, 2), "missing": None},
    }


@pytest.mark.usefixtures("_installed")
def test_most_can_be_played_without_anything_else_and_others_say_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    assert sum(why_not(env_id) is None for env_id in textarena_games()) == (651 if sys.version_info >= (3, 12) else 624)
    for env_id in KEYED:
        assert why_not(env_id) == "needs OPENROUTER_API_KEY in the environment: a model on OpenRouter takes part in it"
    monkeypatch.setenv("OPENROUTER_API_KEY", "")
    assert why_not(KEYED[0])
    monkeypatch.setenv("OPENROUTER_API_KEY", "key")
    assert all(why_not(env_id) is None for env_id in KEYED)
    monkeypatch.setattr(catalogue.sys, "version_info", (3, 11, 9))
    assert "needs Python 3.12 or later, this is 3." in (why_not("Chess-v0") or "")
    monkeypatch.setattr(catalogue.sys, "version_info", (3, 12, 0))
    assert why_not("Chess-v0") is None
    assert why_not("ScorableGames-v0-game1") == "needs its data files, which the package does not contain (textarena 0.7.4)"
    with pytest.raises(ConfigurationError, match=r"no environment 'Ches-v0'\. Did you mean `Chess-v0`"):
        why_not("Ches-v0")


def test_without_textarena_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "_is_installed", lambda: False)
    assert why_not("TicTacToe-v0") == "a TextArena game needs an optional dependency: pip install 'vfgym[textarena]'"
    with pytest.raises(MissingExtra, match=r"the TextArena game TicTacToe-v0 needs .*vfgym\[textarena\]"):
        TextArenaGame("TicTacToe-v0")


@pytest.mark.parametrize("asked_for", [0, 1, 16, True, 2.0])
def test_a_game_is_not_for_any_number_of_players(asked_for: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"LiarsDice-v0 is for 2 to 15 players, got num_players={asked_for!r}"):
        catalogue.number_of_players(catalogue.describe("LiarsDice-v0"), asked_for)
    with pytest.raises(ConfigurationError, match="TicTacToe-v0 is for 2 players, got num_players=3"):
        catalogue.number_of_players(catalogue.describe("TicTacToe-v0"), 3)


def test_as_many_play_as_are_asked_for_else_as_many_as_the_game_is_meant_for() -> None:
    market = catalogue.describe("MarketEntryGame-v0")
    assert [catalogue.number_of_players(market, number) for number in (None, 2, 15)] == [4, 2, 15]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    "env_id", [env_id for env_id, game in textarena_games().items() if game["missing"] and game["variant"] == "default"]
)
def test_what_is_listed_as_missing_is_missing(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import textarena

    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    if why_not(env_id) is None:
        TextArenaGame(env_id).reset(0)
        return

    def a_step() -> None:
        env = textarena.make(env_id)
        env.reset(num_players=textarena_games()[env_id]["players"][0], seed=0)
        env.step("[0]")

    with pytest.raises((SyntaxError, ImportError, OSError, TypeError, ValueError, AttributeError)):
        a_step()
