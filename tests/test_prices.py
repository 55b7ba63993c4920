"""Price tables: TOML files, dicts like them, what models cost by them, and what is wrong with one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from vfgym.errors import ConfigurationError
from vfgym.prices import Price, PriceTable

TWO = {"small": {"input": 0.5, "output": 2}, "large-4.1": {"input": 3, "output": 15.0}}


def test_a_price_table_is_a_toml_file(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('[small]\ninput = 0.5\noutput = 2\n\n["large-4.1"]\ninput = 3\noutput = 15.0\n')
    table = PriceTable.of(file)
    price = table.get("large-4.1")
    assert price is not None
    assert price.cost(1_000_000, 2_000_000) == 33.0
    assert table.get("tiny") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[m]\ninput = 1\noutptu = 2\n", r"'outptu'.*Did you mean `output`"),
        ("[m]\ninput = 1\n", r"output of \[m\] must be a number from 0.*got nothing"),
        ("[m]\ninput = -1\noutput = 1\n", r"input of \[m\] must be a number from 0.*got -1"),
        ("[m]\ninput = '1'\noutput = 1\n", "got '1'"),
        ("m = 3\n", r"m must be a table \[.m.\] with input and output"),
        ("[gpt-4.1]\ninput = 1\noutput = 1\n", "a name with dots stands in quotes"),
        ("[m]\ninput = 1\noutput = 1\ncached = 1\n", r"\[m\] has 'cached', and a price has input and output, .* tokens\.$"),
        ("'a\"b' = 3\n", r'a"b must be a table \[a"b\] with input'),
        ("[a]\ninput = 1\noutput = 1\n[b]\ninput = 1\n", r"output of \[b\] must be"),
        ("[m\n", "must be TOML"),
    ],
)
def test_a_price_table_with_a_typo_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=problem):
        PriceTable.of(file)


def test_a_price_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        PriceTable.of(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match=r"cannot be read: Is a directory$"):
        PriceTable.of(tmp_path)


def test_a_price_table_is_a_dict_and_is_given_as_one() -> None:
    table = PriceTable.of(TWO)
    assert PriceTable.of(table) is table
    assert (table.as_dict(), PriceTable.of(table.as_dict())) == (TWO, table)
    assert table != PriceTable.of({"small": TWO["small"]})
    assert table != TWO
    assert (PriceTable.of({}).as_dict(), PriceTable.of({"free": {"input": 0, "output": 0}}).get("free")) == ({}, Price(0, 0))
    prices = {"free": Price(0, 0)}
    own = PriceTable(prices, "mine")
    prices.clear()
    assert own.get("free") == Price(0, 0)
    with pytest.raises(ConfigurationError, match=r"^mine has no price for the model other"):
        own.check(["free", "other"])
    with pytest.raises(TypeError, match="unhashable"):
        hash(table)
    with pytest.raises(ConfigurationError, match="prices must be a TOML file, or a dict like one, got int"):
        PriceTable.of(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["input", "output"])
@pytest.mark.parametrize("value", [None, True, -0.1, float("inf"), float("nan"), "1"])
def test_both_prices_must_be_numbers_from_zero(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"^the price table: {name} of \[m\] must be a number from 0"):
        PriceTable.of({"m": {"input": 1, "output": 1, name: value}})


def test_each_model_that_is_asked_must_have_a_price(tmp_path: Path) -> None:
    table = PriceTable.of(TWO)
    table.check([])
    table.check(TWO)
    for models in (["smal", "small"], ["small", "smal"]):
        with pytest.raises(ConfigurationError, match=r"^the price table has no price for the model smal, .*Did you mean `small`"):
            table.check(models)
    file = tmp_path / "prices.toml"
    file.write_text("[small]\ninput = 1\noutput = 1\n")
    for path in (file, os.fspath(file)):
        with pytest.raises(ConfigurationError, match=r"prices\.toml has no price for the model other"):
            PriceTable.of(path).check(["other"])


def test_a_price_table_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="must be TOML"):
        PriceTable.of(tmp_path / "prices.toml")
