"""`PageServer`: a run that grows is followed; nobody but this machine's browsers is answered, and nothing is changed."""

from __future__ import annotations

import ipaddress
import json
import math
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.programs import SECONDS
from tests.view.browser import open_browser
from tests.view.runs import row, write_run
from vfgym.errors import ConfigurationError
from vfgym.results import ResultsError
from vfgym.view.serving import PageServer

SAFE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def add_row(run: Path, text: str) -> None:
    with (run / "results.jsonl").open("a") as file:
        file.write(text)


async def test_new_rows_appear(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row()], num_examples=3)
    async with PageServer([run]) as server, aiohttp.ClientSession() as session:
        page = await (await session.get(server.url)).text()
        assert "connect-src 'self'" in page
        (tag,) = [part.split("&quot;")[1] for part in page.split("data-follows=")[1:2]]
        assert (await session.get(f"{server.url}data", headers={"If-None-Match": f'"{tag}"'})).status == 304
        server._next_read = 0.0  # it rests after it has read
        add_row(run, json.dumps(row(1)) + "\n" + json.dumps(row(2))[:40])  # the last one is being written
        new = await session.get(f"{server.url}data", headers={"If-None-Match": f'"{tag}"'})
        assert (new.status, new.headers["ETag"] != f'"{tag}"') == (200, True)
        (seen,) = (await new.json())["runs"]
        assert (len(seen["rows"]), seen["note"].split(",")[0]) == (2, "2 of 3 rollouts of 2 tasks")
        server._next_read = math.inf
        add_row(run, json.dumps(row(2))[40:] + "\n")
        assert len((await (await session.get(f"{server.url}data")).json())["runs"][0]["rows"]) == 2, "it rests"
        (run / "results.jsonl").unlink()
        server._next_read = 0.0
        assert len((await (await session.get(f"{server.url}data")).json())["runs"][0]["rows"]) == 2, "what was read stays"


async def test_only_this_machine_is_answered_and_only_read(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row()])
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    async with PageServer([run]) as server, aiohttp.ClientSession() as session:
        port = int(server.url.split(":")[2].strip("/"))
        assert [ipaddress.ip_address(address[0]).is_loopback for address in server._runner.addresses] == [True]
        for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil.example:{port}", ""):
            for path in ("", "data", "nothing"):
                refused = await session.get(f"{server.url}{path}", headers={"Host": host})
                assert (refused.status, "answer 0.0" in await refused.text()) == (403, False), host
        named = await session.get(f"{server.url}data", headers={"Host": f"localhost:{port}"})
        assert named.status == 200
        same = await session.get(f"{server.url}data", headers={"If-None-Match": named.headers["ETag"]})
        head = await session.head(server.url)
        assert (same.status, head.status, await head.read()) == (304, 200, b"")
        assert (named.content_type, named.headers["Content-Encoding"], head.content_type) == ("application/json", "gzip", "text/html")
        answers = [named, same, head]
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            answers.append(await session.request(method, server.url, data=b"x"))
            assert (answers[-1].status, answers[-1].headers["Allow"]) == (405, "GET, HEAD"), method
        for answer in [*answers, refused, await session.get(f"{server.url}nothing")]:
            assert "Access-Control-Allow-Origin" not in answer.headers
            assert {header: answer.headers[header] for header in SAFE} == SAFE, answer
        for path in ("results.jsonl", "../run/results.jsonl", "data/"):
            assert (await session.get(f"{server.url}{path}")).status == 404, path
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


async def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="cannot read"):
        PageServer([tmp_path])
    with pytest.raises(ConfigurationError, match="needs a run"):
        PageServer([])
    run = write_run(tmp_path / "run", [row()])
    async with PageServer([run]) as server:
        busy = PageServer([run], int(server.url.split(":")[2].strip("/")))
        with pytest.raises(ConfigurationError, match="Give another port"):
            await busy.__aenter__()


@pytest.mark.exhaustive
def test_the_command_follows_a_run_in_a_browser_until_ctrl_c(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row()], num_examples=3)
    command = [sys.executable, "-m", "vfgym", "view", str(run), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[0]
            with open_browser() as browser:
                look_at_a_run_that_grows(browser, url, run, stop=lambda: process.send_signal(signal.SIGINT))
            output, errors = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert (process.returncode, output, errors) == (0, "\nstopped\n", "")


def look_at_a_run_that_grows(browser: Any, url: str, run: Path, stop: Callable[[], None]) -> None:
    tab = browser.new_page()
    tab.goto(url)
    tab.wait_for_selector(".rollouts li")
    tab.get_by_label("Text in them").fill("answer")
    tab.get_by_text("All numbers").click()
    add_row(run, json.dumps(row(1)) + "\n")
    tab.locator(".rollouts li").nth(1).wait_for()
    assert tab.get_by_label("Text in them").input_value() == "answer"
    assert tab.locator(".more-of-runs details[open]", has_text="All numbers").count() == 1, "what was opened stays open"
    tab.get_by_text("Following: 2 rollouts so far.").wait_for()
    stop()
    tab.get_by_text("the server has stopped").wait_for()
