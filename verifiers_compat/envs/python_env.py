"""`PythonEnv` with the rollout API and the documented arguments."""

from __future__ import annotations

import asyncio
from typing import Any

from verifiers_compat.envs.sandbox_env import SandboxEnv
from verifiers_compat.loading import create_getattr
from vfgym.envs import python as vfgym_python
from vfgym.envs.python import PythonMonitorRubric, PythonWorkerState
from vfgym.errors import SandboxError
from vfgym.sandboxes import Sandbox, SandboxSpec
from vfgym.state import State


class PythonWorkerNotReadyError(SandboxError):
    """The interpreter of a rollout, or its packages, could not be made ready."""


class PythonWorkerRequestError(SandboxError):
    """A cell could not be sent. Here that is any other `vf.SandboxError`."""


class PythonWorkerDeadError(SandboxError):
    """An interpreter has ended. Here the model is told so, and the next cell gets another one."""


class PythonEnv(SandboxEnv, vfgym_python.PythonEnv):
    """`vfgym.PythonEnv` with the rollout API: the tool ``python`` in sandboxes of this machine, without a hosted service."""

    def __init__(self, pip_install_packages: str = "numpy sympy scipy", max_startup_wait_seconds: float = 30, **kwargs: Any) -> None:
        """Define an environment.

        Args:
            pip_install_packages: What ``pip install`` is given, once, outside the sandboxes (see `vfgym.PythonEnv`).
            max_startup_wait_seconds: Seconds in which a sandbox must be there, without the time for the packages.
            **kwargs: Passed to `SandboxEnv`.

        Raises:
            ConfigurationError: As of `SandboxEnv`.
        """
        self.max_startup_wait_seconds = max_startup_wait_seconds
        super().__init__(**{"sandbox_name": "python-env", **kwargs, "pip_install_packages": pip_install_packages})

    async def get_sandbox_spec(self, state: State) -> Any:
        """Return what the sandbox of a rollout is like, with the packages.

        Raises:
            PythonWorkerNotReadyError: If they can't be installed.
        """
        spec: SandboxSpec = await super().get_sandbox_spec(state)
        try:
            return await self.add_packages(spec)
        except SandboxError as error:
            raise PythonWorkerNotReadyError(str(error)) from error

    async def open_sandbox(self, spec: SandboxSpec) -> Sandbox:
        """Return a new sandbox, in time.

        Raises:
            PythonWorkerNotReadyError: If it is not there in time.
        """
        try:
            async with asyncio.timeout(self.max_startup_wait_seconds):
                return await super().open_sandbox(spec)
        except TimeoutError:
            raise PythonWorkerNotReadyError(f"no sandbox was there within {self.max_startup_wait_seconds:g} s") from None


__all__ = [
    "PythonEnv",
    "PythonMonitorRubric",
    "PythonWorkerDeadError",
    "PythonWorkerNotReadyError",
    "PythonWorkerRequestError",
    "PythonWorkerState",
]

__getattr__ = create_getattr(__name__)
