"""`GameTurnsEnv`: the turns of a game: tasks are seeds, how a move is answered, what is shown of earlier ones, how episodes end.

It knows nothing of where the game is: `vfgym.wrappers.games.session` keeps one in this process for each player.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np

from vfgym.calls import Ready, ReadyList
from vfgym.copying import ATOMIC, deep_copy, new_memo
from vfgym.data import RewardBounds
from vfgym.envs.chat import check_split
from vfgym.envs.multi_turn import MultiTurnEnv
from vfgym.errors import ConfigurationError, InvalidMessage
from vfgym.lifecycle import stop
from vfgym.messages import Content, Message, as_messages, join_contents
from vfgym.overrides import inline_hook
from vfgym.rubrics import Rubric
from vfgym.rubrics.rubric_group import find_rewarding_functions
from vfgym.rubrics.scoring import UNKNOWN_BOUNDS, Bounds
from vfgym.state import State, TrajectoryStep
from vfgym.tasks import ProceduralTasks, Tasks, as_integer
from vfgym.wrappers.games.history import EARLIER_MOVES, PromptHistory, make_limits

NATIVE_OBSERVATION = "native_observation"
"""The item of an info that holds what the wrapped game itself gave as its observation."""


@dataclass(slots=True)
class Turn:
    """What a game answers to one move."""

    messages: list[Message]
    """What the model is shown next."""
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = field(default_factory=dict)
    is_valid: bool = True
    """Whether the message named a move at all; if not, the game stands as it was."""

    def __post_init__(self) -> None:
        # A mistake of the game's author is not an `Error`, which would end the episode as if it were part of it.
        try:
            self.messages = as_messages(self.messages, name="Turn.messages")  # kept, since an iterator can be read once only
        except InvalidMessage as error:
            raise TypeError(str(error)) from None
        if self.reward.__class__ is not float:
            try:
                self.reward = float(self.reward)
            except (TypeError, ValueError, OverflowError):
                raise TypeError(f"Turn.reward must be a number, got {self.reward!r}") from None


@dataclass
class GameState:
    """What a game changes at every move. Its attributes are items of the episode's state too: ``state["turn"]``."""

    turn: Turn | None = None
    """What the game answered to the last move; None before the first."""
    invalid_moves: int = 0
    """Answers in a row that named no move."""
    invalid_answers: int = 0
    """All answers that named no move, whatever the game made of them."""
    prompt_history: PromptHistory | None = None
    """What the prompts are made of, where they are limited."""


class GameMonitorRubric(Rubric):
    """Measures what every game has: ``invalid_answers``."""

    def __init__(self) -> None:
        super().__init__()
        self.add_metric(self.invalid_answers)

    def invalid_answers(self, state: State) -> float:
        """Return the number of the model's answers that named no move."""
        return float(getattr(state.game_state, "invalid_answers", 0))  # there is none where the game could not begin


def game_reward(step: TrajectoryStep) -> float:
    """Return what the game itself rewarded this move with."""
    return step["reward"] or 0.0


class GameTurnsEnv(MultiTurnEnv):
    """What all chat environments around games share, wherever the game is: tasks that are seeds, and how episodes end."""

    _refused_arguments: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("dataset", "eval_dataset", "few_shot"), "the tasks of a game are its seeds, and the game writes the prompt"
    )

    def __init__(
        self,
        *,
        max_turns: int = -1,
        max_invalid_moves: int = 10,
        history: int | None = None,
        images: int | None = None,
        max_prompt_tokens: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        rubric: Rubric | None = None,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            max_turns: Most answers of one episode; unlimited where it is not positive.
            max_invalid_moves: Messages in a row that name no move, after which the episode is truncated; `max_turns` where that is less.
            history: Moves that the model is shown again, each with what the game answered. None shows all of them; 0 shows
                nothing but the rules and what the game answered last. Answers that named no move since then are shown after
                it, since what they are told says nothing of the game. Results hold the whole conversation.
            images: Pictures that the model is shown: the newest ones. A note stands for each older one. None shows all of them.
            max_prompt_tokens: Most tokens of a prompt. Where it would be longer, the oldest moves are left out, which a note after the
                rules says; the rules and what the game answered last are always shown. It is an error if the first prompt is longer.
            count_tokens: Returns the number of tokens of a text; without it, four characters are one. A picture counts as 1,000.
            rubric: Scores episodes; the default emits the game's own rewards.
            **kwargs: Passed to `MultiTurnEnv`.

        Raises:
            ConfigurationError: If a number of moves, pictures or tokens is none.
        """
        self._refuse(kwargs)
        if rubric is None:
            rubric = Rubric()
            rubric.add_step_reward_func(game_reward)
        self._limits = make_limits(history, images, max_prompt_tokens, count_tokens)
        invalid = as_integer(max_invalid_moves)
        if invalid is None or invalid < 1:
            raise ConfigurationError(f"max_invalid_moves must be a whole number of at least 1, got {max_invalid_moves!r}")
        self.history, self.max_invalid_moves = self._limits.moves, invalid
        super().__init__(max_turns=max_turns, rubric=rubric, **kwargs)
        self._seeds = Tasks(ProceduralTasks(_make_seeded_task))
        self.add_rubric(GameMonitorRubric())

    # How it is played

    def replaced_hooks(self) -> Set[str]:
        """Return which hooks the machine does not do inline (see `ChatEnv.replaced_hooks`): prompts too, where they are limited."""
        replaced = super().replaced_hooks()
        return replaced | {"get_prompt_messages"} if self._limits else replaced

    def tasks_of(self, split: Any) -> Tasks:
        """Return the tasks of either split: one for each seed."""
        check_split(split)
        return self._seeds

    def has_tasks(self, split: str) -> bool:
        """Say that there are tasks of either split."""
        return True

    def set_tasks(self, split: str, rows: Any) -> None:
        """The tasks of a game are its seeds, which nothing can replace."""
        raise ConfigurationError(f"{type(self).__name__} plays a game, whose tasks are its seeds: they cannot be replaced")

    def choose_task(self, seed: int | None, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the task that stands for the seed: the one given, or the ``example_id``."""
        self.tasks_of(options.get("split", "train"))
        if "task" in options:
            raise ConfigurationError(f"{type(self).__name__} plays a game, whose tasks are seeds: there is no reset option 'task'")
        game_options = options.get("game_options")
        if not isinstance(game_options, Mapping | None):
            raise ConfigurationError(f"the reset option 'game_options' must be a dict, got {type(game_options).__name__}")
        if "example_id" in options:
            seed = as_integer(options["example_id"])
            if seed is None or seed < 0:
                raise ConfigurationError(f"the example_id of a game is its seed, an integer from 0; got {options['example_id']!r}")
        chosen = self._choose_player(options["player"]) if "player" in options else {}
        return {**_make_seeded_task(seed), "game_options": game_options, **chosen}

    def _choose_player(self, player: Any) -> dict[str, Any]:
        """Return what a task says of the reset option ``player``."""
        raise ConfigurationError(f"{type(self).__name__} is not a game for several players, so there is no 'player' to choose")

    def _begin(self, state: State, prompt: list[Message]) -> None:
        """Write what an episode begins with into its state."""
        system = [self.message_types["system"](self.system_prompt)] if self.system_prompt else []
        state["prompt"] = [*system, *as_messages(prompt, self.message_types, name="begin_game")]
        if self._limits:
            state.game_state.prompt_history = PromptHistory.begin(state["prompt"], self._limits)

    def _take(self, turn: Turn, state: State) -> None:
        step = state["trajectory"][-1]
        try:
            step["reward"] = turn.reward
        except AttributeError:
            raise TypeError(f"make_move must be a plain method that returns a Turn, got {type(turn).__name__}") from None
        step["extras"]["game_info"] = turn.info
        game_state: GameState = state.game_state
        game_state.turn = turn
        if turn.is_valid:
            game_state.invalid_moves = 0
        else:
            game_state.invalid_moves += 1
            self.note_invalid_answer(state)
        if game_state.prompt_history is not None:
            reply = as_messages(turn.messages, self.message_types, name="make_move")
            game_state.prompt_history.add(step["completion"], reply, self._limits, is_move=turn.is_valid)
        if turn.terminated or turn.truncated:
            state["final_env_response"] = turn.messages
        if not self.replaces("env_response"):
            state.reply = turn.messages

    def note_invalid_answer(self, state: State) -> None:
        """Note that the model's last answer named no move, whatever the game makes of it."""
        state["trajectory"][-1]["extras"]["invalid_answer"] = True
        state.game_state.invalid_answers += 1

    # What is shown

    @inline_hook
    def env_response(self, messages: list[Message], state: State) -> Any:
        """Show what the game answered. Can be awaited."""
        return ReadyList(state["turn"].messages)

    @inline_hook
    def get_prompt_messages(self, state: State) -> Any:
        """Return what the model answers next: everything, or the rules and as much of the last moves as the limits allow."""
        history: PromptHistory | None = state.get("prompt_history")
        if history is None:
            return super().get_prompt_messages(state)
        opening = self._drop_moves(state, history)
        return ReadyList(self._conversation(opening, state["trajectory"][history.first :], history.rendered[history.first :]))

    def _drop_moves(self, state: State, history: PromptHistory) -> list[Message]:
        """Leave out the oldest turns that are more than the limits allow, and return what the prompt begins with then."""
        limits = self._limits
        if limits.moves is not None and len(history.ends) > limits.moves:
            history.drop_before(history.ends[-1 - limits.moves])
        opening = self._reopen(state, history) if history.first else history.prompt
        if limits.tokens is not None:
            while history.first < len(history.rendered) and limits.count(opening) + history.total > limits.tokens:
                history.drop_before(history.first + 1)
                opening = self._reopen(state, history)
        return opening

    def render_completion(self, state: State) -> Any:
        """Set ``state["completion"]``: the whole conversation after the prompt, however little of it the model was shown at a time.

        It ends with what the game answered to the last move, also where a limit ended the episode.
        """
        trajectory, final = state["trajectory"], state["final_env_response"]
        turn: Turn | None = state.get("turn")  # none where the game did not even begin
        history: PromptHistory | None = state.get("prompt_history")
        if history is not None:
            completion = self._conversation([], trajectory, history.replies)
        elif turn is not None and not self.replaces("env_response") and trajectory and "game_info" in trajectory[-1]["extras"]:
            completion = [*trajectory[-1]["prompt"][len(state["prompt"]) :], *trajectory[-1]["completion"]]
            completion += as_messages(turn.messages, self.message_types, name="make_move")
        else:  # the last move was not made, or the author writes what is shown
            return super().render_completion(state)
        if final and (turn is None or final is not turn.messages):  # an author's own last words
            completion += as_messages(final, self.message_types, name="final_env_response")
        state["completion"] = completion
        return Ready()

    def _conversation(self, opening: list[Message], steps: list[TrajectoryStep], replies: list[list[Message]]) -> list[Message]:
        """Return `opening` and some moves, each with what the game answered where that was shown."""
        moves = zip_longest(steps, replies)
        return [*opening, *(message for step, reply in moves for message in (*step["completion"], *(reply or ())))]

    def _reopen(self, state: State, history: PromptHistory) -> list[Message]:
        """Return a prompt that continues a game: the rules, and what the game answered last before the first turn that is shown."""
        *system, prompt = history.prompt
        note = [] if self._limits.tokens is None else [EARLIER_MOVES]
        observation, feedback = history.last_observation(), history.last_feedback()
        if observation is None:  # no move was made yet, and the prompt has rules and observation
            contents = [prompt["content"], *note]
        else:
            contents = [state.get("rules", prompt["content"]), *note, *self.rendered_in(observation)]
        if feedback is not None:
            contents += self.rendered_in(feedback)
        return [*system, self.message_types["user"](join_contents(contents))]

    def rendered_in(self, reply: list[Message]) -> list[Content]:
        """Return what of the messages that answered a move says how the game stands: the contents of all of them."""
        return [message["content"] for message in reply if message["content"]]

    @stop(priority=50)
    def game_over(self, state: State) -> bool:
        """Stop when the game is over, before any limit counts."""
        turn = state["turn"]
        return turn is not None and bool(turn.terminated)

    @stop(priority=49)
    def game_truncated(self, state: State) -> bool:
        """Stop when a limit of the game's own cut it off."""
        turn = state["turn"]
        return turn is not None and bool(turn.truncated)

    @stop(priority=10)
    def too_many_invalid_moves(self, state: State) -> bool:
        """Stop when the model did not find a valid move for too long: `max_invalid_moves` answers, or all that `max_turns` allows."""
        most = min(self.max_invalid_moves, self.max_turns) if self.max_turns > 0 else self.max_invalid_moves
        return bool(state["invalid_moves"] >= most)

    _known_stops = MultiTurnEnv._known_stops | {game_over, game_truncated, too_many_invalid_moves}

    def may_stop(self, state: State) -> bool:
        """Say whether any stop condition may hold (see `MultiTurnEnv.may_stop`)."""
        game_state: GameState | None = state.game_state
        if game_state is None or game_state.invalid_moves:  # a game that could not begin has no state
            return True
        turn = game_state.turn
        return (turn is not None and (turn.terminated or turn.truncated)) or super().may_stop(state)

    _game_stops: ClassVar[frozenset[str]] = frozenset({"game_over", "game_truncated"})
    """Stop conditions that say that the game itself ended."""

    def end_flags(self, state: State) -> tuple[bool, bool]:
        """Keep the game's own termination and truncation apart."""
        turn: Turn | None = state.get("turn")
        if state["stop_condition"] in self._game_stops and turn is not None and (turn.terminated or turn.truncated):
            return turn.terminated, turn.truncated
        return super().end_flags(state)

    def listed_moves(self, state: State) -> list[str]:
        """Return what can be played now, each move as the rules list it; empty where neither they nor the game list moves."""
        return []

    def describe_moves(self, state: State) -> str:
        """Return what can be played now, in the words of the rules; empty where nothing but the rules themselves says it."""
        return ""

    def rules_of(self, state: State) -> Content | None:
        """Return what of the prompt stays true while the game goes on, for whoever is to answer; None where that is not known."""
        rules: Content | None = state.get("rules")
        return rules

    def oracle(self, state: State) -> Any:
        """No best move is known."""
        return None

    # The range of rewards

    _makes_moves: ClassVar[tuple[str, ...]] = ("apply_action",)
    """Methods of which an author's own may reward moves otherwise than the game does."""

    def _reward_bounds(self) -> Bounds:
        """Return the bounds of the game's rewards, where they are known and nothing else scores an episode."""
        functions = find_rewarding_functions(self.rubric)
        is_games_own = functions is not None and all(each.plan.func in self._game_rewards and each.weight == 1.0 for each in functions)
        is_librarys = all(getattr(type(self), name).__module__.startswith("vfgym.") for name in self._makes_moves)
        return self._game_reward_bounds() if is_games_own and is_librarys else UNKNOWN_BOUNDS

    _game_rewards: ClassVar[tuple[Callable[..., Any], ...]] = (game_reward,)
    """The functions that pass on the game's own rewards."""

    def _game_reward_bounds(self) -> Bounds:
        """Return the bounds of the sum of rewards that the game itself can give in an episode."""
        return UNKNOWN_BOUNDS

    def _bounds_of(self, known: RewardBounds, moves: int | None, invalid_reward: float, answers: int | None) -> Bounds:
        """Return the bounds of the sum of rewards of an episode, which follow from its limits.

        Args:
            known: What is known of the game.
            moves: Most moves of an episode; None for no limit.
            invalid_reward: What an answer is rewarded with that names no move.
            answers: Most such answers of an episode; None for no limit.
        """
        knows_highest = "highest" in known or "highest_move" in known
        return (
            _sum_over(known.get("episode", 0.0), (known.get("move", 0.0), moves), (min(invalid_reward, 0.0), answers)),
            _sum_over(known.get("highest", 0.0), (known.get("highest_move", 0.0), moves), (max(invalid_reward, 0.0), answers))
            if knows_highest
            else None,
        )


def _sum_over(once: float, *repeated: tuple[float, int | None]) -> float | None:
    """Return a sum of rewards, some of which come so many times at most; None where that is not limited."""
    total = float(once)
    for reward, most in repeated:
        if reward:
            if most is None:
                return None
            total += reward * most
    return total


def copy_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep copy of a game's info. A value that cannot be copied (a lock, a generator) is in it as it is."""
    return {key: copy_value(value) for key, value in info.items()}


def copy_value(value: Any) -> Any:
    """Return a deep copy of something of a game's; what cannot be copied is returned as it is."""
    cls = value.__class__
    if cls in ATOMIC or issubclass(cls, np.generic):
        return value
    if cls is np.ndarray and value.dtype != object:
        return value.copy()
    try:
        return deep_copy(value, new_memo())
    except Exception:  # whatever its __deepcopy__ or __reduce_ex__ raises
        return value


def _make_seeded_task(seed: int | None) -> dict[str, Any]:
    """Return the task that stands for a game's seed; -1 names a game that continues its own random numbers."""
    return {"prompt": [], "example_id": -1 if seed is None else seed, "seed": seed}
