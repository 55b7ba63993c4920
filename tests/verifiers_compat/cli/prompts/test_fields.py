"""What is said about a run of ``vf-gepa``: config files, and the prompt to begin with."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from verifiers_compat.cli.prompts.fields import GepaFields, given_arguments, read_prompt
from verifiers_compat.gepa import optimize_prompt
from vfgym.errors import ConfigurationError


def read(text: str) -> GepaFields:
    """Return what a file says."""
    Path("run.toml").write_text(text)
    return GepaFields.read("run.toml")


@pytest.mark.parametrize(
    "text",
    [
        'env_id = "a"\nmax_calls = 3\nenv_args = { x = 1 }\nsampling_args = { top_p = 0.5 }\n',
        '[env]\nid = "a"\nargs = { x = 1 }\n[gepa]\nmax_calls = 3\n[sampling]\ntop_p = 0.5\n',
        'max_calls = 3\n[[env]]\nenv_id = "a"\n[env.env_args]\nx = 1\n[[sampling]]\ntop_p = 0.5\n',
    ],
)
def test_fields_stand_in_tables_or_at_the_top(text: str, workspace: Path) -> None:
    assert read(text).model_dump(exclude_none=True) == {
        **{"env_id": "a", "env_args": {"x": 1}, "max_calls": 3, "sampling_args": {"top_p": 0.5}}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gepa]\nnum_trian = 3\n", "no field 'num_trian'. Did you mean `num_train`"),
        ('[[env]]\nenv_id = "a"\n[[env]]\nenv_id = "b"\n', r"a run has one table \[env\], got list"),
        ("sampling = 3", r"a run has one table \[sampling\], got int"),
        ("max_calls = 3\n[gepa]\nmax_calls = 3\n", "max_calls is given twice"),
        ("sampling_args = {}\n[sampling]\ntop_p = 1.0\n", "sampling_args is given twice"),
        ("[gepa]\nmax_calls = 0\n", "max_calls: .*got 0"),
        ("[gepa]\nseed = -1\n", "seed: .*got -1"),
        ("[gepa", "cannot be read"),
    ],
)
def test_files_that_say_something_else_are_refused(text: str, message: str, workspace: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"^run.toml.*{message}"):
        read(text)


def test_a_prompt_is_the_text_of_its_file(workspace: Path) -> None:
    """But for whitespace at its end."""
    Path("prompt.txt").write_text("\n  Gö. \n\n")
    assert read_prompt("prompt.txt") == "\n  Gö."
    Path("prompt.txt").write_bytes(b"\xff")
    for file in ("prompt.txt", "none.txt"):
        with pytest.raises(ConfigurationError, match="the system prompt cannot be read"):
            read_prompt(file)


def test_only_what_is_given_is_an_argument() -> None:
    assert given_arguments(GepaFields()) == {}
    given = {"max_calls": 1, "num_train": 2, "num_val": 3, "minibatch_size": 4, "perfect_score": 0.0, "state_columns": [], "seed": 0}
    fields = GepaFields.parse({**given, "max_concurrent": -1, "model": "m"}, "test")
    assert given_arguments(fields) == {**given, "max_concurrent": -1}
    names = GepaFields.model_fields.keys() & inspect.signature(optimize_prompt).parameters.keys()
    of_its_own = {"model", "reflection_model", "sampling_args", "run_dir"}  # which are made of several fields
    assert given_arguments(fields).keys() == names - of_its_own
