"""Models that need no model: policies for classes, tests and benchmarks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np

from vfgym.agents.base import seat_of
from vfgym.agents.loading import import_object
from vfgym.bounded_json import parse_json
from vfgym.calls import maybe_await
from vfgym.errors import ConfigurationError, InvalidMessage, did_you_mean
from vfgym.messages import Message, ToolCall, content_text
from vfgym.model_server.exchange import Answer, ModelRequest, Policy, Reply, RequestRefused, as_reply
from vfgym.spaces import TextSampler
from vfgym.tools import sample_arguments

CALL_SHARE = 0.5
"""How often `random_policy` calls a tool where it may choose."""


def echo(request: ModelRequest) -> str:
    """Repeat the last user message (of a plain-text prompt, all of it)."""
    for message in reversed(request.messages):
        if message["role"] in ("user", "text"):
            return content_text(message["content"])
    return content_text(request.messages[-1]["content"])


def scripted(answers: Iterable[Answer] | Mapping[str, Answer | Iterable[Answer]]) -> Policy:
    """Return a model that gives prepared answers, by the turn of the conversation.

    The turn is the number of assistant messages in the conversation, so one script serves any number of conversations at once.

    Args:
        answers: The answers, in order; or for each kind of conversation its answers, by a text that the first user message
            contains. The longest such text counts.

    Raises:
        ConfigurationError: If something in the script is not an answer. A conversation that is longer than the script, or that it does
            not know, gets status 400.
    """
    if isinstance(answers, Mapping):
        scripts = {_script_key(key): _script([one] if isinstance(one, str | Mapping | Reply) else one) for key, one in answers.items()}
    else:
        scripts = {"": _script(answers)}

    def policy(request: ModelRequest) -> Reply:
        first = next((content_text(message["content"]) for message in request.messages if message["role"] in ("user", "text")), "")
        keys = [key for key in scripts if key in first]
        if not keys:
            raise RequestRefused(400, f"the script has no answers to {first!r:.80}; it has some to {', '.join(map(repr, scripts))[:400]}")
        script = scripts[max(keys, key=len)]
        turn = sum(message["role"] == "assistant" for message in request.messages)
        if turn >= len(script):
            raise RequestRefused(400, f"the script has {len(script)} answer(s), and the conversation asks for number {turn + 1}")
        reply: Reply = script[turn]
        return reply

    return policy


def _script_key(key: Any) -> str:
    if not isinstance(key, str):
        raise ConfigurationError(f"the keys of a script are texts that the first user message contains, got {key!r}")
    return key


def _script(answers: Any) -> list[Reply]:
    if isinstance(answers, str) or not isinstance(answers, Iterable):
        raise ConfigurationError(f"a script is a list of answers, got {type(answers).__name__}: {answers!r:.80}")
    replies = []
    for index, answer in enumerate(answers):
        try:
            replies.append(as_reply(answer))
        except InvalidMessage as error:
            raise ConfigurationError(f"answer {index} of the script: {error}") from None
    return replies


def load_script(path: str | Path) -> Policy:
    """Return the model of a script in a file.

    Args:
        path: JSON: what `scripted` takes; or, where the name ends with ``.jsonl``, one answer a line.

    Raises:
        ConfigurationError: If the file cannot be read or is not a script.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8")
        is_lines = path.suffix == ".jsonl"
        content = [parse_json(line) for line in text.split("\n") if line.strip()] if is_lines else parse_json(text)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the script {path} cannot be read: {error}") from error
    return scripted(content)


def random_policy(seed: int = 0) -> Policy:
    """Return a model that answers with random words, or, where tools are offered, sometimes with calls that fit their schemas.

    ``tool_choice`` and ``parallel_tool_calls`` are heeded. The same request with a ``seed`` of its own gets the same answer; without
    one the answer follows from the number of the request.
    """
    sampler = TextSampler()

    def policy(request: ModelRequest) -> Answer:
        rng = np.random.default_rng([_digest(seed), *_source(request), request.choice])
        tools = {tool.name: tool for tool in request.tools}
        if not tools or request.tool_choice == "none" or (request.tool_choice == "auto" and rng.random() >= CALL_SHARE):
            return sampler.sample(rng)
        if request.tool_choice in tools and request.tool_choice not in ("auto", "required"):
            chosen = [request.tool_choice]
        else:
            is_parallel = _may_be_parallel(request.sampling_args) and rng.random() < CALL_SHARE / 2
            chosen = [list(tools)[int(index)] for index in rng.integers(len(tools), size=1 + is_parallel)]
        calls = [
            ToolCall(f"call_{request.number}_{request.choice}_{index}", name, json.dumps(sample_arguments(tools[name].parameters, rng)))
            for index, name in enumerate(chosen)
        ]
        return Reply(tool_calls=calls)

    return policy


def _may_be_parallel(sampling_args: Mapping[str, Any]) -> bool:
    choice = sampling_args.get("tool_choice")
    is_refused = isinstance(choice, Mapping) and choice.get("disable_parallel_tool_use")  # Anthropic's way
    return not is_refused and sampling_args.get("parallel_tool_calls") is not False


def _source(request: ModelRequest) -> list[int]:
    seed = request.sampling_args.get("seed")
    if seed is None:
        return [0, request.number]
    return [1, _digest(seed), _digest([dict(message) for message in request.messages])]


def _digest(value: Any) -> int:
    return int.from_bytes(hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).digest())


def oracle(answers: Mapping[str, Answer] | Callable[[str], Any]) -> Policy:
    """Return a model that knows the answers to some questions.

    Args:
        answers: Answers by question; the newest user message that is, or contains, a question counts (of several questions in it,
            the longest). Or a function from the last user message to an answer, plain or async, that returns None where it knows none.

    Raises:
        ConfigurationError: If `answers` is neither. A conversation with no known question gets status 400.
    """
    if callable(answers):
        return _make_asking(answers)
    if not isinstance(answers, Mapping) or not all(isinstance(question, str) for question in answers):
        raise ConfigurationError(f"an oracle needs answers by question (a dict), or a function, got {type(answers).__name__}")
    find = _finder(answers)

    return lambda request: find(request.messages)


def _make_asking(answer: Callable[[str], Any]) -> Policy:
    async def policy(request: ModelRequest) -> Any:
        question = echo(request)
        known = await maybe_await(answer, question)
        if known is None:
            raise RequestRefused(400, f"the oracle knows no answer to {question!r:.80}")
        return known

    return policy


def _finder(known: Mapping[str, Any]) -> Callable[[Sequence[Message]], Any]:
    """Return a function that finds what is known about the newest question of a conversation."""
    exact = {question.strip(): value for question, value in known.items() if question.strip()}

    def find(messages: Sequence[Message]) -> Any:
        texts = [content_text(message["content"]).strip() for message in reversed(messages) if message["role"] in ("user", "text")]
        for text in texts:
            if text in exact:
                return exact[text]
            inside = [question for question in exact if question in text]
            if inside:
                return exact[max(inside, key=len)]
        asked = texts[0] if texts else ""
        raise RequestRefused(400, f"the oracle knows no answer to {asked!r:.80}; it knows {len(exact)} question(s)")

    return find


def environment_oracle(env: gym.Env[Any, Any]) -> Policy:
    """Return a model that knows the right answers to the tasks of a chat environment.

    A task is known by the last user message of its prompt. The answer is the environment's own (`ChatEnv.oracle`), in the form
    that its rubric expects. A game, where no answer is known beforehand, gets status 400.

    Args:
        env: A chat environment, or wrappers around one. Its tasks are read once, now.

    Raises:
        ConfigurationError: If `env` is not a chat environment, or its tasks are endless.
    """
    definition = seat_of(env).definition
    sources = [definition.tasks] if definition.eval_tasks is definition.tasks else [definition.tasks, definition.eval_tasks]
    tasks: dict[str, dict[str, Any]] = {}
    for source in sources:
        if source.is_endless:
            raise ConfigurationError(f"{type(definition).__name__} makes tasks without end, so there is no list of their answers")
        for index in range(len(source)):
            task = source.input(index)
            question = next((message for message in reversed(task["prompt"]) if message["role"] in ("user", "text")), None)
            if question is not None:
                tasks.setdefault(content_text(question["content"]), task)
    find = _finder(tasks)

    async def policy(request: ModelRequest) -> Any:
        state = definition.initial_state(find(request.messages), None, request.model, None)
        answer = await maybe_await(definition.oracle, state)
        if answer is None:
            raise RequestRefused(400, f"{type(definition).__name__} knows no right answer to {echo(request)!r:.80}")
        return answer

    return policy


def load_policy(name: str, *, seed: int = 0) -> Policy:
    """Return a policy by name: ``echo``, ``random``, or ``module:callable``, a policy or a class that makes one.

    Args:
        name: The name; the module may lie in the current directory.
        seed: Seed of ``random``.

    Raises:
        ConfigurationError: If there is no such policy.
    """
    known: dict[str, Policy] = {"echo": echo, "random": random_policy(seed)}
    if ":" not in name:
        if name not in known:
            raise ConfigurationError(
                f"there is no model {name!r}: give one of {', '.join(known)}, or module:callable.{did_you_mean(name, known)}"
            )
        return known[name]
    target = import_object(name, f"model {name!r}")
    policy = target() if isinstance(target, type) else target
    if not callable(policy):
        raise ConfigurationError(f"model {name!r} must be a function from a request to an answer, got {type(policy).__name__}")
    return cast(Policy, policy)
