"""What helps to test environments: clients without a model, and checks of the library's promises."""

from vfgym.testing.checks import Check, check_environment
from vfgym.testing.clients import ScriptedClient

__all__ = ["Check", "ScriptedClient", "check_environment"]
