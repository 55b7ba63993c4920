"""A taskset: what some fruits cost together. The model has a tool that knows the prices."""

import random
import re

import verifiers_compat.v1 as vf

PRICES = {"apple": 3, "pear": 4, "plum": 1, "melon": 6, "fig": 2}


class PriceListConfig(vf.TasksetConfig):
    """What a run may set, in ``[env.taskset]`` or as ``config`` of `load_environment`."""

    num_tasks: int = 20
    max_fruits: int = 4
    seed: int = 0


class PriceListEnvConfig(vf.EnvConfig):
    """The configuration of the environment: its taskset's and its harness's."""

    taskset: PriceListConfig = PriceListConfig()
    harness: vf.HarnessConfig = vf.HarnessConfig()


class Prices:
    """What the tool looks into, one for each rollout. The model never sees it."""

    def __init__(self) -> None:
        """Begin with no lookups."""
        self.lookups: list[str] = []

    def look_up(self, fruit: str) -> int:
        """Return a price, and remember that it was asked for."""
        self.lookups.append(fruit)
        return PRICES[fruit]


async def price(fruit: str, prices: Prices, state: vf.State) -> int:
    """Return what a fruit costs.

    Args:
        fruit: Name of the fruit, in the singular.
        prices: Bound to an object, and so hidden from the model.
        state: Given to every tool that asks for it.
    """
    cost = prices.look_up(fruit)
    state["lookups"] = prices.lookups
    return cost


class PriceList(vf.Taskset):
    """The tasks, their tool and their signals."""

    config_type = PriceListConfig

    def __init__(self, config: PriceListConfig) -> None:
        """Make the taskset that a configuration describes."""
        tools = vf.Toolset([price], bindings={"price.prices": "objects.prices"}, objects={"prices": Prices}, scope="rollout")
        super().__init__(
            source=lambda: make_rows(config, config.seed),
            eval_source=lambda: make_rows(config, config.seed + 1),
            system_prompt="Look each price up once. End with the sum.",
            toolsets=[tools],
            config=config,
        )

    @vf.reward(weight=1.0)
    async def correct(self, task: vf.Task, state: vf.State) -> float:
        """Reward the right sum, which must be the last number that was said."""
        numbers = re.findall(r"\d+", state["completion"][-1]["content"] or "")
        return float(numbers[-1:] == [task["answer"]])

    @vf.reward(weight=0.1)
    async def frugal(self, task: vf.Task, state: vf.State) -> float:
        """Reward a rollout that asks for each price once."""
        return float(sorted(state.get("lookups", [])) == sorted(task["info"]["fruits"]))

    @vf.metric
    async def lookups(self, task: vf.Task, state: vf.State) -> float:
        """Count the prices that were asked for."""
        return len(state.get("lookups", []))


def make_rows(config: PriceListConfig, seed: int) -> list[dict[str, object]]:
    """Return the tasks of a seed."""
    rng = random.Random(seed)
    rows: list[dict[str, object]] = []
    for _ in range(config.num_tasks):
        fruits = rng.sample(sorted(PRICES), rng.randint(1, config.max_fruits))
        question = f"What do these cost together: {', '.join(fruits)}?"
        rows.append({"question": question, "answer": str(sum(PRICES[fruit] for fruit in fruits)), "info": {"fruits": fruits}})
    return rows


def load_environment(config: PriceListEnvConfig) -> vf.Env:
    """Return the environment. `vf-eval` finds this function by its name, and gives it what a run configures."""
    return vf.Env(PriceList(config.taskset), vf.Harness(config=config.harness))
