"""A person plays an environment in the terminal.

`Session` is the loop: it shows what is new, reads a line, and does what the line says. Who does the rest:

* `lines` tells commands of the player (``help``, ``/undo``, ...) from answers to the environment;
* `game` holds the episode: it answers, goes back, and says whether a line was a move at all;
* `forms` asks for the arguments of a tool, one after the other;
* `hints` knows a right answer or a legal move, where the environment does;
* `screen` shows conversations, boards and images; `ending` says in words how an episode ended;
* `saving` writes the one row, `recording` the GIF.
"""

from vfgym.play.game import Game
from vfgym.play.recording import Recording
from vfgym.play.saving import SavedGame
from vfgym.play.screen import Screen
from vfgym.play.session import Session

__all__ = ["Game", "Recording", "SavedGame", "Screen", "Session"]
