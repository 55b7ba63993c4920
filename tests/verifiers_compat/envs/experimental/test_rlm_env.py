"""`RLMEnv` as published packages use it: documented arguments, metrics and states, through `generate` and through `step`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

import verifiers_compat as vf
from tests.agent_programs import needs_sandbox
from tests.verifiers_compat.models import Model, calling, evaluated, rolled_out, texts
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import SandboxSpec

pytestmark = needs_sandbox

ROWS = Dataset.from_list([{"question": "How many pages?", "answer": "2", "info": {"context": {"pages": ["a", "b"]}}}])
COUNT = """
said = llm_batch(["count " + page for page in context["pages"]])
answer["content"] = str(len(said))
answer["ready"] = True
"""


def right(state: Any, answer: str) -> float:
    return float(state["final_answer"] == answer)


async def test_a_documented_environment_is_generated_and_stepped_alike() -> None:
    """§ RLMEnv: the seeds' signature, the reward of the final answer, and the same states from both sides."""
    from verifiers_compat.envs.experimental.rlm_env import RLMEnv

    assert vf.RLMEnv is RLMEnv
    options: dict[str, Any] = {"repl_language": "python", "sandbox_memory_gb": 1, "sandbox_environment_vars": {"NAME": "me"}}
    env = vf.RLMEnv(rubric=vf.Rubric(right), dataset=ROWS, **options)
    assert isinstance(env, vf.StatefulToolEnv)
    answers = [calling(("call_python_repl", {"code": COUNT})), "one", "one"]
    [row] = await evaluated(env, *answers, state_columns=["final_answer"])
    assert row["error"] is None
    assert (row["reward"], row["final_answer"], row["stop_condition"]) == (1.0, "2", "answer_ready")
    assert row["metrics"]["sub_llm_call_count"] == 2
    state = await rolled_out(env, *answers)
    env.reset(seed=0)
    for each in answers:
        step = env.step(each)
    stepped = env.episode.state
    assert (step.terminated, step.reward, stepped["final_answer"]) == (True, 1.0, "2")
    for name in ("raw_prompt", "prompt", "completion"):
        assert [dict(message) for message in state[name]] == [dict(message) for message in stepped[name]]
    assert sandboxes_in_use() == []


async def test_hooks_and_the_system_prompt_are_those_of_packages() -> None:
    """The sandbox is asked for and prepared; a system prompt takes the place of what is said of the REPL."""

    class Prepared(vf.RLMEnv):
        def get_sandbox_request(self, state: Any) -> Any:
            request = super().get_sandbox_request(state)
            request.environment_vars = {"B": state["answer"]}
            return request

        async def on_sandbox_ready(self, state: Any, sandbox_id: str) -> None:
            await state["sandbox"].write_file("ready.txt", sandbox_id)

    env = Prepared(dataset=ROWS, system_prompt="Use the shell.", enable_sub_llms=False, sandbox=SandboxSpec(env={"A": "1"}))
    look = calling(("call_bash_repl", {"code": "cat ready.txt; echo; echo $A$B; type llm_batch"}))
    state = await rolled_out(env, look, "done")
    assert state["prompt"][-1]["content"] == "Use the shell.\n\nHow many pages?"
    assert texts(state["completion"])[0].startswith(f"{state['sandbox_id']}\n12\n")
    assert texts(state["completion"])[0].endswith("llm_batch: not found")


async def test_sub_calls_are_answered_as_a_package_answers_them() -> None:
    """An override of `_run_sub_llm` changes what is asked, or asks nobody; both are counted."""

    class Answering(vf.RLMEnv):
        async def _run_sub_llm(self, state: Any, client: Any, model: str, messages: Any) -> Any:
            if "a" in messages[-1]["content"].split():
                return {"final_content": "known", "total_prompt_tokens": 3, "total_completion_tokens": 2, "num_turns": 1}
            result = await super()._run_sub_llm(state, client, "other", [{"role": "user", "content": messages[-1]["content"] + "!"}])
            assert (result["num_turns"], result["turns"][0]["prompt_messages"][0]["content"]) == (1, "count b!")
            return {**result, "final_content": result["final_content"].upper()}

    show = 'print(llm_batch(["count " + page for page in context["pages"]]))\nanswer["ready"] = True'
    env = Answering(dataset=ROWS, repl_language="python", include_sub_llm_in_trajectory=True)
    model = Model(lambda number, state: [calling(("call_python_repl", {"code": show})), "one"][number])
    state = await env.rollout(env.get_dataset()[0], model, "m")
    assert (state["error"], texts(state["completion"])) == (None, ["['known', 'ONE']"])
    assert [prompt[-1]["content"] for prompt in model.prompts][1] == "count b!"
    assert [step["extras"].get("is_sub_llm_call", False) for step in state["trajectory"]] == [False, True]
    counts = state["recursion_counts"]
    assert (counts.batch_sizes, counts.sub_turns, counts.sub_tool_calls, counts.sub_limits_reached) == ([2], 2, 0, 0)
    assert (counts.sub_prompt_tokens, counts.sub_completion_tokens) == (3, 2)


async def test_files_are_kept_where_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    class Looking(vf.RLMEnv):
        async def post_rollout(self, state: Any) -> None:
            state["seen"] = sorted(path.name for path in Path(state["rlm_fs_root"]).iterdir())

    write = calling(("call_bash_repl", {"code": "echo hi > note.txt; ln -s /etc/passwd link"}))
    state = await rolled_out(Looking(dataset=ROWS, retain_filesystem_after_rollout=True), write, "done")
    assert (state["error"], state["seen"]) == (None, ["context.json", "note.txt"])
    assert (Path(state["rlm_fs_root"], "note.txt").read_text(), state["rlm_fs_root_remote"]) == ("hi\n", "/workspace")
    before = sorted(tmp_path.iterdir())
    state = await rolled_out(vf.RLMEnv(dataset=ROWS), write, "done")
    assert ("rlm_fs_root" in state, sorted(tmp_path.iterdir())) == (False, before)


def test_what_is_not_offered_is_refused() -> None:
    for name, value in {
        "enable_summarization": True,
        "sub_max_completion_tokens": 9,
        "abort_on_code_timeout": True,
        "sandbox_gpu_count": 1,
        "sandbox_docker_image": "acme/tools:1",
    }.items():
        with pytest.raises(ConfigurationError, match=name.removeprefix("sandbox_")):
            vf.RLMEnv(dataset=ROWS, backend="bwrap", **{name: value})
