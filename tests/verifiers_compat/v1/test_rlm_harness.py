"""`RLM`: a program that pip installs from a checkout, with what it is told and what is kept of it. What stands for it is made here."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.agent_programs import needs_sandbox
from tests.models import InOrder
from verifiers_compat.v1.checkouts import Repository
from vfgym.errors import SandboxError

pytestmark = needs_sandbox

OFFLINE = {"network_access": False}
TOKEN = "ghp_0123456789abcdef"
BUILD = """
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "rlm-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.write("rlm.py")
        wheel.writestr("rlm-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: rlm\\nVersion: 1.0\\n")
        wheel.writestr("rlm-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("rlm-1.0.dist-info/entry_points.txt", "[console_scripts]\\nrlm = rlm:main\\n")
        wheel.writestr("rlm-1.0.dist-info/RECORD", "")
    return name
"""
PROGRAM = """
import json, os, sys, urllib.request

def ask(messages):
    body = {"model": os.environ["RLM_MODEL"], "messages": messages}
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

def main():
    root = [{"role": "user", "content": sys.argv[1]}]
    root.append(ask(root))
    ask([{"role": "user", "content": "a part of it"}])
    root.append({"role": "user", "content": "go on"})
    ask(root)
    appended = open("/rlm/append_to_system_prompt.txt").read()
    told = {name: value for name, value in os.environ.items() if name.startswith("RLM_")}
    os.makedirs(".rlm/sessions/one")
    with open(".rlm/sessions/one/meta.json", "w") as file:
        json.dump({"metrics": {"told": told, "appended": appended, "skills": os.path.exists("/rlm/skills/add.md")}}, file)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that builds itself, since there is no network."""
    folder = tmp_path / "rlm"
    (folder / ".venv").mkdir(parents=True)
    (folder / ".venv" / "large").write_text("not copied")
    (folder / "rlm.py").write_text(PROGRAM)
    (folder / "build.py").write_text(BUILD)
    (folder / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "build"\nbackend-path = ["."]\n')
    return folder


@pytest.mark.parametrize(
    ("includes", "depth", "kept"),
    [
        (False, 1, [1, 3]),
        pytest.param(True, 1, [1, 1, 3], marks=pytest.mark.exhaustive),
        pytest.param(False, 0, [1, 1, 3], marks=pytest.mark.exhaustive),
    ],
)
async def test_a_checkout_is_installed_and_plays(includes: bool, depth: int, kept: list[int], checkout: Path, tmp_path: Path) -> None:
    """A depth of 0 has no turns but the root's."""
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "add.md").write_text("how to add")
    harness = vf.RLM(
        local_checkout=checkout,
        sandbox=OFFLINE,
        rlm_max_depth=depth,
        include_sub_rlm_trajectories=includes,
        summarize_at_tokens=(1000, 2000),
        append_to_system_prompt="task.Be brief.",
        rlm_tools=["bash", "edit"],
        rlm_env={"RLM_OWN": "task.word"},
        skills=tmp_path / "skills",
        client=InOrder("one", "part", "two"),
        model="m",
    )
    state = await harness.run({"prompt": "Add them.", "word": "w"})
    assert state["error"] is None
    assert ([len(step["prompt"]) for step in state["trajectory"]], state["num_model_requests"]) == (kept, 3)
    assert [message["content"] for message in state["completion"]] == ["one", "go on", "two"]
    metrics = state["artifacts"]["rlm_metrics"]
    assert (metrics["appended"], metrics["skills"]) == ("task.Be brief.", True)
    assert metrics["told"] == {
        "RLM_MODEL": "m",
        "RLM_MAX_TURNS": "100",
        "RLM_EXEC_TIMEOUT": "300",
        "RLM_MAX_DEPTH": str(depth),
        "RLM_SUMMARIZE_AT_TOKENS": str(state["rlm_summarize_at_tokens"]),
        "RLM_TOOLS": "bash,edit",
        "RLM_OWN": "w",
    }
    assert 1000 <= state["rlm_summarize_at_tokens"] <= 2000


async def test_a_repository_is_cloned_once(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as in a hook
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "--quiet", "--initial-branch=main"], ["add", "rlm.py"], [*who, "commit", "--quiet", "-m", "Begin"]):
        subprocess.run(["git", *arguments], cwd=checkout, check=True, env={**os.environ, "GIT_DIR": str(checkout / ".git")})
    found = await Repository(str(checkout), "main").checkout()
    assert (found / "rlm.py").read_text() == PROGRAM
    (checkout / ".git").rename(tmp_path / "gone")
    assert await Repository(str(checkout), "main").checkout() == found
    with pytest.raises(SandboxError, match="could not be cloned at 'other'"):
        await Repository(str(checkout), "other").checkout()


async def test_a_token_is_shown_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands for git says all that it knows, and fails."""
    git = tmp_path / "git"
    git.write_text(f'#!/bin/sh\necho "$0 $@" >> {tmp_path}/arguments\nenv >&2; exit 1\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    state = await vf.RLM(gh_token=TOKEN, sandbox=OFFLINE, model="m").run({"prompt": "go"})
    text = json.dumps(state["error"])
    assert "could not be cloned" in text
    assert "http.https://github.com/PrimeIntellect-ai/rlm-harness.git.extraHeader" in text
    assert "Authorization: Basic ***" in text
    assert TOKEN not in text + (tmp_path / "arguments").read_text() + repr(Repository("github.com/a/b", "main", TOKEN))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"local_checkout": "/no/such/folder"}, "local_checkout must be a folder"),
        ({"skills": "/no/such/folder"}, "skills must be a folder"),
        ({"summarize_at_tokens": (5, 2)}, "summarize_at_tokens must be"),
        ({"summarize_at_tokens": 0}, "summarize_at_tokens must be"),
        ({"rlm_tools": "bash"}, "rlm_tools must be a list"),
        ({"rlm_ref": "--upload-pack=x"}, "a ref must be"),
        ({"rlm_repo_url": "http://example.org/a.git", "gh_token": TOKEN}, "over HTTPS only"),
        ({"sandbox": False}, "RLM is installed into a sandbox"),
    ],
)
def test_what_does_not_fit_is_refused_at_construction(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        vf.RLM(**arguments)
