"""Programs, tools and users in sandboxes of this machine, through ``import verifiers.v1 as vf``; real sandboxes, scripted models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.agent_programs import LIBRARY, needs_sandbox
from tests.models import InOrder, Mute, Recording, calling
from vfgym import sandboxes
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import Sandbox, registry

pytestmark = needs_sandbox

OFFLINE = {"network_access": False}


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Every sandbox that a test opens is closed."""
    before = set(registry._own)
    yield
    assert set(registry._own) == before


def command(program: str, **options: Any) -> dict[str, Any]:
    """Return a program that runs Python code in a sandbox, beside a client of the model."""
    return {"command": ["python3", "agent.py"], "sandbox": OFFLINE, "files": {"agent.py": LIBRARY + program}, **options}


# Commands


ASK = """
said = chat([user(open("/data/question.txt").read() + os.environ["EXTRA"] + sys.argv[1])])
with open("answer.json", "w") as file:
    json.dump({"answer": said["content"], "folder": sorted(os.listdir("/data/docs")), "setup": open("/tmp/setup").read()}, file)
print("printed")
"""


async def test_a_command_in_a_sandbox_has_its_files_and_asks_the_model(tmp_path: Path) -> None:
    """All options, those of the task beside those of the harness; without network, the model is reached all the same."""
    (tmp_path / "a.txt").write_text("a")
    program = command(ASK, dirs={"/data/docs": str(tmp_path)}, setup="echo 1 $EXTRA > /tmp/setup", env={"EXTRA": " ours "})
    program["artifacts"] = {"answer": {"path": "answer.json", "format": "json"}, "log": {"path": "nope", "optional": True}}
    own = {"files": {"/data/question.txt": "task.question"}, "setup": ["echo 2 >> /tmp/setup"], "args": ["task.info.word"]}
    client = Recording(["four"])
    task = {"prompt": "go", "question": "2+2", "info": {"word": "now"}, "program": {**own, "artifacts": {"setup": "/tmp/setup"}}}
    state = await vf.Harness(program, client=client, model="m").run(task)
    assert (state["error"], state["stop_condition"]) == (None, "command_completed")
    assert client.asked[0]["prompt"][0]["content"] == "2+2 ours now"
    assert state["completion"] == [{"role": "assistant", "content": "four"}]
    command_of = state["command"]
    assert (command_of["argv"], command_of["returncode"], command_of["stdout"]) == (["python3", "agent.py", "now"], 0, "printed\n")
    setup = "1 ours\n2\n"
    assert state["artifacts"] == {"answer": {"answer": "four", "folder": ["a.txt"], "setup": setup}, "setup": setup}


async def test_the_sandbox_is_what_program_harness_and_task_say() -> None:
    """The program over the harness, the task over both."""
    program = {
        "command": "pwd",
        "sandbox": {"environment_vars": {"A": "program"}},
        "setup": "echo $A$B > /tmp/a",
        "artifacts": {"a": "/tmp/a"},
    }
    given = {**OFFLINE, "workdir": "/project/here", "environment_vars": {"A": "harness", "B": "harness"}}
    harness = vf.Harness(program, sandbox=given, model="m")
    state = await harness.run({"prompt": "go"})
    assert (state["completion"][0]["content"], state["artifacts"]) == ("/project/here", {"a": "programharness\n"})
    state = await harness.run({"prompt": "go", "sandbox": {"workdir": "/other", "environment_vars": {"B": "task"}}})
    assert (state["completion"][0]["content"], state["artifacts"]) == ("/other", {"a": "programtask\n"})


async def test_setups_run_around_the_preparation_and_rewards_see_the_sandbox() -> None:
    """Those with a priority above 0 before there is a sandbox, the others in it; it is there until the rewards are computed."""

    @vf.setup(priority=1)
    async def first(state: vf.State) -> None:
        with pytest.raises(ConfigurationError, match="there is no sandbox"):
            state.get_sandbox()
        state["content"] = "from a setup"

    async def second(state: vf.State) -> None:
        await state.get_sandbox().exec("cp given copied")

    async def copied(state: vf.State) -> float:
        return float(await state.get_sandbox().read_file("copied") == b"from a setup!")

    program = {"command": ["sh", "-c", "printf ! >> copied; echo done"], "sandbox": OFFLINE, "files": {"given": "state.content"}}
    state = await vf.Harness(program, model="m", setups=[first, second], rewards=[copied]).run({"prompt": "go"})
    assert (state["reward"], state["error"]) == (1.0, None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"command": ["no-such-agent"]}, "of Harness ended with code 127"),
        ({"command": ["sh", "-c", "echo broken >&2; exit 3"]}, "code 3: broken"),
        ({"command": ["true"]}, "ended without an answer"),
        ({"command": ["sleep", "60"], "sandbox": {**OFFLINE, "command_timeout": 1}}, "took longer than 1 s"),
        ({"setup": ["echo not there >&2; exit 4"]}, "ended with code 4: not there"),
        ({"sandbox": {**OFFLINE, "setup_commands": ["exit 5"]}}, "ended with code 5: it printed nothing"),
        ({"artifacts": {"log": "/logs/none"}}, "of the program, /logs/none"),
        ({"files": {"/usr/bin/x": "y"}}, "cannot be put into its sandbox"),
    ],
)
async def test_what_fails_in_the_sandbox_is_the_error_of_its_rollout(change: dict[str, Any], says: str) -> None:
    program = {"command": ["echo", "hi"], "sandbox": OFFLINE, **change}
    state = await vf.Harness(program, model="m").run({"prompt": "go"})
    assert state["stop_condition"] == "has_error"
    assert says in state["error"]["error_chain_repr"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: vf.Harness({"command": ["x"], "sandbox": "yes"}), "true, false, 'program' or a mapping"),
        (lambda: vf.Harness({"command": ["x"], "sandbox": "program"}), "for toolsets and users"),
        (lambda: vf.Harness({"command": ["x"], "sandbox": {"imagine": "x"}}), "imagine"),
        (lambda: vf.Harness({"command": ["x"], "sandbox": {"gpu_count": 1}}), "gpu_count"),
        (lambda: vf.Harness({"command": ["x"], "sandbox": {"start_command": "serve"}}), "start_command='serve'"),
        (lambda: vf.Harness({"command": ["x"], "sandbox": True, "dirs": {"/a": "/no/such/folder"}}), "/no/such/folder"),
        (lambda: vf.Harness({"command": ["x"], "sandbox": True, "artifacts": {"a": {"path": "a", "format": "xml"}}}), "xml"),
        (lambda: vf.Harness({"command": ["x"], "sandbox": True, "artifacts": {"a": {"optional": True}}}), "must have a path"),
        (lambda: vf.Harness({"command": ["x"], "sandbox": True, "artifacts": {"a": {"path": "a", "key": "b"}}}), "needs format='json'"),
        (lambda: vf.Harness({"fn": lambda state: None, "sandbox": True}), "module:name"),
        (lambda: vf.Harness({"fn": "json:dumps", "sandbox": True}), "pyproject.toml"),
        (lambda: vf.Harness({"fn": "json:dmps", "sandbox": True}), "Did you mean `dumps`"),
        (lambda: vf.Harness({"files": {"a": "b"}}), "need a sandbox"),
        (lambda: vf.Toolset([len], sandbox="other"), "'program'"),
        (lambda: vf.User(lambda sandbox: None), "asks for sandbox"),
    ],
)
def test_what_cannot_be_had_is_refused_at_construction(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.skipif(sandboxes.backends()["container"].probe().works, reason="there is a container engine here")
async def test_an_image_needs_an_engine() -> None:
    """Of a harness that is an error at once; of a task, its own."""
    with pytest.raises(ValueError, match="container"):
        vf.Harness({"command": ["x"], "sandbox": True}, sandbox={"image": "acme/tools:1"})
    with pytest.raises(ValueError, match="strict_image"):
        vf.Harness({"command": ["x"], "sandbox": True}, sandbox={"image": "ubuntu:24.04", "strict_image": True})
    harness = vf.Harness({"command": ["echo", "hi"], "sandbox": OFFLINE}, model="m")
    state = await harness.run({"prompt": "go", "sandbox": {"image": "acme/tools:1"}})
    assert state["error"]["error"] == "SandboxError"
    assert "needs backend='container'" in state["error"]["error_chain_repr"]
    assert (await harness.run({"prompt": "go", "sandbox": {"image": "ubuntu:24.04"}}))["error"] is None


TWICE = """
for number in (1, 2):
    print(chat([user(f"question {number}")])["content"])
"""


def test_a_sandboxed_program_is_stepped() -> None:
    """Each of its requests is an observation, and the action its answer."""
    env = vf.Env(vf.Taskset([{"question": "go"}]), vf.Harness(command(TWICE)))
    for _ in range(2):
        observation, _ = env.reset(seed=0)
        assert observation[-1]["content"] == "question 1"
        observation, _, terminated, *_ = env.step("a")
        assert (observation[-1]["content"], terminated) == ("question 2", False)
        assert env.step("b")[2]
    env.close()


async def test_a_rollout_that_is_cancelled_leaves_nothing() -> None:
    model = Mute()
    running = asyncio.ensure_future(vf.Harness(command(TWICE), client=model, model="m").run({"prompt": "go"}))
    await model.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_task_and_its_harness_may_not_give_the_same_file() -> None:
    program = command("", env={"A": "1"})
    for own in ({"files": {"agent.py": ""}}, {"env": {"A": "2"}}):
        with pytest.raises(ValueError, match="both the harness and the task"):
            await vf.Harness(program, model="m").run({"prompt": "go", "program": own})


# Functions

PACKAGE = """
import json, os, urllib.request
from pathlib import Path

async def run(task, state, word):
    config = state.get_endpoint_config()
    body = {"model": state.get_model(), "messages": [{"role": "user", "content": task["question"] + word}]}
    request = urllib.request.Request(config["base_url"] + "/chat/completions", json.dumps(body).encode())
    said = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
    state["sum"] = await state.get_tools()["add"](a=1, b=2)
    try:
        await state.get_tools()["add"](a="x")
    except RuntimeError as error:
        state["tool_error"] = str(error)
    state.stop("solved")
    here = Path(__file__)
    return {"said": said, "data": here.with_name("data.txt").read_text(), "from": str(here.parent), "turns": state.get_max_turns(3)}

def fails(task, state):
    raise ValueError("a bug")

async def counts(task, state):
    await state.get_tools()["count"]()
    state["own"] = 1

async def returns_all(task, state):
    config = state.get_endpoint_config()
    body = {"model": state.get_model(), "messages": [{"role": "user", "content": "?"}]}
    urllib.request.urlopen(urllib.request.Request(config["base_url"] + "/chat/completions", json.dumps(body).encode()))
    return {**state, "own": 2}
"""


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.mark.parametrize("is_package", [False, True])
async def test_a_function_runs_in_the_sandbox_with_its_own_package(
    is_package: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"sandboxed_{is_package}".lower()
    folder = tmp_path / name if is_package else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / ("__init__.py" if is_package else f"{name}.py")).write_text("" if is_package else PACKAGE)
    (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "0"\n')
    (folder / "data.txt").write_text("data")
    if is_package:
        (folder / "solver.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = f"{name}.solver" if is_package else name
    program = {"fn": f"{module}:run", "sandbox": OFFLINE, "bindings": {"word": "task.info.word"}}
    client = Recording(["four"])
    state = await vf.Harness(program, client=client, model="m", toolsets=[add], max_turns=7).run(
        {"prompt": "go", "question": "2+2", "info": {"word": "?"}}
    )
    assert state["error"] is None
    assert client.asked[0]["prompt"][0]["content"] == "2+2?"
    assert {key: state[key] for key in ("said", "data", "sum", "turns", "stop_condition")} == {
        "said": "four", "data": "data", "sum": 3, "turns": 7, "stop_condition": "solved"
    }  # fmt: skip
    assert state["from"].startswith("/tmp/vf_program/package")
    assert "b" in state["tool_error"]
    state = await vf.Harness({"fn": f"{module}:fails", "sandbox": OFFLINE}, model="m").run({"prompt": "go"})
    assert (state["stop_condition"], state["error"]["error"]) == ("has_error", "InfraError")
    assert "ValueError: a bug" in state["error"]["error_chain_repr"]


async def test_what_a_sandboxed_function_leaves_as_it_was_stays_as_it_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool changes the state while the function has an older copy; a function that returns all of its copy changes nothing else."""
    (tmp_path / "leaves_alone.py").write_text(PACKAGE)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "leaves-alone"\nversion = "0"\n')
    (tmp_path / "dangling").symlink_to("nowhere")
    monkeypatch.syspath_prepend(str(tmp_path))

    def count(state: vf.State) -> str:
        """Count."""
        state["counted"] += 1
        return "counted"

    def begin(state: vf.State) -> None:
        state["counted"] = 0

    harness = vf.Harness({"fn": "leaves_alone:counts", "sandbox": OFFLINE}, model="m", toolsets=[count], setups=[begin])
    state = await harness.run({"prompt": "go"})
    assert (state["error"], state["counted"], state["own"]) == (None, 1, 1)
    harness = vf.Harness({"fn": "leaves_alone:returns_all", "sandbox": OFFLINE}, client=Recording(["four"]), model="m")
    state = await harness.run({"prompt": "go"})
    assert (state["error"], state["own"], len(state["trajectory"])) == (None, 2, 1)
    assert state["completion"] == [{"role": "assistant", "content": "four"}]


# Tools and users


async def bash(command: str, sandbox: Sandbox) -> str:
    """Run a command."""
    return (await sandbox.exec(command)).stdout


async def test_the_base_loop_has_a_sandbox_that_its_tools_use() -> None:
    """The model does not see the argument; files are there, artifacts are kept, and a user may look, too."""

    async def user(state: vf.State, sandbox: Sandbox) -> str | None:
        return None if state["num_model_requests"] > 2 else f"I see {(await sandbox.read_file('b')).decode()}"

    client = Recording([calling(("bash", {"command": "cp a b; cat b"})), "look", "done"])
    harness = vf.Harness(
        {"base": True, "sandbox": OFFLINE, "files": {"a": "text"}, "artifacts": {"b": "b"}},
        client=client,
        model="m",
        toolsets=[vf.Toolset([bash], sandbox="program")],
        user=vf.User(user, sandbox={"prefer": "program"}),
    )
    state = await harness.run({"prompt": "go"})
    assert [message["content"] for message in state["completion"]] == [None, "text", "look", "I see text", "done"]
    assert list(client.asked[0]["tools"][0].parameters["properties"]) == ["command"]
    assert (state["artifacts"], state["stop_condition"]) == ({"b": "text"}, "no_tools")


@pytest.mark.parametrize(("scope", "seen"), [("rollout", ["0\n", "0\n"]), ("group", ["0\n", "1\n"]), ("global", ["1\n", "2\n"])])
async def test_the_sandbox_of_a_toolset_lives_as_long_as_it_says(scope: Any, seen: list[str]) -> None:
    """A rollout alone, then a group of two: how many files the rollouts of the group find in their sandbox."""

    async def count(sandbox: Sandbox, state: vf.State) -> str:
        """Count."""
        return (await sandbox.exec(f"ls | wc -l; touch {state['trajectory_id']}")).stdout

    harness = vf.Harness(
        client=InOrder(*[calling(("count", {})), "done"] * 3), model="m", toolsets=[vf.Toolset([count], scope=scope, sandbox=OFFLINE)]
    )
    await harness.run({"prompt": "go"})
    tasks = [vf.Task(prompt="go").freeze()] * 2
    states = [vf.State.for_task(task) for task in tasks]
    for task, state in zip(tasks, states, strict=True):
        state["runtime"]["group_key"] = "g"
        await harness.run(task, state)
    await harness.cleanup_group(tasks, states)
    await harness.teardown()
    assert [state["completion"][1]["content"] for state in states] == seen


async def test_a_child_borrows_the_sandbox_of_its_parent() -> None:
    async def delegate(state: vf.State) -> str:
        """Ask a child."""
        child = await vf.Harness({"command": ["cat", "a"], "sandbox": True}, model="m").run(
            {"prompt": "read"}, state.for_task({"prompt": "read"}, borrow=["model", "sandbox"])
        )
        return str(child["completion"][0]["content"])

    client = InOrder(calling(("delegate", {})), "done")
    program = {"base": True, "sandbox": OFFLINE, "files": {"a": "the parent's"}}
    state = await vf.Harness(program, client=client, model="m", toolsets=[delegate]).run({"prompt": "go"})
    assert state["completion"][1]["content"] == "the parent's"


async def test_files_of_a_child_may_name_its_model_in_a_borrowed_sandbox() -> None:
    """As configurations of agents do (see `OpenCode`)."""

    def address(state: vf.State) -> str:
        return state.live("configure").program_variables()["OPENAI_BASE_URL"]

    async def delegate(state: vf.State) -> str:
        """Ask a child."""
        program = {"command": ["cat", "address"], "sandbox": True, "files": {"address": address}}
        child = await vf.Harness(program, model="m").run({"prompt": "read"}, state.for_task({"prompt": "read"}, borrow="sandbox"))
        return str(child["completion"][0]["content"])

    client = InOrder(calling(("delegate", {})), "done")
    state = await vf.Harness({"base": True, "sandbox": OFFLINE}, client=client, model="m", toolsets=[delegate]).run({"prompt": "go"})
    assert state["completion"][1]["content"].startswith("http://127.0.0.1:")


async def test_an_artifact_that_a_failed_program_did_not_leave_hides_no_error() -> None:
    """Its place is an item of the state that was never written; those that are there are kept."""
    program = {"command": "sh -c 'echo a > a; exit 3'", "sandbox": OFFLINE, "artifacts": {"lost": "state.place", "a": "a"}}
    state = await vf.Harness(program, model="m").run({"prompt": "go"})
    assert (state["error"]["error"], state["artifacts"]) == ("InfraError", {"a": "a\n"})
    assert "ended with code 3" in state["error"]["error_chain_repr"]


async def test_an_artifact_may_be_the_last_of_several_files_or_an_item_of_one() -> None:
    line = 'mkdir a b; echo 1 > a/log; echo \\{\\"n\\": 2\\} > b/log; touch -d @0 a/log; echo odd > "[x]"; echo done'
    artifacts = {
        "last": "*/log",
        "item": {"path": "b/log", "format": "json", "key": "n"},
        "literal": "[[]x]",
        "none": {"path": "c/*", "optional": True},
        "no_item": {"path": "b/log", "format": "json", "key": "m", "optional": True},
        "task": {"task": "where"},
    }
    program = {"command": ["sh", "-c", line], "sandbox": OFFLINE, "artifacts": artifacts}
    state = await vf.Harness(program, model="m").run({"prompt": "go", "where": "a/log"})
    assert state["error"] is None
    assert state["artifacts"] == {"last": '{"n": 2}\n', "item": 2, "literal": "odd\n", "task": "1\n"}
    program = {"command": "echo done", "sandbox": OFFLINE, "artifacts": {"log": "*/log"}}
    state = await vf.Harness(program, model="m").run({"prompt": "go"})
    assert r"the artifact 'log' of the program, */log, cannot be read" in state["error"]["error_chain_repr"]


MCP = """
import subprocess
server = subprocess.Popen(json.load(open("mcp.json")), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(number, method, **params):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline()).get("result")
assert ask(1, "initialize", protocolVersion="2025-06-18")["capabilities"] == {"tools": {}}
server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\\n")
print(json.dumps([ask(2, "tools/list")["tools"][0]["inputSchema"]["required"],
    ask(3, "tools/call", name="add", arguments={"a": 1, "b": 2}), ask(4, "tools/call", name="add", arguments={"a": 1})["isError"]]))
"""


async def test_a_command_calls_the_tools_of_its_rollout_by_mcp() -> None:
    """By a server inside that the command starts; ``{"mcp": ...}`` is run to tell the command of it."""
    tell = """echo '["python3", "/tmp/vf_mcp_tools.py", "/tmp/vf_mcp_tools.json"]' > mcp.json"""
    state = await vf.Harness(command(MCP, tools={"mcp": tell}), model="m", toolsets=[add]).run({"prompt": "go"})
    assert state["error"] is None
    required, called, is_error = json.loads(state["completion"][0]["content"])
    assert (required, is_error) == (["a", "b"], True)
    assert called == {"content": [{"type": "text", "text": "3"}], "isError": False}
