"""Config files of ``vf-eval``: those of `vfgym.cli.eval_files`, with sections for the configuration of an environment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from verifiers_compat.cli.evals.fields import FileFields
from verifiers_compat.utils.env_utils import SECTIONS
from vfgym.cli.eval_files import read_eval_file, unknown_sweep_fields
from vfgym.errors import ConfigurationError, did_you_mean


def load_toml_config(path: str | Path, extra_valid_fields: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Read a config file, and return the fields of each of its evaluations (see `EvalFields`).

    ``[[eval]]`` tables are evaluations; a file without any that names an environment is one. An ``[[ablation]]`` is one for each
    combination of the values in its ``[ablation.sweep]`` (lists, for fields) and ``[ablation.sweep.args]`` (lists, for arguments
    of the environment). What stands above the tables holds for all of them where they do not say otherwise.

    ``[eval.taskset]`` and ``[eval.harness]`` are the sections of the environment's configuration: they become ``config`` among
    its arguments. A table ``[env]`` is another way to write what is about the environment: ``id``, ``[env.args]``,
    ``[env.taskset]`` and ``[env.harness]``.

    Args:
        path: The file.
        extra_valid_fields: Further fields that evaluations may have.

    Returns:
        The fields by their own names, ``endpoints_path`` as seen from the directory of the file.

    Raises:
        ConfigurationError: If the file cannot be read, or something in it is not as described.
    """
    path = Path(path)
    evals = read_eval_file(path, FileFields, extra=extra_valid_fields, unfold=_unfold)
    for fields in evals:
        if "endpoints_path" in fields:
            fields["endpoints_path"] = str(path.parent / fields["endpoints_path"])
        _put_sections_into_config(fields, f"{path}: {fields['env_id']}")
    return evals


def _unfold(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    return normalize_env_id_alias(_unfold_env(table, where), where)


def _unfold_env(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a table with what stands in its table ``env`` as fields of its own."""
    fields = dict(table)
    env = fields.pop("env", {})
    if not isinstance(env, dict):
        raise ConfigurationError(f"{where}: env must be a table [env], got {env!r:.80}")
    for name, value in env.items():
        own = FileFields.of_environment.get(name)
        if own is None:
            known = ", ".join(FileFields.of_environment)
            raise ConfigurationError(f"{where}: [env] has no {name!r}; it has {known}.{did_you_mean(name, FileFields.of_environment)}")
        twice = [spelling for spelling in fields if FileFields.spellings.get(spelling, spelling) == own]
        if twice:
            raise ConfigurationError(f"{where} says the same twice, as {twice[0]} and env.{name}: leave one of them out")
        fields[own] = value
    return fields


def _put_sections_into_config(fields: dict[str, Any], where: str) -> None:
    """Make the sections of an environment's configuration a part of its arguments."""
    sections = {name: fields.pop(name) for name in SECTIONS if name in fields}
    if not sections:
        return
    arguments = dict(fields.get("env_args", {}))
    config = arguments.get("config", {})
    if not isinstance(config, dict) or config.keys() & sections.keys():
        raise ConfigurationError(f"{where}: args.config and {' and '.join(sections)} say the same twice: leave one of them out")
    fields["env_args"] = {**arguments, "config": {**config, **sections}}


def normalize_env_id_alias(config: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return a table with ``env_id`` in place of its other spelling ``id``.

    Args:
        config: The table.
        section: What an error names as the place.

    Raises:
        ConfigurationError: If the table has both.
    """
    fields = dict(config)
    if "id" in fields:
        if "env_id" in fields:
            raise ConfigurationError(f"{section} says the same twice, as id and env_id: leave one of them out")
        fields["env_id"] = fields.pop("id")
    return fields


def invalid_ablation_sweep_fields(sweep: Mapping[str, Any], valid_fields: Collection[str]) -> list[str]:
    """Return the names in a sweep that are not fields, in order. ``args`` is not one of them: it sweeps the environment's arguments."""
    return unknown_sweep_fields(sweep, valid_fields)
