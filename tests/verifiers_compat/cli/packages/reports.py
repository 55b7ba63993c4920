"""What tests of `vf-install --check` share."""

from __future__ import annotations

from verifiers_compat.cli.packages.check import Report

PROJECT = '[project]\nname = "{name}"\nversion = "0.1.0"\ndependencies = [{dependencies}]\n'


LOADER = "\ndef load_environment(): ...\n"


def names_of(report: Report) -> dict[str, str]:
    """What is not here, with the reasons."""
    return {each.name.removeprefix("verifiers."): each.reason for each in report.absent}
