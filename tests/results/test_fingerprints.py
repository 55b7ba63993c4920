"""Fingerprints: which task a row is of."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import Any

from vfgym.results import fingerprint_of


class Thing:
    """What has no form in JSON; its ``repr`` holds its address."""


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def test_a_fingerprint_is_the_same_at_any_time_and_in_every_process() -> None:
    task = {"prompt": [{"role": "user", "content": "é?"}], "answer": "4", "info": {"b": 1, "a": [None, 0.5]}, "example_id": 3}
    text = r'{"answer":"4","info":{"a":[null,0.5],"b":1},"prompt":[{"content":"\u00e9?","role":"user"}]}'
    assert fingerprint_of(task) == digest(text) == "ca245c2c0781b669"
    assert fingerprint_of({**task, "example_id": 8}) == fingerprint_of(dict(reversed(task.items())))
    info = {"s": set("stuvwxyz"), "o": Thing(), "b": b"1", "a": bytearray(b"2"), "m": memoryview(b"3"), "n": float("nan"), 3: 4}
    text = """{"info":{"3":4,"a":"b'2'","b":"b'1'","m":"b'3'","n":null,"o":"<Thing>","s":["s","t","u","v","w","x","y","z"]}}"""
    assert fingerprint_of({"info": info}) == fingerprint_of({"info": {**info, "o": Thing()}}) == digest(text)


def test_tasks_that_differ_have_other_fingerprints() -> None:
    tasks: list[dict[str, Any]] = [
        *({}, {"answer": None}, {"answer": ""}, {"answer": 0}, {"answer": "0"}, {"answer": False}, {"answer": []}, {"question": ""}),
        *({"info": {"example_id": 1}}, {"info": {"example_id": 2}}, {"info": b"1"}, {"info": b"2"}, {"info": {1}}, {"info": {1, 2}}),
    ]
    for one, other in itertools.combinations(tasks, 2):
        assert fingerprint_of(one) != fingerprint_of(other)
    for task in tasks[:10]:
        assert fingerprint_of(task) == fingerprint_of(json.loads(json.dumps({**task, "example_id": 2})))
