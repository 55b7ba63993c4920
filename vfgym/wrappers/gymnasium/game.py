"""`GymnasiumGame`: a Gymnasium environment as a chat environment."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from vfgym.calls import function_name
from vfgym.codecs import ActionNotFound, Codec, codec_for
from vfgym.copying import deep_copy, new_memo
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import ConfigurationError
from vfgym.foreign import is_pettingzoo
from vfgym.messages import Content, Message, UserMessage, join_contents
from vfgym.output.pictures import Picture, as_picture
from vfgym.rubrics import Rubric
from vfgym.rubrics.scoring import UNKNOWN_BOUNDS, Bounds
from vfgym.spaces import ChoiceSampler, Sampler
from vfgym.state import State
from vfgym.tasks import as_integer
from vfgym.wrappers.games.action_lists import ActionLists
from vfgym.wrappers.games.answers import ActionSampler, Answers
from vfgym.wrappers.games.game import GameEnv
from vfgym.wrappers.games.masks import as_command, find_commands, find_mask, mask_of
from vfgym.wrappers.games.pictures import draws_itself
from vfgym.wrappers.games.session import close_or_log
from vfgym.wrappers.games.turns import NATIVE_OBSERVATION, GameState, Turn, copy_info, copy_value
from vfgym.wrappers.gymnasium.copies import GymnasiumEpisode, find_copied_as_new, transitions_of
from vfgym.wrappers.gymnasium.curated import other_title
from vfgym.wrappers.gymnasium.descriptions import Description, describe
from vfgym.wrappers.gymnasium.interfaces import as_gymnasium
from vfgym.wrappers.gymnasium.old_gym import has_old_interface
from vfgym.wrappers.gymnasium.playability import find_prompt_problems
from vfgym.wrappers.gymnasium.rendering import (
    Game,
    Observe,
    RememberedDrawings,
    RenderedText,
    explanation,
    make_renderer,
    observed_frame,
    render_drawing,
)
from vfgym.wrappers.gymnasium.reports import MoveReport, Show, choose_pieces
from vfgym.wrappers.gymnasium.rewards import check_rewards, kinds_of, known_bounds, no_outcome
from vfgym.wrappers.gymnasium.unwrapping import documented_game, innermost

OnInvalid: TypeAlias = Literal["feedback", "terminate", "noop", "random"]
"""What an answer that names no action leads to."""

FAST_GAMES = ("gymnasium.envs.toy_text", "gymnasium.envs.classic_control")
"""Packages whose games are known not to block: a thread for each would cost more than their moves."""


_MOST_LEGAL = 1000
"""Actions of a `Discrete` space up to which all of them are ``info["legal_actions"]`` of a game without a mask."""


class IsPettingZoo(ConfigurationError):
    """A function that was to make a game of Gymnasium made one of PettingZoo."""


@dataclass
class GymnasiumState(GameState):
    """What a game of Gymnasium changes at every move."""

    observation: Any = None
    game_info: Mapping[str, Any] = field(default_factory=dict)
    num_moves: int = 0
    """How many actions were played."""


class ActionMonitorRubric(Rubric):
    """Measures what games have that may play several actions in a turn: ``num_actions``."""

    def __init__(self) -> None:
        super().__init__()
        self.add_metric(self.num_actions)

    def num_actions(self, state: State) -> float:
        """Return the number of actions that were played."""
        return float(getattr(state.game_state, "num_moves", 0))  # there is none where the game could not begin


@dataclass(frozen=True)
class MakeGame:
    """Makes a registered game. An object and no closure, so that the environment can be pickled."""

    spec: EnvSpec

    def __call__(self) -> Game:
        """Make one more."""
        # The checker looks at every observation of the first steps, and a chat environment is checked itself; an episode is never
        # stepped before its game is reset.
        return gym.make(dataclasses.replace(self.spec, order_enforce=False), disable_env_checker=True)


class GymnasiumGame(GameEnv):
    """A Gymnasium environment as a chat environment. Made by `vfgym.to_chat`, which documents the arguments."""

    _episode_type = GymnasiumEpisode
    _game_state_type = GymnasiumState

    def __init__(
        self,
        make_game: Callable[[], Game],
        *,
        name: str | None = None,
        action_names: Any = None,
        as_tool: bool = False,
        observe: Observe | None = None,
        obs_to_text: Callable[[Any], str] | None = None,
        rules: str | None = None,
        prompt: str | None = None,
        show: Collection[Show] | None = None,
        max_actions_per_turn: int = 1,
        on_invalid: OnInvalid = "feedback",
        invalid_reward: float = 0.0,
        noop_action: Any = None,
        max_invalid_moves: int = 10,
        **kwargs: Any,
    ) -> None:
        """Describe a game, which `make_game` makes one more of each time; the prompt calls it `name`, its id or class by default.

        The other arguments are those of `vfgym.to_chat`, and ``**kwargs`` those of `GameEnv`.

        Raises:
            ConfigurationError: If the game cannot be shown so, or an argument does not fit it.
        """
        if on_invalid not in get_args(OnInvalid):
            raise ConfigurationError(f"on_invalid must be one of {', '.join(get_args(OnInvalid))}; got {on_invalid!r}")
        if noop_action is not None and on_invalid != "noop":
            raise ConfigurationError(f'noop_action is what on_invalid="noop" plays, and on_invalid is {on_invalid!r}')
        if not isinstance(invalid_reward, int | float | np.integer | np.floating) or isinstance(invalid_reward, bool):
            raise ConfigurationError(f"invalid_reward must be a number, got {invalid_reward!r}")
        for option, text in (("rules", rules), ("prompt", prompt)):
            if not isinstance(text, str | None):
                raise ConfigurationError(f"{option} must be text, or None for what the game itself says; got {text!r}")
        most_actions = as_integer(max_actions_per_turn)
        if most_actions is None or most_actions < 1:
            raise ConfigurationError(f"max_actions_per_turn must be a whole number of at least 1, got {max_actions_per_turn!r}")
        self.max_actions_per_turn = most_actions
        source = name or function_name(make_game)
        made = make_game()
        try:
            if is_pettingzoo(made):
                raise IsPettingZoo(f"{source} made a {type(made).__name__}, which is for vfgym.PettingZooEnv")
            if not isinstance(made, gym.Env) and not has_old_interface(made):
                raise ConfigurationError(f"{source} made a {type(made).__name__}, which is not a gymnasium.Env")
            game = as_gymnasium(made)
            if isinstance(innermost(game), EpisodeSeat):
                raise ConfigurationError(f"{source} is a chat environment already: make it with gymnasium.make, or call the function")
            if name is None:
                played = type(documented_game(game))
                name = game.spec.id if game.spec is not None else other_title(played) or played.__name__
            check_rewards(game, name)
            self.show = choose_pieces(show, game)
            described = describe(game)
            if obs_to_text is None and observe != "image":
                obs_to_text = described.obs_to_text
            if kwargs.get("failure_reward") is None:
                kwargs["failure_reward"] = described.failure_reward
            self._shown = make_renderer(game, name, observe, obs_to_text, hides_mask="legal" in self.show)
            self._rendered = self._shown.render if isinstance(self._shown, RenderedText) else None
            self._read(game, described, name, action_names, as_tool, rules, prompt)
            self._report = report = MoveReport(self.show, game.observation_space, self.codec)
            self._reports_all_moves, self._observes_mask = report.needs_no_info, report.observes_mask
            self.on_invalid = on_invalid
            self.invalid_reward = float(invalid_reward)
            self._noop = self._noop_of(game, described.noop if noop_action is None else noop_action) if on_invalid == "noop" else None
            entry_point = game.spec.entry_point if game.spec is not None else None
            self._known_bounds = None if game.spec is None else known_bounds(game, game.spec)
            self._most_moves = None if game.spec is None else game.spec.max_episode_steps
            draws = draws_itself(game)
            self._copies_go_on = find_copied_as_new(game) is None
            self._transitions = transitions_of(game)
            """What a game of toy_text looks its moves up in, for all games to share; None where there is no such table."""
            if self._transitions is not None and self._shown is render_drawing:
                self._shown = RememberedDrawings(self._transitions)
            self._begins_at: Any = getattr(game.unwrapped, "initial_state_distrib", None)
            self._pattern: list[Game] = []
            """A game of toy_text that has not begun, of which others are copies: to make another FrozenLake takes five times as long."""
        finally:
            close_or_log(made)
        self._make_game = make_game
        kwargs.setdefault("blocking", not (isinstance(entry_point, str) and entry_point.startswith(FAST_GAMES)))
        if on_invalid == "terminate":
            max_invalid_moves = 1
        super().__init__(max_invalid_moves=max_invalid_moves, tool_defs=self.answers.tools, **kwargs)
        if self.render_mode == "rgb_array" and draws and "render_fps" in self.game_metadata:
            self.metadata = {**self.metadata, "render_fps": self.game_metadata["render_fps"]}
        if most_actions > 1:
            self.add_rubric(ActionMonitorRubric())

    def _read(
        self, game: Game, described: Description, name: str, action_names: Any, as_tool: bool, rules: str | None, prompt: str | None
    ) -> None:
        """Take what the game says about itself."""
        self.game_action_space: gym.Space[Any] = game.action_space
        self.game_observation_space: gym.Space[Any] = game.observation_space
        self.game_metadata = game.metadata
        self.game_render_mode = game.render_mode
        if action_names is None:
            action_names = described.action_names or described.action_labels or None
        self.codec = codec_for(game.action_space, action_names)
        self._lists = ActionLists(self.codec, most, as_tool=as_tool, game=name) if (most := self.max_actions_per_turn) > 1 else None
        self.answers = self._lists or Answers(self.codec, as_tool=as_tool, game=name)
        self._takes_text = game.action_space.dtype == np.dtype(str)
        is_discrete = isinstance(game.action_space, gym.spaces.Discrete)
        self._all_actions = _texts_of_all(game.action_space, self.codec)
        """The texts of all actions, where they are numbered one by one and few enough to be listed at each move."""
        self._listed_actions = self._all_actions
        """The same as the prompt lists them."""
        if isinstance(game.action_space, gym.spaces.Discrete) and self.codec.names:
            self._listed_actions = [f"{number} ({name})" for number, name in enumerate(self._all_actions, int(game.action_space.start))]
        self._choices = ChoiceSampler(tuple(self.codec.names)) if is_discrete and self.codec.names else None
        is_described = rules is None and prompt is None and not described.has_registered_rules
        self.prompt_problems = find_prompt_problems(game, self.codec, self._shown, described) if is_described else ()
        """What a model cannot know from the prompt; empty where somebody gave one, or rules."""
        self.prompts_version = described.prompts_version if is_described else None
        """The version of the data that the prompt is from; None where it is not from data."""
        if prompt is None:
            parts = (
                f"You are playing {name}.",
                described.rules if rules is None else rules,
                explanation(self._shown, described) if rules is None else "",
                f"Actions: {self.codec.listing()}.",
                described.about_actions if rules is None else "",
                self.answers.instructions,
            )
            prompt = "\n\n".join(part for part in parts if part)
        self._prompt = prompt

    def _noop_of(self, game: Game, given: Any) -> Any:
        if given is None:
            raise ConfigurationError('on_invalid="noop" needs to know which action does nothing: give noop_action')
        try:
            return self.codec.from_json(given) if isinstance(given, str) else self.codec.from_json(self.codec.to_json(given))
        except (ActionNotFound, KeyError, TypeError, ValueError, IndexError) as error:
            raise ConfigurationError(f"noop_action must be an action of {game.action_space}, or its name; got {given!r}") from error

    def open_game(self) -> Game:
        """Make one more of the game."""
        if self._pattern:
            [pattern] = self._pattern
            return deep_copy(pattern, new_memo([self._transitions, pattern.unwrapped.spec]))
        game = as_gymnasium(self._make_game())
        bare: Any = game.unwrapped
        # Two that are made are alike: no map is random.
        if (
            self._transitions is not None
            and transitions_of(game) == self._transitions
            and np.array_equal(bare.initial_state_distrib, self._begins_at)
        ):
            bare.P = self._transitions
            if isinstance(self._make_game, MakeGame):  # a function may make another one the next time
                self._pattern.append(deep_copy(game, new_memo([self._transitions, bare.spec])))
        return game

    def begin_game(self, game: Game, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[Message]:
        """Reset the game and return rules, actions, answer format and the first observation, as one message."""
        begun = game.reset(seed=seed, options=None if options is None else dict(options))
        try:
            observation, info = begun
        except (TypeError, ValueError):
            info = None
        if not isinstance(info, Mapping):
            raise ConfigurationError(f"reset of a Gymnasium game must return (observation, info), info being a dict; got {kinds_of(begun)}")
        game_state: GymnasiumState = state.game_state
        game_state.game_info, game_state.observation = info, observation
        state["rules"] = self._prompt
        if self.on_invalid == "random":
            # A game's seed decides everything, in rollouts too, which have no random numbers of a player.
            state["rng_of_moves"] = state.rng if seed is None else np.random.default_rng([seed, 1])
        shown = [self._prompt, self._shown(game, observation)]
        if lines := self._lines(state, None):
            shown.append(lines)
        return [UserMessage(join_contents(shown))]

    def make_move(self, game: Game, message: Message, state: State) -> Turn:
        """Play what a message names, in order; what one leads to that names nothing, ``on_invalid`` says."""
        note = ""
        actions: Sequence[Any]
        try:
            if self._lists is not None:
                actions = self._lists.read_all(message, is_cut_off=state.is_cut_off)
            else:
                actions = (self.answers.read(message) if not state.is_cut_off else self.answers.read_cut_off(message),)
        except ActionNotFound as error:
            if self.on_invalid in ("feedback", "terminate"):
                feedback = self._report.after(str(error), self.invalid_reward)
                return Turn(self.answers.reply(message, feedback), self.invalid_reward, is_valid=False)
            # A copy each time: a game may write into what it is given.
            actions = (copy.deepcopy(self._noop) if self.on_invalid == "noop" else self._random_action(state),)
            self.note_invalid_answer(state)
            note = f"{error} Instead, {self.codec.encode(actions[0])} was played."
        commands = find_commands(self.codec.space, state.game_state.game_info) if self._takes_text else None
        if commands:
            actions = [as_command(action, commands) for action in actions]
        earned, count = 0.0, 0
        for action in actions:
            played = game.step(action)
            try:
                observation, reward, terminated, truncated, info = played
                earned += float(reward)
            except (TypeError, ValueError):
                raise no_outcome(played) from None
            count += 1
            if terminated or truncated:
                break
        kept = info
        if info.__class__ is not dict or info:
            if not isinstance(info, Mapping):
                raise no_outcome(played)
            kept = copy_info(info)  # a game may write its next info into the same dict
        game_state: GymnasiumState = state.game_state
        game_state.game_info, game_state.observation = info, observation
        game_state.num_moves += count
        shown = self._shown(game, observation) if self._rendered is None else self._rendered(observation)
        if note:
            shown, earned = join_contents([note, shown]), earned + self.invalid_reward
        if self._lists is not None:
            state["trajectory"][-1]["extras"]["actions"] = count
        if (info or self._reports_all_moves) and (lines := self._lines(state, earned, is_over=bool(terminated or truncated))):
            shown = join_contents([shown, lines])
        if terminated or truncated:
            end = "The game is over." if terminated else f"The game was cut off after {_steps(game_state.num_moves)}."
            shown = join_contents([shown, end if count == len(actions) else f"{end} {_played(count, len(actions))}"])
        return Turn(self.answers.reply(message, shown), earned, bool(terminated), bool(truncated), kept)

    def why_no_action(self, message: Message, state: State) -> str | None:
        """Say why an answer names no action (see `ChatEnv.why_no_action`), whatever ``on_invalid`` would make of it."""
        try:
            if self._lists is not None:
                self._lists.read_all(message, is_cut_off=False)
            else:
                self.answers.read(message)
        except ActionNotFound as error:
            return str(error)
        return None

    @property
    def can_go_back(self) -> bool:
        """Whether its episodes can be copied in the middle: not where a copy of the game is a new one, which Box2D's and MuJoCo's are."""
        return super().can_go_back and self._copies_go_on

    def _lines(self, state: State, reward: float | None, *, is_over: bool = False) -> str:
        """Return what is told below the observation."""
        game_state: GymnasiumState = state.game_state
        most = self._most_moves
        if self.max_turns > 0:  # which counts answers that named no action, too
            at_most = game_state.num_moves + (self.max_turns - len(state["trajectory"])) * self.max_actions_per_turn
            most = at_most if most is None else min(most, at_most)
        return self._report.lines(
            game_state.observation, game_state.game_info, reward=reward, moves=game_state.num_moves, most_moves=most, is_over=is_over
        )

    def _random_action(self, state: State) -> Any:
        space = copy.deepcopy(self.game_action_space)
        space.seed(int(state["rng_of_moves"].integers(2**31)))
        try:
            return space.sample(mask_of(space, find_mask(state["observation"], state["game_info"])))
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the game's action_mask is none for {space}: {error}") from error

    def render_picture(self, state: State) -> Picture | None:
        """Return the game's own picture, or the image that it is shown as; None where there is neither."""
        picture = super().render_picture(state)
        if picture is None and isinstance(state.game_state, GymnasiumState):
            frame = observed_frame(self._shown, state.game_state.observation)
            picture = None if frame is None else as_picture(frame)
        return picture

    def rendered_in(self, reply: list[Message]) -> list[Content]:
        """Return what the game was shown as, without what tool messages say beside it."""
        return [self.answers.content_of(reply)]

    def step_info(self, state: State) -> dict[str, Any]:
        """Tell the game's own info and observation, and the legal actions: those that it masks, or all of a `Discrete` space."""
        game_state: GymnasiumState = state.game_state
        info, observation = game_state.game_info, game_state.observation
        told: dict[str, Any] = {"game_info": copy_info(info) if info else {}, NATIVE_OBSERVATION: copy_value(observation)}
        legal = self._masked_actions(state) if info or self._observes_mask else None
        turn = game_state.turn
        if turn is not None and (turn.terminated or turn.truncated):
            return told
        if legal is None:
            legal = self._all_actions.copy()
        if legal:
            told["legal_actions"] = legal
        return told

    def _masked_actions(self, state: State) -> list[str] | None:
        """Return the actions that the game's mask allows, or the commands that it lists; None where it has neither."""
        game_state: GymnasiumState = state.game_state
        legal = self.codec.legal_texts(find_mask(game_state.observation, game_state.game_info))
        return find_commands(self.codec.space, game_state.game_info) if legal is None else legal

    def listed_moves(self, state: State) -> list[str]:
        """Return the actions that the game's mask allows, or all of them as the prompt lists them."""
        masked = self._masked_actions(state)
        return self._listed_actions.copy() if masked is None else masked

    def describe_moves(self, state: State) -> str:
        """Return the actions as the prompt says them."""
        return self.codec.listing()

    _makes_moves = ("apply_action", "open_game", "begin_game", "make_move")

    def _game_reward_bounds(self) -> Bounds:
        if self._known_bounds is None:
            return UNKNOWN_BOUNDS
        limits = [limit for limit in (self._most_moves, self.max_turns * self.max_actions_per_turn) if limit is not None and limit > 0]
        moves = min(limits, default=None)
        answers = self.max_turns if self.max_turns > 0 else None if moves is None else moves * self.max_invalid_moves
        return self._bounds_of(self._known_bounds, moves, self.invalid_reward, answers)

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The range of rewards (see `ChatEnv.reward_range`); None for a game in which each move earns something.

        What its episodes earn lies close together, far inside of what they could: by that range 20 random CartPoles would have a mean
        between 1 and 82, without it between 14 and 30.
        """
        adds_up = self._known_bounds is not None and not {"move", "highest_move"}.isdisjoint(self._known_bounds)
        return None if adds_up else super().reward_range

    def action_sampler(self) -> Sampler:
        """Sample what plays a random action."""
        return self._choices if self._choices is not None and not self.answers.as_tool else ActionSampler(self.answers)


def _texts_of_all(space: gym.Space[Any], codec: Codec) -> list[str]:
    """Return the texts of all actions of a `Discrete` space that has not too many; nothing for others."""
    if not isinstance(space, gym.spaces.Discrete) or int(space.n) > _MOST_LEGAL:
        return []
    return codec.legal_texts(np.ones(int(space.n), np.int8)) or []


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _played(played: int, given: int) -> str:
    return f"{played} of your {given} actions {'was' if played == 1 else 'were'} played."
