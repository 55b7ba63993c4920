"""The plugin by which the ``prime`` tool finds the commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

PRIME_PLUGIN_API_VERSION = 1
"""Version of this contract; the tool compares it with its own."""

_COMMANDS = f"{__name__.partition('.')[0]}.cli.commands"


@dataclass(frozen=True)
class PrimeCLIPlugin:
    """The modules that carry the commands out, or say why they do not exist here.

    They are named as they can be run in any process: ``verifiers.cli.commands...`` exists only where the alias was installed.
    """

    api_version: int = PRIME_PLUGIN_API_VERSION
    eval_module: str = f"{_COMMANDS}.eval"
    gepa_module: str = f"{_COMMANDS}.gepa"
    install_module: str = f"{_COMMANDS}.install"
    init_module: str = f"{_COMMANDS}.init"
    setup_module: str = f"{_COMMANDS}.setup"
    build_module: str = f"{_COMMANDS}.build"

    def build_module_command(self, module_name: str, args: Sequence[str] | None = None) -> list[str]:
        """Return the command that runs a module: this Python, ``-m``, the module, and `args`."""
        return [sys.executable, "-m", module_name, *(args or ())]


def get_plugin() -> PrimeCLIPlugin:
    """Return the plugin."""
    return PrimeCLIPlugin()
