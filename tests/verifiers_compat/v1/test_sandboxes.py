"""Programs, tools and users in sandboxes of this machine; real sandboxes, scripted models."""

from __future__ import annotations

import asyncio
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

OFFLINE = {"network_access": False}


def command(program: str, **options: Any) -> dict[str, Any]:
    """Return a program that runs Python code in a sandbox, beside a client of the model."""
    return {"command": ["python3", "agent.py"], "sandbox": OFFLINE, "files": {"agent.py": LIBRARY + program}, **options}


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


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Every sandbox that a test opens is closed."""
    before = set(registry._own)
    yield
    assert set(registry._own) == before


pytestmark = needs_sandbox
