"""What ``vfgym eval`` is told to play: by options, and by files of several evaluations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from vfgym.cli.eval_files import read_eval_file
from vfgym.cli.fields import TableFields, parse_names
from vfgym.clients import PROVIDERS, ClientConfig
from vfgym.clients.config import check_client_type, make_config, provider_named
from vfgym.errors import ConfigurationError

NUM_EXAMPLES = 20
"""Tasks that are played where it is not said how many."""


@dataclass(frozen=True, kw_only=True)
class EvalSettings:
    """What all agents play, and how (see `vfgym.evaluate`)."""

    env_id: str
    env_args: dict[str, Any]
    num_examples: int
    rollouts_per_example: int
    max_concurrent: int
    seed: int
    split: Literal["train", "eval"]
    example_ids: Sequence[int]
    """Play the tasks with these ids, instead of the first so many; empty for those."""
    both_seats: bool
    """Whether each game for two players is played from either seat (see `vfgym.evaluate`)."""
    max_retries: int
    state_columns: Sequence[str]
    tags: Sequence[str]
    """Words by which the runs are found again."""
    isolate: bool
    """Whether agents run in processes of their own (see `vfgym.agents.isolated.IsolatedAgent`)."""
    sandboxed: bool = False
    """Whether these processes are in sandboxes."""


@dataclass(frozen=True, kw_only=True)
class Models:
    """Models that play, and where they are."""

    names: Sequence[str] = ()
    provider: str | None = None
    base_url: str | None = None
    api_key_var: str | None = None
    client_type: str | None = None
    sampling_args: dict[str, Any] = field(default_factory=dict)

    def config(self) -> ClientConfig | None:
        """Return where the models are; None where there are none.

        Raises:
            ConfigurationError: If that is not said, or in a way that cannot work.
        """
        given: dict[str, Any] = {
            "provider": self.provider,
            "api_base_url": self.base_url,
            "api_key_var": self.api_key_var,
            "client_type": self.client_type,
        }
        fields = {name: value for name, value in given.items() if value is not None}
        if not self.names:
            if fields or self.sampling_args:
                raise ConfigurationError(
                    "--provider, --base-url, --api-key-var, --client-type and --sampling-args are about a --model: name one"
                )
            return None
        if self.provider is None and self.base_url is None:
            raise ConfigurationError(f"say where {self.names[0]} is: --provider ({', '.join(PROVIDERS)}) or --base-url URL")
        if self.provider is not None:
            provider_named(self.provider)
        if self.client_type is not None:
            check_client_type(self.client_type)
        if self.base_url is not None and self.provider is None and self.api_key_var is None:
            fields["api_key_var"] = PROVIDERS["openai"].key_var
        return make_config(**fields)


Names = Annotated[list[str], BeforeValidator(parse_names)]


class EvalFields(TableFields):
    """What is said about an evaluation, in a table of a file or by options of the same names."""

    spellings = {
        "id": "env_id",
        "args": "env_args",
        "agent": "agents",
        "model": "models",
        "tag": "tags",
        "api_base_url": "base_url",
        "api_client_type": "client_type",
    }
    alternatives = (("num_examples", "example_ids"),)

    env_id: str = ""
    env_args: dict[str, Any] = {}
    agents: Names = []
    models: Names = []
    provider: str | None = None
    base_url: str | None = None
    api_key_var: str | None = None
    client_type: str | None = None
    sampling_args: dict[str, Any] = {}
    num_examples: int | None = None
    rollouts_per_example: int = 1
    max_concurrent: int = 64
    seed: int = 0
    split: Literal["train", "eval"] = "eval"
    example_ids: list[int] = []
    both_seats: bool = False
    max_retries: int = 0
    state_columns: Names = []
    tags: Names = []
    isolate: bool = False
    sandboxed: bool = False

    def settings(self) -> EvalSettings:
        """Return what is played."""
        num_examples = -1 if self.example_ids else NUM_EXAMPLES
        return EvalSettings(
            env_id=self.env_id,
            env_args=self.env_args,
            num_examples=num_examples if self.num_examples is None else self.num_examples,
            rollouts_per_example=self.rollouts_per_example,
            max_concurrent=self.max_concurrent,
            seed=self.seed,
            split=self.split,
            example_ids=self.example_ids,
            both_seats=self.both_seats,
            max_retries=self.max_retries,
            state_columns=self.state_columns,
            tags=self.tags,
            isolate=self.isolate,
            sandboxed=self.sandboxed,
        )

    def asked_models(self) -> Models:
        """Return the models that play."""
        return Models(
            names=self.models,
            provider=self.provider,
            base_url=self.base_url,
            api_key_var=self.api_key_var,
            client_type=self.client_type,
            sampling_args=self.sampling_args,
        )


def read_evaluations(target: str, options: Mapping[str, Any], given: Collection[str]) -> list[EvalFields]:
    """Return what is to be evaluated.

    Args:
        target: The id of an environment, or a file of evaluations (``.toml``, see `vfgym.cli.eval_files`).
        options: The values of the options, by the names of `EvalFields`.
        given: Names of those that were given: they win over a file, and the others give way to it.

    Raises:
        ConfigurationError: If the file cannot be read, or an evaluation is not as described.
    """
    is_file = target.endswith(".toml")
    tables = read_eval_file(Path(target), EvalFields) if is_file else [{"env_id": target}]
    own = {name: options[name] for name in given}
    place = target if is_file else "vfgym eval"
    return [EvalFields.parse(EvalFields.override(EvalFields.override(options, table), own), place) for table in tables]
