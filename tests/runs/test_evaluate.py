"""Evaluation: every rollout is played once, accounted for, reproducible, and nothing that was finished is lost."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from tests import environments
from tests.interruptions import ctrl_c
from vfgym import EnvGroup, Response, Rubric, SingleTurnEnv, Usage, blocking, cleanup, teardown, to_chat
from vfgym.agents import ModelAgent, ScriptedAgent
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Message
from vfgym.results import GenerateOutputs, ResultsError, RolloutOutput, load_results
from vfgym.runs import Progress, aevaluate
from vfgym.runs import evaluate as shown_evaluate
from vfgym.state import State
from vfgym.testing import ScriptedClient

LAKE = "gymnasium/FrozenLake-v1"
OWN = gymnasium.spec(LAKE).kwargs
"""Arguments with which it is registered."""

ENV_ID = "evaluation-tests/Sums-v0"
TOGETHER_SECONDS = 240.0
"""How long episodes that must run together wait for each other, before the test fails instead of hanging."""


def evaluate(*args: Any, **kwargs: Any) -> GenerateOutputs:
    return shown_evaluate(*args, **{"progress": False, **kwargs})


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


class Sums(SingleTurnEnv):
    """Asks for sums, and counts what happens to it."""

    def __init__(self, size: int = 12, **kwargs: Any) -> None:
        rows = [{"question": f"{i} + 1?", "answer": str(i + 1)} for i in range(size)]
        super().__init__(**{"dataset": rows, "rubric": Rubric(exact), **kwargs})
        self.teardowns = 0

    @teardown
    def count(self) -> None:
        self.teardowns += 1


class Topics(environments.RandomTalk):
    """Talks on until its limit, and scores the number of answers."""

    def __init__(self, size: int = 6, **kwargs: Any) -> None:
        rows = [{"question": f"topic {i}"} for i in range(size)]
        super().__init__(**{"dataset": rows, "max_turns": 4, "rubric": Rubric(self.length), **kwargs})

    def length(self, state: State) -> float:
        return float(len(state["trajectory"]))


def say(observation: list[Message], info: dict[str, Any]) -> str:
    return "yes"


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    gymnasium.register(ENV_ID, entry_point=Sums)
    yield
    del gymnasium.registry[ENV_ID]


def keys_of(results: GenerateOutputs) -> list[tuple[int, int]]:
    return [(row["example_id"], row["rollout"]) for row in results["outputs"]]


def without_times(results: GenerateOutputs) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "timing"} for row in results["outputs"]]


# What is played


@pytest.mark.parametrize("max_concurrent", [1, 5, -1])
def test_examples_and_rollouts_are_counted_whatever_runs_at_once(max_concurrent: int) -> None:
    now, peak = 0, 0

    async def slow(observation: list[Message], info: dict[str, Any]) -> str:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        for _ in range(60):
            await asyncio.sleep(0)
        now -= 1
        return "yes"

    results = evaluate(Sums(), slow, num_examples=3, rollouts_per_example=2, max_concurrent=max_concurrent)
    assert peak == (max_concurrent if max_concurrent > 0 else 6), "no more at once than asked for"
    assert keys_of(results) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert results["metadata"]["pass_at_k"] == {"1": 0.0, "2": 0.0}


def test_tasks_that_cannot_be_told_apart_are_refused_and_more_than_there_are_is_all(caplog: pytest.LogCaptureFixture) -> None:
    assert len(evaluate(Sums(), say, num_examples=50)["outputs"]) == 12
    assert "num_examples is 50, and there are 12 examples" in caplog.text
    rows = [{"question": "?", "answer": "", "example_id": 3}] * 2
    with pytest.raises(ConfigurationError, match="the same example_id"):
        evaluate(Sums(dataset=rows), say)


def test_an_answer_may_be_text_a_message_or_a_response_and_be_awaited() -> None:
    async def respond(observation: list[Message], info: dict[str, Any]) -> Response:
        await asyncio.sleep(0)
        return Response("r", 0, "m", Usage(4, 0, 2, 6), AssistantMessage("1"))

    agents = [lambda o, i: "1", lambda o, i: {"role": "assistant", "content": "1"}, lambda o, i: AssistantMessage("1"), respond]
    for agent in agents:
        assert evaluate(Sums(), agent, num_examples=1)["metadata"]["avg_reward"] == 1.0
    assert evaluate(Sums(), respond)["metadata"]["usage"] == {
        "input_tokens": 4,
        "output_tokens": 2,
        "final_input_tokens": 4,
        "final_output_tokens": 2,
    }


# Kinds of environments


def test_an_id_a_spec_and_a_function_give_the_same_rows() -> None:
    ids = [ENV_ID, gymnasium.spec(ENV_ID), lambda size=12: Sums(size), Sums]
    for env in ids:
        results = evaluate(env, say, env_args={"size": 4})
        assert [row["answer"] for row in results["outputs"]] == ["1", "2", "3", "4"]
        assert results["metadata"]["env_args"] == {"size": 4}
    assert evaluate(ENV_ID, say)["metadata"]["env_id"] == ENV_ID


def test_arguments_that_a_constructor_does_not_take_are_told_in_its_own_words() -> None:
    class Strict(Sums):
        def __init__(self, size: int = 2) -> None:
            super().__init__(size)

    for entry_point, message in ((Strict, "unexpected keyword argument 'depth'"), (Sums, "Sums has no argument 'depth'")):
        with pytest.raises(ConfigurationError, match=message) as caught:
            evaluate(EnvSpec("Strict-v0", entry_point=entry_point), say, env_args={"depth": 1})
        assert "environment creator" not in str(caught.value)


def test_an_error_inside_a_constructor_is_the_authors_own() -> None:
    class Faulty(Sums):
        def __init__(self) -> None:
            super().__init__(size="twelve")  # type: ignore[arg-type]

    with pytest.raises(TypeError) as caught:
        evaluate(EnvSpec("Faulty-v0", entry_point=Faulty), say)
    assert str(caught.value) == "'str' object cannot be interpreted as an integer"
    assert [frame.name for frame in caught.traceback][-2:] == ["__init__", "__init__"]


# Seeds


def says_left(observation: Any, info: Any) -> str:
    return "left"


@pytest.mark.parametrize(
    ("env", "agent", "options", "said"),
    [
        (LAKE, "random", {"env_args": {"map_name": "8x8"}}, {"env_id": LAKE, "env_args": {"map_name": "8x8"}, "model": "random"}),
        (LAKE, says_left, {"env_id": "lake", "model": "lefty"}, {"env_id": "lake", "env_args": OWN, "model": "lefty"}),
        (
            lambda: gymnasium.make(LAKE, map_name="8x8"),
            "random",
            {},
            {"env_id": LAKE, "env_args": OWN | {"map_name": "8x8"}, "model": "random"},
        ),
        (
            SingleTurnEnv([{"question": "?"}]),
            ModelAgent(ScriptedClient(["a"]), "m", {"temperature": 0.0}),
            {},
            {"env_id": "SingleTurnEnv", "env_args": {}, "model": "m", "is_model": True, "sampling_args": {"temperature": 0.0}},
        ),
    ],
)
def test_metadata_say_what_was_played_and_who_answered(env: Any, agent: Any, options: dict[str, Any], said: dict[str, Any]) -> None:
    results = shown_evaluate(env, agent, num_examples=1, limits_each={"turns": 1}, progress=False, **options)
    metadata: Any = results["metadata"]
    expected = {"is_model": False, "base_url": "", "sampling_args": {}, **said}
    assert {name: metadata[name] for name in expected} == expected
    assert results["outputs"][0]["env_id"] == said["env_id"]


def test_a_seed_replays_whatever_runs_at_once_and_however_much_is_played() -> None:
    env = Topics()
    whole = without_times(evaluate(env, "random", rollouts_per_example=3, seed=5, max_concurrent=1))
    assert without_times(evaluate(env, "random", rollouts_per_example=3, seed=5, max_concurrent=7)) == whole
    assert without_times(evaluate(lambda: Topics(), "random", rollouts_per_example=3, seed=5)) == whole
    fewer = without_times(evaluate(env, "random", num_examples=2, rollouts_per_example=2, seed=5))
    assert fewer == [row for row in whole if row["example_id"] < 2 and row["rollout"] < 2]
    assert without_times(evaluate(env, "random", rollouts_per_example=3, seed=6)) != whole


# Many at once


class Meeting(Topics):
    """No episode goes on before as many as expected are in it."""

    def __init__(self, expected: int, **kwargs: Any) -> None:
        super().__init__(size=expected, max_turns=3, **kwargs)
        self.expected = expected
        self.arrived = 0
        self.all_here = asyncio.Event()

    async def env_response(self, messages: list[Message], state: State) -> Any:
        self.arrived += 1
        if self.arrived == self.expected:
            self.all_here.set()
        await asyncio.wait_for(self.all_here.wait(), TOGETHER_SECONDS)
        return [{"role": "user", "content": "go on"}]


def test_five_hundred_episodes_are_in_flight_at_once_through_stock_wrappers() -> None:
    async def agent(observation: list[Message], info: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return "yes"

    env = RecordEpisodeStatistics(TimeLimit(Meeting(500), max_episode_steps=2))
    results = evaluate(env, agent, max_concurrent=500)
    assert keys_of(results) == [(i, 0) for i in range(500)]
    assert {row["stop_condition"] for row in results["outputs"]} == {"truncated"}
    assert {row["reward"] for row in results["outputs"]} == {2.0}
    assert env.unwrapped.cleaned == 500


def test_a_blocking_agent_plays_several_episodes_at_once() -> None:
    together = threading.Barrier(4, timeout=TOGETHER_SECONDS)

    @blocking
    def agent(observation: list[Message], info: dict[str, Any]) -> str:
        together.wait()
        return "yes"

    class Player:
        @blocking
        def __call__(self, observation: list[Message], info: dict[str, Any]) -> str:
            return agent(observation, info)

    for player in (agent, Player()):
        results = evaluate(Sums(size=4), player, max_concurrent=4)
        assert {row["error"] for row in results["outputs"]} == {None}


def test_works_inside_a_running_loop_in_threads_and_inside_another_run() -> None:
    async def notebook_cell() -> GenerateOutputs:
        return evaluate(Meeting(3), say)

    async def direct() -> GenerateOutputs:
        return await aevaluate(Meeting(3), say, progress=False)

    def nested(observation: list[Message], info: dict[str, Any]) -> str:
        return str(evaluate(Meeting(3), say)["metadata"]["avg_reward"])

    assert asyncio.run(notebook_cell())["metadata"]["avg_reward"] == 3.0
    assert asyncio.run(direct())["metadata"]["avg_reward"] == 3.0
    assert evaluate(Sums(size=2), nested)["outputs"][0]["completion"][0].content == "3.0"
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(evaluate(Meeting(3), say)["metadata"]["avg_reward"])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3.0] * 3


# Endings and failures


class Breaking(gymnasium.Env[Any, Any]):
    action_space, observation_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> Any:
        raise KeyError("the game's own line")


@blocking
def breaking_agent(observation: list[Message], info: dict[str, Any]) -> str:
    raise KeyError("the agent's own line")


@pytest.mark.parametrize("is_blocking", [False, True])
def test_an_error_of_a_game_shows_the_authors_line_in_the_log_and_where_it_is_raised(
    is_blocking: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def make() -> Any:
        return TimeLimit(to_chat(Breaking, blocking=is_blocking), 5)

    evaluate(make(), "random", num_examples=1)
    assert f'File "{__file__}", line' in caplog.text
    assert 'raise KeyError("the game\'s own line")' in caplog.text
    with pytest.raises(KeyError) as caught:
        evaluate(make(), "random", num_examples=1, strict=True)
    assert caught.traceback[-1].path == Path(__file__)
    evaluate(Sums(size=1), breaking_agent)
    assert 'raise KeyError("the agent\'s own line")' in caplog.text


def test_what_rows_hold_as_text_on_disk_is_named_once_a_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tasks = [{"question": "0 + 1?", "answer": "1", "info": {"day": [1, object()]}} for _ in range(3)]
    evaluate(Sums(dataset=tasks), say, results_path=tmp_path / "run")
    (record,) = caplog.records
    assert "holds as text only info.day[1]: object has no form in JSON" in record.getMessage()
    assert load_results(tmp_path / "run")["outputs"][2]["info"]["day"][1].startswith("<object object")


# Groups


def longest(completions: list[Any]) -> list[float]:
    lengths = [len(completion[-1].content) for completion in completions]
    return [float(length == max(lengths)) for length in lengths]


def test_a_group_whose_first_rollout_cannot_begin_is_scored_by_the_environment_that_played_it() -> None:
    """Not by the first of the joined environments, whose functions would measure other tasks."""

    class Fragile(Sums):
        def setup_state(self, state: State) -> Any:
            if next(numbers) == 0:
                raise RuntimeError("broken")

    def other(completions: list[Any]) -> list[float]:
        return [0.5] * len(completions)

    numbers = iter(range(10))
    joined = EnvGroup([Sums(size=1, rubric=Rubric(other)), Fragile(size=1, rubric=Rubric(longest))], env_names=["first", "second"])
    rows = evaluate(joined, say, rollouts_per_example=3, max_concurrent=1)["outputs"]
    assert [(row["reward"], sorted(row["metrics"])) for row in rows] == [
        *[(0.5, ["num_turns", "other"])] * 3,
        (0.0, []),
        *[(1.0, ["longest", "num_turns"])] * 2,
    ]


# Results and progress


def test_results_are_written_in_the_documented_format(tmp_path: Path) -> None:
    results = evaluate(Sums(), "random", results_path=tmp_path / "run", state_columns=["trajectory"], pass_threshold=0.9)
    assert load_results(tmp_path / "run")["outputs"] == [json.loads(json.dumps(row)) for row in results["outputs"]]
    metadata = json.loads((tmp_path / "run" / "metadata.json").read_text())
    assert metadata == json.loads(json.dumps({k: v for k, v in results["metadata"].items() if k not in ("path_to_save", "date")}))
    assert (metadata["env_id"], metadata["model"], metadata["seed"], metadata["pass_threshold"]) == ("Sums", "random", 0, 0.9)
    assert metadata["state_columns"] == ["trajectory"]
    assert {"python", "gymnasium", "numpy"} <= metadata["versions"].keys()
    assert metadata["time_ms"] == metadata["time"] * 1000 > 0
    assert set(metadata["version_info"]) == {"vf_version", "vf_commit", "env_version", "env_commit"}


def test_results_are_saved_below_outputs_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = evaluate(Sums(), say, save_results=True, env_id="me/sums")["metadata"]["path_to_save"]
    assert path is not None
    assert path.parent == Path("outputs/evals/me--sums--agent=say")
    assert len(load_results(path)["outputs"]) == 12
    assert evaluate(Sums(), say)["metadata"]["path_to_save"] is None


def test_a_run_goes_on_with_results_that_are_there_only_where_that_is_asked_for(tmp_path: Path) -> None:
    evaluate(Sums(), say, results_path=tmp_path)
    with pytest.raises(ResultsError, match="holds the results of another run already"):
        evaluate(Sums(), say, results_path=tmp_path)


def test_progress_is_told_row_by_row() -> None:
    told: list[tuple[RolloutOutput, int, int, float]] = []

    def listen(row: RolloutOutput, progress: Progress) -> None:
        told.append((row, progress.done, progress.total, progress.avg_reward))

    results = evaluate(Sums(size=4), ScriptedAgent({0: ["1"], 1: ["?"], 2: ["3"], 3: ["?"]}), max_concurrent=1, on_progress=listen)
    assert [entry[1:] for entry in told] == [(1, 4, 1.0), (2, 4, 0.5), (3, 4, 2 / 3), (4, 4, 0.5)]
    assert [entry[0] for entry in told] == results["outputs"]


@pytest.mark.parametrize("width", [45, 110])
def test_the_bar_has_all_it_tells_at_any_width(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    evaluate(Sums(size=4), "oracle", progress=True, env_id="an-environment-with-a-name/of-many-words-v0")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert all(len(line) <= width for line in re.split(r"[\r\n]", shown))
    assert "reward 1.000, 0 failed" in " ".join(shown.split())
    assert re.search(r" 4/4 [\d.k]+/s 0:00:0\d 0:00:00", shown)


# Ctrl-C


def test_ctrl_c_in_this_process_waits_for_a_slow_finally(tmp_path: Path) -> None:
    """`KeyboardInterrupt` arrives when all that the run began has ended, so that nothing of it goes on behind the caller's back."""
    ended: list[str] = []

    async def agent(observation: list[Message], info: dict[str, Any]) -> str:
        try:
            interrupt()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.3)
            ended.append("agent")
        return "yes"

    class Slow(Topics):
        @cleanup
        async def leave(self, state: State) -> None:
            await asyncio.sleep(0.1)
            ended.append("cleanup")

        @teardown
        async def release(self) -> None:
            await asyncio.sleep(0.1)
            ended.append("teardown")

    with ctrl_c() as interrupt, pytest.raises(KeyboardInterrupt):
        evaluate(lambda: Slow(size=1), agent, results_path=tmp_path)
    assert ended == ["agent", "cleanup", "teardown"]
    assert load_results(tmp_path)["outputs"] == []


# Models
