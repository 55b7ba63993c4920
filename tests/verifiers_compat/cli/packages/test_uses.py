"""Images, variables and data sets that a package's text names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from verifiers_compat.cli.packages.check import Report
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
