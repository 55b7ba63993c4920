"""Beside OpenEnv itself: on its own servers, episodes earn what they earn through its own clients.

``python scripts/peers.py openenv`` makes the environment that its servers and clients run in.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from scripts.peers import python_of
from tests.models import calling
from tests.verifiers_compat.models import Model
from vfgym.aio.background import on_background_loop, wait
from vfgym.wrappers.openenv.starting import ServerProcess, start_process

pytestmark = pytest.mark.peers

GYM = """
    import random
    from openenv.core.env_server.http_server import create_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, Observation, State

    class Guess(Action):
        number: int

    class Hint(Observation):
        text: str

    class Guessing(Environment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self):
            self._state = State()

        def reset(self, seed=None, episode_id=None, highest=20, **kwargs):
            self._state = State(episode_id=episode_id)
            self.number = random.Random(seed).randint(1, highest)
            return Hint(text=f"from 1 to {highest}")

        def step(self, action, timeout_s=None, **kwargs):
            self._state.step_count += 1
            distance = self.number - action.number
            text = "right" if distance == 0 else "higher" if distance > 0 else "lower"
            return Hint(text=text, reward=1.0 - abs(distance) / 20, done=distance == 0 or self._state.step_count == 5)

        @property
        def state(self):
            return self._state

    app = create_app(Guessing, Guess, Hint, env_name="guessing", max_concurrent_envs=8)
"""

MCP = """
    from fastmcp import FastMCP
    from openenv.core.env_server.http_server import create_app
    from openenv.core.env_server.mcp_environment import MCPEnvironment
    from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
    from openenv.core.env_server.types import Observation, State

    class Shopping(MCPEnvironment):
        def __init__(self):
            self.bought, self.money = [], 0
            server = FastMCP("shop")

            @server.tool
            def buy(thing: str, price: int) -> str:
                "Buy something."
                if price > self.money:
                    raise ValueError("too expensive")
                self.money -= price
                self.bought.append(thing)
                return f"{thing} is yours, {self.money} left"

            @server.tool
            def look() -> dict:
                "Look into the bag."
                return {"bought": self.bought, "money": self.money}

            super().__init__(server)

        def reset(self, seed=None, episode_id=None, **kwargs):
            self.bought, self.money = [], 10 + (seed or 0)
            return Observation(metadata={"money": self.money})

        def _step_impl(self, action, timeout_s=None, **kwargs):
            return Observation()

        async def step_async(self, action, timeout_s=None, **kwargs):
            before = len(self.bought)
            observation = await super().step_async(action, timeout_s, **kwargs)
            observation.reward = float(len(self.bought) - before)
            observation.done = self.money == 0
            return observation

        @property
        def state(self):
            return State()

    app = create_app(Shopping, CallToolAction, CallToolObservation, env_name="shopping")
"""

OWN_CLIENT = """
    import json, sys
    from openenv.core.generic_client import GenericEnvClient

    url, seeds, actions = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    played = []
    with GenericEnvClient(base_url=url).sync() as client:
        for seed in seeds:
            results = [client.reset(seed=seed)]
            for action in actions:
                if not results[-1].done:
                    results.append(client.step(action))
            played.append([[result.observation, result.reward, result.done] for result in results])
    print(json.dumps(played))
"""

SEEDS = [0, 3, 11]

Start = Callable[[Path, str], str]


@pytest.fixture
def peer() -> str:
    """The Python of OpenEnv's environment."""
    python = python_of("openenv")
    assert python.exists(), "there is no OpenEnv to play with: python scripts/peers.py openenv"
    return str(python)


@pytest.fixture
def start(peer: str) -> Iterator[Start]:
    """Starts the application of a module in a folder on OpenEnv's server, and returns its URL."""
    started: list[ServerProcess] = []

    def serve(folder: Path, application: str) -> str:
        command = f"exec {shlex.join([peer, '-m', 'uvicorn', application, '--port', '8000'])}"
        process = wait(on_background_loop(lambda: start_process(command, folder, 8000, start_timeout=90, request_timeout=60)))
        started.append(process)
        return str(process.server.url)

    yield serve
    for process in started:
        wait(on_background_loop(process.stop))


def played_by_own_client(peer: str, url: str, actions: list[dict[str, Any]]) -> list[list[tuple[dict[str, Any], float, bool]]]:
    """Return observation, reward and end of each step, for each seed, as OpenEnv's own client has them."""
    command = [peer, "-c", textwrap.dedent(OWN_CLIENT), url, json.dumps(SEEDS), json.dumps(actions)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [[(step[0], float(step[1] or 0), step[2]) for step in steps] for steps in json.loads(done.stdout.splitlines()[-1])]


def shown(observation: dict[str, Any]) -> list[dict[str, str]]:
    return [{"role": "user", "content": json.dumps(observation)}]


def check_gym(peer: str, url: str, actions: list[dict[str, Any]], is_ended_by_server: bool) -> None:
    """Compare stepped and rolled out episodes with those of the own client: observations, rewards and ends."""
    own = played_by_own_client(peer, url, actions)
    env = vfgym.from_openenv(url, shown)
    for seed, steps in zip(SEEDS, own, strict=True):
        conversation, _ = env.reset(seed=seed)
        assert json.loads(conversation[-1].content) == steps[0][0]
        for action, (observation, reward, done) in zip(actions, steps[1:], strict=False):
            outcome = env.step(json.dumps(action))
            assert (json.loads(outcome.observation[-1].content), outcome.reward, outcome.terminated) == (observation, reward, done)
    env.close()
    rolled = vf.OpenEnvEnv(url=url, num_train_examples=12, num_eval_examples=0, prompt_renderer=shown, max_turns=len(actions))
    inputs = [rolled.get_dataset()[seed] for seed in SEEDS]
    model = Model(lambda number, state: json.dumps(actions[len(state["trajectory"])]))
    outputs = rolled.generate_sync(inputs, model, "m", state_columns=["trajectory"])["outputs"]
    assert [[step["reward"] for step in output["trajectory"]] for output in outputs] == [[step[1] for step in steps[1:]] for steps in own]
    assert [output["reward"] for output in outputs] == pytest.approx([sum(step[1] for step in steps) for steps in own])
    assert {output["stop_condition"] for output in outputs} == {"openenv_done" if is_ended_by_server else "max_turns_reached"}
    rolled.close()


def test_a_gym_environment_on_openenvs_server(peer: str, start: Start, tmp_path: Path) -> None:
    (tmp_path / "guessing.py").write_text(textwrap.dedent(GYM))
    check_gym(peer, start(tmp_path, "guessing:app"), [{"number": number} for number in (10, 5, 15, 2, 18)], is_ended_by_server=True)


def test_an_mcp_environment_on_openenvs_server(peer: str, start: Start, tmp_path: Path) -> None:
    (tmp_path / "shopping.py").write_text(textwrap.dedent(MCP))
    url = start(tmp_path, "shopping:app")
    calls = [
        ("buy", {"thing": "tea", "price": 3}),
        ("buy", {"thing": "ship", "price": 99}),
        ("look", {}),
        ("buy", {"thing": "ink", "price": 7}),
    ]
    own = played_by_own_client(peer, url, [{"type": "call_tool", "tool_name": name, "arguments": given} for name, given in calls])
    env = vfgym.from_openenv(url, shown)
    assert [tool.name for tool in env.tool_defs] == ["buy", "look"]
    for seed, steps in zip(SEEDS, own, strict=True):
        conversation, _ = env.reset(seed=seed)
        assert json.loads(conversation[-1].content) == steps[0][0]
        outcomes = [env.step(calling(*calls[:3])), env.step(calling(calls[3]))]
        assert [outcome.reward for outcome in outcomes] == [sum(step[1] for step in steps[1:4]), steps[4][1]]
        texts = [message.content for message in outcomes[1].observation if message.role == "tool"]
        assert texts[0] == f"tea is yours, {7 + seed} left"
        assert "too expensive" in texts[1]
        assert json.loads(texts[2]) == {"bought": ["tea"], "money": 7 + seed}
        assert outcomes[1].terminated == steps[4][2] == (seed == 0)
    env.close()
    rolled = vf.OpenEnvEnv(url=url, num_train_examples=12, num_eval_examples=0, prompt_renderer=shown)
    answers = [calling(*calls[:3]), calling(calls[3]), "Done."]
    model = Model(lambda number, state: answers[len(state["trajectory"])])
    outputs = rolled.generate_sync([rolled.get_dataset()[seed] for seed in SEEDS], model, "m")["outputs"]
    assert [output["reward"] for output in outputs] == [sum(step[1] for step in steps) for steps in own]
    assert [output["stop_condition"] for output in outputs] == ["openenv_done", "mcp_no_tool_calls", "mcp_no_tool_calls"]
    rolled.close()


def test_what_openenv_init_makes(peer: str, start: Start, tmp_path: Path) -> None:
    """Served by OpenEnv, and started by the library as a project. It takes one session at a time."""
    command = [str(Path(peer).parent / "openenv"), "init", "echo_env", "-o", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    folder = tmp_path / "echo_env"
    actions = [{"message": text} for text in ("Hi", "Hello there", "")]
    check_gym(peer, start(folder, "server.app:app"), actions, is_ended_by_server=False)
    serve = shlex.join([peer, "-m", "uvicorn", "server.app:app", "--port", "8000"])
    (folder / ".build.json").write_text(json.dumps({"image": "echo", "port": 8000, "start_command": serve, "contract": "gym"}))
    env = vf.OpenEnvEnv(folder, 2, 0, prompt_renderer=shown, backend="unsafe", max_turns=1)
    outputs = env.evaluate_sync(Model(lambda number, state: "abcd"), "m", max_concurrent=1)["outputs"]
    assert [output["reward"] for output in outputs] == [0.4, 0.4]
    env.close()
