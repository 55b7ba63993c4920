"""Programs, tools and users in sandboxes of this machine; real sandboxes, scripted models."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.agent_programs import needs_sandbox
from tests.models import InOrder, Mute, Recording, calling
from tests.verifiers_compat.v1.playing import OFFLINE, command, contents
from verifiers_compat.v1 import sandboxes as v1_sandboxes
from verifiers_compat.v1.sandboxes import as_sandbox, upload_package, with_task
from vfgym import sandboxes
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import Sandbox, registry

pytestmark = needs_sandbox


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Every sandbox that a test opens is closed."""
    before = set(registry._own)
    yield
    assert set(registry._own) == before


async def state_of(program: Any, *, task: Any = None, **options: Any) -> Any:
    """Play a rollout of a program, in a sandbox without network unless it says otherwise."""
    return await vf.Harness({"sandbox": OFFLINE, **program}, **{"model": "m", **options}).run({"prompt": "go", **(task or {})})


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
    task = {"question": "2+2", "info": {"word": "now"}, "program": {**own, "artifacts": {"setup": "/tmp/setup"}}}
    client = Recording(["four"])
    state = await state_of(program, task=task, client=client)
    assert (state["error"], state["stop_condition"]) == (None, "command_completed")
    assert client.asked[0]["prompt"][0]["content"] == "2+2 ours now"
    assert state["completion"] == [{"role": "assistant", "content": "four"}]
    ran = state["command"]
    assert (ran["argv"], ran["returncode"], ran["stdout"]) == (["python3", "agent.py", "now"], 0, "printed\n")
    setup = "1 ours\n2\n"
    assert state["artifacts"] == {"answer": {"answer": "four", "folder": ["a.txt"], "setup": setup}, "setup": setup}


async def test_what_a_task_says_of_the_sandbox_wins_over_program_and_harness() -> None:
    program = {
        "command": "pwd",
        "sandbox": {"environment_vars": {"A": "program"}},
        "setup": "echo $A$B > /tmp/a",
        "artifacts": {"a": "/tmp/a"},
    }
    of_harness = {**OFFLINE, "workdir": "/project/here", "environment_vars": {"A": "harness", "B": "harness"}}
    of_task = {"sandbox": {"workdir": "/other", "environment_vars": {"B": "task"}}}
    state = await state_of(program, task=of_task, sandbox=of_harness)
    assert (state["completion"][0]["content"], state["artifacts"]) == ("/other", {"a": "programtask\n"})


async def test_what_is_no_text_is_written_as_json_and_what_sets_up_may_be_made_for_the_rollout() -> None:
    files = {"j": {"task": "info"}, "l": lambda: [None, "x"], "b": lambda: b"\xe2\x82\xac", "n": 0, "e": ""}
    setup = [
        lambda task, sandbox: f"echo {task['info']['n']} {sandbox.is_alive} > s",
        lambda: None,
        lambda: ["sh", "-c", 'echo "$1" >> s', "-", "$A"],
        "task.line",
    ]
    line = "cat j; echo; cat l; echo; cat b; echo; cat n e; echo; cat s; echo null > null"
    artifacts = {"null": {"path": "null", "format": "json"}, "item": {"path": "j", "format": "json", "key": "n"}}
    program = {"command": ["sh", "-c", line], "files": files, "setup": setup, "artifacts": artifacts}
    state = await state_of(program, task={"info": {"n": 0}, "line": "echo line >> s"})
    assert state["error"] is None
    assert state["command"]["stdout"].splitlines() == ['{"n": 0}', '[null, "x"]', "€", "0", "0 True", "$A", "line"]
    assert state["artifacts"] == {"null": None, "item": 0}


def test_what_a_frozen_task_has_filled_in_wins_over_nothing() -> None:
    config = vf.SandboxConfig(cpu_cores=2, packages=["a"])
    both = with_task(config, vf.SandboxConfig(workdir="/b", memory_gb=3).model_dump())
    assert both.model_dump(exclude_defaults=True) == {"cpu_cores": 2, "packages": ["a"], "workdir": "/b", "memory_gb": 3}
    assert with_task(config, None) is with_task(config, {}) is config


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, None), (False, None), (True, {}), ({}, {}), ("program", {"prefer": "program"}), ({"memory_gb": 1}, {"memory_gb": 1})],
)
def test_each_way_to_ask_for_a_sandbox(value: Any, expected: dict[str, Any] | None) -> None:
    found = as_sandbox(value, "x")
    assert (None if found is None else found.model_dump(exclude_unset=True)) == expected


@pytest.mark.parametrize("value", [0, "", [], "yes"])
def test_what_asks_for_no_sandbox_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"the sandbox of the program x must be true, .*, got {re.escape(repr(value))}"):
        as_sandbox(value, "the program x")


async def test_a_package_is_copied_without_what_is_not_of_it(tmp_path: Path) -> None:
    for name in ("a.py", "deep/b.py", ".git/x", "__pycache__/x", "c.pyc", "a.egg-info/x", "outputs/x", "deep/outputs/x", "log.outputs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "nowhere").symlink_to("nothing")
    copied: list[Any] = []

    class Remembers:
        async def upload(self, local: Path, inside: str) -> None:
            copied.append((inside, sorted(str(each.relative_to(local)) for each in local.rglob("*") if each.is_file()), local))

    await upload_package(str(tmp_path), "/there", Remembers(), "it")  # type: ignore[arg-type]
    [(inside, names, staged)] = copied
    assert (inside, names, staged.exists()) == ("/there", ["a.py", "deep/b.py", "log.outputs"], False)
    with pytest.raises(vf.SandboxError, match=r"it cannot be copied into its sandbox: .*no_such"):
        await upload_package(str(tmp_path / "no_such"), "/there", Remembers(), "it")  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, OSError])
async def test_a_sandbox_that_cannot_be_prepared_is_closed(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*args: Any) -> None:
        raise error

    monkeypatch.setattr(v1_sandboxes, "run_setup", failing)
    with pytest.raises(error):
        await v1_sandboxes.open_sandbox(vf.SandboxConfig(**OFFLINE, setup_commands=["true"]), "/no/socket")


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

    program = {"command": ["sh", "-c", "printf ! >> copied; echo done"], "files": {"given": "state.content"}}
    state = await state_of(program, setups=[first, second], rewards=[copied])
    assert (state["reward"], state["error"]) == (1.0, None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"command": ["no-such-agent"]}, "of Harness ended with code 127"),
        ({"command": ["sh", "-c", "echo broken >&2; exit 3"]}, "code 3: broken"),
        ({"command": ["true"]}, "ended without an answer"),
        ({"command": ["sh", "-c", "echo on; exit 3"]}, "code 3: on"),
        ({"setup": "sleep 60", "sandbox": {**OFFLINE, "setup_timeout": 1}}, "the setup command 'sleep 60' took longer than 1"),
        (
            {"artifacts": {"n": {"path": "/etc/hostname", "format": "json"}}},
            "the artifact 'n' of the program, /etc/hostname, cannot be read",
        ),
        ({"command": ["sleep", "60"], "sandbox": {**OFFLINE, "command_timeout": 1}}, "took longer than 1 s"),
        ({"setup": ["echo not there >&2; exit 4"]}, "ended with code 4: not there"),
        ({"sandbox": {**OFFLINE, "setup_commands": ["exit 5"]}}, "ended with code 5: it printed nothing"),
        ({"artifacts": {"log": "*/log"}}, r"the artifact 'log' of the program, */log, cannot be read"),
        ({"files": {"/usr/bin/x": "y"}}, "cannot be put into its sandbox"),
    ],
)
async def test_what_fails_in_the_sandbox_is_the_error_of_its_rollout(change: dict[str, Any], says: str) -> None:
    state = await state_of({"command": ["echo", "hi"], **change})
    assert (state["stop_condition"], says in state["error"]["error_chain_repr"]) == ("has_error", True)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ({"command": ["x"], "sandbox": "yes"}, "true, false, 'program' or a mapping"),
        ({"command": ["x"], "sandbox": "program"}, "for toolsets and users"),
        ({"command": ["x"], "sandbox": {"imagine": "x"}}, "imagine"),
        ({"command": ["x"], "sandbox": {"gpu_count": 1}}, "gpu_count"),
        ({"command": ["x"], "sandbox": {"start_command": "serve"}}, "start_command='serve'"),
        ({"command": ["x"], "sandbox": True, "dirs": {"/a": "/no/such/folder"}}, "/no/such/folder"),
        ({"command": ["x"], "sandbox": True, "artifacts": {"a": {"path": "a", "format": "xml"}}}, "xml"),
        ({"command": ["x"], "sandbox": True, "artifacts": {"a": {"optional": True}}}, "must have a path"),
        ({"command": ["x"], "sandbox": True, "artifacts": {"a": {"path": "a", "key": "b"}}}, "needs format='json'"),
        ({"fn": lambda state: None, "sandbox": True}, "module:name"),
        ({"fn": "json:dumps", "sandbox": True}, "pyproject.toml"),
        ({"fn": "json:dmps", "sandbox": True}, "Did you mean `dumps`"),
        ({"files": {"a": "b"}}, "need a sandbox"),
    ],
)
def test_what_cannot_be_had_is_refused_at_construction(program: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        vf.Harness(program)


async def test_toolsets_users_and_tasks_that_ask_for_too_much_are_refused() -> None:
    with pytest.raises(ValueError, match="'program'"):
        vf.Toolset([len], sandbox="other")
    with pytest.raises(ValueError, match="asks for sandbox"):
        vf.User(lambda sandbox: None)
    for own in ({"files": {"agent.py": ""}}, {"env": {"A": "2"}}):
        with pytest.raises(ValueError, match="both the harness and the task"):
            await state_of(command("", env={"A": "1"}), task={"program": own})


@pytest.mark.skipif(sandboxes.backends()["container"].probe().works, reason="there is a container engine here")
async def test_an_image_needs_an_engine() -> None:
    """Of a harness that is an error at once; of a task, its own."""
    for sandbox, says in (({"image": "acme/tools:1"}, "container"), ({"image": "ubuntu:24.04", "strict_image": True}, "strict_image")):
        with pytest.raises(ValueError, match=says):
            vf.Harness({"command": ["x"], "sandbox": True}, sandbox=sandbox)
    state = await state_of({"command": ["echo", "hi"]}, task={"sandbox": {"image": "acme/tools:1"}})
    assert (state["error"]["error"], "needs backend='container'" in state["error"]["error_chain_repr"]) == ("SandboxError", True)
    assert (await state_of({"command": ["echo", "hi"]}, task={"sandbox": {"image": "ubuntu:24.04"}}))["error"] is None


async def test_a_rollout_that_is_cancelled_leaves_nothing() -> None:
    model = Mute()
    running = asyncio.ensure_future(state_of(command('print(chat([user("question")])["content"])'), client=model))
    await model.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def bash(command: str, sandbox: Sandbox) -> str:
    """Run a command."""
    return (await sandbox.exec(command)).stdout


async def test_the_base_loop_has_a_sandbox_that_its_tools_use() -> None:
    """The model does not see the argument; files are there, artifacts are kept, and a user may look, too."""

    async def user(state: vf.State, sandbox: Sandbox) -> str | None:
        return None if state["num_model_requests"] > 2 else f"I see {(await sandbox.read_file('b')).decode()}"

    client = Recording([calling(("bash", {"command": "cp a b; cat b"})), "look", "done"])
    options = {"toolsets": [vf.Toolset([bash], sandbox="program")], "user": vf.User(user, sandbox={"prefer": "program"})}
    state = await state_of({"base": True, "files": {"a": "text"}, "artifacts": {"b": "b"}}, client=client, **options)
    assert [message["content"] for message in state["completion"]] == [None, "text", "look", "I see text", "done"]
    assert list(client.asked[0]["tools"][0].parameters["properties"]) == ["command"]
    assert (state["artifacts"], state["stop_condition"]) == ({"b": "text"}, "no_tools")


@pytest.mark.parametrize(("scope", "seen"), [("rollout", ["0\n", "0\n"]), ("group", ["0\n", "1\n"]), ("global", ["1\n", "2\n"])])
async def test_the_sandbox_of_a_toolset_lives_as_long_as_it_says(scope: Any, seen: list[str]) -> None:
    """A rollout alone, then a group of two: how many files the rollouts of the group find in their sandbox."""

    async def count(sandbox: Sandbox, state: vf.State) -> str:
        """Count."""
        return (await sandbox.exec(f"ls | wc -l; touch {state['trajectory_id']}")).stdout

    client = InOrder(*[calling(("count", {})), "done"] * 3)
    harness = vf.Harness(client=client, model="m", toolsets=[vf.Toolset([count], scope=scope, sandbox=OFFLINE)])
    await harness.run({"prompt": "go"})
    tasks = [vf.Task(prompt="go").freeze()] * 2
    states = [vf.State.for_task(task) for task in tasks]
    for task, state in zip(tasks, states, strict=True):
        state["runtime"]["group_key"] = "g"
        await harness.run(task, state)
    await harness.cleanup_group(tasks, states)
    await harness.teardown()
    assert [contents(state)[0] for state in states] == seen


async def test_a_child_borrows_the_sandbox_of_its_parent_and_its_files_may_name_its_model() -> None:
    """As configurations of agents do (see `OpenCode`)."""

    def address(state: vf.State) -> str:
        return state.live("configure").program_variables()["OPENAI_BASE_URL"]

    async def delegate(state: vf.State) -> str:
        """Ask a child."""
        program = {"command": ["cat", "given", "address"], "sandbox": True, "files": {"address": address}}
        child = await vf.Harness(program, model="m").run({"prompt": "read"}, state.for_task({"prompt": "read"}, borrow="sandbox"))
        return str(child["completion"][0]["content"])

    client = InOrder(calling(("delegate", {})), "done")
    state = await state_of({"base": True, "files": {"given": "the parent's "}}, client=client, toolsets=[delegate])
    assert contents(state)[0].startswith("the parent's http://127.0.0.1:")


async def test_an_artifact_that_a_failed_program_did_not_leave_hides_no_error() -> None:
    """Its place is an item of the state that was never written; those that are there are kept."""
    state = await state_of({"command": "sh -c 'echo a > a; exit 3'", "artifacts": {"lost": "state.place", "a": "a"}})
    assert (state["error"]["error"], state["artifacts"]) == ("InfraError", {"a": "a\n"})
    assert "ended with code 3" in state["error"]["error_chain_repr"]


async def test_an_artifact_may_be_the_last_of_several_files_or_an_item_of_one() -> None:
    line = 'mkdir a b; echo 1 > a/log; echo \\{\\"n\\": 2\\} > b/log; touch -d @0 a/log; echo odd > "[x]"; echo done'
    artifacts = {
        **{"last": "*/log", "item": {"path": "b/log", "format": "json", "key": "n"}, "literal": "[[]x]", "task": {"task": "where"}},
        **{"none": {"path": "c/*", "optional": True}, "no_item": {"path": "b/log", "format": "json", "key": "m", "optional": True}},
    }
    state = await state_of({"command": ["sh", "-c", line], "artifacts": artifacts}, task={"where": "a/log"})
    assert state["error"] is None
    assert state["artifacts"] == {"last": '{"n": 2}\n', "item": 2, "literal": "odd\n", "task": "1\n"}
