"""A word that only one of a game's actions has plays it inside a mark, in every registered game whose actions have names."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import pytest

from vfgym.codecs import ActionNotFound, Codec
from vfgym.data import answer_words, gymnasium_environments
from vfgym.registration import register_all

for module in ("Box2D", "mujoco", "pettingzoo"):
    pytest.importorskip(module, reason=f"needs {module}")
register_all()


NAMED = [
    *(f"gymnasium/{game['id']}" for game in gymnasium_environments().values() if game["action_space"] == "Discrete"),
    *(f"pettingzoo/{game}" for game in ("go-v5", "hanabi-v5", "leduc_holdem-v4", "rps-v2", "texas_holdem-v4", "texas_holdem_no_limit-v6")),
]
"""The registered games whose actions are numbered and have names. (PettingZoo's others are played by numbers or chess moves.)"""


def codec_of(env_id: str) -> Codec:
    env: Any = gym.make(env_id).unwrapped
    if env_id.startswith("gymnasium/"):
        return env.codec  # type: ignore[no-any-return]
    table = env.open_table()
    table.reset(0, None)
    codec: Codec = table.codecs[table.turn]
    table.close()
    return codec


def words_of(name: str) -> set[str]:
    """Return the words of a name that tell it from others; numbers are indices."""
    words = re.findall(r"[^\W_]+", name.casefold().replace("'", ""))
    return {word for word in words if not any(character.isdigit() for character in word)} - answer_words().left_out


@pytest.mark.parametrize("env_id", NAMED)
def test_a_word_plays_the_only_action_that_has_it_and_asks_where_several_have_it(env_id: str) -> None:
    codec = codec_of(env_id)
    having: dict[str, list[str]] = {}
    for name in codec.names:
        for word in words_of(name):
            having.setdefault(word, []).append(name)
    whole = {name.casefold(): name for name in codec.names}
    for word, names in having.items():
        expected = whole.get(word) or (names[0] if len(names) == 1 else None)
        try:
            assert codec.to_json(codec.decode(f"I think.\n<action>{word}</action>")) == expected, word
        except ActionNotFound:
            assert expected is None, word
