"""What a taskset and a harness have in common: both bring prompts, tools, handlers and signals to a rollout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from verifiers_compat.v1.bindings import Bindings
from verifiers_compat.v1.config import ParticipantConfig
from verifiers_compat.v1.config_base import Config, WrongConfig, as_list
from verifiers_compat.v1.handler_set import Handlers
from verifiers_compat.v1.handlers import LISTS, Handler, collect_handlers, make_listed
from verifiers_compat.v1.plain import system_messages
from verifiers_compat.v1.toolset import Toolset, collect_toolsets
from verifiers_compat.v1.user import as_user
from vfgym.errors import ConfigurationError


class Participant:
    """What a taskset and a harness have in common: configuration, system prompt, user, toolsets, handlers and signals."""

    config_type: ClassVar[type[ParticipantConfig]] = ParticipantConfig
    """The class of `config`. A subclass may name its own, which is derived from that of its base."""

    config: Any
    """The configuration, with the arguments of the constructor in place of its own fields: what subclasses read."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check what the class names as its `config_type`.

        Raises:
            ConfigurationError: If it is not derived from that of its bases.
        """
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[1:]:
            expected = vars(base).get("config_type")
            if expected is not None and not (isinstance(cls.config_type, type) and issubclass(cls.config_type, expected)):
                raise ConfigurationError(
                    f"{cls.__name__}.config_type must be {expected.__name__} or a class derived from it, got {cls.config_type!r}"
                )

    def __init__(
        self,
        config: Config | Mapping[str, object] | None,
        arguments: Mapping[str, Any],
        toolsets: Any,
        lists: Mapping[str, Iterable[Any] | None],
    ) -> None:
        """Take the parts.

        Args:
            config: A configuration of this class is kept as it is. One of another class gives the fields that both have, and a
                mapping is checked.
            arguments: Arguments of the constructor that win over the fields of their names; None for those not given.
            toolsets: Toolsets, to which those of `config` are added.
            lists: Handlers by the names of their lists, to which those of `config` are added.

        Raises:
            ConfigurationError: If something does not fit.
        """
        self.config = self._own_config(config).with_arguments(**arguments)
        self.system_prompt = system_messages(resolve_prompt(self.config.system_prompt), f"the system_prompt of {type(self).__name__}")
        self.user = as_user(self.config.user)
        self.toolsets: list[Toolset] = []
        self.named_toolsets: dict[str, Toolset] = {}
        self._bindings = Bindings(self)
        own = {name: [*as_list(lists.get(name)), *getattr(self.config, name)] for name in LISTS}
        self._handlers = collect_handlers(self, own, self._bindings)
        self.num_changes = 0
        """How often something was added after the constructor."""
        for source in (toolsets, self.config.toolsets):
            self._take_toolsets(source)
        for handler in self._handlers:
            handler.check_arguments()

    @classmethod
    def config_schema(cls) -> str:
        """Return the fields of the configuration, a line each (see `Config.schema_text`)."""
        return cls.config_type.schema_text()

    @classmethod
    def _own_config(cls, config: Any) -> ParticipantConfig:
        family = next(base for base in cls.config_type.__mro__ if ParticipantConfig in base.__bases__)
        if isinstance(config, Config) and not isinstance(config, family):
            raise WrongConfig(
                f"{cls.__name__} takes a {cls.config_type.__name__} or a mapping with its fields, got a {type(config).__name__}"
            )
        return config if type(config) is cls.config_type else cls.config_type.from_config(config)

    @property
    def handlers(self) -> list[Handler]:
        """The handlers and signals of its own, and those of its toolsets."""
        toolsets = (*self.toolsets, *self.named_toolsets.values())
        return [*self._handlers, *(handler for toolset in toolsets for handler in toolset.handlers)]

    # What is added later. Rollouts that start from then on have it, also where the harness plays in an environment already.

    def add_toolset(self, toolset: Any) -> None:
        """Add a toolset, a tool, a list of them, or toolsets by name (see `collect_toolsets`).

        Raises:
            ConfigurationError: If it is none of these, or a name is taken.
        """
        self._take_toolsets(toolset)
        self.num_changes += 1

    def add_stop(self, fn: Any) -> None:
        """Add a stop condition."""
        self._add_handler("stops", fn)

    def add_setup(self, fn: Any) -> None:
        """Add what is called before the program runs."""
        self._add_handler("setups", fn)

    def add_update(self, fn: Any) -> None:
        """Add what is called after the program."""
        self._add_handler("updates", fn)

    def add_metric(self, fn: Any) -> None:
        """Add a measure."""
        self._add_handler("metrics", fn)

    def add_reward(self, fn: Any) -> None:
        """Add a reward function."""
        self._add_handler("rewards", fn)

    def add_advantage(self, fn: Any) -> None:
        """Add a function that computes a group's advantages."""
        self._add_handler("advantages", fn)

    def add_cleanup(self, fn: Any) -> None:
        """Add what is called at the end of every rollout."""
        self._add_handler("cleanups", fn)

    def _add_handler(self, list_name: str, fn: Any) -> None:
        handler = make_listed(fn, list_name, self._bindings)
        Handlers([*self.handlers, handler])  # refuses a second signal of one name
        self._handlers.append(handler)
        self.num_changes += 1

    def _take_toolsets(self, source: Any) -> None:
        toolsets, named = collect_toolsets(source)
        for name in named:
            if name in self.named_toolsets:
                raise ConfigurationError(f"{type(self).__name__} has two toolsets called {name!r}: rename one")
        Handlers([*self.handlers, *(handler for toolset in (*toolsets, *named.values()) for handler in toolset.handlers)])
        self.toolsets += toolsets
        self.named_toolsets |= named


def resolve_prompt(value: Any) -> Any:
    """Return a system prompt; ``{"path": file}`` is read from a file of UTF-8 text."""
    if isinstance(value, Mapping) and set(value) == {"path"}:
        with open(value["path"], encoding="utf-8", newline="") as file:
            return file.read()
    return value
