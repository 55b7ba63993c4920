"""Configuration models: what a taskset and a harness are, as data, from Python or from TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from vfgym.agents.loading import import_object
from vfgym.errors import ConfigurationError, did_you_mean


class Config(BaseModel):
    """A model whose constructor takes another configuration to start from, and fields that win over it.

    >>> HarnessConfig(HarnessConfig(max_turns=3, model="a"), model="b").max_turns
    3
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, config: object | None = None, /, **data: object) -> None:
        """Check the fields.

        Args:
            config: A configuration or a mapping to start from.
            **data: Fields. One that is None leaves the field of `config` as it is.

        Raises:
            ConfigurationError: If `config` is neither.
            pydantic.ValidationError: If a field does not exist or does not fit (a ``ValueError``).
        """
        super().__init__(**{**_fields_of(config, type(self)), **{name: value for name, value in data.items() if value is not None}})

    @classmethod
    def from_config(cls, config: object | None = None, /, **data: object) -> Self:
        """Return a configuration of this class (see `Config`)."""
        return cls(config, **data)

    @classmethod
    def from_toml(cls, path: str | Path, section: str | Iterable[str] | None = None) -> Self:
        """Read a configuration from a TOML file.

        Args:
            path: The file.
            section: The table that holds the fields, as ``"env.taskset"`` or as a list of keys; the whole file without it.

        Raises:
            ConfigurationError: If there is no such table.
        """
        table: Any = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        keys = section.split(".") if isinstance(section, str) else list(section or ())
        for depth, key in enumerate(keys):
            if not isinstance(table, Mapping) or key not in table:
                known = list(table) if isinstance(table, Mapping) else []
                raise ConfigurationError(f"{path} has no table [{'.'.join(keys[: depth + 1])}].{did_you_mean(key, known)}")
            table = table[key]
        if not isinstance(table, Mapping):
            raise ConfigurationError(f"[{'.'.join(keys)}] of {path} is not a table")
        return cls(table)

    @classmethod
    def schema_text(cls) -> str:
        """Return the fields and their types as JSON text, for people to read."""
        return json.dumps(cls.model_json_schema(), indent=2)


def _fields_of(config: object | None, cls: type[BaseModel]) -> dict[str, Any]:
    if config is None:
        return {}
    if isinstance(config, BaseModel):
        return {name: getattr(config, name) for name in config.model_fields_set}
    if isinstance(config, Mapping):
        return dict(config)
    raise ConfigurationError(f"{cls.__name__} starts from a configuration or a mapping, got {type(config).__name__}")


class SandboxConfig(Config):
    """The sandbox that a program, tool or user would run in."""

    image: str = "python:3.11-slim"
    start_command: str = "tail -f /dev/null"
    cpu_cores: float = Field(default=1, gt=0)
    memory_gb: float = Field(default=2, gt=0)
    disk_size_gb: float = Field(default=5, gt=0)
    gpu_count: int = Field(default=0, ge=0)
    network_access: bool = True
    timeout_minutes: int = Field(default=60, gt=0)
    install_timeout: int = Field(default=300, gt=0)
    """Seconds that installing packages may take."""
    setup_timeout: int = Field(default=300, gt=0)
    """Seconds that a setup command may take."""
    packages: list[str] = []
    setup_commands: list[str] = []
    workdir: str | None = None
    environment_vars: dict[str, str] = {}
    labels: list[str] = []
    scope: Literal["rollout", "group", "global"] = "rollout"


class CallableConfig(Config):
    """A handler or signal, where it is more than a bare reference."""

    fn: object
    """The function, or ``"module:object"``."""
    priority: int | None = None
    stage: Literal["rollout", "group"] | None = None
    weight: float | None = None


class ScoringConfig(Config):
    """What a run changes about one signal."""

    stage: Literal["rollout", "group"] | None = None
    priority: int | None = None
    weight: float | None = None
    skip: bool = False


class MCPToolConfig(Config):
    """A tool server that is started for a toolset."""

    command: str
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None


class UserConfig(Config):
    """A simulated user."""

    fn: object
    scope: Literal["rollout", "group", "global"] = "rollout"
    bindings: dict[str, object] = {}
    objects: dict[str, object] = {}
    sandbox: object | None = None


class _Handlers(Config):
    stops: list[object] = []
    setups: list[object] = []
    updates: list[object] = []
    metrics: list[object] = []
    rewards: list[object] = []
    advantages: list[object] = []
    cleanups: list[object] = []
    teardowns: list[object] = []


class ToolsetConfig(_Handlers):
    """A toolset."""

    tools: list[object] = []
    show: list[str] | None = None
    hide: list[str] | None = None
    bindings: dict[str, object] = {}
    objects: dict[str, object] = {}
    write: bool = False
    scope: Literal["rollout", "group", "global"] | None = None
    sandbox: object | None = None


class _Participant(_Handlers):
    system_prompt: object | None = None
    user: object | None = None
    toolsets: object = ()
    scoring: dict[str, ScoringConfig] = {}


class TasksetConfig(_Participant):
    """A taskset."""

    taskset_id: str | None = None
    source: object | None = None
    eval_source: object | None = None


class HarnessConfig(_Participant):
    """A harness."""

    program: object | None = None
    sandbox: SandboxConfig | None = None
    client: object | None = None
    model: str | None = None
    sampling_args: dict[str, object] = {}
    max_turns: int = 10
    system_prompt_merge: Literal["reject", "concat", "task", "taskset", "harness"] = "reject"


class EnvConfig(Config):
    """An environment: ``[env.taskset]`` and ``[env.harness]`` of a TOML file.

    A subclass may type the two fields with its own configuration classes and give them defaults; what is given explicitly
    wins, all the way down.
    """

    taskset: object | None = None
    harness: object | None = None

    _sections: ClassVar[tuple[str, ...]] = ("taskset", "harness")

    def __init__(self, config: object | None = None, /, **data: object) -> None:
        """Check the fields (see `Config`); the sections are merged with the defaults of the class."""
        given = {**_fields_of(config, type(self)), **{name: value for name, value in data.items() if value is not None}}
        for name in self._sections:
            default = type(self).model_fields[name].get_default(call_default_factory=True)
            section = given.get(name)
            if isinstance(default, BaseModel) and isinstance(section, BaseModel | Mapping):
                merged = deep_merge(_fields_of(default, type(self)), _fields_of(section, type(self)))
                given[name] = type(section if isinstance(section, type(default)) else default)(**merged)
        super().__init__(None, **given)


def deep_merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the items of `over` on top; mappings that both have are merged in turn."""
    merged = dict(base)
    for key, value in over.items():
        known = merged.get(key)
        merged[key] = deep_merge(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return merged


def resolve_reference(value: Any) -> Any:
    """Return what ``"module:object"`` refers to, which may lie in the current directory; anything that is not text as it is.

    Raises:
        ConfigurationError: If the text is not a reference, or there is nothing under it.
    """
    if not isinstance(value, str):
        return value
    module_name, _, path = value.partition(":")
    if not module_name or not path:
        raise ConfigurationError(f"expected a reference like 'package.module:name', got {value!r}")
    return import_object(value, f"the reference {value!r}")


def resolve_function(value: Any, what: str) -> Any:
    """Return a function, given as it is or as ``"module:object"``.

    Raises:
        ConfigurationError: If it cannot be called.
    """
    found = resolve_reference(value)
    if not callable(found):
        raise ConfigurationError(f"{what} must be a function or 'module:object', got {type(found).__name__}: {found!r:.100}")
    return found


def refuse_sandbox(sandbox: object | None, what: str) -> None:
    """Raise where something asks for a sandbox.

    Raises:
        ConfigurationError: If `sandbox` is not None.
    """
    if sandbox is not None:
        raise ConfigurationError(
            f"{what} asks for a sandbox, which is a hosted service that this package does not offer: leave the sandbox out to run it"
            " on this machine"
        )
