"""Tools as methods, with the signature, the type hints and the docstring that a tool's JSON schema says: episodes without messages.

Trainers that make schemas of functions again (``transformers.utils.get_json_schema``) come to the same schema, but for what type hints
cannot say: bounds, patterns and the fields of objects.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import keyword
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union

from vfgym.agents.base import seat_of
from vfgym.errors import ConfigurationError, ResetNeeded
from vfgym.messages import AssistantMessage, Message, ToolCall
from vfgym.tools import Tool
from vfgym.training.adapters import Env, added_messages, write_text
from vfgym.training.counting import CountedRewards, RolloutMissing, reward_after

logger = logging.getLogger(__name__)

_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None, "array": list, "object": dict}
_RESERVED = ("reset", "get_reward")


class ToolEpisodes:
    """Episodes in which tools are called as methods. `make_class` makes a subclass with a method for each tool."""

    _trainer = ""
    """Who calls them, for errors."""

    def __init__(self, env: Env) -> None:
        """Play on an environment of one's own."""
        self._env = CountedRewards(env)
        self._num_resets = 0
        self._begin([])

    def reset(self, **row: Any) -> str | None:
        """Begin an episode, and return what its prompt says where the row does not have it.

        Args:
            **row: A row of a data set. Without ``example_id``, the nth episode of each instance begins with the seed n, so that rollouts
                that a trainer begins together begin alike.
        """
        is_known = row.get("example_id") is not None
        seed = int(row["example_id"]) if is_known else self._num_resets
        options = {name: row[name] for name in ("example_id", "split") if is_known and row.get(name) is not None}
        self._num_resets += not is_known
        observation, _ = self._env.reset(seed=seed, options=options)
        self._begin(observation)
        return None if is_known else write_text(self._seen)

    def _begin(self, observation: Sequence[Message]) -> None:
        self._seen, self._num_calls, self._return = observation, 0, 0.0
        self._is_over = self._is_missing = False

    def get_reward(self) -> float | None:
        """Return what the episode counts with. One that is still running ends here, as a limit would end it.

        Returns:
            None where it failed by the doing of its environment, or of what is underneath: the trainer leaves it out of its group.

        Raises:
            ResetNeeded: If no episode has begun, as where a tool is called then.
        """
        if not self._is_over:
            with contextlib.suppress(RolloutMissing):
                self._take(self._env.truncate)
        return None if self._is_missing else self._return

    def _take(self, play: Callable[[], tuple[Any, float, bool, bool, dict[str, Any]]]) -> Sequence[Message]:
        """Play on, add what that earns, and return what it shows. What it raises ends the episode."""
        try:
            observation, reward, terminated, truncated, _ = play()
        except ResetNeeded:
            raise
        except Exception as error:
            self._is_over, counted = True, reward_after(error, self._return, seat_of(self._env))
            self._return, self._is_missing = counted or 0.0, counted is None
            raise
        self._return += reward
        self._is_over = terminated or truncated
        return observation  # type: ignore[no-any-return]

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        self._num_calls += 1
        text = json.dumps(arguments)
        return self._step(AssistantMessage(None, tool_calls=[ToolCall(f"call_{self._num_calls}", name, text)]))

    def _step(self, message: AssistantMessage) -> str:
        if self._is_over:
            return "The episode is over."
        observation = self._take(lambda: self._env.step(message))  # the trainer takes what is raised for an error of the tool
        added = added_messages(self._seen, observation, self._trainer)
        self._seen = observation
        return write_text(added) or "The episode is over."

    def _read_last_answer(self, completion: Sequence[Mapping[str, Any]]) -> None:
        """Take the answer that ended the rollout, which trainers show to reward functions only."""
        last = completion[-1] if completion else {}
        if last.get("role") == "assistant" and not last.get("tool_calls"):
            try:
                self._step(AssistantMessage(last.get("content") or ""))
            except ConfigurationError:
                raise
            except Exception:
                if not self._is_over:  # else the episode says with its reward what came of it
                    raise


def make_class(env: Env, trainer: str) -> type[ToolEpisodes]:
    """Return a class of episodes with a method for each tool of an environment.

    Raises:
        ConfigurationError: If there are none, or one cannot be a method.
    """
    definition = seat_of(env).definition
    if not definition.tool_defs:
        raise ConfigurationError(
            f"{trainer} takes the actions of an environment from its methods, and {type(definition).__name__} has no tools: make it with"
            " tools (a game: as_tool=True)"
        )
    methods = {tool.name: make_method(tool, ToolEpisodes._call) for tool in definition.tool_defs}
    return type(type(definition).__name__, (ToolEpisodes,), {**methods, "_trainer": trainer})


def make_method(tool: Tool, call: Callable[[Any, str, dict[str, Any]], str]) -> Callable[..., str]:
    """Return a function that calls a tool, to be a method of a class.

    Args:
        tool: What the method is called, which arguments it has, and what its docstring says.
        call: Called with the object, the tool's name and the arguments, which are not checked before.

    Raises:
        ConfigurationError: If a method cannot have that name, or that argument.
    """
    if tool.name in _RESERVED or tool.name.startswith("_") or not tool.name.isidentifier():
        raise ConfigurationError(
            f"the tool {tool.name!r} cannot be a method: the trainer takes each method whose name is a plain one for a tool, but for"
            f" {' and '.join(_RESERVED)}. Give the tool another name"
        )
    properties: Any = tool.parameters.get("properties", {})
    definitions: Any = tool.parameters.get("$defs", {})
    required: Any = tool.parameters.get("required", [])
    names = sorted(properties, key=lambda name: name not in required)  # those without a default come first
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name) or name == "self":
            raise ConfigurationError(f"the argument {name!r} of the tool {tool.name!r} cannot be a Python argument: give it another name")
    hints = {name: hint_of(properties[name], definitions) for name in names}

    def method(self: Any, *args: Any, **kwargs: Any) -> str:
        if len(args) > len(names):
            raise TypeError(f"{tool.name}() takes at most {len(names)} arguments, got {len(args)}")
        return call(self, tool.name, {**dict(zip(names, args, strict=False)), **kwargs})

    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = {name: inspect.Parameter.empty if name in required else properties[name].get("default") for name in names}
    parameters = [inspect.Parameter(name, either, annotation=hints[name], default=defaults[name]) for name in names]
    method.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("self", either), *parameters], return_annotation=str
    )
    method.__annotations__ = {**hints, "return": str}
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = _docstring(tool, {name: properties[name].get("description") or f"The {name}." for name in names})
    return method


def hint_of(schema: Mapping[str, Any] | bool, definitions: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> Any:
    """Return the type hint that says what a JSON schema does, as far as one can.

    >>> hint_of({"enum": ["left", "right"]}, {}), hint_of({"type": "array", "items": {"type": "integer"}}, {})
    (typing.Literal['left', 'right'], list[int])

    Args:
        schema: The schema of one value; True admits any.
        definitions: The schemas that it refers to, by name.
        seen: Names that it stands inside of: a schema that refers to itself may be anything there.
    """
    if isinstance(schema, bool):
        return Any
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return Any if name in seen or name not in definitions else hint_of(definitions[name], definitions, seen | {name})
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return Literal[tuple(values)] if all(isinstance(value, str | int | bool | None) for value in values) else Any
    options = [hint_of(each, definitions, seen) for each in schema.get("anyOf") or schema.get("oneOf") or ()]
    kind = schema.get("type")
    if isinstance(kind, list):
        options = [hint_of({**schema, "type": each}, definitions, seen) for each in kind]
    if options:
        return Any if Any in options else Union[tuple(options)]  # noqa: UP007 -- there may be one option
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return list[hint_of(schema["items"], definitions, seen)]  # type: ignore[misc]
    return _TYPES.get(str(kind), Any)


def _docstring(tool: Tool, descriptions: Mapping[str, str]) -> str:
    """Return a docstring in the Google style. Descriptions become one line, since a docstring is read by lines."""
    arguments = [f"    {name}: {' '.join(text.split())}" for name, text in descriptions.items()]
    head = " ".join(tool.description.split()) or f"Call {tool.name}."
    return "\n".join([head, *(["", "Args:", *arguments] if arguments else []), "", "Returns:", "    What the environment answers.", ""])
