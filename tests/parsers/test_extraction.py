"""Answers marked by a box or by hashes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.parsers import extract_boxed_answer, extract_hash_answer

BALANCED = st.recursive(
    st.text(alphabet="ab\\ \n1"), lambda inner: st.lists(inner).map(lambda parts: "".join(f"{{{part}}}" for part in parts))
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        *[(r"\boxed{42}", "42"), (r"First \boxed{1}, then \boxed{2}.", "2"), (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}")],
        *[(r"\boxed{ 42 }", " 42 "), (r"\boxed{}", ""), (r"\boxed{a\boxed{b}c}", "b"), ("\\boxed{two\nlines}", "two\nlines")],
        (r"\boxed{42}} trailing }", "42"),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_the_last_box_is_read(text: str, answer: str, strict: bool) -> None:
    """The content is what stands between matching braces, not stripped."""
    assert extract_boxed_answer(text, strict=strict) == answer


@pytest.mark.parametrize(
    "text", ["", "42", r"\boxed{42", r"\boxed{1} and \boxed{2", r"\fbox{42}", r"\boxed 42", r"\boxed {42}", "{" * 100_000]
)
def test_without_a_complete_last_box(text: str) -> None:
    """The text comes back unchanged, or ``""`` if strict. A complete box before an incomplete one does not count."""
    assert (extract_boxed_answer(text), extract_boxed_answer(text, strict=True)) == (text, "")


@given(before=st.text(), content=BALANCED, after=st.text().filter(lambda text: r"\boxed{" not in text))
def test_balanced_content_is_returned_whole(before: str, content: str, after: str) -> None:
    """Whatever stands around the last box, its balanced content comes back as it is."""
    assert extract_boxed_answer(before + r"\boxed{" + content + "}" + after) == content


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        *[("6 * 7 = 42\n#### 42", "42"), ("#### 1,234 ", "1,234"), ("a #### b #### c", "b"), ("a ####", ""), ("no mark", "no mark")],
        (" ### 42 ", " ### 42 "),
        ("", ""),
    ],
)
def test_hash_answer(text: str, answer: str) -> None:
    """What follows the first mark, up to the next, stripped; commas stay; without a mark the text is unchanged."""
    assert extract_hash_answer(text) == answer
