"""``vfgym eval`` with many runs: who plays what, in which variations, what is chosen of them, and one table of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.cases import DATASET, GAME, played_as_json, run_directories
from tests.commands import run_vfgym
from vfgym.agents.isolated import IsolatedAgent
from vfgym.cli import sweeps
from vfgym.cli.evaluations import EvalFields
from vfgym.cli.sweeps import as_text, close_agents, parse_variations, plan_inputs, plan_runs
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import Secret
from vfgym.results import load_results

FILE = f"""
num_examples = 4
agents = ["random"]

[[eval]]
env_id = "{DATASET}"
agents = ["random", "oracle"]
num_examples = 3

[[ablation]]
id = "{GAME}"
args = {{ max_turns = 5 }}

[ablation.sweep]
rollouts_per_example = [2]

[ablation.sweep.args]
history = [1, 3]
"""
TITLES = [f"{DATASET}: random", f"{DATASET}: oracle", f"{GAME}: random (history=1)", f"{GAME}: random (history=3)"]


@pytest.fixture(autouse=True)
def _file(directory: Path) -> None:
    (directory / "evals.toml").write_text(FILE)


def titles(*evaluations: dict[str, Any], variations: dict[str, list[Any]] | None = None, patterns: tuple[str, ...] = ()) -> list[str]:
    fields = [EvalFields(**{"env_id": GAME, "agents": ["random"], **each}) for each in evaluations]
    return [run.title for run in plan_runs(fields, variations or {}, patterns)]


# Variations


def test_values_are_read_as_json_or_text() -> None:
    given = ["history=1,null,0", "observe=text, image", 'as_text="1","a,b"', "sizes=[1,2],[3]", "mixed=1,two"]
    assert parse_variations(given) == {
        "history": [1, None, 0],
        "observe": ["text", "image"],
        "as_text": ["1", "a,b"],
        "sizes": [[1, 2], [3]],
        "mixed": [1, "two"],
    }
    assert parse_variations([]) == {}


@pytest.mark.parametrize("values", [[0, False], [1, True, 1.5, "1"], [None, "None"], [[], {}]])
def test_values_of_different_kinds_are_different(values: list[Any]) -> None:
    assert parse_variations([f"x={','.join(map(as_json, values))}"]) == {"x": values}


def as_json(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else as_text(value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["history"], "such as history=1,4; got 'history'"),
        (["=1"], "such as history=1,4"),
        (["history="], "such as history=1,4"),
        (["history=1,,2"], "cannot read the value ''"),
        (["history=[1,x"], r"cannot read the value '\[1'"),
        (["history=1,1"], "history has 1 twice"),
        (["history=1", "history=2"], "history is given twice"),
        (["as_tool=True,False"], "true, not True"),
        (["as_tool=None,1x"], "null, not None"),
    ],
)
def test_variations_that_cannot_be_read_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_variations(texts)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), ("", ""), (None, "null"), (0, "0"), (True, "true"), ({"api_key": "sk-0123456789"}, '{"api_key": "***"}')],
)
def test_a_value_is_written_as_it_is_given_and_without_secrets(value: Any, text: str) -> None:
    assert as_text(value) == text
    Secret("word-0123456789")
    assert as_text("word-0123456789") == "***"


# Plans


@pytest.mark.parametrize(
    ("evaluations", "expected"),
    [
        ([{}], ["random"]),
        ([{"agents": ["random", "oracle"]}], ["random", "oracle"]),
        ([{}, {"env_id": DATASET}], [f"{GAME}: random", f"{DATASET}: random"]),
        *[
            ([{}, {name: value}], [f"random (--{name.replace('_', '-')}={first})", f"random (--{name.replace('_', '-')}={second})"])
            for name, value, first, second in [
                ("num_examples", 3, 20, 3),
                ("rollouts_per_example", 2, 1, 2),
                ("seed", 5, 0, 5),
                ("split", "train", "eval", "train"),
                ("both_seats", True, "false", "true"),
            ]
        ],
        ([{"env_args": {"history": 0}}, {}], ["random (history=0)", "random"]),
        ([{"env_args": {"history": 0}}, {"env_args": {"history": None}}], ["random (history=0)", "random (history=null)"]),
        (
            [
                {"models": ["m", "random"], "base_url": "http://x"},
                {"models": ["m"], "agents": [], "base_url": "http://x", "sampling_args": {"n": 0}},
            ],
            ["random (agent)", "m (--sampling-args={})", "random (model) (--sampling-args={})", 'm (--sampling-args={"n": 0})'],
        ),
    ],
)
def test_a_title_tells_a_run_from_all_others(evaluations: list[dict[str, Any]], expected: list[str]) -> None:
    assert titles(*evaluations) == expected


def test_each_variation_is_played_by_each_and_none_is_both_fixed_and_varied() -> None:
    variations = {"history": [1, None], "as_tool": [True, False]}
    assert titles({"agents": ["random", "oracle"]}, variations=variations) == [
        f"{name} (history={history}, as_tool={as_tool})"
        for history in ("1", "null")
        for as_tool in ("true", "false")
        for name in ("random", "oracle")
    ]
    with pytest.raises(ConfigurationError, match="'history' is both fixed and varied"):
        titles({"env_args": {"history": 1}}, variations={"history": [1, 2]})


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [(("LEG_counting",), [0, 1]), (("oracle", "history=3"), [1, 3]), (("*lake*=1*",), [2]), (("*lake*=1",), []), ((), [0, 1, 2, 3])],
)
def test_runs_are_chosen_by_parts_of_their_titles_or_patterns(patterns: tuple[str, ...], chosen: list[int]) -> None:
    evaluations = [{"env_id": DATASET, "agents": ["random", "oracle"]}, *({"env_args": {"history": number}} for number in (1, 3))]
    if chosen:
        assert titles(*evaluations, patterns=patterns) == [TITLES[place] for place in chosen]
    else:
        with pytest.raises(ConfigurationError, match=r"fits none of the 4 runs: .*leg_counting"):
            titles(*evaluations, patterns=patterns)


@pytest.mark.parametrize(
    ("evaluations", "message"),
    [
        ([{"env_id": "gymnasium/FrozenLak-v1"}], "Did you mean"),
        ([{"agents": ["orcale"]}], "no agent 'orcale'"),
        ([{"agents": []}], "say who plays"),
        ([{"agents": ["random", "random"]}], "--agent random is given 2 times: give it once"),
        ([{"agents": [], "models": ["m", "m"], "base_url": "http://x"}], "--model m is given 2 times"),
        ([{}, {}], "the run random is asked for twice"),
    ],
)
def test_runs_that_cannot_be_are_refused(evaluations: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        titles(*evaluations)


def test_runs_that_play_the_same_are_planned_once_and_what_cannot_be_played_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    plan_tasks = sweeps.plan_tasks
    monkeypatch.setattr(sweeps, "plan_tasks", lambda *args, **kwargs: (made.append(args), plan_tasks(*args, **kwargs))[1])
    runs = plan_runs([EvalFields(env_id=GAME, agents=["random", "oracle"], num_examples=3, rollouts_per_example=2)], {"history": [1, 2]})
    assert [inputs.num_rollouts for inputs in plan_inputs(runs)] == [6] * 4
    assert len(made) == 2
    runs = plan_runs([EvalFields(env_id=GAME, agents=["random"], env_args={"histry": 1})], {})
    with pytest.raises(ConfigurationError, match=r"^random: .*'histry'\. Did you mean `history`"):
        plan_inputs(runs)


@pytest.mark.parametrize(("name", "is_isolated"), [("random", False), ("mine:forty_two", True)])
@pytest.mark.parametrize("option", ["isolate", "sandboxed"])
def test_agents_of_modules_are_isolated_where_that_is_asked_for(
    name: str, is_isolated: bool, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked(IsolatedAgent):
        """Knows what it was made with, and starts nothing."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.asked = (*args, kwargs)

        def close(self) -> None:
            self.asked = ()

    monkeypatch.setattr("vfgym.agents.isolated.IsolatedAgent", Asked)
    fields = EvalFields(env_id=GAME, agents=[name], **{option: True})
    (run,) = plan_runs([fields], {})
    agent = run.contestant.agent
    assert isinstance(agent, Asked) is is_isolated
    if isinstance(agent, Asked):
        assert agent.asked == (name, {"sandbox": option == "sandboxed"})
        close_agents([run])
        assert agent.asked == ()


# Played


def test_a_file_is_played_as_its_dry_run_says(directory: Path) -> None:
    planned = played_as_json("evals.toml", "--dry-run")
    assert not (directory / "outputs").exists()
    played = played_as_json("evals.toml")
    assert [each["title"] for each in planned["runs"]] == [each["title"] for each in played["runs"]] == TITLES
    assert [each["rollouts"] for each in planned["runs"]] == [each["rollouts"] for each in played["runs"]] == [3, 3, 8, 8]
    assert planned["rollouts"] == 22
    assert [each["env_args"] for each in played["runs"][2:]] == [{"max_turns": 5, "history": 1}, {"max_turns": 5, "history": 3}]
    for each in played["runs"]:
        results = load_results(each["path"])
        assert len(results["outputs"]) == each["rollouts"]
        assert results["metadata"]["avg_reward"] == each["avg_reward"]


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (FILE.replace("history", "histry"), [], "has an argument 'histry'. Did you mean `history`"),
        (FILE.replace("num_examples = 4", "num_examples = 0"), [], "num_examples must be a positive integer"),
        (FILE.replace("[2]", "[0]"), [], "rollouts_per_example must be a positive integer"),
        (FILE, ["--vary", "split=1"], "has no argument 'split'"),
        (FILE, ["--select", "nothing"], "fits none of the 4 runs"),
        (FILE, ["some/where", "--resume"], "holds the run of one agent"),
        (FILE + f'[[eval]]\nid = "{GAME}"\nargs = {{ max_turns = 5, history = 1 }}\nrollouts_per_example = 2\n', [], "is asked for twice"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_played(text: str, arguments: list[str], message: str, directory: Path) -> None:
    (directory / "evals.toml").write_text(text)
    done = run_vfgym("eval", "evals.toml", *arguments, "--json", exit_code=2)
    (line,) = done.stderr.splitlines()
    assert message in line
    assert done.stdout == ""
    assert not (directory / "outputs").exists()


def test_a_command_that_was_stopped_goes_on_where_it_was(directory: Path) -> None:
    played = played_as_json("evals.toml")
    files = {each["title"]: Path(each["path"], "results.jsonl") for each in played["runs"]}
    whole = {title: file.read_bytes() for title, file in files.items()}
    stopped = files[TITLES[2]]
    stopped.write_bytes(b"".join(whole[TITLES[2]].splitlines(keepends=True)[:5]))
    files[TITLES[3]].unlink()
    resumed = played_as_json("evals.toml", "--resume")
    assert [each["path"] for each in resumed["runs"]] == [each["path"] for each in played["runs"]]
    assert len(run_directories(directory)) == 4
    assert [files[title].read_bytes() for title in TITLES[:2]] == [whole[title] for title in TITLES[:2]]
    assert [each["avg_reward"] for each in resumed["runs"]] == [each["avg_reward"] for each in played["runs"]]
