"""``vfgym play``: a person plays an environment in the terminal."""

from __future__ import annotations

import contextlib
import io
import secrets
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from vfgym.agents.loading import load_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.background import run_to_end
from vfgym.cli.conventions import Exit, print_json
from vfgym.cli.environments import make_environment
from vfgym.cli.evaluations import Models
from vfgym.endings import ending_of
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.play import Game, Recording, SavedGame, Screen, Session
from vfgym.play.game import QUIT
from vfgym.wrappers.games.multiplayer import SELF

_MODEL, _HUMAN, _OPPONENTS = "model:", "human", "opponents"


class ModelPlace(NamedTuple):
    """Where the model is that plays against a person."""

    provider: str | None = None
    base_url: str | None = None
    api_key_var: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlaySettings:
    """What is played, and how."""

    env_id: str
    env_args: dict[str, Any]
    seed: int | None
    """None for one at random."""
    opponent: str | None
    """Who takes the other seats; None for whom the environment itself seats there."""
    model_place: ModelPlace
    is_strict: bool
    record: Path | None
    output_dir: Path
    as_json: bool


def play_in_terminal(settings: PlaySettings) -> Exit:
    """Let a person play one game, and save it.

    Returns:
        The exit code.

    Raises:
        ConfigurationError: If there is no terminal, or a setting cannot work: before anything is written.
        ResultsError: If the game cannot be saved.
    """
    if settings.seed is not None and settings.seed < 0:
        raise ConfigurationError(f"--seed must be an integer from 0, got {settings.seed}")
    recording = None if settings.record is None else Recording(settings.record)
    opponent = _opponent(settings)
    env = None
    try:
        env = _make(settings, opponent)
        _check_terminal()
        return _play(settings, env, recording)
    finally:
        if env is not None:
            env.close()
        if isinstance(opponent, ModelAgent):
            run_to_end(opponent.close())


def _play(settings: PlaySettings, env: gym.Env[Any, Any], recording: Recording | None) -> Exit:
    screen = Screen(to_stderr=settings.as_json)
    seed = secrets.randbelow(2**31) if settings.seed is None else settings.seed
    game = Game(env, seed, is_strict=settings.is_strict, recording=recording)
    code, failure = Exit.GOOD, None
    with SavedGame(game, env_id=settings.env_id, env_args=_args_as_data(settings), output_dir=settings.output_dir) as saved:
        screen.say(f"{settings.env_id}, seed {seed}. Type an answer in one line; /help shows what else you can do.\n")
        try:
            with _ending_as_ctrl_c():
                Session(game, screen).play()
        except KeyboardInterrupt as interruption:
            code = Exit.INTERRUPTED
            if game.return_after_break():
                game.quit()
            else:  # a step was broken off that cannot be taken back
                failure = interruption
        except Exception as error:
            saved.write(error)
            screen.say_as_is(f"the game so far is saved in {saved.path}")
            raise
        row = saved.write(failure)
    if row["stop_condition"] == QUIT and code is Exit.INTERRUPTED:  # who was asked knows it
        screen.say("You left before the end; the game is saved unfinished.")
    screen.say_as_is(f"saved in {saved.path}")
    if recording is not None:
        recording.save()
        screen.say_as_is(f"recorded in {recording.file}")
    if settings.as_json:
        told = ("reward", "stop_condition", "is_completed", "is_truncated", "seed", "human")
        print_json({"path": str(saved.path), "ending": str(ending_of(row)), **{name: row[name] for name in told}})
    return code


@contextlib.contextmanager
def _ending_as_ctrl_c() -> Iterator[None]:
    """Let a terminal that is closed, or somebody who ends the process, leave the game as Ctrl-C does: it is saved."""
    signals = [getattr(signal, name) for name in ("SIGHUP", "SIGTERM") if hasattr(signal, name)]
    before = [signal.signal(each, signal.default_int_handler) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


def _check_terminal() -> None:
    """Refuse an input that nobody types into, and let whatever is typed be text: what cannot be read becomes a mark."""
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "vfgym play reads from a terminal, and standard input is none. For answers from a file or a program, take"
            " `vfgym eval ID --agent human` or `--agent module:callable`"
        )
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


def _opponent(settings: PlaySettings) -> Any:
    """Return who takes the other seats, as an environment takes it; None where that is not said."""
    name, place = settings.opponent, settings.model_place
    is_model = name is not None and name.startswith(_MODEL)
    if any(place) and not is_model:
        raise ConfigurationError("--provider, --base-url and --api-key-var say where an --opponent model:NAME is: name one")
    if name is None:
        return None
    if _OPPONENTS in settings.env_args:
        raise ConfigurationError(f"--opponent and --env-args both say who takes the other seats ({_OPPONENTS!r}): give one of them")
    if name == _HUMAN:
        return SELF
    if not is_model:
        return load_agent(name)
    model = name.removeprefix(_MODEL)
    config = Models(names=[model], provider=place.provider, base_url=place.base_url, api_key_var=place.api_key_var).config()
    return ModelAgent(config, model)


def _make(settings: PlaySettings, opponent: Any) -> gym.Env[Any, Any]:
    arguments = dict(settings.env_args)
    if opponent is not None:
        arguments[_OPPONENTS] = opponent
    if settings.record is not None:
        arguments["render_mode"] = "rgb_array"
    try:
        env, _ = make_environment(settings.env_id, arguments)
    except UnknownArgument as error:
        if opponent is None or repr(_OPPONENTS) not in str(error):
            raise
        raise ConfigurationError(f"--opponent says who takes the other seats of a game, and {settings.env_id} has none") from error
    return env


def _args_as_data(settings: PlaySettings) -> dict[str, Any]:
    """Return what the environment was made with, for the metadata."""
    arguments = dict(settings.env_args or gym.spec(settings.env_id.partition(":")[2] or settings.env_id).kwargs)
    if settings.opponent is not None:
        arguments[_OPPONENTS] = SELF if settings.opponent == _HUMAN else settings.opponent
    return arguments
