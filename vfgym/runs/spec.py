"""What a run is, as data: `RunSettings` say how it goes, and a `RunSpec` also what is played, and by whom.

Each setting is said once, here. `evaluate` takes it as an argument, ``vfgym eval`` as an option and its files as a key, all by the name
of the field, and the metadata of a run hold them all.
"""

from __future__ import annotations

import concurrent.futures
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypedDict, TypeVar, cast

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from pydantic import BaseModel, BeforeValidator, ConfigDict, InstanceOf, PlainSerializer, ValidationError, field_serializer

from vfgym.agents.base import Agent, NamedAgent
from vfgym.agents.loading import AGENTS, load_agent
from vfgym.agents.model import ModelAgent
from vfgym.bounded_json import parse_json
from vfgym.calls import maybe_await
from vfgym.clients import ClientConfig, EndpointClientConfig
from vfgym.clients.cache import ResponseCache, default_cache_path
from vfgym.clients.config import NO_KEY
from vfgym.errors import ConfigurationError, UnknownArgument, did_you_mean
from vfgym.limits import RolloutLimits, SpendingLimits
from vfgym.output.redaction import REDACTED, excerpt, redact_data, with_secrets
from vfgym.prices import PriceTable
from vfgym.results.files import METADATA
from vfgym.runs.spending import CacheLike, LimitsLike, PricesLike, RolloutLimitsLike

F = TypeVar("F", bound=Callable[..., Any])


def check_integer(name: str, value: Any, allowed: str, *, least: int, or_all: bool = False) -> int:
    """Return an argument that counts something as an ``int``, which NumPy's integers are not.

    Args:
        name: Name of the argument.
        value: What was given for it.
        allowed: What may be given, in words.
        least: The least that it may be.
        or_all: Whether it may be -1 as well.

    Raises:
        ConfigurationError: If it is something else.
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or (value < least and not (or_all and value == -1)):
        raise ConfigurationError(f"{name} must be {allowed}, got {value!r}")
    return int(value)


def _count(name: str, *, least: int = 1, or_all: bool = False) -> BeforeValidator:
    allowed = "an integer from 0" if least == 0 else "a positive integer"
    allowed += ", or -1 for no limit" if or_all else ""
    return BeforeValidator(lambda value: check_integer(name, value, allowed, least=least, or_all=or_all))


def _flag(name: str, *, or_none: bool = False) -> BeforeValidator:
    def check(value: Any) -> Any:
        if not isinstance(value, bool) and not (or_none and value is None):
            raise ConfigurationError(f"{name} must be True or False, got {value!r}")
        return value

    return BeforeValidator(check)


def _names(name: str, example: str) -> BeforeValidator:
    def check(value: Any) -> list[str]:
        names = None if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
        if names is None or not all(isinstance(each, str) and each for each in names):
            raise ConfigurationError(f"{name} must be a list of names, such as ['{example}'], got {value if names is None else names!r}")
        return names

    return BeforeValidator(check)


def _ids(value: Any) -> list[int] | None:
    if value is None:
        return None
    ids = None if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if ids is None:
        raise ConfigurationError(f"example_ids must be a list of ids, such as [3, 5, 8], got {value!r}")
    return [check_integer("each of example_ids", each, "an integer", least=-(2**63)) for each in ids]


def _shard(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    given = value
    if value == "auto":
        given = shard_of_process()
    elif isinstance(value, str):
        given = value.split("/")
    try:
        place, count = map(int, given)
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"shard must be the number of a part and how many there are, such as 0/3 or (0, 3), got {value!r}"
        ) from None
    if not 0 <= place < count:
        raise ConfigurationError(f"there is no shard {place} of {count}: they are numbered from 0 to {count - 1}")
    return place, count


ExampleIds = Annotated[list[int] | None, BeforeValidator(_ids)]
Shard = Annotated[tuple[int, int] | None, BeforeValidator(_shard)]

_workers = BeforeValidator(lambda value: value if value is None else check_integer("workers", value, "a positive integer", least=1))

_SHARD_VARIABLES = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"),
    ("SLURM_PROCID", "SLURM_NTASKS", None),
    ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", None),
)
"""Variables that say which process of a job this one is: its number, how many there are, and the number of the first (0 without one)."""


def shard_of_process() -> tuple[int, int]:
    """Return which part of a run this process plays, by the variables of Slurm (array jobs, else tasks) and of Kubernetes' indexed jobs.

    Kubernetes tells a job's pods their numbers only: the job's manifest sets ``JOB_COMPLETIONS`` to how many there are.

    Raises:
        ConfigurationError: If they do not say so.
    """
    for number, count, first in _SHARD_VARIABLES:
        if number in os.environ and count in os.environ:
            try:
                return int(os.environ[number]) - int(os.environ.get(first, 0) if first else 0), int(os.environ[count])
            except ValueError:
                raise ConfigurationError(
                    f"shard auto: {number} and {count} must be numbers, got {os.environ[number]!r} and {os.environ[count]!r}"
                ) from None
    pairs = ", or ".join(f"{number} and {count}" for number, count, _ in _SHARD_VARIABLES)
    raise ConfigurationError(f"shard auto reads which part this process plays from {pairs}, and none of these pairs is set")


def _threshold(value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float | np.number) or isinstance(value, bool):
        raise ConfigurationError(f"pass_threshold must be a number, got {value!r}")
    return float(value)


def _limits(kind: type[SpendingLimits] | type[RolloutLimits]) -> tuple[Any, Any]:
    return BeforeValidator(kind.of), PlainSerializer(lambda limits: limits.given())


def _prices(given: PricesLike) -> PriceTable | None:
    return None if given is None else PriceTable.of(given)


def _cache(given: CacheLike) -> ResponseCache | None:
    if isinstance(given, bool) or given is None:
        return ResponseCache() if given else None
    return given if isinstance(given, ResponseCache) else ResponseCache(Path(given))


class RunSettings(BaseModel):
    """How a run goes, whatever is played and whoever plays."""

    # Built when the first run is asked for. What stands below a field is its description, and the help of its option.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, use_attribute_docstrings=True)

    num_examples: Annotated[int, _count("num_examples", or_all=True)] = -1
    """Play the first so many tasks; -1 for all of them."""
    rollouts_per_example: Annotated[int, _count("rollouts_per_example")] = 1
    """Episodes of each task."""
    max_concurrent: Annotated[int, _count("max_concurrent", or_all=True)] = 64
    """Most episodes at once; -1 for no limit. A human is asked in one after the other."""
    seed: Annotated[int, _count("seed", least=0)] = 0
    """Seed of the run. Each rollout's random numbers follow from it, whatever runs beside it."""
    split: Literal["train", "eval"] = "eval"
    """Which tasks are played."""
    example_ids: ExampleIds = None
    """Play the tasks with these ids, in this order, instead of the first ones."""
    both_seats: Annotated[bool, _flag("both_seats")] = False
    """Play each game for two players twice, once from either seat and with the same seed. A rollout is then a pair of rows, with ``player``
    and ``pair``, and there are twice as many of each task."""
    independent_scoring: Annotated[bool | None, _flag("independent_scoring", or_none=True)] = None
    """False scores the rollouts of each task together, so that they have advantages (the reward minus the group's mean), and keeps them
    together. None does so where a reward function needs it; True never does."""
    max_retries: Annotated[int, _count("max_retries", least=0)] = 0
    """How often a rollout is repeated where the infrastructure or an unusable response of the model ended it. An attempt that is repeated
    is not scored."""
    pass_threshold: Annotated[float | None, BeforeValidator(_threshold)] = None
    """Reward from which a rollout passes, in pass@k; the environment's own by default."""
    shard: Shard = None
    """Play a part of the run: ``(i, n)``, also written ``"i/n"``, plays the rollouts whose place, divided by n, leaves i; ``"auto"`` reads
    both from the variables of Slurm or Kubernetes. What is scored together stays together. ``vfgym merge`` makes one run of the parts."""
    state_columns: Annotated[list[str], _names("state_columns", "trajectory")] = []
    """Items of each episode's state to keep in its row."""
    tags: Annotated[list[str], _names("tags", "baseline")] = []
    """Words by which the run is found again: the metadata have them, with those that a run that is resumed had."""
    limits: Annotated[InstanceOf[SpendingLimits], *_limits(SpendingLimits)] = SpendingLimits()
    """What the run may spend, such as ``{"tokens": 100_000, "cost": 2.5, "time": 600, "errors": 10, "requests": 500}`` (time in seconds;
    judges count). No request and no rollout begins where one is used up: then rollouts that are running are given up, what was finished
    is returned, and ``metadata["stopped_by"]`` says which limit it was. A run that is resumed counts on."""
    limits_each: Annotated[InstanceOf[RolloutLimits], *_limits(RolloutLimits)] = RolloutLimits()
    """What each rollout may spend, such as ``{"tokens": 2000, "turns": 8, "time": 60}``. It cuts an episode, with the stop condition
    ``limit_reached``. What was cut is scored, and counts with at most the environment's ``failure_reward``."""
    prices: Annotated[InstanceOf[PriceTable] | None, BeforeValidator(_prices)] = None
    """What models cost: a TOML file or a dict with a table for each model, ``input`` and ``output`` for a million tokens."""
    cache: Annotated[InstanceOf[ResponseCache] | None, BeforeValidator(_cache)] = None
    """Whether answers of models are kept and not asked for twice (see `vfgym.clients.cache`); or the file."""
    executor: Literal["local", "process", "ray"] = "local"
    """Where rollouts play: ``"local"`` in this process, ``"process"`` in several processes of this machine, ``"ray"`` in those of a Ray
    cluster. `evaluate` takes any `concurrent.futures.Executor`, too, which the metadata do not name: rows are the same wherever they are
    played. What is played there must have a name: see ``docs/scale.md``."""
    workers: Annotated[int | None, _workers] = None
    """How many processes play, with an executor; `max_concurrent` is divided among them. None for one for each core of this machine, or as
    many as an executor has."""
    strict: Annotated[bool, _flag("strict")] = False
    """Raise the first exception that is not a `vfgym.errors.Error`, instead of recording it as its rollout's error."""

    @field_serializer("prices")
    def _as_table(self, prices: PriceTable | None) -> dict[str, dict[str, float]] | None:
        return None if prices is None else prices.as_dict()

    @field_serializer("cache")
    def _as_file(self, cache: ResponseCache | None) -> str | bool | None:
        if cache is None:
            return None
        return True if cache.path == default_cache_path() else str(cache.path)  # whoever plays it again has a cache, too

    def arguments(self) -> RunArguments:
        """Return the settings as arguments of `evaluate`."""
        return cast(RunArguments, {name: getattr(self, name) for name in RunSettings.model_fields})

    @classmethod
    def of(cls, given: Mapping[str, Any], taker: str) -> Self:
        """Return checked settings.

        Args:
            given: The settings by their names.
            taker: Who takes them, as errors name it.

        Raises:
            UnknownArgument: If there is no such setting (a ``TypeError``, too).
            ConfigurationError: If a value does not fit.
        """
        unknown = next((name for name in given if name not in cls.model_fields), None)
        if unknown is not None:
            raise UnknownArgument(f"{taker} has no argument {unknown!r}.{did_you_mean(unknown, cls.model_fields)}")
        try:
            return cls(**given)
        except ValidationError as error:
            raise ConfigurationError(describe_problem(error)) from None


def describe_problem(error: ValidationError) -> str:
    """Return what is wrong with the first field that does not fit, and what was given for it, without secrets."""
    problem = error.errors()[0]
    own = problem.get("ctx", {}).get("error")
    if isinstance(own, ConfigurationError):  # which names the field
        return str(own)
    name = str(problem["loc"][0])
    message = problem["msg"].removeprefix("Input ").removeprefix("should ")
    return f"{'.'.join(map(str, problem['loc']))} must {message}, got {excerpt(with_secrets({name: problem['input']})[name], 80)}"


class RunArguments(TypedDict, total=False):
    """The fields of `RunSettings` as arguments, for type checkers."""

    num_examples: int
    rollouts_per_example: int
    max_concurrent: int
    seed: int
    split: Literal["train", "eval"]
    example_ids: Iterable[int] | None
    both_seats: bool
    independent_scoring: bool | None
    max_retries: int
    pass_threshold: float | None
    shard: tuple[int, int] | str | None
    state_columns: Iterable[str]
    tags: Iterable[str]
    limits: LimitsLike
    limits_each: RolloutLimitsLike
    prices: PricesLike
    cache: CacheLike
    executor: Literal["local", "process", "ray"] | concurrent.futures.Executor
    workers: int | None
    strict: bool


def takes_settings(func: F) -> F:
    """Let a function that takes ``**settings`` show each of them, with its default, in its signature."""
    signature = inspect.signature(func)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    hints = RunArguments.__annotations__
    fields = RunSettings.model_fields
    settings = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[name].__forward_arg__)
        for name, field in fields.items()
    ]
    func.__signature__ = signature.replace(parameters=[*own, *settings])  # type: ignore[attr-defined]
    return func


class RunSpec(RunSettings):
    """A run as data: what is played, by whom, and how. It can be written down and played again.

    >>> spec = RunSpec(env_id="reasoning-gym/leg_counting-v0", agent="oracle", num_examples=2)
    >>> RunSpec.from_json(spec.to_json()) == spec
    True
    """

    env_id: str
    """A registered id, or ``module:function``, which makes the environment."""
    env_args: dict[str, Any] = {}
    """Arguments of the environment."""
    agent: str | None = None
    """Who plays: an agent by its name, or ``module:callable`` (see `vfgym.agents.load_agent`). None where a model plays."""
    model: str | None = None
    """The model that plays, as its provider calls it; with an agent, what the results call the agent."""
    client: ClientConfig | EndpointClientConfig | None = None
    """Where the model is, and how it is asked."""
    sampling_args: dict[str, Any] = {}
    """Generation parameters."""
    isolate: Annotated[bool, _flag("isolate")] = False
    """Run an agent of one's own in processes (see `vfgym.agents.isolated.IsolatedAgent`)."""
    sandboxed: Annotated[bool, _flag("sandboxed")] = False
    """Run these processes in sandboxes."""

    @property
    def name(self) -> str:
        """What results call who plays."""
        return self.model or self.agent or ""

    def make_agent(self) -> Agent:
        """Return who plays: a new agent, which whoever asks for it closes.

        Raises:
            ConfigurationError: If there is no such agent, or it is not said who plays.
        """
        for name in ("env_args", "sampling_args"):
            if REDACTED in json.dumps(getattr(self, name), default=str):
                raise ConfigurationError(f"the {name} of this run had a secret in them, which is not kept: give them again")
        if self.client is not None:
            for endpoint in getattr(self.client, "endpoint_configs", None) or [self.client]:
                endpoint.resolve_api_key()  # which says what was not kept
            return ModelAgent(self.client, self.model or "", self.sampling_args)
        if self.agent is None:
            raise ConfigurationError("the spec does not say who plays: it has neither an agent nor a client with a model")
        if (self.isolate or self.sandboxed) and self.agent not in AGENTS:  # the library's own need nothing to be kept from
            from vfgym.agents.isolated import IsolatedAgent  # which imports what makes sandboxes

            return IsolatedAgent(self.agent, sandbox=self.sandboxed)
        return load_agent(self.agent)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON data, without secrets: what `from_json` takes."""
        data = redact_data(self.model_dump(mode="json"))
        if self.client is not None and self.client.api_key not in (None, NO_KEY):  # which is never written: whoever plays it again gives it
            data["client"]["api_key"] = REDACTED
        return data  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the spec that JSON data tell.

        Raises:
            ConfigurationError: If they are none.
        """
        return cls.of(data, "a run's spec")

    @classmethod
    def load(cls, run: str | Path) -> Self:
        """Return the spec of a run that was played.

        Args:
            run: The directory of its results.

        Raises:
            ConfigurationError: If there is no run, or what it played has no name by which it could be played again.
        """
        path = Path(run) / METADATA
        try:
            metadata = parse_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"there is no run in {run}: {error}") from error
        spec = metadata.get("spec") if isinstance(metadata, dict) else None
        if not isinstance(spec, dict):
            raise ConfigurationError(
                f"the run in {run} cannot be played again from its files: its environment or agent was given as an object, not by a name,"
                " or it was played by an earlier version"
            )
        return cls.from_json(spec)


def describe(
    env: Any, given: Agent | str, agent: Agent, env_args: Mapping[str, Any] | None, model: str | None, how: RunSettings
) -> RunSpec | None:
    """Return the spec of a run that `evaluate` was asked for; None where the environment or the agent is an object without a name.

    Args:
        env: The environment, as it was given.
        given: The agent, as it was given.
        agent: The agent itself.
        env_args: Arguments of the environment.
        model: What the results call the agent, if that was given.
        how: The settings.
    """
    name, who = name_of_env(env), _who(given, agent)
    if name is None or who is None:
        return None
    return RunSpec.of({**how.arguments(), "model": model, **who, "env_id": name, "env_args": dict(env_args or {})}, "a run's spec")


def name_of_env(env: Any) -> str | None:
    """Return by which name an environment can be made again: its id, or that of the function that makes it; None where it has none."""
    if isinstance(env, str):
        return env
    if isinstance(env, EnvSpec):
        return env.id if gym.registry.get(env.id) == env else None
    return _name_of_object(env)


def _who(given: Agent | str, agent: Agent) -> dict[str, Any] | None:
    if isinstance(given, str):
        return {"agent": given}
    if isinstance(agent, NamedAgent):
        return agent.as_spec()
    name = _name_of_object(agent)
    return None if name is None else {"agent": name}


def _name_of_object(value: Any) -> str | None:
    """Return the name by which something can be imported, as ``module:object``; None where it has none."""
    module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        return None
    found: Any = None if module == "__main__" else sys.modules.get(module)
    for attribute in path.split("."):
        found = getattr(found, attribute, None)
    return f"{module}:{path}" if found is value and found is not None else None


async def close_agent(agent: Agent) -> None:
    """Close the connections or processes of who plays, if it has any."""
    if isinstance(agent, NamedAgent):
        await maybe_await(agent.close)
