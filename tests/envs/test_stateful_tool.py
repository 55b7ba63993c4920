"""Tools that work on what belongs to one episode: their hidden arguments, and who gives them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.envs.test_tool import ROWS, add, answers, call, calling, fail, later, say
from vfgym import State, StatefulToolEnv
from vfgym.errors import ConfigurationError, HookMissing, InfraError
from vfgym.messages import Message


class Account(StatefulToolEnv):
    """A bank account for each episode, which the model never sees."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(dataset=ROWS, **kwargs)
        self.add_tool(self.deposit, args_to_skip=["account"])
        self.add_tool(self.balance, args_to_skip=["account"])
        self.add_tool(say)

    def setup_state(self, state: State) -> Any:
        state["account"] = {"balance": 0}
        return super().setup_state(state)

    def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], messages: list[Message], state: State, **kwargs: Any) -> Any:
        if tool_name == "say":
            return tool_args
        return {**tool_args, "account": state["account"]}

    async def deposit(self, amount: int, account: dict[str, int]) -> str:
        """Deposit money."""
        before = account["balance"]
        await asyncio.sleep(0)
        account["balance"] = before + amount
        return "done"

    def balance(self, account: dict[str, int]) -> int:
        """Return the balance."""
        return account["balance"]


class AsyncAccount(Account):
    async def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: list[Message], state: State, **kwargs: Any
    ) -> dict[str, Any]:
        await asyncio.sleep(0)
        arguments: dict[str, Any] = super().update_tool_args(tool_name, tool_args, messages, state, **kwargs)
        return arguments


@pytest.mark.parametrize("kind", [Account, AsyncAccount])
def test_stateful_tools_get_their_hidden_arguments_and_run_in_order(kind: type[Account]) -> None:
    env = kind()
    deposits = [call("deposit", {"amount": amount}) for amount in (1, 2, 3)]
    messages = answers(env, *deposits, call("balance"), call("deposit", {"amount": 4}), call("say", {"text": "hi"}), call("balance"))
    assert [message["content"] for message in messages] == ["done", "done", "done", "6", "done", "hi", "10"]
    assert env.state["account"] == {"balance": 10}


def test_hidden_arguments_are_neither_shown_nor_taken_from_the_model() -> None:
    env = Account()
    _, info = env.reset(seed=0)
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in info["tools"]}
    assert (list(schemas["deposit"]["properties"]), schemas["balance"]["properties"]) == (["amount"], {})
    assert "account" not in json.dumps(info["tools"])
    [message] = answers(env, call("balance", {"account": {"balance": 1000000}}))
    assert "account" in message["content"]
    assert "1000000" not in message["content"]


def test_hiding_an_argument_that_does_not_exist_is_refused() -> None:
    env = Account()
    with pytest.raises(ConfigurationError, match="wallet"):
        env.add_tool(later, args_to_skip=["wallet"])


@pytest.mark.parametrize("is_async", [False, True])
def test_what_update_tool_args_raises_is_not_told_to_the_model(is_async: bool) -> None:
    """It is a hook: an `Error` ends the episode, and anything else is a bug and is raised."""

    class Forgetful(Account):
        def update_tool_args(self, *args: Any, **kwargs: Any) -> Any:
            if is_async:
                return self.forget()
            raise error

        async def forget(self) -> dict[str, Any]:
            await asyncio.sleep(0)
            raise error

    env = Forgetful()
    error: Exception = InfraError("the session is lost")
    env.reset(seed=0)
    outcome = env.step(calling(call("deposit", {"amount": 1}), call("balance")))
    assert (outcome.terminated, outcome.info["stop_condition"]) == (True, "has_error")
    assert env.state["error"] is error
    error = LookupError("no account")
    env.reset(seed=0)
    with pytest.raises(LookupError, match="no account"):
        env.step(calling(call("balance")))


class Plain(StatefulToolEnv):
    """Gives what it is told to give, and keeps what it was asked."""

    def __init__(self, **kwargs: Any) -> None:
        self.asked: list[Any] = []
        super().__init__(**{"dataset": ROWS, **kwargs})

    def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], messages: list[Message], state: State, **kwargs: Any) -> Any:
        self.asked.append((tool_name, dict(tool_args), messages, state))
        return tool_args


def test_what_its_arguments_are_for() -> None:
    env = Plain(tools=[add, fail], max_turns=3, error_formatter=repr, stop_errors=[ZeroDivisionError])
    [answer] = answers(env, call("fail", {"reason": "x"}))
    assert answer["content"] == "LookupError('x')"
    assert (env.max_turns, env.stop_errors, [*env.tool_map]) == (3, [ZeroDivisionError], ["add", "fail"])
    assert env.skipped_args == {"add": [], "fail": []}
    assert Plain().max_turns == 10


def test_hidden_arguments_are_asked_for_with_the_whole_conversation() -> None:
    """For each call that can be read; what cannot, and tools that there are not, are told before."""
    env = Plain(tools=[add])
    answers(env, call("add", {"a": "2"}), call("nope"), call("add", "{"), call("add", {"b": 1}), call("add", {"a": 1, "b": 2}))
    assert [(name, arguments) for name, arguments, _, _ in env.asked] == [("add", {"a": 2}), ("add", {"a": 1, "b": 2})]
    for _, _, messages, state in env.asked:
        assert ([message["role"] for message in messages], state) == (["user", "assistant"], env.state)
    env.close()


def test_several_arguments_are_hidden_and_a_text_is_not_several() -> None:
    def move(x: int, board: list[int], player: str = "me") -> str:
        """Move."""
        return f"{player} {x} {board}"

    class Moving(Plain):
        def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
            return {**tool_args, "board": [], "player": ""}

    env = Moving()
    hidden = ["board", "player"]
    env.add_tool(move, args_to_skip=hidden)
    hidden.clear()
    assert env.skipped_args == {"move": ["board", "player"]}
    assert [*env.tool_defs[0].parameters["properties"]] == ["x"]  # type: ignore[call-overload]
    [answer] = answers(env, call("move", {"x": 0}))
    assert answer["content"] == " 0 []"
    with pytest.raises(ConfigurationError, match="hidden takes a collection of parameter names, got the text 'text'"):
        env.add_tool(say, args_to_skip="text")
    with pytest.raises(ConfigurationError, match="there is a tool named 'move' already"):
        env.add_tool(move)
    assert env.skipped_args == {"move": ["board", "player"]}
    env.close()


def test_a_class_without_the_hook_says_what_to_write() -> None:
    class Empty(StatefulToolEnv): ...

    with pytest.raises(HookMissing, match=r"Empty must write update_tool_args\(tool_name, tool_args, messages, state\).*only ToolEnv"):
        Empty(dataset=ROWS)
