"""How an episode ended, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vfgym.agents.human import HumanHelp
from vfgym.endings import Ending, ending_of
from vfgym.play.game import QUIT, Game

_REASONS = {
    "game_over": "The game is over.",
    "game_truncated": "The game was cut off by its own limit, before it was over.",
    "limit_reached": "What an episode may spend is used up.",
    "max_turns_reached": "That was the last turn.",
    "too_many_invalid_moves": "Too many answers in a row were not a move, which ends the game.",
    "timeout_reached": "The time is up.",
    "prompt_too_long": "The conversation has become too long to go on.",
    "max_total_completion_tokens_reached": "You have written as much as you may.",
    "no_tools_called": "You answered without calling a tool: that was your final answer.",
    "has_final_env_response": "The environment has said its last.",
    QUIT: "You left before the end.",
}
"""What each stop condition of the library means to a player."""


def describe_end(game: Game) -> Iterator[str]:
    """Give the lines that say how an episode ended and what came of it."""
    state, info = game.state, game.info
    stop_condition = state["stop_condition"]
    if state["error"] is not None:
        yield f"An error ended the episode: {state['error']}"
    else:
        yield _reason(state)
    rewards = info.get("rewards")
    if rewards and stop_condition != QUIT:
        yield from _result(rewards, info.get("player"), is_hot_seat=game.is_hot_seat)
    yield f"Your reward: {game.episode_return:g}"
    answer = state.get("answer")
    if answer not in (None, "") and stop_condition != QUIT:
        yield f"The right answer: {answer}"
    for name, value in info.get("metrics", {}).items():
        yield f"  {name}: {value:g}"
    yield from _help_taken(game.help)


def _reason(state: Mapping[str, Any]) -> str:
    """Return what ended an episode without an error."""
    stop_condition = state["stop_condition"]
    if ending_of(state) is Ending.TRUNCATED and stop_condition in ("game_over", "truncated"):
        num_turns = len(state["trajectory"])
        return f"Cut off after {num_turns} turn{'s' * (num_turns != 1)}: a limit was reached before it was over."
    return _REASONS.get(stop_condition, f"The episode is over: {stop_condition}.")


def _help_taken(help_taken: HumanHelp) -> Iterator[str]:
    """Give the line that says what help the player had; none where there was none."""
    counted = ((help_taken["hints"], "hint"), (help_taken["undone"], "move taken back"), (help_taken["refused"], "answer refused"))
    said = [f"{count} {name if count == 1 else _PLURALS[name]}" for count, name in counted if count]
    if said:
        yield f"With {', '.join(said)}"


_PLURALS = {"hint": "hints", "move taken back": "moves taken back", "answer refused": "answers refused"}


def _result(rewards: Mapping[Any, float], player: Any, *, is_hot_seat: bool) -> Iterator[str]:
    """Give who has won, where several played."""
    if len(rewards) > 1:
        best = max(rewards.values())
        winners = [each for each, reward in rewards.items() if reward == best]
        if len(winners) == len(rewards):
            yield "Nobody has won: all players earned the same."
        elif is_hot_seat:
            yield f"{_listed(winners)} won."
        elif player in winners:
            yield "You won." if len(winners) == 1 else f"You won, together with {_listed([each for each in winners if each != player])}."
        else:
            yield f"You lost: {_listed(winners)} won."
        yield "Rewards: " + ", ".join(f"{each}{' (you)' if each == player else ''} {reward:g}" for each, reward in rewards.items())


def _listed(players: Sequence[Any]) -> str:
    return " and ".join(player_name(player) for player in players)


def player_name(player: Any) -> str:
    """Return what a player is called: ``player 1`` where the game has numbers for names."""
    return f"player {player}" if isinstance(player, int) else str(player)
