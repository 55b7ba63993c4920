"""Loading environments by id: installed modules, registered ids, typed configurations, and errors that say what is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from verifiers_compat.envs.loaded import loaded_as
from verifiers_compat.utils.env_utils import (
    EnvironmentLoadError,
    coerce_typed_env_config,
    env_config_annotation,
    env_config_type,
    load_environment,
    module_name,
)
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient

HEAD = """
from __future__ import annotations
import verifiers_compat as vf
from pydantic import BaseModel, ConfigDict
class Config(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: int = 1
def make(**kwargs):
    return vf.SingleTurnEnv(dataset=[{"question": "2+2?", "answer": "4"}], **kwargs)
"""


@pytest.fixture
def write(write_module: Callable[[str, str], None]) -> Callable[..., None]:
    """Write the module of an environment."""

    def write(name: str, code: str, *, head: str = HEAD) -> None:
        write_module(name, head + code)

    return write


async def test_an_installed_environment(write: Any) -> None:
    """The module is the last part of the id; the environment is named by what it was loaded with, and can be rolled out."""
    write("my_env_one", "def load_environment(level: int = 1): return make(max_seq_len=level)")
    env = load_environment("owner/my-env-one", level=3)
    assert (env.env_id, env.env_args, env.max_seq_len) == ("owner/my-env-one", {"level": 3}, 3)
    loaded = loaded_as(env)
    assert loaded is not None
    assert (loaded.env_id, loaded.env_args) == ("owner/my-env-one", {"level": 3}), "by which another process loads it"
    outputs = await env.evaluate(ScriptedClient(["4"]), "scripted")
    assert outputs["outputs"][0]["completion"][-1]["content"] == "4"


def test_the_name_the_arguments_and_what_an_environment_says_of_itself(write: Any) -> None:
    write("my_env_two", "def load_environment(): return make(env_id='mine', env_args={'a': 1})")
    env = load_environment("my-env-two")
    assert (env.env_id, env.env_args) == ("mine", {"a": 1})
    arguments: dict[str, Any] = {"stop": ["a"]}
    write("empty_env", "def load_environment(**kwargs): return make(env_id='', env_args={})")
    env = load_environment("empty-env", **arguments)
    assert (env.env_id, env.env_args) == ("empty-env", arguments)
    write("args_env", "def load_environment(difficulty=1): return make()")
    with pytest.raises(ValueError, match=r"takes no argument 'dificulty'.*Did you mean `difficulty`"):
        load_environment("args-env", dificulty=2)
    write("kwargs_env", "def load_environment(**kwargs): return make(sampling_args=kwargs)")
    assert load_environment("kwargs-env", temperature=1).sampling_args["temperature"] == 1
    assert module_name("primeintellect/wiki-search") == module_name("wiki_search") == "wiki_search"


async def test_registered_ids_load_too() -> None:
    env = load_environment("gymnasium/FrozenLake-v1", is_slippery=False)
    assert env.env_id == "gymnasium/FrozenLake-v1"
    outputs = await env.evaluate(ScriptedClient(["right"] * 200), "scripted", num_examples=1)
    assert len(outputs["outputs"]) == 1


@pytest.mark.parametrize(
    ("code", "kind", "told"),
    [
        ("", ValueError, "no function load_environment"),
        ("load_environment = 3", ValueError, "no function load_environment"),
        ("from json import nothing", ValueError, "nothing"),
        ("import broken", ValueError, "importing the environment 'broken-env' failed: No module named 'broken'"),
        (
            "def load_environment(size, *, depth, name=''): return make()",
            ValueError,
            "'broken-env' needs the arguments size, depth; got none",
        ),
        ("def load_environment(): 1 / 0", RuntimeError, "loading the environment 'broken-env' failed: ZeroDivisionError"),
        ("def load_environment(): return None", ValueError, "must return an environment, got NoneType"),
        ("def load_environment(size): return make()", ValueError, "needs the arguments size"),
        ("def load_environment(config: Config): return make()", None, ""),
    ],
)
def test_what_can_be_wrong_with_it(write: Any, code: str, kind: type[Exception] | None, told: str) -> None:
    """The original error is the cause."""
    write("broken_env", "import verifiers_compat.utils.config_utils\n" + code)
    if kind is None:
        assert load_environment("broken-env")
        return
    with pytest.raises(kind, match=told) as caught:
        load_environment("broken-env")
    if kind is RuntimeError:
        assert isinstance(caught.value, EnvironmentLoadError)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("env_id", "told"),
    [
        ("no-such-env", "no module 'no_such_env' is installed"),
        ("no-such.env", "no module 'no_such.env' is installed"),
        ("json.no-such", "no module 'json.no_such' is installed"),
        (" ", "expected the id of an environment, got ' '"),
        ("json", r"the module 'json' \(.*\) has no function load_environment"),
        ("sys", r"the module 'sys' \(built in\) has no function"),
        ("reasoning-gym/leg_countin", "Did you mean `reasoning-gym/leg_counting-v0`"),
        ("owner/name@1.2", "names a version"),
        ("what is this", "cannot be the name of a module"),
        ("", "expected the id"),
        (3, "expected the id"),
    ],
)
def test_ids_that_are_none(env_id: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        load_environment(env_id)


def test_a_mapping_becomes_the_config_that_the_loader_asks_for(write: Any) -> None:
    write("config_env", "def load_environment(config: Config | None = None): return make(sampling_args={'config': config})")
    config = load_environment("config-env", config={"size": "3"}).sampling_args["config"]
    assert type(config).__name__ == "Config"
    assert config.size == 3
    assert load_environment("config-env", config=config).sampling_args["config"] is config
    assert load_environment("config-env").sampling_args["config"] is None
    with pytest.raises(ValueError, match=r"'config-env' failed: config does not fit Config: size: "):
        load_environment("config-env", config={"size": "many"})
    with pytest.raises(ValueError, match=r"config must be a Config or a mapping.*int"):
        load_environment("config-env", config=3)


V1_HEAD = (
    HEAD
    + """
import verifiers_compat.v1 as v1
class Level(v1.TasksetConfig):
    level: int = 1
class Levels(v1.Taskset):
    config_type = Level
    def rows(self):
        return [{"question": "?"}] * self.config.level
class Whole(v1.EnvConfig):
    taskset: Level = Level(level=2)
"""
)


def test_sections_that_a_loader_has_no_arguments_for_are_parts_of_its_config(write: Any) -> None:
    """The config is the most typed thing known: the annotated class, its defaults, and the children's classes."""
    write("whole_env", "def load_environment(config: Whole): return v1.Env(Levels(config=config.taskset))", head=V1_HEAD)
    assert len(load_environment("whole-env").taskset) == 2
    assert len(load_environment("whole-env", config=None).taskset) == 2
    env = load_environment("whole-env", taskset={"level": 3})
    assert (len(env.taskset), env.env_args) == (3, {"taskset": {"level": 3}})
    assert len(load_environment("whole-env", config={"taskset": {"level": 3}}, taskset={"level": 4}).taskset) == 4
    write(
        "default_env",
        "def load_environment(config: Whole = Whole(taskset={'level': 5})): return v1.Env(Levels(config=config.taskset))",
        head=V1_HEAD,
    )
    assert [len(load_environment("default-env", **given).taskset) for given in ({}, {"config": None}, {"config": {}})] == [5, 5, 2]
    write("own_env", "def load_environment(taskset, config=None): return make(sampling_args={'got': [taskset, config]})")
    assert load_environment("own-env", taskset={"n": 1}, harness={"m": 2}).sampling_args["got"] == [{"n": 1}, {"harness": {"m": 2}}]
    write("any_env", "def load_environment(**kwargs): return make(sampling_args={'got': kwargs})")
    assert load_environment("any-env", taskset={"n": 1}).sampling_args["got"] == {"taskset": {"n": 1}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"taskset": {"levl": 3}}, r"config does not fit Whole: taskset\.levl: there is no such field\. Level has: .*Did you mean `level`"),
        ({"config": {"taskset": {"level": "high"}}}, r"config does not fit Whole: taskset\.level: .*valid integer"),
        ({"config": {"tasket": {}}}, r"config does not fit Whole: tasket: there is no such field\. Whole has: taskset, harness\."),
        ({"config": ""}, "config must be a Whole or a mapping with its fields, got str: ''"),
        ({"config": 3, "taskset": {"level": 3}}, "a config that is int has no taskset: leave one of them out"),
        ({"config": {"taskset": 3}}, r"config does not fit Whole: Whole\.taskset must be a configuration or a mapping, got int: 3"),
    ],
)
def test_what_does_not_fit_names_the_package_and_the_field(write: Any, arguments: dict[str, Any], message: str) -> None:
    write("whole_env", "def load_environment(config: Whole): return v1.Env(Levels(config=config.taskset))", head=V1_HEAD)
    with pytest.raises(ValueError, match=f"the environment 'whole-env' failed: {message}"):
        load_environment("whole-env", **arguments)


def test_sections_that_nobody_takes_are_refused(write: Any) -> None:
    write("plain_env", "def load_environment(split='train'): return make()")
    for arguments in ({"taskset": {"n": 1}}, {"config": {"taskset": {"n": 1}}}):
        with pytest.raises(ValueError, match="'plain-env' failed: its load_environment takes no config, so nobody would read taskset"):
            load_environment("plain-env", **arguments)
    for config in ({}, 3):
        with pytest.raises(ValueError, match=r"so nobody would read it\. It takes split: give"):
            load_environment("plain-env", config=config)
    with pytest.raises(ValueError, match="nobody would read taskset, harness, taskset"):
        load_environment("plain-env", harness={}, taskset={}, config={"taskset": {}})
    assert load_environment("plain-env", config=None).env_args == {"config": None}
    write("inner_env", "def load_environment(config=None): return v1.Env(Levels(config=config['taskset']))", head=V1_HEAD)
    with pytest.raises(
        ValueError, match=r"the environment 'inner-env' failed: Level does not fit: n: there is no such field.*inner_env\.py:\d+"
    ):
        load_environment("inner-env", taskset={"n": 1})


class Config(BaseModel):
    """A configuration."""

    size: int = 1


class Strict(BaseModel, extra="forbid"):
    """A configuration that takes nothing else."""

    size: int = 1


class Strange(BaseModel):
    """A configuration of another class, which may have more."""

    size: int = 1
    colour: str = ""


class Wider(Config):
    """A configuration with more."""

    name: str = ""


@pytest.mark.parametrize(
    ("annotation", "model"),
    [
        (Config, Config),
        (Config | None, Config),
        (None | Config, Config),
        (dict[str, Any] | Config | Strict, Config),
        (Annotated[Config, "text"], Config),
        (Annotated[Config | None, "text"], Config),
        (dict[str, Any], None),
        (dict, None),
        (None, None),
        (Any, None),
    ],
)
def test_the_model_in_an_annotation(annotation: Any, model: type[BaseModel] | None) -> None:
    assert env_config_type(annotation) is model


def test_annotations_and_arguments() -> None:
    def typed(config: Config, other: int = 2) -> None: ...
    def untyped(config: Any = None) -> None: ...
    def without(other: int = 2) -> None: ...

    def strict(config: Strict, other: int = 2) -> None: ...

    strict.__annotations__["config"] = Strict
    typed.__annotations__["config"] = "Config"
    signature = inspect.signature(typed)
    assert env_config_annotation(typed, signature) is Config
    assert env_config_annotation(without, inspect.signature(without)) is None
    assert coerce_typed_env_config(typed, signature, {"other": 1}) == {"other": 1, "config": Config()}
    assert coerce_typed_env_config(untyped, None, {"config": {"size": 2}}) == {"config": {"size": 2}}
    assert coerce_typed_env_config(without, None, {"other": 1}) == {"other": 1}
    wider = Wider(size=5, name="x")
    assert coerce_typed_env_config(typed, signature, {"config": wider})["config"] is wider
    given = {"config": Strange(size=0), "other": 0}
    coerced = coerce_typed_env_config(strict, None, given)
    assert (coerced, given) == ({"config": Strict(size=0), "other": 0}, {"config": Strange(size=0), "other": 0})
    typed.__annotations__["config"] = "Nobody"
    with pytest.raises(ConfigurationError, match="the annotation 'Nobody' of config cannot be evaluated: name 'Nobody' is not defined"):
        env_config_annotation(typed)
