"""Text as tokens, conversations as prompts, and both back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from vfgym.model_server import Reply, detokenize, tokenize
from vfgym.model_server.tokenizer import VOCABULARY_SIZE, count, parse_answer, parse_prompt, prompt_pieces, shorten, token_ids


@given(st.text(st.characters()))
def test_detokenize_undoes_tokenize(text: str) -> None:
    assert detokenize(tokenize(text)) == text


@given(st.text(), st.integers(1, 40))
def test_a_limit_never_splits_a_character(text: str, limit: int) -> None:
    from vfgym.model_server.generation import generate

    made = generate(Reply(text), prompt_tokens=1, max_tokens=limit, stops=())
    assert text.startswith(made.text or "")
    assert len(made.token_ids) == made.usage.completion_tokens <= limit
    assert (made.finish_reason == "length") == (len(text.encode()) + 1 > limit)
    assert detokenize(made.token_ids).removesuffix("<|end|>") == made.text or text.endswith("<|end|>")


IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}
TALK = [
    SystemMessage("Be brief."),
    UserMessage([{"type": "text", "text": "Look:"}, IMAGE]),
    AssistantMessage("So:", reasoning_content="Hm.", tool_calls=[ToolCall("call_0", "f", "{}"), ToolCall("call_1", "g", "")]),
    ToolMessage("3", tool_call_id="call_0"),
    ToolMessage("", tool_call_id="call_1"),
    AssistantMessage(None, tool_calls=[ToolCall("call_2", "f", "{}")]),
    ToolMessage("é", tool_call_id="call_2"),
    AssistantMessage("Done."),
]
TEXT = (
    f"<|tools|>[f]<|end|><|system|>Be brief.<|end|><|user|>Look:<|part|>{json.dumps(IMAGE, sort_keys=True)}<|/part|><|end|>"
    "<|assistant|><|think|>Hm.<|/think|>So:<|call|>f<|arguments|>{}<|call|>g<|arguments|><|end|><|tool|>3<|end|><|tool|><|end|>"
    "<|assistant|><|call|>f<|arguments|>{}<|end|><|tool|>é<|end|><|assistant|>Done.<|end|>"
)


def test_a_conversation_is_rendered_and_read_back() -> None:
    pieces = list(prompt_pieces(TALK, "[f]"))
    ids = token_ids(pieces)
    assert (detokenize(ids), count(pieces)) == (f"{TEXT}<|assistant|>", len(ids))
    assert parse_prompt(ids) == (TALK, "[f]")
    bare = token_ids(prompt_pieces(TALK[1:], add_generation_prompt=False))
    assert ids[-len(bare) - 1 : -1] == bare
    assert parse_prompt(bare) == (TALK[1:], "")
    assert parse_prompt([]) == ([], "")
    assert (parse_prompt(tokenize("hi"))[0][0].role, parse_prompt(tokenize("hi"))[0][0].content) == ("text", "hi")


def test_reasoning_and_text_that_are_empty_are_not_rendered() -> None:
    for message in (AssistantMessage(""), AssistantMessage(None, reasoning_content="")):
        assert detokenize(token_ids(prompt_pieces([message], add_generation_prompt=False))) == "<|assistant|><|end|>"
    assert detokenize(token_ids(prompt_pieces([UserMessage([{"type": "text", "text": "a"}])]))) == "<|user|>a<|end|><|assistant|>"


def special(text: str) -> list[int]:
    """Return ids of a text in which names of special tokens are meant."""
    names = {detokenize([256 + index]): 256 + index for index in range(VOCABULARY_SIZE - 256)}
    ids: list[int] = []
    while text:
        name = next((name for name in names if text.startswith(name)), None)
        ids += [names[name]] if name else tokenize(text[0])
        text = text[len(name or "x") :]
    return ids


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", (None, "", [])),
        ("hi", (None, "hi", [])),
        ("<|think|>", ("", "", [])),
        ("<|think|>a<|/think|>b", ("a", "b", [])),
        ("a<|call|>f", (None, "a", [])),
        ("<|call|>f<|arguments|>", (None, "", [("f", "")])),
        ("<|call|>f<|arguments|>{}<|call|>g<|arguments|>[]", (None, "", [("f", "{}"), ("g", "[]")])),
    ],
)
def test_an_answer_may_end_anywhere(text: str, parsed: Any) -> None:
    assert parse_answer(special(text)) == parsed


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (special("<|user|>a"), "the token ids make no conversation: '<|user|>a' begins no message"),
        (special("<|assistant|>a"), "the token ids make no conversation: '<|assistant|>a' begins no message"),
        (special("<|think|>a<|end|>"), "the token ids make no conversation: '<|think|>a' begins no message"),
        (special("<|user|>a<|tool|>b"), "the token ids make no conversation: <|end|> is missing at token 2, after '<|user|>a<|tool|>'"),
        (special("<|user|>a<|tools|>"), "the token ids make no conversation: <|end|> is missing at token 2, after '<|user|>a<|tools|>'"),
        (special("<|user|>a<|end|><|end|>"), "the token ids make no conversation: token 3 ends a message that has not begun"),
        ([-1], "a token id is an integer from 0 to 269, got -1"),
        ([256, 270], "a token id is an integer from 0 to 269, got 270"),
        ([True], "a token id is an integer from 0 to 269, got True"),
        ([1.0], "a token id is an integer from 0 to 269, got 1.0"),
    ],
)
def test_ids_that_make_no_conversation_are_refused(ids: Any, says: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_prompt(ids)
    assert str(raised.value) == says


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("3", "content part 0 must be a dict with a type"),
        ("[]", "content part 0 must be a dict with a type"),
        ('{"type": "text"}', "content part 0"),
        ("{}", "content part 0 must be a dict with a type"),
        ("{", "Expecting property name"),
        ("", "Expecting value"),
    ],
)
def test_what_is_no_part_of_a_message_is_refused(part: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_prompt(special(f"<|user|><|part|>{part}<|/part|><|end|>"))


def test_text_is_cut_between_characters_and_may_be_half_a_surrogate_pair() -> None:
    ids = tokenize("aé\U0001f600")
    assert [detokenize(shorten(ids, limit)) for limit in range(9)] == ["", "a", "a", *["aé"] * 4, *["aé\U0001f600"] * 2]
    assert (detokenize(tokenize("\ud800")), detokenize([0xC3]), detokenize([65, 256, 66])) == ("\ud800", "\ufffd", "A<|system|>B")
    assert count(["é", 256, "ab"]) == len(token_ids(["é", 256, "ab"])) == 5
