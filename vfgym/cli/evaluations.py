"""What ``vfgym eval`` is told to play: by options, and by files of several evaluations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, InstanceOf

from vfgym.cli.eval_files import read_eval_file
from vfgym.cli.fields import TableFields, parse_limits, parse_names
from vfgym.clients import PROVIDERS, ClientConfig, EndpointClientConfig
from vfgym.clients.config import check_client_type, make_config, provider_named
from vfgym.errors import ConfigurationError
from vfgym.limits import RolloutLimits, SpendingLimits
from vfgym.results.files import METADATA
from vfgym.runs.spec import RunSettings, RunSpec

NUM_EXAMPLES = 20
"""Tasks that are played where it is not said how many."""


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


class EvalFields(TableFields, RunSettings):
    """What is said about an evaluation, in a table of a file or by options of the same names."""

    spellings = {
        "id": "env_id",
        "args": "env_args",
        "agent": "agents",
        "model": "models",
        "tag": "tags",
        "limit": "limits",
        "limit_each": "limits_each",
        "api_base_url": "base_url",
        "api_client_type": "client_type",
    }
    alternatives = (("num_examples", "example_ids"), *(("client", name) for name in ("provider", "base_url", "api_key_var", "client_type")))

    env_id: str = ""
    env_args: dict[str, Any] = {}
    agents: Names = []
    models: Names = []
    provider: str | None = None
    base_url: str | None = None
    api_key_var: str | None = None
    client_type: str | None = None
    client: InstanceOf[EndpointClientConfig] | None = None
    """Where the models are, whole: of a run that is played again."""
    sampling_args: dict[str, Any] = {}
    isolate: bool = False
    sandboxed: bool = False
    # What files and options write otherwise than arguments do.
    num_examples: int | None = None  # type: ignore[assignment]
    state_columns: Names = []
    tags: Names = []
    limits: Annotated[InstanceOf[SpendingLimits], BeforeValidator(parse_limits(SpendingLimits))] = SpendingLimits()
    limits_each: Annotated[InstanceOf[RolloutLimits], BeforeValidator(parse_limits(RolloutLimits))] = RolloutLimits()

    def specs(self) -> list[RunSpec]:
        """Return the run of each agent and of each model.

        Raises:
            ConfigurationError: If a setting does not fit, or it is not said where a model is.
        """
        said: dict[str, Any] = {**self.arguments(), "env_id": self.env_id, "env_args": self.env_args}
        said["example_ids"] = self.example_ids or None
        if self.num_examples is None:
            said["num_examples"] = -1 if self.example_ids else NUM_EXAMPLES
        config = self.client or self.asked_models().config()
        own = {"isolate": self.isolate, "sandboxed": self.sandboxed}
        who: list[dict[str, Any]] = [{"agent": name, **own} for name in self.agents]
        who += [{"model": name, "client": config, "sampling_args": self.sampling_args} for name in self.models]
        return [RunSpec.of({**said, **each}, "a run's spec") for each in who]

    def asked_models(self) -> Models:
        """Return the models that play."""
        where = ("provider", "base_url", "api_key_var", "client_type", "sampling_args")
        return Models(names=self.models, **{name: getattr(self, name) for name in where})


def read_evaluations(target: str, options: Mapping[str, Any], given: Collection[str]) -> list[EvalFields]:
    """Return what is to be evaluated.

    Args:
        target: The id of an environment, a file of evaluations (``.toml``, see `vfgym.cli.eval_files`), or the directory of a run, which
            is played again.
        options: The values of the options, by the names of `EvalFields`.
        given: Names of those that were given: they win over a file, and the others give way to it.

    Raises:
        ConfigurationError: If the file cannot be read, or an evaluation is not as described.
    """
    is_file = target.endswith(".toml")
    if is_file:
        tables = read_eval_file(Path(target), EvalFields)
    elif is_run(target):
        tables = [_table_of(RunSpec.load(target))]
    else:
        tables = [{"env_id": target}]
    own = {name: options[name] for name in given}
    place = "vfgym eval" if tables == [{"env_id": target}] else target
    return [EvalFields.parse(EvalFields.override(EvalFields.override(options, table), own), place) for table in tables]


def is_run(target: str) -> bool:
    """Say whether what is to be evaluated is the directory of a run."""
    return (Path(target) / METADATA).is_file()


def _table_of(spec: RunSpec) -> dict[str, Any]:
    """Return what a file would say of a run."""
    table: dict[str, Any] = {**spec.arguments(), "env_id": spec.env_id, "env_args": spec.env_args}
    del table["example_ids" if spec.example_ids is None else "num_examples"]
    if spec.client is None:
        return {**table, "agents": [spec.agent], "isolate": spec.isolate, "sandboxed": spec.sandboxed}
    return {**table, "models": [spec.model], "client": spec.client, "sampling_args": spec.sampling_args}
