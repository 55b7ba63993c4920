"""`TextArenaGame`: one table at which a game of TextArena is played."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from vfgym.codecs import ActionNotFound
from vfgym.codecs.thinking import drop_thinking
from vfgym.errors import ConfigurationError, ResetNeeded
from vfgym.messages import AssistantMessage, Message, content_text
from vfgym.messages.frozen import FrozenDict
from vfgym.wrappers.games.turn_based import NO_MOVE, Played, Player, TurnBasedGame
from vfgym.wrappers.textarena import moves
from vfgym.wrappers.textarena.answers import GAMES_OF_SENTENCES, read_move
from vfgym.wrappers.textarena.catalogue import number_of_players, playable
from vfgym.wrappers.textarena.observations import (
    MIXED_UP,
    GameMessage,
    PlayerLog,
    join_texts,
    put_in_order,
    render_messages,
    render_training_view,
)
from vfgym.wrappers.textarena.package import kinds, load, new_game, textarena
from vfgym.wrappers.textarena.repairs import NobodyLeft
from vfgym.wrappers.textarena.table_random import RandomNumbers

logger = logging.getLogger(__name__)

_CLIPPED_TO = 1000

_MOST_TOLD = 20
"""Legal moves that a player is told who made none of them."""

_LONGEST_TOLD = 100
"""Characters of a text that is no move, as the player is told of it."""

_PLAIN_MOVE = re.compile(r"\[[^\[\]<\\{`\n]+\]")
"""A move that needs no reading, as nearly all do."""

_TAKEN = Played(FrozenDict())
"""What comes of a valid move that earns nobody anything; made once, since to make a named tuple takes 0.3 µs."""

_OPTIONS: dict[str, dict[str, Any]] = {
    # Without a limit its steps are TypeErrors (textarena 0.7.4); `max_moves` ends it.
    "DontSayIt-v0-unlimited": {"max_turns": 10**9},
}
"""Options with which an environment works that does not with its own, by its id without ``-raw`` and ``-train``."""


class TextArenaGame(TurnBasedGame):
    """A game of TextArena, told in the words of TextArena, with random numbers of its own.

    All three variants of an id play the same game, made without TextArena's wrappers, which put the whole history into each observation
    (PigDice-v0-long, of 500 moves, takes 20 times as long with them). They differ in what is told, and in what is done to a move before
    the game reads it:

    * ``TicTacToe-v0``: as with TextArena's default wrappers. Everything that the game says is told (SimpleNegotiation: as in training),
      and in most games the move is read out of the answer (see `vfgym.wrappers.textarena.answers`); games of sentences get all of it. An
      answer that names no move, or several, does not get to the game, and is asked again.
    * ``TicTacToe-v0-train``: as with TextArena's training wrappers. In most games no moves and no complaints about moves are told, and only
      the board as it is now; in most conversations no more than the last 1,000 characters of a message are said. Moves are read alike.
    * ``TicTacToe-v0-raw``: everything is told, and moves are not touched.

    A seed decides everything: the same seed and moves give the same game as in TextArena after ``random.seed(seed)``,
    ``textarena.make`` and ``reset``. (TextArena itself seeds only in ``reset``, so there the games that draw when they are made,
    RushHour and Taboo, are not decided by the seed of ``reset``; nor are those that draw from NumPy.)

    A move on which the game raises an exception (many do on odd input) counts as an invalid one. Where the game cannot go on after it,
    it is over, truncated, with rewards of 0.0.

    >>> game = TextArenaGame("TicTacToe-v0-raw")
    >>> game.reset(seed=0, options=None)
    >>> game.turn, game.move(AssistantMessage("[4]")).is_valid, game.turn
    (0, True, 1)
    """

    def __init__(self, env_id: str, num_players: int | None = None, *, max_moves: int = 1000, **game_options: Any) -> None:
        """Set up a table.

        Args:
            env_id: Id of TextArena, such as ``"Poker-v0"`` (`textarena_games` has all).
            num_players: How many play. By default the least for which the game is meant.
            max_moves: After so many moves of all players a game is over, truncated: some never end.
            **game_options: Options of the game in place of those that the id stands for, such as ``num_rounds=3``.

        Raises:
            MissingExtra: If TextArena is not installed.
            ConfigurationError: If there is no such game, it cannot be played here, or not with these options and players.
        """
        environment = playable(env_id)
        if isinstance(max_moves, bool) or not isinstance(max_moves, int) or max_moves < 1:
            raise ConfigurationError(f"max_moves must be an integer of at least 1, got {max_moves!r}")
        self.env_id = env_id
        self.max_moves = max_moves
        self.players: tuple[int, ...] = tuple(range(number_of_players(environment, num_players)))
        self._base = environment["base"]
        self._shows = environment["shows"]
        self._shows_everything = self._shows == "all"
        self._brackets = environment["brackets"]
        self._is_for_training = environment["variant"] == "train"
        self._takes_one_move = environment["variant"] != "raw" and environment["game"] not in GAMES_OF_SENTENCES
        self._clips = environment["clips"]
        self._is_mixed_up = environment["game"] in MIXED_UP
        self._game_options = game_options
        self._numbers = RandomNumbers()
        self._kinds = kinds()
        self.raw: Any = self._make({})
        """The environment of TextArena underneath, without wrappers. It is another one after each `reset`."""
        # To what its state has for the player whose turn it is, each time that it is asked: as TwoDollar and ScorableGames do.
        self._adds_to_observations = type(self.raw).get_observation is not textarena().Env.get_observation

    def _make(self, options: Mapping[str, Any]) -> Any:
        options = {**_OPTIONS.get(self._base, {}), **self._game_options, **options}
        try:
            return self._numbers.run(new_game, self.env_id, options)
        except (AssertionError, TypeError, ValueError) as error:
            raise ConfigurationError(f"{self.env_id} refuses the options {options}: {error}") from error

    def reset(self, seed: int | None, options: Mapping[str, Any] | None = None) -> None:
        """Begin a game. The same seed gives the same game; None continues the table's own random numbers.

        Args:
            seed: Where the random numbers start.
            options: Options of the game in place of the table's, for this game.

        Raises:
            ConfigurationError: If the game refuses the options.
        """
        if seed is not None:
            self._numbers.seed(seed)
        # Another object for each game: what games keep beside their state, and draw when they are made, would be of the last game.
        self.raw = self._make(options or {})
        self._numbers.run(self.raw.reset, num_players=len(self.players), seed=seed)
        self.was_truncated = False
        self._moves_made = 0
        self._legal: tuple[int, Player, list[str] | None] = (-1, None, None)
        """The legal moves of a player after so many moves, as they were asked for last."""
        self._read: tuple[Message | None, str] = (None, "")
        """The message that was read last, and the move in it."""
        self._listeners = {player: PlayerLog() for player in self.players}
        self.native_observations: dict[Player, str] = {}
        self._rewards: dict[int, float] = {}
        self._reasons: dict[int, str] = {}
        self._problem = ""
        """Why the last answer did not get to the game; told to the player whose turn it is."""
        self.step_info: dict[str, Any] = {}
        """What TextArena's own `step` returned beside whether the game is over, for the last move. Most games return nothing."""
        self.turn = self.raw.state.current_player_id

    def observe(self, player: Player) -> str:
        """Return what a player was told since it was last asked for; at first the rules, in the end how the game ended."""
        listener = self._listeners[player]
        observations = self.raw.state.observations  # what `get_observation` does, without its three calls
        messages, observations[player] = observations[player], []
        listener.raw_messages.append(messages)
        if listener.training_messages:
            messages, listener.training_messages = listener.training_messages + messages, []
        if self._adds_to_observations and player == self.turn:
            messages = messages + self._added_messages()
        if self._is_mixed_up:
            messages = put_in_order(messages)
        if self._shows_everything:
            text = render_messages(messages, player, self.raw.state.role_mapping, self._kinds)
        else:
            text = render_training_view(messages, listener, self._shows, self._kinds) if messages else ""
        if listener.was_refused and not text and player == self.turn:
            text = "Your move was not valid."  # SimpleNegotiation, for one, says nothing of its own
        listener.was_refused = False
        if self._problem and player == self.turn:
            text, self._problem = join_texts([self._problem, text]), ""
        if self.turn is None and not listener.knows_the_end:
            listener.knows_the_end = True
            text = join_texts([text, self._closing_message(player)])
        self.native_observations[player] = text
        if not listener.rules:
            listener.rules = text
        elif text:
            listener.latest = text
        return text

    def rules(self, player: Player) -> str | None:
        """Return what the game tells a player as its prompt, whether the player was told it already or not."""
        messages = chain(*self._listeners[player].raw_messages, self.raw.state.observations[player])
        return join_texts([text for _, text, kind in messages if kind is self._kinds.prompt]) or None

    def raw_observation(self, player: Player) -> list[GameMessage]:
        """Return the same as TextArena has it, since this was last asked for: ``(who speaks, text, ObservationType)``; -1 is the game."""
        listener = self._listeners[player]
        state = self.raw.state
        messages, state.observations[player] = state.observations[player], []
        listener.training_messages += messages
        before, listener.raw_messages = listener.raw_messages, []
        added = self._added_messages() if self._adds_to_observations and player == state.current_player_id else []
        return [*chain.from_iterable(before), *messages, *added]

    def _added_messages(self) -> list[GameMessage]:
        """Return what the game adds to what the player whose turn it is was told, which has been taken from its state already."""
        _, added = self.raw.get_observation()
        return added  # type: ignore[no-any-return]

    def _closing_message(self, player: int) -> str:
        reward = self._rewards[player]
        parts = ["The game was cut off before it was decided." if self.was_truncated else "Game over."]
        if not self.was_truncated and len(self.players) > 1:
            worst, best = min(self._rewards.values()), max(self._rewards.values())
            results = {worst: "You lost.", best: "You won." if best > worst else "It is a draw."}
            parts.append(results.get(reward, "You came in between."))
        reason = self._reasons[player].strip()
        if reason:
            parts.append(reason if reason.endswith((".", "!", "?")) else f"{reason}.")
        parts.append(f"Your reward: {reward:g}.")
        return " ".join(parts)

    def move(self, message: Message) -> Played:
        """Make the move of the player whose turn it is.

        In games of sentences the move is the message's text without the thinking, which the others shall not read: what stands between
        ``<think>`` and ``</think>`` (or ``<thinking>``, ``<reasoning>``, in any case), before a closing tag alone, or after an opening one.

        Raises:
            ResetNeeded: If no game is running.
        """
        return self._move(message, is_cut_off=False)

    def move_cut_off(self, message: Message) -> Played:
        """Make the move of a message that was cut off: in games of sentences what it says, in others what stands in its closed marks."""
        return self._move(message, is_cut_off=True)

    def why_not(self, message: Message, *, is_cut_off: bool = False) -> str:
        """Return why a message does not get to the game: where legal moves are known, it must be one of them, or another way to write one.

        So an answer that is no move does not spend what the game allows of its own. Variants that end in ``-raw``, and games of sentences,
        get all that is said.
        """
        player = self.turn
        if not self._takes_one_move or player is None:
            return ""
        try:
            text = self._text(message, is_cut_off)
        except ActionNotFound:
            return ""  # `move` says so
        legal = self._legal_now(player)
        self._read = (message, text)
        if not legal or text in legal or copy.deepcopy(self)._move(message, is_cut_off=is_cut_off).is_valid:
            return ""
        listed = ", ".join(legal[:_MOST_TOLD]) + (", ..." if len(legal) > _MOST_TOLD else ".")
        return f"{text[:_LONGEST_TOLD]} is not a legal move now. Legal moves: {listed}"

    def _move(self, message: Message, *, is_cut_off: bool) -> Played:
        player = self.turn
        if player is None:
            raise ResetNeeded("the game is over, or has not begun: call reset()")
        try:
            known, text = self._read
            text = text if known is message else self._text(message, is_cut_off)
        except ActionNotFound as error:
            self._problem = str(error)
            return NO_MOVE
        raw = self.raw
        state = raw.state
        errors = state.error_count
        info = state.game_info[player]
        was_refused = info["invalid_move"]
        if was_refused:
            info["invalid_move"] = False
        try:
            is_over, self.step_info = self._numbers.run(raw.step, text)
        except NobodyLeft:
            is_over, self.step_info = True, {}
            self._end_early("Nobody is left in it.")
        except Exception as error:
            is_over = self._survive(error)
        is_valid = not info["invalid_move"] and state.error_count <= errors
        if was_refused:
            info["invalid_move"] = True
        listener = self._listeners[player]
        listener.was_refused = not (is_valid or self._is_for_training)  # training variants show what TextArena's wrappers show
        self._moves_made += 1
        if not is_over:
            if self._moves_made < self.max_moves:
                self.turn = state.current_player_id
                return _TAKEN if is_valid else NO_MOVE
            self._end_early(f"The limit of {self.max_moves} moves was reached.")
        elif not self.was_truncated:
            self._end()
        return Played(self._rewards, is_valid)

    def _text(self, message: Message, is_cut_off: bool) -> str:
        """Return what a message says to the game."""
        content = message["content"]
        text = content if content.__class__ is str else content_text(content)
        if self._takes_one_move:
            is_plain = not is_cut_off and _PLAIN_MOVE.fullmatch(text)
            return text if is_plain else read_move(text, is_cut_off=is_cut_off)
        text = drop_thinking(text)[0].strip()
        if self._brackets and "[" not in text and "]" not in text:
            return f"[{text}]"
        return text[-_CLIPPED_TO:] if self._clips else text

    def _survive(self, error: Exception) -> bool:
        """Count a move on which the game raised an exception as an invalid one. Return whether the game is over."""
        state = self.raw.state
        logger.warning("%s raised %r on a move of player %s; the move counts as invalid", self.env_id, error, self.turn)
        self.step_info = {}
        if state.done:
            return True
        if state.current_player_id == self.turn and (state.made_invalid_move or not state.set_invalid_move(reason="It cannot be read.")):
            is_over, _ = state.step()
            return bool(is_over)
        # It is somebody else's turn already, or the player is out, which the game itself would have to arrange.
        self._end_early("The game cannot go on after the last move.")
        return True

    def _end_early(self, reason: str) -> None:
        self.turn = None
        self.was_truncated = True
        self._rewards = dict.fromkeys(self.players, 0.0)
        self._reasons = dict.fromkeys(self.players, reason)

    def _end(self) -> None:
        """Note how the game ended."""
        state = self.raw.state
        self.turn = None
        rewards, self._rewards, self._reasons = state.rewards or {}, {}, {}
        for player in self.players:
            reward, reason = rewards.get(player, 0.0), state.game_info[player].get("reason") or ""
            if isinstance(reward, str):
                # Countdown, Cryptarithm, Slitherlink and ThreeCardMonte mix up the two when a second invalid move ends them.
                reward, reason = str(reason).removeprefix("Invalid Move: "), f"Invalid Move: {reward}"
            self._rewards[player] = float(reward)
            self._reasons[player] = str(reason)

    def sample_move(self, player: Player, rng: np.random.Generator) -> AssistantMessage:
        """Return a random move for a player whose turn it is: a legal one where the game lets them be found."""
        listener = self._listeners[player]
        return AssistantMessage(moves.sample_move(self.raw, player, rng, seen=f"{listener.rules}\n{listener.latest}"))

    def legal_moves(self, player: Player) -> list[str] | None:
        """Return the texts of all moves that a player whose turn it is may make, or None where they are not known."""
        legal = self._legal_now(player)
        return None if legal is None else legal.copy()

    def _legal_now(self, player: Player) -> list[str] | None:
        """Return the legal moves of the player whose turn it is, which are listed once for each move."""
        made, asked, legal = self._legal
        if made != self._moves_made or asked != player:
            legal = moves.legal_moves(self.raw, player)
            self._legal = (self._moves_made, player, legal)
        return legal

    def info(self, player: Player) -> dict[str, Any]:
        """Return what TextArena reports of a player: its ``role``, ``turn_count``, ``invalid_move`` and, in the end, ``reason``."""
        return {**self.raw.state.game_info[player]}

    def __reduce__(self) -> tuple[Any, ...]:
        # What a game is made of is loaded after the table is: its modules must come by way of `package`.
        return _table_to_fill, (self.env_id,), self.__dict__


def _table_to_fill(env_id: str) -> TextArenaGame:
    """Return a table without content for the copy of one, with the modules of its game loaded."""
    load(env_id)
    return TextArenaGame.__new__(TextArenaGame)
