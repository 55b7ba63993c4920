"""Environments for tinker-cookbook (0.5.8): single-use environments of tokens, and builders of groups of them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from vfgym.agents.base import seat_of
from vfgym.aio.bridge import bridge
from vfgym.messages import Message, Response, ResponseMessage, ToolCall
from vfgym.training import adapters
from vfgym.training.adapters import fork_env, require_trainer
from vfgym.training.counting import CountedRewards

require_trainer("tinker_cookbook", "tinker-cookbook==0.5.8")

import tinker  # noqa: E402
from tinker_cookbook import renderers  # noqa: E402
from tinker_cookbook.rl import types  # noqa: E402

_SEEDS = 2**31


class TinkerEnv(types.Env):  # type: ignore[misc]
    """One episode of a chat environment, in the tokens of a renderer."""

    def __init__(
        self, env: str | adapters.Env, renderer: renderers.Renderer, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        """Take what is played.

        Args:
            env: A chat environment, or the id of one.
            renderer: Writes conversations as tokens, and reads answers; where there are tools, it must be able to.
            seed: Of the episode.
            options: Reset options, such as ``{"example_id": 7}``.
        """
        self._env = CountedRewards(fork_env(env))
        self._renderer = renderer
        self._seed, self._options = seed, options
        self._said: dict[int, tuple[Message, Any]] = {}
        """What the model said, by the identity of the message, with what the renderer read: so it is written as it came."""

    async def initial_observation(self) -> tuple[Any, Any]:
        """Begin the episode."""
        options = None if self._options is None else dict(self._options)
        observation, info = await bridge(self._env.reset, seed=self._seed, options=options)
        return self._render(observation, info), self._renderer.get_stop_sequences()

    async def step(self, action: list[int], *, extra: Any = None) -> Any:
        """Answer with tokens. An answer that is cut off, or has no end, goes to the environment as a truncated one.

        Raises:
            vfgym.training.counting.RolloutMissing: If the episode failed by the doing of its environment, or of what is underneath. The
                trainer's ``RetryOnFailure`` plays it again, and ``MinViableGroup`` goes on without it.
        """
        read, termination = self._renderer.parse_response(action)
        is_cut_off = not termination.is_clean or (extra or {}).get("stop_reason") == "length"
        message = _as_answer(read, is_truncated=is_cut_off)
        observation, reward, terminated, truncated, info = await bridge(self._env.step, Response("", 0, "", message=message))
        state = seat_of(self._env).state
        if state is not None and state["trajectory"]:
            recorded = state["trajectory"][-1]["completion"][0]
            self._said[id(recorded)] = recorded, read
        is_over = terminated or truncated
        metrics: dict[str, float] = dict(info["metrics"]) if is_over else {}
        if is_over and info["stop_condition"] is not None:
            metrics[f"{types.STOP_METRIC_PREFIX}{info['stop_condition']}"] = 1.0
        return types.StepResult(
            reward=float(reward),
            episode_done=is_over,
            next_observation=tinker.ModelInput.empty() if is_over else self._render(observation, info),
            next_stop_condition=self._renderer.get_stop_sequences(),
            metrics=metrics,
        )

    async def close(self) -> None:
        """Clean up an episode that did not end."""
        await bridge(self._env.close)

    def _render(self, observation: Sequence[Message], info: Mapping[str, Any]) -> Any:
        """Return the tokens of a conversation. Not on a thread: tokenizers of transformers 5.5 cannot be used by two at once."""
        messages = [self._said[id(message)][1] if id(message) in self._said else _as_tinker(message) for message in observation]
        tools = [tool["function"] for tool in info["tools"]]
        if tools:
            is_first = bool(messages) and messages[0]["role"] == "system"
            system = messages.pop(0)["content"] if is_first else ""
            messages = [*self._renderer.create_conversation_prefix_with_tools(tools, system), *messages]
        return self._renderer.build_generation_prompt(messages)


ChatEnv = TinkerEnv


class ChatEnvGroupBuilder(types.EnvGroupBuilder):  # type: ignore[misc]
    """Makes groups of episodes that begin alike. It can be pickled where its environment and renderer can; an id always can."""

    def __init__(
        self,
        env: str | adapters.Env,
        renderer: renderers.Renderer,
        group_size: int,
        *,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Take what is played.

        Args:
            env: A chat environment, or the id of one.
            renderer: Writes conversations as tokens, and reads answers.
            group_size: How many episodes.
            seed: Of all of them; None draws one for each group.
            options: Reset options of all of them, such as ``{"example_id": 7}``.
        """
        self._arguments = env, renderer, group_size, seed, options
        self._made: list[TinkerEnv] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return _build_again, self._arguments

    async def make_envs(self) -> Sequence[TinkerEnv]:
        """Return the environments of a group."""
        env, renderer, group_size, seed, options = self._arguments
        seed = secrets.randbelow(_SEEDS) if seed is None else seed
        self._made = [TinkerEnv(env, renderer, seed=seed, options=options) for _ in range(group_size)]
        return self._made

    async def cleanup(self) -> None:
        """Close the environments that were made."""
        while self._made:
            await self._made.pop().close()

    def logging_tags(self) -> list[str]:
        """Return the id of the environment, or the name of its class."""
        env = self._arguments[0]
        return [env if isinstance(env, str) else type(seat_of(env).definition).__name__]


def _build_again(env: Any, renderer: Any, group_size: int, seed: int | None, options: Any) -> ChatEnvGroupBuilder:
    return ChatEnvGroupBuilder(env, renderer, group_size, seed=seed, options=options)


def _as_answer(read: Mapping[str, Any], *, is_truncated: bool) -> ResponseMessage:
    """Return what a renderer read as an answer. Calls that it could not read stay text."""
    content = read["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    thoughts = "".join(part["thinking"] for part in parts if part["type"] == "thinking")
    calls = [
        ToolCall(call.id or f"call_{number}", call.function.name, call.function.arguments)
        for number, call in enumerate(read.get("tool_calls") or ())
    ]
    text += "".join(call.raw_text for call in read.get("unparsed_tool_calls") or ())
    return ResponseMessage(
        text or (None if calls else ""),
        reasoning_content=thoughts or None,
        tool_calls=calls or None,
        finish_reason="length" if is_truncated else "tool_calls" if calls else "stop",
        is_truncated=is_truncated,
    )


def _as_tinker(message: Message) -> dict[str, Any]:
    """Return a message as renderers know it."""
    content = message["content"] or ""
    if not isinstance(content, str):
        content = [{"type": "image", "image": part["image_url"]["url"]} if part["type"] == "image_url" else dict(part) for part in content]
    said: dict[str, Any] = {"role": message["role"], "content": content}
    if calls := message.get("tool_calls"):
        bodies = [renderers.ToolCall.FunctionBody(name=call.name, arguments=call.arguments) for call in calls]
        said["tool_calls"] = [renderers.ToolCall(id=call.id, function=body) for call, body in zip(calls, bodies, strict=True)]
    if "tool_call_id" in message:
        said["tool_call_id"] = message["tool_call_id"]
    return said
