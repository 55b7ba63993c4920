"""Files of evaluations: which evaluations they stand for, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vfgym.cli.eval_files import combinations, read_eval_file, unknown_sweep_fields
from vfgym.cli.evaluations import EvalFields
from vfgym.errors import ConfigurationError

ABLATION = """
[[ablation]]
id = "game"
args = { max_turns = 5 }
[ablation.sweep]
rollouts_per_example = [1, 2]
[ablation.sweep.args]
history = [1, 3]
"""


def read(directory: Path, text: str, **options: Any) -> list[dict[str, Any]]:
    (directory / "evals.toml").write_text(text)
    return read_eval_file(directory / "evals.toml", EvalFields, **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('id = "game"\nseed = 0', [{"env_id": "game", "seed": 0}]),
        ('seed = 3\n[[eval]]\nid = "a"\nseed = 0\n[[eval]]\nenv_id = "b"', [{"env_id": "a", "seed": 0}, {"env_id": "b", "seed": 3}]),
        ('num_examples = 4\n[[eval]]\nid = "a"\nexample_ids = [3]', [{"env_id": "a", "example_ids": [3]}]),
        ('agents = ["x"]\n[[eval]]\nid = "a"\nagent = "y, z"', [{"env_id": "a", "agents": "y, z"}]),
        (
            ABLATION,
            [
                {"env_id": "game", "env_args": {"max_turns": 5, "history": history}, "rollouts_per_example": rollouts}
                for rollouts in (1, 2)
                for history in (1, 3)
            ],
        ),
        (
            '[[ablation]]\nid = "a"\n[ablation.sweep]\nargs = {}\nenv_args = [{}, {x = 1}]',
            [{"env_id": "a", "env_args": {}}, {"env_id": "a", "env_args": {"x": 1}}],
        ),
        ('[[ablation]]\n[ablation.sweep]\nid = ["a", "b"]', [{"env_id": "a"}, {"env_id": "b"}]),
        ('[[eval]]\nid = "e"\n[[ablation]]\nid = "a"\n[ablation.sweep]\nseed = [1]', [{"env_id": "e"}, {"env_id": "a", "seed": 1}]),
    ],
)
def test_a_file_stands_for_its_evaluations(text: str, expected: list[dict[str, Any]], directory: Path) -> None:
    assert read(directory, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no evaluations: add a table"),
        ("[[eval]", "cannot be read"),
        ("eval = 3", r"eval must be tables \[\[eval\]\], got 3"),
        ("[ablation]\nid = 'x'", r"ablation must be tables \[\[ablation\]\]"),
        ("[[evals]]\nid = 'x'", "there is no table or field 'evals'. Did you mean `eval`"),
        ('env_id = "x"\nnum_exmples = 3', "no field 'num_exmples'. Did you mean `num_examples`"),
        ('env_id = "x"\nseed = "3"', "evals.toml: seed must be an integer from 0"),
        ('env_id = "x"\nsplit = "test"', "split: .*'train' or 'eval'"),
        ('env_id = "x"\nnum_examples = 3\nexample_ids = [1]', "num_examples and example_ids say the same in two ways"),
        ('env_id = "x"\n[[eval]]\nid = "y"', "belongs into an"),
        ('[[eval]]\nid = "x"\n[[eval]]\nagents = ["random"]', "eval 2 needs an env_id"),
        ('[[ablation]]\nid = "x"', "ablation 1 needs a table .* got None"),
        ('[[ablation]]\nid = "x"\nsweep = {}', "ablation 1 needs a table"),
        (ABLATION.replace("rollouts_per_example", "rollouts_per_exmple"), "a sweep has no field 'rollouts_per_exmple'. Did you mean"),
        (ABLATION.replace("[1, 2]", "[]"), r"ablation 1, sweep: rollouts_per_example must be a list of values, got \[\]"),
        (ABLATION.replace("[1, 3]", "1"), "ablation 1, sweep.args: history must be a list of values, got 1"),
        (ABLATION.replace("max_turns = 5", "history = 5"), "'history' is both fixed and in sweep.args"),
        (ABLATION.replace('id = "game"', 'id = "game"\nrollouts_per_example = 1'), "'rollouts_per_example' is both fixed and in sweep:"),
        (ABLATION.replace("rollouts_per_example = [1, 2]", "env_args = [{}]"), "env_args are swept as a whole"),
        (ABLATION.replace("{ max_turns = 5 }", "5"), "env_args must be a table, got 5"),
        (
            '[[ablation]]\nid = "x"\n[ablation.sweep]\nargs = 3\nseed = [1]',
            "must be a table with a list of values for each argument, got 3",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_place(text: str, message: str, directory: Path) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        read(directory, text)
    assert "evals.toml" in str(caught.value)


def test_a_file_that_is_not_there_is_refused(directory: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml cannot be read"):
        read_eval_file(directory / "none.toml", EvalFields)


def test_further_fields_and_tables_inside_are_as_the_caller_has_them(directory: Path) -> None:
    def unfold(table: Any, where: str) -> dict[str, Any]:
        return {**{name: value for name, value in table.items() if name != "inner"}, **table.get("inner", {})}

    text = 'more = {x = 1}\n[[eval]]\nid = "a"\n[eval.inner]\nseed = 5\nother = 0'
    assert read(directory, text, extra=["more", "other"], unfold=unfold) == [{"more": {"x": 1}, "env_id": "a", "seed": 5, "other": 0}]


def test_combinations_and_unknown_names_of_a_sweep() -> None:
    assert [*combinations({"a": [1, 2], "b": ["x", None]})] == [{"a": a, "b": b} for a in (1, 2) for b in ("x", None)]
    assert [*combinations({})] == [{}]
    assert [*combinations({"a": []})] == []
    assert unknown_sweep_fields({"b": [], "args": {}, "seed": [], "a": []}, ["seed"]) == ["b", "a"]
