"""Functions that are called in a sandbox: the local package that has one is copied there, and found on the path.

What the package needs is what is installed here: the virtual environment of this process can be read there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers_compat.v1.config import SandboxConfig, resolve_function
from verifiers_compat.v1.local_programs import merge_result
from verifiers_compat.v1.runtime import Runtime
from verifiers_compat.v1.sandboxes import port_of, upload_package
from verifiers_compat.v1.state import PROTECTED
from verifiers_compat.v1.tool_server import program_text, tools_url
from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError, InfraError
from vfgym.interception.wire import plain_data

_FOLDER = "/tmp/vf_program"
"""Where the package and the call are, in the sandbox."""
_APIS = ("chat_completions", "chat", "completions", "responses", "messages")
_LIVE = ("trajectory", "num_model_requests", "runtime", "task")
"""Items of the state that are kept up to date here, while the function runs."""
_MOST_QUOTED = 2000


@dataclass(frozen=True)
class SandboxedFunction:
    """A function by name, and the package that it is in."""

    reference: str
    folder: Path
    """The folder of the host that is copied."""
    inside: str
    """Where it is copied to, below the folder that is on the path."""

    def spec_fields(self) -> dict[str, Any]:
        """Return what the sandbox needs besides: the packages that are installed here."""
        return {"python": sys.prefix} if sys.prefix != sys.base_prefix else {}


def find_function(reference: Any, sandbox: SandboxConfig) -> SandboxedFunction:
    """Return a function that can be called in a sandbox.

    Raises:
        ConfigurationError: If it is not ``"module:name"``, is not there, or is in no local package: ``pyproject.toml`` must lie beside a
            module of a single file, or in the folder of the package.
    """
    if not isinstance(reference, str) or not all(reference.partition(":")):
        raise ConfigurationError(f"a function that runs in a sandbox must be 'module:name', got {reference!r:.100}")
    if sandbox.packages or sandbox.backend == "container":
        raise ConfigurationError(
            "a function that runs in a sandbox finds the packages that are installed here: leave out packages and backend='container'"
        )
    resolve_function(reference, "a program")
    root = reference.partition(":")[0].partition(".")[0]
    module = sys.modules[root]
    is_package = hasattr(module, "__path__")
    file = getattr(module, "__file__", None)  # which modules that are built in do not have
    folder = None if file is None else Path(file).resolve().parent
    if folder is None or not (folder / "pyproject.toml").is_file():
        where = "in its folder" if is_package else "beside its file"
        raise ConfigurationError(f"{root!r} is not a local package that can be copied into a sandbox: there is no pyproject.toml {where}")
    return SandboxedFunction(reference, folder, root if is_package else "")


async def run_sandboxed_function(
    function: SandboxedFunction, running: Runtime, arguments: Mapping[str, Any], env: Mapping[str, str], timeout: float | None
) -> None:
    """Call a function in the program's sandbox, and bring what it changed of the state into the state.

    Items that it left as they were stay as they are here: its tools may have changed them meanwhile.

    Raises:
        InfraError: If it fails, or takes longer than `timeout` seconds.
        SandboxError: If its package cannot be copied.
    """
    state, sandbox = running.state, running.state.get_sandbox()
    port = port_of(sandbox)
    call = {
        "function": function.reference,
        "task": running.task,
        "state": {key: value for key, value in state.items() if key not in PROTECTED},
        "arguments": {name.rpartition(".")[2]: value for name, value in arguments.items()},
        "model": state.get_model(),
        "endpoints": {api: running.endpoint_config(api, port) for api in _APIS},
        "tools": list(running.tools),
        "tools_url": tools_url(running, sandbox),
    }
    text = json.dumps(plain_data(call))
    await upload_package(function.folder, f"{_FOLDER}/package/{function.inside}", sandbox, f"the package of {function.reference}")
    for name in ("call_function.py", "call_tools.py"):
        await sandbox.write_file(f"{_FOLDER}/{name}", program_text(name))
    await sandbox.write_file(f"{_FOLDER}/call.json", text)
    path = os.pathsep.join([f"{_FOLDER}/package", *([env["PYTHONPATH"]] if "PYTHONPATH" in env else [])])
    command = ["python3", f"{_FOLDER}/call_function.py", f"{_FOLDER}/call.json"]
    done = await sandbox.exec(command, env={**env, "PYTHONPATH": path}, timeout=timeout)
    what = f"the program {function.reference} of {type(running.harness).__name__}"
    if done.timed_out:
        raise InfraError(f"{what} was ended, as it took longer than {timeout} s")
    if done.exit_code:
        raise InfraError(f"{what} failed in its sandbox: {done.stderr.strip()[-_MOST_QUOTED:] or f'code {done.exit_code}'}")
    try:
        said = parse_json(await sandbox.read_file(f"{_FOLDER}/result.json"))
        own, result, stopped = dict(said["state"]), said["result"], said["stopped"]
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise InfraError(f"{what} left no result that can be read: {error}") from error
    sent = parse_json(text)["state"]
    state.update({key: value for key, value in _changed(own, sent).items() if key not in PROTECTED and key not in _LIVE})
    merge_result(_changed(result, sent) if isinstance(result, dict) else result, function.reference, running)
    if stopped is not None:
        state.stop(str(stopped))


def _changed(items: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items that are not as they were sent: a function may well return all of the state that it was given."""
    return {key: value for key, value in items.items() if key not in sent or sent[key] != value}
