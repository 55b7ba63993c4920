"""Projects of environments: what ``vf-init`` and ``vf-setup`` write, what ``vf-install`` installs, and that it runs with ``vf-eval``.

Nothing here needs a network: projects are built with the build backend that is installed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests import programs
from tests.commands import run_module
from tests.programs import SECONDS, make_environment, run_python
from verifiers_compat.cli.commands.init import module_of, write_project
from verifiers_compat.cli.commands.setup import endpoints_text, write_workspace
from verifiers_compat.cli.evals.endpoints import read_endpoints
from verifiers_compat.cli.evals.files import load_toml_config
from verifiers_compat.cli.plugins.prime import PRIME_PLUGIN_API_VERSION, PrimeCLIPlugin, get_plugin
from verifiers_compat.cli.requirements import EXTRAS, constraints, requirements_of
from vfgym.clients.config import PROVIDERS
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer, Reply

COMMANDS = "verifiers_compat.cli.commands"


# vf-init


@pytest.mark.parametrize(("env", "module"), [("word-count", "word_count"), ("Word2Vec", "word2vec"), ("a_b-c", "a_b_c")])
def test_names_become_modules(env: str, module: str) -> None:
    assert module_of(env) == module


@pytest.mark.parametrize(
    "env", ["", "2words", "a/b", "a b", "a--b", "a-", "-a", "ümlaut", "class", "match", "json", "vfgym", "../x", "a.b"]
)
def test_names_that_cannot_be_modules_are_refused(env: str) -> None:
    with pytest.raises(ConfigurationError):
        module_of(env)


@pytest.mark.parametrize("is_package", [False, True])
def test_a_new_project_has_its_files_and_metadata(workspace: Path, is_package: bool) -> None:
    folder = write_project("word_count", workspace / "environments", is_package=is_package)
    code = ["word_count/__init__.py", "word_count/word_count.py"] if is_package else ["word_count.py"]
    assert sorted(str(file.relative_to(folder)) for file in folder.rglob("*.*")) == sorted(["README.md", "pyproject.toml", *code])
    content = tomllib.loads((folder / "pyproject.toml").read_text())
    assert content["project"]["name"] == "word-count"
    assert content["project"]["dependencies"] == [f"vfgym>={importlib.metadata.version('vfgym')}"]
    assert content["build-system"]["build-backend"] == "hatchling.build"
    assert content["tool"]["verifiers"]["eval"] == {"num_examples": 5, "rollouts_per_example": 3}
    assert "pyproject.toml" in content["tool"]["hatch"]["build"]["include"]
    readme = (folder / "README.md").read_text()
    assert "vf-install word-count" in readme
    assert "vf-eval word-count" in readme
    assert "$" not in readme


@pytest.mark.parametrize("is_package", [False, True])
def test_a_wheel_of_a_new_project_has_its_code(workspace: Path, is_package: bool) -> None:
    """So that others can install it; and its pyproject.toml, where the defaults of its evaluation stand."""
    folder = write_project("word_count", workspace, is_package=is_package)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=folder, capture_output=True, timeout=SECONDS, check=True
    )
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
    code = {"word_count/__init__.py", "word_count/word_count.py"} if is_package else {"word_count.py"}
    assert files == {"pyproject.toml", *code}


def test_files_that_are_there_are_kept(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_project("word_count", workspace)
    (folder / "README.md").write_text("mine")
    (folder / "word_count.py").write_text("mine")
    capsys.readouterr()
    write_project("word_count", workspace)
    assert capsys.readouterr().out.count("kept ") == 3
    assert (folder / "README.md").read_text() == "mine"
    write_project("word_count", workspace, rewrites_readme=True)
    assert (folder / "README.md").read_text().startswith("# word-count")
    assert (folder / "word_count.py").read_text() == "mine"
    with pytest.raises(ConfigurationError, match="cannot be a package"):
        write_project("word_count", workspace, is_package=True)


def test_init_tells_what_to_do_next(workspace: Path) -> None:
    done = run_module(f"{COMMANDS}.init", "word-count", "-p", "envs", "--multi-file")
    assert "vf-install word-count -p envs" in done.stdout
    assert (workspace / "envs" / "word_count" / "word_count" / "word_count.py").is_file()
    assert "proj/server.py" in run_module(f"{COMMANDS}.init", "of-openenv", "--openenv").stdout
    assert "letters, digits" in run_module(f"{COMMANDS}.init", "word count", exit_code=2).stderr


def test_an_environment_on_a_server_is_played_as_it_is_made(workspace: Path) -> None:
    """It is a package, so that where several are installed, each has a server of its own."""
    folder = write_project("guess_number", workspace, has_server=True)
    home = folder / "guess_number"
    assert sorted(file.name for file in (home / "proj").iterdir()) == [".build.json", "Dockerfile", "server.py"]
    assert json.loads((home / "proj" / ".build.json").read_text())["image"] == "guess-number-server"
    included = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["include"]
    assert included == ["guess_number/**", "pyproject.toml"]
    played = run_python(
        """
        import guess_number
        env = guess_number.load_environment(seed=7, backend="unsafe", num_eval_examples=1, num_train_examples=1)
        shown = [env.reset(options={"example_id": 0})[0][-1].content]
        for answer in ('{"guess": 5}', "7"):
            observation, reward, *_ = env.step(answer)
            shown.append((observation[-1].content, reward))
        env.close()
        print(shown)
        """,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(Path(__file__).parents[3])))},
    )
    assert played.stdout.strip() == repr(
        ['Guess my number. Answer with JSON: {"guess": 5}\nIt is from 0 to 9.', ("Higher.", 0.0), ("Right!", 1.0)]
    )


# vf-setup


def test_setup_makes_a_workspace_and_keeps_what_is_there(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_workspace(workspace)
    assert (workspace / "environments").is_dir()
    endpoints = read_endpoints(workspace / "configs" / "endpoints.toml")
    assert endpoints["echo"] == [{"model": "echo", "url": "http://localhost:8000/v1", "key": "LOCAL_API_KEY"}]
    (config,) = load_toml_config(workspace / "configs" / "eval" / "example.toml")
    assert Path(config["endpoints_path"]).resolve() == workspace / "configs" / "endpoints.toml"
    assert config["endpoint_id"] in endpoints
    (workspace / "configs" / "endpoints.toml").write_text("mine")
    write_workspace(workspace)
    assert (workspace / "configs" / "endpoints.toml").read_text() == "mine"


def test_setup_has_every_provider_as_a_comment_that_works(workspace: Path) -> None:
    file = workspace / "endpoints.toml"
    file.write_text("\n".join(line.removeprefix("# ") if "=" in line or "[[" in line else "" for line in endpoints_text().splitlines()))
    assert list(read_endpoints(file)) == ["echo", *(f"my-{name}-model" for name in PROVIDERS)]


def test_setup_refuses_what_it_cannot_do(workspace: Path) -> None:
    assert "trainer" in run_module(f"{COMMANDS}.setup", "--prime-rl", exit_code=2).stderr
    assert "--agents" in run_module(f"{COMMANDS}.setup", "--agents", "claude", exit_code=2).stderr
    run_module(f"{COMMANDS}.setup", "--skip-agents-md", "--skip-install", "--no-interactive")
    assert (workspace / "configs" / "endpoints.toml").is_file()


# What is required


def project(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_verifiers_is_left_out_and_its_extras_are_replaced(workspace: Path) -> None:
    found = requirements_of(
        project(
            workspace / "p",
            '[project]\nname = "p"\ndependencies = ["Verifiers[ta,envs]>=0.1.9", "rich>=14 ; python_version >= \'3\'",'
            ' "never; python_version < \'3\'", "other @ https://example.org/other.whl"]\n'
            '[project.optional-dependencies]\nBig = ["big", "small; python_version < \'3\'"]\nmore = ["more"]\n',
        ),
        extras=["big"],
    )
    assert found.name == "p"
    textarena = next(text for text in importlib.metadata.requires("vfgym") or () if text.startswith("textarena")).partition(";")[0]
    assert found.install == (textarena, "rich>=14", "other @ https://example.org/other.whl", "big")
    assert found.replaced == ("Verifiers[envs,ta]>=0.1.9",)
    assert found.unknown_extras == ("envs",)


def test_every_extra_that_stands_for_another_exists(workspace: Path) -> None:
    provided = importlib.metadata.metadata("vfgym").get_all("Provides-Extra") or []
    assert set(EXTRAS.values()) <= set(provided)


def test_this_library_is_never_looked_for(workspace: Path) -> None:
    text = '[project]\nname = "p"\ndependencies = ["vfgym[all]>=0.0.1"]\n'
    found = requirements_of(project(workspace / "p", text))
    assert not [each for each in found.install if each.startswith("vfgym")]
    assert [each for each in found.install if each.startswith("textarena")]
    with pytest.raises(ConfigurationError, match="update vfgym"):
        requirements_of(project(workspace / "p", text.replace("0.0.1", "999")))


def test_what_this_library_requires_limits_the_rest() -> None:
    own = constraints()
    assert any(each.startswith("openai>=") for each in own)
    assert not [each for each in own if each.startswith(("textarena", "pytest", "vfgym"))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project", "cannot be read"),
        ("[tool]", "name: Field required"),
        ('[project]\nname = "p"\ndependencies = ["a b c"]', "requires 'a b c'"),
        ('[project]\nname = "p"\ndependencies = "a"', "dependencies: Input should be a valid list"),
        ('[project]\nname = "p"\ndynamic = ["dependencies"]', "build its wheel"),
    ],
)
def test_projects_that_cannot_be_understood_are_refused(workspace: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        requirements_of(project(workspace / "p", text))


# vf-install

FAKE_UV = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
files = [pathlib.Path(after).read_text() for option, after in zip(arguments, arguments[1:]) if option in ("--constraint", "--override")]
with open("calls.jsonl", "a") as file:
    file.write(json.dumps([arguments, files]) + "\\n")
"""


@pytest.fixture
def uv(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `uv` that only writes down how it was called; the path is where."""
    script = workspace / "bin" / "uv"
    script.parent.mkdir()
    script.write_text(FAKE_UV.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return workspace / "calls.jsonl"


def test_uv_is_used_where_it_is_installed(workspace: Path, uv: Path) -> None:
    folder = project(workspace / "environments" / "word_count", '[project]\nname = "word-count"\ndependencies = ["rich", "verifiers"]')
    done = run_module(f"{COMMANDS}.install", "word-count")
    (needs, (limits, overrides)), (itself, _) = [json.loads(line) for line in uv.read_text().splitlines()]
    assert needs[:4] == ["pip", "install", "--python", sys.executable]
    assert needs[-1] == "rich"
    assert "openai>=" in limits
    assert overrides == "verifiers; python_version < '0'\n"
    assert itself == ["pip", "install", "--python", sys.executable, "--no-deps", "--editable", str(folder)]
    assert "installed word-count" in done.stdout
    assert "left out  verifiers: vfgym offers it" in done.stdout


def test_an_environment_may_come_from_a_repository(workspace: Path, uv: Path) -> None:
    repository = workspace / "repository"
    project(repository / "environments" / "word_count", '[project]\nname = "word-count"')
    identity = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    for command in (["init", "-q", "-b", "trunk"], ["add", "."], [*identity, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    arguments = ("-r", "-b", "trunk", "--repository", repository.as_uri())
    run_module(f"{COMMANDS}.install", "word-count", *arguments)
    ((itself, _),) = [json.loads(line) for line in uv.read_text().splitlines()]
    assert "--editable" not in itself
    assert itself[-1].endswith("environments/word_count")
    assert "there are word_count" in run_module(f"{COMMANDS}.install", "other", *arguments, exit_code=2).stderr
    assert "cannot be cloned" in run_module(f"{COMMANDS}.install", "word-count", *arguments[:-1], "file:///no/such", exit_code=2).stderr


def test_a_wheel_says_what_it_requires(workspace: Path, uv: Path) -> None:
    wheel = workspace / "word_count-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "word_count-0.1.0.dist-info/METADATA",
            'Metadata-Version: 2.4\nName: word-count\nRequires-Dist: verifiers>=0.1.9\nRequires-Dist: big; extra == "more"\n\ntext\n',
        )
    run_module(f"{COMMANDS}.install", f"{wheel}[more]")
    (needs, _), (itself, _) = [json.loads(line) for line in uv.read_text().splitlines()]
    assert needs[-1] == "big"
    assert itself[-2:] == ["--no-deps", str(wheel)]
    (workspace / "bad.whl").write_text("")
    assert "cannot be read as a wheel" in run_module(f"{COMMANDS}.install", "bad.whl", exit_code=2).stderr


def test_install_refuses_what_it_cannot_find(workspace: Path) -> None:
    assert "hosted hub" in run_module(f"{COMMANDS}.install", "owner/word-count", exit_code=2).stderr
    assert "hosted hub" in run_module(f"{COMMANDS}.install", "owner/word-count@0.1.0", exit_code=2).stderr
    assert "no environment 'word-count' in environments" in run_module(f"{COMMANDS}.install", "word-count", exit_code=2).stderr
    assert "there is no wheel x.whl" in run_module(f"{COMMANDS}.install", "x.whl", exit_code=2).stderr


# All together


@pytest.fixture
def python(workspace: Path) -> str:
    """The Python of a fresh virtual environment that sees what is installed here."""
    return make_environment(workspace / "venv")


PUBLISHED = """
import verifiers as vf
from verifiers.utils.data_utils import extract_boxed_answer


def load_environment(**kwargs) -> vf.Environment:
    rubric = vf.Rubric(funcs=[lambda completion, answer: float(extract_boxed_answer(completion[-1]["content"]) == answer)])
    return vf.SingleTurnEnv(dataset=[{"question": "2 + 2?", "answer": "4"}], rubric=rubric, **kwargs)
"""


def adds(request: Any) -> Reply:
    """A model that can add, and answers as it is asked to."""
    words = request.messages[-1]["content"].removesuffix("?").split()
    total = int(words[-3]) + int(words[-1])
    return Reply(f"<answer>{total}</answer>" if "What" in words else rf"\boxed{{{total}}}")


def test_environments_are_made_installed_and_evaluated(workspace: Path, python: str) -> None:
    offline = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PATH": "/usr/bin:/bin"}  # no uv; pip reads "0" as "do not isolate"
    run_module(f"{COMMANDS}.init", "word-count")
    project(
        workspace / "environments" / "boxed",
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "boxed"\nversion = "0.1.0"\ndependencies = ["verifiers>=0.1.9", "rich"]\n'
        '[tool.hatch.build]\ninclude = ["boxed.py", "pyproject.toml"]\ndev-mode-dirs = ["."]\n'
        "[tool.verifiers.eval]\nnum_examples = 1\nrollouts_per_example = 2\n",
    )
    (workspace / "environments" / "boxed" / "boxed.py").write_text(PUBLISHED)
    missing = programs.run_module(f"{COMMANDS}.eval", "boxed", python=python, exit_code=1)
    assert "Install it with: vf-install boxed" in missing.stderr
    programs.run_module(f"{COMMANDS}.install", "word-count", python=python, **offline)
    done = programs.run_module(f"{COMMANDS}.install", "boxed", python=python, **offline)
    assert "left out  verifiers>=0.1.9" in done.stdout
    with ModelServer({"adds": adds}) as server:
        for env, rollouts in (("word-count", 15), ("boxed", 2)):
            before = server.num_requests
            done = programs.run_module(f"{COMMANDS}.eval", env, "-m", "adds", "-b", server.openai_url, "-s", python=python)
            assert "reward: avg - 1.000, std - 0.000" in done.stdout
            assert server.num_requests - before == rollouts  # as the environment's own pyproject.toml says
            assert len(list((workspace / "environments" / env.replace("-", "_") / "outputs" / "evals").glob("*/*/results.jsonl"))) == 1


# What does not exist, and the plugin


@pytest.mark.parametrize(
    ("command", "instead"), [("build", "docker build"), ("rl", "guide of training"), ("train", "guide of training"), ("vllm", "vllm serve")]
)
def test_commands_that_do_not_exist_say_what_to_use(command: str, instead: str, capsys: pytest.CaptureFixture[str]) -> None:
    with (Path(__file__).parents[3] / "pyproject.toml").open("rb") as file:
        module, _, function = tomllib.load(file)["project"]["scripts"][f"vf-{command}"].partition(":")
    with pytest.raises(SystemExit) as ended:
        getattr(importlib.import_module(module), function)()
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: vf-{command} does not exist here: ")
    assert instead in err


def test_the_plugin_names_modules_that_run() -> None:
    plugin = get_plugin()
    assert isinstance(plugin, PrimeCLIPlugin)
    assert plugin.api_version == PRIME_PLUGIN_API_VERSION == 1
    modules = [getattr(plugin, f"{name}_module") for name in ("eval", "gepa", "install", "init", "setup")]
    for module in modules:
        command = plugin.build_module_command(module, ["--help"])
        assert command == [sys.executable, "-m", module, "--help"]
        assert "Usage: vf-" in run_module(*command[2:]).stdout
    assert plugin.build_module_command("m") == [sys.executable, "-m", "m"]
    assert "error: vf-build does not exist here: " in run_module(plugin.build_module, exit_code=2).stderr


@pytest.mark.parametrize("script", ["eval", "gepa", "init", "install", "setup"])
def test_the_older_places_of_the_commands_run(script: str) -> None:
    assert f"Usage: vf-{script}" in run_module(f"verifiers_compat.scripts.{script}", "--help").stdout
