"""The turns of a kept rollout: as data in memory, where prompts share their storage, and on disk, where none repeats another.

A conversation of T turns has prompts of some T²/2 messages together, nearly all of which the turn before has too. In memory a
prompt is a view of the conversation. On disk it is ``{"shared": n, "new": [...]}``: the first `n` messages of what came before
(the prompt and completion of the step before, or the row's own prompt), and those that are new. A prompt that does not go on
from there, since the history was rewritten, is the plain list of its messages. Token ids are kept in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Mapping, Sequence
from typing import Any, TypeGuard

from vfgym.messages import Message, Response, ResponseMessage
from vfgym.results.plain_json import as_json
from vfgym.state import MessagesView

_MASKS = ("prompt_mask", "completion_mask")
_NUMBERS = frozenset({"prompt_ids", "completion_ids", "completion_logprobs", *_MASKS})


class KeptStep(dict[str, Any]):
    """One turn of a kept rollout, with the keys of `vfgym.state.TrajectoryStep`. All values but the prompt are plain data.

    The prompt may be a `MessagesView`; whoever goes over the items (JSON encoders do) gets a list for it.
    """

    __slots__ = ()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """Return the items, the prompt as a list."""
        return {key: list(value) if value.__class__ is MessagesView else value for key, value in dict.items(self)}.items()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)  # `dict` copies what is stored, so that the pickled steps share their prompts


def is_trajectory(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    """Say whether a value is a list of turns, each with the messages of its prompt and its completion."""
    return isinstance(value, list) and all(
        isinstance(step, Mapping) and isinstance(step.get("prompt"), list | MessagesView) and isinstance(step.get("completion"), list)
        for step in value
    )


def keep_steps(trajectory: Sequence[Mapping[str, Any]], fallback: Callable[[Any], Any]) -> list[KeptStep]:
    """Return the turns of an episode as data, with the messages and the token lists shared.

    Args:
        trajectory: The steps.
        fallback: Gives what stands for a value that has no form in JSON.
    """
    return [_keep_step(step, fallback) for step in trajectory]


def _keep_step(step: Mapping[str, Any], fallback: Callable[[Any], Any]) -> KeptStep:
    kept = KeptStep()
    for key, value in step.items():
        if value is None or value.__class__ in (str, bool, int, float):
            kept[key] = value
        elif key in ("prompt", "completion"):
            kept[key] = _keep_messages(value, fallback)
        elif key == "response" and isinstance(value, Response):
            kept[key] = _keep_response(value, fallback)
        elif key == "tokens" and isinstance(value, Mapping):
            # The lists may be long, and belong to their episode alone: they are shared.
            is_shared = {name: name in _NUMBERS and item.__class__ is list for name, item in value.items()}
            kept[key] = {name: item if is_shared[name] else as_json(item, fallback) for name, item in value.items()}
        else:
            kept[key] = as_json(value, fallback)
    return kept


def _keep_messages(messages: Any, fallback: Callable[[Any], Any]) -> Any:
    """Return messages as they are kept: a view as it is, a list with its messages shared."""
    if messages.__class__ is MessagesView:
        return messages
    return list(messages) if all([isinstance(message, Message) for message in messages]) else as_json(messages, fallback)


def _keep_response(response: Response, fallback: Callable[[Any], Any]) -> dict[str, Any]:
    message = response.message
    return {
        "id": response.id,
        "created": response.created,
        "model": response.model,
        "usage": as_json(response.usage, fallback),
        # The tokens are those of the step.
        "message": {key: value for key, value in message.items() if key != "tokens"} if "tokens" in message else message,
    }


# On disk


def encode_steps(trajectory: Sequence[Mapping[str, Any]], prompt: Any) -> list[dict[str, Any]]:
    """Return the turns of a row as they stand on disk.

    Args:
        trajectory: The steps.
        prompt: The prompt of the row.
    """
    steps = []
    before: Sequence[Any] = prompt if isinstance(prompt, list) else []
    completion: list[Any] = []
    tokens: Mapping[str, Any] | None = None
    for step in trajectory:
        data = dict(step)  # what is stored, views included
        data["prompt"] = _encode_prompt(step["prompt"], before, completion)
        response = step.get("response")
        if isinstance(response, Mapping):
            data["response"] = _encode_response(response, step["completion"])
        if isinstance(step.get("tokens"), Mapping):
            data["tokens"] = _encode_tokens(step["tokens"], tokens)
            tokens = step["tokens"]
        steps.append(data)
        before, completion = step["prompt"], step["completion"]
    return steps


def _encode_prompt(prompt: Any, before: Any, completion: list[Any]) -> Any:
    known, shared = len(before), len(before) + len(completion)
    if prompt.__class__ is before.__class__ is MessagesView and prompt._messages is before._messages:
        goes_on = len(prompt) >= shared and prompt._messages[known:shared] == completion
        storage = prompt._messages
    else:
        storage = list(prompt)
        goes_on = len(prompt) >= shared and storage[:known] == list(before) and storage[known:shared] == completion
    return {"shared": shared, "new": storage[shared : len(prompt)]} if goes_on else list(prompt)


def _encode_response(response: Mapping[str, Any], completion: list[Any]) -> dict[str, Any]:
    data = dict(response)
    message = data.get("message")
    if not isinstance(message, Mapping) or len(completion) != 1:
        return data
    own = {key: value for key, value in message.items() if key in ResponseMessage.OWN_FIELDS}
    if completion[0] == {key: value for key, value in message.items() if key not in own}:
        del data["message"]
        if own:
            data["message_fields"] = own
    return data


def _encode_tokens(tokens: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    data = dict(tokens)
    for name in _MASKS:
        mask = data.get(name)
        if isinstance(mask, list) and mask and mask.count(mask[0]) == len(mask):
            data[name] = {"value": mask[0], "count": len(mask)}
    ids = data.get("prompt_ids")
    if before is not None and isinstance(ids, list):
        known = [*before["prompt_ids"], *before["completion_ids"]]
        if known and ids[: len(known)] == known:
            data["prompt_ids"] = {"shared": len(known), "new": ids[len(known) :]}
    return data


def decode_steps(steps: Sequence[Mapping[str, Any]], prompt: Any) -> list[KeptStep]:
    """Return turns that were read from disk with whole prompts, which share their storage where one goes on from another.

    Args:
        steps: The steps as they stand on disk.
        prompt: The prompt of the row.

    Raises:
        ValueError: If a step refers to more than there is before it.
    """
    log: list[Any] = list(prompt) if isinstance(prompt, list) else []
    tokens: Mapping[str, Any] | None = None
    trajectory = []
    for step in steps:
        kept = KeptStep(step)
        shown, completion, response = step["prompt"], step["completion"], step.get("response")
        log = _extend_list(log, shown, "messages") if isinstance(shown, Mapping) else list(shown)
        kept["prompt"] = MessagesView(log, len(log))
        if isinstance(response, Mapping) and "message" not in response and len(completion) == 1:
            rest = {key: value for key, value in response.items() if key != "message_fields"}
            kept["response"] = {**rest, "message": {**completion[0], **response.get("message_fields", {})}}
        if isinstance(step.get("tokens"), Mapping):
            kept["tokens"] = tokens = _decode_tokens(step["tokens"], tokens)
        trajectory.append(kept)
        log.extend(completion)  # beyond the end of every view so far
    return trajectory


def _extend_list(base: list[Any], delta: Mapping[str, Any], what: str) -> list[Any]:
    """Return the list that a delta makes of `base`; `base` itself, made longer, where nothing of it is cut."""
    shared, new = delta["shared"], delta["new"]
    if not 0 <= shared <= len(base):
        raise ValueError(f"a step of the trajectory shares {shared} {what} with what came before, which has {len(base)}")
    if shared < len(base):
        return [*base[:shared], *new]
    base.extend(new)
    return base


def _decode_tokens(tokens: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    data = dict(tokens)
    for name in _MASKS:
        mask = data.get(name)
        if isinstance(mask, Mapping):
            data[name] = [mask["value"]] * mask["count"]
    if isinstance(data.get("prompt_ids"), Mapping):
        known = [] if before is None else [*before["prompt_ids"], *before["completion_ids"]]
        data["prompt_ids"] = _extend_list(known, data["prompt_ids"], "token ids")
    return data
