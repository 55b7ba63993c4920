"""What trainers take: samples of rollouts, token by token, with what they earned and how far that is above their group.

`vfgym.rollout` gives groups of rollouts; `samples` makes samples of their states, or of rows that were saved:

>>> import asyncio
>>> import vfgym
>>> from vfgym.training import samples
>>> env = vfgym.SingleTurnEnv(
...     dataset=[{"question": "Heads or tails?", "answer": "heads"}],
...     rubric=vfgym.Rubric(lambda completion, answer: float(completion[-1].content == answer)),
... )
>>> said = iter(["heads", "tails", "heads", "edge"])
>>> async def play():
...     return [group async for group in vfgym.rollout(env, lambda observation, info: next(said), example_ids=[0], group_size=4)]
>>> [group] = asyncio.run(play())
>>> group.rewards
[1.0, 0.0, 1.0, 0.0]
>>> [(sample.turns, sample.advantage) for sample in samples(group.states)]
[([0], 0.5), ([0], -0.5), ([0], 0.5), ([0], -0.5)]
"""

from vfgym.results.credit import Advantage, Credit, Failures
from vfgym.results.samples import NoTokens, Sample, Samples, samples
from vfgym.runs.rollout import Group, RolloutStream, rollout
from vfgym.runs.updates import OnUpdate
from vfgym.training.local_policy import LocalPolicy
from vfgym.training.packing import Batch, pack

__all__ = [
    "Advantage",
    "Batch",
    "Credit",
    "Failures",
    "Group",
    "LocalPolicy",
    "NoTokens",
    "OnUpdate",
    "RolloutStream",
    "Sample",
    "Samples",
    "pack",
    "rollout",
    "samples",
]
