"""Which names of verifiers are here, however they are reached, and why others are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.verifiers_compat.cli.packages.reports import names_of
from verifiers_compat.cli.packages.check import Report
from verifiers_compat.cli.packages.offers import find_offer


@pytest.mark.parametrize(
    "code",
    [
        "import verifiers as vf\nvf.{}",
        "import verifiers\nverifiers.{}",
        "from verifiers import {}",
        "from verifiers import {} as Other",
        "import verifiers as vf\nAlias = vf\nAlias.{}",
        "def f():\n    import verifiers as vf\n    class A(vf.{}): ...",
    ],
)
def test_names_are_found_however_they_are_reached(check: Callable[..., Report], code: str) -> None:
    report = check(code.format("MultiTurnEnv"))
    assert report.offered == ["verifiers.MultiTurnEnv"]
    assert report.is_complete
    report = check(code.format("BrowserEnv"))
    assert "drives browsers of a hosted service" in names_of(report)["BrowserEnv"]
    assert not report.is_complete


def test_submodules_and_attributes_are_names_too_and_misspelt_ones_are_recognised(check: Callable[..., Report]) -> None:
    report = check(
        "import verifiers.v1 as v1\nimport verifiers.envs.integrations.browser_env\nfrom verifiers.rubrics.rubric import Rubric\n"
        "from verifiers.envs.tool_env import _private\nfrom verifiers.utils import no_such\n"
        "v1.Taskset\nv1.packages\nRubric.score_rollout\nRubric.no_method\n"
    )
    assert report.offered == ["verifiers.rubrics.rubric.Rubric", "verifiers.v1.Taskset"]
    absent = names_of(report)
    assert "CLIHarness" in absent["v1.packages"]
    assert "private name" in absent["envs.tool_env._private"]
    assert "no such name" in absent["utils.no_such"]
    assert "no such name" in absent["rubrics.rubric.Rubric.no_method"]
    assert "browser" in absent["envs.integrations.browser_env"]
    assert names_of(check("import verifiers as vf\nvf.XMLParsr"))["XMLParsr"].endswith("Did you mean `XMLParser`, `Parser`, `ThinkParser`?")


def test_a_module_of_ones_own_is_not_mistaken_for_an_offer() -> None:
    """What a name of verifiers is here is the object itself."""
    import verifiers_compat

    assert find_offer("verifiers.v1.Taskset") is verifiers_compat.Taskset  # type: ignore[attr-defined]
