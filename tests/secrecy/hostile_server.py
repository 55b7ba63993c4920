"""Endpoints that fail in all ways that were seen to carry a key into an error: most of them repeat what they were sent."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator

_LARGEST_REQUEST = 2**20


def _json_answer(status: str, data: object, *headers: str) -> bytes:
    body = json.dumps(data).encode()
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + body


def _not_http(request: str) -> bytes:
    return b"SSH-2.0-OpenSSH_9.6 " + " ".join(request.split("\r\n")).encode()[:4000] + b"\r\n"


def _long_header(request: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nX-Echo: " + " ".join(request.split("\r\n")).encode() + b"x" * 20_000 + b"\r\n\r\n"


def _redirects(request: str) -> bytes:
    return _json_answer("307 Temporary Redirect", {}, f"Location: {request.split(' ')[1]}")


def _page(request: str) -> bytes:
    body = b"<html>" + request.encode() + b"</html>"
    return b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


FAILURES = {
    "not_http": _not_http,
    "long_header": _long_header,
    "redirects": _redirects,
    "page": _page,
    "unknown_key_error": lambda request: _json_answer("401 Unauthorized", {"error": {"message": f"Incorrect API key in {request}"}}),
    "forbidden": lambda request: _json_answer("403 Forbidden", {"error": {"message": request, "request": request}}),
    "unknown_model": lambda request: _json_answer("404 Not Found", {"error": {"message": f"no such model: {request!r}"}}),
    "bad_request": lambda request: _json_answer("400 Bad Request", {"detail": [request]}),
    "too_long": lambda request: _json_answer("400 Bad Request", {"error": {"message": f"prompt is too long: {request}"}}),
    "error_with_200": lambda request: _json_answer("200 OK", {"error": {"message": request}}),
    "no_object": lambda request: _json_answer("200 OK", ["x" * 150, request]),
    "text_with_200": lambda request: _json_answer("200 OK", request),
    "malformed": lambda request: _json_answer("200 OK", {"id": request})[:-1],
    "cut": lambda request: b"",
    "silent": lambda request: None,
}
"""What an endpoint answers, by name: bytes, none of them before it hangs up, or None for no answer at all."""


@contextlib.contextmanager
def hostile_server(failure: str) -> Iterator[int]:
    """Serve one failure on loopback, and give the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()
    threads: list[threading.Thread] = []

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(20)
            request = _request(connection)
            said = FAILURES[failure](request) if request.strip() else b""  # who only looks whether anybody listens asks nothing
            if said is None:
                ended.wait(20)
            else:
                connection.sendall(said)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=answer, args=(connection,), daemon=True))
            threads[-1].start()

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        serving.join(10)
        for thread in threads:
            thread.join(10)


def _request(connection: socket.socket) -> str:
    """Read one request, head and body."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < _LARGEST_REQUEST:
        data += connection.recv(65536) or b"\r\n\r\n"
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while lengths and len(body) < int(lengths[0]):
        more = connection.recv(65536)
        if not more:
            break
        body += more
    return (head + b"\r\n\r\n" + body).decode("latin-1")
