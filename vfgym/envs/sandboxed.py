"""`SandboxedEnv`: what environments share whose episodes each have a sandbox, from their set-up until they have ended."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from vfgym import sandboxes
from vfgym.calls import Ready, maybe_await
from vfgym.envs.multi_turn import MultiTurnEnv
from vfgym.errors import EpisodeNotPicklable, Error, SandboxError
from vfgym.lifecycle import cleanup, update
from vfgym.overrides import hook
from vfgym.rubrics import Rubric
from vfgym.sandboxes import Sandbox, SandboxSpec, TreeSnapshot
from vfgym.sandboxes.stand_ins import with_stand_in
from vfgym.state import State

_leased: dict[str, Sandbox] = {}
"""The sandboxes of the episodes that play in this process, by their ids."""


def find_sandbox(sandbox_id: str) -> Sandbox:
    """Return the sandbox of an episode that plays.

    Raises:
        SandboxError: If there is none of this id, or any more.
    """
    if sandbox_id not in _leased:
        raise SandboxError(f"there is no sandbox {sandbox_id!r}: it was closed, or was never there")
    return _leased[sandbox_id]


def sandboxes_in_use() -> list[str]:
    """Return the ids of the sandboxes of all episodes that play."""
    return list(_leased)


def backend_for(spec: SandboxSpec, backend: str | None) -> str | None:
    """Return what makes a sandbox: where nothing was chosen, an image needs a container engine."""
    has_image = spec.image is not None or spec.dockerfile is not None
    return "container" if has_image and backend is None else backend


async def open_sandbox(spec: SandboxSpec, backend: str | None) -> Sandbox:
    """Return a new sandbox, which `find_sandbox` finds until it is given back.

    Raises:
        ConfigurationError: If the backend does not work here, or can't keep what the spec asks for.
        SandboxError: If the sandbox can't be started.
    """
    backend = backend_for(spec, backend)
    if backend == "container":  # a limit would hide what the image has in the working directory
        spec = dataclasses.replace(spec, disk_mb=None)
    sandbox = await sandboxes.create(spec, backend=backend)
    _leased[sandbox.id] = sandbox
    return sandbox


async def give_back_sandbox(sandbox_id: str) -> None:
    """Close a sandbox; nothing where that was done."""
    sandbox = _leased.pop(sandbox_id, None)
    if sandbox is not None:
        await sandbox.close()


@contextlib.asynccontextmanager
async def fresh_sandbox(sandbox: Sandbox, results: Iterable[str]) -> AsyncIterator[Sandbox]:
    """Give a new sandbox like another one, until the block ends: with nothing of it but the results that are named.

    So does what grades run where nothing that is graded has been: no file outside of the results, no process, no interpreter, no port.

    Args:
        sandbox: Where a program, or a model, has worked.
        results: Files and folders that are copied, relative to the working directory; those that are not there are removed.

    Raises:
        SandboxError: If either sandbox fails.
    """
    fresh = await open_sandbox(dataclasses.replace(sandbox.spec, forwards={}), sandbox.backend)
    try:
        for path in results:
            await sandbox.copy_to(fresh, path)
        yield fresh
    finally:
        await give_back_sandbox(fresh.id)


@dataclass(frozen=True)
class SandboxCopy:
    """What ``state["sandbox"]`` is in a copy of an episode that nobody goes on with: how the sandbox was made, and its files."""

    spec: SandboxSpec
    backend: str
    files: TreeSnapshot

    def __deepcopy__(self, memo: Any) -> SandboxCopy:
        return self  # it does not change


class _ClosingRubric(Rubric):
    """Closes sandboxes that were kept for scoring, when that is done."""

    def __init__(self, close: Callable[[State], Awaitable[None]]) -> None:
        super().__init__()
        self._close = close

    @cleanup
    async def close_sandbox(self, state: State) -> None:
        """Close the sandbox."""
        await self._close(state)


class SandboxedEnv(MultiTurnEnv):
    """An environment each of whose episodes has a sandbox: ``state["sandbox"]`` while it plays, and its ``state["sandbox_id"]``.

    A subclass calls `lease_sandbox` in its `setup_state`. Whatever ends the episode closes the sandbox, once, after the cleanup handlers.
    `post_rollout` is called right before that, and keeps what rewards need.
    """

    has_files_alone: ClassVar[bool] = False
    """Whether files are all that its sandboxes have between two steps: no interpreter and no program that goes on."""

    def __init__(
        self,
        *,
        sandbox: SandboxSpec | None = None,
        backend: str | None = None,
        keep_sandbox_for_scoring: bool = False,
        strict_image: bool = False,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            sandbox: Limits and working directory of the sandboxes; a `SandboxSpec` with its defaults, without network, if None.
            backend: What makes the sandboxes (see `vfgym.sandboxes`); None for what works here.
            strict_image: Whether an image is refused where no container engine answers, also one that this machine can stand for
                (``python:*``, ``debian:*``, ``ubuntu:*``, and ``node:*`` where Node is here).
            keep_sandbox_for_scoring: Whether reward functions find ``state["sandbox"]``, too. It is closed once they have run.
            **kwargs: Passed to `MultiTurnEnv`.

        Raises:
            ConfigurationError: If no such sandbox can be made here: the text says what to install.
        """
        super().__init__(**kwargs)
        self.sandbox_spec = SandboxSpec() if sandbox is None else sandbox
        self.backend = backend
        self.keep_sandbox_for_scoring = keep_sandbox_for_scoring
        self.strict_image = strict_image
        resolved = with_stand_in(self.sandbox_spec, backend, strict_image=strict_image)
        sandboxes.check_spec(resolved, self.backend_for(resolved))
        self.add_rubric(_ClosingRubric(self.close_sandbox))

    def backend_for(self, spec: SandboxSpec) -> str | None:
        """Return what makes a sandbox: where nothing was chosen, an image needs a container engine."""
        return backend_for(spec, self.backend)

    @hook
    def get_sandbox_spec(self, state: State) -> Any:
        """Return what the sandbox of an episode is like. Plain or async."""
        return Ready(self.sandbox_spec)

    async def open_sandbox(self, spec: SandboxSpec) -> Sandbox:
        """Return a new sandbox. Override it to try again, say.

        Raises:
            SandboxError: If it can't be started.
        """
        return await open_sandbox(spec, self.backend)

    async def lease_sandbox(self, state: State, forwards: Mapping[int, str | os.PathLike[str]] | None = None) -> Sandbox:
        """Make the sandbox of an episode, and put it into its state.

        Args:
            state: The episode.
            forwards: Ports inside that lead to unix sockets of the host, beside those of its spec.

        Raises:
            SandboxError: If it can't be started.
        """
        spec = with_stand_in(await maybe_await(self.get_sandbox_spec, state), self.backend, strict_image=self.strict_image)
        if forwards:
            spec = dataclasses.replace(spec, forwards={**spec.forwards, **forwards})
        sandbox = await self.open_sandbox(spec)
        state["sandbox"], state["sandbox_id"] = sandbox, sandbox.id
        return sandbox

    @hook
    def post_rollout(self, state: State) -> Any:
        """Look at ``state["sandbox"]`` after an episode that was played to its end: keep what rewards need. Plain or async.

        An `Error` is the episode's.
        """
        return Ready()

    async def look_at_sandbox(self, state: State) -> None:
        """Call `post_rollout`: what is done with the sandbox of an episode that was played to its end, before it is closed."""
        await maybe_await(self.post_rollout, state)

    def grading_sandbox(self, state: State, *results: str) -> AbstractAsyncContextManager[Sandbox]:
        """Give a new sandbox like that of an episode, with nothing of it but the results that are named, for what grades them.

        ``async with self.grading_sandbox(state, "add.py") as fresh:`` in `post_rollout`, say.

        Args:
            state: The episode, whose sandbox is there.
            *results: Files and folders that are copied, relative to the working directory.

        Raises:
            SandboxError: If either sandbox fails.
        """
        return fresh_sandbox(state["sandbox"], results)

    @update
    async def destroy_sandbox(self, state: State) -> None:
        """Call `post_rollout`, then close the sandbox, unless it is kept for scoring. Where that was done, this does nothing."""
        was_played = "sandbox" in state and state["is_completed"]
        is_kept = was_played and self.keep_sandbox_for_scoring and self.score_rollouts
        try:
            if was_played:
                await self.look_at_sandbox(state)
        except BaseException as error:
            is_kept = is_kept and isinstance(error, Error)  # any other ends the episode without its being scored
            raise
        finally:
            if not is_kept:
                await self.close_sandbox(state)

    async def close_sandbox(self, state: State) -> None:
        """Close the sandbox of an episode; nothing where that was done."""
        sandbox = state.pop("sandbox", None)
        if sandbox is not None:
            await give_back_sandbox(sandbox.id)

    def __getstate__(self) -> dict[str, Any]:
        if self._episode is not None and "sandbox" in self._episode.state:
            raise EpisodeNotPicklable("a sandbox cannot be pickled or copied: reset() or close() the environment first")
        return self.__dict__

    @property
    def can_go_back(self) -> bool:
        """Whether its episodes can be copied in the middle: where files are all that their sandboxes have, and a snapshot has them all."""
        spec = with_stand_in(self.sandbox_spec, self.backend, strict_image=self.strict_image)
        backend = sandboxes.find_backend(self.backend_for(spec))
        return super().can_go_back and self.has_files_alone and backend.snapshots_have_all_files

    async def copy_resources(self, state: State) -> Mapping[int, Any]:
        """Copy the files of the sandbox.

        Raises:
            EpisodeNotPicklable: If they are not all that there is of it, or cannot be copied.
        """
        sandbox = state.get("sandbox")
        if sandbox is None:
            return {}
        if not self.has_files_alone:
            raise EpisodeNotPicklable(f"the episode cannot be copied: a sandbox of {type(self).__name__} has more in it than files")
        try:
            files = await sandbox.snapshot()
        except SandboxError as error:
            raise EpisodeNotPicklable(f"the episode cannot be copied: the files of its sandbox cannot be: {error}") from error
        if files.left_out is not None:
            raise EpisodeNotPicklable(f"the episode cannot be copied: a snapshot of its sandbox is without {files.left_out}")
        return {id(sandbox): SandboxCopy(sandbox.spec, sandbox.backend, files)}

    async def open_resources(self, state: State) -> None:
        """Make a sandbox with the files that were copied.

        Raises:
            SandboxError: If it can't be started.
        """
        copied = state.get("sandbox")
        if copied is None:
            return
        sandbox = await open_sandbox(copied.spec, copied.backend)
        try:
            await sandbox.restore(copied.files)
        except BaseException:
            await give_back_sandbox(sandbox.id)
            raise
        state["sandbox"], state["sandbox_id"] = sandbox, sandbox.id
