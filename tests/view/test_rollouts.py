"""The words by which rollouts are told apart."""

from __future__ import annotations

from tests.view.runs import row
from vfgym.view.rollouts import asked_words, said_words


def test_first_words_tell_rollouts_apart() -> None:
    said = [
        {"role": "assistant", "content": "down"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "  up\n\nnow "},
    ]
    assert said_words(row(completion=said)) == "down · up now"
    call = {"function": {"name": "look", "arguments": '{"at": 1}'}}
    assert said_words(row(completion=[{"role": "assistant", "content": None, "tool_calls": [call]}])) == 'look({"at": 1})'
    assert said_words(row(completion=[{"role": "assistant", "content": ""}])) == "(no text)"
    assert (said_words(row(completion=" 4")), said_words(row(completion="<think>Shall I?</think>down"))) == ("4", "down")
    assert len(said_words(row(completion="word " * 1000))) <= 121
    assert said_words(row(completion=[{"role": "assistant", "content": "down"}] * 99)).endswith("down · …")
    assert (
        asked_words(row(prompt=[{"role": "system", "content": "rules"}, {"role": "user", "content": [{"type": "text", "text": "2 + 2"}]}]))
        == "2 + 2"
    )
    assert (asked_words(row(prompt=[])), said_words(row(completion=[]))) == ("", "")
