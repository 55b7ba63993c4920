"""Configuration models: what a taskset and a harness are, as data, from Python or from TOML."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from verifiers_compat.v1.config_base import Config, Items, Names, WrongConfig, deep_merge, fields_of, merge_values, within_field
from vfgym.agents.loading import import_object
from vfgym.errors import ConfigurationError

__all__ = [
    "CallableConfig",
    "Config",
    "EnvConfig",
    "HarnessConfig",
    "MCPToolConfig",
    "SandboxConfig",
    "ScoringConfig",
    "TasksetConfig",
    "ToolsetConfig",
    "UserConfig",
    "deep_merge",
    "resolve_function",
    "resolve_reference",
]


class SandboxConfig(Config):
    """The sandbox that a program runs in, or that tools or a user are given."""

    image: str = "python:3.11-slim"
    dockerfile: str | None = None
    """A folder with a Dockerfile, which the image is built from."""
    start_command: str = "tail -f /dev/null"
    cpu_cores: float = Field(default=1, gt=0)
    memory_gb: float = Field(default=2, gt=0)
    disk_size_gb: float = Field(default=5, gt=0)
    gpu_count: int = Field(default=0, ge=0)
    network_access: bool = True
    timeout_minutes: int = Field(default=60, gt=0)
    command_timeout: int | None = Field(default=None, gt=0)
    """Seconds that one command may take."""
    install_timeout: int = Field(default=300, gt=0)
    """Seconds that installing packages may take."""
    setup_timeout: int = Field(default=300, gt=0)
    """Seconds that a setup command may take."""
    packages: Names = []
    setup_commands: Names = []
    workdir: str | None = None
    environment_vars: dict[str, str] = {}
    labels: list[str] = []
    scope: Literal["rollout", "group", "global"] = "rollout"
    prefer: Literal["program"] | None = None
    """``"program"`` to use the sandbox of the program where there is one."""
    backend: str | None = None
    """What makes it (see `vfgym.sandboxes`); None for ``container`` where an image needs it, else for what works here."""
    strict_image: bool = False
    """Whether an image is refused where no engine answers, also one that this machine can stand for."""


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
    args: Names = []
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
    stops: Items = []
    setups: Items = []
    updates: Items = []
    metrics: Items = []
    rewards: Items = []
    advantages: Items = []
    cleanups: Items = []
    teardowns: Items = []


class ToolsetConfig(_Handlers):
    """A toolset."""

    tools: Items = []
    show: Names | None = None
    hide: Names | None = None
    bindings: dict[str, object] = {}
    objects: dict[str, object] = {}
    write: bool = False
    scope: Literal["rollout", "group", "global"] | None = None
    sandbox: object | None = None

    @model_validator(mode="after")
    def _refuse_two_choices(self) -> Self:
        if self.show is not None and self.hide is not None:
            raise ValueError("a toolset has show or hide, not both")
        return self


class ParticipantConfig(_Handlers):
    """What the configurations of tasksets and of harnesses have in common."""

    system_prompt: object | None = None
    user: object | None = None
    toolsets: object = ()
    scoring: dict[str, ScoringConfig] = {}
    """What changes about signals, by their names."""


class TasksetConfig(ParticipantConfig):
    """A taskset."""

    taskset_id: str | None = None
    source: object | None = None
    eval_source: object | None = None


class HarnessConfig(ParticipantConfig):
    """A harness."""

    program: object | None = None
    sandbox: SandboxConfig | None = None
    client: object | None = None
    model: str | None = None
    sampling_args: dict[str, object] = {}
    max_turns: int = 10
    """Most answers of the model in the base loop; unlimited where it is not positive."""
    keep_trajectory_step: object | None = None
    """A function of a turn and the state that says whether the turn is kept, or ``"module:object"``."""
    system_prompt_merge: Literal["reject", "concat", "task", "taskset", "harness"] = "reject"


class EnvConfig(Config):
    """An environment: ``[env.taskset]`` and ``[env.harness]`` of a TOML file.

    A subclass may type the two fields with its own configuration classes and give them defaults. What is given more
    explicitly wins, all the way down: the sections of `config` over the keyword arguments, and those over the defaults of the
    class.
    """

    taskset: object | None = None
    harness: object | None = None

    def __init__(self, config: object | None = None, /, **data: object) -> None:
        """Check the fields, and merge the configurations among them.

        Args:
            config: What was asked for: a configuration or a mapping, with a section for each part.
            **data: Fields. ``taskset`` and ``harness`` are what their sections start from, and say their class:
                ``EnvConfig(config, taskset=MyTasksetConfig(level=2))``. Other fields win over those of `config`.

        Raises:
            WrongConfig: If something else stands where a configuration is meant.
            pydantic.ValidationError: If a field does not exist or does not fit.
        """
        given = fields_of(config, type(self))
        for name in _child_names(type(self)):
            default = type(self).model_fields[name].get_default(call_default_factory=True)
            layers = [layer for layer in (data.pop(name, None), given.pop(name, None)) if layer is not None]
            for layer in layers:
                if not isinstance(layer, Config | Mapping):
                    raise WrongConfig(
                        f"{type(self).__name__}.{name} must be a configuration or a mapping, got {type(layer).__name__}: {layer!r:.100}"
                    )
            if layers:
                with within_field(type(self), name):
                    given[name] = functools.reduce(merge_values, layers, default if isinstance(default, Config) else {})
        super().__init__(given, **data)


def _child_names(cls: type[EnvConfig]) -> list[str]:
    """Return the fields of an environment's configuration that are configurations themselves."""
    return [name for name, field in cls.model_fields.items() if name in EnvConfig.model_fields or isinstance(field.default, Config)]


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
