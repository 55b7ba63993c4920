"""The backend ``unsafe``: a process with limits of its own, and with all that you may do. It protects nothing but memory and CPU time."""

from __future__ import annotations

import os
import shutil
import tempfile

from vfgym.errors import ConfigurationError
from vfgym.sandboxes.base import Backend, Probe
from vfgym.sandboxes.local import ProcessSandbox, agent_command, agent_settings, find_interpreter, search_path
from vfgym.sandboxes.spec import SandboxSpec


class UnsafeBackend(Backend):
    """Makes sandboxes that are none: commands see the host. Files of the sandbox lie in a folder that is removed with it."""

    name = "unsafe"

    def probe(self) -> Probe:
        """Say what works: it always does."""
        return Probe(works=True, protects={"memory": "each process limited, all together watched"})

    def check(self, spec: SandboxSpec) -> None:
        """Refuse limits that nothing keeps here.

        Raises:
            ConfigurationError: If the spec asks for one.
        """
        kept = {"image": None, "dockerfile": None, "processes": None, "disk_mb": None}
        asked = [name for name, default in kept.items() if getattr(spec, name) != default]
        if spec.network is False:
            asked.append("network=False")
        if asked:
            raise ConfigurationError(f"the backend unsafe can't keep {', '.join(asked)}: leave that at its default, or use another backend")

    async def create(self, spec: SandboxSpec) -> ProcessSandbox:
        """Start a process."""
        sandbox = _UnsafeSandbox(spec, self.name)
        interpreter = find_interpreter()
        env = {
            "PATH": search_path(spec, interpreter, os.environ.get("PATH", os.defpath)),
            "HOME": f"{sandbox.folder}/home",
            "TMPDIR": f"{sandbox.folder}/tmp",
            "LANG": "C.UTF-8",
        }
        settings = agent_settings(spec, processes=None, disk_mb=None, folders=["/home", "/tmp"], root=sandbox.folder)
        await sandbox.start(agent_command(interpreter), env, settings, cwd=sandbox.folder)
        return sandbox


class _UnsafeSandbox(ProcessSandbox):
    def __init__(self, spec: SandboxSpec, backend: str) -> None:
        super().__init__(spec, backend)
        self.folder = tempfile.mkdtemp(prefix="vfgym-")

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
