"""What adapters need of trainers that are not installed beside this library: their published interface, and nothing behind it."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any


@dataclass
class AgentLoopOutput:
    """What a loop of verl returns (0.9.1)."""

    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    metrics: dict[str, Any]
    response_logprobs: list[float] | None = None
    reward_score: float | None = None
    num_turns: int = 0
    extra_fields: dict[str, Any] = field(default_factory=dict)


class AgentLoopBase:
    """The base of verl's loops (0.9.1): what its worker gives them, as attributes."""

    def __init__(
        self, trainer_config: Any, server_manager: Any, tokenizer: Any, processor: Any, dataset_cls: Any, data_config: Any, **kwargs: Any
    ) -> None:
        self.rollout_config = trainer_config.config.actor_rollout_ref.rollout
        self.server_manager, self.tokenizer = server_manager, tokenizer
        self.apply_chat_template_kwargs = data_config.config.get("apply_chat_template_kwargs", {})


@dataclass
class TokenOutput:
    """What verl's servers answer (0.9.1)."""

    token_ids: list[int]
    log_probs: list[float] | None = None
    stop_reason: str | None = "completed"
    num_preempted: int | None = None
    extra_fields: dict[str, Any] = field(default_factory=dict)


def install_verl(monkeypatch: Any) -> None:
    """Let ``verl.experimental.agent_loop`` be imported."""
    for name in ("verl", "verl.experimental", "verl.experimental.agent_loop"):
        module = ModuleType(name)
        module.__dict__.update(AgentLoopBase=AgentLoopBase, AgentLoopOutput=AgentLoopOutput, __spec__=SimpleNamespace(), __path__=[])
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "vfgym.training.verl", raising=False)


def install(monkeypatch: Any, adapter: str, **contents: dict[str, Any]) -> Any:
    """Let modules of a trainer be imported for one test, and return the adapter to it.

    Args:
        monkeypatch: The test's.
        adapter: The module of ``vfgym.training``.
        **contents: What each module has, by its name with ``__`` for its dots.
    """
    for name, content in contents.items():
        module = ModuleType(name.replace("__", "."))
        module.__dict__.update(content, __spec__=SimpleNamespace(), __path__=[])
        monkeypatch.setitem(sys.modules, module.__name__, module)
    name = f"vfgym.training.{adapter}"
    monkeypatch.setitem(sys.modules, name, None)  # so that it is taken out again
    del sys.modules[name]
    monkeypatch.setattr("vfgym.training." + adapter, None, raising=False)
    return importlib.import_module(name)
