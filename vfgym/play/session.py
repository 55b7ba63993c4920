"""`Session`: a person plays one game: what is new is shown, a line is read, and what it says is done."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vfgym.envs.seat import Action, new_since
from vfgym.messages import AssistantMessage, Message, ToolCall, content_text
from vfgym.play.ending import describe_end, player_name
from vfgym.play.forms import FormLeft, WrongArgument, explain, fill_form, read_arguments, signature
from vfgym.play.game import Game
from vfgym.play.hints import hint_for
from vfgym.play.lines import COMMANDS, Answer, PlayerCommand, ToolForm, Unknown, read_line
from vfgym.play.moves import describe_moves, list_moves, rules_of, without_rules
from vfgym.play.screen import Screen

PROMPT = "> "

_CONTINUES, _LAST_LINE = "| ", "."
"""The prompt for each line of an answer of several, and the line that ends it."""

_WIDE = 78
"""Columns from which on help has two of its own."""

_MOST_LISTED = 40
"""Legal moves that are shown with each turn; ``/moves`` shows all."""


class Session:
    """A game, and the screen on which it is played."""

    def __init__(self, game: Game, screen: Screen) -> None:
        """Play a game that has begun on a screen."""
        self._game = game
        self._screen = screen
        self._shown_to: dict[Any, list[Message]] = {}
        """The conversation as it was shown last to each player who sits here: each has one of their own."""
        self._latest: list[Message] = []
        """The messages that were shown last."""
        self._moves: list[str] = []
        """The moves that could be made when the player was asked last."""
        self._asked: Any = None
        """Which player was asked last; None before the first."""
        self._hints = np.random.default_rng()

    def play(self) -> None:
        """Play to the end, or until the player leaves (`Game.quit`).

        Raises:
            KeyboardInterrupt: At Ctrl-C. The game stands as it was.
        """
        is_asked = False
        self._say_who_plays()
        while not self._game.is_over:
            if not is_asked:
                self._show_position()
            try:
                line = self._screen.ask(PROMPT)
            except EOFError:
                if self._wants_to_leave():
                    self._game.quit()
                is_asked = True
                continue
            is_asked = not self._obey(line)
        self._show_end()

    def _obey(self, line: str) -> bool:
        """Do what a line says. Return whether there is another position to show."""
        read = read_line(line, self._game.tools, self._game.legal_actions)
        match read:
            case Unknown(why):
                self._screen.say(f"({why})")
                return False
            case PlayerCommand("quit"):
                if self._wants_to_leave():
                    self._game.quit()
                return False
            case PlayerCommand(name):
                return self._commands[name]()
            case ToolForm(tool, arguments):
                return self._call(tool, arguments)
            case Answer(text):
                return self._send(text)

    @functools.cached_property
    def _commands(self) -> Mapping[str, Callable[[], bool]]:
        return {
            "": self._show_nothing,
            "help": self._show_help,
            "lines": self._send_lines,
            "moves": self._show_moves,
            "hint": self._show_hint,
            "undo": self._undo,
            "show": self._show_again,
            "rules": self._show_rules,
            "tools": self._show_tools,
            "open": self._open_images,
        }

    def _send(self, action: Action) -> bool:
        refusal = self._game.answer(action)
        if refusal is None:
            return True
        self._screen.show(refusal.messages)
        self._screen.say(f"({refusal.consequence})")
        return False

    def _send_lines(self) -> bool:
        """Send an answer of several lines; Ctrl-D leaves without sending it."""
        lines: list[str] = []
        try:
            while (line := self._screen.ask(_CONTINUES)) != _LAST_LINE:
                lines.append(line)
        except EOFError:
            lines = []
        if not lines:
            self._screen.say("\n(nothing was sent)")
            return False
        return self._send("\n".join(lines))

    def _call(self, tool: str, arguments: str) -> bool:
        described = self._game.tools[tool]
        try:
            values = read_arguments(described, arguments) if arguments else self._fill_form(described)
        except WrongArgument as error:
            self._refuse(error)
            return False
        except (FormLeft, EOFError):
            self._screen.say("\n(the tool was not called)")
            return False
        number = len(self._game.state["trajectory"]) + 1
        return self._send(AssistantMessage(None, tool_calls=[ToolCall(f"typed_{number}", tool, json.dumps(values))]))

    def _fill_form(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        self._screen.say(signature(tool))
        return fill_form(tool, self._screen.ask, self._screen.say, self._refuse)

    def _refuse(self, error: WrongArgument) -> None:
        self._game.help["refused"] += 1
        self._screen.say(f"({error})")

    @property
    def _displayed(self) -> list[Message]:
        """What the player who is asked now was shown last."""
        return self._shown_to.get(self._game.info.get("player"), [])

    @_displayed.setter
    def _displayed(self, conversation: list[Message]) -> None:
        self._shown_to[self._game.info.get("player")] = conversation

    def _wants_to_leave(self) -> bool:
        """Ask whether the player wants to leave; the end of the input says yes."""
        self._screen.say("\nLeave the game? It is saved unfinished. Ctrl-D or y leaves, anything else goes on.")
        try:
            answer = self._screen.ask("leave? ")
        except EOFError:
            self._screen.say()
            return True
        return answer.strip().casefold() in ("y", "yes")

    # What is shown

    def _show_position(self) -> None:
        """Show what is new, and what can be done."""
        self._hand_over()
        new = self._new_messages()
        self._latest, self._displayed = new or self._latest, self._game.observation
        self._screen.show(new)
        self._say_what_can_be_done()

    def _say_who_plays(self) -> None:
        """Say who sits where, in a game for several."""
        who = self._game.who_plays
        if len(who) < 2:
            return
        if self._game.is_hot_seat:
            self._screen.say(f"({', '.join(map(player_name, who))}: all of them sit here, and take turns)\n")
            return
        seats = [f"{player_name(player)}: {'you' if agent is None else agent}" for player, agent in who.items()]
        self._screen.say_list(seats, before="(", after=")\n")

    def _hand_over(self) -> None:
        """Where several sit here, clear the screen, and wait for the one who is to move, before that one's game is shown."""
        player, before = self._game.info.get("player"), self._asked
        self._asked = player
        if not self._game.is_hot_seat or before in (None, player):
            return
        self._screen.clear()
        with contextlib.suppress(EOFError):  # which the next prompt meets again
            while self._screen.ask(f"{player_name(player)} is to move: press Enter > ").strip():
                self._screen.say("(nothing was sent: press Enter alone)")
        self._moves = []

    def _say_what_can_be_done(self) -> None:
        """Say who is to move, which tools there are, and the moves where they are others than before and what was shown lists them not."""
        game = self._game
        if game.is_hot_seat:
            self._screen.say(f"({player_name(game.info.get('player'))} is to move)")
        if game.tools:
            self._screen.say_list([f"/{signature(tool)}" for tool in game.tools.values()], before="(tools: ", after=")")
        moves = list_moves(game)
        is_news, self._moves = moves != self._moves, moves
        if moves and is_news and not _lists(_text_of(self._latest), moves):
            more = f", and {len(moves) - _MOST_LISTED} more, which /moves lists" if len(moves) > _MOST_LISTED else ""
            self._screen.say_list(moves[:_MOST_LISTED], before="(legal moves: ", after=f"{more})")

    def _new_messages(self) -> list[Message]:
        """Return what was not shown yet; what was typed stands in the terminal already."""
        observation = self._game.observation
        if observation == self._displayed:
            return []
        new = new_since(self._displayed, observation)
        goes_on = self._displayed and len(new) < len(observation)
        return [message for message in new if message["role"] != "assistant"] if goes_on else new

    def _show_end(self) -> None:
        new = self._new_messages()
        # Of an observation that goes on from none (with limited history, say), all but the end was shown in others.
        goes_on = not self._displayed or len(new) < len(self._game.observation)
        shown = new if goes_on else [message for message in new[-1:] if message["role"] != "assistant"]
        self._screen.show(shown)
        for line in describe_end(self._game):
            if not _text_of(shown).rstrip().endswith(line):  # the game may have said the same
                self._screen.say(line)

    def _show_help(self) -> bool:
        self._screen.say("Type your answer in one line. These are not sent:")
        column = max(map(len, COMMANDS)) + 2
        is_wide = self._screen.width >= _WIDE
        for name, what in COMMANDS.items():
            self._screen.say(f"  /{name:{column}}{what}" if is_wide else f"  /{name}\n      {what}")
        return False

    def _show_nothing(self) -> bool:
        self._screen.say("(nothing was typed, so nothing is sent; /help shows what you can do)")
        return False

    def _show_moves(self) -> bool:
        moves = list_moves(self._game)
        described = describe_moves(self._game)
        if moves:
            self._screen.say_list(moves)
        else:
            self._screen.say(f"({described or 'nothing lists the moves here; /rules shows the rules, which say what a move is'})")
        return False

    def _show_rules(self) -> bool:
        """Show the rules, or all that an episode began with where nobody knows which part of it they are."""
        rules = rules_of(self._game)
        user = self._game.definition.message_types["user"]
        self._screen.show(self._game.state["prompt"] if rules is None else [user(rules)])
        return False

    def _show_hint(self) -> bool:
        hint = hint_for(self._game, self._hints)
        self._game.help["hints"] += hint is not None
        self._screen.say(f"({hint or 'no hint: the environment knows no right answer and lists no moves'})")
        return False

    def _undo(self) -> bool:
        game = self._game
        if not game.num_undoable:
            why = f"cannot go back: {game.why_no_undo}" if game.why_no_undo else "there is no move of yours to take back"
            self._screen.say(f"({why})")
            return False
        game.undo()
        self._hand_over()
        self._screen.say("(your last move is taken back)\n")
        self._latest = self._position()
        self._displayed = game.observation
        self._screen.show(self._latest)
        self._say_what_can_be_done()
        return False

    def _position(self) -> list[Message]:
        """Return what the environment said last: after the last answer, or in the prompt without its rules."""
        observation = self._game.observation
        answers = [place for place, message in enumerate(observation) if message["role"] == "assistant"]
        said = observation[answers[-1] + 1 :] if answers else observation[-1:]
        return [without_rules(message, None if answers else rules_of(self._game)) for message in said]

    def _show_again(self) -> bool:
        self._screen.show(self._latest)
        return False

    def _show_tools(self) -> bool:
        if not self._game.tools:
            self._screen.say("(there are no tools now)")
        for tool in self._game.tools.values():
            self._screen.say(f"/{signature(tool)}")
            if tool.get("description"):
                self._screen.say(f"  {tool['description']}")
            schema = tool.get("parameters") or {}
            for name, described in (schema.get("properties") or {}).items():
                self._screen.say(f"    {explain(name, described, schema)}")
        return False

    def _open_images(self) -> bool:
        self._screen.open_images(self._latest)
        return False


def _lists(text: str, moves: Sequence[str]) -> bool:
    """Say whether a text lists moves one after the other, with nothing but signs between them."""
    in_a_row = r"\W{1,6}".join(map(re.escape, moves))
    return len(moves) <= _MOST_LISTED and re.search(rf"(?<!\w){in_a_row}(?!\w)", text) is not None


def _text_of(messages: list[Message]) -> str:
    return "\n".join(content_text(message["content"]) for message in messages)
