"""`ClientSandboxes`: environments whose rollouts each have a sandbox, with the documented methods for it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from verifiers_compat.envs.experimental.sandbox_mixin import SandboxCreationError, SandboxMixin
from vfgym.envs.sandboxed import SandboxedEnv
from vfgym.errors import SandboxError
from vfgym.sandboxes import Sandbox, SandboxSpec
from vfgym.state import State


class ClientSandboxes(SandboxedEnv, SandboxMixin):
    """An environment each of whose rollouts has a sandbox, which is made by this class and worked in with the methods of `SandboxMixin`.

    ``state["sandbox_id"]`` names it for them, and for ``state["sandbox_client"]``. A class calls `init_sandbox_client`.
    """

    async def open_sandbox(self, spec: SandboxSpec) -> Sandbox:
        """Return a new sandbox, which is tried as often as ``max_retries`` says.

        Raises:
            SandboxCreationError: If none can be created.
        """
        try:
            sandbox = await self.with_retry(super().open_sandbox, SandboxError)(spec)
        except SandboxError as error:
            raise SandboxCreationError(f"a sandbox could not be created: {error}") from error
        self.register_sandbox(sandbox.id)
        return sandbox

    async def lease_sandbox(self, state: State, forwards: Mapping[int, str | os.PathLike[str]] | None = None) -> Sandbox:
        """Make the sandbox of a rollout, and put it into its state."""
        sandbox = await super().lease_sandbox(state, forwards)
        state["sandbox_client"] = self.sandbox_client
        return sandbox

    async def close_sandbox(self, state: State) -> None:
        """Close the sandbox of a rollout; nothing where that was done."""
        await super().close_sandbox(state)
        self.deregister_sandbox(state.get("sandbox_id", ""))
