"""Images, variables and data sets that a package's text names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from verifiers_compat.cli.packages.check import Report
from verifiers_compat.cli.packages.imports import Source
from verifiers_compat.cli.packages.uses import Uses, find_uses
from vfgym.errors import ConfigurationError


def test_images_are_held_against_what_this_machine_can_run(check: Callable[..., Report]) -> None:
    report = check(
        "import verifiers as vf\nfrom verifiers.v1 import SandboxConfig\nIMAGE = 'owner/image:1'\n"
        "def make(docker_image='python:3.11-slim'):\n    vf.SandboxEnv(docker_image=IMAGE)\n"
        "SandboxConfig(image='other/image:2')\nsandbox = {'image': 'third/image', 'cpu_cores': 2}\npart = {'image': 'data:image/png'}\n"
    )
    found = {each.name: (each.places, each.problem) for each in report.images}
    assert found.keys() == {"owner/image:1", "python:3.11-slim", "other/image:2", "third/image"}
    assert found["owner/image:1"][0] == ["word_count.py:5"]
    assert report.is_complete is all(problem is None for _, problem in found.values())
    from verifiers_compat.envs.sandbox_arguments import spec_of_arguments
    from vfgym.sandboxes import SandboxSpec

    with pytest.raises(ConfigurationError) as refused:
        spec_of_arguments(SandboxSpec(), None, docker_image="owner/image:1")
    assert found["owner/image:1"][1] == str(refused.value)


def test_variables_and_data_sets_are_named(check: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_URL", "http://localhost")
    monkeypatch.delenv("MY_API_KEY", raising=False)
    report = check(
        "import os\nimport verifiers as vf\nfrom datasets import load_dataset as load\n"
        "def make(key='MY_API_KEY', data='org/questions'):\n"
        "    vf.ensure_keys([key, 'SECOND'])\n    os.getenv('OTHER_URL')\n    os.environ['THIRD']\n"
        "    load(data)\n    load('json', data_files='x')\n    load(path=os.name)\n    vf.load_example_dataset()\n"
    )
    assert {each.name: each.is_set for each in report.variables} == {
        "MY_API_KEY": False,
        "SECOND": False,
        "OTHER_URL": True,
        "THIRD": False,
    }
    assert [each.name for each in report.datasets] == ["org/questions", "", "gsm8k"]
    assert report.datasets[0].places == ["word_count.py:8"]


def uses_of(*texts: str) -> Uses:
    """Return what modules with these texts use."""
    return find_uses([Source(f"mod{number}", f"mod{number}.py", ast.parse(text)) for number, text in enumerate(texts)])


IMPORTS = "import os, datasets, huggingface_hub as hub, verifiers as vf\nfrom verifiers.utils import config_utils, data_utils\n"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        *((f"os.{how}", ["HOME"]) for how in ("getenv('HOME')", "environ['HOME']", "environ.get('HOME', 'x')")),
        *((f"{whose}.ensure_keys({names})", ["A", "B"]) for whose in ("vf", "config_utils") for names in ("['A', 'B']", "('A', 'B')")),
        ("vf.ensure_keys([])", []),
        ("os.getenv()", []),
        ("os.getenv(3)", []),
        ("os.getcwd('HOME')", []),
        ("NAME = 'HOME'\nos.getenv(NAME)", ["HOME"]),
        ("os.environ['A_KEY']", ["A_KEY"]),
        *((f"x = '{text}'", [text]) for text in ("A_KEY", "HF_TOKEN", "MY_2ND_API_KEY")),
        *((f"x = '{text}'", []) for text in ("KEY", "_KEY", "a_KEY", "A_KEYS", "2_KEY", "A__KEY")),
    ],
)
def test_each_way_to_read_a_variable(code: str, names: list[str]) -> None:
    assert [use.path for use in uses_of(IMPORTS + code).variables] == names


@pytest.mark.parametrize(
    ("call", "names"),
    [
        *((f"{loader}('a/b')", ["a/b"]) for loader in ("datasets.load_dataset", "hub.snapshot_download", "hub.hf_hub_download")),
        *((f"{whose}.load_example_dataset('math')", ["math"]) for whose in ("vf", "data_utils")),
        *((f"{whose}.load_example_dataset(n=3)", ["gsm8k"]) for whose in ("vf", "data_utils")),
        ("datasets.load_dataset(path='a/b', name='c')", ["a/b"]),
        ("datasets.load_dataset(name='c', path='a/b')", ["a/b"]),
        ("hub.snapshot_download(repo_id='a/b')", ["a/b"]),
        ("vf.load_example_dataset(name='math')", ["math"]),
        ("datasets.load_dataset(f'{x}')", [""]),
        ("datasets.load_dataset()", [""]),
        *((f"datasets.load_dataset('{name}')", []) for name in ("arrow", "csv", "imagefolder", "json", "pandas", "parquet", "text")),
        ("datasets.load_from_disk('a/b')", []),
    ],
)
def test_each_way_to_load_a_data_set(call: str, names: list[str]) -> None:
    assert [use.path for use in uses_of(IMPORTS + call).datasets] == names


FIELDS = ("cpu_cores", "memory_gb", "disk_size_gb", "gpu_count", "timeout_minutes", "start_command", "workdir")


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def f(a, docker_image='i', b=2): ...", ["i"]),
        ("def f(docker_image, b='x'): ...", []),
        ("def f(*, docker_image='i', b): ...", ["i"]),
        ("docker_image = other = 'i'", ["i"]),
        ("docker_image: str = 'i'", ["i"]),
        ("docker_image: str", []),
        ("self.docker_image = 'i'", ["i"]),
        ("any(docker_image='i')", ["i"]),
        ("any(docker_image='')", []),
        ("{'docker_image': 'i', **more}", ["i"]),
        ("def f(name='i'):\n    any(docker_image=name)", ["i"]),
        ("def f(*, name='i'):\n    any(docker_image=name)", ["i"]),
        ("vf.anything(image='i')", ["i"]),
        ("other(image='i')", []),
        ("image = 'i'", []),
        *((f"{{'image': 'i', '{field}': 1}}", ["i"]) for field in FIELDS),
        ("{'image': 'i', 'size': 1}", []),
    ],
)
def test_each_way_to_name_an_image(code: str, names: list[str]) -> None:
    assert [use.path for use in uses_of(IMPORTS + code).images] == names


def test_names_calls_and_attributes_have_their_places_in_each_module() -> None:
    text = (
        "import verifiers as vf\nimport json\nEnv = vf.ToolEnv\ntry:\n    vf.gone(a=1)\n    Env.lost\nexcept AttributeError: ...\n"
        "json.dumps(x, indent=2)\nvf.plain(1)\nx.seen = y.known.told = 3\nclass A: ...\nA(size=1)\n"
    )
    uses = uses_of(text, "from verifiers import *\nx.other = 1\n")
    name = "verifiers"
    assert [(use.path, use.place, use.is_optional) for use in uses.names] == [
        *[(name, "mod0.py:1", False), (f"{name}.ToolEnv", "mod0.py:3", False), (f"{name}.gone", "mod0.py:5", True)],
        *[(f"{name}.ToolEnv.lost", "mod0.py:6", True), (f"{name}.plain", "mod0.py:9", False), (name, "mod1.py:1", False)],
    ]
    assert [(use.path, use.keywords, use.is_optional) for use in uses.calls] == [
        *[(f"{name}.gone", ("a",), True), ("json.dumps", ("indent",), False), ("mod0.A", ("size",), False)]
    ]
    assert (uses.written, [each.path for each in uses.classes]) == ({"seen", "told", "other"}, ["mod0.A"])


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("env = vf.ToolEnv()\nenv.go(a=1)", [("verifiers.ToolEnv", "go", ("a",))]),
        ("env = vf.ToolEnv()\nenv = vf.ToolEnv(b=1)\nenv.go()\nenv.stop()", [("verifiers.ToolEnv", name, ()) for name in ("go", "stop")]),
        ("env = vf.ToolEnv()\nenv = vf.Parser()\nenv.go()", []),
        ("env = vf.ToolEnv()\nenv = 3\nenv.go()", []),
        ("env = vf.ToolEnv()\nfor env in envs:\n    env.go()", []),
        ("env = vf.ToolEnv()\ndef f(env):\n    env.go()", []),
        ("env = vf.ToolEnv()\nenv.go", []),
        ("env, other = vf.ToolEnv(), 1\nenv.go()", []),
    ],
)
def test_what_is_called_of_objects_that_are_made_by_one_class(code: str, asked: list[Any]) -> None:
    assert [(path, use.path, use.keywords) for path, use in uses_of(IMPORTS + code).asked] == asked
