"""Sampling of several completions at once from a causal language model, with the log-probabilities of what was sampled."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from vfgym.clients import SamplingArgs
from vfgym.errors import ConfigurationError, did_you_mean


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one answer is sampled."""

    max_tokens: int = 256
    temperature: float = 1.0
    """0 takes the most likely token each time."""
    top_p: float = 1.0
    top_k: int = 0
    """Of how many most likely tokens one is taken; 0 for all."""
    seed: int | None = None

    @classmethod
    def of(cls, sampling_args: SamplingArgs | None) -> Sampling:
        """Read generation parameters.

        Raises:
            ConfigurationError: If one does not exist, or does not fit.
        """
        given = {name: value for name, value in (sampling_args or {}).items() if value is not None and (name, value) != ("n", 1)}
        if "max_completion_tokens" in given:
            given["max_tokens"] = given.pop("max_completion_tokens")
        if not given.get("extra_body", True):  # an empty one, as every environment of the rollout API brings it
            del given["extra_body"]
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise ConfigurationError(f"LocalPolicy knows no {name!r}; it knows {', '.join(known)}.{did_you_mean(name, known)}")
        sampling = cls(**given)
        if sampling.max_tokens < 1 or sampling.temperature < 0 or not 0 < sampling.top_p <= 1 or sampling.top_k < 0:
            raise ConfigurationError(
                f"max_tokens must be positive, temperature and top_k at least 0, and top_p above 0 and at most 1; got {sampling}"
            )
        return sampling


@dataclass(slots=True)
class Completion:
    """What a model wrote."""

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    """Of each id, in the distribution that it was sampled from (nats)."""
    has_ended: bool = False
    """Whether its last id ends it; else it was cut off."""
    is_over: bool = False
    """Whether nothing more is sampled."""


def sample_completions(model: Any, rows: Sequence[tuple[list[int], Sampling]], ends: Collection[int]) -> list[Completion]:
    """Sample a completion for each prompt.

    Args:
        model: A causal language model of transformers.
        rows: The ids of each prompt, and how its completion is sampled.
        ends: Ids that end a completion.
    """
    import torch

    longest = max(len(ids) for ids, _ in rows)
    device = next(model.parameters()).device
    shown = torch.zeros((len(rows), longest), dtype=torch.long)
    mask = torch.zeros_like(shown)
    for row, (ids, _) in enumerate(rows):  # prompts are put at the end, so that all completions begin at one place
        shown[row, longest - len(ids) :] = torch.tensor(ids, dtype=torch.long)
        mask[row, longest - len(ids) :] = 1
    shown, mask = shown.to(device), mask.to(device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    generators = [_generator(torch, how.seed) for _, how in rows]
    completions = [Completion() for _ in rows]
    cache: Any = None
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            while not all(each.is_over for each in completions):
                out = model(input_ids=shown, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                logits = out.logits[:, -1].float().cpu()
                chosen = [
                    0 if completion.is_over else _append(torch, completion, logits[row], rows[row][1], generators[row], ends)
                    for row, completion in enumerate(completions)
                ]
                shown = torch.tensor(chosen, dtype=torch.long, device=device)[:, None]
                mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=-1)
                positions = positions[:, -1:] + 1
    finally:
        model.train(was_training)
    return completions


def _append(torch: Any, completion: Completion, logits: Any, how: Sampling, generator: Any, ends: Collection[int]) -> int:
    """Choose the next token of a completion, and return it."""
    token, logprob = _choose(torch, logits, how, generator)
    completion.ids.append(token)
    completion.logprobs.append(logprob)
    completion.has_ended = token in ends
    completion.is_over = completion.has_ended or len(completion.ids) == how.max_tokens
    return token


def _generator(torch: Any, seed: int | None) -> Any:
    return None if seed is None else torch.Generator().manual_seed(seed)


def _choose(torch: Any, logits: Any, how: Sampling, generator: Any) -> tuple[int, float]:
    """Return a token and its log-probability in the distribution that it was drawn from."""
    if how.temperature == 0:
        return int(logits.argmax()), 0.0
    logits = logits / how.temperature
    if how.top_k:
        least = logits.topk(min(how.top_k, len(logits))).values[-1]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if how.top_p < 1:
        ordered, order = logits.softmax(-1).sort(descending=True)
        dropped = order[ordered.cumsum(-1) - ordered >= how.top_p]
        logits = logits.index_fill(0, dropped, -torch.inf)
    logprobs = logits.log_softmax(-1)
    token = int(torch.multinomial(logprobs.exp(), 1, generator=generator))
    return token, float(logprobs[token])
