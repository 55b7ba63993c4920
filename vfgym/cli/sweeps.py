"""Many runs by one command: who plays what, in which variations, and which of them are chosen."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from vfgym.agents.base import Agent
from vfgym.aio.background import run_to_end
from vfgym.bounded_json import parse_json
from vfgym.cli.environments import check_id
from vfgym.cli.eval_files import combinations
from vfgym.cli.evaluations import EvalFields
from vfgym.clients import EndpointClientConfig
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import redact_data
from vfgym.results.plain_json import json_text
from vfgym.runs.planning import Plan, plan_tasks
from vfgym.runs.spec import RunSpec, close_agent


class Contestant(NamedTuple):
    """Who plays."""

    name: str
    """The name of an agent or of a model, as it stands in results."""
    agent: Agent
    label: str
    """What stands in the table: the name, and which of the two it is where both have it."""
    config: EndpointClientConfig | None
    """Where a model is; None for an agent."""


@dataclass(frozen=True)
class PlannedRun:
    """One run: who plays, and what."""

    spec: RunSpec
    contestant: Contestant
    varied: dict[str, Any]
    """What it has otherwise than other runs of its environment: arguments by their names, options of the command by theirs (``--seed``)."""
    names_environment: bool
    """Whether there are runs of other environments."""

    @property
    def played(self) -> str:
        """What is played, and how: the same for runs that differ in nothing but who plays."""
        return repr((self.spec.env_id, self.spec.env_args, self.spec.arguments()))

    @property
    def label(self) -> str:
        """What tells it from the other runs of its environment."""
        varied = ", ".join(f"{name}={as_text(value)}" for name, value in self.varied.items())
        return f"{self.contestant.label} ({varied})" if varied else self.contestant.label

    @property
    def title(self) -> str:
        """What tells it from all other runs."""
        return f"{self.spec.env_id}: {self.label}" if self.names_environment else self.label


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


def _vary(specs: Sequence[RunSpec], variations: Mapping[str, Sequence[Any]]) -> Iterator[RunSpec]:
    """Give the specs with each combination of values."""
    for spec in specs:
        fixed = next((name for name in variations if name in spec.env_args), None)
        if fixed is not None:
            raise ConfigurationError(f"{spec.env_id}: {fixed!r} is both fixed and varied: leave one of them out")
    for chosen in combinations(variations):
        for spec in specs:
            yield spec.model_copy(update={"env_args": {**spec.env_args, **chosen}})


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
    runs = [(spec, _contestant(spec, fields)) for fields in evaluations for spec in _vary(_specs(fields), variations)]
    chosen = [run for run in _name_runs(runs) if not patterns or any(_fits(run.title, pattern) for pattern in patterns)]
    if not chosen:
        titles = "; ".join(run.title for run in _name_runs(runs))
        raise ConfigurationError(f"--select {' or '.join(map(repr, patterns))} fits none of the {len(runs)} runs: {titles}")
    twice = next((title for title, count in Counter(run.title for run in chosen).items() if count > 1), None)
    if twice is not None:
        raise ConfigurationError(f"the run {twice} is asked for twice: ask for it once")
    return chosen


def _specs(fields: EvalFields) -> list[RunSpec]:
    """Return the runs of one evaluation: of each agent, and of each model."""
    check_id(fields.env_id)
    for option, given in (("--agent", fields.agents), ("--model", fields.models)):
        for name, count in Counter(given).items():
            if count > 1:
                raise ConfigurationError(f"{option} {name} is given {count} times: give it once")
    specs = fields.specs()
    if not specs:
        raise ConfigurationError("say who plays: --agent random, --agent module:callable, --model MODEL --provider PROVIDER, ...")
    return specs


def _contestant(spec: RunSpec, fields: EvalFields) -> Contestant:
    """Return who plays, with an agent that has no part in any other run."""
    kind, others = ("agent", fields.models) if spec.client is None else ("model", fields.agents)
    label = f"{spec.name} ({kind})" if spec.name in others else spec.name
    return Contestant(spec.name, spec.make_agent(), label, spec.client)


def _name_runs(runs: Sequence[tuple[RunSpec, Contestant]]) -> list[PlannedRun]:
    """Return runs with what each has otherwise than the others of its environment."""
    environments = {spec.env_id for spec, _ in runs}
    by_environment = {env_id: [_facts(spec) for spec, _ in runs if spec.env_id == env_id] for env_id in environments}
    return [
        PlannedRun(spec, contestant, _differing(_facts(spec), by_environment[spec.env_id]), len(environments) > 1)
        for spec, contestant in runs
    ]


def _facts(spec: RunSpec) -> dict[str, Any]:
    """Return what may tell a run from others: arguments of the environment, and options of the command."""
    return {
        **spec.env_args,
        "--num-examples": spec.num_examples,
        "--rollouts-per-example": spec.rollouts_per_example,
        "--seed": spec.seed,
        "--split": spec.split,
        "--example-ids": spec.example_ids or [],
        "--both-seats": spec.both_seats,
        "--shard": spec.shard and list(spec.shard),
        **({} if spec.client is None else {"--sampling-args": spec.sampling_args}),
    }


def _differing(facts: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: value for name, value in facts.items() if any(name in other and not _is_among(value, [other[name]]) for other in others)
    } | {name: value for name, value in facts.items() if not name.startswith("--") and any(name not in other for other in others)}


def _fits(title: str, pattern: str) -> bool:
    wanted = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
    return fnmatch.fnmatchcase(title.lower(), wanted.lower())


def plan_inputs(runs: Iterable[PlannedRun]) -> list[Plan]:
    """Return what each of the runs plays. Their environments are made for that, and closed: one that cannot be made is found out now.

    Raises:
        ConfigurationError: If an environment cannot be made, or does not have such tasks.
    """
    planned: dict[str, Plan] = {}
    inputs = []
    for run in runs:
        key = run.played
        if key not in planned:
            try:
                planned[key] = plan_tasks(run.spec.env_id, run.spec, run.spec.env_args)
            except ConfigurationError as error:
                raise ConfigurationError(f"{run.title}: {error}") from error
        inputs.append(planned[key])
    return inputs


def close_agents(runs: Iterable[PlannedRun]) -> None:
    """Close the connections and processes of those who play."""
    for run in runs:
        run_to_end(close_agent(run.contestant.agent))
