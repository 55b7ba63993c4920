"""Ordinary answers of reasoning models are read as a person would read them, and nothing is read that they do not say.

The answers in ``answers_of_reasoning_models.json`` were written down before the reader of today was, and it was made for them. Those in
``answers_held_out.json`` were written afterwards, in other styles; the reader was changed for them only where it read falsely.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs

from vfgym.codecs import ActionNotFound, Codec, codec_for


def _named(*names: str) -> Codec:
    return codec_for(gs.Discrete(len(names)), list(names))


GAMES: dict[str, Codec] = {
    "frozenlake": _named("left", "down", "right", "up"),
    "taxi": _named("south", "north", "east", "west", "pickup", "dropoff"),
    "mountaincar": _named("Accelerate to the left", "Don't accelerate", "Accelerate to the right"),
    "lander": _named("do nothing", "fire left orientation engine", "fire main engine", "fire right orientation engine"),
    "blackjack": _named("Stick", "Hit"),
    "minigrid": _named("turn left", "turn right", "go forward", "pick up", "drop", "toggle", "done"),
    "acrobot": _named(*(f"apply {torque} torque to the actuated joint" for torque in (-1, 0, 1))),
    "cartpole": _named("Push cart to the left", "Push cart to the right"),
    "cells": codec_for(gs.Discrete(9)),
    "chess": _named("e2e4", "d2d4", "g1f3", "c2c4", "e7e8q", "e7e8n"),
    "hops": _named("e2 e4", "d2 d4", "a3 b4"),
    "atari": _named("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"),
    "pendulum": codec_for(gs.Box(-2, 2, (1,), np.float32), ["Torque"]),
    "adventure": codec_for(gs.Text(min_length=1, max_length=60, charset="".join(map(chr, range(32, 1000))))),
}
"""The games of the answers."""


def played(codec: Codec, answer: str, *, is_cut_off: bool = False) -> Any:
    """Return what is played as JSON data; None where the model is asked again."""
    try:
        return codec.to_json(codec.decode_cut_off(answer) if is_cut_off else codec.decode(answer))
    except ActionNotFound:
        return None


def differences(name: str) -> tuple[int, list[Any], list[Any]]:
    """Return how many answers of a file a person reads, which of them are asked again, and what is read falsely."""
    rows = json.loads((Path(__file__).parent / "data" / name).read_text(encoding="utf-8"))
    missed, false = [], []
    for row in rows:
        read = played(GAMES[row["game"]], row["answer"], is_cut_off=row.get("cut_off", False))
        if read != row["reads"]:
            (missed if read is None else false).append((row["game"], row["answer"], row["reads"], read, row["why"]))
    return sum(row["reads"] is not None for row in rows), missed, false


@pytest.mark.parametrize(("name", "share"), [("answers_of_reasoning_models.json", 0.95), ("answers_held_out.json", 0.75)])
def test_answers_of_reasoning_models_are_read_as_a_person_reads_them(name: str, share: float) -> None:
    readable, missed, false = differences(name)
    assert false == []
    assert readable - len(missed) >= share * readable, missed


def test_what_is_not_clearly_one_action_is_asked_again() -> None:
    """Attempts to have something read that nobody said: doubts, takings back, alternatives, repetitions, idioms, other people's moves."""
    _, _, false = differences("answers_to_ask_again.json")
    assert false == []
