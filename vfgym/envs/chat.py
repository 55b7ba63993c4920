"""`ChatEnv`: the definition of an LLM environment (tasks, rubric, tools, hooks), which is a Gymnasium environment too."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Awaitable, Iterable, Mapping, Sequence, Set
from enum import Enum
from typing import Any, ClassVar, Self, cast

import numpy as np

from vfgym.aio.steps import Steps, eager, run_async, run_each, run_handlers, run_sync
from vfgym.aio.threads import is_off_loop, off_loop
from vfgym.calls import CallPlan, Ready
from vfgym.context import in_force
from vfgym.copying import ATOMIC
from vfgym.endings import TRUNCATING_STOPS
from vfgym.envs.identity import Identity, digest_arguments
from vfgym.envs.seat import PLAYERS_OWN, EpisodeSeat
from vfgym.envs.signatures import FullSignature
from vfgym.episode import BaseEpisode
from vfgym.episode.hooks import Hooks, MarkedMethod, NamedCall
from vfgym.episode.inversion import InvertedEpisode
from vfgym.episode.stops import check_stops
from vfgym.errors import ConfigurationError, UnknownArgument, did_you_mean
from vfgym.lifecycle import (
    Kind,
    Marked,
    discover_decorated,
    discover_marks,
    forget_teardown,
    is_blocking,
    register_teardown,
    run_cleanups,
)
from vfgym.messages import MESSAGE_TYPES, Message, MessageTypes, Response, as_messages
from vfgym.output.html import html_table
from vfgym.output.pictures import Picture
from vfgym.output.redaction import redact_data, with_secrets
from vfgym.overrides import check_hooks, find_put_on, find_replaced, hook, inline_hook, items_of, kind_of, warn_of_hidden
from vfgym.parsers import Parser
from vfgym.reseeding import SeededNumbers
from vfgym.rubrics import Rubric, RubricGroup
from vfgym.rubrics.rubric import find_marked_functions
from vfgym.rubrics.rubric_group import find_reward_bounds
from vfgym.rubrics.scoring import Bounds
from vfgym.spaces import ChatSpace, Sampler, TextSampler, ToolCallSampler
from vfgym.state import RolloutTiming, State, TokenUsage, UsageTracker
from vfgym.tasks import DatasetBuilder, Row, Rows, Tasks
from vfgym.tools import Tool, as_tool

_HANDLED: tuple[Kind, ...] = ("stop", "setup", "cleanup", "update")
_HANDLER_NAMES = frozenset({"state", "task", "env"})
_RUBRIC_HOOKS = frozenset({"score_rollout", "score_group", "cleanup", "teardown"})
_HOOK_FOR = {
    "reset": "setup_state(state)",
    "areset": "setup_state(state)",
    "step": "env_response(messages, state), or apply_action(message, state) for a game's move",
    "astep": "env_response(messages, state), or apply_action(message, state) for a game's move",
}


class ChatEnv(EpisodeSeat):
    """An environment for language models, as tasks, a rubric and hooks.

    It is a `gymnasium.Env`: observations are conversations, actions are assistant messages. One object is a *definition*:
    hooks receive the `State` of the episode that they are called for, ``self`` is shared by all episodes (`fork`), and what
    belongs to one episode is kept in its state.

    Subclass `MultiTurnEnv` and write its hooks, or write `rollout` to own the whole loop.
    """

    message_types: ClassVar[MessageTypes] = MESSAGE_TYPES
    """The message class for each role."""
    dropped_columns: ClassVar[frozenset[str]] = frozenset()
    """Columns of a dataset that are not part of its tasks."""
    state_type: ClassVar[type[State]] = State
    timing_type: ClassVar[type[RolloutTiming]] = RolloutTiming
    tool_type: ClassVar[type[Tool]] = Tool

    __signature__ = FullSignature()

    _may_shadow_face: ClassVar[bool] = False
    _refused_arguments: ClassVar[Mapping[str, str]] = {}
    """Arguments of base classes that this class settles itself, and why."""

    timeout_seconds: float | None = None
    """Seconds after which an episode ends (see `vfgym.MultiTurnEnv`)."""
    _is_torn_down = False
    _replaced_hooks: ClassVar[frozenset[str]] = frozenset()
    _arguments = ""
    """A digest of what it was made with."""
    _hook_names: ClassVar[tuple[str, ...]] = ("is_completed",)
    """Hooks that may be plain, and so may be marked as `vfgym.blocking`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_hooks(cls)
        warn_of_hidden(cls)
        cls._replaced_hooks = find_replaced(cls)
        if not cls._may_shadow_face:
            for name in _HOOK_FOR:
                if getattr(cls, name) is getattr(EpisodeSeat, name):
                    continue
                raise ConfigurationError(
                    f"{cls.__name__} overrides {name}(), which would bypass the episode machine (rollouts, scoring, wrappers):"
                    f" write {_HOOK_FOR[name]} instead"
                )
        if discover_marks(cls, "advantage"):
            raise ConfigurationError(f"{cls.__name__} marks a method as @advantage: advantages are rewards minus the group's mean here")
        if discover_marks(cls, "setup") and not hasattr(cls, "setup_state"):
            raise ConfigurationError(f"{cls.__name__} writes its own rollout(), which @setup methods are not part of: call them there")
        for kind in _HANDLED:
            for marked in discover_marks(cls, kind):
                _check_handler(cls, kind, marked)
        hooks = {*cls._hook_names, *(marked.name for kind in _HANDLED for marked in discover_marks(cls, kind))}
        for name in hooks:
            hook = getattr(cls, name, None)
            if hook is not None and is_blocking(hook) and not is_off_loop(hook):
                setattr(cls, name, off_loop(hook))

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Note what the environment is made with (see `identity`)."""
        self = super().__new__(cls)
        self._arguments = digest_arguments(cls, args, kwargs)
        return self

    def __init__(
        self,
        dataset: Rows | Iterable[Row] | DatasetBuilder | None = None,
        eval_dataset: Rows | Iterable[Row] | DatasetBuilder | None = None,
        system_prompt: str | None = None,
        few_shot: Sequence[Mapping[str, Any]] | None = None,
        parser: Parser | None = None,
        rubric: Rubric | None = None,
        sampling_args: dict[str, Any] | None = None,
        *,
        tool_defs: Sequence[Tool | Mapping[str, Any]] | None = None,
        env_id: str | None = None,
        env_args: dict[str, Any] | None = None,
        max_seq_len: int | None = None,
        score_rollouts: bool = True,
        pass_threshold: float = 0.5,
        failure_reward: float | None = None,
        render_mode: str | None = None,
        **unknown: Any,
    ) -> None:
        """Define an environment.

        Args:
            dataset: Training tasks: rows with a ``prompt`` or a ``question`` (see `vfgym.tasks`). None for none.
            eval_dataset: Evaluation tasks; where it is None, evaluation uses `dataset`.
            system_prompt: Put before every question, and every prompt of the dataset that has no system message (see `vfgym.tasks.Tasks`).
            few_shot: Messages between the system prompt and a row's question.
            parser: Reads answers from completions; hooks find it as ``self.parser``.
            rubric: Scores episodes; the default scores 0.
            sampling_args: Generation parameters of every rollout, where the call gives no others.
            tool_defs: Tools that the model is told of.
            env_id: Name of the environment in results.
            env_args: Arguments the environment was made with, for results.
            max_seq_len: Tokens after which the stored token data of a turn is cut.
            score_rollouts: Whether episodes are scored at all.
            pass_threshold: Reward from which an episode counts as passed, in pass@k.
            failure_reward: What rollouts that failed or were cut count with at most in means (see `vfgym.results`): at most the lowest
                reward that an episode can have. None where that is not known; then a run with such rollouts has no mean.
            render_mode: ``"ansi"``, ``"human"``, ``"rgb_array"`` or None (see `render`).
            **unknown: Refused.

        Raises:
            UnknownArgument: If an argument does not exist.
        """
        self._take_unknown_arguments(unknown)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ConfigurationError(f"render_mode must be one of {self.metadata['render_modes']} or None, got {render_mode!r}")
        if not isinstance(rubric, Rubric | None):
            raise ConfigurationError(f"rubric must be a vfgym.Rubric, got {kind_of(rubric)}: wrap functions in vfgym.Rubric(...)")
        if parser is not None and (isinstance(parser, type) or not hasattr(parser, "parse_answer")):
            raise ConfigurationError(f"parser must be a vfgym.Parser (or have parse and parse_answer), got {kind_of(parser)}")
        self.render_mode = render_mode
        self.system_prompt = system_prompt
        self.few_shot = few_shot
        self.parser = Parser() if parser is None else parser
        self.rubric: Rubric = Rubric() if rubric is None else rubric
        self.sampling_args: dict[str, Any] = with_secrets(dict(sampling_args or {}))
        self.tool_defs: list[Tool] = [as_tool(tool, self.tool_type) for tool in items_of(tool_defs, "tool_defs", "tools")]
        self.env_id = env_id or ""
        self.env_args = dict(env_args or {})
        self.max_seq_len = max_seq_len
        self.score_rollouts = score_rollouts
        self.pass_threshold = pass_threshold
        self.failure_reward = failure_reward
        self._tasks = {
            split: self._tasks_of_rows(source) for split, source in (("train", dataset), ("eval", eval_dataset)) if source is not None
        }
        self.hooks = Hooks(
            stops=self._handlers("stop"),
            setups=self._handlers("setup"),
            cleanups=self._handlers("cleanup"),
            updates=self._handlers("update"),
        )
        if find_marked_functions(self):
            self.add_rubric(Rubric.of_marked(self))
        self.observation_space = ChatSpace()
        self._complete_definition()
        if discover_decorated(self, "teardown") or self.rubric.has_teardown:
            register_teardown(self)

    @classmethod
    def argument_names(cls) -> list[str]:
        """Return the names of all arguments that the constructor takes, those of its base classes included."""
        constructors = [vars(base)["__init__"] for base in cls.__mro__ if issubclass(base, ChatEnv) and "__init__" in vars(base)]
        parameters = [parameter for constructor in constructors for parameter in inspect.signature(constructor).parameters.values()]
        names = {parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
        return sorted(names - {"self"} - cls._refused_arguments.keys())

    def _refuse(self, arguments: Mapping[str, Any]) -> None:
        """Raise if there is an argument that this class settles itself."""
        for name, reason in self._refused_arguments.items():
            if name in arguments:
                raise UnknownArgument(f"{type(self).__name__} takes no {name!r}: {reason}")

    def _complete_definition(self) -> None:
        """Do what is left once everything that the arguments say is in place."""

    def _take_unknown_arguments(self, unknown: dict[str, Any]) -> None:
        if unknown:
            known = self.argument_names()
            name = next(iter(unknown))
            raise UnknownArgument(
                f"{type(self).__name__} has no argument {name!r}.{did_you_mean(name, known)} It takes {', '.join(known)}."
            )

    def replaces(self, name: str) -> bool:
        """Say whether a hook whose own version the library does inline is replaced: in a subclass, or on this object."""
        return name in self._replaced_hooks or name in self.__dict__

    def replaced_hooks(self) -> Set[str]:
        """Return which of the hooks are replaced whose own version the machine does inline (see `replaces`): asked once an episode."""
        put_on = find_put_on(self)
        return self._replaced_hooks | put_on if put_on else self._replaced_hooks

    def _handlers(self, kind: Kind) -> list[MarkedMethod]:
        handlers = []
        for name, method, _ in discover_decorated(self, kind):
            plan = CallPlan(method)
            asks_for_state_only = plan.names == ("state",) and not plan.takes_any
            handlers.append(MarkedMethod(name, method if asks_for_state_only else NamedCall(plan, self)))
        return handlers

    @property
    def definition(self) -> ChatEnv:
        """The environment itself."""
        return self

    # Going back

    @property
    def identity(self) -> Identity:
        """Which environment this is: two of one identity play the same episodes."""
        cls = type(self)
        return Identity("" if self.spec is None else self.spec.id, f"{cls.__module__}.{cls.__qualname__}", self._arguments)

    @property
    def can_go_back(self) -> bool:
        """Whether its episodes can be copied in the middle (see `EpisodeSeat.snapshot`), as far as the environment decides that."""
        return False

    def resample_hidden(self, state: State, rng: np.random.Generator) -> None:
        """Draw anew what the policy has not seen, alike with all that it has seen (``branch(seed, hidden="resample")``).

        Args:
            state: The state of a branch.
            rng: What is drawn with.

        Raises:
            ConfigurationError: If the environment cannot.
        """
        raise ConfigurationError(
            f"{type(self).__name__} cannot draw anew what the policy has not seen: branch without hidden='resample', or override"
            " resample_hidden"
        )

    def copy_resources(self, state: State) -> Awaitable[Mapping[int, Any]]:
        """Copy what an episode has outside of this process, such as a sandbox, so that the episode can be copied in the middle.

        Returns:
            What a copy of the state has in place of each thing that stands for such a resource, by the `id` of that: data, which can be
            copied and pickled, until `open_resources` makes the resource of it.

        Raises:
            EpisodeNotPicklable: If it cannot be copied as it stands.
        """
        return Ready({})

    def open_resources(self, state: State) -> Awaitable[None]:
        """Make, in the copy of a state with which somebody goes on, what `copy_resources` has copied."""
        return Ready()

    def shared_parts(self) -> dict[str, Any]:
        """Return by names what its episodes share. Another environment of its identity has the like under the same names."""
        parts: dict[str, Any] = {"": self, "message_types": self.message_types}
        parts |= {f"self.{name}": value for name, value in vars(self).items() if name not in PLAYERS_OWN and _is_shared(value)}
        parts |= {f"tool {number}": tool for number, tool in enumerate(self.tool_defs)}
        for number, (function, objects) in enumerate(self.rubric.step_scorers()):
            parts |= {f"step function {number}": function, f"objects of step function {number}": objects}
        return parts

    # Going on in another process

    def state_dict(self) -> dict[str, Any]:
        """Return what the environment itself has learned from its episodes (the levels of a curriculum, say), as plain data.

        States of vectors and of `vfgym.rollout` hold it. Here that is nothing.
        """
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with what `state_dict` returned.

        Raises:
            ConfigurationError: If it does not fit; the environment stands as it was.
        """
        if state:
            raise ConfigurationError(f"this state does not fit: {type(self).__name__} keeps nothing itself, got {state!r:.60}")

    # Tasks

    @property
    def tasks(self) -> Tasks:
        """The training tasks; the evaluation tasks where there are no others."""
        return self.tasks_of("train")

    @property
    def eval_tasks(self) -> Tasks:
        """The evaluation tasks; the training tasks where there are no others."""
        return self.tasks_of("eval")

    def tasks_of(self, split: Any) -> Tasks:
        """Return the tasks of the split ``"train"`` or ``"eval"``; those of the other one where it has none.

        Raises:
            ConfigurationError: If it is neither.
        """
        check_split(split)
        if not self._tasks:
            self._tasks["train"] = Tasks(None, system_prompt=self.system_prompt, types=self.message_types)
        other = "eval" if split == "train" else "train"
        return self._tasks[split if split in self._tasks else other]

    def has_tasks(self, split: str) -> bool:
        """Say whether there are tasks of this split itself."""
        return split in self._tasks

    def set_tasks(self, split: str, rows: Rows | Iterable[Row] | DatasetBuilder) -> None:
        """Replace the tasks of a split, for every episode that starts from now on."""
        check_split(split)
        self._tasks[split] = self._tasks_of_rows(rows)

    def set_system_prompt(self, system_prompt: str | None) -> None:
        """Replace the system prompt, for every episode that starts from now on. Prompts with a system message of their own keep it."""
        self.system_prompt = system_prompt
        for tasks in self._tasks.values():
            tasks.set_system_prompt(system_prompt)

    def _tasks_of_rows(self, rows: Any) -> Tasks:
        return Tasks(rows, system_prompt=self.system_prompt, few_shot=self.few_shot, types=self.message_types, dropped=self.dropped_columns)

    def choose_task(self, seed: int | None, options: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the input of the episode that reset options (or, for a game, the seed) choose; None to take the next task.

        Raises:
            ConfigurationError: If an option does not fit.
        """
        tasks = self.tasks_of(options.get("split", "train"))
        if "game_options" in options:
            raise ConfigurationError(f"{type(self).__name__} is not a wrapped game, so there are no 'game_options'")
        if "player" in options:
            raise ConfigurationError(f"{type(self).__name__} is not a game for several players, so there is no 'player' to choose")
        if "task" in options:
            row = options["task"]
            if not isinstance(row, Mapping):
                raise ConfigurationError(f"the reset option 'task' must be a row (a dict), got {type(row).__name__}")
            return {"example_id": -1, **tasks.copy_input(row, "the reset option 'task'")}
        return tasks.input(tasks.index_of(options["example_id"])) if "example_id" in options else None

    def routed(self, task: dict[str, Any]) -> tuple[ChatEnv, dict[str, Any]]:
        """Return the environment that plays a task, and the task as it knows it: for all but a group, what is given."""
        return self, task

    def action_sampler(self) -> Sampler:
        """Return what samples the action space: calls of the tools, or text where there are none."""
        return ToolCallSampler(self.tool_defs) if self.tool_defs else TextSampler()

    # Rollouts

    @inline_hook
    async def init_state(self, input: Row, client: Any = None, model: str = "", sampling_args: dict[str, Any] | None = None) -> State:
        """Return the state that an episode starts from.

        Args:
            input: A dataset row, or the input that was made of one. It is copied.
            client: Who is asked for messages; None where an agent steps.
            model: Name of the model.
            sampling_args: Generation parameters.
        """
        return self.initial_state(self.tasks_of("train").copy_input(input), client, model, sampling_args)

    def initial_state(self, task: dict[str, Any], client: Any, model: str, sampling_args: dict[str, Any] | None) -> State:
        """Return the state that an episode of a task of its own starts from."""
        info = task.get("info")
        tool_defs = info.get("tool_defs") if isinstance(info, Mapping) else None
        usage = UsageTracker()
        if self.sampling_args:
            sampling_args = {**self.sampling_args, **(sampling_args or {})}
        if sampling_args:
            sampling_args = with_secrets(sampling_args)
        state = self.state_type(
            input=task,
            task=task.get("task", task),
            client=client,
            model=model,
            sampling_args=sampling_args,
            is_completed=False,
            is_truncated=False,
            tool_defs=[as_tool(tool, self.tool_type) for tool in tool_defs] if tool_defs else self.tool_defs.copy(),
            trajectory=[],
            completion=None,
            usage_tracker=usage,
            usage=usage,
            trajectory_id=os.urandom(16).hex(),
            reward=None,
            metrics=None,
            error=None,
            final_env_response=None,
            stop_condition=None,
            ending=None,
            timing=self.timing_type(),
        )
        state.time_limit = self.timeout_seconds
        authored = in_force().authored
        if authored is not None and authored.env is self and client is not None:  # a seat's episode, in which nobody is asked, is another
            authored.made.append(state)
        return state

    @hook
    async def rollout(self, input: Row, client: Any, model: str, sampling_args: dict[str, Any] | None = None) -> State:
        """Play one episode by asking `client`, and return its state, not scored.

        Override it to own the whole loop; the environment can then still be stepped.
        """
        raise NotImplementedError(f"{type(self).__name__} must write rollout(), or subclass MultiTurnEnv and write env_response()")

    async def get_model_response(
        self,
        state: State,
        prompt: Any,
        client: Any = None,
        model: str | None = None,
        tool_defs: Sequence[Tool] | None = None,
        sampling_args: dict[str, Any] | None = None,
    ) -> Response:
        """Ask a client for the next message, and count the tokens.

        Args:
            state: The episode; it gives what the other arguments leave out.
            prompt: The conversation to answer.
            client: Who is asked.
            model: Name of the model.
            tool_defs: Tools that the model may call.
            sampling_args: Generation parameters.
        """
        client = state["client"] if client is None else client
        if client is None:
            raise ConfigurationError("there is no client to ask: a rollout needs one (step() needs none)")
        if prompt.__class__ is not list:
            prompt = as_messages(prompt, self.message_types, name="prompt")
        tools = state["tool_defs"] if tool_defs is None else tool_defs
        arguments = state["sampling_args"] if sampling_args is None else sampling_args
        response: Response = await client.get_response(
            prompt=prompt, model=model or state["model"], tools=list(tools) or None, sampling_args=arguments or {}, state=state
        )
        self.increment_state_usage_from_response(state, response)
        return response

    @inline_hook
    async def is_completed(self, state: State, **kwargs: Any) -> bool:
        """Check the stop conditions, the ones with higher priority first.

        Args:
            state: The episode.
            **kwargs: For overrides; the library's conditions know of nothing but the state and the environment.
        """
        return await run_async(check_stops(self.hooks.stops, state))

    @inline_hook
    @eager
    def cleanup(self, state: State) -> Steps[None]:
        """Run the cleanup handlers of one rollout, those with higher priority first. Can be awaited.

        One that fails is recorded in ``state["cleanup_errors"]`` and stops nothing.
        """
        yield from run_cleanups(self.hooks.cleanups, state, state)

    def new_episode(self, session: Any = None, numbers: SeededNumbers | None = None) -> BaseEpisode:
        """Return an episode of this environment that has not begun."""
        return InvertedEpisode(self, session, numbers)

    def end_flags(self, state: State) -> tuple[bool, bool]:
        """Return ``(terminated, truncated)`` of an episode that neither failed nor was cut: whether its task ended, or a limit of the task.

        Override it where the stop condition does not tell; or write ``state["ending"] = "truncated"`` in a stop condition of one's own.
        """
        truncated = state["stop_condition"] in TRUNCATING_STOPS
        return not truncated, truncated

    def step_info(self, state: State) -> dict[str, Any] | None:
        """Return what ``info`` tells besides (``legal_actions``, say); None for nothing. Nothing in it may be shared."""
        return None

    def render_picture(self, state: State) -> Picture | None:
        """Return what an episode looks like, for ``render_mode="rgb_array"``; None to draw the end of its conversation.

        A wrapped game that draws itself returns its own picture. Override it for an environment that has something to show.
        """
        return None

    def oracle(self, state: State) -> Any:
        """Return a right answer to the conversation, as an action, or None where none is known.

        The default knows the task's ``answer``.
        """
        answer = state.get("answer")
        return None if answer is None else str(answer)

    def random_action(self, state: State, rng: np.random.Generator) -> Any:
        """Return a random move that means something now, for whoever plays at random; None where a sample of the action space must do.

        Args:
            state: The episode.
            rng: Whoever plays's random numbers; those of the environment are left alone.
        """
        return None

    def why_no_action(self, message: Message, state: State) -> str | None:
        """Say why an answer plays nothing, for whoever wants to ask for another one; it is not played.

        Args:
            message: The answer.
            state: The episode, which stays as it is.

        Returns:
            What is wrong, in words for who answered. None where it plays something, and where only playing it tells.
        """
        return None

    @hook
    def close_session(self, session: Any) -> Any:
        """Release what was kept in ``state.session`` between the episodes of one player. Plain or async."""

    # Usage

    def get_state_usage(self, state: State) -> TokenUsage | None:
        """Return the tokens counted so far, or None where none were reported."""
        tracker = state["usage_tracker"]
        return cast(TokenUsage, dict(tracker)) if tracker.seen else None

    def increment_state_usage(self, state: State, input_tokens: float = 0, output_tokens: float = 0) -> None:
        """Count tokens.

        Raises:
            ValueError: If a number is negative.
        """
        state["usage_tracker"].add(input_tokens, output_tokens)

    def increment_state_usage_from_response(self, state: State, response: object) -> None:
        """Count the tokens that a response (of this library or of an SDK) reports."""
        usage = getattr(response, "usage", None)
        if usage is None:
            return
        counts = [_usage_field(usage, *names) for names in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))]
        state["usage_tracker"].add(*counts)

    # Configuration

    def set_max_seq_len(self, max_seq_len: int | None) -> None:
        """Set the most tokens of a turn's token data."""
        self.max_seq_len = max_seq_len

    @property
    def failure_reward(self) -> float | None:
        """What rollouts that failed or were cut count with at most in means: at most the lowest reward that an episode can have.

        None where that is not known.

        That of a known game follows from its rules, as long as its own rewards are all that scores an episode, and that of a rubric from
        what its functions declare.
        """
        return self._failure_reward if self._failure_reward is not None else self._reward_bounds()[0]

    @failure_reward.setter
    def failure_reward(self, failure_reward: float | None) -> None:
        is_number = isinstance(failure_reward, int | float | np.number) and not isinstance(failure_reward, bool)
        if failure_reward is not None and not (is_number and math.isfinite(failure_reward)):
            raise ConfigurationError(
                "failure_reward must be a finite number, at most the lowest reward that an episode can have, or None where that is not"
                f" known; got {failure_reward!r}"
            )
        self._failure_reward = None if failure_reward is None else float(failure_reward)
        if self._is_defined:
            self.check_failure_reward()

    _is_defined = False
    """Whether its constructor has come so far that what it can earn is known."""

    def check_failure_reward(self) -> None:
        """Refuse a `failure_reward` that is above all that an episode can earn: whoever fails would gain by it.

        Raises:
            ConfigurationError: If it is.
        """
        declared = self._failure_reward
        highest = None if declared is None else self._reward_bounds()[1]
        if declared is not None and highest is not None and declared > highest:
            raise ConfigurationError(
                f"failure_reward is {declared:g}, and no episode can earn more than {highest:g}: failing would pay. Give at most the lowest"
                " reward that an episode can have"
            )

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The lowest and the highest reward that an episode can have, or a wider range; None where either is not known.

        That of a known game follows from its rules, and that of a rubric from the ranges of its functions (`Rubric.add_reward_func`,
        ``@vfgym.reward(range=(0, 1))``). Intervals of means use it (see `vfgym.results.intervals`).
        """
        low, high = self._reward_bounds()
        return None if low is None or high is None else (low, high)

    def _reward_bounds(self) -> Bounds:
        """Return the lowest reward that an episode can have, or less, and the highest, or more, as far as they are known."""
        return find_reward_bounds(self.rubric)

    def set_score_rollouts(self, score_rollouts: bool) -> None:
        """Say whether episodes are scored."""
        self.score_rollouts = score_rollouts

    @property
    def requires_group_rollouts(self) -> bool:
        """Whether the rubric scores whole groups, so that episodes cannot be stepped alone."""
        return self.score_rollouts and self.rubric.has_group_rewards

    _joined_rubrics: RubricGroup | None = None
    """What `add_rubric` made."""

    def add_rubric(self, rubric: Rubric) -> None:
        """Add a rubric beside the one there is."""
        # A group of the author's is one member, so that what is added to it later counts; so is one on which hooks were put. Our own is
        # made anew each time: it may have been given to another environment meanwhile.
        joined = self._joined_rubrics
        is_plain = joined is not None and joined is self.rubric and vars(joined).keys().isdisjoint(_RUBRIC_HOOKS)
        beside = joined.rubrics if joined is not None and is_plain else [self.rubric]
        self.rubric = self._joined_rubrics = RubricGroup([*beside, rubric])
        if rubric.has_teardown:
            register_teardown(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what the environment is, told without asking its dataset for anything."""
        name = self.spec.id if self.spec is not None else self.env_id
        facts: list[tuple[str, object]] = [
            ("class", type(self).__name__),
            ("arguments", redact_data(self.env_args)),
            ("system prompt", self.system_prompt),
            ("tools", "\n".join(f"{tool.name}: {tool.description}" for tool in self.tool_defs)),
            ("rewards and metrics", ", ".join(self.rubric.metric_names)),
        ]
        return html_table(name or type(self).__name__, (), [fact for fact in facts if fact[1]])

    def _close(self) -> Steps[None]:
        yield from run_each([super()._close(), self._tear_down()])

    def run_teardown(self) -> None:
        """Run the `@teardown` handlers, the rubric's first. A second call does nothing."""
        run_sync(self._tear_down())

    def _tear_down(self) -> Steps[None]:
        if self._is_torn_down:
            return
        self._is_torn_down = True
        forget_teardown(self)
        handlers = [(name, method) for name, method, _ in discover_decorated(self, "teardown")]
        yield from run_handlers([("teardown of the rubric", self.rubric.teardown), *handlers])


def _is_shared(value: Any) -> bool:
    """Say whether a value that an environment holds is an object of its own, and not one that stands for itself anywhere."""
    is_empty = isinstance(value, tuple | frozenset) and not value
    return value.__class__ not in ATOMIC and not isinstance(value, type | Enum) and not is_empty


def check_split(split: Any) -> None:
    """Raise if a split is not one that there is."""
    if split not in ("train", "eval"):
        raise ConfigurationError(f"the reset option 'split' must be 'train' or 'eval', got {split!r}")


def _check_handler(cls: type, kind: Kind, marked: Marked) -> None:
    if marked.mark.stage == "group":
        raise ConfigurationError(f"{cls.__name__}.{marked.name}: @{kind} runs for each rollout; stage='group' is for @reward and @metric")
    for name, parameter in list(inspect.signature(marked.method).parameters.items())[1:]:
        required = parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if required and name not in _HANDLER_NAMES:
            raise ConfigurationError(
                f"{cls.__name__}.{marked.name} is a {kind} handler and asks for {name!r}; it can have {', '.join(sorted(_HANDLER_NAMES))}"
            )


def _usage_field(usage: Any, *names: str) -> float:
    for name in names:
        value = usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return value
    return 0
