"""A program plays an environment: its requests are the observations, the actions its answers, and it harms nobody whatever it does."""

from __future__ import annotations

import pickle
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import vfgym
from tests.agent_programs import TALK, ProgramEnv, needs_sandbox, running
from tests.models import InOrder
from vfgym.envs.cli_agent import CliAgentEnv
from vfgym.errors import AgentError, ConfigurationError, EpisodeNotPicklable, ModelError
from vfgym.interception import open_endpoint
from vfgym.messages import AssistantMessage, ToolCall, UserMessage
from vfgym.sandboxes import SandboxSpec
from vfgym.state import State
from vfgym.testing import ScriptedClient

pytestmark = needs_sandbox

CALLS = """
tools = [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}}]
messages = [user(read_task())]
answer = chat(messages, tools=tools)
messages += [answer, {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "a cat"}]
print(chat(messages)["content"])
"""
CALL = AssistantMessage(None, tool_calls=[ToolCall("c1", "look", "{}")])


def right(completion: Any, answer: str) -> float:
    return float(answer in completion[-1].content)


async def roll_out(env: CliAgentEnv, *answers: Any) -> State:
    return await env.rollout(env.tasks.input(0), ScriptedClient(answers), "m")


def comparable(state: State) -> dict[str, Any]:
    """Return what must be the same however an episode was played."""
    names = ("prompt", "raw_prompt", "completion", "error", "stop_condition", "is_truncated", "agent_exit_code", "agent_stdout")
    turns = [(list(step["prompt"]), step["completion"]) for step in state["trajectory"]]
    return {**{name: state.get(name) for name in names}, "turns": turns, "tools": [tool.name for tool in state["tool_defs"]]}


def test_each_request_is_an_observation_with_its_tools_and_the_action_is_its_answer() -> None:
    env = ProgramEnv(CALLS, rubric=vfgym.Rubric(right))
    observation, info = env.reset(seed=0)
    assert (observation, [tool["function"]["name"] for tool in info["tools"]]) == ([UserMessage("Say yes.")], ["look"])
    observation, reward, terminated, truncated, info = env.step(CALL)
    assert [message["role"] for message in observation] == ["user", "assistant", "tool"]
    assert (info["tools"], reward, terminated, truncated) == ([], 0.0, False, False)
    observation, reward, terminated, truncated, info = env.step("yes")
    assert (observation[-1], reward, terminated, truncated) == (AssistantMessage("yes"), 1.0, True, False)
    assert info["stop_condition"] == "agent_completed"
    state = env.episode.state
    assert (state["agent_exit_code"], state["agent_stdout"], state["agent_stderr"]) == (0, "yes\n", "")
    assert pickle.loads(pickle.dumps(dict(state)))["agent_exit_code"] == 0  # nothing that lives is left in it


@pytest.mark.parametrize("protocol", ["chat", "chat_stream", "anthropic_stream", "responses"])
async def test_every_protocol_gives_the_same_states_stepped_and_rolled_out(protocol: str) -> None:
    env = ProgramEnv(TALK.replace("chat(", f"{protocol}("))
    await env.areset(seed=0)
    await env.astep("one")
    *_, info = await env.astep("yes")
    stepped, rolled_out = env.episode.state, await roll_out(env, "one", "yes")
    assert comparable(stepped) == comparable(rolled_out)
    assert (stepped["agent_stdout"], info["stop_condition"]) == ("one\nyes\n", "agent_completed")
    assert stepped["completion"] == [AssistantMessage("one"), UserMessage("go on"), AssistantMessage("yes")]


def test_requests_at_once_are_queued_and_conversations_are_kept_apart() -> None:
    program = """
answers = {}
def ask(number):
    answers[number] = chat([user(str(number))])["content"]
first = chat([user("first")])
threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
chat([user("first"), first, user("last")])
print(sorted(answers.items()))
"""
    env = ProgramEnv(program)
    observation, _ = env.reset(seed=0)
    for _ in range(4):
        observation, *_ = env.step(f"answer to {observation[-1].content}")
    *_, terminated, _, _ = env.step("bye")
    state = env.episode.state
    assert terminated
    assert state["agent_stdout"] == f"{[(number, f'answer to {number}') for number in range(3)]}\n"
    assert state["prompt"] == [UserMessage("first")]
    assert [message.content for message in state["completion"]] == ["answer to first", "last", "bye"]
    assert len(state["trajectory"]) == 5


async def test_many_episodes_at_once_keep_to_themselves() -> None:
    rows = [{"question": f"Say {number}.", "answer": str(number)} for number in range(4)]
    env = ProgramEnv(rubric=vfgym.Rubric(right), dataset=rows)
    results = await vfgym.aevaluate(env, lambda observation, info: observation[0].content[4:-1], progress=False)
    assert [(row["reward"], row["error"]) for row in results["outputs"]] == [(1.0, None)] * 4


@pytest.mark.parametrize(
    ("command", "exit_code", "said"),
    [
        ("no-such-agent --fix", 127, "exit code 127 before it asked its model anything"),
        ("echo broken >&2; exit 3", 3, "exit code 3 before it asked its model anything.*broken"),
    ],
)
async def test_a_program_that_fails_without_a_question_is_an_error_and_no_model_is_asked(command: str, exit_code: int, said: str) -> None:
    env = CliAgentEnv(command, dataset=[{"question": "?"}])
    with pytest.raises(AgentError, match=said):
        await env.areset(seed=0)
    client = ScriptedClient(["never"])
    state = await env.rollout(env.tasks.input(0), client, "m")
    assert (client.calls, state["agent_exit_code"], state["stop_condition"]) == (0, exit_code, "has_error")
    assert isinstance(state["error"], AgentError)


def test_a_program_that_ends_well_without_a_question_is_scored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    env = ProgramEnv("print('nothing to do')", rubric=vfgym.Rubric(lambda state: float("nothing" in state["agent_stdout"])))
    env.reset(seed=0)
    *_, reward, terminated, _, info = env.step("nobody asked")
    assert (reward, terminated, info["stop_condition"], info["metrics"]["agent_error"]) == (1.0, True, "agent_completed", 0.0)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "exit code 0 before it asked its model anything" in caplog.text
    assert "nothing to do" in caplog.text


async def test_a_program_that_fails_later_ends_its_episode_with_an_error() -> None:
    env = ProgramEnv(TALK + "sys.exit('out of luck')")
    env.reset(seed=0)
    env.step("one")
    *_, terminated, _, info = env.step("two")
    assert terminated
    assert "exit code 1: out of luck" in info["error"]
    assert (info["metrics"]["agent_error"], info["metrics"]["agent_timeout"]) == (1.0, 0.0)


async def test_a_limit_ends_the_program_and_all_that_it_started() -> None:
    started = "import subprocess; subprocess.Popen(['sh', '-c', 'sleep 600; : vfgym-agent-test'], start_new_session=True)\n"
    env = ProgramEnv(started + "print('begun', flush=True)\n" + TALK, max_turns=1)
    state = await roll_out(env, "one")
    assert (state["stop_condition"], state["agent_exit_code"], state["agent_stdout"]) == ("max_turns_reached", None, "begun\n")
    assert running("vfgym-agent-test") == []


async def test_who_asks_after_the_end_of_the_episode_is_refused() -> None:
    state = await roll_out(ProgramEnv(), "one", "two")
    other = await open_endpoint(InOrder("never").get_response)
    url = other.config("chat", "m")["base_url"].replace(other.key, state["interception_base_url"].split("/")[-2])
    async with aiohttp.ClientSession() as session, session.post(f"{url}/chat/completions", json={"messages": []}) as response:
        assert (response.status, (await response.json())["error"]["message"]) == (404, "there is no such rollout, or it is over")
    await other.close()


async def test_the_time_of_a_program_that_never_asks_runs_out() -> None:
    env = ProgramEnv("time.sleep(600)", run_command="python3 agent.py vfgym-agent-sleeps", timeout_seconds=0.5)
    await env.areset(seed=0)
    *_, terminated, truncated, info = await env.astep("nobody asked")
    assert (terminated, truncated, info["stop_condition"]) == (False, True, "timeout_reached")
    assert (info["metrics"]["agent_timeout"], running("vfgym-agent-sleeps")) == (1.0, [])


async def test_a_model_that_fails_ends_the_episode_and_the_program() -> None:
    env = ProgramEnv(run_command="python3 agent.py vfgym-agent-fails")
    state = await env.rollout(env.tasks.input(0), InOrder("one", ModelError("gone")), "m")
    assert (state["stop_condition"], len(state["trajectory"])) == ("has_error", 1)
    assert (repr(state["error"]), running("vfgym-agent-fails")) == ("ModelError('gone')", [])


async def test_a_program_reads_what_it_may_and_reaches_nothing_but_its_model(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "notes.txt").write_text("read me")
    (tmp_path / "secret.txt").write_text("not me")
    with socket.create_server(("127.0.0.1", 0)) as server:
        program = f"""
import socket
def attempt(func):
    try:
        return func()
    except OSError as error:
        return type(error).__name__
found = [
    attempt(lambda: open({str(tmp_path / "open" / "notes.txt")!r}).read()),
    attempt(lambda: open({str(tmp_path / "open" / "notes.txt")!r}, "w").write("mine")),
    attempt(lambda: open({str(tmp_path / "secret.txt")!r}).read()),
    attempt(lambda: socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 2)),
]
chat([user(json.dumps(found))])
"""
        env = ProgramEnv(program, readable_paths=[str(tmp_path / "open")])
        observation, _ = await env.areset(seed=0)
        await env.aclose()
    assert observation == [UserMessage('["read me", "OSError", "FileNotFoundError", "ConnectionRefusedError"]')]
    assert (tmp_path / "open" / "notes.txt").read_text() == "read me"


async def test_the_generation_parameters_of_the_rollout_win_over_those_of_the_program() -> None:
    env = ProgramEnv('chat([user("?")], temperature=0.1, max_tokens=7)')
    client = InOrder("yes")
    await env.rollout(env.tasks.input(0), client, "m", {"temperature": 1.0})
    assert (client.asked[0]["sampling_args"], client.asked[0]["model"]) == ({"temperature": 1.0, "max_tokens": 7}, "m")
    agent = InOrder("yes")
    await vfgym.aevaluate(env, vfgym.ModelAgent(agent, "m", {"temperature": 1.0}), progress=False)
    assert agent.asked[0]["sampling_args"] == {"temperature": 1.0, "max_tokens": 7}


async def test_hooks_prepare_the_sandbox_and_look_at_it_at_the_end() -> None:
    class Writing(ProgramEnv):
        async def build_env_vars(self, state: Any) -> dict[str, str]:
            return {**await super().build_env_vars(state), "NAME": state["answer"]}

        async def post_rollout(self, state: Any) -> None:
            state["written"] = (await state["sandbox"].read_file("out.txt")).decode()

    program = 'open("out.txt", "w").write(os.environ["NAME"] + os.environ["MORE"] + chat([user("?")])["content"])'
    state = await roll_out(Writing(program, environment_vars={"MORE": ", "}), "sir")
    assert (state["written"], state["error"]) == ("yes, sir", None)
    with pytest.raises(FileNotFoundError):
        await roll_out(Writing("chat([user('?')])"), "sir")


async def test_files_go_in_before_the_program_starts_and_are_kept_when_it_has_ended(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in.txt").write_text("42")
    program = 'open("out.txt", "w").write(open("inside/in.txt").read() + chat([user("?")])["content"])'
    no_files = '\nos.mkfifo("pipe")\nos.mkdir("folder")\nos.symlink("/dev/zero", "endless")'
    kept = ["out.txt", "not-there.txt", "pipe", "folder", "endless"]
    env = ProgramEnv(program + no_files, uploads={"inside": tmp_path / "data"}, keep_files=kept)
    assert (await roll_out(env, " it is"))["agent_files"] == {"out.txt": "42 it is"}


async def test_what_a_program_prints_is_bounded() -> None:
    state = await roll_out(ProgramEnv(TALK + "sys.stdout.write('x' * 5_000_000)"), "one", "two")
    assert (state["stop_condition"], len(state["agent_stdout"])) == ("agent_completed", 2**20)


async def test_reward_functions_find_the_sandbox_where_it_is_kept_for_them() -> None:
    kept: list[Any] = []

    async def listed(state: State) -> float:
        kept.append(state["sandbox"])
        return float("agent.py" in (await state["sandbox"].exec("ls")).stdout)

    env = ProgramEnv(rubric=vfgym.Rubric(listed), keep_sandbox_for_scoring=True)
    results = await vfgym.aevaluate(env, lambda observation, info: "yes", progress=False)
    assert (results["metadata"]["avg_reward"], [sandbox.is_alive for sandbox in kept]) == (1.0, [False])


def test_a_running_program_is_not_copied() -> None:
    env = ProgramEnv()
    env.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable):
        env.snapshot()
    env.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"run_command": " "}, "run_command must be a line for a shell"),
        ({"run_command": ["agent"]}, "run_command must be a line for a shell"),
        ({"run_command": "a", "environment_vars": {"OPENAI_BASE_URL": "x"}}, "may not have OPENAI_BASE_URL"),
        ({"run_command": "a", "readable_paths": ["/no/such/folder"]}, "there is no /no/such/folder"),
        ({"run_command": "a", "uploads": {"a": "/no/such/file"}}, "there is no /no/such/file"),
        ({"run_command": "a", "keep_files": "out.txt"}, "must be a list of paths"),
        ({"run_command": "a", "backend": "bwarp"}, "Did you mean `bwrap`"),
        ({"run_command": "a", "backend": "unsafe", "sandbox": SandboxSpec(disk_mb=9)}, "unsafe can't keep disk_mb"),
    ],
)
def test_wrong_arguments_are_refused_at_construction(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        CliAgentEnv(**{"dataset": [{"question": "?"}], **arguments})
