"""`LocalPolicy` without a model: what texts say, which ids a prompt has, what a batch does, and that everybody is answered as it closes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from vfgym.errors import ConfigurationError, InfraError, ModelError, OverlongPromptError
from vfgym.messages import AssistantMessage, ToolCall, Usage, UserMessage
from vfgym.tools import Tool
from vfgym.training import LocalPolicy, local_policy
from vfgym.training.local_policy import TokenPolicy, parse_text
from vfgym.training.sampling import Completion


class Words:
    chat_template, config, generation_config = "one word", None, None
    eos_token_id: Any = 0

    def apply_chat_template(self, messages: Any, **kwargs: Any) -> str:
        return "word"

    def __call__(self, text: str, **kwargs: Any) -> dict[str, list[int]]:
        return {"input_ids": [1]}

    def decode(self, ids: list[int]) -> str:
        return "word"


@pytest.mark.parametrize("num_before", [1, 2, 3, 4])
async def test_closing_while_others_ask_leaves_nobody_waiting(num_before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who ask after it are answered by a thread of their own, which ends with the next `close`."""
    may_answer = threading.Event()

    def sample(model: Any, rows: list[Any], ends: Any) -> list[Completion]:
        may_answer.wait()
        return [Completion([1, 0], [0.0, 0.0], has_ended=True, is_over=True) for _ in rows]

    monkeypatch.setattr(local_policy, "sample_completions", sample)
    policy = LocalPolicy(Words(), Words(), max_batch=1, wait_ms=0)

    def ask() -> asyncio.Future[Any]:
        return asyncio.ensure_future(policy.get_response([UserMessage("?")]))

    before = [ask() for _ in range(num_before)]
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(policy.close())
    await asyncio.sleep(0)
    after = [ask() for _ in range(3)]
    await asyncio.sleep(0)
    may_answer.set()
    answers = await asyncio.gather(*before, *after)
    assert {answer.message.content for answer in answers} == {"word"}
    async with asyncio.timeout(20):
        await closing
        await policy.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "LocalPolicy"]


class Letters:
    """A tokenizer whose tokens are letters; ``|`` ends a message."""

    chat_template, eos_token_id = "letters", ord("|")

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def apply_chat_template(self, messages: Any, *, add_generation_prompt: bool, tokenize: bool, **told: Any) -> str:
        assert not tokenize
        self.told.append(told)
        last = len(messages) - 1
        written = "".join(
            f"<{each['role'][0]}>{self.thoughts(each, number == last)}{each['content'] or ''}|" for number, each in enumerate(messages)
        )
        return written + ("<a>" if add_generation_prompt else "")

    def thoughts(self, message: Any, is_last: bool) -> str:
        return f"({message['reasoning_content']})" if message.get("reasoning_content") and is_last else ""

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        assert not add_special_tokens
        return {"input_ids": [ord(letter) for letter in text]}

    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids))


class Scripted(TokenPolicy):
    """Answers with completions in order."""

    def __init__(self, *answers: Completion, **options: Any) -> None:
        super().__init__(Letters(), [ord("|")], **options)
        self.answers = list(answers)
        self.asked: list[tuple[str, Any]] = []

    async def sample(self, ids: list[int], sampling_args: Any) -> Completion:
        self.asked.append(("".join(map(chr, ids)), sampling_args))
        return self.answers.pop(0)


def wrote(text: str) -> Completion:
    return Completion([ord(letter) for letter in text], [-float(place) for place in range(len(text))], has_ended=text.endswith("|"))


CALL = '<tool_call>{"name": "f", "arguments": {"x": 0}}</tool_call>'


@pytest.mark.parametrize(
    ("text", "content", "reasoning", "calls"),
    [
        ("hello", "hello", None, []),
        ("", "", None, []),
        ("\n<think> so \n</think>\n it is ", "it is ", "so", []),
        ("<think></think>", "", "", []),
        ("it is <think>so</think>", "it is <think>so</think>", None, []),
        (CALL, None, None, [("call_0", "f", '{"x": 0}')]),
        (f"<think>so</think>{CALL}", None, "so", [("call_0", "f", '{"x": 0}')]),
        (
            f' a {CALL} b <tool_call>\n{{"name": "g", "parameters": {{"y": 1}}}}\n</tool_call> c ',
            "a  b  c",
            None,
            [("call_0", "f", '{"x": 0}'), ("call_1", "g", '{"y": 1}')],
        ),
        ('<tool_call>{"name": "f", "arguments": "{}"}</tool_call>', None, None, [("call_0", "f", "{}")]),
        ('<tool_call>{"name": "f"}</tool_call>', None, None, [("call_0", "f", "{}")]),
        (' {"name": "f", "arguments": []}', None, None, [("call_0", "f", "[]")]),
        ('{"arguments": {}, "name": "f"}', '{"arguments": {}, "name": "f"}', None, []),
        ('{"name" "f"}', '{"name" "f"}', None, []),
        (f'<think>so</think>{CALL}<tool_call>{{"nam": "g"}}</tool_call>', f'{CALL}<tool_call>{{"nam": "g"}}</tool_call>', "so", []),
        ('<tool_call>{"name": "f"}', '<tool_call>{"name": "f"}', None, []),
    ],
)
def test_what_a_text_says(text: str, content: str | None, reasoning: str | None, calls: list[tuple[str, str, str]]) -> None:
    assert parse_text(text) == (content, reasoning, [ToolCall(*call) for call in calls])


async def test_an_answer_has_the_ids_and_says_how_it_ended() -> None:
    policy = Scripted(wrote("yes|"), wrote("ye"), wrote(f"{CALL}|"))
    answers = [await policy.get_response([UserMessage("?")], "m", args) for args in (None, {"seed": 0}, {})]
    assert policy.asked == [("<u>?|<a>", {}), ("<u>?|<a>", {"seed": 0}), ("<u>?|<a>", {})]
    assert [(answer.message.content, answer.message.finish_reason, answer.message.is_truncated) for answer in answers] == [
        ("yes", "stop", False),
        ("ye", "length", True),
        (None, "tool_calls", False),
    ]
    first, second, _ = answers
    assert (first.model, first.usage) == ("m", Usage(8, 0, 4, 12))
    assert first.message.tool_calls is None
    tokens = first.message.tokens
    assert tokens is not None
    assert (tokens.prompt_ids, tokens.prompt_mask) == ([ord(letter) for letter in "<u>?|<a>"], [0] * 8)
    assert (tokens.completion_ids, tokens.completion_mask) == ([ord(letter) for letter in "yes|"], [1] * 4)
    assert tokens.completion_logprobs == [0.0, -1.0, -2.0, -3.0]
    assert (second.usage or Usage(0, 0, 0, 0)).completion_tokens == 2


async def test_the_template_is_told_of_tools_and_of_further_arguments() -> None:
    arguments = {"enable_thinking": False}
    policy = Scripted(template_arguments=arguments)
    arguments["enable_thinking"] = True
    tool = Tool(name="f", description="", parameters={"type": "object", "properties": {}})
    for tools in (None, [], [tool]):
        assert await policy.prompt_ids([UserMessage("?")], "m", tools) == [ord(letter) for letter in "<u>?|<a>"]
    assert policy.tokenizer.told == [{"tools": tools, "enable_thinking": False} for tools in (None, None, [tool.openai])]


FIRST, SECOND = [UserMessage("?")], [AssistantMessage("yes", reasoning_content=None), UserMessage("!")]


@pytest.mark.parametrize(
    ("completion", "truncated", "ids"),
    [
        ("YES|", False, "[asked]YES|<u>!|<a>"),
        ("YES", False, "[asked]YES|<u>!|<a>"),
        ("", False, "[asked]|<u>!|<a>"),
        ("YES|", True, "<u>?|<a>yes|<u>!|<a>"),
        (None, False, "<u>?|<a>yes|<u>!|<a>"),
    ],
)
async def test_a_prompt_goes_on_from_the_ids_of_the_turn_before(completion: str | None, truncated: bool, ids: str) -> None:
    encoded = [[ord(letter) for letter in text] for text in ("[asked]", completion or "")]
    tokens = None if completion is None else {"prompt_ids": encoded[0], "completion_ids": encoded[1], "is_truncated": truncated}
    turn = {"prompt": FIRST, "completion": SECOND[:1], "tokens": tokens}
    others = {**(tokens or {}), "prompt_ids": [0], "is_truncated": False}
    other = {"prompt": [UserMessage("else")], "completion": SECOND[:1], "tokens": others}
    policy = Scripted()
    for trajectory in ([turn], [turn, other], [other, turn]):
        found = await policy.prompt_ids([*FIRST, *SECOND], state={"trajectory": trajectory})
        assert "".join(map(chr, found)) == ids
    anew = [ord(letter) for letter in "<u>?|<a>yes|<u>!|<a>"]
    for state in (None, {}, {"trajectory": []}, {"trajectory": [other]}):
        assert await policy.prompt_ids([*FIRST, *SECOND], state=state) == anew
    nothing_new = await policy.prompt_ids([*FIRST, *SECOND[:1]], state={"trajectory": [turn]})
    assert "".join(map(chr, nothing_new)) == "<u>?|<a>yes|<a>"


async def test_where_the_template_drops_thoughts_the_prompt_is_tokenised_anew() -> None:
    tokens = {"prompt_ids": [1], "completion_ids": [2, ord("|")], "is_truncated": False}
    for thoughts, found in (("hm", [ord(letter) for letter in "<u>?|<a>yes|<u>!|<a>"]), ("", [1, 2, *map(ord, "|<u>!|<a>")])):
        said = AssistantMessage("yes", reasoning_content=thoughts)
        turn = {"prompt": FIRST, "completion": [said], "tokens": tokens}
        assert await Scripted().prompt_ids([*FIRST, said, SECOND[1]], state={"trajectory": [turn]}) == found


@pytest.mark.parametrize(
    ("of_model", "of_tokenizer", "ends"),
    [(0, 5, {0}), ([1, 2], 5, {1, 2}), ((), 5, set()), (None, 5, {5}), (None, 0, {0}), (None, None, set())],
)
def test_which_tokens_end_an_answer(of_model: Any, of_tokenizer: Any, ends: set[int]) -> None:
    words = Words()
    words.eos_token_id = of_tokenizer
    model = SimpleNamespace(config=None, generation_config=SimpleNamespace(eos_token_id=of_model))
    assert LocalPolicy(model, words).ends == ends


@pytest.mark.parametrize(("max_batch", "wait_ms", "fits"), [(1, 0, True), (0, 0, False), (1, -0.1, False)])
def test_numbers_of_a_batch_that_there_cannot_be_are_refused(max_batch: int, wait_ms: float, fits: bool) -> None:
    refused = pytest.raises(ConfigurationError, match=f"wait_ms at least 0, got {max_batch} and {wait_ms}")
    with contextlib.nullcontext() if fits else refused:
        LocalPolicy(Words(), Words(), max_batch=max_batch, wait_ms=wait_ms)


@pytest.mark.parametrize(("num_ids", "max_tokens", "sampled"), [(1, 8, 8), (2, 8, 8), (3, 8, 7), (9, 8, 1), (10, 8, None), (11, 1, None)])
async def test_an_answer_fits_into_the_models_context(
    num_ids: int, max_tokens: int, sampled: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[int], int]] = []

    def sample(model: Any, rows: list[Any], ends: Any) -> list[Completion]:
        asked.extend((ids, how.max_tokens) for ids, how in rows)
        return [Completion([0], [0.0], has_ended=True) for _ in rows]

    monkeypatch.setattr(local_policy, "sample_completions", sample)
    model = SimpleNamespace(config=SimpleNamespace(max_position_embeddings=10))
    policy = LocalPolicy(model, Words(), wait_ms=0)
    refused = pytest.raises(OverlongPromptError, match=f"the prompt has {num_ids} tokens, and the model's context 10")
    with contextlib.nullcontext() if sampled else refused:
        await policy.sample([1] * num_ids, {"max_tokens": max_tokens})
    assert asked == ([([1] * num_ids, sampled)] if sampled else [])
    await policy.close()


async def test_one_that_fails_is_asked_alone_and_who_gave_up_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []
    is_asked, may_answer = threading.Event(), threading.Event()

    def sample(model: Any, rows: list[Any], ends: Any) -> list[Completion]:
        is_asked.set()
        may_answer.wait()
        asked.append([ids[0] for ids, _ in rows])
        if any(ids[0] == 2 for ids, _ in rows):
            raise RuntimeError("no memory")
        if any(ids[0] == 3 for ids, _ in rows):
            raise InfraError("gone")
        return [Completion([ids[0]], [0.0], has_ended=True) for ids, _ in rows]

    monkeypatch.setattr(local_policy, "sample_completions", sample)
    policy = LocalPolicy(Words(), Words(), max_batch=3, wait_ms=0)
    first = asyncio.ensure_future(policy.sample([0], {}))
    await asyncio.to_thread(is_asked.wait)
    tasks = [asyncio.ensure_future(policy.sample([number], {})) for number in (1, 2, 3, 4)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.sleep(0)
    may_answer.set()
    found = await asyncio.gather(first, *tasks, return_exceptions=True)
    await policy.close()
    assert asked == [[0], [1, 2, 3], [1], [2], [3]]
    assert [each.ids for each in found[:2]] == [[0], [1]]  # type: ignore[union-attr]
    assert isinstance(found[2], ModelError)
    assert (str(found[2]), repr(found[2].__cause__)) == ("the model failed: RuntimeError: no memory", "RuntimeError('no memory')")
    assert (type(found[3]), str(found[3]), found[3].__cause__) == (InfraError, "gone", None)  # type: ignore[union-attr]
    assert isinstance(found[4], asyncio.CancelledError)
