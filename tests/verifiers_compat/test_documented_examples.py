"""The examples of the documented rollout API, run as they are written: through ``import verifiers as vf``.

Each example is the source of a module, without postponed annotations, as users write them. What it evaluates asks a real server on
loopback by real clients; data sets of the hub are local. What its parts promise is tested with the modules that have them.
"""

import ast
import asyncio
import importlib.util
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import datasets
import pytest

import verifiers_compat
from tests.verifiers_compat.environments import asking
from verifiers_compat.alias import install, uninstall
from vfgym.aio.background import wait
from vfgym.clients import config as client_config
from vfgym.model_server import ModelRequest, ModelServer


@pytest.fixture(autouse=True)
def alias() -> Iterator[None]:
    install()
    yield
    uninstall()
    assert not [name for name in sys.modules if name.partition(".")[0] == "verifiers"]


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


def evaluated(env: Any, server: ModelServer, model: str = "m", **options: Any) -> list[Any]:
    outputs: list[Any] = env.evaluate_sync(asking(server.openai_url), model, **options)["outputs"]
    assert [output["error"] for output in outputs] == [None] * len(outputs)
    assert [output.get("metrics_errors") for output in outputs] == [None] * len(outputs)
    return outputs


def test_a_first_environment(server: ModelServer) -> None:
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


def test_judge_rubrics(server: ModelServer) -> None:
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


def test_a_game_in_several_turns(server: ModelServer) -> None:
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
def test_a_game_that_is_lost(server: ModelServer, answer: str, max_turns: int, stop_condition: str, length: int) -> None:
    server.models["m"] = lambda request: answer
    (output,) = evaluated(run(GUESSING).load_environment(num_examples=1, max_turns=max_turns), server)
    assert (output["stop_condition"], output["reward"], len(output["completion"])) == (stop_condition, 0.0, length)


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
"""  # noqa: W293, it is a quotation  # noqa: W293, it is a quotation


def test_an_environment_with_its_own_rollout(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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


def test_stepping_an_environment_with_its_own_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "load_dataset", lambda *args, **kwargs: datasets.Dataset.from_list([{**GSM8K, "answer": "72"}]))
    env = run(OWN_ROLLOUT.partition("# Evaluate")[0]).load_environment()
    observation, _ = env.reset(seed=0)
    assert observation[-1]["content"] == GSM8K["question"]
    _, reward, terminated, truncated, _ = env.step("72")
    assert (reward, terminated, truncated) == (1.0, True, False)


def test_ensure_keys(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_environment_of_the_older_generation(server: ModelServer) -> None:
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
    results = module.env.evaluate_sync(asking(server.openai_url), "echo", num_examples=1, rollouts_per_example=1, max_concurrent=4)
    assert results["reward"] == [1.0]
    assert results["task"] == ["math"]
    assert results["stop_conditions"] == ["max_turns_reached"]
    assert results["metrics"]["num_turns"] == [2.0]
    assert (results["example_id"], results["answer"], results["is_truncated"]) == ([0], ["x"], [False])
    assert [message["role"] for message in results["completion"][0]] == ["assistant", "user", "assistant"]


def test_the_plugin_of_the_prime_command() -> None:
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
        assert importlib.util.find_spec(getattr(module.plugin, f"{name}_module"))
    assert module.command[1:] == ["-m", module.plugin.eval_module, "my-env", "-n", "1"]
