"""What all configurations share: how they start from one another, come from TOML, and what the errors about them say."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field, ValidationError

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.configurations import Level, Levels, MyEnv, Other, Style
from verifiers_compat.v1.config_base import WrongConfig, as_list, merge_values, none_unless_given, within_field
from vfgym.errors import ConfigurationError


def test_a_configuration_gives_what_was_set_in_it_and_the_class_has() -> None:
    assert Level(vf.TasksetConfig(taskset_id="a"), level=3).model_dump(include={"taskset_id", "level"}) == {"taskset_id": "a", "level": 3}
    assert Level(Other()).level == 1, "a default is not set"
    assert Level(Other(level=5, colour="blue")).level == 5
    assert vf.TasksetConfig(Level(taskset_id="a", level=9)).model_fields_set == {"taskset_id"}


def test_of_two_configurations_the_derived_class_is_kept_and_the_second_wins() -> None:
    merged = [merge_values(*pair) for pair in ((Level(level=3), vf.TasksetConfig(taskset_id="a")), ({"level": 3}, Level(taskset_id="a")))]
    assert [(type(each), each.level, each.taskset_id) for each in merged] == [(Level, 3, "a")] * 2
    level = Level(level=2)
    pairs: list[Any] = [(level, 3), (3, level), ({}, level), ({"a": {"b": 1}}, {"a": {"c": 0}}), ({"a": 1}, None)]
    assert [merge_values(*pair) for pair in pairs] == [3, level, level, {"a": {"b": 1, "c": 0}}, None]
    with pytest.raises(TypeError, match="a Other does not go with a Level: neither is derived from the other"):
        merge_values(Level(), Other())


@pytest.mark.parametrize("config", [3, "a.toml", ["level"], object()])
def test_what_is_neither_configuration_nor_mapping_is_refused(config: Any) -> None:
    for error in (ValueError, TypeError):
        with pytest.raises(error, match="Level starts from a configuration or a mapping, got"):
            Level(config)


def test_an_unknown_field_names_the_class_and_those_that_there_are() -> None:
    with pytest.raises(ValidationError) as caught:
        Level(levl=3)
    assert "1 validation error for Level\nlevl\n  there is no such field. Level has: " in str(caught.value)
    assert "Did you mean `level`?" in str(caught.value)
    [problem] = caught.value.errors()
    assert (problem["type"], problem["loc"], problem["input"]) == ("extra_forbidden", ("levl",), 3)
    with pytest.raises(ValidationError, match=r"(?s)scoring\.a\.wait.*ScoringConfig has: stage, priority, weight, skip"):
        Level(scoring={"a": {"wait": 1}})


def test_arguments_are_checked_as_fields_and_leave_the_given_configuration_alone() -> None:
    config = Style(sampling_args={"extra_body": {"a": 1}})
    harness = vf.Harness(sampling_args={"extra_body": {"b": 2}}, config=config)
    assert harness.config.sampling_args == {"extra_body": {"a": 1, "b": 2}}
    assert config.sampling_args == {"extra_body": {"a": 1}}
    copied = vf.Harness(model="b", config=config).config.sampling_args
    assert copied == config.sampling_args
    assert copied["extra_body"] is not config.sampling_args["extra_body"]
    with pytest.raises(ConfigurationError, match="an argument does not fit HarnessConfig: max_turns: Input should be a valid integer"):
        vf.Harness(max_turns="many")  # type: ignore[arg-type]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "env.toml"
    path.write_text('name = "x"\n[env.taskset]\nlevel = 3\n[env.harness]\nstyle = "loud"\n[wrong]\nlevel = "high"\nlevl = 1\n')
    return path


def test_sections_of_a_file(file: Path) -> None:
    config = MyEnv.from_toml(file, section="env")
    assert (config.taskset.level, config.taskset.options["a"], config.harness) == (3, 1, Style(style="loud"))
    assert [Level.from_toml(file, section).level for section in ("env.taskset", ["env", "taskset"], ("env", "taskset"))] == [3] * 3


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("env.tasket", r"env\.toml has no table \[env\.tasket\]\. Did you mean `taskset`"),
        ("env.taskset.level.x", r"env\.toml has no table \[env\.taskset\.level\.x\]\.$"),
        (["zzz", "below"], r"env\.toml has no table \[zzz\]\.$"),
        ("name", r"\[name\] of .*env\.toml is not a table"),
        ("wrong", r"\[wrong\] of .*env\.toml does not fit Level: level: .*valid integer.*; levl: there is no such field\. Level has: "),
        (None, r"env\.toml does not fit Level: name: there is no such field"),
    ],
)
def test_errors_name_the_file_the_table_and_the_field(file: Path, section: str | None, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Level.from_toml(file, section)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("a = [")
    with pytest.raises(ConfigurationError, match=r"broken\.toml is not a TOML file"):
        Level.from_toml(tmp_path / "broken.toml")
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        Level.from_toml(tmp_path / "none.toml")


def test_the_schema_has_a_line_for_each_field() -> None:
    class Needs(vf.Config):
        path: Path
        mode: Literal["a.b", "c"] = "a.b"
        sandbox: vf.SandboxConfig | None = None
        names: list[str] = Field(default_factory=list)

    assert Needs.schema_text().splitlines() == [
        "Needs",
        "- path: Path = required",
        "- mode: Literal['a.b', 'c'] = 'a.b'",
        "- sandbox: SandboxConfig | None = None",
        "- names: list[str] = <factory>",
    ]
    assert Levels.config_schema() == Level.schema_text()


def test_fields_win_over_the_configuration_they_start_from() -> None:
    """Those of 0 and an empty text, too."""
    base = vf.HarnessConfig(max_turns=3, model="a", sampling_args={"top_p": 1.0})
    config = vf.HarnessConfig(base, max_turns=0, model="", sampling_args={})
    assert (config.max_turns, config.model, config.sampling_args) == (0, "", {})
    assert (vf.HarnessConfig(base, max_turns=None).max_turns, vf.HarnessConfig().max_turns) == (3, 10)
    config = vf.HarnessConfig.from_config(base, model="b")
    assert (config.max_turns, config.model, vf.HarnessConfig.from_config({"model": "a"}, model=None).model) == (3, "b", "a")


def test_what_was_never_set_stays_so_and_the_copy_is_its_own() -> None:
    config = Style(style="loud", sampling_args={"stop": [["a"]]})
    copied = config.with_arguments(model="b", max_turns=0, user=None)
    assert (copied.model, copied.max_turns, type(copied)) == ("b", 0, Style)
    assert (copied.model_fields_set, config.model_fields_set) == (
        {"style", "sampling_args", "model", "max_turns"},
        {"style", "sampling_args"},
    )
    copied.sampling_args["stop"][0].append("b")
    assert config.sampling_args == {"stop": [["a"]]}
    assert config.with_arguments(sampling_args={"n": 0}).sampling_args == {"stop": [["a"]], "n": 0}


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((0,), {"d": 4}, (0, None, None, 4)),
        ((0, 1), {"d": 4, "c": 2}, (0, 1, 2, 4)),
        ((0,), {"d": 4, "b": None}, (0, None, None, 4)),
    ],
)
def test_a_constructor_sees_none_for_what_was_left_out(args: Any, kwargs: Any, expected: Any) -> None:
    found: list[Any] = []

    class Made:
        @none_unless_given
        def __init__(self, a: Any, b: Any = 1, *, c: Any = 2, d: Any) -> None:
            """Make one."""
            found.append((a, b, c, d))

    Made(*args, **kwargs)
    assert found == [expected]
    assert (Made.__init__.__doc__, list(inspect.signature(Made).parameters)) == ("Make one.", ["a", "b", "c", "d"])
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'd'"):
        Made(0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("value", "items"),
    [
        (None, []),
        ("", [""]),
        (b"ab", [b"ab"]),
        (0, [0]),
        ({}, [{}]),
        ((), []),
        (("a", "b"), ["a", "b"]),
        (iter("ab"), ["a", "b"]),
        (vf.TasksetConfig(), [vf.TasksetConfig()]),
    ],
)
def test_one_alone_stands_for_itself(value: Any, items: list[Any]) -> None:
    assert as_list(value) == items


def test_a_list_is_copied() -> None:
    given = ["a"]
    as_list(given).append("b")
    assert given == ["a"]


def test_errors_are_placed_within_a_field() -> None:
    with pytest.raises(ValidationError) as caught, within_field(MyEnv, "taskset"):
        Level(levl=3)
    [problem] = caught.value.errors()
    assert (caught.value.title, problem["loc"], problem["msg"].partition(". ")[0]) == (
        "MyEnv",
        ("taskset", "levl"),
        "there is no such field",
    )
    with pytest.raises(WrongConfig) as wrong, within_field(MyEnv, "taskset"):
        Level(3)
    assert str(wrong.value) == "MyEnv.taskset: Level starts from a configuration or a mapping, got int: 3"
    with within_field(MyEnv, "taskset"):
        pass
