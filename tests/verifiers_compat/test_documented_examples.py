"""The examples of the documented rollout API, run as they are written: through ``import verifiers as vf``.

Each example is the source of a module, without postponed annotations, as users write them. What it evaluates asks a real server on
loopback by real clients; data sets of the hub are local. What its parts promise is tested with the modules that have them.
"""

import ast
import asyncio
import inspect
import sys
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import datasets
import pytest

from tests.verifiers_compat.environments import asking
from verifiers_compat.alias import install, uninstall
from vfgym.clients import config as client_config
from vfgym.model_server import ModelServer


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
