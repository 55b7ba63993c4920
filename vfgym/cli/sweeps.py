"""Many runs by one command: who plays what, in which variations, and which of them are chosen."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from vfgym.agents.base import Agent
from vfgym.agents.isolated import IsolatedAgent
from vfgym.agents.loading import AGENTS, load_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.background import run_to_end
from vfgym.bounded_json import parse_json
from vfgym.cli.environments import check_id
from vfgym.cli.eval_files import combinations
from vfgym.cli.evaluations import EvalFields, EvalSettings
from vfgym.clients import ClientConfig
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import redact_data
from vfgym.results.plain_json import json_text
from vfgym.runs.inputs import TaskInputs
from vfgym.runs.planning import plan_tasks


class Contestant(NamedTuple):
    """Who plays."""

    name: str
    """The name of an agent or of a model, as it stands in results."""
    agent: Agent
    label: str
    """What stands in the table: the name, and which of the two it is where both have it."""
    config: ClientConfig | None
    """Where a model is; None for an agent."""


@dataclass(frozen=True)
class PlannedRun:
    """One run: who plays, and what."""

    settings: EvalSettings
    contestant: Contestant
    varied: dict[str, Any]
    """What it has otherwise than other runs of its environment: arguments by their names, options of the command by theirs (``--seed``)."""
    names_environment: bool
    """Whether there are runs of other environments."""

    @property
    def label(self) -> str:
        """What tells it from the other runs of its environment."""
        varied = ", ".join(f"{name}={as_text(value)}" for name, value in self.varied.items())
        return f"{self.contestant.label} ({varied})" if varied else self.contestant.label

    @property
    def title(self) -> str:
        """What tells it from all other runs."""
        return f"{self.settings.env_id}: {self.label}" if self.names_environment else self.label


def as_text(value: Any) -> str:
    """Return a value as ``--vary`` takes it, without secrets: a text as it is, anything else as JSON."""
    shown = redact_data(value)
    return shown if isinstance(shown, str) else json_text(shown)


# Variations


def parse_variations(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Return the values of each argument that is varied.

    Args:
        texts: ``NAME=A,B``: the name of an argument, and values with commas between them. They are read as JSON; what is not JSON is text.

    Raises:
        ConfigurationError: If one cannot be read, or says the same twice.

    >>> parse_variations(["history=1,null", "observe=text,image", "sizes=[1,2],[3,4]"])
    {'history': [1, None], 'observe': ['text', 'image'], 'sizes': [[1, 2], [3, 4]]}
    """
    variations: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, rest = (part.strip() for part in text.partition("="))
        if not (name and equals and rest):
            raise ConfigurationError(f"--vary must be the name of an argument and its values, such as history=1,4; got {text!r}")
        if name in variations:
            raise ConfigurationError(f"--vary {name} is given twice: give all its values at once, with commas between them")
        values = _values(name, rest)
        twice = next((as_text(value) for place, value in enumerate(values) if _is_among(value, values[:place])), None)
        if twice is not None:
            raise ConfigurationError(f"--vary {name} has {twice} twice: give it once")
        variations[name] = values
    return variations


def _values(name: str, text: str) -> list[Any]:
    try:
        values: list[Any] = parse_json(f"[{text}]")
    except ValueError:
        return [_value(name, part.strip()) for part in text.split(",")]
    return values


_OF_PYTHON = {"True": "true", "False": "false", "None": "null"}


def _value(name: str, text: str) -> Any:
    if text in _OF_PYTHON:
        raise ConfigurationError(f"--vary {name}: values are written as in JSON: {_OF_PYTHON[text]}, not {text}")
    try:
        return parse_json(text)
    except ValueError:
        if not text or text[0] in "[{\"'":
            raise ConfigurationError(
                f"--vary {name}: cannot read the value {text!r}; give plain words or JSON, with commas between them"
            ) from None
        return text


def _is_among(value: Any, others: Sequence[Any]) -> bool:
    return any(json_text(value) == json_text(other) for other in others)


def _vary(settings: EvalSettings, variations: Mapping[str, Sequence[Any]]) -> Iterator[EvalSettings]:
    """Give the settings with each combination of values."""
    fixed = next((name for name in variations if name in settings.env_args), None)
    if fixed is not None:
        raise ConfigurationError(f"{settings.env_id}: {fixed!r} is both fixed and varied: leave one of them out")
    for chosen in combinations(variations):
        yield replace(settings, env_args={**settings.env_args, **chosen})


# Plans


def plan_runs(evaluations: Sequence[EvalFields], variations: Mapping[str, Sequence[Any]], patterns: Sequence[str] = ()) -> list[PlannedRun]:
    """Return the runs of evaluations: each agent and each model plays each variation.

    Args:
        evaluations: What is evaluated.
        variations: Values of arguments; every combination is a variation.
        patterns: Parts of titles, or patterns of them (``*``, ``?``): the runs that fit one of them are chosen. All are, without any.

    Raises:
        ConfigurationError: If there is no such environment or agent, nobody plays, or two runs are the same.
    """
    runs = [
        (settings, contestant)
        for fields in evaluations
        for settings in _vary(_checked(fields.settings()), variations)
        for contestant in _contestants(fields)
    ]
    chosen = [run for run in _name_runs(runs) if not patterns or any(_fits(run.title, pattern) for pattern in patterns)]
    if not chosen:
        titles = "; ".join(run.title for run in _name_runs(runs))
        raise ConfigurationError(f"--select {' or '.join(map(repr, patterns))} fits none of the {len(runs)} runs: {titles}")
    twice = next((title for title, count in Counter(run.title for run in chosen).items() if count > 1), None)
    if twice is not None:
        raise ConfigurationError(f"the run {twice} is asked for twice: ask for it once")
    return chosen


def _checked(settings: EvalSettings) -> EvalSettings:
    check_id(settings.env_id)
    return settings


def _contestants(fields: EvalFields) -> list[Contestant]:
    """Return who plays, each with an agent that has no part in any other run."""
    models = fields.asked_models()
    config = models.config()
    for option, given in (("--agent", fields.agents), ("--model", models.names)):
        for name, count in Counter(given).items():
            if count > 1:
                raise ConfigurationError(f"{option} {name} is given {count} times: give it once")
    contestants = []
    for name in fields.agents:
        is_isolated = (fields.isolate or fields.sandboxed) and name not in AGENTS  # the library's own need nothing to be kept from
        agent = IsolatedAgent(name, sandbox=fields.sandboxed) if is_isolated else load_agent(name)
        contestants.append(Contestant(name, agent, f"{name} (agent)" if name in models.names else name, None))
    if config is not None:
        for name in models.names:
            agent = ModelAgent(config, name, models.sampling_args)
            contestants.append(Contestant(name, agent, f"{name} (model)" if name in fields.agents else name, config))
    if not contestants:
        raise ConfigurationError("say who plays: --agent random, --agent module:callable, --model MODEL --provider PROVIDER, ...")
    return contestants


def _name_runs(runs: Sequence[tuple[EvalSettings, Contestant]]) -> list[PlannedRun]:
    """Return runs with what each has otherwise than the others of its environment."""
    environments = {settings.env_id for settings, _ in runs}
    by_environment = {env_id: [_facts(*run) for run in runs if run[0].env_id == env_id] for env_id in environments}
    return [
        PlannedRun(settings, contestant, _differing(_facts(settings, contestant), by_environment[settings.env_id]), len(environments) > 1)
        for settings, contestant in runs
    ]


def _facts(settings: EvalSettings, contestant: Contestant) -> dict[str, Any]:
    """Return what may tell a run from others: arguments of the environment, and options of the command."""
    sampling = contestant.agent.sampling_args if isinstance(contestant.agent, ModelAgent) else None
    return {
        **settings.env_args,
        "--num-examples": settings.num_examples,
        "--rollouts-per-example": settings.rollouts_per_example,
        "--seed": settings.seed,
        "--split": settings.split,
        "--example-ids": settings.example_ids,
        "--both-seats": settings.both_seats,
        **({} if sampling is None else {"--sampling-args": sampling}),
    }


def _differing(facts: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: value for name, value in facts.items() if any(name in other and not _is_among(value, [other[name]]) for other in others)
    } | {name: value for name, value in facts.items() if not name.startswith("--") and any(name not in other for other in others)}


def _fits(title: str, pattern: str) -> bool:
    wanted = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
    return fnmatch.fnmatchcase(title.lower(), wanted.lower())


def plan_inputs(runs: Iterable[PlannedRun]) -> list[TaskInputs]:
    """Return what each of the runs plays. Their environments are made for that, and closed: one that cannot be made is found out now.

    Raises:
        ConfigurationError: If an environment cannot be made, or does not have such tasks.
    """
    planned: dict[str, TaskInputs] = {}
    inputs = []
    for run in runs:
        settings = run.settings
        key = repr(settings)
        if key not in planned:
            try:
                planned[key] = plan_tasks(
                    settings.env_id,
                    env_args=settings.env_args,
                    num_examples=settings.num_examples,
                    rollouts_per_example=settings.rollouts_per_example,
                    max_concurrent=settings.max_concurrent,
                    max_retries=settings.max_retries,
                    seed=settings.seed,
                    split=settings.split,
                    example_ids=settings.example_ids or None,
                    both_seats=settings.both_seats,
                )
            except ConfigurationError as error:
                raise ConfigurationError(f"{run.title}: {error}") from error
        inputs.append(planned[key])
    return inputs


def close_agents(runs: Iterable[PlannedRun]) -> None:
    """Close the connections and processes of those who play."""
    for run in runs:
        agent = run.contestant.agent
        if isinstance(agent, ModelAgent):
            run_to_end(agent.close())
        elif isinstance(agent, IsolatedAgent):
            agent.close()
