"""What sandboxes work on this machine, what each protects, and how to install what is missing."""

from __future__ import annotations

from collections.abc import Mapping

from vfgym.cli.conventions import print_json
from vfgym.cli.table import print_table
from vfgym.output.terminal import echo
from vfgym.sandboxes import Probe, backends

_PROTECTED = ("files", "network", "processes", "memory", "disk", "kernel")


def print_sandboxes(as_json: bool) -> None:
    """Print a table of the backends, or all that is known of them as JSON."""
    probes = {name: backend.probe() for name, backend in backends().items()}
    if as_json:
        print_json({name: _as_dict(probe) for name, probe in probes.items()})
        return
    rows = [
        [name, "yes" if probe.works else "no", *(probe.protects.get(what, "not protected") for what in _PROTECTED)]
        for name, probe in probes.items()
    ]
    print_table(["backend", "works here", *_PROTECTED], rows)
    for name, probe in probes.items():
        if not probe.works:
            echo(f"\n{name} does not work here: {probe.problem}\n  to install it: {probe.install}")
    echo('\nThe first of bwrap and container that works is used; unsafe only where backend="unsafe" asks for it.')


def _as_dict(probe: Probe) -> Mapping[str, object]:
    return {"works": probe.works, "protects": dict(probe.protects), "problem": probe.problem, "install": probe.install}
