"""What `check_environment` says of the round trips of an environment."""

from __future__ import annotations

from typing import Any

from vfgym.testing import check_environment

WORDS, TEXT, TOOL = (
    "reads each action of its game as it writes it",
    "is its game again when turned back with to_gym, by text",
    "is its game again when turned back with to_gym, by tool call",
)
TABLE, SELF_PLAY, OWN_MOVES, OWN_NUMBERS = (
    "tells and pays what the table does for the same moves",
    "tells and pays the same in self-play",
    "takes the moves that it samples and those that it calls legal",
    "draws from no random numbers but its own",
)
TEXTARENA = "is TextArena's own game again, with to_textarena too"
PETTINGZOO = "is PettingZoo's own game again, with to_pettingzoo too"
SCORE = "pays what the dataset's own scorer gives"
DATASET = "is its dataset again when turned back with to_reasoning_gym"
ROUND_TRIPS = {WORDS, TEXT, TOOL, TABLE, SELF_PLAY, OWN_MOVES, OWN_NUMBERS, TEXTARENA, PETTINGZOO, SCORE, DATASET}


def kept(env: Any) -> dict[str, str]:
    """Return the round trips of an environment that keeps all promises, with what the checks say of them."""
    checks = check_environment(env)
    assert [check for check in checks if not check.passed] == []
    return {check.promise: check.detail for check in checks if check.promise in ROUND_TRIPS}


def broken(env: Any) -> dict[str, str]:
    """Return the promises that do not hold, with what the checks say."""
    return {check.promise: check.detail for check in check_environment(env) if not check.passed}
