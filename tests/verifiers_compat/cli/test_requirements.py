"""What an environment's distribution requires, with `verifiers` replaced by what stands for it here."""

from __future__ import annotations

import importlib.metadata
import re
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from verifiers_compat.cli.requirements import EXTRAS, constraints, extra_requirements, requirements_of
from vfgym.errors import ConfigurationError


def project(folder: Path, text: str) -> Path:
    """Write a project's pyproject.toml, and return its directory."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


def requiring(folder: Path, *requires: str) -> Path:
    """Write a project with requirements."""
    return project(folder, f'[project]\nname = "p"\ndependencies = {list(requires)!r}\n')


def names(requirements: tuple[str, ...]) -> list[str]:
    """Return the distributions of requirements."""
    return [Requirement(text).name for text in requirements]


def test_verifiers_is_left_out_and_its_extras_are_replaced(workspace: Path) -> None:
    found = requirements_of(
        project(
            workspace / "p",
            '[project]\nname = "p"\ndependencies = ["Verifiers[ta,envs]>=0.1.9", "rich>=14 ; python_version >= \'3\'",'
            ' "never; python_version < \'3\'", "other @ https://example.org/other.whl", "rich>=14"]\n'
            '[project.optional-dependencies]\nBig = ["big", "small; python_version < \'3\'"]\nmore = ["more"]\n',
        ),
        extras=["big"],
    )
    textarena = next(text for text in importlib.metadata.requires("vfgym") or () if text.startswith("textarena")).partition(";")[0]
    assert found.name == "p"
    assert found.install == (textarena, "rich>=14", "other @ https://example.org/other.whl", "big")
    assert found.replaced == ("Verifiers[envs,ta]>=0.1.9",)
    assert found.unknown_extras == ("envs",)


@pytest.mark.parametrize(
    ("extra", "distributions"),
    [("ta", ["textarena"]), ("rg", ["reasoning-gym"]), ("math", ["math-verify"]), ("mcp", ["mcp"]), ("renderers", ["renderers", "httpx"])],
)
def test_each_extra_of_verifiers_has_what_stands_for_it(extra: str, distributions: list[str], workspace: Path) -> None:
    found = requirements_of(requiring(workspace / "p", f"verifiers[{extra}]"))
    assert sorted(names(found.install)) == sorted(distributions)
    assert (found.replaced, found.unknown_extras) == ((f"verifiers[{extra}]",), ())


def test_all_extras_of_verifiers_are_those_and_no_games(workspace: Path) -> None:
    """``verifiers[all]`` is known, and asks for what its extras ask for together."""
    found = requirements_of(requiring(workspace / "p", "verifiers[all]>=0.1"))
    each = {text for extra in EXTRAS for text in requirements_of(requiring(workspace / extra, f"verifiers[{extra}]")).install}
    assert set(found.install) == each
    assert (found.replaced, found.unknown_extras) == (("verifiers[all]>=0.1",), ())
    assert requirements_of(requiring(workspace / "p", "verifiers[all,ta,nope]")).unknown_extras == ("nope",)
    assert requirements_of(requiring(workspace / "p", "verifiers")).install == ()


def test_every_extra_that_stands_for_another_exists() -> None:
    provided = importlib.metadata.metadata("vfgym").get_all("Provides-Extra") or []
    assert set(EXTRAS.values()) <= set(provided)
    assert list(extra_requirements([])) == []
    assert names(tuple(extra_requirements(["MCP", "mcp"]))) == ["mcp"]


def test_this_library_is_never_looked_for_and_limits_the_rest(workspace: Path) -> None:
    found = requirements_of(requiring(workspace / "p", "vfgym[all]>=0.0.1"))
    assert "vfgym" not in names(found.install)
    assert "textarena" in names(found.install)
    assert found.replaced == ()
    with pytest.raises(ConfigurationError, match="update vfgym"):
        requirements_of(requiring(workspace / "p", "vfgym>=999"))
    own = constraints()
    assert any(each.startswith("openai>=") for each in own)
    assert not [each for each in own if each.startswith(("textarena", "pytest", "vfgym"))]


def test_a_wheel_says_what_it_requires(workspace: Path) -> None:
    wheel = workspace / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "p-1.dist-info/METADATA",
            'Metadata-Version: 2.4\nName: p\nVersion: 1\nRequires-Dist: rich\nRequires-Dist: big; extra == "more"\n\n',
        )
    assert requirements_of(wheel).install == ("rich",)
    assert requirements_of(wheel, ["More"]).install == ("rich", "big")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("p.py", "")
    with pytest.raises(ConfigurationError, match="has no METADATA"):
        requirements_of(wheel)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project", "cannot be read"),
        ("[tool]", "name: Field required"),
        ('[project]\nname = "p"\ndependencies = ["a b c"]', "requires 'a b c'"),
        ('[project]\nname = "p"\ndependencies = "a"', "dependencies: Input should be a valid list"),
        ('[project]\nname = "p"\ndynamic = ["dependencies"]', "the dependencies of p .*build its wheel"),
        ('[project]\nname = "p"\ndynamic = ["optional-dependencies"]', "the optional-dependencies of p .*build its wheel"),
        (None, "is not a project: it has no pyproject.toml"),
    ],
)
def test_projects_that_cannot_be_understood_are_refused(workspace: Path, text: str | None, message: str) -> None:
    folder = workspace if text is None else project(workspace / "p", text)
    with pytest.raises(ConfigurationError, match=message):
        requirements_of(folder)


def test_what_is_required_twice_is_kept_once_and_every_extra_is_chosen(workspace: Path) -> None:
    folder = project(
        workspace / "p",
        '[project]\nname = "P.q"\ndynamic = ["version"]\ndependencies = ["a", "a", "Verifiers[x]", "verifiers[y,x]", "vfgym"]\n'
        '[project.optional-dependencies]\n"One_Two" = ["b; extra == \'one-two\'"]\nthree = ["c", "a"]\nfour = ["d"]\n',
    )
    found = requirements_of(folder, (extra for extra in ("one.two", "three")))
    assert (found.name, found.install) == ("P.q", ("a", "b", "c"))
    assert (found.replaced, found.unknown_extras) == (("Verifiers[x]", "verifiers[x,y]"), ("x", "y"))
    assert requirements_of(folder).install == ("a",)


@pytest.mark.parametrize("text", ["a; nothing == '1'", "a b", "; python_version < '3'"])
def test_a_requirement_that_cannot_be_understood_is_named(text: str, workspace: Path) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"requires {text!r}, which cannot be understood: ")):
        requirements_of(requiring(workspace / "p", text))


def test_what_is_no_wheel_is_refused(workspace: Path) -> None:
    (workspace / "bad.whl").write_text("x")
    with pytest.raises(ConfigurationError, match=r"bad\.whl cannot be read as a wheel"):
        requirements_of(workspace / "bad.whl")
