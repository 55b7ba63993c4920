"""Where a package is: a directory, a wheel, an sdist, or a name."""

from __future__ import annotations

import contextlib
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.verifiers_compat.cli.packages.reports import LOADER, names_of
from verifiers_compat.cli.packages.check import check_target
from verifiers_compat.cli.packages.targets import open_target
from vfgym.errors import ConfigurationError


@pytest.mark.parametrize("form", ["folder", "wheel", "sdist"])
def test_a_package_is_read_in_each_form(write: Callable[..., Path], workspace: Path, form: str) -> None:
    folder = write("word-count", {"word_count.py": "import verifiers as vf\nvf.BrowserEnv" + LOADER})
    given = str(folder)
    if form == "wheel":
        given = "word_count-0.1.0-py3-none-any.whl"
        with zipfile.ZipFile(given, "w") as archive:
            archive.write(folder / "word_count.py", "word_count.py")
            archive.writestr(
                "word_count-0.1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: word-count\nRequires-Dist: verifiers[ta]\n"
            )
    elif form == "sdist":
        given = "word_count-0.1.0.tar.gz"
        with tarfile.open(given, "w:gz") as archive:
            archive.add(folder, "word_count-0.1.0")
    with open_target(given, Path("environments")) as target:
        report = check_target(target)
    assert report.package == "word-count"
    assert list(names_of(report)) == ["BrowserEnv"]
    assert report.absent[0].places == ["word_count.py:2"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no.tar.gz", "there is no sdist no.tar.gz"),
        ("bad.tar.gz", "cannot be read as an sdist"),
        ("bad.whl", "cannot be read as a wheel"),
        ("two.tar.gz", "must hold one directory, and holds 2 entries"),
        ("./nowhere/at/all", "there is no directory ./nowhere/at/all"),
        ("./empty", "is not a project: it has no pyproject.toml"),
        ("owner/word-count", "'owner/word-count' is on the hosted hub"),
        ("word-count@1.0", "'word-count@1.0' is on the hosted hub"),
        ("no.whl", "there is no wheel no.whl"),
        ("one.tar.gz", "must hold one directory, and holds 1 entries"),
        ("out.tar.gz", "cannot be read as an sdist"),
        ("no-such", "there is no environment 'no-such' in environments: no directory no_such; there are none"),
    ],
)
def test_what_is_not_a_package_is_refused(workspace: Path, name: str, problem: str) -> None:
    Path("bad.tar.gz").write_text("x")
    Path("bad.whl").write_text("x")
    Path("empty").mkdir()
    with tarfile.open("two.tar.gz", "w:gz") as archive:
        archive.add("bad.whl")
        archive.add("bad.tar.gz")
    with tarfile.open("one.tar.gz", "w:gz") as archive:
        archive.add("bad.whl")
    with tarfile.open("out.tar.gz", "w:gz") as archive:
        archive.add("bad.whl", "../../out")
    with pytest.raises(ConfigurationError, match=problem), open_target(name, Path("environments")) as target:
        check_target(target)


@pytest.mark.parametrize(("given", "extras"), [("", ()), ("[]", ()), ("[more]", ("more",)), ("[a, b]", ("a", "b"))])
def test_extras_follow_in_brackets(given: str, extras: tuple[str, ...], write: Callable[..., Path]) -> None:
    """Of a name, a directory, a wheel and an sdist; only a directory is one in which its author works."""
    folder = write("word-count", {"word_count.py": LOADER})
    with zipfile.ZipFile("w-1-py3-none-any.whl", "w") as archive:
        archive.write(folder / "word_count.py", "word_count.py")
    with tarfile.open("w-1.tar.gz", "w:gz") as sdist:
        sdist.add(folder, "w-1")
    for name, is_editable in (("word-count", True), (str(folder), True), ("w-1-py3-none-any.whl", False), ("w-1.tar.gz", False)):
        with open_target(f"{name}{given}", Path("environments")) as target:
            assert (target.extras, target.is_editable) == (extras, is_editable)
            assert (target.root / "word_count.py").is_file()


def test_the_environments_that_there_are_are_named(write: Callable[..., Path]) -> None:
    for name in ("second", "the-first"):
        write(name, {})
    Path("environments/no_project").mkdir()
    with pytest.raises(ConfigurationError, match=r"no directory other; there are second, the_first$"):
        with_target("other")
    Path("environments/other").touch()
    with pytest.raises(ConfigurationError, match="no directory other"):
        with_target("other")


def with_target(name: str) -> Path:
    """Return where a package is, after the context."""
    with open_target(name, Path("environments")) as target:
        return target.path


@pytest.mark.parametrize("error", [None, KeyError, KeyboardInterrupt])
def test_what_was_unpacked_goes_away_however_it_ends(error: type[BaseException] | None, write: Callable[..., Path]) -> None:
    folder = write("word-count", {"word_count.py": LOADER})
    with tarfile.open("w-1.tar.gz", "w:gz") as sdist:
        sdist.add(folder, "w-1")
    unpacked: list[Path] = []
    with pytest.raises(error) if error else contextlib.nullcontext(), open_target("w-1.tar.gz", Path("environments")) as target:
        unpacked.append(target.path)
        assert target.path.is_dir()
        if error:
            raise error
    assert not unpacked[0].parent.exists()
    assert folder.is_dir()
