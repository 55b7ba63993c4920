"""What adapters need of trainers that are not installed beside this library: their published interface, and nothing behind it."""

from __future__ import annotations

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
