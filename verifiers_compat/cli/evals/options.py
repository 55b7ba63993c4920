"""What commands make of the options that they share, before the fields are checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verifiers_compat.cli.program import parse_json_object
from vfgym.clients.config import PROVIDERS
from vfgym.errors import ConfigurationError


def parse_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were given as options, those of JSON parsed.

    Raises:
        ConfigurationError: If one is not what it should be.
    """
    given = {name: value for name, value in options.items() if value not in (None, [])}
    for name in ("env_args", "sampling_args", "extra_env_kwargs"):
        if name in given:
            given[name] = parse_json_object(f"--{name.replace('_', '-')}", given[name])
    provider = given.get("provider")
    if provider is not None and provider not in PROVIDERS and ("/" in provider or provider.startswith(".") or Path(provider).is_dir()):
        del given["provider"]  # ``-p`` once meant the directory of environments
        if given.setdefault("env_dir_path", provider) != provider:
            raise ConfigurationError(
                f"-p {provider} and --env-dir-path {given['env_dir_path']} both name the directory of environments: give one"
            )
    return given
