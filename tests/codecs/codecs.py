"""Codecs of small spaces of every kind, for tests of how answers are read."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from gymnasium import spaces as gs

from vfgym.codecs import codec_for

MOVES = codec_for(gs.Discrete(4), ["left", "down", "right", "up"])
PHRASES = codec_for(gs.Discrete(3), ["turn left", "left", "Go home!"])
CHESS = codec_for(gs.Discrete(3), ["bxc3", "Bxc3", "e4"])
SHIFTED = codec_for(gs.Discrete(3, start=-1))
WIDE = codec_for(gs.Discrete(10**6))
DRIVE = codec_for(gs.Box(np.array([-1, 0], np.float32), np.array([1, 1], np.float32)))
LABELLED = codec_for(DRIVE.space, ["steering", "gas"])
TORQUE = codec_for(gs.Box(-2, 2, (1,)))
COUNTS = codec_for(gs.Box(-5, 5, (2,), np.int32))
GRID = codec_for(gs.Box(0, 3, (2, 2), np.int8))
FLAGS = codec_for(gs.Box(0, 1, (2,), np.bool_))
BITS = codec_for(gs.MultiBinary(3))
PAD = codec_for(gs.MultiDiscrete([3, 2]), [["noop", "up", "down"], ["off", "on"]])
SAY = codec_for(gs.Text(20, charset="abcdefghijklmnopqrstuvwxyz '"))
TYPED = codec_for(gs.Text(100, charset=string.printable))
ROBOT = codec_for(
    gs.Dict(move=gs.Discrete(3), thrust=gs.Box(-1, 1, (2,)), say=gs.Text(9, charset="abc ")), {"move": ["left", "stay", "right"]}
)
PAIR = codec_for(gs.Tuple((gs.Discrete(2), gs.Tuple((gs.Box(-1, 1, (2,)), gs.Discrete(3))))))
LEVERS = codec_for(gs.Discrete(3), ["apply -1 torque", "apply 0 torque", "apply 1 torque"])
FORCES = codec_for(gs.Discrete(3), ["-1.0", "0.0", "1.0"])
CELLS = codec_for(gs.Discrete(5))
GAS = codec_for(gs.Discrete(3), ["Accelerate to the left", "Don't accelerate", "Accelerate to the right"])
TAXI = codec_for(gs.Discrete(4), ["Move south (down)", "Move north (up)", "Fire (left)", "Fire (right)"])
KNOBS = codec_for(gs.MultiDiscrete([3, 3]))
BOTH = codec_for(gs.Dict(action=gs.Discrete(3), gear=gs.Discrete(2)))
LIST = codec_for(gs.Sequence(gs.Discrete(3)))
EITHER = codec_for(gs.OneOf([gs.Discrete(2), gs.Box(0, 1, (2,)), gs.Discrete(5)]))
NET = codec_for(gs.Graph(gs.Discrete(2), gs.Box(0, 1, ())))


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def moves(number: int) -> Any:
    return np.int64(number)
