"""`Task`: what a rollout starts from, as data that nobody changes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NoReturn, Self

from pydantic import ValidationError

from verifiers_compat.v1.config import SandboxConfig
from verifiers_compat.v1.plain import check_json, plain_messages, system_messages
from vfgym.errors import ConfigurationError
from vfgym.interception.wire import plain_data


class InvalidTask(ConfigurationError):
    """A field of a task does not fit."""


class PrivateField(InvalidTask, TypeError):
    """A field is not a task's to set, or is of a type that cannot stand there."""


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError("a frozen task cannot be changed: what changes during a rollout is kept in its state")


class _FrozenDict(dict[str, Any]):
    __setitem__ = __delitem__ = __ior__ = _refuse
    pop = popitem = clear = update = setdefault = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return _frozen, (dict(self),)


class _FrozenList(list[Any]):
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(value, memo) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return _frozen, (list(self),)


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _FrozenDict({key: _frozen(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return _FrozenList([_frozen(item) for item in value])
    return value


class Task(dict[str, Any]):
    """What a rollout starts from: JSON data, immutable once it is frozen.

    Documented fields: ``prompt`` (messages, none of them a system message), ``system_prompt``, ``answer``, ``info``,
    ``max_turns``, ``tools`` (``{"show": [...]}`` or ``{"hide": [...]}``), ``toolsets``, ``sandbox``, ``program``. Any others
    may stand beside them.

    >>> task = Task(prompt="6 * 7?", answer="42").freeze()
    >>> task["prompt"]
    [{'role': 'user', 'content': '6 * 7?'}]
    """

    __slots__ = ("_is_frozen",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Copy the given items, like ``dict``, all the way down."""
        self._is_frozen = False
        super().__init__(copy.deepcopy(dict(*args, **kwargs)))

    @property
    def is_frozen(self) -> bool:
        """Whether it was checked, and cannot be changed any more."""
        return self._is_frozen

    def freeze(self) -> Self:
        """Check the fields, make the task immutable all the way down, and return it.

        Raises:
            ConfigurationError: If a field does not fit, or something in it has no form in JSON.
        """
        if self._is_frozen:
            return self
        checked = _check(plain_data(self))
        check_json(checked, "a task")
        dict.clear(self)
        dict.update(self, {key: _frozen(value) for key, value in checked.items()})
        self._is_frozen = True
        return self

    def _change(name: str) -> Any:  # type: ignore[misc] # noqa: N805
        own = getattr(dict, name)

        def change(self: Task, *args: Any, **kwargs: Any) -> Any:
            if self._is_frozen:
                _refuse(self)
            return own(self, *args, **kwargs)

        change.__name__, change.__doc__ = name, f"Like ``dict.{name}``; a TypeError once the task is frozen."
        return change

    __setitem__, __delitem__, __ior__ = _change("__setitem__"), _change("__delitem__"), _change("__ior__")
    pop, popitem, clear = _change("pop"), _change("popitem"), _change("clear")
    update, setdefault = _change("update"), _change("setdefault")
    del _change

    def __copy__(self) -> Task:
        return Task(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Task:
        return Task(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (plain_data(self), self._is_frozen)


def _restore(fields: dict[str, Any], is_frozen: bool) -> Task:
    task = Task(fields)
    return task.freeze() if is_frozen else task


def _check(fields: dict[str, Any]) -> dict[str, Any]:
    if "runtime" in fields:
        raise PrivateField("a task has no field 'runtime': what concerns the running rollout is in state['runtime']")
    if fields.get("prompt") is not None:
        fields["prompt"] = plain_messages(fields["prompt"], "prompt")
        if any(message["role"] in ("system", "developer") for message in fields["prompt"]):
            raise InvalidTask("a task's prompt has no system messages: put them into its system_prompt")
    if fields.get("system_prompt") is not None:
        fields["system_prompt"] = system_messages(fields["system_prompt"])
    for name in ("tools", "toolsets", "sandbox", "program"):
        if fields.get(name) is not None and not isinstance(fields[name], dict):
            raise PrivateField(f"a task's {name} must be a mapping, got {type(fields[name]).__name__}")
    if fields.get("tools") is not None:
        fields["tools"] = check_visibility(fields["tools"], "a task's tools")
    if fields.get("max_turns") is not None and type(fields["max_turns"]) is not int:
        raise PrivateField(f"a task's max_turns must be an integer, got {fields['max_turns']!r}")
    if fields.get("sandbox") is not None:
        try:
            fields["sandbox"] = SandboxConfig.from_config(fields["sandbox"]).model_dump(mode="json")
        except ValidationError as error:
            raise InvalidTask(f"a task's sandbox: {error}") from None
    return fields


def check_visibility(value: Mapping[str, Any], what: str) -> dict[str, list[str]]:
    """Return ``{"show": [...]}`` or ``{"hide": [...]}`` as it is, checked.

    Raises:
        InvalidTask: If it is neither.
    """
    if len(value) != 1 or next(iter(value)) not in ("show", "hide"):
        raise InvalidTask(f"{what} must be {{'show': [names]}} or {{'hide': [names]}}, got the keys {', '.join(value) or '(none)'}")
    [(key, names)] = value.items()
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidTask(f"{what}: {key!r} must be a list of names, got {names!r}")
    return {key: list(names)}
