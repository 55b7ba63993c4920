"""`TextArenaEnv` with the rollout API."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from verifiers_compat.envs.awaitables import awaitable_stop
from verifiers_compat.envs.seeded_game import SeededGameEnv
from vfgym.aio.steps import Steps, eager
from vfgym.calls import is_awaitable
from vfgym.codecs import ActionNotFound
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import stop
from vfgym.messages import Message
from vfgym.parsers import Parser, XMLParser
from vfgym.rubrics import Rubric
from vfgym.state import State
from vfgym.tasks import Row
from vfgym.wrappers.games.multiplayer import SELF
from vfgym.wrappers.games.turns import Turn, game_reward
from vfgym.wrappers.textarena import env


class TextArenaEnv(SeededGameEnv, env.TextArenaEnv):
    """A game of TextArena whose moves stand in tags, as the rollout API documents it; any game, opponents included.

    A task is a seed. Its ``question`` is what the game shows first, its ``answer`` the secret word where the game has one (Wordle), else
    the seed. A row that has an answer only is played with this secret word, or this seed. The end of the game is the
    ``final_env_response``.

    What `parser` finds in a player's message is its move, whoever plays: the model, opponents (who are shown the system prompt, too), or
    the agents of `vfgym.to_pettingzoo`. A message in which it finds nothing is an invalid one: the game does not get it, and the player is
    told so and asked again, up to ``max_invalid_moves`` times in a row.

    >>> env = TextArenaEnv("TicTacToe-v0", num_train_examples=10)
    >>> conversation, info = env.reset(seed=3)
    >>> env.step("<think>The middle is best.</think><guess>[4]</guess>").terminated
    False
    """

    def __init__(
        self,
        game: str = "Wordle-v0",
        num_train_examples: int = 1000,
        num_eval_examples: int = 0,
        system_prompt: str | None = None,
        parser: Parser | None = None,
        rubric: Rubric | None = None,
        feedback_fn: Callable[[str], str] = str,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            game: TextArena's id.
            num_train_examples: Number of training tasks.
            num_eval_examples: Number of evaluation tasks; where it is 0, evaluation uses the training tasks.
            system_prompt: Put before what the game shows first. Without it, the form of an answer, where `parser` has one: the game
                itself says nothing of tags. ``""`` for none.
            parser: Finds the move in the model's message; by default what stands in ``<guess>`` tags.
            rubric: Scores episodes; the default gives the game's own reward.
            feedback_fn: Makes what the model is shown of what the game tells it after a move; the same text by default. What it is told of
                a message without a move is not the game's, and stays as it is.
            seed: Seed of the first task.
            **kwargs: Passed to `vfgym.wrappers.textarena.env.TextArenaEnv` (``num_players``, ``opponents``, ``game_options``, ...).

        Raises:
            MissingExtra: If textarena is not installed.
            ConfigurationError: If an argument does not fit, or the game cannot run here.
        """
        self._refuse(kwargs)
        if kwargs.get("opponents") == SELF:
            raise ConfigurationError(
                f"{type(self).__name__} plays one seat: for self-play, give as_environment() a vfgym.wrappers.textarena.env.TextArenaEnv"
            )
        parser = XMLParser(["think", "guess"], answer_field="guess") if parser is None else parser
        if system_prompt is None and kwargs.get("message_type") != "completion":  # whose prompts are one text
            system_prompt = _describe_answer_form(parser)
        if rubric is None:
            rubric = Rubric(parser=parser)
            rubric.add_step_reward_func(game_reward)
        self.feedback_fn = feedback_fn
        kwargs.setdefault("tell_legal_actions", False)  # the rollout API knows nothing of them, and to list them takes time
        super().__init__(
            numbers={"num_train_examples": num_train_examples, "num_eval_examples": num_eval_examples},
            seed=seed,
            game=game,
            system_prompt=system_prompt,
            parser=parser,
            rubric=rubric,
            **kwargs,
        )

    # Tasks

    def seed_of(self, row: Row) -> int | None:
        """Return the seed of a row that does not name it: its ``answer``, or just any where that is the game's secret word."""
        seed = super().seed_of(row)
        return 0 if seed is None and isinstance(row.get("answer"), str) and self._has_secret_word else seed

    @functools.cached_property
    def _has_secret_word(self) -> bool:
        table = self.open_table()
        try:
            table.reset(0, None)
            return "secret_word" in table.raw.state.game_state
        finally:
            table.close()

    def answer_of(self, state: State) -> str:
        """Return the secret word where the game has one, else the seed as text."""
        return str(_read_game_state(state).get("secret_word", state["input"]["seed"]))

    @eager
    def setup_state(self, state: State) -> Steps[State]:
        """Begin the game of the task, with the task's secret word."""
        begun = super().setup_state(state)
        if is_awaitable(begun):
            yield begun
        known, answer = _read_game_state(state), state["answer"]
        if "secret_word" in known:
            if not (isinstance(answer, str) and answer.islower() and len(answer) == len(known["secret_word"])):
                raise ConfigurationError(
                    f"the answer of a task of {self.game} must be a word of {len(known['secret_word'])} small letters, got {answer!r}"
                )
            known["secret_word"] = answer  # nothing that was shown yet depends on it
        return state

    # Moves and ends

    def move_of(self, message: Message) -> Message:
        """Return the move that the parser finds in a player's message.

        Raises:
            ActionNotFound: If it finds nothing.
        """
        move = self._find_move(message)
        if not move:
            missing = f"are no <{self.parser.answer_field}> tags with a move" if isinstance(self.parser, XMLParser) else "is no move"
            raise ActionNotFound(f"There {missing} in your answer.")
        return self.message_types["assistant"](move)

    def message_of(self, move: Message) -> Message:
        """Return a message with a move: in tags where the parser looks for them, else the move alone."""
        if not isinstance(self.parser, XMLParser):
            return move
        tag = self.parser.answer_field
        return self.message_types["assistant"](f"<{tag}>{move['content']}</{tag}>")

    def _find_move(self, message: Message) -> str:
        found = self.parser.parse_answer([message])
        return "" if found is None else str(found).strip()

    def _take(self, turn: Turn, state: State) -> None:
        is_the_games = turn.is_valid or self._find_move(state["trajectory"][-1]["completion"][0])
        if is_the_games and not (turn.terminated or turn.truncated):
            turn.messages = [self.message_types["user"](self.feedback_fn(message["content"])) for message in turn.messages]
        super()._take(turn, state)

    @awaitable_stop
    @stop(priority=60)  # before `game_over`, which is what other games call it
    def has_final_env_response(self, state: State) -> bool:
        """Stop when the game, or the environment, said its last."""
        return state["final_env_response"] is not None

    _game_stops = env.TextArenaEnv._game_stops | {"has_final_env_response"}


def _describe_answer_form(parser: Parser) -> str | None:
    """Return a description of the form of an answer; None where it may be any."""
    if not isinstance(parser, XMLParser):
        return None
    tag = parser.answer_field
    return f"Answer in this form, with your move in <{tag}> tags, written as the game asks for it:\n\n{parser.get_format_str()}"


def _read_game_state(state: State) -> dict[str, Any]:
    """Return what the running game knows."""
    known: dict[str, Any] = state.session.game.raw.state.game_state
    return known


__all__ = ["TextArenaEnv"]
