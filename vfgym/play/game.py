"""`Game`: the episode that a person plays: it answers, goes back, and tells what is not a move from what is."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, cast

import gymnasium as gym

from vfgym.agents.base import seat_of
from vfgym.agents.human import HumanHelp, no_help
from vfgym.endings import Ending
from vfgym.envs import Snapshot
from vfgym.envs.chat import ChatEnv
from vfgym.envs.seat import Action, as_response, new_since
from vfgym.episode import BaseEpisode
from vfgym.errors import EpisodeNotPicklable
from vfgym.messages import Message, content_text
from vfgym.play.moves import explain_refusal
from vfgym.play.recording import Recording
from vfgym.runs.retries import is_retryable
from vfgym.state import State
from vfgym.wrappers.games.multiplayer import MultiplayerEnv

QUIT = "quit"
"""Stop condition of a game that its player left."""

MOST_MOMENTS = 100
"""Moves that can be taken back, the last ones: each is a copy of the game."""

NOT_A_MOVE = "that is not a move: it was not played and costs no turn"

NO_GOING_BACK = "this environment cannot go back in an episode"


@dataclass(frozen=True, slots=True)
class Moment:
    """Where an episode stood when its player was asked."""

    snapshot: Snapshot
    observation: list[Message]
    info: dict[str, Any]
    episode_return: float
    num_frames: int
    wrappers: list[dict[str, Any]]
    """What the wrappers around the environment held, from the outermost."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is told of a line that was not played: it is not a move, or what it needed could not be reached."""

    messages: list[Message]
    consequence: str = NOT_A_MOVE


class Game:
    """One episode of an environment that a person plays.

    Attributes:
        observation: The conversation that is to be answered; at the end all of it.
        info: What the environment tells besides.
        episode_return: Sum of the rewards so far, as wrappers pass them on.
        is_over: Whether the episode has ended.
        help: The help that the player has had so far. What is taken back stays in it.
        why_no_undo: Why nobody can go back in it; empty where one can.
    """

    def __init__(self, env: gym.Env[Any, Any], seed: int, *, is_strict: bool = False, recording: Recording | None = None) -> None:
        """Begin the episode of ``env.reset(seed=seed)``.

        Args:
            env: The environment, wrapped or not.
            seed: Seed of the episode.
            is_strict: Whether an answer that is not a move is played, and costs what it costs.
            recording: Takes a frame of each position.
        """
        self.env = env
        self.seat = seat_of(env)
        self.seed = seed
        self.is_strict = is_strict
        self._recording = recording
        self._past: deque[Moment] = deque(maxlen=MOST_MOMENTS)
        self.episode_return = 0.0
        self.help: HumanHelp = no_help()
        self.observation, self.info = env.reset(seed=seed)
        self.is_over = bool(self.state["is_completed"])
        if self.is_over:
            self.observation, self.episode_return, _, _, self.info = self.seat.truncate()  # scores what was over before its first turn
        self.why_no_undo = "" if self.definition.can_go_back else NO_GOING_BACK
        self._take_frame()

    @property
    def state(self) -> State:
        """The state of the episode."""
        return cast(State, self.seat.state)

    @property
    def definition(self) -> ChatEnv:
        """The environment that plays the episode: of a group, the one that its task belongs to."""
        return cast(ChatEnv, cast(BaseEpisode, self.seat.episode).definition)

    @property
    def legal_actions(self) -> list[str]:
        """The legal moves, where they are known; empty where they are not."""
        return list(self.info.get("legal_actions") or ())

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The tools that can be called now, by their names: name, description and parameters of each."""
        return {tool["function"]["name"]: tool["function"] for tool in self.info.get("tools") or ()}

    @property
    def is_hot_seat(self) -> bool:
        """Whether all players of a game for several sit at this terminal."""
        return isinstance(self.definition, MultiplayerEnv) and self.definition.is_self_play

    @property
    def who_plays(self) -> dict[Any, str | None]:
        """The players of a game for several, in order, with the names of the agents that take their seats; None for who sits here."""
        return self.definition.who_plays(self.state) if isinstance(self.definition, MultiplayerEnv) else {}

    @property
    def num_undoable(self) -> int:
        """How many moves can be taken back."""
        return len(self._past)

    def answer(self, action: Action) -> Refusal | None:
        """Answer the conversation.

        Returns:
            What to tell the player of an answer that was not played: the episode stands as before. None if it was played.
        """
        message = as_response(action).message
        why = None if self.is_strict else self._why_not_a_move(message)
        if why is not None:
            return self._refuse(message, [self.definition.message_types["user"](why)])
        moment = self._remember()
        observation, reward, terminated, truncated, info = self.env.step(action)
        if moment is not None:
            refusal = self._take_back(moment, message, observation)
            if refusal is not None:
                return refusal
            self._past.append(moment)
        self.observation, self.info = observation, info
        self.episode_return += float(reward)
        self.is_over = terminated or truncated
        if self.is_over and not self.state["is_completed"]:
            self.seat.truncate()  # a wrapper ended the episode
        self._take_frame()
        return None

    def _take_back(self, moment: Moment, message: Message, observation: list[Message]) -> Refusal | None:
        """Take back a step that does not count, and return what its player is told; None where it counts."""
        if is_retryable(self.state):  # a model at another seat, or a server, that could not be reached
            error = self.definition.message_types["user"](f"{self.state['error']}")
            self._return_to(moment)
            return Refusal([error], "it can be tried again: nothing was played")
        if not self.is_strict and self.state["trajectory"][-1]["extras"].get("invalid_answer"):
            told = [each for each in new_since(moment.observation, observation) if each["role"] != "assistant"]
            self._return_to(moment)
            return self._refuse(message, told)
        return None

    def _refuse(self, message: Message, reply: list[Message]) -> Refusal:
        """Return what the player is told of an answer that is not a move, in words for a person."""
        self.help["refused"] += 1
        typed = None if message.get("tool_calls") else content_text(message["content"])
        explained = explain_refusal(self, typed, "\n".join(content_text(each["content"]) for each in reply))
        if explained is None:
            return Refusal(reply, f"{NOT_A_MOVE}; /rules shows the rules")
        return Refusal([self.definition.message_types["user"](explained)])

    def undo(self) -> None:
        """Go back before the last move that was played. It needs `num_undoable` of at least 1."""
        self._return_to(self._past.pop())
        self.help["undone"] += 1

    def quit(self) -> None:
        """End the episode as its player's choice: it is cut, scored as it stands, and not completed."""
        if self.is_over:
            return
        self.observation, reward, _, _, self.info = self.seat.truncate()
        self.episode_return += float(reward)
        self.is_over = True
        self.state["stop_condition"] = QUIT
        self.state.ending = Ending.CUT
        self.state["ending"] = str(Ending.CUT)
        self.state.failure_reward = self.definition.failure_reward
        self.state["is_completed"] = False
        self.state["is_truncated"] = True
        self.info = {**self.info, "stop_condition": QUIT, "ending": str(Ending.CUT)}

    def return_after_break(self) -> bool:
        """Go back to where the player was asked last, after a step was broken off.

        Returns:
            Whether the episode stands there again.
        """
        episode = cast(BaseEpisode, self.seat.episode)
        if not episode.is_broken:
            return True
        if self._asked is None:
            return False
        self._return_to(self._asked)
        return True

    _asked: Moment | None = None
    """Where the player was asked last."""

    def _why_not_a_move(self, message: Message) -> str | None:
        """Say why an answer is not a move, as far as that is known before it is played."""
        why = self.definition.why_no_action(message, self.state)
        legal = self.legal_actions
        if why is not None or not (self.why_no_undo and legal) or message.get("tool_calls"):
            return why
        text = str(message["content"]).strip()
        is_legal = text.casefold() in {each.casefold() for each in legal}
        return None if is_legal else f"{text} is not one of the legal moves."

    def _remember(self) -> Moment | None:
        """Return where the episode stands; None where it cannot be copied, which is noted."""
        self._asked = None
        if self.why_no_undo:
            return None
        try:
            snapshot = self.seat.snapshot()
        except EpisodeNotPicklable as error:
            self.why_no_undo = str(error)
            self._past.clear()
            return None
        num_frames = 0 if self._recording is None else len(self._recording)
        self._asked = Moment(snapshot, self.observation, self.info, self.episode_return, num_frames, _wrapper_states(self.env))
        return self._asked

    def _return_to(self, moment: Moment) -> None:
        self.seat.restore(moment.snapshot)
        _restore_wrappers(self.env, moment.wrappers)
        self.observation, self.info, self.episode_return = moment.observation, moment.info, moment.episode_return
        self.is_over = False
        if self._recording is not None:
            self._recording.cut(moment.num_frames)

    def _take_frame(self) -> None:
        if self._recording is not None:
            self._recording.add(self.seat.render())


def _wrapper_states(env: gym.Env[Any, Any]) -> list[dict[str, Any]]:
    """Return what each wrapper holds, from the outermost: numbers that it counts with, such as the steps of a `TimeLimit`."""
    states = []
    while isinstance(env, gym.Wrapper):
        states.append({name: value for name, value in vars(env).items() if name != "env"})
        env = env.env
    return states


def _restore_wrappers(env: gym.Env[Any, Any], states: list[dict[str, Any]]) -> None:
    for state in states:
        vars(env).update(state)
        env = cast("gym.Wrapper[Any, Any, Any, Any]", env).env
