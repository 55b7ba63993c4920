"""Which games TextArena has, and which of them can be played here. Neither question imports TextArena."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import sys

from vfgym.data import TextArenaEnvironment, textarena_environments
from vfgym.errors import ConfigurationError, MissingExtra, did_you_mean


def textarena_games() -> dict[str, TextArenaEnvironment]:
    """Return what is known of all environments of TextArena, by id.

    >>> textarena_games()["TicTacToe-v0"]["players"]
    (2, 2, 2)
    """
    return dict(textarena_environments())


def why_not(env_id: str) -> str | None:
    """Return why an environment of TextArena cannot be played with this Python and installation, or None if it can.

    >>> why_not("Klondike-v0")
    'needs a repair: its module is a SyntaxError (textarena 0.7.4)'

    Raises:
        ConfigurationError: If TextArena has no environment of this id.
    """
    missing = describe(env_id)["missing"]
    if not _is_installed():
        return str(MissingExtra("textarena", "a TextArena game"))
    if missing is None:
        return None
    if missing.startswith("Python "):
        needed = tuple(map(int, missing.removeprefix("Python ").split(".")))
        return None if sys.version_info >= needed else f"needs {missing} or later, this is {platform.python_version()}"
    if missing == "OPENROUTER_API_KEY":
        return None if os.environ.get(missing) else f"needs {missing} in the environment: a model on OpenRouter takes part in it"
    return f"needs {missing} (textarena {_version()})"


def describe(env_id: str) -> TextArenaEnvironment:
    """Return what is known of one environment.

    Raises:
        ConfigurationError: If TextArena has none of this id.
    """
    known = textarena_environments()
    if env_id not in known:
        raise ConfigurationError(f"TextArena has no environment {env_id!r}.{did_you_mean(str(env_id), known)}")
    return known[env_id]


def playable(env_id: str) -> TextArenaEnvironment:
    """Return what is known of an environment that can be played here.

    Raises:
        MissingExtra: If TextArena is not installed.
        ConfigurationError: If TextArena has none of this id, or it cannot be played here. The text says why.
    """
    environment = describe(env_id)
    if not _is_installed():
        raise MissingExtra("textarena", f"the TextArena game {env_id}")
    reason = why_not(env_id)
    if reason is not None:
        raise ConfigurationError(f"{env_id} cannot be played here: it {reason}")
    return environment


def number_of_players(environment: TextArenaEnvironment, asked_for: int | None) -> int:
    """Return how many play, given what was asked for.

    Raises:
        ConfigurationError: If the game is not for so many. (Some games would loop for ever.)
    """
    default, least, most = environment["players"]
    if asked_for is None:
        return default
    if isinstance(asked_for, bool) or not isinstance(asked_for, int) or not least <= asked_for <= most:
        possible = f"{least} players" if least == most else f"{least} to {most} players"
        raise ConfigurationError(f"{environment['id']} is for {possible}, got num_players={asked_for!r}")
    return asked_for


@functools.cache
def _version() -> str:
    return importlib.metadata.version("textarena")


def _is_installed() -> bool:
    try:
        _version()
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
