"""Secrets, and how they are kept out of what the library records, logs and prints.

A secret is an API key, the value of a header or of a query parameter that somebody gave for requests, or the user and password in
a URL. Where it comes in it becomes a `Secret`: text that is sent as it is and that copies in memory keep, while its ``repr`` and its
pickle are `REDACTED`. From then on the process knows it, and `redacted` takes it out of any text: errors (`redact_error`), what is
recorded of them, log records (`log_records`) and what is printed (`terminal`). Data that are written, such as a run's
metadata, lose secrets by their place too (`redact_data`). A client refuses to send `REDACTED`, so whatever comes out of a pickle
or a file says that its keys have to be given again.
"""

from __future__ import annotations

import base64
import enum
import functools
import itertools
import re
import threading
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, Self
from urllib.parse import unquote, unquote_plus

REDACTED = "***"
"""Stands where a secret stood."""

_SHORTEST = 8
"""Characters that a secret has at least for `redacted` to look for it: shorter ones are parts of ordinary words."""

_SHORTEST_PART = 16
"""The same for parts of a secret, such as the token after ``Bearer``."""

_MOST_PASSING = 1000
"""Secrets that are looked for though no configuration names them; those that were met longest ago are forgotten."""

_LONGEST_BEGINNING = 12
"""Characters by which a secret is recognized: texts are cut, so what follows may be missing."""

_configured: dict[str, str] = {}
"""What configurations name, with the longest word in its beginning: letters and digits stand in every spelling as they are. It is looked
for as long as the process runs."""

_passing: dict[str, str] = {}
"""The same of what only passes by, such as a header that is taken from the state of a rollout: what was met last is last."""

_keys: dict[str, str] = {}
"""Those of both that are keys, and so in no answer of a model either."""

_NOT_INSIDE_BACKSLASHES = r"(?<!\\)"

_lock = threading.Lock()

_SECRET_NAMES = re.compile(r"(^|[_-])((api|access|private)[_-]?key|token|secret|password|credentials|authorization)$", re.IGNORECASE)
"""Names under which text is a secret."""

_NAMES_OF_KEYS = re.compile(r"key|token|secret|passw|auth|credential|cookie|session", re.IGNORECASE)
"""Names under which a header or a parameter is a key. Others say who asks, say, and are words that a model may write."""

_TABLES_OF_SECRETS = re.compile(r"(^|[_-])(headers|query|cookies)$", re.IGNORECASE)
"""Names under which the values of a mapping are secrets: ``extra_headers``, ``default_query``, ..."""

_DEEPEST = 100
"""Levels of data that are looked through: what is nested deeper stands as `REDACTED`."""

_HTML_NAMES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+")
_USER_IN_URL = re.compile(r"(?<=://)[^\s/?#@'\"<>]+@")
_QUERY_IN_URL = re.compile(r"[?&;]([^=&;#\s]*+)(?:=([^&;#\s]*+))?")


class Secret(str):
    """Text that does not show: ``repr`` and pickle have `REDACTED`, or what `display` says. Copies in memory are the secret itself.

    >>> key = Secret("sk-0123456789")
    >>> key, key == "sk-0123456789", {"headers": {"X-Key": key}}
    ('***', True, {'headers': {'X-Key': '***'}})
    >>> redact("401: there is no account for sk-0123456789")
    '401: there is no account for ***'
    """

    display: str

    def __new__(cls, value: str, *, display: str = REDACTED, is_key: bool = True, passes_by: bool = False) -> Self:
        """Let the process know a secret.

        Args:
            value: The secret.
            display: What stands for it where it is shown. Given, the text has secrets in it that are known already.
            is_key: Whether it is taken out of the answers of models, too.
            passes_by: Whether no configuration names it: it is forgotten once many others were met.
        """
        self = super().__new__(cls, value)
        self.display = display
        if display == REDACTED:
            _learn(value, is_key, passes_by)
        return self

    def __repr__(self) -> str:
        return repr(self.display)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (self.display,)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def secret_url(url: str) -> str:
    """Return a URL whose user, password and query are secrets; one without any stays as it is.

    >>> secret_url("https://ann:swordfish@example.org/v1?key=opensesame&v=2")
    'https://***@example.org/v1?key=***&v=***'
    >>> secret_url("https://example.org/v1")
    'https://example.org/v1'
    """
    return _secret_url(url, passes_by=False)


def _secret_url(url: str, passes_by: bool) -> str:
    display = redact_url(url)
    if display == url:
        return url
    secrets = [match[0].removesuffix("@") for match in _USER_IN_URL.finditer(url)]
    for pair in secrets.copy():
        user, _, password = map(unquote, pair.partition(":"))
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()  # as it is sent
        secrets += [user, password, basic]
    secrets += [match[2] for match in _QUERY_IN_URL.finditer(url) if match[2]]
    for secret in secrets:
        _learn(unquote(secret), False, passes_by)
        _learn(unquote_plus(secret), False, passes_by)
    return Secret(url, display=display)


def redact_url(url: str) -> str:
    """Return a URL without its user and password and without the values of its query.

    >>> redact_url("https://ann:swordfish@example.org/v1?key=opensesame&v=2")
    'https://***@example.org/v1?key=***&v=***'
    """
    return _QUERY_IN_URL.sub(_without_value, _USER_IN_URL.sub(f"{REDACTED}@", url))


def _without_value(parameter: re.Match[str]) -> str:
    return f"{parameter[0].removesuffix(parameter[2])}{REDACTED}" if parameter[2] else parameter[0]


def with_secrets(data: Any, *, passes_by: bool = False) -> Any:
    """Return data (arguments of a request, settings) in which what is a secret by its place is a `Secret`.

    These are the values in a mapping whose name ends in ``headers``, ``query`` or ``cookies``, texts whose name ends in ``api_key``,
    ``token``, ``password`` and the like, and URLs with a user or a query. Data without any are returned themselves.

    Args:
        data: The data.
        passes_by: Whether no configuration names them (see `Secret`).

    >>> with_secrets({"temperature": 0.5, "extra_headers": {"X-Key": "0123456789"}})
    {'temperature': 0.5, 'extra_headers': {'X-Key': '***'}}
    """
    return _walk(data, functools.partial(_as_secret, passes_by=passes_by))


def redact_data(data: Any) -> Any:
    """Return data without secrets: those by their place (see `with_secrets`), and all that are known, wherever they stand.

    >>> redact_data({"temperature": 0.5, "extra_query": {"version": "2026-01-01"}})
    {'temperature': 0.5, 'extra_query': {'version': '***'}}
    """
    return _walk(data, _as_text)


class _Place(enum.IntEnum):
    """What stands at a place in data: any text, a secret, or a secret that is a key."""

    ANY = 0
    SECRET = 1
    KEY = 2


def _as_secret(text: str, place: _Place, passes_by: bool) -> str:
    if isinstance(text, Secret):
        return text
    if place:
        return Secret(text, is_key=place is _Place.KEY, passes_by=passes_by) if text != REDACTED else text
    return _secret_url(text, passes_by) if _URL.fullmatch(text) else text


def _as_text(text: str, place: _Place) -> str:
    if isinstance(text, Secret):
        return text.display
    if place:
        return REDACTED
    return redact(redact_url(text) if _URL.fullmatch(text) else text)


def _walk(data: Any, change: Any, place: _Place = _Place.ANY, depth: int = 0) -> Any:
    """Return data with every text changed; the same object where nothing was. What is nested too deep is left out."""
    if isinstance(data, str):
        return change(data, place)
    if depth > _DEEPEST and isinstance(data, Mapping | list | tuple):
        return REDACTED if data else data
    if isinstance(data, Mapping):
        items = {name: _walk(value, change, _place(str(name), value, place), depth + 1) for name, value in data.items()}
        return data if all(items[name] is value for name, value in data.items()) else items
    if isinstance(data, list | tuple):
        walked = [_walk(value, change, place, depth + 1) for value in data]
        if all(new is old for new, old in zip(walked, data, strict=True)):
            return data
        return walked if isinstance(data, list) else tuple(walked)
    return data


def _place(name: str, value: Any, outer: _Place) -> _Place:
    """Return what stands below a name, at a place."""
    if isinstance(value, Mapping):
        return _Place.SECRET if outer or _TABLES_OF_SECRETS.search(name) else _Place.ANY
    if outer:
        return _Place.KEY if outer is _Place.KEY or _NAMES_OF_KEYS.search(name) else _Place.SECRET
    return _Place.KEY if _SECRET_NAMES.search(name) else _Place.ANY


def _learn(secret: str, is_key: bool, passes_by: bool) -> None:
    """Look for a secret, and for the long parts of it, from now on."""
    parts = [part for part in re.split(r"[\s,;=]+", secret) if len(part) >= _SHORTEST_PART]
    for text in (secret, *parts):
        if len(text) >= _SHORTEST and not (text in _configured and (text in _keys or not is_key)):
            word = max(re.findall(r"[0-9A-Za-z]*", text[:_LONGEST_BEGINNING]), key=len)
            with _lock:
                if passes_by and text not in _configured:
                    _passing.pop(text, None)
                    _passing[text] = word
                elif not passes_by:
                    _passing.pop(text, None)
                    _configured[text] = word
                if is_key and len(text) >= _SHORTEST_PART:
                    _keys[text] = word
                while len(_passing) > _MOST_PASSING:
                    forgotten = next(iter(_passing))
                    del _passing[forgotten]
                    _keys.pop(forgotten, None)


def _forget_all() -> None:
    """Know no secret any more, for tests."""
    for known in (_configured, _passing, _keys):
        known.clear()


def redact_keys(data: Any) -> Any:
    """Return what a model answered without the keys that this process knows, whole ones of 16 characters and more; itself without any.

    >>> key = Secret("sk-0123456789abcdef")
    >>> redact_keys({"content": "Your key is sk-0123456789abcdef."})
    {'content': 'Your key is ***.'}
    """
    return _walk(data, _without_keys) if _keys else data


def _without_keys(text: str, place: _Place) -> str:
    for key, word in list(_keys.items()):
        if word in text:
            text = _pattern(key, is_searched=True).sub(REDACTED, text)
    return text


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Give the places of secrets: of the beginnings of them, as far as they go on."""
    for secret, word in [*_configured.items(), *_passing.items()]:
        if word in text:
            for match in _pattern(secret[:_LONGEST_BEGINNING], is_searched=True).finditer(text):
                whole = _pattern(secret).match(text, match.start())
                yield match.start(), _end_of_cut_secret(secret, text, match.end()) if whole is None else whole.end()


def _end_of_cut_secret(secret: str, text: str, end: int) -> int:
    """Return where a secret ends that was cut, after its beginning."""
    for character in secret[_LONGEST_BEGINNING:]:
        following = _pattern(character).match(text, end)
        if following is None:
            break
        end = following.end()
    return end


@functools.lru_cache(maxsize=2 * _MOST_PASSING)
def _pattern(text: str, *, is_searched: bool = False) -> re.Pattern[str]:
    # Any character may have backslashes before it, and a run of them is gone over once only: a secret begins at the first of one, and
    # those that are a part of a secret are one with those before its next character.
    pattern, before = "", ""
    for character, run in itertools.groupby(text):
        count = len(list(run))
        guard = "" if before or not is_searched else _NOT_INSIDE_BACKSLASHES
        if character == "\\":
            pattern += rf"(?:{guard}\\{{{count},}}+|(?:{_spellings(character, guard)}){{{count}}})"
        else:
            pattern += _spellings(character, guard, is_after_backslashes=before == "\\") + _spellings(character) * (count - 1)
        before = character
    return re.compile(pattern)


def _spellings(character: str, guard: str = "", *, is_after_backslashes: bool = False) -> str:
    """Return a pattern for one character as it may stand in a URL, in JSON, in Python's ``repr`` (of a ``repr``), or in HTML.

    Args:
        character: The character.
        guard: What must hold before backslashes.
        is_after_backslashes: Whether those before it may have been taken already.
    """
    if character.isascii() and character.isalnum():
        return character
    code, octets = ord(character), character.encode("utf-8", "surrogatepass")
    some = rf"{guard}\\{'*' if is_after_backslashes else '+'}+"
    spellings = [
        "(?i:" + "".join(f"%(?:25)*{octet:02x}" for octet in octets) + ")",
        "(?i:" + some + r"\\++".join(f"x{octet:02x}" for octet in octets) + ")",
        rf"(?i:{some}(?:x{code:02x}|u{code:04x}|u{code:08x}))",
        rf"(?i:&(?:amp;)*\#(?:0*{code}|x0*{code:x});)",
    ]
    if character in _HTML_NAMES:
        spellings.append(rf"&(?:amp;)*{_HTML_NAMES[character]};")
    if character == " ":
        spellings.append(r"\+")
    if character != "\\":
        spellings.append(rf"{guard}\\*+{re.escape(character)}")  # the last: a percent sign also begins one that is encoded
    return f"(?:{'|'.join(dict.fromkeys(spellings))})"


def redact(text: str) -> str:
    """Return a text without the secrets that this process knows, in whatever spelling, and without users and passwords of URLs."""
    pieces, done = [], 0
    for start, end in sorted(_spans(text)):
        if start >= done:
            pieces += [text[done:start], REDACTED]
        done = max(done, end)
    text = "".join([*pieces, text[done:]]) if pieces else text
    return _USER_IN_URL.sub(f"{REDACTED}@", text) if "@" in text else text


def excerpt(value: object, length: int) -> str:
    """Return the beginning of a value's ``repr``. It is redacted first, since a part of a secret is not found any more."""
    try:
        return redact(repr(value))[:length]
    except RecursionError:
        return "(data that are nested too deeply to be shown)"


def redact_error(error: BaseException) -> None:
    """Take the secrets out of an error, its notes, and its causes: out of all that a traceback shows of them.

    An error whose text is made of something else than its arguments is replaced where it is a cause.
    """
    for link in _links(error, set()):
        link.args = tuple(_redact_argument(argument) for argument in link.args)
        for name, value in list(getattr(link, "__dict__", {}).items()):
            clean = redact_data(value)
            if clean is not value and clean != value:
                link.__dict__[name] = clean
        for relation in ("__cause__", "__context__"):
            cause = getattr(link, relation)
            if cause is not None and any(redact(text) != text for text in (str(cause), repr(cause))):
                hides_context = link.__suppress_context__
                setattr(link, relation, RedactedError(f"{type(cause).__name__}: {redact(str(cause))}"))
                link.__suppress_context__ = hides_context


def forget_locals(error: BaseException) -> None:
    """Let go of the local variables in the frames that an error and its causes came out of, keys and requests among them.

    Frames that still run keep theirs.
    """
    for link in _links(error, set()):
        traceback.clear_frames(link.__traceback__)


class RedactedError(Exception):
    """Stands for an error whose text had secrets in it that could not be taken out."""


def _redact_argument(argument: Any) -> Any:
    clean = redact_data(argument)
    text = repr(clean)
    return clean if redact(text) == text else redact(text)


def _links(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    """Give an error and all that led to it, causes before what they caused. Chains may be longer than Python's stack is deep."""
    waiting = [(error, False)]
    while waiting:
        link, is_explained = waiting.pop()
        if link is None or (id(link) in seen and not is_explained):
            continue
        if is_explained:
            yield link
            continue
        seen.add(id(link))
        causes = (link.__cause__, link.__context__, *(link.exceptions if isinstance(link, BaseExceptionGroup) else ()))
        waiting += [(link, True), *((cause, False) for cause in reversed(causes))]
