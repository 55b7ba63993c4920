"""The documented types of the rollout API: those of `vfgym` under their documented names, and what only this API has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NotRequired, TypeAlias, TypedDict, cast

from pydantic import BaseModel, ConfigDict, model_validator

import vfgym.messages.responses as responses
import vfgym.state as state
import vfgym.tools as tools
from verifiers_compat.loading import create_getattr
from verifiers_compat.messages import (
    AssistantMessage,
    ImageUrlContentPart,
    ImageUrlSource,
    InputAudioContentPart,
    InputAudioSource,
    ResponseMessage,
    SystemMessage,
    TextContentPart,
    TextMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from verifiers_compat.stand_ins import StandsFor
from vfgym.clients import ClientConfig, ClientType, EndpointClientConfig, SamplingArgs
from vfgym.messages import FinishReason
from vfgym.messages.frozen import FrozenDict, freeze
from vfgym.messages.responses import ItemAccess
from vfgym.results import ErrorInfo, GenerateMetadata, ProcessedOutputs, RolloutOutput, VersionInfo
from vfgym.rubrics import GroupRewardFunc, IndividualRewardFunc, RewardFunc
from vfgym.runs.spec import ExampleIds, Shard
from vfgym.state import RolloutInput, TokenUsage, TrajectoryStep, TrajectoryStepTokens
from vfgym.tasks import DatasetBuilder

__getattr__ = create_getattr(__name__)

ModelResponse: TypeAlias = Any
"""An answer of the OpenAI SDK, as the older API had it in a trajectory; here it is a `Response`."""

Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage | TextMessage
ChatMessage: TypeAlias = Message
ChatMessages: TypeAlias = list[Message]
Messages: TypeAlias = str | list[Message]
"""A conversation: a list of messages, or text."""
ContentPart: TypeAlias = TextContentPart | ImageUrlContentPart | InputAudioContentPart | dict[str, Any]
MessageContent: TypeAlias = str | list[ContentPart]
MessageType: TypeAlias = Literal["chat", "completion"]
Info: TypeAlias = dict[str, Any]

StartCallback: TypeAlias = Callable[[list[RolloutInput], list[RolloutInput] | list[list[RolloutInput]]], None]
"""Called once with all inputs, and with those that are still to be played: groups of them, where groups are scored."""
ProgressCallback: TypeAlias = Callable[[list[RolloutOutput], list[RolloutOutput], Mapping[str, Any]], None]
"""Called with all outputs so far, the new ones, and the run's metadata so far."""
LogCallback: TypeAlias = Callable[[str], None]


class State(state.State):
    """Everything about one rollout, by documented names (see `vfgym.State`).

    ``state["oai_tools"]``, the older name of the tools, reads them as the OpenAI chat API takes them.
    """

    __slots__ = ()

    def __missing__(self, key: str) -> Any:
        if key == "oai_tools" and "tool_defs" in self:
            return [tool.to_openai() for tool in self["tool_defs"] or ()]
        return super().__missing__(key)


class _Open:
    """Makes a record of `vfgym.messages.responses` one that keeps further fields."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init__(self, *args: Any, **fields: Any) -> None:
        known = {name: fields.pop(name) for name in self.__dataclass_fields__ if name in fields}
        super().__init__(*args, **known)
        if fields:  # an empty `__dict__` takes 64 bytes as well
            self.__dict__.update(fields)


class Usage(_Open, responses.Usage, metaclass=StandsFor):
    """Tokens of one model call, as the provider counted them, and what else it says of them."""

    stands_for: ClassVar[type] = responses.Usage


class ResponseTokens(_Open, responses.ResponseTokens, metaclass=StandsFor):
    """Token ids, masks and log-probabilities of one model call, and what else the provider says of them."""

    stands_for: ClassVar[type] = responses.ResponseTokens


class Response(_Open, responses.Response, metaclass=StandsFor):
    """One answer of a model, whoever the provider is, and what else it says."""

    stands_for: ClassVar[type] = responses.Response
    usage_type = Usage
    message_type = ResponseMessage


class Tool(ItemAccess, tools.Tool):
    """What a model knows of a tool. It can be written to, and keeps further fields."""

    model_config = ConfigDict(frozen=False, extra="allow")

    def _names(self) -> tuple[str, ...]:
        return (*type(self).model_fields, *(self.model_extra or ()))

    @property
    def openai(self) -> FrozenDict:
        """The tool as the OpenAI chat API takes it."""
        return cast(FrozenDict, freeze(self.to_openai()))

    def __eq__(self, other: object) -> bool:
        return self.model_dump() == other if isinstance(other, Mapping) else super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]


class TimeSpan(ItemAccess, state.TimeSpan):
    """A span of wall-clock time, in seconds since the epoch."""

    __slots__ = ()

    def _names(self) -> tuple[str, ...]:
        return "start", "end", "duration"


class _SpanOf(TimeSpan):
    """One of the spans of a `TimeSpans`, which are kept as numbers: what is written to it is written there."""

    __slots__ = ("_at", "_spans")

    def __init__(self, spans: TimeSpans, at: int) -> None:
        """Be the span whose start is ``spans.times[at]``, followed by its end."""
        self._spans = spans
        self._at = at

    @property
    def start(self) -> float:
        """When it began."""
        return self._spans.times[self._at]

    @start.setter
    def start(self, start: float) -> None:
        self._spans.times[self._at] = start

    @property
    def end(self) -> float:
        """When it ended; 0 while it has not."""
        return self._spans.times[self._at + 1]

    @end.setter
    def end(self, end: float) -> None:
        self._spans.times[self._at + 1] = end


class TimeSpans(ItemAccess, state.TimeSpans):
    """Spans of one kind of work, in order."""

    __slots__ = ()

    def _names(self) -> tuple[str, ...]:
        return "spans", "duration"

    @property
    def spans(self) -> tuple[TimeSpan, ...]:
        """The spans, in order, which can be written to; `add` adds one."""
        return tuple(_SpanOf(self, at) for at in range(0, len(self.times), 2))


_MILLISECONDS = {"generation_ms": "generation", "scoring_ms": "scoring"}


class RolloutTiming(ItemAccess, state.RolloutTiming):
    """Where the time of one rollout went, in seconds.

    The older items ``generation_ms``, ``scoring_ms`` and ``total_ms`` (milliseconds) can be read too.
    """

    __slots__ = ()

    def __init__(self, start_time: float | None = None) -> None:
        """Start the clock, now or at `start_time` (seconds since the epoch)."""
        super().__init__(start_time)
        self.setup, self.generation, self.scoring = TimeSpan(), TimeSpan(), TimeSpan()
        self.model, self.env = TimeSpans(), TimeSpans()

    def _names(self) -> tuple[str, ...]:
        return "start_time", "setup", "generation", "scoring", "model", "env", "total", "overhead"

    def __getitem__(self, key: str) -> Any:
        if key == "total_ms":
            return self.total * 1000
        if key in _MILLISECONDS:
            return getattr(self, _MILLISECONDS[key]).duration * 1000
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        return key == "total_ms" or key in _MILLISECONDS or super().__contains__(key)


_COLUMNS = ("prompt", "completion", "answer", "task", "info", "example_id", "reward", "is_truncated")


class GenerateOutputs(dict[str, Any]):
    """What a run gives: ``outputs``, its rows by example and rollout, and ``metadata``.

    The columns of the older API can be read too: ``prompt``, ``completion``, ``answer``, ``task``, ``info``, ``example_id``,
    ``reward``, ``is_truncated`` and ``stop_conditions`` are lists in the order of ``outputs``, ``metrics`` a dict of lists.
    """

    outputs: list[RolloutOutput]
    metadata: GenerateMetadata

    def __missing__(self, key: str) -> Any:
        outputs = dict.__getitem__(self, "outputs")
        if key in _COLUMNS:
            absent = {"answer": "", "task": "default", "info": {}}.get(key)
            return [output.get(key, absent) for output in outputs]
        if key == "stop_conditions":
            return [output.get("stop_condition") for output in outputs]
        if key == "metrics":
            names = dict.fromkeys(name for output in outputs for name in output["metrics"])
            return {name: [output["metrics"].get(name, 0.0) for output in outputs] for name in names}
        if key == "state":
            raise KeyError("state: states are let go once their rows are made; ask for what you need of them with state_columns=[...]")
        raise KeyError(key)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error)) from None

    def __repr__(self) -> str:
        # Short, and not only for a reader: asyncio.run of Python 3.11 makes the repr of what it returns.
        outputs, metadata = self.get("outputs", ()), self.get("metadata", {})
        summary = ", ".join(f"{name}={metadata[name]!r}" for name in ("env_id", "model", "avg_reward") if name in metadata)
        return f"<GenerateOutputs: {len(outputs)} outputs, {summary}>"


class RolloutScore(TypedDict):
    """What a rubric found of one rollout."""

    reward: float
    metrics: dict[str, float]


class RolloutScores(TypedDict):
    """What a rubric found of several rollouts."""

    reward: list[float]
    metrics: dict[str, list[float]]


class Endpoint(TypedDict):
    """One variant of an endpoint: the environment variable of its key, its URL and the model there."""

    key: str
    url: str
    model: str
    api_client_type: NotRequired[ClientType]
    extra_headers: NotRequired[dict[str, str]]


Endpoints: TypeAlias = dict[str, list[Endpoint]]
"""Endpoints by id; several variants of one take turns."""


class EvalConfig(BaseModel):
    """One evaluation as the command line runs it."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    env_id: str
    env_args: dict[str, Any] = {}
    env_dir_path: str = "./environments"
    output_dir: str | None = None
    endpoint_id: str | None = None
    model: str
    client_config: ClientConfig
    sampling_args: SamplingArgs = {}
    num_examples: int
    rollouts_per_example: int
    max_concurrent: int
    max_concurrent_scoring: int = -1
    independent_scoring: bool = False
    extra_env_kwargs: dict[str, Any] = {}
    max_retries: int = 0
    verbose: bool = False
    state_columns: list[str] | None = None
    save_results: bool = False
    resume_path: Path | None = None
    redo_errors: bool = False
    limits: dict[str, Any] = {}
    """What the run may spend (see `vfgym.evaluate`)."""
    limits_each: dict[str, Any] = {}
    """What each rollout may spend."""
    prices: str | None = None
    """The file that says what models cost."""
    cache: bool = False
    """Whether answers of models are kept and not asked for twice."""
    # See `vfgym.RunSettings`
    seed: int | None = None
    split: Literal["train", "eval"] = "eval"
    example_ids: ExampleIds = None
    pass_threshold: float | None = None
    shard: Shard = None
    tags: list[str] = []
    executor: Literal["local", "process", "ray"] = "local"
    workers: int | None = None
    strict: bool = False
    save_to_hf_hub: bool = False
    hf_hub_dataset_name: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _take_older_fields(cls, fields: Any) -> Any:
        """Understand the fields of older versions.

        ``print_results`` and ``save_every`` have nothing to say any more: results are printed, and rows are written as they finish.
        """
        if not isinstance(fields, Mapping):
            return fields
        taken = {key: value for key, value in fields.items() if key not in ("print_results", "save_every")}
        generation = taken.pop("max_concurrent_generation", None)
        if generation is not None and taken.get("max_concurrent", -1) <= 0:
            taken["max_concurrent"] = generation
        if taken.get("max_concurrent_scoring", -1) is None:
            del taken["max_concurrent_scoring"]
        return taken


class EvalRunConfig(BaseModel):
    """Several evaluations that run together."""

    model_config = ConfigDict(extra="forbid")

    evals: Sequence[EvalConfig]


__all__ = [
    "AssistantMessage",
    "ChatMessage",
    "ChatMessages",
    "ClientConfig",
    "ClientType",
    "ContentPart",
    "DatasetBuilder",
    "Endpoint",
    "EndpointClientConfig",
    "Endpoints",
    "ErrorInfo",
    "EvalConfig",
    "EvalRunConfig",
    "FinishReason",
    "GenerateMetadata",
    "GenerateOutputs",
    "GroupRewardFunc",
    "ImageUrlContentPart",
    "ImageUrlSource",
    "IndividualRewardFunc",
    "Info",
    "InputAudioContentPart",
    "InputAudioSource",
    "LogCallback",
    "Message",
    "MessageContent",
    "MessageType",
    "Messages",
    "ModelResponse",
    "ProcessedOutputs",
    "ProgressCallback",
    "Response",
    "ResponseMessage",
    "ResponseTokens",
    "RewardFunc",
    "RolloutInput",
    "RolloutOutput",
    "RolloutScore",
    "RolloutScores",
    "RolloutTiming",
    "SamplingArgs",
    "StartCallback",
    "State",
    "SystemMessage",
    "TextContentPart",
    "TextMessage",
    "TimeSpan",
    "TimeSpans",
    "TokenUsage",
    "Tool",
    "ToolCall",
    "ToolMessage",
    "TrajectoryStep",
    "TrajectoryStepTokens",
    "Usage",
    "UserMessage",
    "VersionInfo",
]
