"""``vfgym sandboxes``: which backends work here, what each protects, and how to install what is missing."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from tests.cli.cases import cells
from vfgym.cli import sandboxes
from vfgym.cli.sandboxes import print_sandboxes
from vfgym.sandboxes import Probe, backends

PROBES = {
    "first": Probe(works=True, protects={"files": "all but its own", "network": "none"}, problem="", install=""),
    "second": Probe(works=False, protects={}, problem="it is not there", install="apt install second"),
}


@pytest.fixture
def _two_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sandboxes, "backends", lambda: {name: SimpleNamespace(probe=lambda probe=probe: probe) for name, probe in PROBES.items()}
    )


@pytest.mark.usefixtures("_two_backends")
def test_a_table_says_what_works_and_json_all_that_is_known(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_sandboxes(as_json=False)
    head, first, second, *rest = capsys.readouterr().out.splitlines()
    assert cells(head) == ["backend", "works here", "files", "network", "processes", "memory", "disk", "kernel"]
    assert cells(first) == ["first", "yes", "all but its own", "none", *["not protected"] * 4]
    assert cells(second) == ["second", "no", *["not protected"] * 6]
    assert "second does not work here: it is not there\n  to install it: apt install second" in "\n".join(rest)
    assert "first does not work" not in "\n".join(rest)
    print_sandboxes(as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        name: {"works": probe.works, "protects": {**probe.protects}, "problem": probe.problem, "install": probe.install}
        for name, probe in PROBES.items()
    }


def test_every_backend_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    print_sandboxes(as_json=True)
    assert json.loads(capsys.readouterr().out).keys() == backends().keys()
