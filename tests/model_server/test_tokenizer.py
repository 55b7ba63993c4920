"""Text as tokens, conversations as prompts, and both back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vfgym.model_server import Reply, detokenize, tokenize


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
