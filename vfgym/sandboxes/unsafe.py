"""The backend ``unsafe``: a process with limits of its own, and with all that you may do. It protects nothing but memory and CPU time."""

from __future__ import annotations

import os
import secrets
import tempfile

from vfgym.errors import ConfigurationError
from vfgym.sandboxes.base import Backend, Probe
from vfgym.sandboxes.local import ProcessSandbox, agent_command, agent_settings, find_interpreter, search_path
from vfgym.sandboxes.registry import Record, remove_local
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
        not_kept = ("image", "dockerfile", "processes", "disk_mb", "cpus", "start_command")
        asked = [name for name in not_kept if getattr(spec, name) is not None]
        if spec.network is False:
            asked.append("network=False")
        if asked:
            raise ConfigurationError(f"the backend unsafe can't keep {', '.join(asked)}: leave that at its default, or use another backend")

    def remove(self, record: Record) -> None:
        """Kill what may still run, and remove its folder."""
        remove_local(record)

    async def create(self, spec: SandboxSpec) -> ProcessSandbox:
        """Start a process."""
        folder = os.path.join(tempfile.gettempdir(), f"vfgym-sandbox-{secrets.token_hex(8)}")
        sandbox = ProcessSandbox(spec, self, folder)
        interpreter = find_interpreter()
        env = {
            "PATH": search_path(spec, interpreter, os.environ.get("PATH", os.defpath)),
            "HOME": f"{folder}/home",
            "TMPDIR": f"{folder}/tmp",
            "LANG": "C.UTF-8",
        }
        settings = agent_settings(spec, processes=None, disk_mb=None, folders=["/home", "/tmp"], root=folder)
        await sandbox.start(agent_command(interpreter), env, settings, cwd=folder)
        return sandbox
