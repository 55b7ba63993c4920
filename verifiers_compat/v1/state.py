"""`State`: what a rollout leaves behind, as JSON data, and the live handles that go with it while it runs."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from verifiers_compat import types
from verifiers_compat.v1.plain import check_json
from verifiers_compat.v1.task import Task
from vfgym.errors import ConfigurationError, Error, OverlongPromptError
from vfgym.interception.wire import plain_data
from vfgym.results.rows import ErrorInfo

if TYPE_CHECKING:
    from verifiers_compat.v1.episode_state import RolloutState
    from verifiers_compat.v1.runtime import Runtime
    from vfgym.sandboxes import Sandbox

PROTECTED = {
    "is_completed": "call state.stop(...)",
    "stop_condition": "call state.stop(condition)",
    "is_truncated": "it follows from the model's responses",
    "error": "raise a vf.Error",
}
"""Items that only the harness writes, and what to do instead."""

_COPIED = ("prompt", "info", "example_id")
_BORROWABLE = frozenset({"model", "sandbox"})


@dataclass
class Handles:
    """What a rollout uses and its data cannot hold. It never leaves the process."""

    client: Any = None
    """Who is asked: anything `vfgym.clients.resolve_client` takes."""
    model: str | None = None
    sampling_args: dict[str, Any] | None = None
    tools: dict[str, Any] = field(default_factory=dict)
    """Tools of another rollout, by name."""
    sandbox: Sandbox | None = None
    """The sandbox of another rollout's program."""
    transcript: State | None = None
    """In whose trajectory model calls are recorded instead of the state's own."""
    outer: RolloutState | None = None
    """The state of the episode that the rollout is part of."""
    max_seq_len: int | None = None
    """Tokens after which the stored token data of a turn is cut."""


class _ForTask:
    """``State.for_task(task)``, and ``state.for_task(task, borrow=...)``."""

    def __get__(self, state: State | None, cls: type[State]) -> Callable[..., State]:
        def for_task(
            task: Mapping[str, Any],
            *,
            borrow: str | Iterable[str] = (),
            tools: str | Iterable[str] = (),
            transcript: str = "private",
        ) -> State:
            """Return the state that a rollout of `task` starts from.

            Args:
                task: What is to be rolled out.
                borrow: What the rollout takes over from the running one whose state this is called on: ``"model"``, and ``"sandbox"``
                    for its program and tools, if they run in one.
                tools: Names of tools that it takes over.
                transcript: ``"append"`` to record its model calls in the trajectory of the running rollout.

            Raises:
                ConfigurationError: If there is no running rollout to take things from.
            """
            child = cls._of_task(task)
            wanted = {borrow} if isinstance(borrow, str) else set(borrow)
            names = [tools] if isinstance(tools, str) else list(tools)
            if unknown := wanted - _BORROWABLE:
                raise ConfigurationError(f"only 'model' and 'sandbox' can be borrowed, got {', '.join(sorted(map(repr, unknown)))}")
            if transcript not in ("private", "append"):
                raise ConfigurationError(f"transcript must be 'private' or 'append', got {transcript!r}")
            if not wanted and not names and transcript == "private":
                return child
            if state is None:
                raise ConfigurationError("borrow, tools and transcript='append' need a running rollout: call for_task on its state")
            return state._lend(child, wanted, names, transcript)

        return for_task


class State(types.State):
    """What a rollout leaves behind. All of it must have a form in JSON when the rollout is over.

    ``is_completed``, ``stop_condition``, ``is_truncated`` and ``error`` are written by the harness alone: call `stop`, or
    raise a `vf.Error`.
    """

    __slots__ = ("failure", "handles", "running")

    handles: Handles
    failure: Error | None
    """The error that ended the rollout, whose description is in ``state["error"]``."""
    running: Runtime | None
    """What plays the rollout, while it is played."""

    for_task = _ForTask()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make a state of the given items, like a ``dict``."""
        items = dict(*args, **kwargs)
        for key in items:
            _check_writable(key)
        super().__init__(items)
        self.handles = Handles()
        self.failure = None
        self.running = None
        for key, value in (("is_completed", False), ("is_truncated", False), ("stop_condition", None), ("error", None)):
            self._set(key, value)

    @classmethod
    def _of_task(cls, task: Mapping[str, Any]) -> State:
        task = (task if isinstance(task, Task) else Task(task)).freeze()
        return cls(
            task=plain_data(task),
            runtime={},
            trajectory=[],
            trajectory_id=uuid.uuid4().hex,
            artifacts={},
            metrics={},
            reward=0.0,
            completion=None,
            timing={"generation_ms": 0.0, "scoring_ms": 0.0, "total_ms": 0.0, "start_time": time.time()},
            **{key: plain_data(task[key]) for key in _COPIED if key in task},
        )

    def _lend(self, child: State, borrow: set[str], tools: list[str], transcript: str) -> State:
        running = self.live("borrow from it")
        if "sandbox" in borrow:
            child.handles.sandbox = self.get_sandbox()
        if "model" in borrow:
            child.handles.client = running.client
            child.handles.model = running.model
            child.handles.sampling_args = dict(running.sampling_args)
            child.handles.outer = running.outer
            child.handles.max_seq_len = self.handles.max_seq_len
        for name in tools:
            child.handles.tools[name] = running.tool(name)
        if transcript == "append":
            child.handles.transcript = running.transcript
        return child

    # What the harness calls

    def live(self, purpose: str) -> Runtime:
        """Return what plays the rollout. For the harness: authors have `get_client`, `get_tools` and their like.

        Args:
            purpose: What it is needed for, for the message.

        Raises:
            ConfigurationError: If the rollout is not running.
        """
        if self.running is None:
            raise ConfigurationError(f"the rollout of this state is not running, so one cannot {purpose}")
        return self.running

    def complete(self, stop_condition: str) -> None:
        """Note that the rollout is over, and by which condition where none is noted yet. For the harness: authors call `stop`."""
        self._set("is_completed", True)
        if self["stop_condition"] is None:
            self._set("stop_condition", stop_condition)

    def mark_truncated(self) -> None:
        """Note that a limit cut something off. For the harness alone."""
        self._set("is_truncated", True)

    def record_error(self, error: Error) -> None:
        """Note an error that ends the rollout; an overlong prompt is a truncation. For the harness: authors raise a `vf.Error`."""
        if isinstance(error, OverlongPromptError):
            self["prompt_too_long"] = True
            self.mark_truncated()
        else:
            self.failure = error
            self._set("error", dict(ErrorInfo.of(error)))
        self.complete("has_error" if self["error"] is not None else "prompt_too_long")

    def _set(self, key: str, value: Any) -> None:
        dict.__setitem__(self, key, value)

    # What authors call

    def stop(self, condition: str = "state_done") -> None:
        """End the rollout, with `condition` as its stop condition."""
        self["done"] = True
        self._set("is_completed", True)
        self._set("stop_condition", condition)

    def get_model(self) -> str:
        """Return the name of the model that is asked.

        Raises:
            ConfigurationError: If none was given.
        """
        model = self.get("runtime", {}).get("model") or (self.running.model if self.running is not None else self.handles.model)
        if not model:
            raise ConfigurationError("this rollout has no model: give one to the harness, or in state['runtime']['model']")
        return str(model)

    def get_max_turns(self, default: int) -> int:
        """Return how many answers of the model the rollout may have; `default` where its state does not say."""
        limit = self.get("runtime", {}).get("max_turns")
        return default if limit is None else int(limit)

    def get_tools(self) -> dict[str, Callable[..., Awaitable[object]]]:
        """Return the tools that the rollout may use, by name, as async functions of their visible arguments."""
        running = self.live("get its tools")
        return {name: running.tools[name].call_with for name in running.tools}

    def get_sandbox(self) -> Sandbox:
        """Return the sandbox of the rollout's program, until its rewards were computed.

        Raises:
            ConfigurationError: If it has none.
        """
        sandbox = self.live("get its sandbox").sandbox
        if sandbox is None:
            raise ConfigurationError("there is no sandbox: the program of the rollout has none, or was not prepared yet")
        return sandbox

    def get_endpoint_config(self, api: str = "chat_completions") -> dict[str, str]:
        """Return how an SDK or another program reaches the rollout's model.

        Args:
            api: ``"chat_completions"``, ``"completions"``, ``"responses"`` or ``"messages"``, or the client type of one.

        Returns:
            ``model``, ``api_key``, ``base_url``, ``api_base`` (where the API has one) and ``api_client_type``.
        """
        return self.live("reach its model").endpoint_config(api)

    def get_client(self, api: str = "chat_completions", *, sync: bool = False) -> Any:
        """Return a client of the provider's SDK whose requests are answered by the rollout's model, and recorded.

        Args:
            api: See `get_endpoint_config`.
            sync: For plain programs, which run on a thread of their own. An async one that waited for a synchronous client
                would hold up the loop that answers it.
        """
        return self.live("reach its model").sdk_client(api, sync=sync)

    def finalize(self) -> State:
        """Let go of the live handles, check that what is left is JSON, and return the state.

        Raises:
            NotSerializable: If something has no form in JSON.
        """
        self.handles, self.running = Handles(), None
        check_json(self, "a finished state")
        return self

    # Protected items

    def __setitem__(self, key: str, value: Any) -> None:
        _check_writable(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: str) -> None:
        _check_writable(key)
        dict.__delitem__(self, key)

    def pop(self, key: str, *default: Any) -> Any:
        """Remove an item and return it."""
        _check_writable(key)
        return dict.pop(self, key, *default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return an item; write `default` first where it is missing."""
        _check_writable(key)
        return dict.setdefault(self, key, default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Write items; none of them if one is protected."""
        items = dict(*args, **kwargs)
        for key in items:
            _check_writable(key)
        dict.update(self, items)

    def popitem(self) -> NoReturn:
        """Refuse: it might be a protected item."""
        raise RuntimeError("a state cannot lose items without a name: del state[key] says which")

    def clear(self) -> NoReturn:
        """Refuse: there are protected items."""
        raise RuntimeError("a state cannot be cleared: the harness still needs it")

    def get(self, key: str, default: Any = None) -> Any:
        """Return an item, or `default`."""
        return dict.get(self, key, default)

    def __missing__(self, key: str) -> Any:
        hint = ": it stays on the task, task['answer']" if key == "answer" else ""
        raise KeyError(f"{key}{hint}" if hint else key)

    def __copy__(self) -> State:
        return _restore(dict(self))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _restore, (dict(self),)


def _restore(items: dict[str, Any]) -> State:
    state = State({key: value for key, value in items.items() if key not in PROTECTED})
    for key in PROTECTED.keys() & items.keys():
        state._set(key, items[key])
    return state


def _check_writable(key: object) -> None:
    if key in PROTECTED:
        raise RuntimeError(f"state[{key!r}] is written by the harness: {PROTECTED[str(key)]} instead")
