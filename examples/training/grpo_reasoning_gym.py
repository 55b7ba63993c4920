"""GRPO with a GRU that reads bytes: learns how many sisters Alice's brother has, from nothing. Takes less than a minute on a CPU.

"Alice has 3 brothers and she also has 2 sisters. How many sisters does Bob's brother have?" The right number, of two that are given, and
one more: she is a sister too. Nothing is known at the start, not even that an answer is a digit.

It is on-policy (``max_staleness=0``) where an update begins; each goes over its samples several times, and the ratio of probabilities says
how far the policy has moved meanwhile.
"""

import asyncio
import time

import numpy as np
import torch
from curves import read_arguments, shuffle_rewards, write_curve
from torch import nn

import vfgym
from vfgym.training import pack, samples
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv

NUM_BYTES, HIDDEN = 128, 128  # ASCII
UPDATES, GROUPS, GROUP_SIZE = 27, 16, 8
PASSES, RATE, LEAST_RATIO, MOST_RATIO, ENTROPY = 11, 3e-3, 0.5, 3.0, 0.06


class ByteModel(nn.Module):
    """Gives the log-probability of each next byte; it remembers the most that each unit of a GRU said so far."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(NUM_BYTES, 64)
        self.gru = nn.GRU(64, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, NUM_BYTES)

    def forward(self, ids):
        """Return (texts, bytes, 128) log-probabilities for (texts, bytes) ids."""
        hidden, _ = self.gru(self.embedding(ids))
        return self.head(hidden.cummax(dim=1).values).log_softmax(-1)


class BytePolicy(vfgym.Client):
    """Answers with one byte. A question is read from its end, so that what it is about comes last and is fresh."""

    def __init__(self):
        self.model = ByteModel()
        self.optimizer = torch.optim.Adam(self.model.parameters(), RATE)
        self.policy_version = 0
        self.seconds = 0.0  # of CPU, spent on the model
        self._read = {}  # what this version of the model says after each question: a group asks for it several times

    async def get_response(self, prompt, model="", sampling_args=None, tools=None, **kwargs):
        """Sample an answer, and return it with its ids and log-probabilities."""
        began = time.process_time()
        ids = list(prompt[-1]["content"].encode())[::-1]
        key = bytes(ids)
        if key not in self._read:
            with torch.no_grad():
                self._read[key] = self.model(torch.tensor([ids]))[0, -1]
        answer = int(torch.multinomial(self._read[key].exp(), 1))
        tokens = vfgym.ResponseTokens(ids, [0] * len(ids), [answer], [1], [float(self._read[key][answer])])
        self.seconds += time.process_time() - began
        return vfgym.Response("", 0, model, None, vfgym.ResponseMessage(chr(answer), tokens=tokens))

    def update(self, states):
        """Go over the samples of some groups: each byte gets likelier by how far its rollout is above its group."""
        began = time.process_time()
        batch = pack(samples(states, advantage="group_std")).torch()
        ids, mask = batch.ids, batch.mask[:, 1:]
        old, advantages = batch.logprobs[:, 1:][mask], batch.advantages[:, 1:][mask]
        for _ in range(PASSES):
            logprobs = self.model(ids[:, :-1])[mask]
            ratio = (logprobs.gather(1, ids[:, 1:][mask][:, None])[:, 0] - old).exp()
            gain = torch.minimum(ratio * advantages, ratio.clamp(LEAST_RATIO, MOST_RATIO) * advantages)
            entropy = -(logprobs.exp() * logprobs).sum(-1)
            self.optimizer.zero_grad()
            (-gain - ENTROPY * entropy).mean().backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
        self._read.clear()
        self.policy_version += 1
        self.seconds += time.process_time() - began


def fresh_tasks(env):
    """Return the ids of evaluation tasks whose questions are not among those of training."""
    known = {question for _, question in questions(env, "train")}
    return [example_id for example_id, question in questions(env, "eval") if question not in known]


def questions(env, split):
    """Return the id and the question of each task."""
    tasks = env.tasks_of(split)
    return [(tasks.example_id_of(place), tasks.input(place)["prompt"][-1]["content"]) for place in range(len(tasks))]


def held_out(env, policy):
    """Return the mean reward on tasks that were not trained on."""
    agent = vfgym.ModelAgent(policy, "gru")
    results = vfgym.evaluate(env, agent, example_ids=fresh_tasks(env), max_concurrent=1, progress=False)
    return results["metadata"]["avg_reward"]


async def train(env, policy, arguments):
    """Return the mean reward of each update's rollouts."""
    rng = np.random.default_rng(arguments.seed)
    means, states, rewards = [], [], []
    options = {"group_size": GROUP_SIZE, "seed": arguments.seed, "max_concurrent": 1, "max_staleness": 0}
    async for group in vfgym.rollout(env, policy, model="gru", **options):
        rewards += [reward for reward in group.rewards if reward is not None]  # None is what infrastructure broke
        if arguments.shuffle_rewards:
            shuffle_rewards(group, rng)
        states += group.states
        if len(states) == GROUPS * GROUP_SIZE:
            policy.update(states)
            means.append(float(np.mean(rewards)))
            states, rewards = [], []
            if len(means) == UPDATES:
                return means


if __name__ == "__main__":
    arguments = read_arguments(__doc__.splitlines()[0])
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)  # sums of several threads differ from run to run
    env = ReasoningGymEnv(
        "aiw",
        num_train_examples=UPDATES * GROUPS,
        num_eval_examples=300,
        system_prompt=None,
        parser=vfgym.Parser(),
        seed=arguments.seed,
        dataset_config={"task_type_weights": [1.0, 0.0, 0.0], "max_entities": 4},  # siblings; at most 4 of them
    )
    policy = BytePolicy()
    before = held_out(env, policy)
    began, policy.seconds = time.process_time(), 0.0
    means = asyncio.run(train(env, policy, arguments))
    share = 1 - policy.seconds / (time.process_time() - began)
    write_curve(arguments, means, {"before": before, "after": held_out(env, policy)}, env_cpu_share=share)
