"""The plugin of the ``prime`` tool names modules that run."""

from __future__ import annotations

import sys

from verifiers_compat.cli.plugins.prime import PRIME_PLUGIN_API_VERSION, PrimeCLIPlugin, get_plugin


def test_the_plugin_names_the_modules_of_the_commands() -> None:
    """That they run as modules is tested with `test_program.py`."""
    plugin = get_plugin()
    assert isinstance(plugin, PrimeCLIPlugin)
    assert plugin.api_version == PRIME_PLUGIN_API_VERSION == 1
    for name in ("eval", "gepa", "install", "init", "setup", "build"):
        assert getattr(plugin, f"{name}_module") == f"verifiers_compat.cli.commands.{name}"
    assert plugin.build_module_command("m", ["--help", ""]) == [sys.executable, "-m", "m", "--help", ""]
    assert plugin.build_module_command("m") == plugin.build_module_command("m", []) == [sys.executable, "-m", "m"]
