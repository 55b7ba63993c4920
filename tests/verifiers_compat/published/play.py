"""Play packages and print what came of it as JSON: a program for any implementation of the rollout API.

usage: play.py REQUEST, where REQUEST is JSON: {"url": ..., "packages": [[id, model, arguments], ...]}
"""

import asyncio
import json
import os
import sys

import verifiers as vf


def plain(value):
    """Return messages and the like as plain data, without what is None."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def call_of(call):
    """Return a tool call in one form: saved as JSON text, flat, or nested."""
    call = json.loads(call) if isinstance(call, str) else call
    function = call.get("function", call)
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = function["arguments"]
    return {"name": function["name"], "arguments": arguments}


def conversation(messages):
    """Return what was said, and which tools were called."""
    return [
        {"role": m["role"], "content": m.get("content") or "", "calls": [call_of(c) for c in m.get("tool_calls") or []]}
        for m in plain(messages)
    ]


def summary(output):
    """Return what two implementations have to agree on."""
    return {
        "example_id": output["example_id"],
        "prompt": conversation(output["prompt"]),
        "completion": conversation(output["completion"]),
        "reward": round(output["reward"], 9),
        "metrics": {name: round(value, 9) for name, value in sorted(output["metrics"].items())},
        "stop_condition": output["stop_condition"],
        "is_truncated": output["is_truncated"],
        "error": bool(output["error"]),
    }


async def play(env_id, model, arguments, url):
    """Return the rows of an environment's tasks, and what its rollouts were."""
    env = vf.load_environment(env_id, **arguments)
    rows = [{"example_id": row["example_id"], "prompt": conversation(row["prompt"])} for row in env.get_eval_dataset()]
    client = vf.ClientConfig(api_base_url=url, api_key_var="SOME_KEY")
    rollouts = 4 if env.requires_group_rollouts else 2
    results = await env.evaluate(client, model, num_examples=2, rollouts_per_example=rollouts, max_concurrent=1)
    outputs = sorted((summary(output) for output in results["outputs"]), key=lambda each: json.dumps(each, sort_keys=True))
    return {"rows": rows, "outputs": outputs, "avg_reward": round(results["metadata"]["avg_reward"], 9)}


async def main():
    """Play all that is asked for; what fails is told."""
    request = json.loads(sys.argv[1])
    played = {}
    for env_id, model, arguments in request["packages"]:
        try:
            played[env_id] = await play(env_id, model, arguments, request["url"])
        except Exception as error:
            played[env_id] = {"failed": f"{type(error).__name__}: {error}"}
    with open(request["out"], "w", encoding="utf-8") as file:
        json.dump(played, file)


if __name__ == "__main__":
    os.environ.setdefault("SOME_KEY", "none")
    asyncio.run(main())
