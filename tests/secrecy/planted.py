"""Marked keys, one for each door through which a secret may come in, and a search for all of them in whatever came out."""

from __future__ import annotations

import base64
import logging
import pickle
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

MARK = "pLaNtEd"
"""Letters only: in whatever way a key is escaped, this part of it looks the same."""

_ANY = re.compile(f"{MARK}|{MARK.upper()}".encode() + rb"|" + MARK.lower().encode())


def key(door: str) -> str:
    """Return the key of a door. It has characters that URLs, JSON and Python escape.

    The mark does not stand at its beginning, by which alone a key is recognized: an endpoint may have cut its text there.
    """
    return f"sk-proj+test/{MARK}/{door}+5&'\"\\9=="


def in_url(text: str) -> str:
    return quote(text, safe="")


def with_query(url: str) -> str:
    """Return a URL with a key in its query."""
    return f"{url}?key={in_url(key('url-query'))}"


def with_user(url: str) -> str:
    """Return a URL with user and password."""
    scheme, rest = url.split("://")
    return f"{scheme}://{in_url(key('user'))}:{in_url(key('password'))}@{rest}"


def sampling_args() -> dict[str, Any]:
    """Return sampling arguments with keys wherever they may be."""
    return {
        "max_tokens": 500,
        "extra_headers": {"X-Sampling": key("sampling-header"), "Authorization-2": f"Bearer {key('sampling-bearer')}"},
        "extra_query": {"sampling": key("sampling-query")},
        "extra_body": {"api_key": key("sampling-body"), "nested": [{"access_token": key("nested-token")}]},
    }


def hits(name: str, data: bytes | str) -> list[str]:
    """Return the places where a planted key stands, each with what is around it."""
    data = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    places = [match.start() for match in _ANY.finditer(data)]
    for secret in ("user", "password"):
        for pair in (f"{key('user')}:{key('password')}", f"{in_url(key('user'))}:{in_url(key('password'))}", key(secret)):
            places += [match.start() for match in re.finditer(re.escape(base64.b64encode(pair.encode())[:24]), data)]
    return [f"{name}: ...{data[max(0, place - 80) : place + 60]!r}" for place in places]


def hits_in_files(folder: Path) -> list[str]:
    return [hit for file in folder.rglob("*") if file.is_file() for hit in hits(str(file), file.read_bytes())]


def hits_in_object(name: str, value: Any) -> list[str]:
    """Search the text and the pickle of an object."""
    return [*hits(f"repr of {name}", repr(value)), *hits(f"str of {name}", str(value)), *hits(f"pickle of {name}", pickle.dumps(value))]


def hits_in_error(name: str, error: BaseException) -> list[str]:
    """Search the text of an error, those of its causes, and the traceback that Python prints of them."""
    links = list(_links(error, set()))
    texts = [text for link in links for text in (str(link), repr(link))]
    return [hit for text in [*texts, "".join(traceback.format_exception(error))] for hit in hits(name, text)]


def _links(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    if error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        yield from _links(error.__cause__, seen)
        yield from _links(error.__context__, seen)


class Log(logging.Handler):
    """Keeps everything that any logger logs, as a formatter shows it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
