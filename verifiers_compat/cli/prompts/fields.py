"""`GepaFields`: what a command line or a config file says about a run of ``vf-gepa``, before defaults are filled in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field
from typer import Option

from verifiers_compat.cli.evals.fields import Count, Flag, PlayFields, Text
from vfgym.cli.fields import parse_names
from vfgym.errors import ConfigurationError

_TABLES = ("env", "gepa", "sampling")
"""Tables of a config file, whose fields may stand at its top as well, but for those of ``sampling``."""


class GepaFields(PlayFields):
    """What is said about a run. A field that was not given is None."""

    reflection_model: Annotated[
        Text, Option("--reflection-model", "-M", help="The model that writes prompts, or its name in the endpoint registry. [--model]")
    ] = None
    system_prompt_file: Annotated[
        Text, Option("--system-prompt", metavar="FILE", help="A file with the prompt to begin with. [the environment's]")
    ] = None
    max_calls: Annotated[Count, Option("--max-calls", "-B", help="Rollouts after which no new round begins. [500]")] = None
    num_train: Annotated[Count, Option("--num-train", "-n", help="Training examples. [100]")] = None
    num_val: Annotated[Count, Option("--num-val", "-N", help="Validation examples. [50]")] = None
    minibatch_size: Annotated[Count, Option("--minibatch-size", help="Training examples of a round. [3]")] = None
    perfect_score: Annotated[
        float | None, Option("--perfect-score", help="A score that cannot be exceeded: examples that have it need no better prompt.")
    ] = None
    state_columns: Annotated[
        Annotated[list[str], BeforeValidator(parse_names)] | None,
        Option("--state-columns", metavar="NAMES", help="Items of the state that the model that writes prompts is shown, by commas."),
    ] = None
    seed: Annotated[Annotated[int, Field(ge=0)] | None, Option("--seed", help="Seed of the run. [0]")] = None
    run_dir: Annotated[
        Text,
        Option("--run-dir", "-o", metavar="DIR", help="Directory of the run; a stopped one goes on. [a new one in outputs/gepa]"),
    ] = None
    no_save: Annotated[Flag, Option("--no-save", help="Write nothing.")] = None

    @classmethod
    def read(cls, file: str) -> Self:
        """Return what a config file says.

        Its tables are ``[env]`` (``env_id``, ``env_args``, ``extra_env_kwargs``), ``[gepa]`` and ``[sampling]`` (sampling arguments). The
        fields of the first two may stand at the top of the file too, as those of the model do.

        Raises:
            ConfigurationError: If it cannot be read, or says something that a run does not have.
        """
        try:
            content = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{file} cannot be read: {error}") from None
        given = {name: value for name, value in content.items() if name not in _TABLES}
        for name in _TABLES:
            table = content.get(name, {})
            if isinstance(table, list) and len(table) == 1:
                (table,) = table
            if not isinstance(table, Mapping):
                raise ConfigurationError(
                    f"{file}: a run has one table [{name}], got {type(table).__name__}. Join environments in an EnvGroup"
                )
            fields = {"sampling_args": dict(table)} if name == "sampling" and table else table
            both = next((field for field in fields if field in given), None)
            if both is not None:
                raise ConfigurationError(f"{file}: {both} is given twice: leave one of them out")
            given.update(fields)
        return cls.parse(given, file)


def read_prompt(file: str) -> str:
    """Return the system prompt in a file, whitespace at its end left out.

    Raises:
        ConfigurationError: If it cannot be read.
    """
    try:
        return Path(file).read_text(encoding="utf-8").rstrip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the system prompt cannot be read: {error}") from None


def given_arguments(fields: GepaFields) -> dict[str, Any]:
    """Return what is given of the arguments that `optimize_prompt` has under the same names."""
    names = ("max_calls", "num_train", "num_val", "minibatch_size", "perfect_score", "state_columns", "seed", "max_concurrent")
    return {name: getattr(fields, name) for name in names if getattr(fields, name) is not None}
