"""Tiny environments of the rollout API, and the tools, scores and configurations that they are played with."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from datasets import Dataset

import verifiers_compat as vf

ROW = {"question": "1 + 1?", "answer": "2"}
ROWS = [{"question": f"question {index}", "answer": str(index)} for index in range(4)]


def right(completion: vf.Messages, answer: str) -> float:
    """Score whether the last message is the answer."""
    return float(bool(completion) and completion[-1]["content"] == answer)


def look(key: str) -> str:
    """Look something up."""
    return f"value of {key}"


def single(*rows: dict[str, Any], **kwargs: Any) -> vf.SingleTurnEnv:
    """Return an environment of one turn, about `ROW` where no rows are given, that scores with `right`."""
    kwargs.setdefault("rubric", vf.Rubric(right))
    return vf.SingleTurnEnv(dataset=Dataset.from_list(list(rows or [ROW])), **kwargs)


def four(rows: Any = ROWS, **kwargs: Any) -> vf.SingleTurnEnv:
    """Return an environment of one turn about `ROWS`, that scores with `right`."""
    return vf.SingleTurnEnv(dataset=rows, rubric=vf.Rubric(right), **kwargs)


def asking(url: str, **fields: Any) -> vf.ClientConfig:
    """Return the configuration of a client that asks a server once."""
    return vf.ClientConfig(api_base_url=url, api_key="sk-test", max_retries=0, **fields)


class Talk(vf.MultiTurnEnv):
    """Says how many turns there were, without an end of its own."""

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        return [{"role": "user", "content": f"turn {len(state['trajectory'])}"}]


class Countdown(gym.Env[int, int]):
    """A game of three moves, each of which gives 1.0."""

    observation_space = gym.spaces.Discrete(10)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 3
        return self.left, {}

    def step(self, action: int) -> Any:
        self.left -= 1
        return self.left, 1.0, self.left == 0, False, {}


class Score:
    """A game that ends with its second move and shows what was scored."""

    def reset(self, seed: int) -> Any:
        self.moves, self.seed = 0, seed
        return seed, {}

    def step(self, action: str) -> Any:
        self.moves += 1
        return self.moves, 1.0, self.moves == 2, False, {}


WAYS = ("a plain method", "an async method", "a plain function put on the object", "an async function put on the object")


def replacing(cls: Any, name: str, way: str, calls: list[str], *args: Any, **kwargs: Any) -> Any:
    """Return an object of a class, one of whose hooks notes that it was called and goes on to the library's own."""

    def plain(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return own(*args, **kwargs)

    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        result = own(*args, **kwargs)
        return await result if hasattr(result, "__await__") else result

    func = awaiting if "async" in way else plain
    if "put on" in way:
        made = cls(*args, **kwargs)
        own = getattr(made, name)
        setattr(made, name, func)
        return made
    own = getattr(cls, name)
    return type("Own", (cls,), {name: func})(*args, **kwargs)


class Ledger(vf.StatefulToolEnv):
    """Writes into a book of the rollout, whose argument the model does not see."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(dataset=[ROW], **kwargs)
        self.add_tool(self.write, args_to_skip=["book"])

    async def setup_state(self, state: vf.State, **kwargs: Any) -> vf.State:
        state = await super().setup_state(state) or state
        state["book"] = []
        return state

    async def write(self, text: str, book: list[str]) -> str:
        """Write something."""
        book.append(text)
        return f"{len(book)} lines"

    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: vf.Messages, state: vf.State, **kwargs: Any
    ) -> dict[str, Any]:
        return {**tool_args, "book": state["book"]}
