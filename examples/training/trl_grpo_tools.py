"""GRPO with TRL: a tiny transformer learns which bin each thing belongs in, by calling a tool. Takes two minutes on a CPU.

Things to throw away come one by one: the tool `put` throws one into a bin, and returns the next. The model is made here, and reads
characters. Random weights never write a valid call, so it is warmed up first, on conversations of the oracle in most of which the calls
are those of another task: it learns what a call looks like, and little of which one is right. That it learns from rewards.

It is on-policy: TRL plays the groups of a step with the weights that this step updates.
"""

import tempfile
from typing import Literal

import numpy as np
import torch
from curves import read_arguments, write_curve
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, set_seed
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

import vfgym
from vfgym.messages import plain
from vfgym.training.trl import dataset, environment_factory, reward_funcs

BIN_OF = {"letter": "paper", "box": "paper", "bottle": "glass", "lens": "glass", "can": "metal", "nail": "metal"}
WARM_UP_STEPS, SHARE_RIGHT = 200, 0.25
UPDATES, PASSES, GROUPS, GROUP_SIZE = 24, 4, 8, 8

CHAT_TEMPLATE = """\
{%- for tool in tools or [] %}{{ '<|im_start|>system\n' + tool.function.name + '<|im_end|>\n' }}{% endfor %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' + (message.content or '') }}
    {%- for call in message.tool_calls or [] %}
        {%- set arguments = call.function.arguments %}
        {{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
        {{- (arguments if arguments is string else arguments | tojson) + '}</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
CALL = {"open": "<tool_call>", "close_pattern": "</tool_call>", "repeats": True, "content": "json"}
RESPONSE_TEMPLATE = {  # by which transformers reads an answer
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {**CALL, "transform": {"type": "function", "function": "{content}"}},
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}
TRAINING = {"report_to": "none", "use_cpu": True, "bf16": False, "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1}
TRAINING["gradient_checkpointing"] = False  # it saves memory, which a model of this size does not need


class RecyclingEnv(vfgym.StatefulToolEnv):
    """Rewards the share of things that are thrown into the right bin."""

    def __init__(self, **arguments):
        super().__init__(rubric=vfgym.Rubric(self.share_right), **arguments)
        self.add_tool(self.put, args_to_skip=["state"])

    def setup_state(self, state):
        """Note what is to be thrown away."""
        state["left"], state["num_right"] = list(state["info"]["things"]), 0
        return super().setup_state(state)

    def update_tool_args(self, tool_name, tool_args, messages, state, **kwargs):
        """Give the tool the episode, which the model knows nothing of."""
        return {**tool_args, "state": state}

    def put(self, bin: Literal["paper", "glass", "metal"], state: vfgym.State) -> str:
        """Throw the thing into a bin."""
        if state["left"]:
            state["num_right"] += bin == BIN_OF[state["left"].pop(0)]
        return state["left"][0] if state["left"] else "nothing"

    def share_right(self, state):
        """Return the share of things that are in the right bin."""
        return state["num_right"] / len(state["info"]["things"])

    def oracle(self, state):
        """Return the right call, or what is said after the last thing."""
        if not state["left"]:
            return "done"
        return vfgym.AssistantMessage(tool_calls=[vfgym.ToolCall("call", "put", f'{{"bin": "{BIN_OF[state["left"][0]]}"}}')])


def make_env():
    """Return the environment. A third of all pairs of things is held out: each thing is as often in each place as any other."""
    rows = {"train": [], "eval": []}
    for first, one in enumerate(BIN_OF):
        for second, other in enumerate(BIN_OF):
            rows["train" if (first + second) % 3 else "eval"].append({"question": one, "info": {"things": [one, other]}})
    return RecyclingEnv(dataset=rows["train"], eval_dataset=rows["eval"])


def make_tokenizer():
    """Return a tokenizer of characters."""
    characters = ["\n", *map(chr, range(32, 127))]
    tokenizer = Tokenizer(models.BPE({character: number for number, character in enumerate(characters)}, []))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|pad|>"])
    tokenizer.add_tokens(["<tool_call>", "</tool_call>"])
    ends = {"eos_token": "<|im_end|>", "pad_token": "<|pad|>", "padding_side": "left"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=CHAT_TEMPLATE, response_template=RESPONSE_TEMPLATE, **ends)


def make_model(tokenizer):
    """Return a transformer of two layers, with random weights."""
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4}
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), initializer_range=0.1, **shape, **ends))


def warm_up(model, tokenizer, env, seed, folder):
    """Train the model on conversations of the oracle, most of which have the answers of another one."""
    rng = np.random.default_rng(seed)
    rows = vfgym.evaluate(env, "oracle", split="train", progress=False)["outputs"]
    _, info = env.reset()
    conversations = []
    for row in rows * 20:
        other = row if rng.random() < SHARE_RIGHT else rows[rng.integers(len(rows))]
        both = zip(row["completion"], other["completion"], strict=True)
        completion = [said if own["role"] == "assistant" else own for own, said in both]
        conversations.append({"messages": plain([*row["prompt"], *completion]), "tools": info["tools"]})
    config = SFTConfig(folder, max_steps=WARM_UP_STEPS, learning_rate=5e-3, seed=seed, **TRAINING)
    SFTTrainer(model, config, train_dataset=Dataset.from_list(conversations), processing_class=tokenizer).train()


def shuffle(play, seed):
    """Return a reward function that adds to what each rollout earned what another one of its group earned more."""
    rng = np.random.default_rng(seed)

    def add_difference(completions, environments, **columns):
        play(completions, environments=environments, **columns)
        earned = np.array([environment.get_reward() for environment in environments]).reshape(-1, GROUP_SIZE)
        return (rng.permuted(earned, axis=1) - earned).flatten().tolist()

    return add_difference


def make_trainer(model, tokenizer, env, arguments, folder):
    """Return the trainer, in whose groups all rollouts have one task."""
    [play] = reward_funcs(env)  # plays the last answers; the environment rewards them
    config = GRPOConfig(
        folder,
        per_device_train_batch_size=GROUPS * GROUP_SIZE,
        per_device_eval_batch_size=192,
        num_generations=GROUP_SIZE,
        num_generations_eval=32,
        num_iterations=PASSES,
        max_steps=UPDATES * PASSES,
        max_completion_length=400,
        max_tool_calling_iterations=3,
        learning_rate=9e-4,
        seed=arguments.seed,
        **TRAINING,
    )
    return GRPOTrainer(
        model,
        args=config,
        environment_factory=environment_factory(env),
        reward_funcs=shuffle(play, arguments.seed) if arguments.shuffle_rewards else play,
        train_dataset=dataset(env),
        eval_dataset=dataset(env, split="eval"),
        processing_class=tokenizer,
    )


if __name__ == "__main__":
    arguments = read_arguments(__doc__.splitlines()[0])
    set_seed(arguments.seed)
    torch.set_num_threads(1)  # sums of several threads differ from run to run
    env, tokenizer = make_env(), make_tokenizer()
    model = make_model(tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        warm_up(model, tokenizer, env, arguments.seed, folder)
        trainer = make_trainer(model, tokenizer, env, arguments, folder)
        before = trainer.evaluate()["eval_reward"]
        trainer.train()
        after = trainer.evaluate()["eval_reward"]
    means = [logged["reward"] for logged in trainer.state.log_history if "reward" in logged]
    write_curve(arguments, means, {"before": before, "after": after})
