"""What a command line or a config file says, before defaults are filled in: `EvalFields` of an evaluation, `PlayFields` of any play.

Each field is declared once. The options of a command and the keys of its config files are both made of these declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from typer import Option

from vfgym.cli.fields import TableFields, parse_limits, parse_names, setting
from vfgym.clients import ClientType
from vfgym.clients.config import PROVIDERS
from vfgym.limits import RolloutLimits, SpendingLimits
from vfgym.runs.spec import Shard


def _parse_headers(value: Any) -> Any:
    """Return headers as a dict; they may be a list of texts ``"Name: value"``, as on the command line."""
    if value is None or isinstance(value, Mapping):
        return value
    texts = [value] if isinstance(value, str) else list(value)
    headers: dict[str, str] = {}
    for text in texts:
        name, colon, content = (part.strip() for part in str(text).partition(":"))
        if not (colon and name and content):
            raise ValueError("a header is written 'Name: value'")
        headers[name] = content
    return headers


def _parse_run_limits(value: Any) -> dict[str, Any]:
    return parse_limits(SpendingLimits)(value).given()


def _parse_each_limits(value: Any) -> dict[str, Any]:
    return parse_limits(RolloutLimits)(value).given()


def _parse_ids(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return [int(each) for each in value.split(",")]
    except ValueError:
        raise ValueError("ids are integers with commas between them") from None


def _parse_num_workers(value: Any) -> int | None:
    if value in (None, "auto"):
        return None
    count = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError("must be a positive number, or auto")
    return count


def _refuse_zero(value: int | None) -> int | None:
    if value == 0:
        raise ValueError("must be positive, or -1 for all")
    return value


# What a field holds; None where it was not given.
Text = str | None
Flag = bool | None
Count = Annotated[int, Field(ge=1)] | None
Limit = Annotated[int, Field(ge=-1)] | None
Names = Annotated[list[str], BeforeValidator(parse_names)] | None
NumWorkers = Annotated[int | None, BeforeValidator(_parse_num_workers)] | None
Table = dict[str, Any] | None
Headers = Annotated[dict[str, str], BeforeValidator(_parse_headers)] | None
RunLimits = Annotated[dict[str, int | float], BeforeValidator(_parse_run_limits)] | None
EachLimits = Annotated[dict[str, int | float], BeforeValidator(_parse_each_limits)] | None

WITHOUT_EFFECT: Mapping[str, str] = {
    "no_interleave_scoring": "a group is scored when its rollouts are finished, while others play",
}
"""Fields that are accepted since command lines and files written for verifiers have them; and why they change nothing here."""


def _option_without_effect(name: str, *flags: str) -> Any:
    """Return the option of a field of `WITHOUT_EFFECT`."""
    return Option(*flags, help=f"Accepted for command lines of verifiers, without effect: {WITHOUT_EFFECT[name]}.")


class PlayFields(TableFields):
    """What is said about an environment, the model that plays it, and how. A field that was not given is None."""

    spellings = {
        "id": "env_id",
        "args": "env_args",
        "max_concurrent_generation": "max_concurrent",
        "header": "headers",
        "extra_headers": "headers",
        "header_from_state": "headers_from_state",
        "extra_headers_from_state": "headers_from_state",
    }
    hidden = frozenset({"headers"})
    alternatives = (("model", "endpoint_id"),)

    env_id: Text = None
    env_args: Annotated[Table, Option("--env-args", "-a", metavar="JSON", help="Arguments of load_environment.")] = None
    env_dir_path: Annotated[Text, Option("--env-dir-path", metavar="DIR", help="Where environments are developed. [./environments]")] = None
    provider: Annotated[
        Text, Option("--provider", "-p", help=f"One of {', '.join(PROVIDERS)}; a directory is taken for --env-dir-path. [prime]")
    ] = None
    endpoints_path: Annotated[
        Text, Option("--endpoints-path", "-e", metavar="FILE", help="The endpoint registry. [./configs/endpoints.toml]")
    ] = None
    endpoint_id: Text = None
    """A name of the endpoint registry. Only config files have it; an option takes such a name as ``model``."""
    model: Annotated[Text, Option("--model", "-m", help="A model, or a name in the endpoint registry. [openai/gpt-4.1-mini]")] = None
    api_client_type: Annotated[
        ClientType | None,
        Option("--api-client-type", help="The API that is spoken. [openai_chat_completions]"),
    ] = None
    api_key_var: Annotated[Text, Option("--api-key-var", "-k", metavar="NAME", help="Environment variable of the API key.")] = None
    api_base_url: Annotated[Text, Option("--api-base-url", "-b", metavar="URL", help="Where the model is.")] = None
    headers: Annotated[Headers, Option("--header", metavar="'NAME: VALUE'", help="A header of every request; repeatable.")] = None
    headers_from_state: Annotated[
        Headers,
        Option(
            "--header-from-state",
            metavar="'NAME: KEY'",
            help="A header whose value is an item of the rollout's state; repeatable. [X-Session-ID: example_id]",
        ),
    ] = None
    max_concurrent: Annotated[Limit, setting("--max-concurrent", "-c", "--max-concurrent-generation", also="[32]")] = None
    max_tokens: Annotated[Count, Option("--max-tokens", "-t", help="Most tokens of an answer.")] = None
    temperature: Annotated[float | None, Option("--temperature", "-T", help="Sampling temperature.")] = None
    sampling_args: Annotated[
        Table, Option("--sampling-args", "-S", metavar="JSON", help="Further sampling arguments; they win over -t and -T.")
    ] = None
    timeout: Annotated[
        Annotated[float, Field(gt=0)] | None, Option("--timeout", metavar="SECONDS", help="Time that a rollout may take.")
    ] = None
    extra_env_kwargs: Annotated[Table, Option("--extra-env-kwargs", "-x", metavar="JSON", help="Attributes to set on the environment.")] = (
        None
    )
    verbose: Annotated[Flag, Option("--verbose", "-v", help="Log more.")] = None


class EvalFields(PlayFields):
    """What is said about an evaluation. A field that was not given is None."""

    spellings = {**PlayFields.spellings, "resume_path": "resume", "tag": "tags", "limit": "limits", "limit_each": "limits_each"}

    num_examples: Annotated[
        Annotated[Limit, AfterValidator(_refuse_zero)], setting("--num-examples", "-n", also="[the environment's, else 5]")
    ] = None
    rollouts_per_example: Annotated[Count, setting("--rollouts-per-example", "-r", also="[the environment's, else 3]")] = None
    max_concurrent_scoring: Annotated[
        Limit, Option("--max-concurrent-scoring", help="Most groups scored at once; -1 for no limit. [-1]")
    ] = None
    output_dir: Annotated[Text, Option("--output-dir", "-o", metavar="DIR", help="Results go below DIR/evals.")] = None
    save_results: Annotated[Flag, Option("--save-results", "-s", help="Save the results.")] = None
    state_columns: Annotated[Names, setting("--state-columns", "-C", metavar="NAMES", also="Separated by commas.")] = None
    seed: Annotated[Annotated[int, Field(ge=0)] | None, setting("--seed", also="[fresh random numbers]")] = None
    split: Annotated[Annotated[Literal["train", "eval"], Field()] | None, setting("--split", metavar="train|eval", also="[eval]")] = None
    example_ids: Annotated[
        Annotated[list[int], BeforeValidator(_parse_ids)] | None, setting("--example-ids", metavar="IDS", also="Written 3,5,8.")
    ] = None
    pass_threshold: Annotated[float | None, setting("--pass-threshold")] = None
    shard: Annotated[
        Annotated[Shard, Field()] | None, Option("--shard", metavar="I/N", help="Play one of N parts, I from 0 (see vfgym merge).")
    ] = None
    tags: Annotated[Names, setting("--tags", metavar="WORDS", also="Separated by commas.")] = None
    executor: Annotated[
        Annotated[Literal["local", "process", "ray"], Field()] | None, setting("--executor", metavar="local|process|ray", also="[local]")
    ] = None
    workers: Annotated[Count, setting("--workers", also="[one for each core]")] = None
    strict: Annotated[Flag, setting("--strict")] = None
    resume: Annotated[
        bool | str | None,
        Option("--resume", "-R", metavar="[DIR]", help="Go on with a run, and save; without DIR with the newest unfinished one that fits."),
    ] = None
    """True for the newest run that fits; or the directory of one."""
    redo_errors: Annotated[Flag, Option("--redo-errors", help="When resuming, play again what ended with an error.")] = None
    independent_scoring: Annotated[Flag, Option("--independent-scoring", "-i", help="Score each rollout alone.")] = None
    max_retries: Annotated[Annotated[int, Field(ge=0)] | None, setting("--max-retries", also="[0]")] = None
    limits: Annotated[
        RunLimits,
        Option("--limit", metavar="LIMITS", help="What it may spend, any of tokens=100000,cost=2.5,time=600,errors=10,requests=500."),
    ] = None
    limits_each: Annotated[
        EachLimits,
        Option("--limit-each", metavar="LIMITS", help="What each rollout may spend, any of tokens=2000,turns=8,time=60."),
    ] = None
    prices: Annotated[
        Text, Option("--prices", metavar="FILE", help="What models cost (TOML): [MODEL] with input and output, for a million tokens.")
    ] = None
    cache: Annotated[Flag, Option("--cache", help="Keep answers of models, and ask for none twice (vfgym cache shows where).")] = None
    save_to_hf_hub: Annotated[Flag, Option("--save-to-hf-hub", "-H", help="Push the results to the Hugging Face hub, and save.")] = None
    hf_hub_dataset_name: Annotated[Text, Option("--hf-hub-dataset-name", "-D", metavar="NAME", help="What they are called there.")] = None
    no_interleave_scoring: Annotated[Flag, _option_without_effect("no_interleave_scoring", "--no-interleave-scoring", "-N")] = None
    num_workers: Annotated[
        NumWorkers,
        Option("--num-workers", "-w", metavar="N", help="As --executor process --workers N; auto: as --executor local."),
    ] = None
    disable_env_server: Annotated[
        Flag, Option("--disable-env-server", help="Play in this process, whatever --num-workers says; as without both.")
    ] = None


class FileFields(EvalFields):
    """What a config file says about an evaluation. The sections of the environment's configuration become part of its arguments."""

    taskset: Table = None
    harness: Table = None

    of_environment: ClassVar[Mapping[str, str]] = {"id": "env_id", "args": "env_args", "taskset": "taskset", "harness": "harness"}
    """What a table ``[env]`` has, and the fields that it is another way to write."""
