"""The examples of the documented rollout API, run as they are written: through ``import verifiers as vf``.

Each example is the source of a module, without postponed annotations, as users write them. The alias is installed around it and
taken back afterwards. What it evaluates asks a real server on loopback by real clients; data sets of the hub are local. The last part
compares signatures and defaults with the reference.
"""

import ast
import asyncio
import gc
import inspect
import json
import subprocess
import sys
import textwrap
import typing
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import datasets
import pytest

import verifiers_compat
from verifiers_compat.alias import install, uninstall
from vfgym.aio.background import wait
from vfgym.clients import config as client_config
from vfgym.model_server import ModelRequest, ModelServer, Reply

ALIAS = "verifiers"


@pytest.fixture
def alias() -> Iterator[None]:
    install()
    yield
    uninstall()
    assert not [name for name in sys.modules if name.partition(".")[0] == ALIAS]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def run(source: str, **given: Any) -> ModuleType:
    """Execute the source of a module, which may await at its top level, with some names given."""
    module = ModuleType("documented_example")
    module.__dict__.update(given)
    sys.modules[module.__name__] = module
    try:
        code = compile(textwrap.dedent(source), "example.py", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, module.__dict__))
        else:
            exec(code, module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module


def at(server: ModelServer, **fields: Any) -> Any:
    return verifiers_compat.ClientConfig(api_base_url=server.openai_url, api_key="sk-test", max_retries=0, **fields)


def evaluated(env: Any, server: ModelServer, model: str = "m", **options: Any) -> list[Any]:
    outputs: list[Any] = env.evaluate_sync(at(server), model, **options)["outputs"]
    assert [output["error"] for output in outputs] == [None] * len(outputs)
    assert [output.get("metrics_errors") for output in outputs] == [None] * len(outputs)
    return outputs


def said(request: ModelRequest) -> list[str]:
    """Return what was said so far, of whoever speaks."""
    return [f"{message['role']}: {message['content']}" for message in request.messages]


def calling_once(name: str, **arguments: Any) -> Callable[[ModelRequest], Any]:
    """Return a policy that calls a tool, and then answers with what the tool gave."""

    def policy(request: ModelRequest) -> Any:
        last = request.messages[-1]
        call = {"id": "c", "name": name, "arguments": json.dumps(arguments)}
        return last["content"] if last["role"] == "tool" else {"tool_calls": [call]}

    return policy


# The first environment


def test_a_first_environment(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        def load_environment():
            # Your task data
            dataset = Dataset.from_list([
                {"prompt": [{"role": "user", "content": "What is 2+2?"}], "answer": "4"},
                {"prompt": [{"role": "user", "content": "What is 3*5?"}], "answer": "15"},
            ])

            # Your reward function
            async def correct_answer(completion, answer) -> float:
                response = completion[-1]["content"]
                return 1.0 if answer in response else 0.0

            rubric = vf.Rubric(funcs=[correct_answer])

            return vf.SingleTurnEnv(dataset=dataset, rubric=rubric)
        """
    )
    server.models["m"] = lambda request: "It is 4."
    outputs = evaluated(module.load_environment(), server)
    assert [output["reward"] for output in outputs] == [1.0, 0.0]
    assert [output["metrics"]["correct_answer"] for output in outputs] == [1.0, 0.0]


# Datasets


def test_info_as_json_strings(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import json
        import verifiers as vf
        from datasets import Dataset

        dataset = Dataset.from_list([
            {"prompt": [{"role": "user", "content": "Write a poem."}], "info": json.dumps({"style": "haiku", "lines": 3})},
            {"prompt": [{"role": "user", "content": "Add."}], "info": json.dumps({"numbers": [1, 2], "expected": {"sum": 3}})},
        ])

        async def has_lines(completion, info) -> float:
            assert isinstance(info, dict)
            return 1.0 if "lines" in info else 0.5 * ("expected" in info)

        env = vf.SingleTurnEnv(dataset=dataset, rubric=vf.Rubric(funcs=[has_lines]))
        """
    )
    server.models["m"] = lambda request: "ok"
    outputs = evaluated(module.env, server)
    assert [output["reward"] for output in outputs] == [1.0, 0.5]
    assert outputs[0]["info"] == {"style": "haiku", "lines": 3}
    assert isinstance(module.env.get_dataset()[0]["info"], str)


def test_question_and_system_prompt(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        dataset = Dataset.from_list([
            {"question": "What is 2+2?", "answer": "4"},
            {"question": "What is 3*5?", "answer": "15"},
        ])
        env = vf.SingleTurnEnv(
            dataset=dataset,
            system_prompt="You are a helpful math tutor.",
            rubric=vf.Rubric(),
        )
        """
    )
    server.models["m"] = lambda request: "ok"
    evaluated(module.env, server)
    assert sorted(json.dumps(request.body["messages"]) for request in server.requests) == [
        json.dumps([{"role": "system", "content": "You are a helpful math tutor."}, {"role": "user", "content": question}])
        for question in ("What is 2+2?", "What is 3*5?")
    ]


def test_a_prompt_column_wins_over_the_question(alias: None) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        row = {"prompt": [{"role": "user", "content": "the prompt"}], "question": "the question", "answer": "x"}
        env = vf.SingleTurnEnv(dataset=Dataset.from_list([row]), rubric=vf.Rubric())
        """
    )
    assert module.env.get_dataset()[0]["prompt"] == [{"role": "user", "content": "the prompt"}]


def test_evaluation_datasets(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        train_dataset = Dataset.from_list([{"question": "train?", "answer": "a"}])
        eval_dataset = Dataset.from_list([{"question": "eval?", "answer": "b"}, {"question": "eval too?", "answer": "c"}])
        env = vf.SingleTurnEnv(dataset=train_dataset, eval_dataset=eval_dataset, rubric=vf.Rubric())
        fallback = vf.SingleTurnEnv(dataset=train_dataset, rubric=vf.Rubric())
        """
    )
    server.models["m"] = lambda request: "ok"
    assert [output["prompt"][-1]["content"] for output in evaluated(module.env, server)] == ["eval?", "eval too?"]
    assert [output["prompt"][-1]["content"] for output in evaluated(module.fallback, server)] == ["train?"]


def test_datasets_that_are_built_when_needed(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        built = []

        def build_train() -> Dataset:
            built.append("train")
            return Dataset.from_list([{"question": "train?"}])

        def build_eval() -> Dataset:
            built.append("eval")
            return Dataset.from_list([{"question": "eval?"}])

        env = vf.SingleTurnEnv(dataset=build_train, eval_dataset=build_eval)
        """
    )
    assert module.built == []
    evaluated(module.env, server, "echo")
    assert module.built == ["eval"]


# Rubrics


def test_reward_functions_name_what_they_need(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        async def exact(completion, answer) -> float:
            return float(completion[-1]["content"] == answer)

        async def polite(prompt, completion, info, state) -> float:
            assert prompt[-1]["role"] == "user"
            assert state["info"] == info
            return 1.0 if info["word"] in completion[-1].content else 0.0

        def length_bonus(completion: vf.Messages, answer: str = "", state: vf.State | None = None, **kwargs) -> float:
            return len(completion[-1]["content"]) / 10

        rubric = vf.Rubric(funcs=[exact, polite, length_bonus], weights=[1.0, 0.5, 0.1])

        async def response_length(completion) -> float:
            return float(len(completion[-1]["content"]))

        rubric.add_metric(response_length)
        rubric.add_reward_func(exact, weight=2.0)
        zero = vf.Rubric(funcs=[exact, response_length], weights=[1.0, 0])
        dataset = Dataset.from_list([{"question": "Say please.", "answer": "please", "info": {"word": "please"}}])
        env = vf.SingleTurnEnv(dataset=dataset, rubric=rubric)
        zero_env = vf.SingleTurnEnv(dataset=dataset, rubric=zero)
        """
    )
    server.models["m"] = lambda request: "please"
    (output,) = evaluated(module.env, server)
    assert output["reward"] == pytest.approx(1.0 + 0.5 + 0.06 + 2.0)
    assert output["metrics"]["response_length"] == 6.0
    (output,) = evaluated(module.zero_env, server)
    assert (output["reward"], output["metrics"]["response_length"]) == (1.0, 6.0)


def test_reward_functions_share_the_state_in_order(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        async def similarity_score(completion, answer, state) -> float:
            score = len(set(completion[-1]["content"]) & set(answer)) / len(set(answer))
            state["similarity"] = score  # available to later functions
            return score

        async def similarity_threshold(state) -> float:
            return 1.0 if state["similarity"] > 0.8 else 0.0

        rubric = vf.Rubric(funcs=[similarity_score, similarity_threshold], weights=[0.0, 1.0])
        env = vf.SingleTurnEnv(dataset=Dataset.from_list([{"question": "?", "answer": "abcde"}]), rubric=rubric)
        """
    )
    server.models["m"] = lambda request: "edcba"
    (output,) = evaluated(module.env, server)
    assert (output["reward"], output["metrics"]["similarity_score"], output["metrics"]["similarity_threshold"]) == (1.0, 1.0, 1.0)


def test_group_reward_functions(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        async def diversity_bonus(completions) -> list[float]:
            '''Reward unique responses within a group.'''
            responses = [c[-1]["content"] for c in completions]
            unique = set(responses)
            # Higher reward if this response is unique
            return [0.2 if responses.count(r) == 1 else 0.0 for r in responses]

        def my_group_reward(
            completions: list[vf.Messages],
            answers: list[str],
            states: list[vf.State],
            prompts, infos,
            **kwargs
        ) -> list[float]:
            assert len(completions) == len(answers) == len(states) == len(prompts) == len(infos) == 3
            return [float(a in c[-1]["content"]) for a, c in zip(answers, completions)]

        rubric = vf.Rubric(funcs=[my_group_reward, diversity_bonus])
        env = vf.SingleTurnEnv(dataset=Dataset.from_list([{"question": "?", "answer": "a"}]), rubric=rubric)
        """
    )
    answers = iter(["a", "a", "b"])
    server.models["m"] = lambda request: next(answers)
    outputs = evaluated(module.env, server, rollouts_per_example=3, max_concurrent=1)
    assert sorted(output["reward"] for output in outputs) == [0.2, 1.0, 1.0]
    assert module.env.requires_group_rollouts


def test_class_objects_and_parsers(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        class Lexicon:
            def knows(self, word):
                return word in {"apple", "pear"}

        parser = vf.XMLParser(fields=["reasoning", "answer"])
        rubric = vf.Rubric(parser=parser)
        rubric.add_class_object("lexicon", Lexicon())

        async def is_word(completion, lexicon, parser) -> float:
            return 1.0 if lexicon.knows(parser.parse_answer(completion)) else 0.0

        rubric.add_reward_func(is_word)
        rubric.add_reward_func(parser.get_format_reward_func(), weight=0.5)
        env = vf.SingleTurnEnv(
            dataset=Dataset.from_list([{"question": "Name a fruit.", "answer": ""}]),
            system_prompt=f"Answer like this:\\n{parser.get_format_str()}",
            parser=parser,
            rubric=rubric,
        )
        """
    )
    server.models["m"] = lambda request: "<reasoning>\nsweet\n</reasoning>\n<answer>\npear\n</answer>"
    (output,) = evaluated(module.env, server)
    assert output["reward"] == 1.5
    assert "<reasoning>\n...\n</reasoning>" in output["prompt"][0]["content"]


def test_judge_rubrics(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset
        from openai import AsyncOpenAI

        judge_rubric = vf.JudgeRubric(
            judge_client=AsyncOpenAI(base_url=url, api_key="sk-..."),
            judge_model="gpt-4.1-mini",
        )

        async def judge_correctness(prompt, completion, answer, judge) -> float:
            verdict = await judge(prompt, completion, answer)
            return 1.0 if "yes" in verdict.lower() else 0.0

        judge_rubric.add_reward_func(judge_correctness)
        dataset = Dataset.from_list([{"question": "What is the capital of France?", "answer": "Paris"}])
        env = vf.SingleTurnEnv(dataset=dataset, rubric=judge_rubric)

        custom = vf.JudgeRubric(
            judge_client=AsyncOpenAI(base_url=url, api_key="sk-..."),
            judge_model="gpt-4.1-mini",
            judge_prompt='''Rate the response from 0 to 10.
        Question: {question}
        Truth: {answer}
        Response: {response}
        Score:''',
            judge_sampling_args={"temperature": 0.0, "max_tokens": 10},
        )

        async def quality_score(
            completion, judge, judge_client, judge_model, judge_prompt, judge_sampling_args, prompt, answer, state
        ) -> float:
            rating = await judge(prompt, completion, answer, state)
            response = await judge_client.chat.completions.create(
                model=judge_model,
                messages=[{"role": "user", "content": judge_prompt.format(question="q", answer="a", response="r")}],
                **judge_sampling_args,
            )
            assert response.choices[0].message.content == rating
            return float(rating) / 10

        custom.add_reward_func(quality_score)
        custom_env = vf.SingleTurnEnv(dataset=dataset, rubric=custom)
        """,
        url=server.openai_url,
    )

    def judge(request: ModelRequest) -> str:
        text = request.messages[-1]["content"]
        return "7" if "Score:" in text else ("Yes" if "What is the capital of France?" in text and "Paris!" in text else "No")

    server.models.update({"m": lambda request: "Paris!", "gpt-4.1-mini": judge})
    (output,) = evaluated(module.env, server)
    assert output["reward"] == 1.0
    (output,) = evaluated(module.custom_env, server, state_columns=["judge_response"])
    assert output["reward"] == 0.7
    ((asked, verdict),) = output["judge_response"].items()
    assert asked.endswith("Question: What is the capital of France?\nTruth: Paris\nResponse: Paris!\nScore:")
    assert verdict == "7"
    body = next(request.body for request in server.requests if "Score:" in json.dumps(request.body))
    assert (body["temperature"], body.get("max_completion_tokens", body.get("max_tokens"))) == (0.0, 10)
    module.env.close()
    module.custom_env.close()
    wait(module.judge_rubric.judge_client.close())
    wait(module.custom.judge_client.close())


def test_math_rubric_in_a_group_with_a_judge(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset
        from openai import AsyncOpenAI

        math_rubric = vf.MathRubric()
        judge_rubric = vf.JudgeRubric(judge_client=AsyncOpenAI(base_url=url, api_key="sk-..."), judge_model="gpt-4.1-mini")

        async def explains_well(prompt, completion, answer, judge) -> float:
            verdict = await judge(prompt, completion, answer)
            return 1.0 if "yes" in verdict.lower() else 0.0

        judge_rubric.add_reward_func(explains_well, weight=0.5)
        rubric = vf.RubricGroup(rubrics=[math_rubric, judge_rubric])
        env = vf.SingleTurnEnv(
            dataset=Dataset.from_list([{"question": "What is 1/2?", "answer": "0.5"}]), parser=math_rubric.parser, rubric=rubric
        )
        """,
        url=server.openai_url,
    )
    server.models.update({"m": lambda request: r"Half: \boxed{\frac{1}{2}}", "gpt-4.1-mini": lambda request: "yes"})
    (output,) = evaluated(module.env, server)
    module.env.close()
    wait(module.judge_rubric.judge_client.close())
    assert (output["reward"], output["metrics"]["correct_answer"], output["metrics"]["explains_well"]) == (1.5, 1.0, 1.0)


def test_monitor_rubrics(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        class MyMonitorRubric(vf.Rubric):
            def __init__(self):
                super().__init__()
                self.add_metric(self.custom_metric)

            async def custom_metric(self, state: vf.State) -> float:
                return len(state["trajectory"]) * 10.0

        def echo_back(text: str) -> str:
            '''Repeat a text.'''
            return text

        env = vf.ToolEnv(dataset=Dataset.from_list([{"question": "?"}]), tools=[echo_back], rubric=vf.Rubric())
        env.add_rubric(MyMonitorRubric())
        """
    )
    server.models["m"] = lambda request: "done"
    (output,) = evaluated(module.env, server)
    assert output["reward"] == 0.0
    assert output["metrics"] == {"num_turns": 1.0, "total_tool_calls": 0.0, "echo_back_calls": 0.0, "custom_metric": 10.0}


# Tools


def test_tool_environments(alias: None, server: ModelServer) -> None:
    module = run(
        '''
        import verifiers as vf
        from datasets import Dataset

        async def calculate(expression: str) -> str:
            """Evaluate a mathematical expression.

            Args:
                expression: A mathematical expression to evaluate (e.g. "2 + 2 * 3")

            Returns:
                The result of the evaluation.
            """
            try:
                result = eval(expression)
                return str(result)
            except Exception as e:
                return f"Error: {e}"

        async def lookup(term: str, limit: int = 3) -> str:
            """Look up a term.

            Args:
                term: The term to look up
                limit: How many results
            """
            return ", ".join([term] * limit)

        async def used_tool(completion) -> float:
            return float(any(m["role"] == "tool" for m in completion))

        env = vf.ToolEnv(
            dataset=Dataset.from_list([{"question": "What is 2 + 2 * 3?"}]),
            tools=[calculate, lookup],
            rubric=vf.Rubric(used_tool),
            max_turns=10,
        )
        '''
    )

    def policy(request: ModelRequest) -> Any:
        if request.messages[-1]["role"] == "tool":
            return "8"
        return {
            "tool_calls": [
                {"id": "c", "name": "calculate", "arguments": '{"expression": "2 + 2 * 3"}'},
                {"id": "d", "name": "lookup", "arguments": '{"term": "x", "limit": 2}'},
            ]
        }

    server.models["m"] = policy
    (output,) = evaluated(module.env, server)
    assert [message["content"] for message in output["completion"] if message["role"] == "tool"] == ["8", "x, x"]
    assert (output["reward"], output["stop_condition"], output["metrics"]["calculate_calls"]) == (1.0, "no_tools_called", 1.0)
    calculate, lookup = (tool["function"] for tool in server.requests[0].body["tools"])
    assert calculate["description"].startswith("Evaluate a mathematical expression.")
    assert calculate["parameters"]["properties"]["expression"]["type"] == "string"
    assert calculate["parameters"]["properties"]["expression"]["description"].startswith("A mathematical expression to evaluate")
    assert lookup["parameters"]["properties"]["limit"]["type"] == "integer"


def test_mcp_environments(alias: None, server: ModelServer, tmp_path: Path) -> None:
    script = tmp_path / "fetch_server.py"
    script.write_text(
        """
import os
from mcp.server.mcpserver import MCPServer

server = MCPServer("fetch", log_level="CRITICAL")

@server.tool()
def fetch(url: str) -> str:
    "Fetch a page."
    return f"{os.environ['GREETING']} from {url}"

server.run("stdio")
"""
    )
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        mcp_servers = [
            {
                "name": "fetch",
                "command": python,
                "args": [script],
                "env": {"GREETING": "hello"},
                "description": "Fetches pages",
            },
        ]
        env = vf.MCPEnv(
            mcp_servers=mcp_servers,
            dataset=Dataset.from_list([{"question": "What does the page say?"}]),
            rubric=vf.Rubric(),
            max_turns=5,
        )
        """,
        python=sys.executable,
        script=str(script),
    )

    server.models["m"] = calling_once("fetch", url="x.org")
    try:
        (output,) = evaluated(module.env, server)
    finally:
        module.env.close()
    assert output["completion"][-1]["content"] == "hello from x.org"
    assert output["metrics"]["fetch_calls"] == 1.0
    assert server.requests[0].body["tools"][0]["function"]["parameters"]["properties"]["url"]["type"] == "string"


def test_stateful_tool_environments(alias: None, server: ModelServer) -> None:
    module = run(
        '''
        import verifiers as vf
        from datasets import Dataset

        released = []

        async def run_code(code: str, session_id: str) -> str:
            """Execute code in the session.

            Args:
                code: The code to run
                session_id: Which session
            """
            return f"{session_id} ran {code}"

        class CodeSessionEnv(vf.StatefulToolEnv):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                self.add_tool(run_code, args_to_skip=["session_id"])

            async def setup_state(self, state, **kwargs):
                state["session_id"] = f"session-{state['example_id']}"
                return await super().setup_state(state, **kwargs)

            def update_tool_args(self, tool_name: str, tool_args: dict, messages: vf.Messages, state: vf.State, **kwargs) -> dict:
                if tool_name == "run_code":
                    tool_args["session_id"] = state["session_id"]
                return tool_args

            @vf.cleanup
            async def release_session(self, state: vf.State) -> None:
                released.append(state["session_id"])

        env = CodeSessionEnv(dataset=Dataset.from_list([{"question": "?"}, {"question": "??"}]), rubric=vf.Rubric())
        '''
    )

    server.models["m"] = calling_once("run_code", code="1")
    outputs = evaluated(module.env, server)
    assert [output["completion"][-1]["content"] for output in outputs] == ["session-0 ran 1", "session-1 ran 1"]
    assert list(server.requests[0].body["tools"][0]["function"]["parameters"]["properties"]) == ["code"]
    assert sorted(module.released) == ["session-0", "session-1"]


def test_tools_come_and_go_and_their_execution_can_be_customized(alias: None, server: ModelServer) -> None:
    module = run(
        '''
        import verifiers as vf
        from datasets import Dataset

        def one() -> str:
            """Give one."""
            return "1"

        def two() -> str:
            """Give two."""
            return "2"

        class Logged(vf.ToolEnv):
            async def call_tool(self, tool_name: str, tool_args: dict, tool_call_id: str, **kwargs) -> vf.Messages:
                message = await super().call_tool(tool_name, tool_args, tool_call_id, **kwargs)
                return {"role": "tool", "content": f"<{message['content']}>", "tool_call_id": tool_call_id}

        env = Logged(dataset=Dataset.from_list([{"question": "?"}]), tools=[one], rubric=vf.Rubric())
        env.add_tool(two)
        env.remove_tool(one)
        '''
    )

    server.models["m"] = calling_once("two")
    (output,) = evaluated(module.env, server)
    assert [tool["function"]["name"] for tool in server.requests[0].body["tools"]] == ["two"]
    assert output["completion"][-1]["content"] == "<2>"
    assert output["metrics"] == {"num_turns": 2.0, "total_tool_calls": 1.0, "two_calls": 1.0}


# Several turns

GUESSING = """
import verifiers as vf
from datasets import Dataset

log = []

class NumberGame(vf.MultiTurnEnv):
    async def setup_state(self, state: vf.State) -> None:
        state["secret"] = int(state["answer"])
        state["guesses"] = []
        await super().setup_state(state)

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs) -> vf.Messages:
        guess = self.parser.parse_answer(messages)
        state["guesses"].append(guess)
        if guess is None:
            return [{"role": "user", "content": "Please answer in the format."}]
        if int(guess) == state["secret"]:
            final = [{"role": "user", "content": "Correct!"}]
            state["final_env_response"] = final
            return final
        return [{"role": "user", "content": "Higher!" if int(guess) < state["secret"] else "Lower!"}]

    @vf.stop
    async def gave_up(self, state: vf.State) -> bool:
        return bool(state["trajectory"]) and "give up" in state["trajectory"][-1]["completion"][-1]["content"]

    @vf.stop(priority=10)
    async def cheap_check(self, state: vf.State) -> bool:
        log.append("cheap")
        return False

    @vf.stop(priority=-10)
    async def expensive_check(self, state: vf.State) -> bool:
        log.append("expensive")
        return False

    @vf.cleanup
    async def save_log(self, state: vf.State) -> None:
        log.append(f"cleanup {len(state['completion'])}")

    @vf.cleanup(priority=10)
    async def early_cleanup(self, state: vf.State) -> None:
        log.append("early")

    @vf.teardown
    async def close_pool(self) -> None:
        log.append("teardown")

    @vf.teardown(priority=10)
    async def early_teardown(self) -> None:
        log.append("early teardown")

def guessed(state: vf.State) -> float:
    return 1.0 if state["final_env_response"] else 0.0

def load_environment(num_examples: int = 2, max_turns: int = 5) -> vf.Environment:
    parser = vf.XMLParser(fields=["guess"], answer_field="guess")
    rubric = vf.Rubric(guessed, parser=parser)
    dataset = Dataset.from_list([{"question": "Guess!", "answer": str(3 + i)} for i in range(num_examples)])
    return NumberGame(dataset=dataset, parser=parser, rubric=rubric, max_turns=max_turns)
"""


def counting_up(request: ModelRequest) -> str:
    return f"<guess>{sum(message['role'] == 'assistant' for message in request.messages) + 1}</guess>"


def test_a_game_in_several_turns(alias: None, server: ModelServer) -> None:
    module = run(GUESSING)
    server.models["m"] = counting_up
    env = module.load_environment(num_examples=1)
    (output,) = evaluated(env, server)
    assert [message["content"] for message in output["completion"]][-3:] == ["Higher!", "<guess>3</guess>", "Correct!"]
    assert (output["stop_condition"], output["reward"], output["metrics"]["num_turns"]) == ("has_final_env_response", 1.0, 3.0)
    assert len(server.requests) == 3
    # Checks come before each turn and after each message; the cheap one always comes first.
    assert [entry for entry in module.log if entry in ("cheap", "expensive")][:4] == ["cheap", "expensive"] * 2
    assert module.log[-2:] == ["early", "cleanup 6"]
    env.close()
    assert module.log[-2:] == ["early teardown", "teardown"]


@pytest.mark.parametrize(
    ("answer", "max_turns", "stop_condition", "length"), [("I give up", 5, "gave_up", 1), ("<guess>9</guess>", 2, "max_turns_reached", 3)]
)
def test_a_game_that_is_lost(alias: None, server: ModelServer, answer: str, max_turns: int, stop_condition: str, length: int) -> None:
    server.models["m"] = lambda request: answer
    (output,) = evaluated(run(GUESSING).load_environment(num_examples=1, max_turns=max_turns), server)
    assert (output["stop_condition"], output["reward"], len(output["completion"])) == (stop_condition, 0.0, length)


def test_hooks_for_more_control(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        class Custom(vf.MultiTurnEnv):
            async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs) -> vf.Messages:
                return [{"role": "user", "content": "again"}]

            async def get_prompt_messages(self, state: vf.State) -> vf.Messages:
                messages = await super().get_prompt_messages(state)
                return list(messages)[-1:]

            async def render_completion(self, state: vf.State) -> None:
                state["completion"] = [step["completion"][-1] for step in state["trajectory"]]

            async def add_trajectory_step(self, state: vf.State, trajectory_step: vf.TrajectoryStep) -> None:
                trajectory_step["reward"] = 0.5
                trajectory_step["extras"]["turn"] = len(state["trajectory"])
                await super().add_trajectory_step(state, trajectory_step)

        env = Custom(dataset=Dataset.from_list([{"question": "first"}]), max_turns=3, rubric=vf.Rubric())
        """
    )
    (output,) = evaluated(module.env, server, "echo", state_columns=["trajectory"])
    assert [message["content"] for message in output["completion"]] == ["first", "again", "again"]
    assert [(step["reward"], step["extras"]["turn"]) for step in output["trajectory"]] == [(0.5, 0), (0.5, 1), (0.5, 2)]


def test_errors_of_an_environment(alias: None, server: ModelServer) -> None:
    module = run(
        '''
        import verifiers as vf
        from datasets import Dataset

        for error, parent in [
            (vf.ModelError, vf.Error), (vf.EmptyModelResponseError, vf.ModelError), (vf.OverlongPromptError, vf.Error),
            (vf.ToolError, vf.Error), (vf.ToolParseError, vf.ToolError), (vf.ToolCallError, vf.ToolError),
            (vf.InfraError, vf.Error), (vf.SandboxError, vf.InfraError),
        ]:
            assert issubclass(error, parent)

        def fragile(text: str) -> str:
            """Break."""
            raise ValueError("broken")

        dataset = Dataset.from_list([{"question": "?"}])
        env = vf.ToolEnv(dataset=dataset, tools=[fragile], stop_errors=[vf.ToolParseError], rubric=vf.Rubric())

        class Breaks(vf.MultiTurnEnv):
            async def env_response(self, messages, state, **kwargs):
                raise vf.InfraError("the database is down")

        breaks = Breaks(dataset=dataset, rubric=vf.Rubric())
        '''
    )

    wrong = {"tool_calls": [{"id": "c", "name": "fragile", "arguments": '{"text": '}]}
    server.models.update(right=calling_once("fragile", text="x"), wrong=lambda request: wrong, m=lambda request: "x")
    (output,) = evaluated(module.env, server, "right")
    assert [message["content"] for message in output["completion"]][1:] == ["broken", "broken"]
    config = at(server)
    (output,) = module.env.evaluate_sync(config, "wrong")["outputs"]
    assert (output["stop_condition"], output["error"]["error"]) == ("has_error", "ToolParseError")
    (output,) = module.breaks.evaluate_sync(config, "m")["outputs"]
    assert (output["stop_condition"], output["error"]["error"]) == ("has_error", "InfraError")
    assert "the database is down" in str(output["error"])


# Environments as packages


def test_load_environment_with_arguments(alias: None, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "number_game.py").write_text(GUESSING)
    (tmp_path / "pyproject.toml").write_text(
        """
[project]
name = "number-game"
description = "Guess a number"
tags = ["multi-turn", "game"]
version = "0.1.0"
requires-python = ">=3.10"
dependencies = ["verifiers>=0.1.8"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build]
include = ["number_game.py", "pyproject.toml"]

[tool.verifiers.eval]
num_examples = 3
rollouts_per_example = 2
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "number_game", raising=False)
    import verifiers as vf  # type: ignore[import-not-found]

    env = vf.load_environment("number-game", num_examples=4, max_turns=2)
    assert (env.env_id, env.env_args, env.max_turns, len(env.get_dataset())) == ("number-game", {"num_examples": 4, "max_turns": 2}, 2, 4)
    assert vf.load_environment("primeintellect/number-game").max_turns == 5
    with pytest.raises(TypeError, match="max_turns"):
        vf.load_environment("number-game", max_turn=2)
    monkeypatch.delitem(sys.modules, "number_game")


def test_an_environment_group(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        async def exact(completion, answer) -> float:
            return float(completion[-1]["content"] == answer)

        def make(question: str) -> vf.Environment:
            return vf.SingleTurnEnv(dataset=Dataset.from_list([{"question": question, "answer": question}]), rubric=vf.Rubric(exact))

        env1, env2, env3 = make("math?"), make("code?"), make("qa?")
        env_group = vf.EnvGroup(
            envs=[env1, env2, env3],
            env_names=["math", "code", "qa"]  # optional
        )
        older = vf.EnvGroup(
            envs=[env1, env2, env3],
            names=["math", "code", "qa"]  # optional
        )
        plain = vf.EnvGroup(envs=[env1, env2])
        """
    )
    for group in (module.env_group, module.older):
        outputs = evaluated(group, server, "echo")
        assert [(output["info"]["env_id"], output["reward"]) for output in outputs] == [("math", 1.0), ("code", 1.0), ("qa", 1.0)]
        assert [output["example_id"] for output in outputs] == [0, 1, 2]
    assert [output["info"]["env_id"] for output in evaluated(module.plain, server, "echo")] == ["env_0", "env_1"]


def test_a_reasoning_gym_environment(alias: None, server: ModelServer) -> None:
    pytest.importorskip("reasoning_gym", reason="the extra reasoning-gym is not installed")
    module = run(
        """
        import verifiers as vf

        vf_env = vf.ReasoningGymEnv(gym="leg_counting", num_train_examples=3, num_eval_examples=2, seed=42)
        """
    )
    outputs = evaluated(module.vf_env, server, "echo")
    assert len(outputs) == 2
    assert {"check_answer_reward_func", "format_reward_func", "num_turns"} <= set(outputs[0]["metrics"])


def test_a_hosted_environment_says_why_it_is_left_out(alias: None) -> None:
    with pytest.raises(ImportError, match="browsers of a hosted service"):
        run("import verifiers as vf\nvf.BrowserEnv")


# The reference


GSM8K = {
    "question": "Natalia sold 48 clips in April and half as many in May. How many altogether?",
    "answer": "She sold 48/2 = <<48/2=24>>24 in May.\n#### 72",
}

OWN_ROLLOUT = """
import verifiers as vf
from datasets import load_dataset

# Create a simple environment
class MyEnv(vf.Environment):
    async def rollout(
        self,
        input: vf.RolloutInput,
        client: vf.Client,
        model: str,
        sampling_args: vf.SamplingArgs | None = None,
    ) -> vf.State:
        state = await self.init_state(input, client, model, sampling_args)
        
        # Get model response
        response = await self.get_model_response(
            state,
            prompt=state["prompt"]
        )
        
        # Store completion
        state["completion"] = response.message
        state["is_completed"] = True
        
        return state

# Load environment with dataset
def load_environment():
    dataset = load_dataset("gsm8k", "main", split="train")
    
    def reward_fn(answer: str, completion: vf.Messages) -> float:
        # Custom reward logic
        return 1.0 if answer in str(completion) else 0.0
    
    return MyEnv(
        dataset=dataset,
        rubric=vf.Rubric(reward_fn),
        system_prompt="You are a helpful assistant."
    )

# Evaluate
env = load_environment()
results = await env.evaluate(
    client=vf.ClientConfig(
        provider="openai",
        api_key="sk-..."
    ),
    model="gpt-4",
    num_examples=10
)

print(f"Average reward: {results['metadata']['avg_reward']}")
"""  # noqa: W293, it is a quotation


def test_an_environment_with_its_own_rollout(
    alias: None, server: ModelServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded: list[Any] = []

    def load_dataset(*args: Any, **kwargs: Any) -> datasets.Dataset:
        loaded.append((args, kwargs))
        return datasets.Dataset.from_list([{**GSM8K, "answer": answer} for answer in ("72", "73")])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setitem(client_config.PROVIDERS, "openai", client_config.Provider(server.openai_url, "OPENAI_API_KEY"))  # type: ignore[arg-type]
    server.models["gpt-4"] = lambda request: "It is 72."
    module = run(OWN_ROLLOUT)
    assert capsys.readouterr().out == "Average reward: 0.5\n"
    assert loaded == [(("gsm8k", "main"), {"split": "train"})]
    assert [output["reward"] for output in module.results["outputs"]] == [1.0, 0.0]
    assert [output["is_completed"] for output in module.results["outputs"]] == [True, True]
    assert server.requests[0].headers["Authorization"] == "Bearer sk-..."
    assert [message["role"] for message in server.requests[0].body["messages"]] == ["system", "user"]


def test_the_same_environment_as_a_script(server: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({**GSM8K, "answer": "72"}) + "\n")
    script = tmp_path / "my_env.py"
    setting = f"""
import datasets
datasets.load_dataset = lambda *args, **kwargs: datasets.Dataset.from_list([{GSM8K | {"answer": "72"}!r}])
from vfgym.clients import config
config.PROVIDERS["openai"] = config.Provider({server.openai_url!r}, "OPENAI_API_KEY")
"""
    main = OWN_ROLLOUT.replace("results = await env", "import asyncio\nresults = asyncio.run(env").replace(
        "num_examples=10\n)", "num_examples=10\n))"
    )
    script.write_text(setting + main)
    server.models["gpt-4"] = lambda request: "72"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "verifiers_compat", str(script)], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "Average reward: 1.0\n"), done.stderr


def test_stepping_an_environment_with_its_own_rollout(alias: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "load_dataset", lambda *args, **kwargs: datasets.Dataset.from_list([{**GSM8K, "answer": "72"}]))
    env = run(OWN_ROLLOUT.partition("# Evaluate")[0]).load_environment()
    observation, _ = env.reset(seed=0)
    assert observation[-1]["content"] == GSM8K["question"]
    _, reward, terminated, truncated, _ = env.step("72")
    assert (reward, terminated, truncated) == (1.0, True, False)


def test_xml_parser_examples(alias: None) -> None:
    module = run(
        """
        import verifiers as vf

        parser = vf.XMLParser(fields=["reasoning", "answer"])
        # Parses: <reasoning>...</reasoning><answer>...</answer>
        first = parser.parse("<reasoning>why</reasoning><answer>42</answer>")

        # With alternatives:
        parser = vf.XMLParser(fields=["reasoning", ("code", "answer")])
        # Accepts either <code> or <answer> for second field
        second = parser.parse("<reasoning>why</reasoning><code>42</code>")
        third = parser.parse("<reasoning>why</reasoning><answer>42</answer>")
        """
    )
    assert (module.first.reasoning, module.first.answer) == ("why", "42")
    assert (module.second.code, module.third.answer) == ("42", "42")


def test_ensure_keys(alias: None, monkeypatch: pytest.MonkeyPatch) -> None:
    module = run(
        """
        import verifiers as vf

        def load_environment(api_key_var: str = "OPENAI_API_KEY") -> vf.Environment:
            vf.ensure_keys([api_key_var])
            # now safe to use os.environ[api_key_var]
            return vf.SingleTurnEnv(dataset=[{"question": "?"}])
        """
    )
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ValueError, match="OPENAI_API_KEY") as caught:
        module.load_environment()
    assert isinstance(caught.value, verifiers_compat.MissingKeyError)
    assert caught.value.keys == ["OPENAI_API_KEY"]
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert module.load_environment()


def test_logging_examples(alias: None, server: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    module = run(
        """
        import logging
        import verifiers as vf

        logger = logging.getLogger("verifiers")
        before = logger.level
        with vf.log_level("DEBUG"):
            # verifiers logs at DEBUG level here
            inside = logger.getEffectiveLevel()
        # reverts to previous level
        after = logger.level

        env = vf.SingleTurnEnv(dataset=[{"question": "q"}])
        with vf.quiet_verifiers():
            # verifiers logging is quieted here
            outputs = env.generate_sync(env.get_dataset(), config, model="echo")
            quiet = logger.getEffectiveLevel()
        # logging restored
        restored = logger.level
        vf.print_prompt_completions_sample(outputs, n=1)
        """,
        config=at(server),
    )
    assert (module.inside, module.quiet) == (10, 30)
    assert module.before == module.after == module.restored
    assert "q" in capsys.readouterr().out


def test_a_system_message_from_a_file(alias: None, tmp_path: Path) -> None:
    path = tmp_path / "system.txt"
    path.write_text("  Sei höflich.\n\n", encoding="utf-8")
    module = run("import verifiers as vf\nmessage = vf.SystemMessage.from_path(path)", path=path)
    assert (module.message.role, module.message.content) == ("system", "  Sei höflich.\n\n")


def test_headers_from_the_state(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf

        config = vf.ClientConfig(api_base_url=url, extra_headers={"X-Fixed": "1"}, extra_headers_from_state={"X-Session-ID": "example_id"})
        env = vf.SingleTurnEnv(dataset=[{"question": "q"}, {"question": "r"}])
        results = env.evaluate_sync(config, "echo")
        """,
        url=server.openai_url,
    )
    assert module.results["metadata"]["avg_error"] == 0.0
    assert sorted(request.headers["X-Session-ID"] for request in server.requests) == ["0", "1"]
    assert {request.headers["X-Fixed"] for request in server.requests} == {"1"}


def test_several_endpoints_take_turns(alias: None, server: ModelServer) -> None:
    with ModelServer() as other:
        module = run(
            """
            import verifiers as vf

            config = vf.ClientConfig(endpoint_configs=[vf.EndpointClientConfig(api_base_url=url) for url in urls], max_retries=0)
            env = vf.SingleTurnEnv(dataset=[{"question": str(i)} for i in range(4)])
            results = env.evaluate_sync(config, "echo", rollouts_per_example=2)
            """,
            urls=[server.openai_url, other.openai_url],
        )
        assert (server.num_requests, other.num_requests) == (4, 4)
        metadata = module.results["metadata"]
        assert metadata["base_url"] == f"{server.openai_url},{other.openai_url}"
        assert metadata["avg_error"] == 0.0


def test_a_client_of_the_openai_sdk(alias: None, server: ModelServer) -> None:
    run(
        """
        import verifiers as vf
        from openai import AsyncOpenAI

        env = vf.SingleTurnEnv(dataset=[{"question": "q"}], rubric=vf.Rubric(lambda completion: float(completion[-1]["content"] == "q")))
        async_client = AsyncOpenAI(base_url=url, api_key="k")
        results = await env.evaluate(async_client, model="echo")
        assert results["metadata"]["avg_reward"] == 1.0
        results = await env.evaluate(vf.OpenAIChatCompletionsClient(async_client), model="echo")
        assert results["metadata"]["avg_reward"] == 1.0
        await async_client.close()
        """,
        url=server.openai_url,
    )


def test_a_synchronous_client_of_the_openai_sdk_leaves_no_connection_open(alias: None, server: ModelServer) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = run(
            """
            import verifiers as vf
            from openai import OpenAI

            env = vf.SingleTurnEnv(dataset=[{"question": "q"}], rubric=vf.Rubric(lambda: 1.0))
            with OpenAI(base_url=url, api_key="k") as client:
                metadata = env.evaluate_sync(client, model="echo")["metadata"]
            """,
            url=server.openai_url,
        )
        gc.collect()
    assert (module.metadata["avg_reward"], module.metadata["avg_error"]) == (1.0, 0.0)
    assert [str(warning.message) for warning in caught if issubclass(warning.category, ResourceWarning)] == []


# The older generation


def test_an_environment_of_the_older_generation(alias: None, server: ModelServer) -> None:
    module = run(
        """
        import verifiers as vf
        from datasets import Dataset

        class Older(vf.MultiTurnEnv):
            async def setup_state(self, state: vf.State, **kwargs) -> vf.State:
                state = await super().setup_state(state, **kwargs)
                state["seen"] = 0
                return state

            async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs) -> vf.Messages:
                state["seen"] += 1
                return [{"role": "user", "content": "more"}]

        def my_reward(
            completion: vf.Messages,
            answer: str = "",
            prompt: vf.Messages | None = None,
            state: vf.State | None = None,
            parser: vf.Parser | None = None,  # if rubric has parser
            task: str = "",
            info: vf.Info | None = None,
            **kwargs
        ) -> float:
            assert isinstance(parser, vf.Parser) and info == {} and prompt and state["seen"] == 1
            return 1.0 if task == "math" else 0.0

        env = Older(
            dataset=Dataset.from_list([{"question": "?", "answer": "x", "task": "math"}]),
            rubric=vf.Rubric(funcs=[my_reward], weights=[1.0]),
            message_type="chat",
            max_turns=2,
        )
        env.set_interleaved_rollouts(False)
        """
    )
    results = module.env.evaluate_sync(at(server), "echo", num_examples=1, rollouts_per_example=1, max_concurrent=4)
    assert results["reward"] == [1.0]
    assert results["task"] == ["math"]
    assert results["stop_conditions"] == ["max_turns_reached"]
    assert results["metrics"]["num_turns"] == [2.0]
    assert (results["example_id"], results["answer"], results["is_truncated"]) == ([0], ["x"], [False])
    assert [message["role"] for message in results["completion"][0]] == ["assistant", "user", "assistant"]


def test_older_client_configuration(alias: None) -> None:
    module = run(
        """
        from verifiers.types import ClientConfig

        config = ClientConfig(
            api_key_var="OPENAI_API_KEY", api_base_url="https://api.openai.com/v1", timeout=3600.0, max_connections=28000,
            max_keepalive_connections=28000, max_retries=10, extra_headers=None,
        )
        """
    )
    assert module.config.extra_headers == {}


def test_older_evaluation_configuration(alias: None) -> None:
    module = run(
        """
        from verifiers.types import ClientConfig, EvalConfig

        config = EvalConfig(
            env_id="x", env_args={}, env_dir_path="./environments", model="m", client_config=ClientConfig(), sampling_args={},
            num_examples=1, rollouts_per_example=1, max_concurrent=1, max_concurrent_generation=None, max_concurrent_scoring=None,
            extra_env_kwargs={}, print_results=False, verbose=False, state_columns=None, save_results=False, save_every=-1,
            save_to_hf_hub=False, hf_hub_dataset_name=None,
        )
        """
    )
    assert module.config.env_id == "x"


# Tasksets and harnesses


def test_a_taskset_and_a_harness(alias: None, server: ModelServer, tmp_path: Path) -> None:
    server.models["m"] = calling_once("search", query="x")
    module = run(
        '''
        import verifiers as vf
        import verifiers.v1 as v1

        def search(query: str) -> str:
            """Search the documents."""
            return f"found {query}"

        @v1.reward(weight=1.0)
        async def exact(task, state) -> float:
            return float(state["completion"][-1]["content"] == task["answer"])

        def load_rows():
            return [{"prompt": [{"role": "user", "content": "go"}], "answer": "found x", "max_turns": 4}]

        taskset = v1.Taskset(source=load_rows, taskset_id="docs", toolsets=[v1.Toolset(tools=[search])], rewards=[exact])
        harness = v1.Harness(client=config, model="m", system_prompt="Search first.")
        task = taskset.to_task(taskset.rows()[0])
        harness.attach(taskset)
        state = await harness.run(task, state=None)
        await harness.teardown()
        env = vf.Env(taskset=taskset, harness=v1.Harness(system_prompt="Search first."))
        ''',
        config=at(server),
    )
    state = module.state
    assert (state["stop_condition"], state["reward"], state["is_completed"]) == ("no_tools", 1.0, True)
    assert json.loads(json.dumps(state))["completion"][-1]["content"] == "found x"
    (output,) = evaluated(module.env, server)
    assert (output["reward"], output["stop_condition"]) == (1.0, "no_tools")
    with pytest.raises(TypeError, match=r"frozen|immutable|cannot"):
        module.task["answer"] = "other"
    for key in ("is_completed", "stop_condition", "is_truncated", "error"):
        with pytest.raises(RuntimeError, match=key):
            state[key] = None


def test_a_child_rollout_borrows(alias: None, server: ModelServer) -> None:
    server.models["m"] = lambda request: Reply("hello")
    module = run(
        """
        import verifiers.v1 as vf

        def bash(command: str) -> str:
            '''Run a command.'''
            return command

        child_harness = vf.Harness(max_turns=1)
        child_task = {"prompt": [{"role": "user", "content": "child"}]}
        children = []

        async def program(task, state):
            child_state = state.for_task(child_task, borrow=["model"], tools="bash")
            child_state = await child_harness.run(child_task, child_state)
            children.append(child_state)
            return {"heard": child_state["completion"][-1]["content"]}

        harness = vf.Harness(program=program, client=config, model="m", toolsets=[vf.Toolset(tools=[bash])])
        state = await harness.run({"prompt": [{"role": "user", "content": "parent"}]})
        """,
        config=at(server),
    )
    assert (module.state["heard"], module.state["stop_condition"]) == ("hello", "program_completed")
    assert module.children[0]["stop_condition"] == "no_tools"
    assert json.dumps(module.state)


def test_configurations_from_toml(alias: None, tmp_path: Path) -> None:
    path = tmp_path / "env.toml"
    path.write_text('[env.taskset]\ntaskset_id = "docs"\n[env.harness]\nmax_turns = 3\nmodel = "m"\n')
    module = run(
        """
        import verifiers.v1 as vf

        class MyTasksetConfig(vf.TasksetConfig):
            config: str = "own"

        taskset = MyTasksetConfig.from_toml(path, section="env.taskset")
        harness = vf.HarnessConfig.from_toml(path, section=["env", "harness"])
        copied = MyTasksetConfig(taskset, config="other")
        """,
        path=path,
    )
    assert (module.taskset.taskset_id, module.taskset.config, module.copied.taskset_id, module.copied.config) == (
        "docs",
        "own",
        "docs",
        "other",
    )
    assert (module.harness.max_turns, module.harness.model) == (3, "m")
    with pytest.raises(ValueError, match="max_turn"):
        verifiers_compat.HarnessConfig(max_turn=3)


# The command line's plugin


def test_the_plugin_of_the_prime_command(alias: None) -> None:
    module = run(
        """
        from verifiers.cli.plugins.prime import PRIME_PLUGIN_API_VERSION, PrimeCLIPlugin, get_plugin

        plugin = get_plugin()
        command = plugin.build_module_command(plugin.eval_module, ["my-env", "-n", "1"])
        """
    )
    assert module.PRIME_PLUGIN_API_VERSION == module.plugin.api_version == 1
    for name in ("eval", "gepa", "install", "init", "setup", "build"):
        assert getattr(module.plugin, f"{name}_module").endswith(f".cli.commands.{name}")
    assert module.command[1:] == ["-m", module.plugin.eval_module, "my-env", "-n", "1"]
    done = subprocess.run(module.plugin.build_module_command(module.plugin.eval_module, ["--help"]), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--rollouts-per-example" in done.stdout


# Signatures of the reference


SIGNATURES = """
Environment.generate(inputs, client, model, sampling_args=None, max_concurrent=-1, results_path=None, state_columns=None,
    save_results=False, push_to_hf_hub=False, hf_hub_dataset_name=None, independent_scoring=False, max_retries=0, on_start=None,
    on_progress=None, on_log=None)
Environment.evaluate(client, model, sampling_args=None, num_examples=-1, rollouts_per_example=1, max_concurrent=-1, results_path=None,
    state_columns=None, save_results=False, push_to_hf_hub=False, hf_hub_dataset_name=None, independent_scoring=False, max_retries=0,
    on_start=None, on_progress=None, on_log=None)
Environment.rollout(input, client, model, sampling_args=None)
Environment.get_model_response(state, prompt, client=None, model=None, tool_defs=None, sampling_args=None)
Environment.get_dataset(n=-1, seed=None)
Environment.get_eval_dataset(n=-1, seed=None)
Environment.increment_state_usage(state, input_tokens=0, output_tokens=0)
Environment.increment_state_usage_from_response(state, response)
Environment.is_completed(state)
Environment.add_rubric(rubric)
Environment.set_max_seq_len(max_seq_len)
Environment.set_score_rollouts(score_rollouts)
Environment.set_concurrency(concurrency)
Environment.start_server(address=None)
Rubric(funcs=None, weights=None, parser=None)
Rubric.add_reward_func(func, weight=1.0)
Rubric.add_metric(func, weight=0.0)
Rubric.add_class_object(name, obj)
Parser.parse(text)
Parser.parse_answer(completion)
ToolEnv(tools=None, max_turns=10, stop_errors=None)
MultiTurnEnv(max_turns=-1, timeout_seconds=None)
extract_boxed_answer(text, strict=False)
extract_hash_answer(text)
load_environment(env_id)
ensure_keys(keys)
Taskset(source=None, eval_source=None, taskset_id=None, system_prompt=None, user=None, config=None)
Harness(program=None, system_prompt=None, user=None, sandbox=None, client=None, model=None, sampling_args=None, max_turns=None,
    toolsets=None, config=None)
Harness.run(task, state=None)
Env(taskset, harness=None)
MCPTool(command, args=None, env=None, cwd=None)
Toolset(show=None, hide=None, bindings=None, objects=None, write=False, scope='rollout', sandbox=None, config=None)
"""
"""Calls with all documented arguments: those without a default by position, the others with their defaults."""


@pytest.mark.parametrize("call", [statement.value for statement in ast.parse(SIGNATURES).body], ids=lambda call: ast.unparse(call.func))
def test_documented_signatures(call: ast.Call) -> None:
    name = ast.unparse(call.func)
    owner, _, attribute = name.partition(".")
    found = getattr(verifiers_compat, owner)
    parameters = inspect.signature(getattr(found, attribute) if attribute else found).parameters
    documented = {argument.id: inspect.Parameter.empty for argument in call.args}
    documented |= {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    for parameter, default in documented.items():
        assert parameter in parameters, f"{name} has no parameter {parameter}"
        assert parameters[parameter].default == default, f"{name}({parameter}=...)"


ENVIRONMENT_ARGUMENTS: dict[str, Any] = {
    "eval_dataset": [{"question": "?"}],
    "system_prompt": "Be kind.",
    "few_shot": [{"role": "user", "content": "hi"}],
    "parser": verifiers_compat.Parser(),
    "rubric": verifiers_compat.Rubric(),
    "sampling_args": {"temperature": 1.0},
    "message_type": "chat",
    "tool_defs": [{"name": "t", "description": "", "parameters": {"type": "object", "properties": {}}}],
    "max_workers": 512,
    "env_id": "mine",
    "env_args": {"x": 1},
    "map_kwargs": {"num_proc": None},
    "max_seq_len": 10,
    "score_rollouts": True,
    "pass_threshold": 0.5,
}


@pytest.mark.parametrize("argument", ENVIRONMENT_ARGUMENTS)
def test_documented_arguments_of_environments(argument: str) -> None:
    value = ENVIRONMENT_ARGUMENTS[argument]
    env = verifiers_compat.SingleTurnEnv(dataset=[{"question": "?"}], **{argument: value})
    if argument in ("system_prompt", "env_id", "env_args", "max_seq_len", "score_rollouts", "pass_threshold", "message_type", "parser"):
        assert getattr(env, argument) == value
    if argument == "tool_defs":
        assert env.tool_defs[0].name == "t"


def test_documented_defaults_of_environments() -> None:
    env = verifiers_compat.SingleTurnEnv(dataset=[{"question": "?"}])
    assert (env.system_prompt, env.max_seq_len, env.score_rollouts, env.pass_threshold) == (None, None, True, 0.5)
    assert (type(env.parser), env.env_args, env.max_turns) == (verifiers_compat.Parser, {}, 1)
    with pytest.raises(ValueError, match="dataset"):
        verifiers_compat.SingleTurnEnv()
    with pytest.raises(TypeError, match="max_turns"):
        verifiers_compat.SingleTurnEnv(dataset=[{"question": "?"}], max_turns=2)


MODELS: dict[str, dict[str, Any]] = {
    "HarnessConfig": {"program": None, "system_prompt": None, "sandbox": None, "model": None, "sampling_args": {}, "max_turns": 10},
    "TasksetConfig": {"taskset_id": None, "system_prompt": None, "source": None, "eval_source": None, "user": None},
    "EnvConfig": {"taskset": None, "harness": None},
    "RolloutTiming": {},
    "TimeSpan": {"start": 0.0, "end": 0.0, "duration": 0.0},
    "TimeSpans": {"spans": [], "duration": 0},
}


@pytest.mark.parametrize("name", MODELS)
def test_documented_defaults_of_models(name: str) -> None:
    made = getattr(verifiers_compat, name)()
    found = {field: getattr(made, field) for field in MODELS[name]}
    assert {field: [*value] if isinstance(value, tuple) else value for field, value in found.items()} == MODELS[name]


def test_documented_fields_of_evaluations() -> None:
    config = verifiers_compat.EvalConfig(
        env_id="x",
        env_args={},
        env_dir_path=".",
        model="m",
        client_config=verifiers_compat.ClientConfig(),
        sampling_args={},
        num_examples=1,
        rollouts_per_example=1,
        max_concurrent=1,
    )
    defaults = {
        "endpoint_id": None,
        "independent_scoring": False,
        "extra_env_kwargs": {},
        "max_retries": 0,
        "verbose": False,
        "state_columns": None,
        "save_results": False,
        "resume_path": None,
        "save_to_hf_hub": False,
        "hf_hub_dataset_name": None,
    }
    assert {name: getattr(config, name) for name in defaults} == defaults


def test_documented_constants() -> None:
    assert verifiers_compat.State.INPUT_FIELDS == ["prompt", "answer", "info", "example_id"]
    assert set(typing.get_args(verifiers_compat.ClientType)) == {
        "openai_completions",
        "openai_chat_completions",
        "openai_chat_completions_token",
        "openai_responses",
        "renderer",
        "anthropic_messages",
        "nemorl_chat_completions",
    }
    built_in = {"has_error", "prompt_too_long", "max_turns_reached", "timeout_reached", "max_total_completion_tokens_reached"}
    assert all(hasattr(verifiers_compat.MultiTurnEnv, name) for name in built_in | {"has_final_env_response"})
    assert hasattr(verifiers_compat.ToolEnv, "no_tools_called")


TOP_LEVEL = """
stop cleanup teardown setup update metric reward advantage Error ModelError InvalidModelResponseError EmptyModelResponseError
OverlongPromptError ToolError ToolParseError ToolCallError InfraError TunnelError SandboxError BrowserSandboxError Parser
XMLParser ThinkParser MaybeThinkParser Rubric RubricGroup JudgeRubric MathRubric Environment MultiTurnEnv SingleTurnEnv ToolEnv
SandboxEnv PythonEnv SWEDebugEnv StatefulToolEnv EnvGroup GymEnv MCPEnv OpenEnvEnv ReasoningGymEnv TextArenaEnv
Env EnvConfig Task Taskset TasksetConfig Harness HarnessConfig
Toolset ToolsetConfig MCPTool MCPToolConfig SandboxConfig User UserConfig Client OpenAIChatCompletionsClient
OpenAICompletionsClient OpenAIResponsesClient AnthropicMessagesClient RendererClient OpenAIChatCompletionsTokenClient
NeMoRLChatCompletionsClient load_environment load_example_dataset extract_boxed_answer extract_hash_answer ensure_keys
MissingKeyError setup_logging log_level quiet_verifiers print_prompt_completions_sample DatasetBuilder Messages ChatMessage
SystemMessage UserMessage AssistantMessage ToolMessage TextMessage Info SamplingArgs IndividualRewardFunc GroupRewardFunc
RewardFunc ClientType ModelResponse State RolloutInput RolloutOutput TrajectoryStep TrajectoryStepTokens TimeSpan TimeSpans
RolloutTiming TokenUsage GenerateOutputs VersionInfo GenerateMetadata RolloutScore RolloutScores ProcessedOutputs Response
ResponseMessage Tool ToolCall Usage ResponseTokens ClientConfig EndpointClientConfig EvalConfig EvalRunConfig Endpoint Endpoints
StartCallback ProgressCallback LogCallback ErrorInfo
"""


@pytest.mark.parametrize("name", TOP_LEVEL.split())
def test_documented_names(name: str) -> None:
    assert getattr(verifiers_compat, name) is not None


@pytest.mark.parametrize("name", ["BrowserEnv"])
def test_names_that_are_left_out_say_why(name: str) -> None:
    import verifiers_compat

    with pytest.raises(ImportError, match=f"{name} is not offered: .+"):
        getattr(verifiers_compat, name)
