"""`PettingZooGame`: a PettingZoo environment as a table at which players who write and read text sit down."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np

from vfgym.codecs import ActionNotFound, Codec, codec_for
from vfgym.errors import ConfigurationError, ResetNeeded
from vfgym.messages import AssistantMessage, Content, Message, join_contents
from vfgym.output.pictures import Picture
from vfgym.reseeding import OwnDice, reseed
from vfgym.wrappers.games.answers import Answers
from vfgym.wrappers.games.masks import allows, find_mask, mask_of
from vfgym.wrappers.games.pictures import draw_game, draws_itself
from vfgym.wrappers.games.session import close_or_log
from vfgym.wrappers.games.turn_based import Played, Player, TurnBasedGame
from vfgym.wrappers.games.turns import copy_info
from vfgym.wrappers.gymnasium.rendering import drawing_text
from vfgym.wrappers.pettingzoo.classic import PLAIN, PRESENTATIONS
from vfgym.wrappers.pettingzoo.go_board import keep_board_size
from vfgym.wrappers.pettingzoo.making import make_aec
from vfgym.wrappers.pettingzoo.openspiel import refuse_mean_field, repair
from vfgym.wrappers.pettingzoo.rendering import find_problems, make_renderer
from vfgym.wrappers.pettingzoo.rules import read_rules, read_title

OnInvalid: TypeAlias = Literal["feedback", "terminate"]
"""What an answer leads to that names no action, or one that is not legal now."""

_MOST_LISTED = 64
"""A prompt does not list more legal actions than these."""

_MADE = ("_answers", "_game", "_legal", "_observed", "_presentation", "_prompts", "_show", "_spaces", "_title", "_told", "codecs", "env")
"""What a copy of a table makes anew."""


@dataclass
class _Seat:
    """What the table still has to tell a player, and what it has told."""

    news: list[str] = field(default_factory=list)
    knows_rules: bool = False
    saw: int | None = None
    """How many moves had been made when the player was shown the game last."""
    earned: float = 0.0
    """Rewards that the player was not told of yet."""
    total: float = 0.0
    closing: str = ""
    """How the player was told that the game is over."""


class PettingZooGame(TurnBasedGame, OwnDice):
    """A PettingZoo environment of the AEC kind (agents act in turn), played in words.

    Players are the environment's agents, under their own names. A player is shown the rules, who it is, how to answer, and the
    game as it stands; the classic games have boards and cards, others their ``ansi`` drawing, or their observations as text. A
    player answers with one action. Illegal moves, which end most of PettingZoo's games, are not played: the same player is asked again.

    A game follows from its seed and its moves, and that is how a table is pickled and copied in the middle of a game: the copy
    makes an environment of its own and plays the moves again. Random numbers that began anew (`reseed`) do so again after the same move.
    A game without a seed is given the next one of the table's own.

    >>> table = PettingZooGame("classic/tictactoe_v3")
    >>> table.reset(seed=0, options=None)
    >>> table.turn, table.legal_moves("player_1")
    ('player_1', ['0', '1', '2', '3', '4', '5', '6', '7', '8'])
    >>> table.move(AssistantMessage("I take the middle: <action>4</action>")).is_valid, table.turn
    (True, 'player_2')
    """

    def __init__(
        self,
        env: str | Callable[..., Any],
        *,
        game_options: Mapping[str, Any] | None = None,
        action_names: Any = None,
        obs_to_text: Callable[[Any], str] | None = None,
        rules: str | None = None,
        on_invalid: OnInvalid = "feedback",
        invalid_reward: float = 0.0,
        max_moves: int = 1000,
        draws: bool = False,
    ) -> None:
        """Set up a table.

        Args:
            env: An id of PettingZoo's registry, or a function that makes an environment. Copies of the table call it too, so
                that it must be picklable where tables are pickled.
            game_options: Arguments with which the environment is made, such as ``{"board_size": 9}``.
            action_names: Names of the actions, as `vfgym.codecs.codec_for` takes them; or a mapping from agents to their names.
            obs_to_text: A function from what ``env.observe(agent)`` returns to text.
            rules: The rules; those of the environment's documentation without it.
            on_invalid: What an answer leads to that names no action, or one that is not legal now: with ``"feedback"`` its
                player is told why and asked again; with ``"terminate"`` the game is over for all.
            invalid_reward: What such an answer earns its player.
            max_moves: Answers, valid or not, after which a game is truncated.
            draws: Whether an environment of the registry is made with the render mode ``"rgb_array"``, if it has that (`render_picture`).

        Raises:
            ConfigurationError: If there is no such environment, it is not an AEC environment, or it cannot be shown in words.
            MissingExtra: If PettingZoo is not installed.
        """
        if on_invalid not in get_args(OnInvalid):
            raise ConfigurationError(f"on_invalid must be one of {', '.join(get_args(OnInvalid))}; got {on_invalid!r}")
        if max_moves < 1:
            raise ConfigurationError(f"max_moves must be at least 1, got {max_moves}")
        if not isinstance(env, str) and not callable(env):
            raise ConfigurationError(
                f"PettingZooGame takes an id or a function that makes an environment, got {type(env).__name__} (a copy of an environment"
                " forgets its game, so that none is taken)"
            )
        self.on_invalid = on_invalid
        self.invalid_reward = float(invalid_reward)
        self.max_moves = max_moves
        self._made_by = env
        self._draws = draws
        self._game_options = dict(game_options or {})
        self._action_names = action_names
        self._obs_to_text = obs_to_text
        self._rules = rules
        self._rng = np.random.default_rng()
        self._seats: dict[Player, _Seat] = {}
        self._open()

    def _open(self) -> None:
        """Make the environment, and what follows from it."""
        self.env = make_aec(self._made_by, self._game_options, self._draws)
        """The environment at this table."""
        try:
            self._game = self.env.unwrapped
            keep_board_size(self._game)
            refuse_mean_field(self._game)
            repair(self._game)
            self._presentation = PRESENTATIONS.get(getattr(self._game, "metadata", {}).get("name", ""), PLAIN)
            self.players = tuple(self.env.possible_agents)
            self._title = read_title(self._game)
            self._told = read_rules(self._game)
            self.codecs: dict[Player, Codec] = {player: self._codec_of(player) for player in self.players}
            """How the actions of each player are written and read."""
            self._answers = {player: Answers(codec, game=self._title) for player, codec in self.codecs.items()}
            self._prompts = {player: self._prompt(player) for player in self.players}
            self._show = {player: self._renderer_for(player) for player in self.players}
            # Spaces keep random numbers, and those of the environment are not ours.
            self._spaces = {player: copy.deepcopy(self.env.action_space(player)) for player in self.players}
        except BaseException:
            close_or_log(self.env)
            raise
        self._observed: dict[Player, Any] = {}
        self._legal: dict[Player, list[str] | None] = {}

    def _codec_of(self, player: Player) -> Codec:
        names = self._action_names
        if isinstance(names, Mapping) and set(self.players).issuperset(names):
            names = names.get(player)
        if names is None and self._presentation.moves is not None:
            return self._presentation.moves(self._game)
        space = self.env.action_space(player)
        if names is None and self._presentation.action_names is not None:
            names = self._presentation.action_names(self._game)
        if names is None:
            names = self._told.names_of(self._game, space) or None
        return codec_for(space, names)

    def _renderer_for(self, player: Player) -> Callable[[], Content]:
        """Return the function that shows a player the game as it stands."""
        written, show = self._obs_to_text, self._presentation.show
        if written is not None:
            return lambda: written(self._observation(player))
        if show is not None:
            return lambda: show(self._game, str(player))
        if getattr(self.env, "render_mode", None) == "ansi":
            return lambda: self._drawing_for(player)
        return self._observation_renderer(player)

    def _drawing_for(self, player: Player) -> Content:
        """Return what the environment draws, or what the player observes where it prints its drawing and returns nothing."""
        drawing = self.env.render()
        if drawing is not None:
            return drawing_text(drawing)
        self._show[player] = self._observation_renderer(player)
        return self._show[player]()

    def _observation_renderer(self, player: Player) -> Callable[[], Content]:
        """Return the function that shows a player its observation."""
        space = self.env.observation_space(player)
        has_mask = isinstance(space, gym.spaces.Dict) and space.keys() == {"observation", "action_mask"}
        without_mask = has_mask and self._lists_legal_moves(player)
        show = make_renderer(self._game, space["observation"] if without_mask else space, self._title)
        if without_mask:
            return lambda: show(self._observation(player)["observation"])
        return lambda: show(self._observation(player))

    @property
    def prompt_problems(self) -> tuple[str, ...]:
        """What players cannot know from their prompts, each as a sentence that says what to give; empty if all is well."""
        if self._rules is not None or self._presentation.rules is not None:
            return ()
        is_drawn = self._obs_to_text is not None or getattr(self.env, "render_mode", None) == "ansi"
        is_plain = self._presentation is PLAIN and not is_drawn
        return find_problems(self.env, self.codecs, self._told, is_rendered_as_observed=is_plain)

    def _lists_legal_moves(self, player: Player) -> bool:
        """Say whether a player is told what its mask allows as a list of moves; any other mask is shown to it as it is."""
        return isinstance(self.env.action_space(player), gym.spaces.Discrete)

    def render_picture(self) -> Picture | None:
        """Return what the environment draws, where its render mode is ``"rgb_array"``."""
        return draw_game(self.env) if draws_itself(self.env) else None

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _MADE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()
        if self._seats:
            self._begin()
            for made, action in enumerate(self._actions):
                self._reseed_after(made)
                self._play(action)
            self._reseed_after(len(self._actions))
            self.__dict__.update(state)  # a game that was stopped from outside is over, though its moves leave it open

    # One game

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Begin a game.

        Args:
            seed: Given to the environment as it is, and begins the table's own random numbers, which give the seeds of the
                games without one.
            options: Given to the environment as they are.
        """
        if seed is None:
            seed = int(self._rng.integers(2**31 - 1))
        else:
            self._rng = np.random.default_rng(seed)
        self._begun_with = (seed, None if options is None else dict(options))
        self._actions: list[Any] = []
        self._reseeded: list[tuple[int, int]] = []
        """After how many moves the environment's random numbers began anew, and at which seed."""
        self._resampled: list[tuple[int, Player, int]] = []
        """After how many moves what is hidden from a player was dealt anew, and from which seed."""
        self._answered = 0
        self._was_stopped = False
        self._seats = {player: _Seat() for player in self.players}
        self._begin()

    def _begin(self) -> None:
        seed, options = self._begun_with
        self.env.reset(seed=seed, options=copy.deepcopy(options))
        self.terminations: dict[Player, bool] = dict.fromkeys(self.players, False)
        """For whom the game has ended by its rules."""
        self.truncations: dict[Player, bool] = dict.fromkeys(self.players, False)
        """For whom the game has ended by a limit."""
        self._last_shown: dict[Player, Content] = {}
        self.native_observations: dict[Player, Any] = {}
        self.was_truncated = False
        self._go_on()

    def reseed(self, seed: int) -> None:
        """Let the random numbers of the environment, and those of the table, begin anew."""
        self._rng = np.random.default_rng(seed)
        if self._seats:
            self._reseeded.append((len(self._actions), seed))
            reseed(self.env, seed)

    def resample_hidden(self, player: Player, rng: np.random.Generator) -> None:
        """Deal anew what is hidden from a player (see `TurnBasedGame.resample_hidden`); all others see the game as if for the first time.

        Raises:
            ConfigurationError: If the environment cannot.
        """
        seed = int(rng.integers(2**31))
        self._resample(player, seed)
        self._resampled.append((len(self._actions), player, seed))
        for other, seat in self._seats.items():
            if other != player:
                self._seats[other] = _Seat(earned=seat.earned, total=seat.total)

    def _resample(self, player: Player, seed: int) -> None:
        resample = self._presentation.resample
        if resample is None:
            raise ConfigurationError(f"{self._title} cannot deal anew what is hidden from {player}")
        resample(self._game, player, np.random.default_rng(seed))
        self._observed.clear()
        self._legal.clear()

    def _reseed_after(self, moves: int) -> None:
        """Let the environment's random numbers, and what is hidden, begin anew, if they did so after that many moves."""
        for made, seed in self._reseeded:
            if made == moves:
                reseed(self.env, seed)
        for made, player, seed in self._resampled:
            if made == moves:
                self._resample(player, seed)

    def move(self, message: Message) -> Played:
        """Play the action that a message names, for the player whose turn it is.

        Raises:
            ResetNeeded: If no game is running.
        """
        return self._move(message, Answers.read)

    def move_cut_off(self, message: Message) -> Played:
        """Play what a message certainly says that was cut off: a tool call, what stands in closed tags, or the whole name of an action.

        Raises:
            ResetNeeded: If no game is running.
        """
        return self._move(message, Answers.read_cut_off)

    def _move(self, message: Message, read: Callable[[Answers, Message], Any]) -> Played:
        player = self.turn
        if player is None:
            raise ResetNeeded("there is no game to continue: call reset() first")
        self._answered += 1
        codec = self.codecs[player]
        try:
            action = read(self._answers[player], message)
        except ActionNotFound as error:
            return self._refuse(player, str(error))
        if not self._is_legal(player, action):
            return self._refuse(player, f"You cannot play {codec.encode(action)} now.")
        if self._presentation.moves_are_public:
            news = f"{player} played: {codec.encode(action)}"
            for other, seat in self._seats.items():
                if other != player:
                    seat.news.append(news)
        self._actions.append(copy.deepcopy(action))  # an environment may write to what it is given
        rewards = self._play(action)
        self._stop_at_limit()
        return self._make_played(rewards, is_valid=True)

    def _is_legal(self, player: Player, action: Any) -> bool:
        space, mask = self._spaces[player], self._mask(player)
        if mask is not None and isinstance(space, gym.spaces.Discrete):
            return bool(mask[int(action) - int(space.start)])  # of all zeros: none is legal, and `sample_move` says so
        return allows(space, mask_of(space, mask), action)

    def _play(self, action: Any) -> dict[Player, float]:
        """Step the environment, and return what that earned the players."""
        self.env.step(action)
        rewards = {player: float(reward) for player, reward in self.env.rewards.items()}
        self._go_on()
        return rewards

    def _go_on(self) -> None:
        """Go on to the next player who is still in the game. PettingZoo wants a last step, of None, for each who is not."""
        env = self.env
        self._observed.clear()
        self._legal.clear()
        leaving: list[Player] = []
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            player = env.agent_selection
            self.terminations[player], self.truncations[player] = bool(env.terminations[player]), bool(env.truncations[player])
            self._last_shown[player] = self._show[player]()  # whoever has left is not observed any more
            self.native_observations[player] = self._observation(player)
            leaving.append(player)
            env.step(None)
            self._observed.clear()
        self.turn = env.agent_selection if env.agents else None
        if self.turn is None:
            for player in self.players:
                if not (self.terminations[player] or self.truncations[player]):  # the environment emptied `agents` itself
                    self.truncations[player] = bool(env.truncations.get(player))
                    self.terminations[player] = bool(env.terminations.get(player)) or not self.truncations[player]
                    leaving.append(player)
            self.was_truncated = any(self.truncations[player] and not self.terminations[player] for player in leaving)

    def _refuse(self, player: Player, why: str) -> Played:
        """Do not play an answer, and tell its player why."""
        self._seats[player].news.append(why)
        if self.on_invalid == "terminate":
            self._end(self.terminations)
        else:
            self._seats[player].news.append(self._legal_line(player))
            self._stop_at_limit()
        return self._make_played({player: self.invalid_reward}, is_valid=False)

    def _make_played(self, rewards: dict[Player, float], is_valid: bool) -> Played:
        for player, reward in rewards.items():
            self._seats[player].earned += reward
            self._seats[player].total += reward
        return Played(rewards, is_valid)

    def _stop_at_limit(self) -> None:
        if self._answered >= self.max_moves and self.turn is not None:
            self._end(self.truncations)
            self._was_stopped = self.was_truncated = True

    def _end(self, flags: dict[Player, bool]) -> None:
        """End the game for all who are still in it."""
        for player in self.players:
            flags[player] |= not (self.terminations[player] or self.truncations[player])
        self.turn = None

    def sample_move(self, player: Player, rng: np.random.Generator) -> Message:
        """Return a random legal action of the player whose turn it is.

        Raises:
            ConfigurationError: If the environment's mask allows none.
        """
        space, mask = self._spaces[player], self._mask(player)
        if mask is not None and isinstance(space, gym.spaces.Discrete):
            legal = np.flatnonzero(mask)
            if not len(legal):
                raise ConfigurationError(f"{self._title} lets {player} play, and its action mask allows no action: {mask!r}")
            action = space.dtype.type(space.start + rng.choice(legal))
        else:
            space.seed(int(rng.integers(2**31)))
            action = space.sample() if mask is None else space.sample(mask_of(space, mask))
        return AssistantMessage(self.codecs[player].encode(action))

    # What players are told

    def observe(self, player: Player) -> Content:
        """Return what a player was told since it was last asked for: rules, others' moves, rewards, and the game as it stands.

        Raises:
            ResetNeeded: If no game has begun.
            ConfigurationError: If there is no such player.
        """
        seat = self._seats.get(player)
        if seat is None:
            if not self._seats:
                raise ResetNeeded("no game has begun: call reset() first")
            raise ConfigurationError(f"there is no player {player!r} at this table; there are {', '.join(map(str, self.players))}")
        told: list[Content] = [] if seat.knows_rules else [self._prompts[player]]
        told += seat.news
        seat.knows_rules, seat.news = True, []
        if seat.saw != len(self._actions):
            seat.saw = len(self._actions)
            told.append(self._last_shown[player] if player in self._last_shown else self._show[player]())
            if player == self.turn:
                self.native_observations[player] = self._observation(player)
                told.append(self._legal_line(player))
        if seat.earned:
            told.append(f"You earned {seat.earned:g}.")
            seat.earned = 0.0
        closing = self._closing_message(player)
        if closing != seat.closing:
            told.append(closing)
            seat.closing = closing
        return join_contents([part for part in told if part])

    def _prompt(self, player: Player) -> str:
        presentation = self._presentation
        rules = self._rules if self._rules is not None else presentation.rules
        roles = presentation.roles or self._told.roles
        role = f" ({roles[self.players.index(player)]})" if len(roles) == len(self.players) else ""
        parts = [
            f"You are playing {self._title}.",
            (self._told.all if presentation is PLAIN else self._told.text) if rules is None else rules,
            f"Players: {', '.join(map(str, self.players))}. You are {player}{role}.",
            presentation.legend if self._obs_to_text is None else "",
            f"Actions: {self.describe_moves(player)}.",
            self._answers[player].instructions,
        ]
        return "\n\n".join(part for part in parts if part)

    def _closing_message(self, player: Player) -> str:
        if self.turn is None:
            is_cut_off = self._was_stopped or (self.truncations[player] and not self.terminations[player])
            end = f"The game was cut off after {self._answered} moves." if is_cut_off else "The game is over."
            return f"{end} Your total reward is {self._seats[player].total:g}."
        return "You are out of the game." if self.terminations[player] or self.truncations[player] else ""

    def end_flags(self, player: Player) -> tuple[bool, bool]:
        """Return how the game ended for a player, as PettingZoo has it: a player who is out by the rules is so while others go on."""
        return self.terminations[player], self.truncations[player]

    def _legal_line(self, player: Player) -> str:
        legal = self.legal_moves(player)
        return f"Legal actions: {', '.join(legal)}." if legal and len(legal) <= _MOST_LISTED else ""

    def rules(self, player: Player) -> str:
        """Return what a player is told before it is shown the game."""
        return self._prompts[player]

    def describe_moves(self, player: Player) -> str:
        """Return what an action is, in the words of the rules."""
        return (self._action_names is None and self._presentation.how_to_act) or self.codecs[player].listing()

    def legal_moves(self, player: Player) -> list[str] | None:
        """Return the texts of all actions that the environment's mask allows a player now.

        None if it has no mask, or one of a space whose actions are not numbered one by one: then the mask is shown as it is.
        """
        if player not in self._legal:
            self._legal[player] = self.codecs[player].legal_texts(self._mask(player))
        legal = self._legal[player]
        return None if legal is None else list(legal)

    def info(self, player: Player) -> dict[str, Any]:
        """Return what the environment tells a player beside its observation, without a mask that `legal_moves` tells as a list."""
        info = self.env.infos.get(player, {})
        is_listed = self._lists_legal_moves(player)
        return copy_info({name: value for name, value in info.items() if not (name == "action_mask" and is_listed)})

    def _observation(self, player: Player) -> Any:
        if player not in self._observed:
            self._observed[player] = self.env.observe(player)
        return self._observed[player]

    def _mask(self, player: Player) -> Any:
        """Return which actions are legal now: an array of 0 and 1, or None where the environment does not say."""
        return find_mask(self._observation(player), self.env.infos[player])
