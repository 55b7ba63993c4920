"""A seat at an environment: `reset` and `step` for one player at a time."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np

from vfgym.aio.steps import Steps, drive_on, run_async, run_each, run_sync
from vfgym.copying import deep_copy, new_memo
from vfgym.envs.going_back import Belongings, Snapshot, copy_belongings
from vfgym.episode import BaseEpisode, Outcome
from vfgym.episode.sessions import Sessions
from vfgym.errors import ConfigurationError, EpisodeBusy, InvalidAction, InvalidMessage, ResetNeeded, did_you_mean
from vfgym.limits import RolloutMeter
from vfgym.messages import AssistantMessage, Message, Response, as_message
from vfgym.output.pictures import LINES, DrawnMessage, Picture, draw_page, fit_picture
from vfgym.output.terminal import echo, escape
from vfgym.reseeding import SeededNumbers
from vfgym.spaces import MessageSpace
from vfgym.state import State
from vfgym.tasks import TaskStream

if TYPE_CHECKING:
    from vfgym.envs.chat import ChatEnv

Action: TypeAlias = str | Mapping[str, Any] | Response
"""An assistant message: its text, the message itself, or a `Response` that brings usage and token data too."""

PLAYERS_OWN = frozenset({"_episode", "_streams", "_sessions", "_numbers", "action_space", "_printed", "_picture_shape"})
"""Attributes of a seat that are its player's, and not the definition's where both are one object."""

RESET_OPTIONS = ("example_id", "split", "task", "game_options", "player")
"""The options that `EpisodeSeat.reset` knows."""


def as_response(action: Any) -> Response:
    """Return an action as the `Response` it stands for.

    Raises:
        InvalidAction: If it is not an assistant message; the text says what was expected and what came.
    """
    if isinstance(action, str):
        message: Any = AssistantMessage(action)
    elif isinstance(action, Response):
        return action
    else:
        try:
            message = as_message(action)
        except InvalidMessage as error:
            raise InvalidAction(
                f"an action must be an assistant message (its text, a dict with role 'assistant', or a Response): {error}"
            ) from None
        if not isinstance(message, AssistantMessage):
            raise InvalidAction(f"an action must be an assistant message, got one with the role {message['role']!r}")
    return Response(id="", created=0, model="", message=message)


Hidden: TypeAlias = Literal["keep", "resample"]
"""What a branch has of what the policy has not seen: the same, or something else that is possible."""


@dataclass(slots=True)
class Luck:
    """What decides of a player's next episode."""

    numbers: SeededNumbers
    streams: dict[str, TaskStream]
    """The order in which it meets the tasks of each split."""


class EpisodeSeat(gym.Env[list[Message], Any]):
    """A player's seat at an environment: it runs one episode after another of one definition."""

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human", "rgb_array"], "render_fps": 4}

    _episode: BaseEpisode | None = None
    _printed: Sequence[Message] = ()
    """The conversation that was printed last, where ``render_mode="human"``."""
    _picture_shape: tuple[int, ...] | None = None
    """The shape of this seat's first picture, and so of all of them: a film has one size."""
    defers_scoring = False
    """Whether episodes are played but not scored, for somebody who scores whole groups of them."""
    throws_away: Callable[[State], bool] | None = None
    """Says of an episode that was played whether it is thrown away without being scored, for somebody who plays it again then."""
    next_limit: RolloutMeter | None = None
    """What the episode that begins next may spend; None where that is not limited. (Authors have a `limit` of their own.)"""

    @property
    def definition(self) -> ChatEnv:
        """The environment whose episodes are played: its tasks, hooks and rubric."""
        raise NotImplementedError

    @functools.cached_property
    def _streams(self) -> dict[str, TaskStream]:
        """The order in which this player meets the tasks of each split."""
        return {}

    @functools.cached_property
    def _numbers(self) -> SeededNumbers:
        """The random numbers of this player."""
        return SeededNumbers()

    @property
    def np_random(self) -> np.random.Generator:
        """The random numbers of this player."""
        return self._numbers.generator

    @np_random.setter
    def np_random(self, generator: np.random.Generator) -> None:
        self._numbers = SeededNumbers.drawn_from(generator)

    @property
    def _np_random(self) -> np.random.Generator:  # type: ignore[override]
        return self._numbers.generator  # `gymnasium.utils.env_checker` looks here (Gymnasium 1.4)

    @property
    def np_random_seed(self) -> int:
        """The seed at which the random numbers began; -1 where that is not known."""
        return self._numbers.seed

    @functools.cached_property
    def _sessions(self) -> Sessions:
        """What each environment that played keeps for this player between episodes."""
        return Sessions()

    def _draw(self, split: str) -> dict[str, Any]:
        """Return the next task of a split."""
        tasks = self.definition.tasks_of(split)
        stream = self._streams.get(split)
        if stream is None or stream.tasks is not tasks:  # they may have been replaced
            self._streams[split] = stream = TaskStream(tasks)
        return tasks.input(stream.draw(self.np_random))

    @property
    def episode(self) -> BaseEpisode | None:
        """The current or last episode; None before the first."""
        return self._episode

    @functools.cached_property
    def action_space(self) -> MessageSpace:  # type: ignore[override]
        """Assistant messages. Each seat has its own, because a space holds random numbers."""
        return MessageSpace(self.definition.action_sampler())

    @property
    def state(self) -> State | None:
        """The state of the current or last episode; None before the first."""
        return None if self._episode is None else self._episode.state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[list[Message], dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Restarts the stream of tasks and the random numbers; the same seed replays the same stream.
            options: ``example_id`` picks a task and draws nothing from the stream; ``split`` (``"train"`` or ``"eval"``)
                says of which tasks; ``task`` is a row of its own; ``game_options`` go to a wrapped game's reset; ``player`` says whom the
                policy plays in a game for several players (one of these, or its number in order from 0).

        Returns:
            The conversation that the model must answer, and ``info`` with ``example_id``, ``tools`` (OpenAI tool
            parameters), ``metrics`` and ``stop_condition``.

        Raises:
            ConfigurationError: If an option is unknown, or the rubric scores whole groups.
        """
        return run_sync(self.reset_steps(seed, options))

    async def areset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[list[Message], dict[str, Any]]:
        """Start an episode, from async code (see `reset`)."""
        return await run_async(self.reset_steps(seed, options))

    def step(self, action: Action) -> Outcome:
        """Answer the conversation.

        Args:
            action: An assistant message: text, a message, or a `Response`.

        Returns:
            Observation (the whole conversation to answer next; at the end prompt and completion), reward, terminated (the
            task ended, or an error did), truncated (a limit ended it), info.

        Raises:
            InvalidAction: If it is not an assistant message; the episode stands as it was.
            ResetNeeded: If there is no episode to continue.
        """
        episode = self._episode
        if episode is None or episode.is_over or episode.is_broken or episode.is_busy:
            episode = self._require_running()  # raises, or it may still be scored
        response = as_response(action)
        if not episode.is_over:
            for awaitable in (steps := episode.answer(response)):  # faster than `run_sync`, where nothing has to be awaited
                drive_on(steps, awaitable)
        if episode.is_over:
            run_sync(self._score(episode))
        return episode.outcome() if self.render_mode != "human" else self._copy_outcome(episode)

    async def astep(self, action: Action) -> Outcome:
        """Answer the conversation, from async code (see `step`)."""
        return await run_async(self.step_steps(action))

    def step_steps(self, action: Action) -> Steps[Outcome]:
        """Answer the conversation, as steps (see `step`)."""
        episode = self._episode
        if episode is None or episode.is_over or episode.is_broken or episode.is_busy:
            episode = self._require_running()  # raises, or it may still be scored
        response = as_response(action)
        if not episode.is_over:
            yield from episode.answer(response)
        if episode.is_over:
            yield from self._score(episode)
        return episode.outcome() if self.render_mode != "human" else self._copy_outcome(episode)

    def fail(self, error: BaseException) -> Outcome:
        """End the episode because whoever answers could not: what `step` returns then.

        Args:
            error: An `OverlongPromptError`, or a `TimeoutError` that is not an `Error`, truncates; anything else terminates with
                ``info["error"]``.
        """
        return run_sync(self._fail(error))

    async def afail(self, error: BaseException) -> Outcome:
        """End the episode because whoever answers could not, from async code (see `fail`)."""
        return await run_async(self._fail(error))

    def truncate(self) -> Outcome:
        """End and score the episode from outside, as a limit would (a `TimeLimit` around it, say).

        An episode that is over already keeps its outcome.
        """
        return run_sync(self.truncate_steps())

    async def atruncate(self) -> Outcome:
        """End and score the episode from outside, from async code (see `truncate`)."""
        return await run_async(self.truncate_steps())

    def fork(self) -> Fork:
        """Return another seat at the same definition, with an episode and random numbers of its own."""
        return Fork(self.definition)

    def snapshot(self) -> Snapshot:
        """Return the moment in which the episode stands, for `restore` to go back to. The episode goes on as if nothing had been.

        Raises:
            ResetNeeded: If no episode has begun, or it was broken off.
            EpisodeBusy: If a step of it is running.
            EpisodeNotPicklable: If something in it cannot be copied: an item of its state (the text names it), a game that is copied as a
                new one (`ChatEnv.can_go_back`), or the running code of a `rollout` of the author's own.
        """
        return run_sync(self.snapshot_steps())

    async def asnapshot(self) -> Snapshot:
        """Return the moment in which the episode stands, from async code (see `snapshot`)."""
        return await run_async(self.snapshot_steps())

    def restore(self, snapshot: Snapshot) -> tuple[list[Message], dict[str, Any]]:
        """Go back to a moment, of this seat or of any other at such an environment; an unfinished episode is cleaned up first.

        All is as it was: the game, the random numbers, the stream of tasks, and the time that was left.

        Returns:
            Observation and info of that moment.

        Raises:
            ConfigurationError: If the snapshot is of another environment; the episode stands as it was.
            EpisodeBusy: If a step of the episode is running.
        """
        return run_sync(self.restore_steps(snapshot))

    async def arestore(self, snapshot: Snapshot) -> tuple[list[Message], dict[str, Any]]:
        """Go back to a moment, from async code (see `restore`)."""
        return await run_async(self.restore_steps(snapshot))

    def branch(self, seed: int | None = None, hidden: Hidden = "keep") -> Fork:
        """Return another seat in which the same episode goes on, at the same definition.

        Args:
            seed: Lets every generator of the branch begin anew, those of its game, its opponents and its state, so that it does not foresee
                what will happen here. With None the same will happen in both, as long as the answers are the same.
            hidden: With ``"resample"`` what the policy has not seen (others' hands, the order of a deck) is drawn anew, from the seed and
                alike with all that it has seen, where the game can. So a search does not play against cards that it could not know.

        Raises:
            ConfigurationError: If the seed is not an integer from 0, or what is hidden cannot be drawn anew.
            ResetNeeded: As `snapshot` does, like the others.
            EpisodeBusy: If a step of the episode is running.
            EpisodeNotPicklable: If something in the episode cannot be copied.
        """
        return run_sync(self._branch(seed, hidden))

    async def abranch(self, seed: int | None = None, hidden: Hidden = "keep") -> Fork:
        """Return another seat in which the same episode goes on, from async code (see `branch`)."""
        return await run_async(self._branch(seed, hidden))

    def render(self) -> str | Picture | None:
        """Return the conversation as text (``render_mode="ansi"``) or a picture (``"rgb_array"``).

        ``"human"`` prints as it goes and returns None. The picture is the game's own where it draws one (`ChatEnv.render_picture`), else
        the end of the conversation on a page. All pictures of a seat have the shape of its first, as films ask for.
        """
        if self.render_mode == "ansi":
            return "" if self._episode is None else transcript(self._episode.conversation())
        if self.render_mode == "rgb_array":
            return self._picture()
        if self.render_mode is None:
            gym.logger.warn(
                f"render() was called without a render mode: make the environment with one of {', '.join(self.metadata['render_modes'])}"
            )
        return None

    def _picture(self) -> Picture:
        episode = self._episode
        picture = None if episode is None or episode.is_busy else episode.definition.render_picture(episode.state)
        if picture is None:
            # Each message has at least one line, so no more of them have room.
            messages = [] if episode is None else episode.conversation()[-LINES:]
            picture = draw_page([DrawnMessage(message["role"], escape(_quote_message(message))) for message in messages])
        if self._picture_shape is None:
            self._picture_shape = picture.shape
        return fit_picture(picture, self._picture_shape)

    def close(self) -> None:
        """Clean up an unfinished episode and what is kept between episodes. A second call does nothing."""
        run_sync(self._close())

    async def aclose(self) -> None:
        """Clean up, from async code (see `close`)."""
        await run_async(self._close())

    def _require_running(self) -> BaseEpisode:
        episode = self._episode or self._require_begun()
        if episode.is_over or episode.is_broken or episode.is_busy:
            if episode.is_scored or (self.defers_scoring and episode.is_over):
                raise ResetNeeded("the episode is over: call reset() first")
            if episode.is_broken:
                raise ResetNeeded("the episode was broken off, by an exception or by close(): call reset() first")
            if episode.is_busy:
                raise EpisodeBusy("another step of this episode is still running: give each player a fork() of the environment")
        return episode

    def _require_begun(self) -> BaseEpisode:
        if self._episode is None:
            raise ResetNeeded("no episode has begun: call reset() first")
        return self._episode

    def reset_steps(self, seed: int | None, options: Mapping[str, Any] | None) -> Steps[tuple[list[Message], dict[str, Any]]]:
        """Start an episode, as steps (see `reset`)."""
        definition = self.definition
        if not hasattr(definition, "hooks"):
            raise ConfigurationError(f"{type(definition).__name__}.__init__ must call super().__init__(...)")
        if not isinstance(options, Mapping | None):
            raise ConfigurationError(f"reset options must be a dict, got {type(options).__name__}")
        options = options or {}
        for name in options:
            if name not in RESET_OPTIONS:
                hint = did_you_mean(str(name), RESET_OPTIONS)
                raise ConfigurationError(f"unknown reset option {name!r}; known: {', '.join(RESET_OPTIONS)}.{hint}")
        if definition.requires_group_rollouts and not self.defers_scoring:
            raise ConfigurationError(
                f"the rubric scores whole groups ({', '.join(definition.rubric.group_function_names)}), so this environment cannot"
                " be stepped alone: evaluate it with rollouts_per_example > 1, or name singular arguments in the reward function"
            )
        if self._episode is not None and self._episode.is_busy:
            raise EpisodeBusy("a step of this episode is still running: give each player a fork() of the environment")
        if seed is not None and not (isinstance(seed, int) and seed >= 0):
            raise gym.error.Error(f"the seed of reset must be an integer from 0, or None to go on with the same numbers; got {seed!r}")
        chosen = definition.choose_task(seed, options)
        yield from self._abandon()
        if seed is not None:
            self._numbers = SeededNumbers(seed)
            self._streams.clear()
        task = self._draw(options.get("split", "train")) if chosen is None else chosen
        if isinstance(self.action_space, MessageSpace):
            self.action_space.sampler = definition.action_sampler()  # tools may have been added since
        playing, task = definition.routed(task)
        self._episode = episode = playing.new_episode(self._sessions.of(playing), self._numbers)
        episode.limit, self.next_limit = self.next_limit, None
        try:
            yield from episode.open(task)
            error = episode.state["error"]
            if error is not None and not episode.state["trajectory"]:
                raise error
        except BaseException:
            episode.is_broken = True
            raise
        finally:
            self._sessions.keep(episode)
        self._printed = ()
        observation, _, _, _, info = self._copy_outcome(episode)
        return observation, info

    def _fail(self, error: BaseException) -> Steps[Outcome]:
        episode = self._require_running()
        return (yield from self._end(episode, episode.fail(error)))

    def truncate_steps(self) -> Steps[Outcome]:
        """End and score the episode from outside, as steps (see `truncate`)."""
        episode = self._require_begun()
        if episode.is_scored or (self.defers_scoring and episode.is_over):
            return episode.outcome()
        return (yield from self._end(self._require_running(), episode.truncate()))

    def _end(self, episode: BaseEpisode, end: Steps[None]) -> Steps[Outcome]:
        """Take the steps that end play, then score."""
        episode.is_busy = True
        try:
            yield from end
        except BaseException:
            episode.is_broken = True
            raise
        finally:
            episode.is_busy = False
        yield from self._score(episode)
        return episode.outcome()  # without anything new to print: nobody said anything

    def _score(self, episode: BaseEpisode) -> Steps[None]:
        if self.defers_scoring or (self.throws_away is not None and self.throws_away(episode.state)):
            return
        episode.is_busy = True
        try:
            yield from episode.score()
        finally:
            episode.is_busy = False

    def _copy_outcome(self, episode: BaseEpisode) -> Outcome:
        outcome = episode.outcome()
        if self.render_mode == "human":
            self._print(outcome.observation)
        return outcome

    def _belongings(self) -> Belongings:
        """Return what this player knows and nobody else."""
        space = vars(self).get("action_space")
        action_numbers = space._np_random if isinstance(space, MessageSpace) else None
        return Belongings(self._require_begun(), self._sessions, self._streams, self._numbers, action_numbers)

    def snapshot_steps(self) -> Steps[Snapshot]:
        """Return the moment in which the episode stands, as steps (see `snapshot`)."""
        belongings = yield from copy_belongings(self.definition, self._belongings())
        return Snapshot(self.definition, belongings)

    def _branch(self, seed: int | None, hidden: Hidden) -> Steps[Fork]:
        if hidden not in get_args(Hidden):
            raise ConfigurationError(f"hidden must be one of {', '.join(map(repr, get_args(Hidden)))}; got {hidden!r}")
        if hidden == "resample" and seed is None:
            raise ConfigurationError("hidden='resample' draws at random: give a seed, too")
        belongings = yield from copy_belongings(self.definition, self._belongings(), seed)
        if hidden == "resample" and seed is not None and not belongings.episode.is_over:
            belongings.episode.definition.resample_hidden(belongings.episode.state, np.random.default_rng([seed, 1]))
        branch = self.fork()
        yield from branch._take_belongings(belongings)
        return branch

    def _take_belongings(self, belongings: Belongings) -> Steps[None]:
        """Go on with what another player knew."""
        yield belongings.episode.definition.open_resources(belongings.episode.state)
        self._hold(belongings)

    def _hold(self, belongings: Belongings) -> None:
        self._episode, self._sessions, self._streams = belongings.episode, belongings.sessions, belongings.streams
        self._numbers = belongings.numbers
        if belongings.action_numbers is not None:
            self.action_space._np_random = belongings.action_numbers
        self._printed = ()

    def restore_steps(self, snapshot: Snapshot) -> Steps[tuple[list[Message], dict[str, Any]]]:
        """Go back to a moment, as steps (see `restore`)."""
        if not isinstance(snapshot, Snapshot):
            raise ConfigurationError(f"restore takes what snapshot() returned, got {type(snapshot).__name__}")
        belongings = snapshot.open(self.definition)
        if self._episode is not None and self._episode.is_busy:
            raise EpisodeBusy("a step of this episode is still running: restore it before or after that")
        yield from run_each([self._abandon(), self._sessions.close()])
        yield from self._take_belongings(belongings)
        observation, _, _, _, info = self._copy_outcome(belongings.episode)
        return observation, info

    def take_over(self, other: EpisodeSeat) -> Steps[None]:
        """Go on with the episode of another seat, which is not used any more; an unfinished one of one's own is cleaned up first."""
        yield from run_each([self._abandon(), self._sessions.close()])
        if other._episode is None:
            self._episode, self._sessions = None, Sessions()
            self.set_luck(other.copy_luck())
        else:
            self._hold(other._belongings())

    def copy_luck(self) -> Luck:
        """Return a copy of what decides of the next episode: the random numbers, and the order of the tasks."""
        shared = [stream.tasks for stream in self._streams.values()]
        return deep_copy(Luck(self._numbers, self._streams), new_memo(shared))

    def set_luck(self, luck: Luck) -> None:
        """Let the next episode be decided so."""
        self._numbers, self._streams = luck.numbers, luck.streams

    def _abandon(self) -> Steps[None]:
        if self._episode is not None and not self._episode.is_over:
            self._episode.is_broken = True
            yield from self._episode.finish()

    def _close(self) -> Steps[None]:
        yield from run_each([self._abandon(), self._sessions.close()])

    def _print(self, conversation: list[Message]) -> None:
        """Print what has come since the last step."""
        echo(transcript(new_since(self._printed, conversation)))
        self._printed = conversation.copy()


class Fork(EpisodeSeat):
    """A seat at another environment's definition. Hooks run on the definition and keep what belongs to an episode in its state."""

    def __init__(self, definition: ChatEnv) -> None:
        """Sit down at `definition`."""
        self._definition = definition
        self.observation_space = definition.observation_space
        self.spec = definition.spec
        self.render_mode = definition.render_mode
        if definition.metadata is not EpisodeSeat.metadata:
            self.metadata = definition.metadata

    @property
    def definition(self) -> ChatEnv:
        """The environment whose episodes are played."""
        return self._definition

    @property
    def failure_reward(self) -> float | None:
        """What rollouts that failed or were cut count with at most in means, as the environment declares it (see `ChatEnv`)."""
        return self._definition.failure_reward


def new_since(seen: Sequence[Message], observation: list[Message]) -> list[Message]:
    """Return what an observation adds to the one before: all of it where it does not continue that one.

    With a limited history, in self-play or where an environment rewrites history, it does not. Nor does one that only looks the same
    (a board on which the last move changed nothing, with ``history=0``): a conversation that goes on holds the answer at least.

    >>> from vfgym.messages import AssistantMessage, UserMessage
    >>> asked, answer = UserMessage("1 + 1?"), AssistantMessage("2")
    >>> new_since([asked], [asked, answer]), new_since([asked], [asked])
    ([AssistantMessage(content='2')], [UserMessage(content='1 + 1?')])
    """
    known = len(seen)
    return observation[known:] if len(observation) > known and observation[:known] == [*seen] else observation.copy()


def transcript(messages: Sequence[Message]) -> str:
    """Return a conversation as text for a terminal, one block a message. An image is told by its size, "[image 96x96]"."""
    return escape("\n".join(f"[{message['role']}] {_quote_message(message)}" for message in messages))


def _quote_message(message: Message) -> str:
    content = message["content"]
    text = content if isinstance(content, str) else "\n\n".join(map(_part_text, content or ()))
    calls = [f"{call.name}({call.arguments})" for call in message.get("tool_calls") or []]
    return " ".join([*([text] if text else []), *calls])


_PNG_URL = "data:image/png;base64,"
_PNG_HEADER = 24
"""Bytes of a PNG file up to and with width and height, which its first chunk (IHDR) begins with. In base64 they are 32 characters."""


def _part_text(part: Mapping[str, Any]) -> str:
    if "text" in part:
        return str(part["text"])
    size = _png_size(part["image_url"].get("url")) if part["type"] == "image_url" else None
    return f"[{part['type'].removesuffix('_url')}]" if size is None else f"[image {size[0]}x{size[1]}]"


def _png_size(url: Any) -> tuple[int, int] | None:
    """Return width and height of an image in a data URL; None for an image elsewhere or of another kind."""
    if not isinstance(url, str) or not url.startswith(_PNG_URL):
        return None
    try:
        header = base64.b64decode(url[len(_PNG_URL) :][: _PNG_HEADER * 4 // 3], validate=True)
    except ValueError:
        return None
    if len(header) < _PNG_HEADER or header[12:16] != b"IHDR":
        return None
    return int.from_bytes(header[16:20]), int.from_bytes(header[20:24])
