"""Config files of ``vf-eval``: several evaluations, and ablations that make one for each combination of values."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from verifiers_compat.cli.evals.fields import FileFields
from verifiers_compat.utils.env_utils import SECTIONS
from vfgym.errors import ConfigurationError, did_you_mean

_TABLES = ("eval", "ablation")


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
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the config file {path} cannot be read: {error}") from error
    extra = list(extra_valid_fields)
    tables = {name: content.pop(name, []) for name in _TABLES}
    content = _unfold_env(content, f"{path}")
    for name, rows in tables.items():
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ConfigurationError(f"{path}: {name} must be tables [[{name}]], got {rows!r:.80}")
    misspelt = next(
        (name for name, value in content.items() if name not in FileFields.known_names(extra) and isinstance(value, list | dict)), None
    )
    if misspelt is not None:
        known = [*_TABLES, *FileFields.known_names(extra)]
        raise ConfigurationError(f"{path}: there is no table or field {misspelt!r}.{did_you_mean(misspelt, known)}")
    shared = _check_fields(content, f"{path}", extra)
    if "env_id" in shared:
        if tables["eval"] or tables["ablation"]:
            raise ConfigurationError(f"{path}: an environment belongs into an [[eval]] or [[ablation]] table, not above them")
        tables["eval"] = [{}]
    evals = [
        _merge(shared, normalize_env_id_alias(_unfold_env(row, f"{path}: eval {i}"), f"{path}: eval {i}"), i, "eval", path, extra)
        for i, row in _number_rows(tables["eval"])
    ]
    for i, row in _number_rows(tables["ablation"]):
        for combination in _expand_sweep(row, f"{path}: ablation {i}", extra):
            evals.append(_merge(shared, combination, i, "ablation", path, extra))
    if not evals:
        raise ConfigurationError(f"{path} has no evaluations: add a table [[eval]] with an env_id, or [env] with an id")
    for fields in evals:
        if "endpoints_path" in fields:
            fields["endpoints_path"] = str(path.parent / fields["endpoints_path"])
        _put_sections_into_config(fields, f"{path}: {fields['env_id']}")
    return evals


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
    return [name for name in sweep if name != "args" and name not in valid_fields]


def _number_rows(rows: list[Any]) -> Iterable[tuple[int, Any]]:
    return enumerate(rows, start=1)


def _check_fields(table: Mapping[str, Any], where: str, extra: list[str]) -> dict[str, Any]:
    """Return the fields of a table, checked."""
    fields = FileFields.rename(table, where, extra)
    FileFields.parse({name: value for name, value in fields.items() if name not in extra}, where)
    if "endpoint_id" in fields and "model" in fields:
        raise ConfigurationError(f"{where}: endpoint_id names a model of the endpoint registry, so leave model out (or endpoint_id)")
    return fields


def _merge(shared: Mapping[str, Any], table: Mapping[str, Any], number: int, kind: str, path: Path, extra: list[str]) -> dict[str, Any]:
    where = f"{path}: {kind} {number}"
    own = _check_fields(table, where, extra)
    merged = {**shared, **own}
    if not merged.get("env_id"):
        raise ConfigurationError(f"{where} needs an env_id")
    for name, other in (("model", "endpoint_id"), ("endpoint_id", "model")):
        if name in own and other not in own:
            merged.pop(other, None)
    return merged


def _expand_sweep(table: Mapping[str, Any], where: str, extra: list[str]) -> Iterable[dict[str, Any]]:
    """Give the tables that an ablation stands for."""
    fixed = normalize_env_id_alias(_unfold_env(table, where), where)
    sweep = fixed.pop("sweep", None)
    if not isinstance(sweep, dict) or not sweep:
        raise ConfigurationError(f"{where} needs a table [ablation.sweep] with a list of values for a field, got {sweep!r:.80}")
    sweep = dict(sweep)
    args = sweep.pop("args", {})
    if not isinstance(args, dict):
        raise ConfigurationError(
            f"{where}: [ablation.sweep.args] must be a table with a list of values for each argument, got {args!r:.80}"
        )
    known = FileFields.known_names(extra)
    for name in invalid_ablation_sweep_fields(sweep, known):
        raise ConfigurationError(f"{where}: a sweep has no field {name!r}.{did_you_mean(name, known)}")
    sweep, fixed = FileFields.rename(sweep, f"{where}, sweep", extra), FileFields.rename(fixed, where, extra)
    fixed_args = fixed.pop("env_args", {})
    if not isinstance(fixed_args, dict):
        raise ConfigurationError(f"{where}: env_args must be a table, got {fixed_args!r:.80}")
    if "env_args" in sweep and (args or fixed_args):
        raise ConfigurationError(f"{where}: env_args are swept as a whole, so leave the other arguments of the environment out")
    for place, values, others in (("sweep", sweep, fixed), ("sweep.args", args, fixed_args)):
        for name, each in values.items():
            if name in others:
                raise ConfigurationError(f"{where}: {name!r} is both fixed and in {place}: leave one of them out")
            if not isinstance(each, list) or not each:
                raise ConfigurationError(f"{where}, {place}: {name} must be a list of values, got {each!r:.80}")
    for chosen in itertools.product(*sweep.values()):
        for arguments in itertools.product(*args.values()):
            env_args = {**fixed_args, **dict(zip(args, arguments, strict=True))}
            yield {**fixed, **({"env_args": env_args} if env_args else {}), **dict(zip(sweep, chosen, strict=True))}
