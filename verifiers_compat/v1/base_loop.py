"""The base program: ask the model, call the tools that it calls, let the user answer, until somebody is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verifiers_compat.envs.tool_env import as_tool_content
from verifiers_compat.v1.plain import plain_message, plain_messages
from vfgym.calls import rollout_failure
from vfgym.interception.wire import message_of
from vfgym.messages import Message, ToolCall, ToolMessage, as_messages

if TYPE_CHECKING:
    from verifiers_compat.v1.runtime import Runtime


async def run_base_loop(running: Runtime) -> None:
    """Play a rollout: one trajectory step for each answer of the model.

    Stop conditions are checked before each answer and after each tool. It ends with ``no_tools`` where the model calls none
    and no user goes on, and with ``max_turns_reached`` at the limit.
    """
    state, harness, limit = running.state, running.harness, running.max_turns
    prompt = as_messages([*running.system_prompt, *(state.get("prompt") or [])], name="prompt")
    conversation = list(prompt)
    state["prompt"] = plain_messages(prompt, "prompt")
    definitions = [tool.definition for tool in running.tools.values()]
    if running.outer is not None:
        running.outer["tool_defs"] = definitions
    turn = 0
    try:
        while limit <= 0 or turn < limit:
            if await harness.is_stopped(running):
                return
            response = await running.ask(conversation, definitions)
            turn += 1
            message = message_of(response)
            conversation.append(message)
            calls = message.get("tool_calls") or []
            if calls:
                if await _call_all(running, calls, conversation):
                    return
                continue
            said = (
                [] if running.user is None else await running.user.answer(running.task, state, plain_messages(conversation, "transcript"))
            )
            if not said:
                state.complete("no_tools")
                return
            conversation += as_messages(said, name="what the user says")
        state.complete("max_turns_reached")
    finally:
        state["completion"] = [plain_message(message) for message in conversation[len(prompt) :]]


async def _call_all(running: Runtime, calls: list[ToolCall], conversation: list[Message]) -> bool:
    """Carry out the calls one after another; say whether the rollout was stopped in between."""
    for call in calls:
        conversation.append(ToolMessage(await _result_of(running, call), tool_call_id=call.id))
        if await running.harness.is_stopped(running):
            return True
    return False


async def _result_of(running: Runtime, call: ToolCall) -> Any:
    try:
        return as_tool_content(await running.tools[call.name].call(call.arguments))
    except BaseException as error:
        return str(rollout_failure(error))
