"""`LocalPolicy`: ids that are never tokenised again, and the log-probabilities of the distribution that was sampled from."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import vfgym
from vfgym.errors import ConfigurationError, ModelError, OverlongPromptError
from vfgym.training import samples

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

pytestmark = [pytest.mark.exhaustive, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

CHATML = (
    "{% if tools %}<|im_start|>system\nTools: {{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HEADERS = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{% if m.tool_calls %}{{ m.tool_calls[0].function | tojson }}{% else %}{{ (m.content or '') | trim }}{% endif %}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
INSTRUCT = (
    "{% for m in messages %}{% if m.role in ('user', 'system') %}[INST] {{ m.content }} [/INST]"
    "{% elif m.role == 'tool' %}[RESULT] {{ m.content }} [/RESULT]"
    "{% else %} {{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>{% endif %}{% endfor %}"
)
DROPS_THOUGHTS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content or '' }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tokenizer(template: str) -> Any:
    """A byte-level tokenizer that learned a few merges, so that there are many ways to write one text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|im_start|>", "<|im_end|>", "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the cat sat on the mat and then the other cat sat there too"] * 20, trainer)
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", bos_token="<s>")
    made.chat_template = template
    return made


def make_model(tokenizer: Any, context: int = 4096) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=context,
        eos_token_id=tokenizer.eos_token_id,
    )
    return transformers.LlamaForCausalLM(config)


def score_again(model: Any, ids: list[int], temperature: float) -> list[float]:
    """The log-probability of each id after those before it."""
    with torch.no_grad():
        logprobs = (model(torch.tensor([ids])).logits[0].float() / temperature).log_softmax(-1)
    return [0.0, *logprobs[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()]


def look(word: str) -> str:
    """Look a word up.

    Args:
        word: The word.
    """
    return f"{word} is a word"


class Office(vfgym.ToolEnv):
    """Asks on, whatever it hears: every other answer is one that calls a tool."""

    def __init__(self, max_turns: int = 5) -> None:
        super().__init__(dataset=[{"question": "the cat?"}, {"question": "on the mat"}], tools=[look], max_turns=max_turns)

    def env_response(self, messages: Any, state: vfgym.State) -> Any:
        calls = messages[-1].get("tool_calls")
        return super().env_response(messages, state) if calls else [vfgym.UserMessage("and then?")]

    def may_stop(self, state: vfgym.State) -> bool:
        return len(state["trajectory"]) >= self.max_turns

    @vfgym.stop
    def no_tools_called(self, state: vfgym.State) -> bool:
        return False


def calls_sometimes(text: str) -> Any:
    """Reads a call into every text of even length."""
    from vfgym.training.local_policy import Parsed

    call = vfgym.ToolCall("c1", "look", json.dumps({"word": text[:3]}))
    return Parsed(text, None, [call] if len(text) % 2 == 0 else [])


async def played(env: Any, policy: Any, rollouts: int = 1, **sampling: Any) -> list[vfgym.State]:
    agent = vfgym.ModelAgent(policy, "tiny", sampling_args={"max_tokens": 12, **sampling})
    groups = vfgym.rollout(env, agent, example_ids=[0, 1], group_size=rollouts)
    try:
        return [state async for group in groups for state in group.states]
    finally:
        await policy.close()


@pytest.mark.parametrize("template", [CHATML, HEADERS, INSTRUCT], ids=["chatml", "headers", "instruct"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
async def test_the_stored_log_probabilities_are_those_that_the_model_gives_again(template: str, temperature: float) -> None:
    from vfgym.training import LocalPolicy

    tokenizer = make_tokenizer(template)
    model = make_model(tokenizer)
    policy = LocalPolicy(model, tokenizer, max_batch=4, parse=calls_sometimes)
    policy.policy_version = 7
    states = await played(Office(), policy, rollouts=3, temperature=temperature)
    assert len(states) == 6
    for sample in samples(states):
        assert (sample.turns, sample.fork, sample.policy_versions) == ([0, 1, 2, 3, 4], None, [7] * 5)
        again = score_again(model, sample.ids, temperature)
        for stored, scored, kept in zip(sample.logprobs, again, sample.mask, strict=True):
            assert stored == pytest.approx(scored if kept else 0.0, abs=1e-4)
    assert any(message["role"] == "tool" for state in states for message in state["completion"])


async def test_the_ids_of_a_prompt_are_known_without_asking() -> None:
    from vfgym.training import LocalPolicy

    tokenizer = make_tokenizer(CHATML)
    policy = LocalPolicy(make_model(tokenizer), tokenizer, parse=calls_sometimes)
    for state in await played(Office(), policy):
        for turn, step in enumerate(state["trajectory"]):
            known = {"trajectory": state["trajectory"][:turn]}
            assert await policy.prompt_ids(step["prompt"], "", state["tool_defs"], state=known) == step["tokens"]["prompt_ids"]


async def test_a_template_that_drops_thoughts_is_a_fork_that_says_so() -> None:
    from vfgym.training import LocalPolicy
    from vfgym.training.local_policy import Parsed

    tokenizer = make_tokenizer(DROPS_THOUGHTS)
    policy = LocalPolicy(make_model(tokenizer), tokenizer, parse=lambda text: Parsed("so it is", text, []))
    [sample, *others] = samples((await played(Office(max_turns=3), policy))[:1])
    assert (sample.turns, [other.turns for other in others]) == ([0], [[1], [2]])
    assert all("turn" in str(other.fork) and "tokenised anew" in str(other.fork) for other in others)


async def test_one_that_cannot_be_answered_harms_no_other() -> None:
    from vfgym.training import LocalPolicy

    tokenizer = make_tokenizer(CHATML)
    model = make_model(tokenizer, context=200)
    policy = LocalPolicy(model, tokenizer, max_batch=4, wait_ms=200)
    forward = model.forward

    def fails_for_x(input_ids: Any, **kwargs: Any) -> Any:
        if (input_ids == tokenizer("X")["input_ids"][0]).any():
            raise RuntimeError("no memory for this one")
        return forward(input_ids=input_ids, **kwargs)

    model.forward = fails_for_x
    asked = [policy.get_response([vfgym.UserMessage(text)], "m", {"max_tokens": 3}) for text in ("a", "X", "b", "c" * 500)]
    first, failed, third, long = await asyncio.gather(*asked, return_exceptions=True)
    assert first.usage.completion_tokens <= 3
    assert third.message.tokens.completion_logprobs
    assert isinstance(failed, ModelError)
    assert "no memory for this one" in str(failed)
    assert isinstance(long, OverlongPromptError)
    with pytest.raises(ConfigurationError, match=r"no 'temprature'.*Did you mean"):
        await policy.get_response([vfgym.UserMessage("a")], "m", {"temprature": 1})
    await policy.close()
    await policy.close()


def test_a_tokenizer_without_a_template_is_refused() -> None:
    from vfgym.training import LocalPolicy

    with pytest.raises(ConfigurationError, match="no chat_template"):
        LocalPolicy(make_model(make_tokenizer(CHATML)), make_tokenizer(""))
