"""What is said where an environment cannot be loaded: one line that names the environment, what failed, where, and what to do."""

from __future__ import annotations

import contextlib
import textwrap
import traceback
from collections.abc import Iterator

from pydantic import ValidationError

from verifiers_compat.utils.config_utils import MissingKeyError
from vfgym.errors import ConfigurationError, Error, MissingExtra

_LONGEST = 500
"""Characters of an error's own text."""
_NETWORK_LIBRARIES = frozenset({"aiohttp", "httpx", "huggingface_hub", "requests", "urllib", "urllib3"})
_OFFLINE = (
    " It takes data from the network, which does not give it: check that the network can be reached, the name of the data, and HF_TOKEN;"
    " with HF_HUB_OFFLINE=1, what was downloaded before is used."
)


class EnvironmentLoadError(Error, RuntimeError):
    """The code of an environment raised an error while it was loaded. The error is the cause of this one."""


@contextlib.contextmanager
def report_failures(env_id: str, attempt: str = "loading") -> Iterator[None]:
    """Turn what an environment's code raises into an error that names the environment.

    Args:
        env_id: The environment's id.
        attempt: What is done with it, as a word that begins with a verb.

    Raises:
        MissingKeyError: What was raised, if it needs environment variables that are not set.
        ConfigurationError: If it needs something that is not installed or not offered, or set something up in a way that cannot work.
        EnvironmentLoadError: If it raised anything else but an `Error`. What was raised is the cause.
    """
    try:
        yield
    except MissingKeyError as error:
        error.needed_by = env_id
        raise
    except (ConfigurationError, MissingExtra) as error:
        raise ConfigurationError(f"{attempt} the environment {env_id!r} failed: {error}") from error
    except Error:
        raise
    except ValidationError as error:
        from verifiers_compat.v1.config_base import describe_problems

        problem = f"{error.title} does not fit: {describe_problems(error)}{_place(error, env_id)}"
        raise ConfigurationError(f"{attempt} the environment {env_id!r} failed: {problem}") from error
    except ImportError as error:
        advice = ""
        if isinstance(error, ModuleNotFoundError) and "is not offered" not in str(error):
            advice = f". `vf-install {env_id}` installs what it imports, `vf-install --check {env_id}` lists it"
        problem = f"{_text_of(error)}{_place(error, env_id)}{advice}"
        raise ConfigurationError(f"{attempt} the environment {env_id!r} failed: {problem}") from error
    except Exception as error:
        raise EnvironmentLoadError(f"{attempt} the environment {env_id!r} failed: {describe_failure(error, env_id)}") from error


def describe_failure(error: BaseException, env_id: str) -> str:
    """Return an error as one line: its kind and text, where in the environment's module it was raised, and what to do.

    Args:
        error: The error.
        env_id: The environment's id.
    """
    text = _text_of(error)
    advice = _OFFLINE if _is_of_network(error) else ""
    return f"{type(error).__name__}{': ' if text else ''}{text}{_place(error, env_id)}{'.' if advice else ''}{advice}"


def _text_of(error: BaseException) -> str:
    return textwrap.shorten(str(error), _LONGEST, placeholder=" ...").rstrip(".")


def _place(error: BaseException, env_id: str) -> str:
    """Return the last line of the environment's own code that an error came through, in brackets."""
    module = env_id.rpartition("/")[2].replace("-", "_").partition(".")[0]
    places = [
        f"{frame.f_code.co_filename.rpartition('/')[2]}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] == module
    ]
    return f" ({places[-1]})" if places else ""


def _is_of_network(error: BaseException | None) -> bool:
    """Say whether an error, or what caused it, is that something on the network was not reached or is not there."""
    while error is not None:
        kind = type(error)
        if (
            isinstance(error, ConnectionError)
            or kind.__module__.partition(".")[0] in _NETWORK_LIBRARIES
            or kind.__name__ == "DatasetNotFoundError"
        ):
            return True
        error = error.__cause__ or error.__context__
    return False
