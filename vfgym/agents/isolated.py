"""`IsolatedAgent`: an agent in processes of its own, which can be killed, and may be in sandboxes."""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol

import gymnasium as gym

from vfgym.agents.base import Answering, seat_of
from vfgym.agents.isolated_process import Beginning, Source, read_answer
from vfgym.agents.loading import AGENTS, name_of_module
from vfgym.agents.oracle import keep_awaitable
from vfgym.errors import ConfigurationError, Error, ModelError, WorkerDied, WorkerTimeout
from vfgym.messages import Message
from vfgym.sandboxes import SandboxSpec
from vfgym.workers import Limits, RemoteError, Workers

_LOADING_SECONDS = 60.0
_ANSWER_SECONDS = 600.0


class _Process(Protocol):
    """What calls functions of `isolated_process` elsewhere."""

    async def call(self, function: str, *arguments: Any, **limits: Any) -> Any:
        """Call a function; what it returns is JSON data."""
        ...

    def call_sync(self, function: str, *arguments: Any, **limits: Any) -> Any:
        """Do what `call` does, while the calling thread waits."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class IsolatedAgent:
    """An agent that answers in a process of its own in each episode, so that one that never returns can be stopped.

    An evaluation stops waiting for it at the deadline of the rollout (``timeout_seconds`` of the environment), and the process is killed.
    In a loop of your own, or without a deadline, one answer may take that time, or `answer_seconds`. Processes are used again, for one
    episode after the other, and end with `close`, or with this object, and with them all that the agent has started.

    The agent gets what is sent to it: observation and info. Where it has ``for_episode(env)``, `env` is a stand-in that has the spaces of
    the environment and random numbers (``np_random``), and no more. What it prints goes to standard error. What it answers comes back
    as JSON: text, a message, a `vfgym.messages.Response`, or JSON data. An agent that raises, exits, or runs out of memory or time has
    failed: the `failure_cause` of the error is ``"policy"``.

    In a sandbox it has no environment variables, no network, a folder of its own, and bounds on memory and disk. There it finds its
    module, and what is installed for this Python.
    """

    def __init__(
        self, name: str, *, sandbox: bool | SandboxSpec = False, backend: str | None = None, answer_seconds: float = _ANSWER_SECONDS
    ) -> None:
        """Load the agent in a process, to see that it can be.

        Args:
            name: The agent, as ``module:callable`` (see `vfgym.agents.load_agent`).
            sandbox: Whether it runs in a sandbox; or what that is to have (``network=True``, ``memory_mb``, ``readable_paths``, ...).
            backend: What makes the sandbox (see `vfgym.sandboxes.create`).
            answer_seconds: Seconds that an answer may take where the environment has no ``timeout_seconds``.

        Raises:
            ConfigurationError: If it is something else, there is no such agent, it cannot be loaded within a minute, or no sandbox can be
                made here.
        """
        if not isinstance(name, str) or ":" not in name:
            given = f"{name!r}, which has a name of its own" if isinstance(name, str) and name in AGENTS else repr(name)
            raise ConfigurationError(f"an agent that is to run in a process of its own must be named as module:callable; got {given}")
        if not isinstance(answer_seconds, int | float) or isinstance(answer_seconds, bool) or not answer_seconds > 0:
            raise ConfigurationError(f"answer_seconds must be a number above 0, got {answer_seconds!r}")
        self.name = name
        self._spec: dict[str, Any] | None = {"agent": name, "isolate": True, "sandboxed": sandbox is True}
        if isinstance(sandbox, SandboxSpec) or backend is not None or answer_seconds != _ANSWER_SECONDS:
            self._spec = None
        self._answer_seconds = float(answer_seconds)
        self._processes = _Processes(name_of_module(name, f"agent {name!r}"), sandbox, backend)
        try:
            self._processes.check()
        except RemoteError as error:
            # Of all that is raised elsewhere, this one is made again here: it is about what was named.
            raise ConfigurationError(error.text if error.kind == "ConfigurationError" else f"agent {name!r}: {error}") from error
        except WorkerTimeout as error:
            raise ConfigurationError(f"agent {name!r} was not loaded within {_LOADING_SECONDS:g} s") from error

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode."""
        seconds = getattr(seat_of(env).definition, "timeout_seconds", None)
        rng = env.unwrapped.np_random.spawn(1)[0]
        # One more, so that an evaluation's own deadline comes first.
        limits: Limits = {"wall_seconds": self._answer_seconds if seconds is None else seconds + 1}
        return _IsolatedAnswers(self._processes, Beginning(self._processes.source, env.action_space, env.observation_space, rng), limits)

    def as_spec(self) -> dict[str, Any] | None:
        """Return what a `vfgym.RunSpec` says of who plays; None where it was given more than its name."""
        return self._spec

    def close(self) -> None:
        """End the processes of episodes that are over."""
        self._processes.close()


class _Processes:
    """The processes of an agent: those that no episode has, and how another one is made."""

    def __init__(self, name: str, sandbox: bool | SandboxSpec, backend: str | None) -> None:
        self.idle: list[_Process] = []
        self.source = Source(name, os.getcwd(), tuple(sys.path))
        self._spec: SandboxSpec | None = None
        self._backend = backend
        if sandbox is not False:
            from vfgym.agents.sandboxed import check_sandbox

            self._spec, self.source = check_sandbox(name, SandboxSpec() if sandbox is True else sandbox, backend)

    def check(self) -> None:
        """Load the agent."""
        process = self.take()
        process.call_sync("check", self.source, wall_seconds=_LOADING_SECONDS)
        self.idle.append(process)

    def close(self) -> None:
        """End the processes that no episode has."""
        while self.idle:
            self.idle.pop().close()

    def take(self) -> _Process:
        """Return a process for an episode."""
        if self.idle:
            return self.idle.pop()
        if self._spec is None:
            return Workers("vfgym.agents.isolated_process", is_single=True, speaks_json=True)
        from vfgym.agents.sandboxed import SandboxedProcess

        return SandboxedProcess(self._spec, self._backend, self.source)


class _IsolatedAnswers:
    """What answers in one episode. It has a process from the first answer on, and gives it back with its end, or an error."""

    def __init__(self, processes: _Processes, beginning: Beginning, limits: Limits) -> None:
        self._processes = processes
        self._beginning = beginning
        self._limits = limits
        self._process: _Process | None = None

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> Any:
        return keep_awaitable(self._answer(observation, info))

    def __del__(self) -> None:
        self._give_back()

    async def _answer(self, observation: list[Message], info: dict[str, Any]) -> Any:
        try:
            if self._process is None:
                self._process = self._processes.take()
                await self._process.call("begin", self._beginning, **self._limits)
            return read_answer(await self._process.call("answer", observation, info, **self._limits))
        except BaseException as error:
            self._give_back()  # a traceback may keep this object for long
            failure = _failure(error)
            if failure is error:
                raise
            raise failure from error

    def _give_back(self) -> None:
        if self._process is not None:
            self._processes.idle.append(self._process)
            self._process = None


def _failure(error: BaseException) -> BaseException:
    """Return what an agent's own doing is as an error of its rollout."""
    if isinstance(error, WorkerTimeout):
        error.failure_cause = "policy"
        return error
    if not isinstance(error, RemoteError | WorkerDied | ValueError):
        return error
    failure: Error = ModelError(f"the agent failed: {error}")
    failure.failure_cause = "policy"
    return failure
