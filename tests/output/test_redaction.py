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
    RedactedError,
    Secret,
    excerpt,
    forget_locals,
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
        lambda key: html.escape(key).replace("&#x27;", "&apos;"),
        lambda key: re.sub("[^0-9A-Za-z]", lambda character: f"&#{ord(character[0])};", key),
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
    hidden = {"token": REDACTED}
    assert with_secrets(hidden) is hidden, "what stands for a secret is not one"
    untouched = {"a": [1, {"b": "text"}]}
    assert redact_data(untouched) is untouched
    assert redact_data(redact_data(data)) == redact_data(data)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        *(
            (name, True)
            for name in ("api_key", "apikey", "API-Key", "access_key", "private_key", "token", "HF_TOKEN", "my-token", "secret")
        ),
        *((name, True) for name in ("client_secret", "password", "db_password", "credentials", "Authorization", "Proxy-Authorization")),
        *((name, False) for name in ("key", "monkey", "max_tokens", "tokens", "mytoken", "token_count", "secrets", "authorization_url")),
    ],
)
def test_names_of_secrets(name: str, is_secret: bool) -> None:
    assert redact_data({name: "x"}) == {name: REDACTED if is_secret else "x"}
    assert repr(with_secrets({name: "x", "n": 0})) == repr({name: REDACTED if is_secret else "x", "n": 0})


@pytest.mark.parametrize(
    ("name", "is_table"),
    [
        *((name, True) for name in ("headers", "query", "cookies", "extra_headers", "Default-Query", "http_cookies")),
        *((name, False) for name in ("header", "queries", "cookie", "headers_sent", "subquery")),
    ],
)
def test_names_of_tables_of_secrets(name: str, is_table: bool) -> None:
    shown = REDACTED if is_table else "x"
    data = {name: {"a": "x", "b": ["x", ("x", 1)], "c": {"d": "x"}, "e": None, "f": ""}}
    assert redact_data(data) == {name: {"a": shown, "b": [shown, (shown, 1)], "c": {"d": shown}, "e": None, "f": shown if is_table else ""}}
    assert redact_data({name: "x"}) == {name: "x"}, "a text of that name is not a table"
    assert redact_data([{name: {"a": "x"}}]) == [{name: {"a": shown}}]


@pytest.mark.parametrize(
    ("header", "is_key"),
    [
        *(
            (name, True)
            for name in ("X-Api-Key", "X-Token", "Client-Secret", "Passwd", "passw", "X-Auth", "Credential", "Cookie", "X-SESSION-Id")
        ),
        *((name, False) for name in ("X-Title", "User-Agent", "Referer")),
    ],
)
def test_which_headers_are_taken_out_of_answers(header: str, is_key: bool) -> None:
    redaction._forget_all()
    value = "0123456789abcdef"
    with_secrets({"headers": {header: value, "X-Other": {"X-Title": "fedcba9876543210"}}})
    assert redact(value) == REDACTED
    assert redact_keys([value, "fedcba9876543210"]) == [REDACTED if is_key else value, "fedcba9876543210"]


@pytest.mark.parametrize(
    ("length", "in_texts", "in_answers"), [(7, False, False), (8, True, False), (15, True, False), (16, True, True), (17, True, True)]
)
def test_how_long_a_secret_is_to_be_looked_for(length: int, in_texts: bool, in_answers: bool) -> None:
    redaction._forget_all()
    key = Secret("0123456789abcdefg"[:length])
    assert redact(f"<{key}>") == (f"<{REDACTED}>" if in_texts else f"<{key}>")
    assert redact_keys(f"<{key}>") == (f"<{REDACTED}>" if in_answers else f"<{key}>")


def test_what_is_met_again_as_a_key_or_in_a_configuration_is_one_from_then_on() -> None:
    redaction._forget_all()
    text = "0123456789abcdef"
    Secret(text, is_key=False, passes_by=True)
    assert redact_keys(text) == text
    Secret(text, passes_by=True)
    assert redact_keys(text) == REDACTED
    Secret(text, is_key=False)
    assert (redact_keys(text), [*redaction._configured], [*redaction._passing]) == (REDACTED, [text], [])
    Secret("fedcba9876543210", is_key=False)
    Secret("fedcba9876543210")
    assert redact_keys("fedcba9876543210") == REDACTED
    Secret("https://example.org/v1?v=0011223344556677", display="https://example.org/v1?v=***")
    assert redact("0011223344556677") == "0011223344556677", "what is in a text that is shown is known already, or not a secret"


def test_a_url_of_a_request_passes_by_and_one_in_a_configuration_stays() -> None:
    for passes_by in (True, False):
        redaction._forget_all()
        with_secrets({"url": "https://example.org/v1?key=open+sesame%21"}, passes_by=passes_by)
        assert [*(redaction._passing if passes_by else redaction._configured)] == ["open+sesame!", "open sesame!"]
        assert not (redaction._configured if passes_by else redaction._passing)
        assert redact_keys("open sesame!") == "open sesame!"
    secret_url("https://example.org/v2?key=swordfish")
    assert "swordfish" in redaction._configured


def test_data_that_are_nested_too_deep_are_left_out() -> None:
    for empty in ([], (), {}):
        data: Any = empty
        for _ in range(101):
            data = [data]
        assert redact_data(data) is data
    data = kept = ["text"]
    for _ in range(100):
        data, kept = {"inner": data}, {"inner": kept}
    assert redact_data(data) == kept
    clean = redact_data([data])
    for _ in range(100):
        clean = clean[0] if isinstance(clean, list) else clean["inner"]
    assert clean == {"inner": REDACTED}


def test_an_excerpt_of_data_that_cannot_be_shown_says_so() -> None:
    data: Any = []
    for _ in range(100_000):
        data = [data]
    assert excerpt(data, 7) == "(data that are nested too deeply to be shown)"
    assert (excerpt("abc", 3), excerpt("abc", 9), excerpt("", 0)) == ("'ab", "'abc'", "")
    while data:  # one by one: freeing them all at once is as deep
        data = data[0]


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


def test_a_cause_whose_text_is_its_own_is_replaced_and_the_rest_stays() -> None:
    Secret(KEY)

    class Encoded(Exception):
        sent: bytes

        def __str__(self) -> str:
            return f"sent {self.sent.decode()}"

    plain, number, encoded = ValueError("plain"), KeyError(7), Encoded()
    encoded.sent = KEY.encode()
    for cause in (encoded, plain):
        for is_hidden in (True, False):
            error = RuntimeError(number, "text")
            error.__cause__ = error.__context__ = cause
            error.__suppress_context__ = is_hidden
            redact_error(error)
            assert error.__suppress_context__ is is_hidden
            assert error.args == (number, "text")
            for link in (error.__cause__, error.__context__):
                assert link is plain if cause is plain else (type(link), str(link)) == (RedactedError, "Encoded: sent ***")


def test_an_error_lets_go_of_what_its_frames_held_and_of_what_those_of_its_causes_did() -> None:
    def first(held: list[int]) -> None:
        raise ValueError("first")

    def second(held: list[int]) -> None:
        try:
            first([1])
        except ValueError as error:
            raise RuntimeError("second") from error

    here = [3]
    try:
        second([2])
    except RuntimeError as error:
        forget_locals(error)
        assert isinstance(error.__cause__, ValueError)
        frames = [frame for link in (error, error.__cause__) for frame, _ in traceback.walk_tb(link.__traceback__)]
        assert [frame.f_locals.get("held") for frame in frames] == [None] * 4
        assert [frame.f_code.co_name for frame in frames[1:]] == ["second", "second", "first"]
        assert frames[0].f_locals["here"] is here, "a frame that still runs keeps its variables"


@settings(max_examples=30)
@given(keys, st.integers(12, 60))
def test_a_text_that_was_cut_has_no_more_than_the_beginning(key: str, length: int) -> None:
    Secret(key)
    assert redact(f"<{key[:length]}") == f"<{REDACTED}"
