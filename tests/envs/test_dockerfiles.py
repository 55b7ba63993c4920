"""What a Dockerfile copies is known without a build, and what needs one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from vfgym.envs.dockerfiles import NeedsBuild, read_layout


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
        *["COPY data.txt", 'COPY ["data.txt" "/b"]', "COPY [1, 2]"],
    ],
)
def test_what_needs_a_build_is_named(line: str, folder: Path) -> None:
    with pytest.raises(NeedsBuild, match=line.split()[0]):
        read(folder, f"FROM ubuntu:24.04\n{line}\n")
