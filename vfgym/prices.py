"""What models cost: a price table, by the names of models.

A table is a TOML file with money for a million tokens; the currency is whatever its writer thinks of::

    ["gpt-4.1-mini"]
    input = 0.4
    output = 1.6
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from vfgym.errors import ConfigurationError, did_you_mean

_TOKENS = 1_000_000
"""Tokens that prices are for."""


@dataclass(frozen=True)
class Price:
    """Money for a million tokens."""

    input: float
    output: float

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        """Return what so many tokens cost."""
        return (input_tokens * self.input + output_tokens * self.output) / _TOKENS


class PriceTable:
    """The prices of models."""

    def __init__(self, prices: Mapping[str, Price], source: str = "the price table") -> None:
        """Take prices by the names of models, and where they are from."""
        self._prices = dict(prices)
        self._source = source

    @classmethod
    def of(cls, given: PriceTable | Mapping[str, Any] | str | os.PathLike[str]) -> Self | PriceTable:
        """Return a price table: one that was given, of a TOML file, or of a dict like one.

        Raises:
            ConfigurationError: If the file cannot be read, or a price is not one.
        """
        if isinstance(given, PriceTable):
            return given
        if isinstance(given, Mapping):
            return cls._parse(given, "the price table")
        if not isinstance(given, str | os.PathLike):
            raise ConfigurationError(f"prices must be a TOML file, or a dict like one, got {type(given).__name__}")
        try:
            return cls._parse(tomllib.loads(Path(given).read_text(encoding="utf-8")), str(given))
        except OSError as error:
            raise ConfigurationError(f"the price table {given} cannot be read: {error.strerror or error}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"the price table {given} must be TOML: {error}") from error

    @classmethod
    def _parse(cls, table: Mapping[str, Any], source: str) -> Self:
        return cls({str(model): _parse_price(str(model), value, source) for model, value in table.items()}, source)

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Return the table as a dict, as it is given to `of`."""
        return {model: {"input": price.input, "output": price.output} for model, price in self._prices.items()}

    def __eq__(self, other: object) -> bool:
        return self._prices == other._prices if isinstance(other, PriceTable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a dict

    def get(self, model: str) -> Price | None:
        """Return the price of a model; None where it is not known."""
        return self._prices.get(model)

    def check(self, models: Iterable[str]) -> None:
        """Check that the prices of models are known.

        Raises:
            ConfigurationError: If one is not.
        """
        for model in models:
            if model not in self._prices:
                raise ConfigurationError(
                    f"{self._source} has no price for the model {model}, and cost is limited: add ['{model}'] with input and output, money"
                    f" for a million tokens.{did_you_mean(model, self._prices)}"
                )


_EXAMPLE = "such as input = 0.4 and output = 1.6, money for a million tokens"


def _parse_price(model: str, value: Any, source: str) -> Price:
    if not isinstance(value, Mapping):
        name = model if '"' in model else f'"{model}"'
        raise ConfigurationError(f"{source}: {model} must be a table [{name}] with input and output, {_EXAMPLE}; got {value!r}")
    for name in value:
        if name not in ("input", "output"):
            dots = ' (a name with dots stands in quotes: ["gpt-4.1"])' if isinstance(value[name], Mapping) else ""
            hint = did_you_mean(name, ("input", "output"))
            raise ConfigurationError(f"{source}: [{model}] has {name!r}, and a price has input and output, {_EXAMPLE}{dots}.{hint}")
    for name in ("input", "output"):
        number = value.get(name)
        if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < math.inf:
            got = "nothing" if number is None else repr(number)
            raise ConfigurationError(f"{source}: {name} of [{model}] must be a number from 0, {_EXAMPLE}; got {got}")
    return Price(float(value["input"]), float(value["output"]))
