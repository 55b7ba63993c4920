"""What helps to test environments: clients without a model, a model server without a model, and checks of the library's promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vfgym.checks.environment import Check, check_environment
from vfgym.clients.scripted import ScriptedClient

if TYPE_CHECKING:
    from vfgym.model_server import Faults, ModelRequest, ModelServer, Reply

__all__ = ["Check", "Faults", "ModelRequest", "ModelServer", "Reply", "ScriptedClient", "check_environment"]


def __getattr__(name: str) -> Any:
    # The server needs aiohttp, which the rest does not.
    if name in ("Faults", "ModelRequest", "ModelServer", "Reply"):
        from vfgym import model_server

        return getattr(model_server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
