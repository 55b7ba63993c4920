"""The endpoint registry: variants of endpoints, files of either kind, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from verifiers_compat.cli.evals.endpoints import read_endpoints
from verifiers_compat.utils.eval_utils import load_endpoints, resolve_endpoints_file
from vfgym.errors import ConfigurationError

REGISTRY = """
[[endpoint]]
endpoint_id = "one"
model = "org/one"
url = "http://a/v1"
key = "A_KEY"
type = "openai_responses"
headers = { X-Place = "a" }

[[endpoint]]
endpoint_id = "two"
model = "org/two"
api_base_url = "http://b/v1"
api_key_var = "B_KEY"

[[endpoint]]
endpoint_id = "two"
model = "org/two"
url = "http://c/v1"
key = "C_KEY"
"""


def test_registry_gives_the_variants_of_each_endpoint(workspace: Path) -> None:
    (workspace / "endpoints.toml").write_text(REGISTRY)
    endpoints = load_endpoints(workspace)  # the directory of the file
    assert endpoints == {
        "one": [
            {
                "model": "org/one",
                "url": "http://a/v1",
                "key": "A_KEY",
                "api_client_type": "openai_responses",
                "extra_headers": {"X-Place": "a"},
            }
        ],
        "two": [{"model": "org/two", "url": f"http://{x}/v1", "key": f"{x.upper()}_KEY"} for x in "bc"],
    }


def test_registry_may_be_the_older_python_file(workspace: Path) -> None:
    file = workspace / "endpoints.py"
    file.write_text('ENDPOINTS = {"x": {"model": "m", "url": "http://x", "key": "K"}, "y": [{"model": "n", "url": "u", "key": "K"}] * 2}')
    endpoints = load_endpoints(workspace / "endpoints.toml")  # the default name, where only the other is there
    assert endpoints["x"] == [{"model": "m", "url": "http://x", "key": "K"}]
    assert len(endpoints["y"]) == 2
    assert resolve_endpoints_file(workspace) == file
    assert resolve_endpoints_file(workspace / "no.toml") is None


def test_a_registry_that_cannot_be_used_is_empty_with_a_warning(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert load_endpoints(workspace / "endpoints.toml") == {}
    assert "there is no endpoint registry" in caplog.text
    (workspace / "endpoints.toml").write_text("[[endpoint")
    assert load_endpoints(workspace / "endpoints.toml") == {}
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[endpoint]]\nmodel = "m"', "needs an endpoint_id"),
        ('[[endpoint]]\nendpoint_id = "x"\nmodel = "m"\nurl = "u"', "key is missing"),
        ('[[endpoint]]\nendpoint_id = "x"\nmodle = "m"', "no field 'modle'.*Did you mean `model`"),
        ('[[endpoint]]\nendpoint_id = "x"\nurl = "u"\napi_base_url = "v"', "url and api_base_url"),
        ('[[endpoint]]\nendpoint_id = "x"\nheaders = "h"', "headers: must be a table"),
        (
            '[[endpoint]]\nendpoint_id = "x"\nmodel = "m"\nurl = "u"\nkey = "k"\ntype = "openai_chat"',
            "type: .*Did you mean `openai_chat_completions`",
        ),
        (
            '[[endpoint]]\nendpoint_id = "x"\nmodel = "m"\nurl = "u"\nkey = "k"\n'
            '[[endpoint]]\nendpoint_id = "x"\nmodel = "n"\nurl = "u"\nkey = "k"',
            "must serve one model; got m, n",
        ),
        ("endpoint = 3", "must be a table"),
        ("[[endpoint]]\nendpoint_id = ''", r"endpoint number 1 needs an endpoint_id \(text\), got ''"),
        ('[[endpoint]]\nendpoint_id = "x"\n[[endpoints]]\nendpoint_id = 3', r"endpoint number 2 needs an endpoint_id \(text\), got 3"),
        ("model = 'm'", r"expected tables \[\[endpoint\]\], got 'model'"),
    ],
)
def test_a_wrong_registry_is_refused(workspace: Path, text: str, message: str) -> None:
    (workspace / "endpoints.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        read_endpoints("endpoints.toml")


ROW = 'endpoint_id = "{0}"\nmodel = "m"\nurl = "{1}"\nkey = "K"\n'


def test_tables_may_have_either_name_and_one_may_stand_alone(workspace: Path) -> None:
    (workspace / "endpoints.toml").write_text(f"[endpoints]\n{ROW.format('a', 'u')}[[endpoint]]\n{ROW.format('a', 'v')}")
    assert read_endpoints("endpoints.toml") == {"a": [{"model": "m", "url": url, "key": "K"} for url in "vu"]}
    (workspace / "endpoints.toml").write_text("")
    assert read_endpoints("endpoints.toml") == {}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "the endpoint registry endpoints.py cannot be read: ZeroDivisionError: division by zero"),
        ("", "endpoints.py: expected a dict ENDPOINTS, got NoneType"),
        ("ENDPOINTS = []", "expected a dict ENDPOINTS, got list"),
        ("ENDPOINTS = {'x': [{}, 'sk-secret']}", r"an endpoint must be a table with its fields .*, got str$"),
    ],
)
def test_a_wrong_python_file_is_refused(workspace: Path, code: str, message: str) -> None:
    (workspace / "endpoints.py").write_text(code)
    with pytest.raises(ConfigurationError, match=message):
        read_endpoints("endpoints.py")


@pytest.mark.parametrize(
    ("there", "asked", "found"),
    [
        (("endpoints.toml", "endpoints.py"), ".", "endpoints.toml"),
        (("endpoints.py",), ".", "endpoints.py"),
        (("mine.toml", "mine.py"), "mine.py", "mine.py"),
        (("mine.toml",), "mine.py", "mine.toml"),
        (("mine.py",), "mine.toml", "mine.py"),
        (("mine.toml",), "mine", None),
        (("mine.txt",), "mine.txt", "mine.txt"),
        ((), ".", None),
    ],
)
def test_where_a_registry_is_looked_for(there: tuple[str, ...], asked: str, found: str | None, tmp_path: Path) -> None:
    for name in there:
        (tmp_path / name).touch()
    assert resolve_endpoints_file(tmp_path / asked) == (None if found is None else tmp_path / found)
