"""`ComposableEnv` as published research environments use it: two packages in their manner, and what each part of a `Harness` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent_programs import needs_sandbox
from tests.verifiers_compat.models import evaluated, rolled_out
from verifiers_compat.alias import install, uninstall
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.errors import ConfigurationError

pytestmark = needs_sandbox

PACKAGES = Path(__file__).parent / "packages"
ROWS = [{"info": {"n": number}, "answer": str(number)} for number in range(3)]


@pytest.fixture
def vf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package as published environments import it, with the packages of this folder."""
    for name in ("repo_fixes", "note_skills"):
        monkeypatch.syspath_prepend(PACKAGES / name)
    install()
    import verifiers

    yield verifiers
    uninstall()


async def test_repairs_are_scored_in_the_sandbox_that_the_program_left(vf: Any) -> None:
    env = vf.load_environment("repo-fixes")
    assert env.get_dataset()[0]["prompt"] == [{"role": "user", "content": "Mend add.py of the repository in /testbed."}]
    [right, wrong] = await evaluated(
        env, "s/-/+/", "done", "s/nothing/else/", "done", max_concurrent=1, state_columns=["agent_logs", "test_output", "test_timeout"]
    )
    assert (right["reward"], right["test_output"], right["agent_logs"], right["error"]) == (1.0, "PASSED\n", "asked 2\n", None)
    assert (wrong["reward"], wrong["test_output"], wrong["test_timeout"]) == (0.0, "FAILED\n", 300)
    expected = {"agent_turns": 2.0, "agent_finished": 1.0, "solved": 1.0, "total_tool_calls": 0.0, "sed_calls": 0.0, "sandbox_oom": 0.0}
    assert expected.items() <= right["metrics"].items()
    assert right["completion"][0]["content"] == "s/-/+/"
    assert [message["role"] for message in right["prompt"]] == ["system", "user"]
    assert (sandboxes_in_use(), env.taskset.name, len(env.taskset)) == ([], "repo-fixes", 2)


async def test_a_task_set_is_validated_and_debugged_with_its_gold_patches(vf: Any) -> None:
    import repo_fixes

    taskset = repo_fixes.FixTaskSet(filter_fn="lambda row: row['info']['file'] == 'neg.py'")
    [row] = await taskset.validate()
    assert (row["index"], row["valid"], row["reason"], row["repo"], row["test_output_tail"]) == (0, True, "pass", "calc", "PASSED\n")
    state = await rolled_out(vf.SWEDebugEnv(taskset), "never")
    assert (state["score"], state["test_output"]) == (1.0, "PASSED\n")
    assert sandboxes_in_use() == []


async def test_a_program_gets_skills_and_its_sub_agents_are_left_out(vf: Any) -> None:
    env = vf.load_environment("note-skills")
    [row, _] = await evaluated(env, "one", "rain again", "two", "snow", max_concurrent=1, state_columns=["trajectory"])
    assert (row["reward"], row["error"], len(row["trajectory"])) == (1.0, None, 1)
    assert row["trajectory"][0]["prompt"][0]["content"] == "Write a note on rain. Rhyme it. Plan: one"
    assert {"depths": 2.0, "words": 2.0, "missing": 0.0, "num_turns": 1.0}.items() <= row["metrics"].items()


def test_a_composed_environment_is_stepped(vf: Any) -> None:
    env = vf.load_environment("repo-fixes", filter_fn="lambda row: row['info']['file'] == 'add.py'")
    observation, _ = env.reset(seed=0)
    assert observation[0]["content"] == "You answer with a sed expression."
    env.step("s/-/+/")
    *_, reward, terminated, _, info = env.step("done")
    assert (reward, terminated, info["metrics"]["solved"]) == (1.0, True, 1.0)


def compose(vf: Any, taskset: Any = None, given: Any = None, **parts: Any) -> Any:
    """Return an environment of the parts of a harness whose program asks nothing."""
    from verifiers.envs.experimental.composable import ComposableEnv, Harness, TaskSet

    class Plain(TaskSet):
        def get_instruction(self, info: dict[str, Any]) -> str:
            return f"Count to {info['n']}."

        def get_rubric(self) -> Any:
            return vf.Rubric(funcs=[lambda state: 1.0])

    return ComposableEnv(
        (taskset or Plain)(ROWS),
        Harness(**{"run_command": "cat /task/instruction.md; cat /task/system_prompt.txt; env", **parts}),
        memory_gb=1,
        **(given or {}),
    )


async def test_the_program_sees_its_task_and_its_variables_and_not_those_of_the_installation(vf: Any) -> None:
    given = {"install_env": {"TOKEN": "secret"}, "environment_vars": {"ONE": "1"}}
    parts = {"install_script": 'test "$TOKEN" = secret', "environment_vars": lambda state: {"TWO": "2"}, "system_prompt": "Be brief."}
    state = await rolled_out(compose(vf, given=given, **parts), "never", row=2)
    said = state["agent_stdout"]
    assert state["error"] is None
    assert said.startswith("Count to 2.Be brief.")
    for line in ("ONE=1", "TWO=2", "AGENT_WORKDIR=/app", "AGENT_INSTRUCTION_PATH=/task/instruction.md", "OPENAI_MODEL=m"):
        assert f"{line}\n" in said
    assert "TOKEN" not in said


@pytest.mark.parametrize(
    ("parts", "kind", "said"),
    [
        (
            {"install_script": "echo no network; exit 3"},
            "SandboxError",
            "the install_script of the harness ended with exit code 3: no network",
        ),
        ({"post_install_script": "exit 4"}, "SandboxError", "the post_install_script of the harness ended with exit code 4"),
        ({"install_script": "sleep 60", "install_timeout": 0.2}, "SandboxError", "took longer than 0.2 s"),
        (
            {"environment_vars": lambda state: {"OPENAI_MODEL": "x"}},
            "ConfigurationError",
            "Harness.environment_vars may not have OPENAI_MODEL",
        ),
        ({"run_command": "exit 5", "log_path": "/no", "metrics_path": "/no"}, "AgentError", "exit code 5"),
    ],
)
async def test_what_fails_is_the_error_of_its_rollout(vf: Any, parts: dict[str, Any], kind: str, said: str) -> None:
    state = await rolled_out(compose(vf, **parts), "never")
    assert (type(state["error"]).__name__, said in str(state["error"])) == (kind, True)
    assert sandboxes_in_use() == []


async def test_a_task_that_cannot_be_set_up_is_the_error_of_its_rollout(vf: Any) -> None:
    env = compose(vf)

    async def setup(state: Any) -> None:
        raise OSError("no disk")

    env.taskset.setup = setup
    state = await rolled_out(env, "never")
    assert (type(state["error"]).__name__, "the task could not be set up: OSError('no disk')" in str(state["error"])) == (
        "SandboxSetupError",
        True,
    )


@pytest.mark.parametrize(
    ("written", "options", "metrics"),
    [
        ('{"a": 1, "b": true, "c": "x", "d": null, "e": {"f": 2}, "g": NaN}', {}, {"a": 1.0, "b": 1.0}),
        ('{"a": 1, "b": 2}', {"metrics_prefix": "p_", "metrics_keys": ["a", "z"]}, {"p_a": 1.0}),
        ('{"e": {"f": 2}}', {"metrics_key": "e"}, {"f": 2.0}),
        ('{"a": 1', {}, {}),
        ("", {}, {}),
        ('{"a": 0, "b": -1e400, "c": -2.5}', {"metrics_prefix": "p_"}, {"p_a": 0.0, "p_c": -2.5}),
        ('{"a": 1}', {"metrics_keys": []}, {}),
        ('{"e": 3}', {"metrics_key": "e"}, {}),
        ('{"a": 1}', {"metrics_key": "e"}, {}),
        ("[1]", {"metrics_key": "e"}, {}),
    ],
)
async def test_numbers_that_a_program_wrote_are_metrics(vf: Any, written: str, options: dict[str, Any], metrics: dict[str, float]) -> None:
    env = compose(vf, run_command="true", metrics_path="/tmp/m.json", post_install_uploads={"/tmp/m.json": written}, **options)
    state = await rolled_out(env, "never")
    assert state["harness_metrics"] == metrics


async def test_parts_of_harness_and_task_set_go_together(vf: Any, tmp_path: Path) -> None:
    """Variables of the task set win over those of the harness, folders of the harness over those of the task set."""
    from verifiers.envs.experimental.composable import SandboxSpec, TaskSet

    for name in ("one", "two", "skills", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)

    class Whole(TaskSet):
        def get_instruction(self, info: dict[str, Any]) -> str:
            return ""

        def get_rubric(self) -> Any:
            return vf.Rubric(funcs=[lambda state: 1.0])

        def get_workdir(self, info: dict[str, Any]) -> str:
            return f"/tmp/{info['n']}"

        def get_env_vars(self) -> dict[str, str]:
            return {"A": "task", "B": "task", "AGENT_INSTRUCTION_PATH": "nowhere"}

        def get_upload_dirs(self) -> dict[str, Any]:
            return {name: tmp_path / name for name in ("one", "two")}

        def get_skills_dir(self) -> Any:
            return tmp_path / "skills"

    given = {"environment_vars": {"A": "env", "C": "env", "D": "env"}, "timeout_seconds": 90}
    env = compose(
        vf,
        Whole,
        given,
        environment_vars=lambda state: {"A": "harness", "C": "harness", "AGENT_WORKDIR": "nowhere"},
        get_upload_dirs=lambda: {"two": tmp_path / "mine"},
        upload_dir_mapping={"two": "/tmp/two", "one": "/tmp/one", "none": "/tmp/none"},
        skills_path="/tmp/skills",
        system_prompt="",
        system_prompt_path="/tmp/system",
        run_command="pwd; echo $A $B $C $D $AGENT_WORKDIR $AGENT_INSTRUCTION_PATH; cd /tmp; cat {one,two,skills}/file system; ls none",
        log_path="/tmp/one/log",
        post_install_uploads={"/tmp/one/log": "", "/tmp/x": "more"},
        post_install_script="test -f /tmp/one/log && test -f /tmp/x",
        sandbox_spec=SandboxSpec(timeout_minutes=0),
    )
    state = await rolled_out(env, "never", row=1)
    where, variables, files = state["agent_stdout"].splitlines()
    assert (where, variables) == ("/tmp/1", "task task harness env /tmp/1 /task/instruction.md")
    assert files == "onemineskills"
    assert (state["agent_logs"], state["test_timeout"]) == ("", 60 * env.compute_sandbox_timeout_minutes())


async def test_an_error_of_the_library_in_the_setup_of_a_task_stays_itself(vf: Any) -> None:
    env = compose(vf)

    def setup(state: Any) -> None:
        raise vf.ToolError("of the task")

    env.taskset.setup = setup
    state = await rolled_out(env, "never")
    assert (type(state["error"]).__name__, str(state["error"])) == ("ToolError", "of the task")


def test_variables_of_a_task_set_may_not_lead_elsewhere(vf: Any) -> None:
    env = compose(vf)
    env.taskset.get_env_vars = lambda: {"OPENAI_BASE_URL": "x", "ANTHROPIC_BASE_URL": "y"}
    with pytest.raises(ConfigurationError, match=r"TaskSet\.get_env_vars\(\) may not have ANTHROPIC_BASE_URL: it leads the program"):
        env._variables_of_parts(vf.State(input={"info": {"n": 0}}))
