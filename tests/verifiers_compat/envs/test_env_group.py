"""`EnvGroup`: rows find their environments, and settings reach all of them."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from tests.verifiers_compat.environments import ROW, ROWS, four, look, right, single
from tests.verifiers_compat.models import Model, evaluated, rolled_out
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient


def children() -> list[vf.Environment]:
    math = vf.SingleTurnEnv(dataset=[{"question": "1 + 0?", "answer": "1", "info": {"level": 1}}], rubric=vf.Rubric(right))
    tool = vf.ToolEnv(tools=[], dataset=[{"question": "hm"}, {"question": "ha"}], rubric=vf.Rubric(lambda completion: 0.5))
    return [math, vf.EnvGroup([tool], env_names=["tool"])]


def test_a_group_routes_each_row_to_its_environment_and_back() -> None:
    group = vf.EnvGroup(children(), names=["math", "nested"])
    assert group.get_dataset()["info"][:] == [
        {"level": 1, "env_id": "math"},
        {"env_id": ["nested", "tool"]},
        {"env_id": ["nested", "tool"]},
    ]
    results = group.evaluate_sync(Model(), "m", rollouts_per_example=2)
    outputs = results["outputs"]
    assert [output["info"]["env_id"] for output in outputs] == ["math"] * 2 + [["nested", "tool"]] * 4
    assert [output["reward"] for output in outputs] == [1.0] * 2 + [0.5] * 4
    assert "total_tool_calls" not in outputs[0]["metrics"]
    assert "total_tool_calls" in outputs[-1]["metrics"]
    assert results["metadata"]["avg_metrics"]["total_tool_calls"] == 0.0
    # What `get_dataset` gives can be handed back.
    assert [output["reward"] for output in group.generate_sync(group.get_dataset(), Model(), "m")["outputs"]] == [1.0, 0.5, 0.5]


def test_what_is_said_to_a_group_reaches_its_environments() -> None:
    math, nested = children()
    group = vf.EnvGroup([math, nested], env_names=["math", "nested"], score_rollouts=False, max_seq_len=7)
    assert (math.score_rollouts, nested.max_seq_len) == (False, 7)
    group.set_max_seq_len(9)
    group.set_score_rollouts(True)
    assert isinstance(nested, vf.EnvGroup)
    assert (math.max_seq_len, nested.envs[0].max_seq_len, nested.envs[0].score_rollouts) == (9, 9, True)
    group.set_kwargs(timeout_seconds=2.0, max_total_completion_tokens=9)
    assert [(env.timeout_seconds, env.max_total_completion_tokens) for env in (math, nested.envs[0], group)] == [(2.0, 9)] * 3
    own = vfgym.SingleTurnEnv(ROWS)
    vf.EnvGroup([own], env_names=["own"]).set_kwargs(timeout_seconds=3.0)
    assert own.timeout_seconds == 3.0
    monitor = vf.Rubric()
    monitor.add_metric(lambda completion: 3.0)
    group.add_rubric(monitor)

    def added(completion: vf.Messages) -> float:
        return 10.0

    group.rubric.add_reward_func(added)
    outputs = group.evaluate_sync(Model(), "m")["outputs"]
    assert [(output["metrics"]["<lambda>"], output["metrics"]["added"]) for output in outputs] == [(3.0, 10.0), (3.5, 10.0), (3.5, 10.0)]
    for name in ("rollout", "setup_state"):
        with pytest.raises(ConfigurationError, match="never run"):
            type("Hooked", (vf.EnvGroup,), {name: lambda self, *args: None})
    with pytest.raises(ConfigurationError, match="never run"):
        type("Marked", (vf.EnvGroup,), {"tidy": vf.cleanup(lambda self, state: None)})


async def test_rollouts_of_one_example_belong_to_one_environment_of_a_group() -> None:
    group = vf.EnvGroup([four(), four()], env_names=["a", "b"])
    rows = [{"question": "?", "answer": "1", "example_id": 3, "info": {"env_id": name}} for name in "ab"]
    outputs = (await group.generate(rows, Model(), "m"))["outputs"]
    assert ["belong to different environments" in str(row["error"]) for row in outputs] == [True, True]
    alone = (await group.generate(rows, Model(), "m", independent_scoring=True))["outputs"]
    assert [(row["reward"], row["error"], row["info"]) for row in alone] == [(1.0, None, {"env_id": "a"}), (1.0, None, {"env_id": "b"})]


async def test_a_group_of_different_environments(capsys: pytest.CaptureFixture[str]) -> None:
    from verifiers_compat.utils.eval_utils import print_results

    calls: list[str] = []
    tool = vf.ToolEnv(tools=[look], dataset=lambda: calls.append("built") or [ROW], rubric=vf.Rubric(lambda: 1.0))
    both = vf.SingleTurnEnv(dataset=[ROW], eval_dataset=[{"question": "eval?"}])
    group = vf.EnvGroup([both, tool], env_names=["one", "tools"])
    assert calls == []
    group.set_max_total_completion_tokens(7)
    assert tool.max_total_completion_tokens == 7
    results = await group.evaluate(ScriptedClient(["2"]), "m")
    assert [(row["example_id"], row["info"]["env_id"]) for row in group.get_eval_dataset()] == [(0, "one"), (1, "tools")]
    assert [[tool["name"] for tool in output["tool_defs"]] for output in results["outputs"]] == [[], ["look"]]
    assert ["total_tool_calls" in output["metrics"] for output in results["outputs"]] == [False, True]
    print_results(results)
    assert "total_tool_calls" in capsys.readouterr().out
    with pytest.raises(ValueError, match="same"):
        vf.EnvGroup([single(), single()], env_names=["same", "same"])


async def test_rows_of_a_child_in_a_group() -> None:
    child = single()
    alone = vf.EnvGroup([child], env_names=["only"])
    outputs = (await alone.generate(child.get_dataset(), ScriptedClient(["2"]), "m"))["outputs"]
    assert outputs[0]["reward"] == 1.0
    several = vf.EnvGroup([child, single()], env_names=["a", "b"])
    with pytest.raises(ValueError, match="a, b"):
        await several.rollout(child.get_dataset()[0], ScriptedClient(["2"]), "m")


async def test_a_group_finds_its_environments_by_name_and_gives_zero_for_the_functions_of_the_others() -> None:
    def of_first(completion: Any) -> float:
        return 1.0

    def of_second(completion: Any) -> float:
        return 2.0

    first, second = single(rubric=vf.Rubric(of_first)), single(rubric=vf.Rubric(of_second))
    group = vf.EnvGroup([first, second], env_names=["first", "second"])
    assert group.get_env_for_name("second") is second
    with pytest.raises(ValueError, match="Did you mean `second`"):
        group.get_env_for_name("secnd")
    state = await rolled_out(group, "2", row=1)
    for scoring in (group.rubric.score_rollout(state), group.rubric.score_group([state])):
        await scoring
        assert (state["reward"], state["metrics"]) == (2.0, {"of_first": 0.0, "of_second": 2.0, "num_turns": 1.0})
    assert [sorted(output["metrics"]) for output in await evaluated(group, "2")] == [["num_turns", "of_first"], ["num_turns", "of_second"]]

    async def halve(state: Any) -> None:
        state["reward"], state["metrics"] = 0.5, {"of_second": 0.5}

    second.rubric.score_rollout = halve
    await group.rubric.score_rollout(state)
    assert (state["reward"], state["metrics"]["of_second"]) == (0.5, 0.5)


async def test_a_row_for_no_environment_of_a_group_fails_alone() -> None:
    group = vf.EnvGroup(envs=[four(), four()], env_names=["sums", "words"])
    rows = [{**ROWS[1], "example_id": number, "info": {"env_id": name}} for number, name in enumerate(("words", "verbs"))]
    fine, wrong = (await group.generate(rows, Model(), "m"))["outputs"]
    assert (fine["reward"], fine["error"], wrong["reward"]) == (1.0, None, 0.0)
    assert "sums, words" in wrong["error"]["error_chain_repr"]
    assert "'verbs'" in wrong["error"]["error_chain_repr"]
