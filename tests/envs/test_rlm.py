"""`RLMEnv`: a root model works on a context with code, and asks models from inside it, each of which is a model call of the episode."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.agent_programs import needs_sandbox
from tests.models import InOrder, answer, calling
from vfgym import Client, Response
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.errors import ConfigurationError, EpisodeNotPicklable, ModelError, OverlongPromptError
from vfgym.messages import Message

pytestmark = needs_sandbox

ROWS = [{"question": "How long?", "answer": "6", "info": {"context": "abcdef"}}]
ADD_UP = """
said = llm_batch([f"count {part}" for part in (context[:2], context[2:])])
print(said)
answer["content"] = str(sum(map(int, said)))
answer["ready"] = True
"""


def code(text: str, language: str = "python") -> Any:
    return calling((f"call_{language}_repl", {"code": text}))


def scripted(*answers: Any) -> InOrder:
    """Return a model that answers in the order of its calls: with texts, or messages that call tools."""
    return InOrder(*({"content": None, "tool_calls": each.tool_calls} if isinstance(each, Message) else each for each in answers))


def shown(env: Any, text: str, language: str = "python") -> str:
    """Return what the root model reads of code."""
    return str(env.step(code(text, language)).observation[-1]["content"])


def told(step: Any) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in step["prompt"]]


TASK = {"prompt": [{"role": "user", "content": "How long?"}], "answer": "6", "info": {"context": "abcdef"}, "example_id": 0}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    yield
    assert sandboxes_in_use() == []


def test_each_question_from_inside_is_an_observation_and_its_answer_an_action() -> None:
    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS)
    observation, info = env.reset(seed=0)
    assert [tool["function"]["name"] for tool in info["tools"]] == ["call_python_repl"]
    assert "abcdef" not in observation[-1]["content"]
    assert observation[-1]["content"].endswith("How long?")
    asked = env.step(code(ADD_UP))
    assert ([message["content"] for message in asked.observation], asked.info["tools"]) == (["count ab"], [])
    asked = env.step("2")
    assert [message["content"] for message in asked.observation] == ["count cdef"]
    observation, _, terminated, _, info = env.step("4")
    assert terminated
    assert (observation[-1]["content"], info["stop_condition"]) == ("['2', '4']", "answer_ready")
    metrics = info["metrics"]
    counted = ("sub_llm_call_count", "sub_llm_total_turns", "sub_llm_batch_count", "sub_llm_max_batch_size", "root_llm_turns")
    assert [metrics[name] for name in counted] == [2, 2, 1, 2, 1]
    assert metrics["repl_call_count"] == metrics["llm_batch_root_calls"] == metrics["root_tool_call_count"] == 1
    state = env.episode.state
    assert (state["final_answer"], [message["content"] for message in state["raw_prompt"]]) == ("6", ["How long?"])
    assert len(state["trajectory"]) == 1
    env.close()


@pytest.mark.parametrize("keeps", [False, True])
async def test_stepped_and_rolled_out_episodes_have_the_same_states(keeps: bool) -> None:
    """With the same answers in the order of the questions; turns of sub-calls are in the trajectory if that is asked for."""
    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS, include_sub_llm_in_trajectory=keeps)
    answers = [code("print(len(context))"), code(ADD_UP), "2", "4"]
    env.reset(seed=0)
    for each in answers:
        env.step(each)
    stepped, rolled = env.episode.state, await env.rollout(TASK, scripted(*answers), "m")
    assert rolled["stop_condition"] == stepped["stop_condition"] == "answer_ready"
    assert rolled["final_answer"] == stepped["final_answer"] == "6"
    for name in ("prompt", "completion"):
        assert [dict(message) for message in rolled[name]] == [dict(message) for message in stepped[name]]
    assert [told(step) for step in rolled["trajectory"]] == [told(step) for step in stepped["trajectory"]]
    kept = [step["extras"].get("request") for step in rolled["trajectory"]]
    assert kept == ([None, None, 0, 1] if keeps else [None, None])
    env.close()


async def test_bash_has_the_context_as_a_file_and_keeps_what_commands_set() -> None:
    env = vfgym.RLMEnv(dataset=ROWS)
    state = await env.rollout(
        TASK,
        scripted(
            code("n=$(wc -c < context.txt); mkdir -p a; cd a; double() { echo $((2 * $1)); }; echo err >&2", "bash"),
            code("pwd; double $n; false", "bash"),
            code("export ANSWER_CONTENT=$(llm_batch 'one \"quoted\"' two) ANSWER_READY=1", "bash"),
            "A",
            "B",
        ),
        "m",
    )
    read = [message["content"] for message in state["completion"] if message["role"] == "tool"]
    assert (read, state["stop_condition"]) == (["err", "/workspace/a\n12", "(no output)"], "answer_ready")
    assert state["final_answer"] == '["A", "B"]'


async def test_root_tools_are_called_from_inside_and_say_what_is_wrong() -> None:
    def scale(number: int, by: int = 2) -> dict[str, int]:
        """Scale a number."""
        return {"scaled": number * by}

    async def fail() -> None:
        """Fail."""
        raise RuntimeError("no luck")

    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS, root_tools=[scale, fail])
    env.reset(seed=0)
    assert shown(env, "scale(3)['scaled'], scale(3, by=5)['scaled']") == "Out[1]: (6, 15)"
    assert shown(env, "fail()").endswith("RuntimeError: RuntimeError: no luck")
    assert "unexpected keyword argument 'to'" in shown(env, "scale(3, to=5)")
    assert "number" in shown(env, "scale('many')")
    assert "takes a list of prompts" in shown(env, "llm_batch('one')")
    *_, info = env.step("enough")
    assert (info["metrics"]["scale_root_calls"], info["metrics"]["fail_root_calls"]) == (4, 1)
    env.close()

    env = vfgym.RLMEnv(dataset=ROWS, root_tools=[scale, fail])
    env.reset(seed=0)
    assert shown(env, """scale 3; scale --json '{"number": 3, "by": 5}'; echo '{"args": [4]}' | scale; fail || echo failed""", "bash") == (
        '{"scaled": 6}\n{"scaled": 15}\n{"scaled": 8}\nfail: RuntimeError: no luck\nfailed'
    )
    env.close()


async def test_sub_calls_have_a_tool_loop_with_a_limit_of_its_own() -> None:
    """Their tools are not the root model's. One whose turns are used up is asked once more, without tools."""

    def look_up(name: str) -> str:
        """Look something up."""
        return f"{name} is 7"

    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS, sub_tools=[look_up], sub_llm_max_turns=2, sub_model="small")
    look, wrong = calling(("look_up", {"name": "x"})), calling(("look", {}))
    asked_in_turn = (look, wrong, "seven", look, "eight")  # p, q, p, q, q
    client = scripted(code("print(llm_batch(['p', 'q']))"), *asked_in_turn, "done")
    state = await env.rollout(TASK, client, "big")
    assert state["error"] is None
    assert [message["content"] for message in state["completion"] if message["role"] == "tool"] == ["['seven', 'eight']"]
    assert [call["model"] for call in client.asked] == ["big", *["small"] * 5, "big"]
    tools = [[tool.name for tool in call["tools"] or []] for call in client.asked]
    assert tools == [["call_python_repl"], *[["look_up"]] * 4, [], ["call_python_repl"]]
    assert client.asked[3]["prompt"][-1]["content"] == "x is 7"
    assert "unknown tool 'look'" in client.asked[4]["prompt"][-1]["content"]
    counts = state["recursion_counts"]
    assert (counts.sub_turns, counts.sub_tool_calls, counts.sub_limits_reached) == (5, 3, 1)


class Slow(Client):
    """Answers each prompt with itself, the last asked first, and counts how many wait at once."""

    def __init__(self, first: Any) -> None:
        self.first, self.waiting, self.most = [first], 0, 0
        self.asked: list[str] = []

    async def get_response(self, prompt: Any, *args: Any, **kwargs: Any) -> Response:
        if self.first:
            return await scripted(self.first.pop()).get_response(prompt, "m")
        self.asked.append(prompt[-1]["content"])
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        for _ in range(20 - 2 * len(self.asked)):
            await asyncio.sleep(0)
        self.waiting -= 1
        return answer(prompt[-1]["content"])


async def test_answers_of_a_batch_are_in_the_order_of_its_prompts() -> None:
    client = Slow(code("answer.update(content=','.join(llm_batch([str(n) for n in range(7)])), ready=True)"))
    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS, max_sub_llm_parallelism=3)
    state = await env.rollout(TASK, client, "m")
    assert (state["final_answer"], client.asked, client.most) == ("0,1,2,3,4,5,6", [str(number) for number in range(7)], 3)


async def test_a_model_that_fails_ends_the_episode_and_one_that_cannot_read_is_answered() -> None:
    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS)
    ask = code("answer['content'] = llm_batch(['p'])[0]")
    state = await env.rollout(TASK, scripted(ask, ModelError("the provider is down")), "m")
    assert isinstance(state["error"], ModelError)
    assert state["stop_condition"] == "has_error"
    state = await env.rollout(TASK, scripted(ask, OverlongPromptError("9 of 8 tokens"), "done"), "m")
    assert state["error"] is None
    assert state["stop_condition"] == "no_tools_called"
    assert "too long for the model" in state["final_answer"]
    env.reset(seed=0)
    env.step(ask)
    with pytest.raises(EpisodeNotPicklable):
        pickle.dumps(env)
    env.close()


def test_a_shell_that_ends_is_followed_by_another_whatever_it_leaves_running() -> None:
    env = vfgym.RLMEnv(dataset=ROWS, code_execution_timeout=10)
    env.reset(seed=0)
    observation, *_ = env.step(code("sleep 600 & exit 3", "bash"))
    assert observation[-1].content.strip().startswith("Error: The shell has ended")
    assert "timed out" not in observation[-1].content
    observation, *_ = env.step(code("echo on", "bash"))
    assert observation[-1].content == "on"
    env.close()


def test_long_output_is_cut_and_endless_code_is_interrupted() -> None:
    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS, max_output_length=40, code_execution_timeout=0.5)
    env.reset(seed=0)
    assert shown(env, "print('x' * 41)") == "x" * 40 + "\n... [output truncated]"
    assert shown(env, "while True: pass").endswith("\n... [output truncated]\nError: Cell timed out after 0.5s")
    assert shown(env, "len(context)") == "Out[3]: 6"
    lost = shown(env, "import os; os._exit(1)")
    assert lost.startswith("The interpreter of the cells has ended")
    assert shown(env, "len(context), answer['ready']") == "Out[5]: (6, False)"
    env.close()

    env = vfgym.RLMEnv(dataset=ROWS, max_output_length=400, code_execution_timeout=0.5)
    env.reset(seed=0)
    shown(env, "x=1", "bash")
    endless = shown(env, "echo begun; while :; do :; done", "bash")
    assert endless.startswith("begun\n")
    assert "the next command gets a new one" in endless
    assert endless.endswith("Error: Command timed out after 0.5s")
    assert shown(env, "echo ${x-unset}; exit 3", "bash").startswith("unset\n\nError: The shell has ended")
    assert shown(env, "yes | head -c 300000 & wait; ls", "bash").endswith("[output truncated]")
    assert shown(env, "yes > /dev/null & ls; kill $!", "bash") == "context.txt"
    env.close()


async def test_limits_of_time_hold_while_code_waits_for_an_answer() -> None:
    """That of the code is for the model to read, and gives its question up; that of the episode ends it."""
    ask = code("llm_batch(['p'])")
    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS, code_execution_timeout=0.5)
    client = scripted(ask, asyncio.Event(), "done")
    state = await env.rollout(TASK, client, "m")
    assert state["completion"][1]["content"].endswith("Error: Cell timed out after 0.5s")
    assert state["stop_condition"] == "no_tools_called"
    assert [call["prompt"][-1]["role"] for call in client.asked] == ["user", "user", "tool"]
    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS, timeout_seconds=1.0)
    state = await env.rollout(TASK, scripted(ask, asyncio.Event()), "m")
    assert state["stop_condition"] == "timeout_reached"


def test_an_episode_can_be_left_while_its_code_waits_for_an_answer() -> None:
    env = vfgym.RLMEnv(repl_language="python", dataset=ROWS)
    env.reset(seed=0)
    assert env.step(code("llm_batch(['a', 'b'])")).observation[-1]["content"] == "a"
    env.reset(seed=0)
    assert shown(env, "len(context)") == "Out[1]: 6"
    env.step(code("llm_batch(['a'])"))
    env.close()


def test_contexts_are_values_and_folders(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("first")
    rows = [
        {"question": "?", "info": {"context": {"pages": ["one", "two"]}}},
        {"question": "?", "info": {"context_dir": str(tmp_path)}},
        {"question": "?"},
    ]
    env = vfgym.RLMEnv(repl_language="python", dataset=rows)
    env.reset(seed=0, options={"task": rows[0]})
    assert shown(env, "context['pages'], open('context.json').read()") == "Out[1]: (['one', 'two'], '{\"pages\": [\"one\", \"two\"]}')"
    env.reset(seed=0, options={"task": rows[1]})
    assert shown(env, "(context / 'notes' / 'a.txt').read_text()") == "Out[1]: 'first'"
    env.reset(seed=0, options={"task": rows[2]})
    assert shown(env, "'context' in globals()") == "Out[1]: False"
    env.close()


def max_of(values: list[int]) -> int:
    """Return the largest."""
    return max(values)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"repl_language": "js"}, "one of bash, python, got 'js'"),
        ({"max_output_length": 0}, "max_output_length must be an integer of 1 or more"),
        ({"sub_llm_max_turns": True}, "sub_llm_max_turns must be"),
        ({"code_execution_timeout": -1}, "code_execution_timeout must be a number of seconds above 0"),
        ({"root_tools": [print]}, "print"),
        ({"root_tools": [max_of, max_of]}, "different names, got llm_batch, max_of, max_of"),
    ],
)
def test_arguments_are_checked_where_they_are_given(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        vfgym.RLMEnv(dataset=ROWS, **arguments)
