"""Files of evaluations (TOML): tables ``[[eval]]``, and ``[[ablation]]`` that make one for each combination of values."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vfgym.cli.fields import TableFields
from vfgym.errors import ConfigurationError, did_you_mean

_TABLES = ("eval", "ablation")

Unfold: TypeAlias = Callable[[Mapping[str, Any], str], dict[str, Any]]
"""Returns a table with what stands in tables inside it as fields of its own; the text names the place in errors."""


def _as_it_is(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    return dict(table)


def read_eval_file(
    path: str | Path, fields: type[TableFields], *, extra: Iterable[str] = (), unfold: Unfold = _as_it_is
) -> list[dict[str, Any]]:
    """Read a file of evaluations, and return the fields of each.

    ``[[eval]]`` tables are evaluations; a file without any that names an environment is one. An ``[[ablation]]`` is one for each
    combination of the values in its ``[ablation.sweep]`` (lists, for fields) and ``[ablation.sweep.args]`` (lists, for arguments
    of the environment). What stands above the tables holds for all of them where they do not say otherwise.

    Args:
        path: The file.
        fields: What there is to say of an evaluation; its environment is ``env_id``, with arguments ``env_args``.
        extra: Further fields that evaluations may have, unchecked.
        unfold: What is done with each table first.

    Returns:
        The fields by their own names.

    Raises:
        ConfigurationError: If the file cannot be read, or something in it is not as described.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the config file {path} cannot be read: {error}") from error
    return list(_EvalFile(path, fields, list(extra), unfold).evaluations(content))


@dataclass(frozen=True)
class _EvalFile:
    """How a file is read."""

    path: Path
    fields: type[TableFields]
    extra: list[str]
    unfold: Unfold

    def evaluations(self, content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Give the fields of each evaluation."""
        tables = {name: self._tables(name, content.get(name, [])) for name in _TABLES}
        above = self.unfold({name: value for name, value in content.items() if name not in _TABLES}, f"{self.path}")
        self._refuse_other_tables(above)
        shared = self._check(above, f"{self.path}")
        if "env_id" in shared:
            if any(tables.values()):
                raise ConfigurationError(f"{self.path}: an environment belongs into an [[eval]] or [[ablation]] table, not above them")
            tables["eval"] = [{}]
        if not any(tables.values()):
            raise ConfigurationError(f"{self.path} has no evaluations: add a table [[eval]] with an env_id")
        for number, table in enumerate(tables["eval"], start=1):
            where = f"{self.path}: eval {number}"
            yield self._merge(shared, self.unfold(table, where), where)
        for number, table in enumerate(tables["ablation"], start=1):
            where = f"{self.path}: ablation {number}"
            for combination in self._combinations(self.unfold(table, where), where):
                yield self._merge(shared, combination, where)

    def _tables(self, name: str, rows: Any) -> list[dict[str, Any]]:
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ConfigurationError(f"{self.path}: {name} must be tables [[{name}]], got {rows!r:.80}")
        return rows

    def _refuse_other_tables(self, above: Mapping[str, Any]) -> None:
        names = self.fields.known_names(self.extra)
        misspelt = next((name for name, value in above.items() if name not in names and isinstance(value, list | dict)), None)
        if misspelt is not None:
            raise ConfigurationError(f"{self.path}: there is no table or field {misspelt!r}.{did_you_mean(misspelt, [*_TABLES, *names])}")

    def _check(self, table: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the fields of a table, checked."""
        fields = self.fields.rename(table, where, self.extra)
        self.fields.parse({name: value for name, value in fields.items() if name not in self.extra}, where)
        for name, other in self.fields.alternatives:
            if name in fields and other in fields:
                raise ConfigurationError(f"{where}: {name} and {other} say the same in two ways, so leave {name} out (or {other})")
        return fields

    def _merge(self, shared: Mapping[str, Any], table: Mapping[str, Any], where: str) -> dict[str, Any]:
        merged = self.fields.override(shared, self._check(table, where))
        if not merged.get("env_id"):
            raise ConfigurationError(f"{where} needs an env_id")
        return merged

    def _combinations(self, table: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
        """Give the tables that an ablation stands for."""
        fixed = dict(table)
        sweep = fixed.pop("sweep", None)
        if not isinstance(sweep, dict) or not sweep:
            raise ConfigurationError(f"{where} needs a table [ablation.sweep] with a list of values for a field, got {sweep!r:.80}")
        sweep = dict(sweep)
        args = sweep.pop("args", {})
        if not isinstance(args, dict):
            raise ConfigurationError(
                f"{where}: [ablation.sweep.args] must be a table with a list of values for each argument, got {args!r:.80}"
            )
        known = self.fields.known_names(self.extra)
        for name in unknown_sweep_fields(sweep, known):
            raise ConfigurationError(f"{where}: a sweep has no field {name!r}.{did_you_mean(name, known)}")
        sweep = self.fields.rename(sweep, f"{where}, sweep", self.extra)
        fixed = self.fields.rename(fixed, where, self.extra)
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
        for chosen in combinations(sweep):
            for arguments in combinations(args):
                env_args = {**fixed_args, **arguments}
                yield {**fixed, **({"env_args": env_args} if env_args else {}), **chosen}


def combinations(values: Mapping[str, Iterable[Any]]) -> Iterator[dict[str, Any]]:
    """Give each combination of values, one for each name; the values of the last name change first.

    >>> list(combinations({"history": [1, 2], "observe": ["text"]}))
    [{'history': 1, 'observe': 'text'}, {'history': 2, 'observe': 'text'}]
    """
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def unknown_sweep_fields(sweep: Mapping[str, Any], known: Collection[str]) -> list[str]:
    """Return the names in a sweep that are not fields, in order. ``args`` is not one of them: it sweeps the environment's arguments."""
    return [name for name in sweep if name != "args" and name not in known]
