"""The options of commands that several commands take, or that need more than a line: what each means, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vfgym.cli.fields import setting

EnvId = Annotated[str, typer.Argument(metavar="ID", help="A registered id, such as reasoning-gym/leg_counting-v0.")]
EnvArgs = Annotated[str, typer.Option("--env-args", metavar="JSON", help="Arguments of the environment, as JSON: '{\"max_turns\": 5}'.")]
OutputDir = Annotated[Path, typer.Option("--output-dir", "-o", metavar="DIR", help="Results go to a new directory below DIR/evals.")]
SavedGameDir = Annotated[
    Path, typer.Option("--output-dir", "-o", metavar="DIR", help="The game is saved in a new directory below DIR/evals.")
]
RubricName = Annotated[
    str, typer.Option("--rubric", metavar="MODULE:NAME", help="A rubric, a function that makes one, or a reward function.")
]
RubricArgs = Annotated[
    str, typer.Option("--rubric-args", metavar="JSON", help="Arguments for the class or function that makes the rubric, as JSON.")
]

# Of `vfgym eval`

Agents = Annotated[
    list[str] | None,
    typer.Option("--agent", "-a", metavar="AGENT", help="random, oracle, human or module:callable; may be given several times."),
]
ModelNames = Annotated[list[str] | None, typer.Option("--model", "-m", metavar="MODEL", help="A model to ask; may be given several times.")]
Provider = Annotated[str | None, typer.Option("--provider", "-p", help="Where the models are: openai, anthropic, openrouter, vllm, ...")]
ApiKeyVar = Annotated[str | None, typer.Option("--api-key-var", "-k", metavar="NAME", help="Environment variable that holds the API key.")]
ClientType = Annotated[
    str | None, typer.Option("--client-type", metavar="TYPE", help="The API that the models speak: openai_responses, ...")
]
SamplingArgs = Annotated[
    str, typer.Option("--sampling-args", "-S", metavar="JSON", help="Generation parameters, as JSON: '{\"temperature\": 0.7}'.")
]
NumExamples = Annotated[int | None, setting("--num-examples", "-n", also="20 by default.", show_default=False)]
ExampleIds = Annotated[str, setting("--example-ids", metavar="IDS", also="Written 3,5,8.")]
IndependentScoring = Annotated[
    bool | None,
    typer.Option(
        "--independent-scoring/--group-scoring",
        help="Score each rollout alone, or those of a task together; as the reward functions need by default.",
        show_default=False,
    ),
]
PassThreshold = Annotated[float | None, setting("--pass-threshold", show_default=False)]
Shard = Annotated[
    str | None,
    typer.Option("--shard", metavar="I/N", help="Play one of N parts, I from 0; auto: as Slurm or Kubernetes say. See vfgym merge."),
]
Workers = Annotated[int | None, setting("--workers", also="One for each core by default.", show_default=False)]
StateColumns = Annotated[
    list[str] | None,
    typer.Option("--state-column", "-C", metavar="NAME", help="An item of the state to save in each row; repeatable."),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="WORD", help="A word for the metadata of the runs, by which they can be found again; repeatable."),
]
Reducers = Annotated[
    list[str] | None,
    typer.Option(
        "--reduce",
        metavar="HOW",
        help="Also make one number of the rollouts of each task (mean, median, max or at_least_K), and show its mean; repeatable.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in PATH, or with the newest such run that is not finished.")]
Evaluated = Annotated[
    str,
    typer.Argument(
        metavar="ID|FILE|RUN", help="A registered id, a file of evaluations (.toml), or the directory of a run, to be played again."
    ),
]
Vary = Annotated[
    list[str] | None,
    typer.Option("--vary", metavar="NAME=A,B", help="Values of an argument of the environment, each played; repeatable: all combinations."),
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="PATTERN", help="Play runs whose title (see --dry-run) has this part, or fits '*a*b*'; repeatable."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be played; ask and write nothing.")]
Isolate = Annotated[
    bool,
    typer.Option(
        "--isolate",
        help="Run agents (module:callable) in processes, killed at the environment's timeout_seconds; vfgym's own agents play in this one.",
    ),
]
Sandboxed = Annotated[
    bool, typer.Option("--sandboxed", help="Run these processes in sandboxes: without environment variables, network and your files.")
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="LIMITS",
        help="What each run may spend, any of tokens=100000,cost=2.5,time=600,errors=10,requests=500; repeatable.",
    ),
]
LimitEachOption = Annotated[
    list[str] | None,
    typer.Option("--limit-each", metavar="LIMITS", help="What each rollout may spend, any of tokens=2000,turns=8,time=60; repeatable."),
]
PricesOption = Annotated[
    Path | None,
    typer.Option("--prices", metavar="FILE", help="What models cost (TOML): [MODEL] with input and output, money for a million tokens."),
]
CacheOption = Annotated[
    bool,
    typer.Option("--cache", help="Keep answers of models, and ask for none twice (in $VFGYM_CACHE, or the user's cache directory)."),
]
ResumedPath = Annotated[
    Path | None, typer.Argument(metavar="PATH", help="With --resume: the directory of the run's results.", show_default=False)
]
