"""Facts about cities: a taskset with a typed config, a tool, and rewards."""

import verifiers.v1 as vf

FACTS = {
    "Oslo": {"country": "Norway", "people": 717},
    "Lima": {"country": "Peru", "people": 10092},
    "Rome": {"country": "Italy", "people": 2755},
}


class CityTasksetConfig(vf.TasksetConfig):
    field: str = "country"
    cities: list[str] = ["Oslo", "Lima", "Rome"]
    bonus: float = 0.5


class CityHarnessConfig(vf.HarnessConfig):
    max_turns: int = 4


class CityEnvConfig(vf.EnvConfig):
    taskset: CityTasksetConfig = CityTasksetConfig()
    harness: CityHarnessConfig = CityHarnessConfig()


async def look_up(city: str, field: str) -> str:
    """Look up a fact about a city.

    Args:
        city: The name of the city.
        field: What to look up: country or people.
    """
    return str(FACTS[city][field])


class CityTaskset(vf.Taskset):
    config_type = CityTasksetConfig

    def __init__(self, config: CityTasksetConfig | None = None):
        super().__init__(source=self.load_rows, toolsets=[vf.Toolset(tools=[look_up])], config=config)

    def load_rows(self):
        field = self.config.field
        return [
            {"question": f"What is the {field} of {city}?", "answer": str(FACTS[city][field]), "info": {"city": city}}
            for city in self.config.cities
        ]

    @vf.reward(weight=1.0)
    async def right_answer(self, task, state) -> float:
        completion = state["completion"] or [{"content": ""}]
        return float(task["answer"] in (completion[-1]["content"] or ""))

    @vf.reward(weight=1.0)
    async def used_the_tool(self, task, state) -> float:
        called = any(message["role"] == "tool" for message in state["completion"] or [])
        return self.config.bonus * called

    @vf.metric
    async def num_messages(self, task, state) -> float:
        return float(len(state["completion"] or []))


def load_taskset(config: CityTasksetConfig | None = None) -> CityTaskset:
    return CityTaskset(config=config)


def load_harness(config: CityHarnessConfig | None = None) -> vf.Harness:
    return vf.Harness(config=config)


def load_environment(config: CityEnvConfig) -> vf.Env:
    return vf.Env(taskset=load_taskset(config.taskset), harness=load_harness(config.harness))
