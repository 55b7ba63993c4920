"""What is known of other packages' environments without importing them: by id, with what holds for arguments, and words."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.data import (
    answer_words,
    english_words,
    gymnasium_environments,
    pettingzoo_environments,
    reasoning_gym_datasets,
    reward_bounds,
    textarena_environments,
)


def test_environments_are_found_by_their_names() -> None:
    for known, key in ((gymnasium_environments(), "id"), (pettingzoo_environments(), "id"), (textarena_environments(), "id")):
        assert [entry[key] for entry in known.values()] == list(known) != []  # type: ignore[index, attr-defined]
    assert [dataset["name"] for dataset in reasoning_gym_datasets().values()] == list(reasoning_gym_datasets()) != []


def test_an_environment_of_textarena_has_an_id_for_each_of_its_wrappers() -> None:
    known = textarena_environments()
    assert known["GuessWho-v0-train"] == {
        "id": "GuessWho-v0-train",
        "base": "GuessWho-v0",
        "game": "GuessWho",
        "variant": "train",
        "shows": "messages",
        "brackets": False,
        "clips": False,
        "players": (1, 1, 1),
        "missing": "OPENROUTER_API_KEY",
    }
    assert [known[f"SecretMafia-v0{suffix}"]["variant"] for suffix in ("", "-train", "-raw")] == ["default", "train", "raw"]
    mafia, tiny = known["SecretMafia-v0-train"], known["2048-v0-ultra-easy"]
    assert [(each["clips"], each["brackets"], each["players"], each["missing"]) for each in (mafia, tiny)] == [
        (True, False, (6, 6, 15), None),
        (False, True, (1, 1, 1), None),
    ]
    first = list(known)[:4]
    assert first == ["2048-v0-ultra-easy", "2048-v0-ultra-easy-train", "2048-v0-ultra-easy-raw", "2048-v0-mega-easy"]


@pytest.mark.parametrize(
    ("library", "game", "arguments", "bounds"),
    [
        ("gymnasium", "Blackjack-v1", (), (-1, 1)),
        ("gymnasium", "Blackjack-v1", ["sab"], (-1, 1)),
        ("gymnasium", "Blackjack-v1", ["sab", "natural"], (-1, 1.5)),
        ("gymnasium", "Blackjack-v1", ["natural", "decks"], None),
        ("gymnasium", "FrozenLake-v1", ["reward_schedule"], None),
        ("gymnasium", "CartPole-v1", ["sutton_barto_reward"], None),
        ("gymnasium", "TicTacToe", (), None),
        ("pettingzoo", "classic/go_v5", ["komi"], (-1, 1)),
        ("pettingzoo", "classic/another_v0", (), None),
        ("textarena", "TicTacToe", ["anything"], (-1.0, 1.0)),
        ("textarena", "UsedCar", (), None),
    ],
)
def test_bounds_hold_for_the_arguments_that_leave_them_as_they_are(library: str, game: str, arguments: Any, bounds: Any) -> None:
    known = reward_bounds(library, game, arguments)
    assert (known and (known["episode"], known["highest"])) == bounds
    assert reward_bounds("gymnasium", "Blackjack-v1")["highest"] == 1, "what an argument changes is changed for it only"  # type: ignore[index]


def test_words_by_which_answers_are_read() -> None:
    words = answer_words()
    assert words.left_out >= {"the", "an", "go", "my"}
    assert words.left_out_in_marks - words.left_out >= {"position", "index"}
    assert words.left_out < words.left_out_in_marks
    assert {"action", "move"} <= words.labels
    assert {"my", "final"} <= words.beside_labels
    assert words.labels.isdisjoint(words.beside_labels)
    for several, some in (
        (words.units, {"m/s", "newton meters"}),
        (words.reasons, {"because", "so that", "in order to", "weil"}),
        (words.purposes, {"to"}),
        (words.corrections, {"wait", "no wait"}),
        (words.not_corrections, {"or", "then"}),
        (words.said_of_others, {"for example", "last time"}),
    ):
        assert some <= set(several)
    assert not [
        word for word in (*words.negations, *words.turns, *words.reasons, *words.corrections) if "_" in word or word != word.strip()
    ]


def test_common_english_words_are_nouns_and_others() -> None:
    words = english_words()
    assert list(words) == ["nouns", "others"]
    assert "ace" in words["nouns"]
    assert all(3 <= len(word) <= 8 and word.isalpha() and word.islower() for several in words.values() for word in several)
    assert words["nouns"].isdisjoint(words["others"])
    assert words["others"]
