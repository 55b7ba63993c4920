"""What commands make of the options that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.cli.evals.options import parse_options
from vfgym.errors import ConfigurationError


def test_what_was_not_given_is_left_out_and_nothing_else() -> None:
    """Not what is 0, empty text or false."""
    assert parse_options({"a": None, "headers": []}) == {}
    kept = {"temperature": 0.0, "resume": "", "flag": False, "headers": ["X: 1"]}
    assert parse_options(kept) == kept


@pytest.mark.parametrize("name", ["env_args", "sampling_args", "extra_env_kwargs"])
def test_tables_are_json(name: str) -> None:
    assert parse_options({name: '{"a": {"b": 0}}'}) == {name: {"a": {"b": 0}}}
    with pytest.raises(ConfigurationError, match=f"^--{name.replace('_', '-')} must be JSON"):
        parse_options({name: "{"})


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"provider": "openai"}, {"provider": "openai"}),
        ({"provider": "opanai"}, {"provider": "opanai"}),
        ({"provider": "./a"}, {"env_dir_path": "./a"}),
        ({"provider": "a/b"}, {"env_dir_path": "a/b"}),
        ({"provider": "there"}, {"env_dir_path": "there"}),
        ({"provider": "openrouter"}, {"provider": "openrouter"}),
        ({"provider": "there", "env_dir_path": "there"}, {"env_dir_path": "there"}),
    ],
)
def test_a_directory_may_stand_where_a_provider_is_named(given: dict[str, Any], fields: dict[str, Any], workspace: Path) -> None:
    """As it once did; a provider's own name is never taken for one."""
    for name in ("there", "openrouter"):
        (workspace / name).mkdir()
    assert parse_options(given) == fields
    with pytest.raises(ConfigurationError, match="both name the directory"):
        parse_options({"provider": "there", "env_dir_path": "./there"})
