"""Calls a program's function, with a task and a state that are like those of the process that asks.

``python3 call_function.py call.json``; what comes of it is written to ``result.json`` beside that file.
"""

import asyncio
import importlib
import inspect
import json
import os
import sys
from typing import Any


class ProgramState(dict[str, Any]):
    """The state of the rollout: its data, and the methods by which a program reaches its model and its tools."""

    def __init__(self, call: dict[str, Any]) -> None:
        super().__init__(call["state"])
        self._call = call
        self.stopped: str | None = None

    def stop(self, condition: str = "state_done") -> None:
        """End the rollout."""
        self["done"], self.stopped = True, condition

    def get_model(self) -> str:
        """Return the name of the model."""
        return str(self._call["model"])

    def get_max_turns(self, default: int) -> int:
        """Return how many answers of the model the rollout may have."""
        limit = self["runtime"].get("max_turns")
        return default if limit is None else int(limit)

    def get_endpoint_config(self, api: str = "chat_completions") -> dict[str, str]:
        """Return how the model is reached."""
        if api not in self._call["endpoints"]:
            raise ValueError(f"the endpoint of a rollout does not speak {api!r}; it speaks {', '.join(self._call['endpoints'])}")
        return dict(self._call["endpoints"][api])

    def get_client(self, api: str = "chat_completions", *, sync: bool = False) -> Any:
        """Return a client of the provider's SDK, which must be installed here."""
        config = self.get_endpoint_config(api)
        given: dict[str, Any] = {"base_url": config["base_url"], "api_key": config["api_key"], "max_retries": 0, "timeout": 24 * 3600.0}
        if config["api_client_type"] == "anthropic_messages":
            import anthropic

            return anthropic.Anthropic(**given) if sync else anthropic.AsyncAnthropic(**given)
        import openai

        return openai.OpenAI(**given) if sync else openai.AsyncOpenAI(**given)

    def get_tools(self) -> dict[str, Any]:
        """Return the tools of the rollout, by name, as async functions."""
        return {name: self._tool(name) for name in self._call["tools"]}

    def _tool(self, name: str) -> Any:
        from call_tools import call_tool  # type: ignore[import-not-found] # the file beside this one, where this runs

        async def call(**arguments: Any) -> Any:
            return await asyncio.to_thread(call_tool, self._call["tools_url"], name, arguments)

        return call


def _find(reference: str) -> Any:
    module, _, path = reference.partition(":")
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


async def _await(value: Any) -> Any:
    return await value


def main() -> None:
    """Call the function."""
    folder = os.path.dirname(sys.argv[1])
    with open(sys.argv[1], encoding="utf-8") as file:
        call = json.load(file)
    func, state = _find(call["function"]), ProgramState(call)
    names = {"task": call["task"], "state": state, **call["arguments"]}
    parameters = inspect.signature(func).parameters.values()
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        names = {parameter.name: names[parameter.name] for parameter in parameters if parameter.name in names}
    result = func(**names)
    if inspect.isawaitable(result):
        result = asyncio.run(_await(result))
    said = {"state": state, "stopped": state.stopped, "result": None if result is state else result}
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as file:
        json.dump(said, file)


if __name__ == "__main__":
    main()
