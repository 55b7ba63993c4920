"""`RLM`: a program that pip installs from a checkout, with what it is told and what is kept of it. What stands for it is made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.agent_programs import needs_sandbox
from tests.models import InOrder
from tests.verifiers_compat.v1.playing import OFFLINE

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


STANDS_IN = r"""mkdir -p /home/sandbox/bin && cat > /home/sandbox/bin/python3 <<'END' && chmod +x /home/sandbox/bin/python3
#!/bin/sh
[ "$2" = venv ] || exec /usr/bin/python3 "$@"
mkdir -p "$3/bin"
printf '#!/bin/sh\necho "$@" > /tmp/installed\n' > "$3/bin/python"
printf '#!/bin/sh\nPYTHONPATH=/tmp/rlm-checkout exec /usr/bin/python3 -c "import rlm; rlm.main()" "$@"\n' > "$3/bin/rlm"
chmod +x "$3/bin/python" "$3/bin/rlm"
END
"""
"""Makes a Python whose virtual environments need no pip: the program is found in its checkout."""


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
    ("installer", "includes", "depth", "kept"),
    [
        ("stands in", False, 1, [1, 3]),
        ("stands in", True, 1, [1, 1, 3]),
        ("stands in", False, 0, [1, 1, 3]),
        pytest.param("pip", False, 1, [1, 3], marks=pytest.mark.exhaustive),
    ],
)
async def test_a_checkout_is_installed_and_plays(
    installer: str, includes: bool, depth: int, kept: list[int], checkout: Path, tmp_path: Path
) -> None:
    """A depth of 0 has no turns but the root's."""
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "add.md").write_text("how to add")
    harness = vf.RLM(
        local_checkout=checkout,
        sandbox={**OFFLINE, "setup_commands": [STANDS_IN] if installer == "stands in" else []},
        program={"artifacts": {"installed": {"path": "/tmp/installed", "optional": True}}},
        rlm_max_depth=depth,
        include_sub_rlm_trajectories=includes,
        summarize_at_tokens=(1000, 2000),
        append_to_system_prompt="task.Be brief.",
        rlm_tools=["bash", "edit"],
        rlm_env={"RLM_OWN": "task.word", **({"PATH": "/home/sandbox/bin:/usr/bin:/bin"} if installer == "stands in" else {})},
        skills=tmp_path / "skills",
        client=InOrder("one", "part", "two"),
        model="m",
    )
    state = await harness.run({"prompt": "Add them.", "word": "w"})
    assert state["error"] is None
    assert (state["artifacts"].get("installed", "").split()[-1:] == ["/tmp/rlm-checkout"]) is (installer == "stands in")
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


TOKEN = "ghp_0123456789abcdef"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"local_checkout": "/no/such/folder"}, "local_checkout must be a folder"),
        ({"skills": "/no/such/folder"}, "skills must be a folder"),
        ({"summarize_at_tokens": (5, 2)}, "summarize_at_tokens must be"),
        *(
            ({"summarize_at_tokens": tokens}, "summarize_at_tokens must be")
            for tokens in (0, -1, True, 1.5, "5", (0, 5), (1, 2, 3), (1,), ())
        ),
        ({"rlm_tools": "bash"}, "rlm_tools must be a list"),
        ({"rlm_ref": "--upload-pack=x"}, "a ref must be"),
        ({"rlm_repo_url": "http://example.org/a.git", "gh_token": TOKEN}, "over HTTPS only"),
        ({"sandbox": False}, "RLM is installed into a sandbox"),
    ],
)
def test_what_does_not_fit_is_refused_at_construction(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        vf.RLM(**arguments)


def test_options_arrive_and_variables_of_its_own_win() -> None:
    told = {"rlm_max_turns": 0, "rlm_exec_timeout": 1, "rlm_max_depth": 2, "rlm_tools": [], "rlm_env": {"RLM_MAX_TURNS": "9", "X": ""}}
    program = vf.RLM(workdir="/w", instruction_path="/i", **told).program  # type: ignore[arg-type]
    own = program.options_with({})
    env = {name: value for name, value in own["env"].items() if name != "RLM_MODEL"}
    assert env == {"RLM_MAX_TURNS": "9", "RLM_EXEC_TIMEOUT": "1", "RLM_MAX_DEPTH": "2", "RLM_TOOLS": "", "X": ""}
    assert (program.sandbox.workdir, {*own["files"]}, own["dirs"]) == ("/w", {"/i", "/rlm/append_to_system_prompt.txt"}, {})
    assert '"$(cat /i)"' in program.command[2]
    usual = vf.RLM().program.options_with({})["env"]
    assert (usual["RLM_MAX_DEPTH"], usual.keys() & {"RLM_TOOLS", "RLM_SUMMARIZE_AT_TOKENS"}) == ("0", set())


def test_a_limit_is_drawn_once_for_each_rollout() -> None:
    draw = vf.RLM(summarize_at_tokens=(1, 10**9)).program.options_with({})["env"]["RLM_SUMMARIZE_AT_TOKENS"]
    states = [vf.State(), vf.State()]
    drawn = [draw(state) for state in states]
    assert drawn == [str(state["rlm_summarize_at_tokens"]) for state in states] == [draw(state) for state in states]
    assert drawn[0] != drawn[1]
    exactly = vf.RLM(summarize_at_tokens=7).program.options_with({})["env"]["RLM_SUMMARIZE_AT_TOKENS"]
    assert exactly(vf.State()) == "7"


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [True, True, True]),
        ({"rlm_max_depth": 1}, [True, False, True]),
        ({"rlm_max_depth": 1, "include_sub_rlm_trajectories": True}, [True, True, True]),
        ({"rlm_max_depth": 1, "rlm_env": {"RLM_MAX_DEPTH": 0}}, [True, True, True]),
        ({"rlm_env": {"RLM_MAX_DEPTH": "1"}}, [True, False, True]),
    ],
)
def test_turns_of_the_root_begin_with_the_task(options: dict[str, Any], kept: list[bool]) -> None:
    """The system prompt before it, and what follows it, may be any."""
    harness, state = vf.RLM(**options), vf.State()
    prompts = [
        [{"role": "system", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": "go"}]}],
        [{"role": "system", "content": "x"}],
        [{"role": "user", "content": "go"}, {"role": "user", "content": "on"}],
    ]
    assert [harness.keep_trajectory_step({"prompt": prompt}, state) for prompt in prompts] == kept


pytestmark = needs_sandbox


async def test_a_repository_that_cannot_be_cloned_is_the_error_of_its_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    state = await vf.RLM(rlm_repo_url=str(tmp_path / "none"), sandbox=OFFLINE, model="m").run({"prompt": "go"})
    assert (state["error"]["error"], "could not be cloned" in str(state["error"])) == ("SandboxError", True)
