"""How answers are sampled: which parameters are read, and what a model of two tokens gives."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.errors import ConfigurationError
from vfgym.training.sampling import Sampling


@pytest.mark.parametrize(
    ("given", "sampling"),
    [
        (None, Sampling()),
        ({}, Sampling(256, 1.0, 1.0, 0, None)),
        ({"max_tokens": 5, "temperature": 0, "top_p": 0.5, "top_k": 3, "seed": 0}, Sampling(5, 0, 0.5, 3, 0)),
        ({"max_completion_tokens": 5, "max_tokens": None, "temperature": None}, Sampling(5)),
        ({"n": 1, "extra_body": {}}, Sampling()),
    ],
)
def test_parameters(given: Any, sampling: Sampling) -> None:
    assert Sampling.of(given) == sampling


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"temprature": 1}, r"no 'temprature'.*Did you mean `temperature`"),
        ({"n": 2}, "no 'n'"),
        ({"extra_body": {"x": 1}}, "no 'extra_body'"),
        *[(wrong, "max_tokens must be positive") for wrong in ({"max_tokens": 0}, {"temperature": -0.1}, {"top_p": 0}, {"top_p": 1.1})],
        ({"top_k": -1}, "top_k at least 0"),
    ],
)
def test_parameters_that_there_are_not(given: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Sampling.of(given)


@pytest.mark.parametrize(
    ("how", "likely"),
    [
        (Sampling(), {0, 1, 2}),
        (Sampling(temperature=0), {2}),
        (Sampling(top_k=2), {1, 2}),
        (Sampling(top_p=0.6), {2}),
        (Sampling(top_p=0.7), {1, 2}),
    ],
)
def test_a_token_comes_from_the_distribution_whose_log_probability_is_told(how: Sampling, likely: set[int]) -> None:
    torch: Any = pytest.importorskip("torch")
    from vfgym.training.sampling import _choose

    probabilities = torch.tensor([0.1, 0.25, 0.65])
    chosen = {_choose(torch, probabilities.log(), how, torch.Generator().manual_seed(seed)) for seed in range(60)}
    assert {token for token, _ in chosen} == likely
    total = sum(float(probabilities[token]) for token in likely)
    for token, logprob in chosen:
        assert logprob == pytest.approx(0.0 if how.temperature == 0 else float((probabilities[token] / total).log()))
