"""What a secret is, and that no spelling, cut or nesting of it is left in a text, an error or data."""

from __future__ import annotations

import copy
import html
import json
import pickle
import re
import traceback
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgym.output import redaction
from vfgym.output.redaction import (
    REDACTED,
    Secret,
    excerpt,
    redact,
    redact_data,
    redact_error,
    redact_keys,
    redact_url,
    secret_url,
    with_secrets,
)

KEY = "sk-Zu7/+ab=9 \"x'\\q~ü&<_.-end"
keys = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_categories=["Cc", "Zs"]), min_size=12, max_size=60)


@pytest.mark.parametrize(
    "spelled",
    [
        str,
        repr,
        lambda key: repr(repr(key)),
        lambda key: repr(key.encode()),
        lambda key: repr(key.encode("latin-1")),
        json.dumps,
        lambda key: json.dumps(json.dumps({"key": key})),
        lambda key: json.dumps(key, ensure_ascii=False),
        lambda key: quote(key, safe=""),
        lambda key: re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), quote(quote(key, safe=""))),
        quote_plus,
        html.escape,
        lambda key: html.escape(html.escape(key)),
        ascii,
    ],
)
@settings(max_examples=25)
@given(keys)
def test_every_spelling(spelled: Any, key: str) -> None:
    redaction._forget_all()
    Secret(key)
    clean = redact(f"before <{spelled(key)}> after")
    assert re.fullmatch(r"""before <(\W|b|key)*\*\*\*[\\'"}]*> after""", clean), clean


def test_what_is_cut_and_what_is_a_part() -> None:
    Secret(f"Bearer {KEY[:7]}0123456789abcdef")
    assert redact("we got 'Bearer sk-Zu7/0123") == "we got '***"
    Secret("Sixteen Qwertzui01234567")
    Secret("Fifteen Asdfghjk0123456")
    assert redact("Qwertzui01234567 and Asdfghjk0123456") == "*** and Asdfghjk0123456", "parts from 16 characters are secrets"
    assert redact(f"there is no {KEY[:7]}0123456789abcdef!") == "there is no ***!"
    Secret("sk-ant-api03-AAAA1111")
    Secret("sk-ant-api03-BBBB2222")
    assert redact("sk-ant-api03-BBBB2222, sk-ant-api03-BBBB22, sk-ant-api03-AAAA1111") == "***, ***, ***"
    assert excerpt({"said": "sk-ant-api03-BBBB2222"}, 12) == "{'said': '**"


def test_short_words_are_no_secrets_in_texts_but_in_their_places() -> None:
    data = {"extra_headers": {"X-Mode": "on"}, "password": "on"}
    assert repr(with_secrets(data)) == "{'extra_headers': {'X-Mode': '***'}, 'password': '***'}"
    assert redact("the light is on") == "the light is on"


def test_what_configurations_name_is_never_forgotten_and_of_what_passes_by_what_was_met_longest_ago() -> None:
    configured = [Secret(f"configured-{number:08}") for number in range(3)]
    passing = [f"{number:08}-abcdefgh" for number in range(redaction._MOST_PASSING + 2)]
    with_secrets({"headers": {"X-Session": "first-12345678"}}, passes_by=True)
    for key in passing[:-1]:
        Secret(key, passes_by=True)
    Secret(passing[1], passes_by=True)  # met again
    Secret(passing[-1], passes_by=True)
    Secret(configured[0], passes_by=True)  # what is configured stays so
    assert [redact(key) for key in (*configured, passing[1], *passing[-3:])] == [REDACTED] * 7
    assert [redact(key) for key in ("first-12345678", passing[0], passing[2])] == ["first-12345678", passing[0], passing[2]]
    assert len(redaction._passing) == len(redaction._keys.keys() & {*passing}) == redaction._MOST_PASSING


def test_keys_are_taken_out_of_answers_and_words_are_not() -> None:
    """A header that is no key, the beginning of a key, and a URL's user are words that a model may write."""
    token = "tok-0123456789abcdef"
    with_secrets({"headers": {"X-Title": "My own benchmark", "X-Api-Key": KEY, "Authorization": f"Bearer {token}"}})
    answer = {"content": f"My own benchmark has {KEY} and {token}, {KEY[:12]}", "parts": [("a", 1), "http://ann@example.org"]}
    clean = redact_keys(answer)
    assert clean == {"content": f"My own benchmark has *** and ***, {KEY[:12]}", "parts": [("a", 1), "http://ann@example.org"]}
    assert clean["parts"] is answer["parts"]
    assert redact_keys({"arguments": json.dumps({"key": KEY})}) == {"arguments": '{"key": "***"}'}


def test_a_secret_is_sent_and_does_not_show() -> None:
    secret = Secret(KEY)
    assert (secret, f"{secret}", json.loads(json.dumps(secret))) == (KEY, KEY, KEY)
    assert (repr(secret), repr({"a": [secret]})) == ("'***'", "{'a': ['***']}")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps({"a": [secret]}, protocol)) == {"a": [REDACTED]}
    assert copy.copy(secret) is copy.deepcopy({"a": secret})["a"] is secret


def test_urls() -> None:
    url = "https://an%6E:pass%2Fword9@example.org:8000/v1?key=hunter2&empty=&v"
    assert redact_url(url) == "https://***@example.org:8000/v1?key=***&empty=&v"
    secret = secret_url(url)
    assert (secret, repr(secret), pickle.loads(pickle.dumps(secret))) == (url, repr(redact_url(url)), redact_url(url))
    assert redact("refused: pass/word9, and YW5uOnBhc3Mvd29yZDk=") == "refused: ***, and ***"
    assert redact("at http://a:b@example.org/ and mail to me@example.org") == "at http://***@example.org/ and mail to me@example.org"
    plain = "https://example.org/v1"
    assert secret_url(plain) is plain


def test_data_lose_secrets_by_their_place_and_keep_the_rest() -> None:
    data = {
        "temperature": 0.5,
        "max_tokens": 7,
        "question": "what is a token?",
        "extra_headers": {"X-Key": "a", "X-Number": 5},
        "default_query": {"api": ["b", "c"]},
        "extra_body": {"top_k": 3, "api_key": "d", "nested": [{"HF_TOKEN": "e", "api_key_var": "NAME"}]},
        "urls": ("https://u:p@h/v1", "see https://h/?a=b for more"),
    }
    assert redact_data(data) == {
        **data,
        "extra_headers": {"X-Key": "***", "X-Number": 5},
        "default_query": {"api": ["***", "***"]},
        "extra_body": {"top_k": 3, "api_key": "***", "nested": [{"HF_TOKEN": "***", "api_key_var": "NAME"}]},
        "urls": ("https://***@h/v1", "see https://h/?a=b for more"),
    }
    assert with_secrets(data) == data
    untouched = {"a": [1, {"b": "text"}]}
    assert redact_data(untouched) is untouched
    assert redact_data(redact_data(data)) == redact_data(data)


class OfItsOwn(Exception):
    """An error whose text is not made of its arguments, as those of some HTTP libraries are not."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self._hidden = [object(), secret]

    def __str__(self) -> str:
        return f"sent {self._hidden[1]}"


def test_errors_with_causes_notes_contexts_and_groups() -> None:
    Secret(KEY)
    error = RuntimeError(f"first {KEY}", {"headers": KEY.encode()})
    error.add_note(f"note {KEY}")
    error.__cause__ = ExceptionGroup(f"group {KEY}", [ValueError(KEY), OfItsOwn(KEY)])
    error.__cause__.__context__ = OfItsOwn(KEY)
    error.__cause__.__context__.__context__ = error
    redact_error(error)
    shown = "".join(traceback.format_exception(error)) + repr(error)
    assert redact(shown) == shown
    assert "first ***" in shown
    assert "note ***" in shown


@settings(max_examples=30)
@given(keys, st.integers(12, 60))
def test_a_text_that_was_cut_has_no_more_than_the_beginning(key: str, length: int) -> None:
    Secret(key)
    assert redact(f"<{key[:length]}") == f"<{REDACTED}"
