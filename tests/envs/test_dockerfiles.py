"""What a Dockerfile copies is known without a build, and what needs one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from vfgym.envs.dockerfiles import NeedsBuild, read_layout, read_working_dir


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("")
    (tmp_path / "data.txt").write_text("")
    return tmp_path


def read(folder: Path, text: str) -> tuple[str, dict[str, str], list[tuple[str, str]]]:
    (folder / "Dockerfile").write_text(text)
    layout = read_layout(folder)
    return layout.working_dir, layout.env, [(str(local.relative_to(folder.resolve())), inside) for local, inside in layout.copies]


def test_files_go_where_docker_would_put_them(folder: Path) -> None:
    text = """
    # A comment, and a line that goes on
    FROM ubuntu:24.04
    ENV MODE=fast \\
        NAME="a b"
    WORKDIR /app
    COPY data.txt input.txt
    COPY data.txt inside/
    copy ["data.txt", "src", "/all/"]
    WORKDIR sub
    ADD src .
    COPY data.txt /app
    COPY data.txt ..
    LABEL any=thing
    CMD ["sh"]
    """
    copies = [("data.txt", "/app/input.txt"), ("data.txt", "/app/inside/data.txt"), ("data.txt", "/all/data.txt"), ("src", "/all")]
    copies += [("src", "/app/sub"), ("data.txt", "/app/data.txt"), ("data.txt", "/app/data.txt")]
    assert read(folder, text) == ("/app/sub", {"MODE": "fast", "NAME": "a b"}, copies)


@pytest.mark.parametrize(
    "line",
    [
        *["RUN apt-get update", "FROM python:3.11", "COPY --from=0 /a /b", "COPY ../secret /b", "COPY missing.txt /b", "COPY $SOURCE /b"],
        *["ADD https://example.com/a.tar /b", "USER nobody", "ENV", "ENV NAME", "ENV NAME='open", "ENV A=1 and more", "WORKDIR"],
        *["COPY data.txt", 'COPY ["data.txt" "/b"]', "COPY [1, 2]", "COPY <<EOF /b", "ENV A=1 =2", "VOLUME /data", "SHELL []"],
        *[f"ADD data.{suffix} /b" for suffix in ("tar", "tar.gz", "tgz", "bz2", "xz")],
    ],
)
def test_what_needs_a_build_is_named(line: str, folder: Path) -> None:
    with pytest.raises(NeedsBuild, match=line.split()[0]):
        read(folder, f"FROM ubuntu:24.04\n{line}\n")


def test_an_archive_is_copied_as_it_is_where_it_is_not_added(folder: Path) -> None:
    (folder / "data.tgz").write_text("")
    assert read(folder, "COPY data.tgz /b")[2] == [("data.tgz", "/b")]
    with pytest.raises(NeedsBuild, match=r"data\.tgz is not a file or folder to copy"):
        read(folder, "ADD data.tgz /b")


@pytest.mark.parametrize("line", ["CMD sh", 'ENTRYPOINT ["sh", "-c"]', "EXPOSE 80", "LABEL a=$b", "MAINTAINER me", "# RUN this", ""])
def test_what_says_nothing_of_files_has_no_effect(line: str, folder: Path) -> None:
    assert read(folder, f"FROM ubuntu\n{line}") == ("/", {}, [])


@pytest.mark.parametrize(
    ("lines", "env"),
    [
        *[("ENV A 1", {"A": "1"}), ("ENV\tA=1", {"A": "1"})],
        ("ENV A one  two", {"A": "one two"}),
        ("ENV A= B=x=y", {"A": "", "B": "x=y"}),
        ("ENV A=1 B=2\nENV B=3 C='4 5'", {"A": "1", "B": "3", "C": "4 5"}),
    ],
)
def test_variables(lines: str, env: dict[str, str], folder: Path) -> None:
    assert read(folder, lines)[1] == env


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ("COPY src /all\nCOPY data.txt /all", "/all/data.txt"),
        ("COPY src /all/sub\nCOPY data.txt /all", "/all/data.txt"),
        ("COPY src /all\nCOPY data.txt /al", "/al"),
        ("COPY data.txt /all\nCOPY data.txt /all", "/all"),
        ("WORKDIR /app\nCOPY data.txt .", "/app/data.txt"),
        ("WORKDIR /app\nCOPY /data.txt ./new", "/app/new"),
    ],
)
def test_a_file_comes_into_a_folder_that_is_there_and_else_has_the_name(lines: str, place: str, folder: Path) -> None:
    assert read(folder, lines)[2][-1] == ("data.txt", place)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        *[("FROM a", "/"), ("FROM a\nWORKDIR /app\nRUN make\nWORKDIR sub/..//deep", "/app/deep"), ('WORKDIR "/two words"', "/two words")],
        *[("FROM a\nWORKDIR /app\nFROM b", "/"), ("FROM a\nWORKDIR /one\nFROM b\nworkdir two", "/two"), ("WORKDIR '/q'", "/q")],
        *[("WORKDIR /app\nWORKDIR $HOME", "/app"), ("# WORKDIR /no\nWORKDIR \\\n  /a", "/a"), ("WORKDIR\t/tab", "/tab")],
    ],
)
def test_where_programs_of_an_image_start(lines: str, place: str, folder: Path) -> None:
    (folder / "Dockerfile").write_text(lines)
    assert read_working_dir(folder) == place
