"""What a taskset and a harness have in common: both bring prompts, tools, handlers and signals to a rollout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from verifiers_compat.v1.bindings import Bindings
from verifiers_compat.v1.config import ScoringConfig
from verifiers_compat.v1.handlers import Handler, collect_handlers
from verifiers_compat.v1.plain import system_messages
from verifiers_compat.v1.toolset import Toolset, as_toolset
from verifiers_compat.v1.user import as_user
from vfgym.errors import ConfigurationError


class Participant:
    """What a taskset and a harness have in common: system prompt, user, toolsets, handlers and signals."""

    def __init__(self, config: Any, system_prompt: Any, user: Any, toolsets: Any, lists: Mapping[str, Iterable[Any] | None]) -> None:
        """Take the parts: those of code, then those of the configuration.

        Raises:
            ConfigurationError: If one does not fit.
        """
        name = type(self).__name__
        given_prompt = config.system_prompt if system_prompt is None else system_prompt
        self.system_prompt = system_messages(resolve_prompt(given_prompt), f"the system_prompt of {name}")
        self.user = as_user(config.user if user is None else user)
        self.toolsets, self.named_toolsets = _collect_toolsets(toolsets, config.toolsets)
        own = {list_name: [*(given or ()), *getattr(config, list_name)] for list_name, given in lists.items()}
        self._handlers = collect_handlers(self, own, Bindings(self))
        self.scoring: dict[str, ScoringConfig] = config.scoring

    @property
    def handlers(self) -> list[Handler]:
        """The handlers and signals of its own, and those of its toolsets."""
        toolsets = (*self.toolsets, *self.named_toolsets.values())
        return [*self._handlers, *(handler for toolset in toolsets for handler in toolset.handlers)]


def resolve_prompt(value: Any) -> Any:
    """Return a system prompt; ``{"path": file}`` is read from a file of UTF-8 text."""
    if isinstance(value, Mapping) and set(value) == {"path"}:
        with open(value["path"], encoding="utf-8", newline="") as file:
            return file.read()
    return value


def _collect_toolsets(*sources: Any) -> tuple[list[Toolset], dict[str, Toolset]]:
    toolsets: list[Toolset] = []
    named: dict[str, Toolset] = {}
    for source in sources:
        if isinstance(source, Mapping):
            for name, value in source.items():
                if name in named:
                    raise ConfigurationError(f"there are two toolsets called {name!r}")
                named[name] = as_toolset(value)
        elif isinstance(source, Toolset):
            toolsets.append(source)
        else:
            toolsets += [as_toolset(value) for value in source or ()]
    return toolsets, named
