"""The program that answers for an agent in its sandbox (see `vfgym.agents.sandboxed`)."""

from __future__ import annotations

import os
import socket
import struct


def main() -> None:
    """Do jobs, one after the other, until nobody asks any more."""
    from vfgym.workers.forking import call_as_json

    with socket.create_connection(("127.0.0.1", int(os.environ.pop("VFGYM_AGENT_PORT")))) as line:
        while (head := _read(line, 8)) is not None:
            job = _read(line, struct.unpack("!Q", head)[0])
            if job is None:
                break
            outcome = call_as_json(job)
            line.sendall(struct.pack("!Q", len(outcome)) + outcome)
    os._exit(0)  # whatever threads are left


def _read(line: socket.socket, size: int) -> bytes | None:
    """Return so many bytes; None where no more come."""
    parts, left = [], size
    while left:
        part = line.recv(min(left, 1 << 16))
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
