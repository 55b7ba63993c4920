"""`Harness`: plays one task to its end, in the documented order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from verifiers_compat.v1.bindings import Scope
from verifiers_compat.v1.config import HarnessConfig, resolve_function
from verifiers_compat.v1.first_error import keep_first_error
from verifiers_compat.v1.handler_set import Handlers
from verifiers_compat.v1.handlers import run_all
from verifiers_compat.v1.participant import Participant
from verifiers_compat.v1.plain import plain_messages
from verifiers_compat.v1.program_run import ProgramRun
from verifiers_compat.v1.programs import Program, as_program
from verifiers_compat.v1.runtime import GROUP_KEY, Runtime, elapsed_ms
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import Task
from verifiers_compat.v1.taskset import Taskset
from verifiers_compat.v1.user import User
from verifiers_compat.v1.utils.scoring_utils import score_group, score_rollout
from vfgym.aio.shielding import await_shielded
from vfgym.errors import ConfigurationError, Error
from vfgym.lifecycle import stop, update

Merge = ("reject", "concat", "task", "taskset", "harness")


class Harness(Participant):
    """Plays tasks: by the base loop (ask the model, call its tools), or by a program of its own.

    Mark methods of a subclass (``@vf.setup``, ``@vf.reward``, ...), or give functions.
    """

    config_type: ClassVar[type[HarnessConfig]] = HarnessConfig

    def __init__(
        self,
        program: Any = None,
        system_prompt: Any = None,
        user: Any = None,
        sandbox: object | None = None,
        client: Any = None,
        model: str | None = None,
        sampling_args: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
        toolsets: Any = None,
        stops: Iterable[Any] | None = None,
        setups: Iterable[Any] | None = None,
        updates: Iterable[Any] | None = None,
        metrics: Iterable[Any] | None = None,
        rewards: Iterable[Any] | None = None,
        advantages: Iterable[Any] | None = None,
        cleanups: Iterable[Any] | None = None,
        config: HarnessConfig | Mapping[str, object] | None = None,
    ) -> None:
        """Make a harness.

        Args:
            program: What plays: None for the base loop, a function of ``task`` and ``state``, ``{"fn": "module:name"}``, or
                ``{"command": [...]}`` (see `verifiers_compat.v1.programs`).
            system_prompt: Text, or system messages.
            user: A `User`, or a function.
            sandbox: What the sandbox of the program is like, if it says ``sandbox``: a `SandboxConfig` or a mapping with its fields.
            client: Who is asked, where the rollout brings nobody: a client, its configuration, or an SDK's client.
            model: Name of the model.
            sampling_args: Generation parameters.
            max_turns: Most answers of the model in the base loop (10); unlimited where it is not positive.
            toolsets: A list of toolsets or tools, or toolsets by name.
            stops: Stop conditions.
            setups: Called before the program runs.
            updates: Called after it.
            metrics: Measures.
            rewards: Reward functions.
            advantages: Functions that compute a group's advantages.
            cleanups: Called at the end of every rollout.
            config: Configuration, of the class that `config_type` names, or a mapping with its fields. Lists are added to it,
                other arguments win over it.

        Raises:
            ConfigurationError: If something does not fit.
        """
        arguments = {"program": program, "system_prompt": system_prompt, "user": user, "sandbox": sandbox, "client": client}
        arguments |= {"model": model, "sampling_args": sampling_args, "max_turns": max_turns}
        lists = {"stops": stops, "setups": setups, "updates": updates, "metrics": metrics, "rewards": rewards}
        lists |= {"advantages": advantages, "cleanups": cleanups}
        super().__init__(config, arguments, toolsets, lists)
        self.program: Program = as_program(self.config.program, self.config.sandbox)
        self.client = self.config.client
        self.model: str | None = self.config.model
        self.sampling_args: dict[str, Any] = self.config.sampling_args
        self.max_turns: int = self.config.max_turns
        if self.config.keep_trajectory_step is not None:
            self.keep_trajectory_step = resolve_function(self.config.keep_trajectory_step, "keep_trajectory_step")  # type: ignore[method-assign]
        self.taskset: Taskset | None = None
        self._merged: tuple[list[int], Handlers] | None = None
        """Of how many changes, and the handlers."""
        self.global_scope = Scope()
        self._group_scopes: dict[str, Scope] = {}
        self._is_torn_down = False

    def attach(self, taskset: Taskset) -> None:
        """Play the tasks of a taskset from now on, with its tools, handlers and signals.

        Raises:
            ConfigurationError: If the harness plays those of another one, or the two do not go together.
        """
        if self.taskset is not None and self.taskset is not taskset:
            raise ConfigurationError("a harness plays the tasks of one taskset: make another harness for another taskset")
        self.taskset = taskset
        self.resolve_user()
        self.all_handlers  # noqa: B018 - which refuses two signals of one name

    @property
    def all_handlers(self) -> Handlers:
        """The handlers and signals of harness and taskset, what was added to either included."""
        parts = [self] if self.taskset is None else [self.taskset, self]
        changes = [part.num_changes for part in parts]
        if self._merged is None or self._merged[0] != changes:
            scoring = {name: change for part in parts for name, change in part.config.scoring.items()}
            self._merged = changes, Handlers((handler for part in parts for handler in part.handlers), scoring)
        return self._merged[1]

    @property
    def requires_group_rollouts(self) -> bool:
        """Whether something has to see whole groups."""
        from_tasks = self.taskset is not None and self.taskset.requires_group_rollouts
        return from_tasks or self.all_handlers.has_group_stage

    @property
    def provides_advantages(self) -> bool:
        """Whether advantages are computed by a function of their own."""
        return self.all_handlers.provides_advantages

    def resolve_user(self) -> User | None:
        """Return the user of harness or taskset.

        Raises:
            ConfigurationError: If both have one.
        """
        of_taskset = None if self.taskset is None else self.taskset.user
        if self.user is not None and of_taskset is not None:
            raise ConfigurationError("both the taskset and the harness have a user: a rollout has one")
        return self.user or of_taskset

    def resolve_system_prompt(self, task: Task) -> list[dict[str, Any]]:
        """Return the system messages of a task's rollouts.

        Raises:
            ConfigurationError: If there are several sources, and ``system_prompt_merge`` does not say what to do.
        """
        sources = {
            "harness": self.system_prompt,
            "taskset": [] if self.taskset is None else self.taskset.system_prompt,
            "task": plain_messages(task.get("system_prompt") or [], "system_prompt"),
        }
        merge = self.config.system_prompt_merge
        if merge in sources:
            return sources[merge]
        given = [name for name, messages in sources.items() if messages]
        if merge == "reject" and len(given) > 1:
            raise ConfigurationError(
                f"{' and '.join(given)} have a system prompt: leave one, or say with system_prompt_merge what to do"
                f" ({', '.join(repr(name) for name in Merge[1:])})"
            )
        return [message for messages in sources.values() for message in messages]

    def group_scope(self, key: str) -> Scope:
        """Return what holds the objects that the rollouts of one group share."""
        return self._group_scopes.setdefault(key, Scope())

    def keep_trajectory_step(self, step: Mapping[str, Any], state: State) -> Any:
        """Say whether a turn goes into the trajectory. Override it; plain or async."""
        return True

    # What the base harness brings itself

    @stop(priority=100)
    def state_done(self, task: Task, state: State) -> bool:
        """Stop when the state says ``done``."""
        return bool(state.get("done"))

    @update(priority=-100)
    def render_completion(self, task: Task, state: State) -> None:
        """Bring the state in line with the trajectory: prompt, completion, truncation."""
        steps = state["trajectory"]
        if steps and state["completion"] is None:
            first, last = list(steps[0]["prompt"]), [*steps[-1]["prompt"], *steps[-1]["completion"]]
            goes_on = last[: len(first)] == first  # a program may begin another conversation
            state["prompt"] = plain_messages(first, "prompt")
            state["completion"] = plain_messages(last[len(first) :] if goes_on else last, "completion")
        state["completion"] = state["completion"] or []
        if any(step["is_truncated"] for step in steps):
            state.mark_truncated()

    # Rollouts

    async def is_stopped(self, running: Runtime) -> bool:
        """Check the stop conditions, the ones with higher priority first; the first that holds completes the state."""
        state = running.state
        if state["is_completed"]:
            return True
        for handler in self.all_handlers.of("stop"):
            if await handler.call({"task": running.task, "state": state}):
                state.complete(handler.name)
                return True
            if state["is_completed"]:  # by state.stop()
                return True
        return False

    async def run(self, task: Task | Mapping[str, Any], state: State | None = None) -> State:
        """Play one task and return its state, scored by the signals that need no group.

        A `vf.Error` ends the rollout and is recorded in the state. Anything else goes through, after the cleanup handlers, and so
        does what an update or a signal raises of a rollout that went well; of one that has an error already, that error stays, and
        the later one is noted in ``state["metrics_errors"]`` (signals) or ``state["cleanup_errors"]`` (updates).

        Args:
            task: The task.
            state: What the rollout starts from; fresh without it.
        """
        task = (task if isinstance(task, Task) else Task(task)).freeze()
        state = State.for_task(task) if state is None else state
        started = time.time()
        handlers = self.all_handlers
        names = {"task": task, "state": state}
        running: Runtime | None = None
        try:
            try:
                running = Runtime(self, task, state)
                await self._play(running)
            except ConfigurationError:  # whoever wrote the harness made it, and no rollout can go well
                raise
            except Error as error:
                state.record_error(error)
            for handler in handlers.of("update"):
                with keep_first_error(state, handler.name, "cleanup_errors"):
                    await handler.call(names)
            timing = state["timing"]
            timing["generation_ms"] = elapsed_ms(started)
            if state["runtime"].get("score_rollout", True):
                scoring = time.time()
                for signal in handlers.signals("rollout"):
                    with keep_first_error(state, signal.name, "metrics_errors"):
                        await score_rollout([signal], task, state)
                timing["scoring_ms"] = elapsed_ms(scoring)
            timing["total_ms"] = elapsed_ms(started)
        finally:
            await await_shielded(self._clean_up(running, task, state))
        if not _is_grouped(state):
            with keep_first_error(state, "finalize", "cleanup_errors"):
                state.finalize()
        return state

    async def _play(self, running: Runtime) -> None:
        state = running.state
        await running.connect_tools()
        if not await self.is_stopped(running):
            program, names = ProgramRun(self.program, running), {"task": running.task, "state": state}
            setups = self.all_handlers.of("setup")
            for handler in (each for each in setups if each.priority > 0):
                await handler.call(names)
            await program.prepare()
            for handler in (each for each in setups if each.priority <= 0):
                await handler.call(names)
            await program.play()
            await self.is_stopped(running)
        state.complete("program_completed")

    async def _clean_up(self, running: Runtime | None, task: Task, state: State) -> None:
        await run_all(self.all_handlers.of("cleanup"), {"task": task, "state": state}, [state])
        if running is not None:
            await running.close()
        if not _is_grouped(state):
            await self.cleanup_group([task], [state])

    # Groups

    async def score_group(self, tasks: Sequence[Task], states: Sequence[State]) -> list[State]:
        """Call the group's updates and signals; rewards are added to those that the rollouts have."""
        handlers = self.all_handlers
        names = {"tasks": list(tasks), "states": list(states)}
        for handler in handlers.of("update", "group"):
            await handler.call(names)
        await score_group(handlers.signals("group"), tasks, states)
        return list(states)

    async def cleanup_group(self, tasks: Sequence[Task], states: Sequence[State]) -> None:
        """Call the group's cleanup handlers and let go of what the group shared.

        Rollouts are a group where their ``state["runtime"]["group_key"]`` is the same. Who plays them with `run` calls `score_group`,
        then this, and then ``finalize()`` of each state.
        """
        await run_all(self.all_handlers.of("cleanup", "group"), {"tasks": list(tasks), "states": list(states)}, states)
        for key in {state["runtime"][GROUP_KEY] for state in states if _is_grouped(state)}:
            await self.release_group(key)

    async def release_group(self, key: str) -> None:
        """Let go of what a group shared. For `Env`: whoever plays a group by hand calls `cleanup_group`."""
        scope = self._group_scopes.pop(key, None)
        if scope is not None:
            await scope.release()

    async def teardown(self) -> None:
        """Call the teardown handlers, once, and let go of what all rollouts shared."""
        if not self._is_torn_down:
            self._is_torn_down = True
            await run_all(self.all_handlers.of("teardown"), {})
        scopes = [self.global_scope, *self._group_scopes.values()]
        self._group_scopes = {}
        await asyncio.gather(*(scope.release() for scope in scopes))


def _is_grouped(state: State) -> bool:
    return GROUP_KEY in state.get("runtime", {})
