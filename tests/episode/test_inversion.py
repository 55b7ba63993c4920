"""Environments whose author wrote `rollout()`: they are stepped like any other, and play the same episode either way."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.models import InOrder, Mute, answer
from vfgym import ChatEnv, ModelAgent, MultiTurnEnv, Response, Rubric, State, Tool, aevaluate, cleanup
from vfgym.aio.steps import run_async
from vfgym.episode.prompt import new_step
from vfgym.episode.scoring import score_alone, score_together
from vfgym.errors import EpisodeNotPicklable, InfraError, InvalidAction, ModelError, OverlongPromptError, ResetNeeded
from vfgym.messages import AssistantMessage, Message, TextMessage, UserMessage
from vfgym.runs.client_player import Rollouts

ROWS = [{"question": "first?", "answer": "1"}, {"question": "second?", "answer": "2"}]
PATIENCE = 2
"""Seconds after which a test gives up on something that never comes."""


class Custom(ChatEnv):
    """A base for environments with a loop of their own, which notes how often it cleaned up."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, **kwargs})
        self.cleaned: list[str] = []
        self.events: list[str] = []

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await self.init_state(input, client, model, sampling_args)
        state["completion"] = await self.converse(state)
        return state

    async def converse(self, state: State) -> list[Message]:
        raise NotImplementedError

    async def ask(self, state: State, *said: str) -> AssistantMessage:
        """Ask the model of the episode."""
        return (await self.get_model_response(state, [*state["prompt"], *map(UserMessage, said)])).message

    @cleanup
    def note_cleanup(self, state: State) -> None:
        self.cleaned.append(state["trajectory_id"])


class Once(Custom):
    async def converse(self, state: State) -> list[Message]:
        return [await self.ask(state)]


class Twice(Custom):
    """Two calls, the second of which shows what the first one said."""

    async def converse(self, state: State) -> list[Message]:
        first = await self.ask(state)
        second = await self.ask(state, f"really {first.content}?")
        return [first, second]


class Panel(Custom):
    async def converse(self, state: State) -> list[Message]:
        return list(await asyncio.gather(*(self.ask(state, f"member {index}") for index in range(3))))


class Direct(Custom):
    async def converse(self, state: State) -> list[Message]:
        response = await state["client"].get_response(prompt=state["prompt"], model=state["model"], sampling_args={}, tools=None)
        return [response.message]


class Silent(Custom):
    async def converse(self, state: State) -> list[Message]:
        return [AssistantMessage("done before it began")]


class Judged(Custom):
    """Asks a judge, which is a client of its own and never the agent."""

    async def converse(self, state: State) -> list[Message]:
        said = await self.ask(state)
        judge = InOrder("a fine answer")
        verdict = await self.get_model_response(state, [said], client=judge, model="judge")
        return [said, UserMessage(verdict.message.content)]


def text_of(conversation: Sequence[Message]) -> list[Any]:
    return [message["content"] for message in conversation]


def score(completion: list[Message], answer: str) -> float:
    return float(sum(message["content"] == answer for message in completion))


class WithTools(Custom):
    async def converse(self, state: State) -> list[Message]:
        tools = [Tool(name=name, description="", parameters={}) for name in ("look", "take")]
        first = await self.get_model_response(state, state["prompt"], tool_defs=tools)
        second = await self.get_model_response(state, state["prompt"])
        return [first.message, second.message]


# One episode, two faces

PLAYS: list[tuple[type[Custom], list[str], list[list[str]]]] = [
    (Once, ["1"], [["first?"]]),
    (Twice, ["0", "1"], [["first?"], ["first?", "really 0?"]]),
    (Panel, ["0", "1", "1"], [["first?", "member 0"], ["first?", "member 1"], ["first?", "member 2"]]),
    (Direct, ["1"], [["first?"]]),
    (Judged, ["1"], [["first?"]]),
]


@pytest.mark.parametrize(("kind", "answers", "prompts"), PLAYS)
async def test_each_model_call_becomes_an_observation_and_the_episode_is_that_of_a_rollout(
    kind: type[Custom], answers: list[str], prompts: list[list[str]]
) -> None:
    """In the order in which the calls were made; a judge's is a real call and none of the agent's business."""
    env = kind(rubric=Rubric(score))
    observation, info = await env.areset(options={"example_id": 0})
    for index, said in enumerate(answers):
        assert text_of(observation) == prompts[index]
        assert env.observation_space.contains(observation)
        observation, reward, terminated, truncated, info = await env.astep(answer(said, completion_tokens=2 + index))
        assert (terminated, truncated) == (index == len(answers) - 1, False)
        assert reward == (answers.count("1") if terminated else 0.0)
    assert text_of(observation)[0] == "first?"
    assert info["stop_condition"]
    if kind is not Direct:  # whose calls nobody sees
        assert env.state["usage"]["output_tokens"] == sum(2 + index for index in range(len(answers))), "tokens are counted once"
    assert env.cleaned == [env.state["trajectory_id"]]
    with pytest.raises(ResetNeeded):
        env.step("more")
    rolled = await env.rollout(env.tasks.input(0), InOrder(*[answer(said, completion_tokens=2 + i) for i, said in enumerate(answers)]), "m")
    await env.rubric.score_rollout(rolled)
    for key in (
        "input",
        "task",
        "completion",
        "trajectory",
        "error",
        "reward",
        "metrics",
        "is_truncated",
        "final_env_response",
        "tool_defs",
    ):
        assert env.state[key] == rolled[key], key


def test_an_invalid_action_leaves_the_call_parked() -> None:
    env = Twice()
    env.reset(seed=0)
    with pytest.raises(InvalidAction):
        env.step(7)
    env.step("a")
    assert (text_of(env.step("b").observation)[-2:], len(env.cleaned)) == (["a", "b"], 1)


def test_an_episode_that_asks_nothing_is_over_at_reset() -> None:
    env = Silent(rubric=Rubric(lambda completion: len(completion)))
    env.reset(seed=0)
    outcome = env.step("ignored")
    assert (outcome.terminated, outcome.reward, text_of(outcome.observation)[-1]) == (True, 1.0, "done before it began")


def test_the_completion_may_be_one_message_or_text() -> None:
    class Loose(Custom):
        async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
            state = await self.init_state(input, client, model, sampling_args)
            message = await self.ask(state)
            state["completion"] = message if message.content == "message" else str(message.content)
            state["is_completed"] = True
            return state

    env = Loose()
    for said, last in (("message", AssistantMessage("message")), ("text", TextMessage("text"))):
        env.reset(seed=0)
        assert env.step(said).observation[-1] == last


# Overriding the loop of MultiTurnEnv


class Retold(MultiTurnEnv):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, "max_turns": 2, **kwargs})
        self.cleaned = 0

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await super().rollout(input, client, model, sampling_args)
        state["retold"] = len(state["trajectory"])
        return state

    def env_response(self, messages: list[Message], state: State) -> str:
        return "go on"

    @cleanup
    def count(self, state: State) -> None:
        self.cleaned += 1


def test_the_loop_of_the_base_class_can_be_played_inside_an_override() -> None:
    rubric = Rubric(lambda completion: 1.0)
    rubric.add_step_reward_func(lambda step: 0.25)
    env = Retold(rubric=rubric)
    observation, _ = env.reset(options={"example_id": 0})
    assert text_of(observation) == ["first?"]
    first = env.step("a")
    assert text_of(first.observation) == ["first?", "a", "go on"]
    last = env.step("b")
    assert (last.terminated, last.truncated, last.info["stop_condition"]) == (False, True, "max_turns_reached")
    assert (env.state["retold"], text_of(last.observation)) == (2, ["first?", "a", "go on", "b"])
    assert first.reward + last.reward == env.state["reward"] == 1.5
    assert (env.cleaned, last.info["metrics"]["num_turns"]) == (1, 2.0)


class OwnLoop(MultiTurnEnv):
    """Has a loop of its own, which records its turns, and waits in it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, "max_turns": 2, **kwargs})
        self.waits_at = 2

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await self.init_state(input, client, model, sampling_args)
        for turn in range(2):
            if turn == self.waits_at:
                await asyncio.sleep(PATIENCE)
            prompt = await self.get_prompt_messages(state)
            response = await self.get_model_response(state, prompt)
            step = new_step(self, state, prompt, response)
            await self.add_trajectory_step(state, step)
        return state

    def env_response(self, messages: list[Message], state: State) -> str:
        return "go on"


async def rolled_out(env: ChatEnv, *answers: str) -> State:
    """Play an episode as a run that asks a client does, and score it."""
    state = await Rollouts().play(env, env.tasks.input(0), InOrder(*answers), "m", None)
    await run_async(score_alone(env, state))
    return state


def length(completion: list[Message]) -> float:
    return float(len(completion[-1]["content"]))


@pytest.mark.parametrize("kind", [Retold, OwnLoop])
async def test_functions_for_single_turns_score_the_turns_of_whichever_loop_is_played(kind: Callable[..., Any]) -> None:
    """Once each: as they happen in the library's loop, at the end of an author's own."""
    calls: list[str] = []

    async def measured(step: Any, answer: str) -> float:
        await asyncio.sleep(0)
        calls.append(step["completion"][0]["content"] + answer)
        return 0.25

    rubric = Rubric(lambda completion: 4.0)
    rubric.add_step_reward_func(length)
    rubric.add_step_reward_func(measured, weight=0.0)
    env = kind(rubric=rubric)
    metrics = {"<lambda>": 4.0, "num_turns": 2.0, "length": 4.0, "measured": 0.5}
    state = await rolled_out(env, "a", "bbb")
    assert (state["reward"], state["metrics"], calls) == (8.0, metrics, ["a1", "bbb1"])
    assert [step["extras"]["reward"] for step in state["trajectory"]] == [1.0, 7.0]
    await env.areset(options={"example_id": 0})
    rewards = [(await env.astep(said)).reward for said in ("a", "bbb")]
    assert (sum(rewards), env.state["reward"], env.state["metrics"], calls[2:]) == (8.0, 8.0, metrics, ["a1", "bbb1"])


async def test_functions_for_single_turns_score_a_group_of_own_loops() -> None:
    rubric = Rubric()
    rubric.add_step_reward_func(length)
    env = OwnLoop(rubric=rubric)
    states = [await Rollouts().play(env, env.tasks.input(0), InOrder(*said), "m", None) for said in (("a", "b"), ("a", "bbb"))]
    await run_async(score_together(env, states))
    assert [(state["reward"], state["advantage"]) for state in states] == [(2.0, -1.0), (4.0, 1.0)]


@pytest.mark.parametrize("waits_at", [0, 1])
async def test_the_time_limit_holds_in_an_own_loop(waits_at: int) -> None:
    """What was played until then is kept and scored."""
    env = OwnLoop(timeout_seconds=0.05, rubric=Rubric(lambda state: 1.0))
    env.waits_at = waits_at
    state = await rolled_out(env, "a", "b")
    assert (state["stop_condition"], state["timed_out"], state["is_completed"], state["error"]) == ("timeout_reached", True, True, None)
    assert (state["reward"], text_of(state["completion"])) == (1.0, ["a"][:waits_at])
    await env.areset(seed=0)
    outcome = await env.astep("a")
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (False, True, "timeout_reached")
    assert (outcome.reward, env.state["timed_out"]) == (1.0, True)


class Consulting(MultiTurnEnv):
    """Plays an episode of another environment before it does what it is told to."""

    def __init__(self, then: Callable[[State], Any], **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, **kwargs})
        self.then = then
        self.other = Retold(dataset=[{"question": "what do you think?"}], max_turns=1)

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await self.init_state(input, client, model, sampling_args)
        await self.other.rollout({"question": "what do you think?"}, client, model, sampling_args)
        await self.then(state)
        return state


async def waiting(state: State) -> None:
    await asyncio.sleep(PATIENCE)


async def failing(state: State) -> None:
    raise InfraError("the disk is gone")


@pytest.mark.parametrize(("then", "timeout_seconds", "stop_condition"), [(waiting, 0.05, "timeout_reached"), (failing, None, "has_error")])
async def test_an_episode_of_another_environment_in_an_own_loop_is_not_taken_for_its_own(
    then: Callable[[State], Any], timeout_seconds: float | None, stop_condition: str
) -> None:
    env = Consulting(then, timeout_seconds=timeout_seconds)
    state = await rolled_out(env, "a")
    assert (state["stop_condition"], state.get("answer")) == (stop_condition, "1")
    await env.areset(options={"example_id": 0})
    outcome = await env.astep("a")
    assert (outcome.info["stop_condition"], env.state.get("answer")) == (stop_condition, "1")


async def test_the_loop_of_the_base_class_has_the_whole_time_limit() -> None:
    """Whatever its author did before: whoever answers has to by `timeout_seconds` after that loop began."""
    env = Retold(timeout_seconds=1000.0)
    await env.areset(seed=0)
    deadline = env.episode.deadline
    env.state["timing"].generation.start += 500.0  # as if so much had been prepared first
    assert env.episode.deadline == pytest.approx(deadline + 500.0, abs=100.0)


async def test_what_is_done_after_the_loop_of_the_base_class_timed_out_is_not_cut_off() -> None:
    class Thorough(Retold):
        async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
            state = await super().rollout(input, client, model, sampling_args)
            await asyncio.sleep(0.02)
            state["is_summarised"] = True
            return state

        async def env_response(self, messages: list[Message], state: State) -> str:  # type: ignore[override]
            await asyncio.sleep(PATIENCE)
            return "never"

    state = await rolled_out(Thorough(timeout_seconds=0.05), "a", "b")
    assert (state["stop_condition"], state["is_summarised"]) == ("timeout_reached", True)


@pytest.mark.parametrize(
    ("error", "flags", "stop_condition"),
    [
        (OverlongPromptError("too long"), (False, True), "prompt_too_long"),
        (TimeoutError(), (False, True), "timeout_reached"),
        (ModelError("503"), (True, False), "has_error"),
    ],
)
@pytest.mark.parametrize("kind", [Retold, Twice])
def test_fail_ends_the_episode_as_the_rollout_contract_says(
    kind: Callable[..., Any], error: Exception, flags: tuple[bool, bool], stop_condition: str
) -> None:
    env = kind(rubric=Rubric(lambda state: 1.0))
    env.reset(seed=0)
    env.step("a")
    outcome = env.fail(error)
    assert ((outcome.terminated, outcome.truncated), outcome.info["stop_condition"]) == (flags, stop_condition)
    assert outcome.reward == env.state["reward"] == 1.0
    assert ("error" in outcome.info) == (stop_condition == "has_error")
    with pytest.raises(ResetNeeded):
        env.step("b")


def test_the_time_limit_of_the_base_class_counts_while_a_call_is_parked() -> None:
    """The rollout ends while the agent thinks; its answer is too late and only learns the outcome."""
    env = Retold(timeout_seconds=0.05, rubric=Rubric(lambda state: 1.0))
    env.reset(seed=0)
    rollout = env._episode._task
    asyncio.run_coroutine_threadsafe(asyncio.wait([rollout], timeout=PATIENCE), rollout.get_loop()).result()
    outcome = env.step("too late")
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (False, True, "timeout_reached")
    assert (outcome.reward, env.cleaned) == (1.0, 1)


async def test_a_call_that_the_author_gave_up_waiting_for_is_no_longer_asked() -> None:
    class Hasty(Custom):
        async def converse(self, state: State) -> list[Message]:
            try:
                return [await asyncio.wait_for(self.ask(state, "quick!"), 0.01)]
            except TimeoutError:
                self.events.append("gave up")
                return [await self.ask(state, "take your time")]

    env = Hasty(rubric=Rubric(score))
    await env.areset(options={"example_id": 0})
    while not env.events:
        await asyncio.sleep(0.001)
    outcome = await env.astep("1")
    if not outcome.terminated:
        assert text_of(outcome.observation) == ["first?", "take your time"]
        outcome = await env.astep("1")
    assert (outcome.terminated, outcome.reward) == (True, 1.0)


# Errors


class Failing(Custom):
    """Raises an error, before its first call or after it."""

    def __init__(self, error: Exception, asks: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error, self.asks = error, asks

    async def converse(self, state: State) -> list[Message]:
        if self.asks:
            await self.ask(state)
        raise self.error


def test_an_error_of_the_library_ends_the_episode_and_is_recorded() -> None:
    error = InfraError("the tool server is gone")
    env = Failing(error, rubric=Rubric(lambda state: 0.5))
    env.reset(seed=0)
    outcome = env.step("a")
    assert (outcome.terminated, outcome.reward, outcome.info["stop_condition"]) == (True, 0.5, "has_error")
    assert (env.state["error"], len(env.cleaned)) == (error, 1)


@pytest.mark.parametrize(
    ("error", "asks"), [(ZeroDivisionError("a bug"), True), (ZeroDivisionError("a bug"), False), (InfraError("no server"), False)]
)
def test_a_foreign_exception_and_whatever_comes_before_the_first_call_is_raised_after_one_cleanup(error: Exception, asks: bool) -> None:
    env = Failing(error, asks)

    def play() -> None:
        env.reset(seed=0)
        env.step("a")

    with pytest.raises(type(error)):
        play()
    assert len(env.cleaned) == 1
    with pytest.raises(ResetNeeded):
        env.step("b")
    assert len(env.cleaned) == 1


def test_a_rollout_must_return_a_state() -> None:
    class Forgetful(Custom):
        async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> Any:
            state = await self.init_state(input, client, model, sampling_args)
            await self.ask(state)

    env = Forgetful()
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"Forgetful\.rollout\(\) must return a State, got NoneType"):
        env.step("a")
    assert len(env.cleaned) == 1


def test_the_author_may_catch_the_error_of_a_model_that_failed() -> None:
    class Careful(Custom):
        async def converse(self, state: State) -> list[Message]:
            try:
                return [await self.ask(state)]
            except ModelError as error:
                return [AssistantMessage(f"no answer: {error}")]

    env = Careful(rubric=Rubric(lambda completion: len(completion)))
    env.reset(seed=0)
    outcome = env.fail(ConnectionError("refused"))
    assert (outcome.terminated, outcome.truncated, outcome.reward) == (True, False, 1.0)
    assert env.state["error"] is None
    assert "refused" in text_of(outcome.observation)[-1]


def test_fail_reaches_every_parked_call_and_those_that_follow() -> None:
    class Stubborn(Custom):
        async def converse(self, state: State) -> list[Message]:
            results = await asyncio.gather(self.ask(state, "a"), self.ask(state, "b"), return_exceptions=True)
            try:
                await self.ask(state, "c")
            except ModelError as error:
                results.append(error)
            return [AssistantMessage(f"{len(results)} failed")]

    env = Stubborn()
    env.reset(seed=0)
    assert text_of(env.fail(ModelError("503")).observation)[-1] == "3 failed"


# Ending from outside


class Guarded(Custom):
    async def converse(self, state: State) -> list[Message]:
        async def member(name: str) -> Message:
            try:
                return await self.ask(state, name)
            finally:
                self.events.append(name)

        try:
            return list(await asyncio.gather(member("a"), member("b")))
        finally:
            self.events.append("rollout")


@pytest.mark.parametrize("end", ["reset", "close", "truncate"])
@pytest.mark.parametrize("turns", [0, 1])
def test_what_is_parked_is_cancelled_when_the_episode_ends_early(end: str, turns: int) -> None:
    """The author's ``finally`` blocks run, and then cleanup, once."""
    env = Guarded(rubric=Rubric(lambda state: 1.0))
    env.reset(seed=0)
    for _ in range(turns):
        env.step("x")
    result = getattr(env, end)()
    assert (sorted(env.events), len(env.cleaned)) == (["a", "b", "rollout"], 1)
    if end == "truncate":
        assert (result.terminated, result.truncated, result.reward) == (False, True, 1.0)
        assert result.info["stop_condition"] == "truncated"
        with pytest.raises(ResetNeeded):
            env.step("y")
    env.close()


class Summarised(Retold):
    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await super().rollout(input, client, model, sampling_args)
        await self.get_model_response(state, [*state["prompt"], UserMessage("in short?")])
        return state


class Opened(Retold):
    async def get_model_response(self, state: State, prompt: Any, *args: Any, **kwargs: Any) -> Response:
        return await super().get_model_response(state, prompt, *args, **kwargs) if state["trajectory"] else answer("aa")


@pytest.mark.parametrize(
    ("kind", "said", "rewards"),
    [(Retold, ["a", "bbb"], [1.0, 4.0]), (Summarised, ["a", "bbb", "ab"], [1.0, 3.0, 1.0]), (Opened, ["bbb"], [6.0])],
)
async def test_steps_return_the_terms_of_the_reward_whether_they_are_a_turn_or_none_or_two(
    kind: Callable[..., Any], said: list[str], rewards: list[float]
) -> None:
    rubric = Rubric(lambda state: 1.0)
    rubric.add_step_reward_func(length)
    env = kind(rubric=rubric)
    await env.areset(seed=0)
    assert [(await env.astep(text)).reward for text in said] == rewards
    assert env.state["reward"] == sum(rewards) == (await rolled_out(env, *said))["reward"]


@pytest.mark.parametrize("end", ["truncate", "fail"])
def test_an_end_from_outside_is_a_step_of_its_own(end: str) -> None:
    """What steps returned before stays as it was, so that all of them together are the reward."""
    rubric = Rubric(lambda state: 1.0)
    rubric.add_step_reward_func(length)
    env = Retold(max_turns=5, rubric=rubric)
    env.reset(seed=0)
    rewards = [env.step(said).reward for said in ("a", "bbb")]
    outcome = env.truncate() if end == "truncate" else env.fail(ModelError("503"))
    assert [*rewards, outcome.reward] == [1.0, 3.0, 1.0]
    assert env.state["reward"] == 5.0


class Lingering(Custom):
    """Takes its time to end, in its own loop and in a task beside it."""

    goes_on = True
    """Whether it uses the answers that it gets; else it waits for something that never comes."""

    async def converse(self, state: State) -> list[Message]:
        async def member(name: str) -> Message:
            try:
                answer = await self.ask(state, name)
                if not self.goes_on:
                    await asyncio.Event().wait()
                return answer
            finally:
                await asyncio.sleep(0.05 if name == "main" else 0.1)
                self.events.append(name)

        self.aside = asyncio.create_task(member("aside"))
        return [await member("main")]

    @cleanup(priority=1)
    def leave(self, state: State) -> None:
        self.events.append("cleanup")


@pytest.mark.parametrize("end", ["areset", "aclose", "atruncate"])
async def test_a_rollout_with_a_slow_finally_has_ended_before_its_cleanup_runs(end: str) -> None:
    """So cleanup handlers never take away what the rollout, or a task whose call is parked, still uses."""
    env = Lingering()
    await env.areset(seed=0)
    await getattr(env, end)()
    assert (sorted(env.events[:2]), env.events[2:]) == (["aside", "main"], ["cleanup"])
    await env.aclose()


async def test_a_rollout_that_is_cut_off_has_ended_before_its_cleanup_runs() -> None:
    """By its deadline, or because the run is cancelled, where a client is asked."""

    class Limited(Lingering, MultiTurnEnv):
        """Has a time limit."""

    env = Limited(timeout_seconds=0.01)
    state = await Rollouts().play(env, env.tasks.input(0), Mute(), "m", None)
    assert state["stop_condition"] == "timeout_reached"
    assert env.events.index("main") < env.events.index("cleanup")
    env.aside.cancel()
    unlimited = Lingering()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Rollouts().play(unlimited, unlimited.tasks.input(0), Mute(), "m", None), 0.01)
    assert unlimited.events == ["main", "cleanup"]
    unlimited.aside.cancel()


async def test_calls_of_other_tasks_are_cancelled_too() -> None:
    """A task that the author left behind is not left waiting for an answer that never comes."""

    class Scattered(Custom):
        async def converse(self, state: State) -> list[Message]:
            async def aside() -> None:
                try:
                    await self.ask(state, "aside")
                finally:
                    self.events.append("aside ended")

            self.task = asyncio.create_task(aside())
            return [await self.ask(state, "main")]

    env = Scattered()
    await env.areset(seed=0)
    await env.aclose()
    await asyncio.sleep(0)
    assert env.events == ["aside ended"]


async def test_calls_that_are_parked_when_the_rollout_ends_are_cancelled() -> None:
    """`asyncio.gather` lets the others go on when one raises: nobody will answer them any more."""

    class Quarrel(Custom):
        async def converse(self, state: State) -> list[Message]:
            async def member(name: str) -> None:
                try:
                    await self.ask(state, name)
                    if name == "a":
                        raise InfraError("a gave up")
                finally:
                    self.events.append(name)

            await asyncio.gather(*map(member, "abc"))
            return []

    env = Quarrel()
    await env.areset(seed=0)
    outcome = await env.astep("x")
    if not outcome.terminated:  # b was parked already, and is shown before a goes on
        assert text_of(outcome.observation)[-1] == "b"
        while "a" not in env.events:
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        outcome = await env.astep("y")
    assert (outcome.terminated, outcome.info["stop_condition"]) == (True, "has_error")
    await asyncio.sleep(0)
    assert sorted(env.events) == ["a", "b", "c"]


async def test_a_call_made_while_being_cancelled_is_not_parked() -> None:
    class LastWord(Custom):
        async def converse(self, state: State) -> list[Message]:
            try:
                return [await self.ask(state)]
            finally:
                await self.ask(state, "any last words?")

    env = LastWord()
    await env.areset(seed=0)
    async with asyncio.timeout(PATIENCE):
        await env.aclose()
    assert len(env.cleaned) == 1


async def test_a_cancelled_step_cancels_the_rollout_and_cleans_up_once() -> None:
    class Stuck(Custom):
        async def converse(self, state: State) -> list[Message]:
            await self.ask(state)
            try:
                await asyncio.Event().wait()
            finally:
                self.events.append("cancelled")
            return []

    env = Stuck()
    await env.areset(seed=0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(env.astep("a"), 0.01)
    assert (env.events, len(env.cleaned)) == (["cancelled"], 1)
    with pytest.raises(ResetNeeded):
        await env.astep("b")
    await env.areset(seed=0)
    await env.aclose()
    assert len(env.cleaned) == 2


# Loops, threads, copies


def test_an_episode_begun_on_a_loop_that_is_gone_can_be_reset_and_closed() -> None:
    for end in ("reset", "close"):
        env = Twice()
        asyncio.run(env.areset(seed=0))
        getattr(env, end)()
        assert len(env.cleaned) == 1
        env.close()


def test_a_step_of_an_episode_whose_loop_is_gone_asks_for_reset() -> None:
    env = Twice()
    asyncio.run(env.areset(seed=0))
    with pytest.raises(ResetNeeded, match="event loop on which this episode was reset"):
        env.step("a")
    assert len(env.cleaned) == 1
    env.reset(seed=0)
    env.step("a")
    assert env.step("b").terminated


async def test_a_sync_reset_can_be_followed_by_async_steps() -> None:
    env = Twice(rubric=Rubric(score))
    env.reset(options={"example_id": 0})
    await env.astep("1")
    assert (await asyncio.to_thread(env.step, "1")).reward == 2.0


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_episode_with_parked_calls_refuses_to_be_copied_and_says_why(duplicate: Callable[[Any], Any]) -> None:
    env = Twice()
    env.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable, match=r"Twice plays its own rollout\(\).*1 parked.*reset\(\) or close\(\)"):
        duplicate(env._episode)
    if duplicate is not copy.copy:
        with pytest.raises(EpisodeNotPicklable):
            duplicate(env)
    env.step("the refusal did no harm")
    env.close()
    duplicate(env)


def test_an_environment_without_hooks_and_without_rollout_says_what_to_write() -> None:
    class Empty(ChatEnv):
        pass

    env = Empty(ROWS)
    with pytest.raises(NotImplementedError, match=r"Empty must write rollout\(\)"):
        env.reset(seed=0)


async def test_the_tools_of_a_call_are_told_and_whoever_answers_is_asked_with_them() -> None:
    env = WithTools()
    _, info = await env.areset(seed=0)
    assert [tool["function"]["name"] for tool in info["tools"]] == ["look", "take"]
    *_, info = await env.astep("1")
    assert info["tools"] == []
    await env.aclose()
    client = InOrder("1", "2")
    await aevaluate(env, ModelAgent(client, "m"), example_ids=[0], progress=False)
    assert [[tool.name for tool in asked["tools"] or ()] for asked in client.asked] == [["look", "take"], []]
