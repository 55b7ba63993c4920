"""`CliAgentEnv` and `HarborEnv` under their documented names, with the documented arguments, hooks and states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.agent_programs import LIBRARY, TALK, needs_sandbox
from tests.verifiers_compat.models import evaluated, roles, rolled_out
from verifiers_compat.envs.experimental import cli_agent_env
from verifiers_compat.envs.experimental.cli_agent_env import AgentError, SandboxTimeouts
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.errors import ConfigurationError

pytestmark = needs_sandbox

ROWS = [{"question": "Say yes.", "answer": "yes"}]


async def test_what_sandbox_mixin_has_works_in_the_sandbox_of_a_program(tmp_path: Path) -> None:
    """§ CliAgentEnv: files, commands, retries, `start_agent` and what scores are given, as published packages call them."""
    (tmp_path / "data.txt").write_text("from here")

    class Checked(vf.CliAgentEnv):
        async def post_sandbox_setup(self, state: vf.State) -> None:
            await super().post_sandbox_setup(state)
            sandbox_id = state["sandbox_id"]
            await self.upload_file(sandbox_id, "/app/data.txt", str(tmp_path / "data.txt"))
            await self.upload_content(
                sandbox_id, LIBRARY + TALK + 'print(open("/app/data.txt").read(), os.environ["MODEL"])', "/app/agent.py"
            )
            made = await self.with_retry(self.sandbox_client.execute_command)(sandbox_id, "mkdir -p /out && echo made", timeout=60)
            state["made"] = made.stdout

        def get_sandbox_resources(self, state: vf.State) -> dict[str, Any]:
            return {**super().get_sandbox_resources(state), "memory_gb": 1}

        async def build_env_vars(self, state: vf.State) -> dict[str, str]:
            env_vars = await super().build_env_vars(state)
            return {**env_vars, "MODEL": env_vars["OPENAI_MODEL"]}

        async def start_agent(self, state: vf.State) -> None:
            state["active"] = list(self.active_sandboxes) == [state["sandbox_id"]]
            await super().start_agent(state)

        async def post_rollout(self, state: vf.State) -> None:
            await super().post_rollout(state)
            job = await self.run_background_job(state, "cp /app/data.txt /out/copy.txt", timeout=60, working_dir="/out")
            state["copied"] = (job.exit_code, await self.read_file(state["sandbox_id"], "/out/copy.txt"))

    async def tested(state: vf.State) -> float:
        left = await state["sandbox_client"].execute_command(state["sandbox_id"], "cat /out/copy.txt")
        return float(left.stdout == "from here")

    env = Checked("python3 agent.py", dataset=ROWS, rubric=vf.Rubric(tested), keep_sandbox_for_scoring=True, max_retries=2, base_delay=0.0)
    assert (env.labels, env.cpu_cores, env.timeouts.read_file, env.keep_sandbox_for_scoring) == ([], 1, 10, True)
    columns = ["made", "agent_stdout", "copied", "active"]
    [row] = await evaluated(env, "one", "yes", state_columns=columns)
    assert [row[name] for name in columns] == ["made\n", "one\nyes\nfrom here m\n", [0, "from here"], True]
    assert (row["reward"], row["metrics"]["sandbox_oom"], row["metrics"]["sandbox_timeout"], sandboxes_in_use()) == (1.0, 0.0, 0.0, [])
    assert {"agent_error": 0.0, "agent_timeout": 0.0, "num_turns": 2.0}.items() <= row["metrics"].items()
    assert (env.active_sandboxes, roles(row["completion"]), row["stop_condition"]) == (
        set(),
        ["assistant", "user", "assistant"],
        "agent_completed",
    )


async def test_a_program_that_ends_well_before_it_asks_is_scored(caplog: pytest.LogCaptureFixture) -> None:
    def printed(state: vf.State) -> float:
        return float(state["agent_stdout"] == "nothing to do\n")

    [row] = await evaluated(vf.CliAgentEnv("echo nothing to do", dataset=ROWS, rubric=vf.Rubric(printed)), "never")
    assert (row["reward"], row["error"], row["completion"], row["stop_condition"]) == (1.0, None, [], "agent_completed")
    assert "before it asked its model anything" in caplog.text


async def test_a_program_that_fails_is_an_agent_error() -> None:
    state = await rolled_out(vf.CliAgentEnv("exit 5", dataset=ROWS), "never")
    assert isinstance(state["error"], AgentError)
    assert isinstance(state["error"], vf.InfraError)
    assert (state["agent_exit_code"], state["trajectory"]) == (5, [])


def test_both_are_where_published_environments_import_them_from() -> None:
    from verifiers_compat.envs import experimental
    from verifiers_compat.envs.experimental import cli_agent_env, harbor_env

    assert vf.CliAgentEnv is cli_agent_env.CliAgentEnv is experimental.CliAgentEnv
    assert vf.HarborEnv is harbor_env.HarborEnv is experimental.HarborEnv


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"docker_image": "acme/tools:1"}, "docker_image='acme/tools:1' needs backend='container'"),
        ({"gpu_count": 1}, "gpu_count must be 0"),
        ({"interception_url": "https://example.com"}, "interception_url must be None"),
        ({"environment_vars": {"OPENAI_API_KEY": "k"}}, "may not have OPENAI_API_KEY"),
    ],
)
def test_what_sandboxes_do_not_offer_is_refused_at_construction(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        vf.CliAgentEnv("agent", dataset=ROWS, backend="bwrap", **arguments)


async def test_hooks_say_what_a_sandbox_is_given() -> None:
    class Small(vf.CliAgentEnv):
        def get_sandbox_resources(self, state: vf.State) -> dict[str, Any]:
            return {**super().get_sandbox_resources(state), "memory_gb": 1}

    given: dict[str, Any] = {"dataset": ROWS, "backend": "bwrap", "memory_gb": 3, "disk_size_gb": 4, "environment_vars": {"NAME": "me"}}
    for cls, memory in ((vf.CliAgentEnv, 3072), (Small, 1024)):
        env = cls("agent", max_turns=7, **given)
        spec = await env.get_sandbox_spec(vf.State(info={}))
        assert (spec.memory_mb, spec.disk_mb, spec.working_dir, spec.image, env.max_turns) == (memory, 4096, "/app", None, 7)
        variables = await env.build_env_vars(vf.State(interception_base_url="http://here/v1", model=""))
        assert variables == {"NAME": "me", "OPENAI_BASE_URL": "http://here/v1", "OPENAI_MODEL": "model"}


def test_each_argument_is_kept_as_what_it_is() -> None:
    """Those of the hosted service become attributes."""
    arguments: dict[str, Any] = {
        **{"interception_port": 1, "interception_url": None, "max_turns": 2, "poll_interval": 0.5, "docker_image": "debian:12"},
        **{"start_command": "tail -f /dev/null", "cpu_cores": 3, "memory_gb": 4, "disk_size_gb": 6, "gpu_count": 0, "team_id": "t"},
        **{"advanced_configs": {}, "timeouts": SandboxTimeouts(read_file=7), "keep_sandbox_for_scoring": True, "strict_image": False},
    }
    retries = {"max_retries": 8, "base_delay": 0.0, "backoff_factor": 9.0, "max_backoff_seconds": 10.0, "jitter": 11.0}
    labels = ["a"]
    env = vf.CliAgentEnv("agent", dataset=ROWS, backend="bwrap", labels=labels, environment_vars={"A": ""}, **arguments, **retries)
    labels.append("b")
    assert {name: getattr(env, name) for name in arguments} == arguments
    assert {name: getattr(env.with_retry, name) for name in retries} == retries
    assert (env.labels, env.backend, env.active_sandboxes, env.run_command) == (["a"], "bwrap", set(), "agent")
    env.get_sandbox_resources(vf.State())["memory_gb"] = 0
    assert env.get_sandbox_resources(vf.State()) == {
        name: arguments[name] for name in ("cpu_cores", "memory_gb", "disk_size_gb", "gpu_count")
    }


@pytest.mark.parametrize(("own", "expected"), [("python:3.12", "python:3.12"), ("debian:12", "debian:12"), (None, "debian:12")])
async def test_the_hook_says_which_image_a_rollout_has(own: str | None, expected: str) -> None:
    class Imaged(vf.CliAgentEnv):
        async def get_docker_image(self, state: vf.State) -> str:
            return await super().get_docker_image(state) if own is None else own

        async def get_sandbox_resources(self, state: vf.State) -> dict[str, Any]:  # type: ignore[override]
            return {"disk_size_gb": 1}

    asked: list[dict[str, Any]] = []

    def spec_of(spec: Any, backend: Any, **given: Any) -> Any:
        asked.append(given)
        return spec

    env = Imaged("agent", dataset=ROWS, backend="bwrap", docker_image="debian:12")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cli_agent_env, "spec_of_arguments", spec_of)
        await env.get_sandbox_spec(vf.State(info={}))
    assert asked == [{"strict_image": False, "disk_size_gb": 1, "docker_image": expected}]
