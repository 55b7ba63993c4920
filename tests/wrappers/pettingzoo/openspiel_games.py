"""Games of OpenSpiel that are played at random, for what is written about them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from vfgym.data import OpenSpielPrompt


def named_moves(prompt: OpenSpielPrompt) -> set[str]:
    """Return the moves that a text names."""
    return set(re.findall(r"`([^`]+)`", prompt["rules"]))


def play_at_random(game: Any, rng: np.random.Generator, names: bool, most_moves: int) -> tuple[list[float] | None, set[str]]:
    """Play a game of OpenSpiel, and return what it earned everybody (None where it was not ended) and what its moves were called."""
    state, met = game.new_initial_state(), set()
    for _ in range(most_moves):
        if state.is_terminal():
            return [round(each, 4) for each in state.returns()], met
        if state.is_chance_node():
            outcomes, chances = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(int(rng.choice(outcomes, p=np.array(chances) / sum(chances))))
            continue
        players = range(game.num_players()) if state.is_simultaneous_node() else [state.current_player()]
        legal = {player: state.legal_actions(player) for player in players}
        if names:
            met |= {state.action_to_string(player, action) for player, actions in legal.items() for action in actions}
        chosen = [int(rng.choice(actions)) if actions else 0 for actions in legal.values()]
        if state.is_simultaneous_node():
            state.apply_actions(chosen)
        else:
            state.apply_action(chosen[0])
    return None, met


def contradiction(game: Any, prompt: OpenSpielPrompt, returns: list[float]) -> str:
    """Return how the end of a game contradicts what is written about it; empty where it does not."""
    if "outcome" in prompt:
        expected = [[-1.0, 1.0]] if prompt["outcome"] == "win" else [[-1.0, 1.0], [0.0, 0.0]]
        if sorted(returns) not in expected:
            return f"a game that ends with {prompt['outcome']!r} earned {returns}"
    if "returns" in prompt and not set(returns) <= set(prompt["returns"]):
        return f"{returns} is not among {prompt['returns']}"
    if prompt.get("goal", "").startswith("alike") and len(set(returns)) != 1:
        return f"{returns} is not alike for all"
    if "other loses as much" in prompt.get("goal", "") and abs(sum(returns)) > 1e-6:
        return f"{returns} do not add up to 0"
    return ""
