"""`JudgeRubric`: what the judge is told, whom it asks, what is asked once, and what becomes of errors. The judge is a real HTTP server."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from vfgym import AssistantMessage, Client, MultiTurnEnv, Parser, Response, Rubric, SingleTurnEnv, State, UserMessage, XMLParser
from vfgym.clients import ClientConfig
from vfgym.errors import ConfigurationError, ModelError
from vfgym.rubrics.judge_rubric import DEFAULT_JUDGE_PROMPT, JudgeError, JudgeRubric, question_of
from vfgym.testing import ScriptedClient

Judge = Callable[..., Awaitable[str]]
QUESTION = "How many people live in Oslo? ({figures}, please)"


class JudgeServer(ThreadingHTTPServer):
    """An OpenAI-compatible server on loopback that answers as it is told and keeps what it was asked."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.connections: list[Any] = []
        self.verdict: str | None = "yes"
        self.finish_reason = "stop"
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def prompts(self) -> list[str]:
        return [asked["messages"][-1]["content"] for asked in self.asked]

    def config(self, **fields: Any) -> ClientConfig:
        return ClientConfig(api_base_url=self.url, api_key="key", max_retries=0, **fields)


class _Handler(BaseHTTPRequestHandler):
    server: JudgeServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.keys.append(self.headers["Authorization"])
        self.server.connections.append(self.client_address)
        message = {"role": "assistant", "content": self.server.verdict, "reasoning_content": "hm"}
        answer: dict[str, Any] = {"error": {"message": "not today", "type": "none", "code": None}}
        if self.server.status == 200:
            choice = {"index": 0, "finish_reason": self.server.finish_reason, "message": message}
            answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "judge", "choices": [choice]}
        body = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def judged(judge: Judge, prompt: Any, completion: Any, answer: Any, state: State) -> float:
    verdict = await judge(prompt, completion, answer, state)
    return 1.0 if "yes" in verdict.lower() else 0.0


class Scripted(Client):
    """Answers with a text, and keeps what it was asked."""

    def __init__(self, verdict: Any = "yes") -> None:
        self.verdict = verdict
        self.prompts: list[str] = []
        self.closed = 0

    async def get_response(self, prompt: Any, model: str, sampling_args: Any = None, tools: Any = None, **kwargs: Any) -> Response:
        self.prompts.append(prompt[-1].content)
        await asyncio.sleep(0)
        if isinstance(self.verdict, BaseException):
            raise self.verdict
        return Response("", 0, model, None, AssistantMessage(self.verdict))

    async def close(self) -> None:
        self.closed += 1


# What the judge is told


async def test_the_judge_sees_the_question_of_a_real_rollout(server: JudgeServer) -> None:
    rubric = JudgeRubric(judged, judge_client=server.config())
    env = SingleTurnEnv(dataset=[{"question": QUESTION, "answer": "720,000"}], system_prompt="Be brief.", rubric=rubric)
    state = await env.rollout(env.tasks.input(0), ScriptedClient(["About {720} thousand."]), "model")
    await env.rubric.score_rollout(state)
    assert state["reward"] == 1.0
    assert server.prompts == [DEFAULT_JUDGE_PROMPT.format(question=QUESTION, answer="720,000", response="About {720} thousand.")]
    await env.rubric.teardown()


@pytest.mark.parametrize("client", ["config", "openai"])
def test_an_agent_that_steps_is_judged_too(server: JudgeServer, client: str) -> None:
    given = server.config() if client == "config" else openai.OpenAI(base_url=server.url, api_key="key")
    env = SingleTurnEnv(dataset=[{"question": QUESTION, "answer": "720,000"}], rubric=JudgeRubric(judged, judge_client=given))
    for verdict, reward in (("yes", 1.0), ("no", 0.0)):
        server.verdict = verdict
        env.reset(seed=0)
        assert env.step("About 720,000.").reward == reward
    assert QUESTION in server.prompts[0]
    env.close()
    if isinstance(given, openai.OpenAI):
        given.close()


async def test_a_rollout_of_the_authors_own_is_judged_by_the_judge(server: JudgeServer) -> None:
    class Inverted(MultiTurnEnv):
        async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
            state = await self.init_state(input, client, model, sampling_args)
            response = await client.get_response(state["prompt"], model, state=state)
            state["completion"] = [response.message]
            return state

    env = Inverted(dataset=[{"question": QUESTION, "answer": "1"}], rubric=JudgeRubric(judged, judge_client=server.config()))
    await env.areset(seed=0)
    assert (await env.astep("1"))[1] == 1.0
    assert QUESTION in server.prompts[0]
    await env.rubric.teardown()


@pytest.mark.parametrize(
    ("prompt", "question"),
    [
        ("6 * 7?", "6 * 7?"),
        ([], ""),
        ([UserMessage("first"), AssistantMessage("hm"), UserMessage("last")], "last"),
        ([{"role": "user", "content": "asked"}, {"role": "assistant", "content": "Answer:"}], "asked"),
        ([SimpleNamespace(role="user", content="an object")], "an object"),
        ({"role": "user", "content": "one message"}, "one message"),
        ([{"role": "text", "content": "raw"}], "raw"),
        ([{"role": "system", "content": "alone"}], "alone"),
        (
            [UserMessage([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}, {"type": "text", "text": "b"}])],
            "a b",
        ),
        ([UserMessage("")], ""),
        ([{"role": "system", "content": "a"}, {"role": "assistant", "content": "b"}], "b"),
        ([{"role": "user"}], ""),
        ((UserMessage("in a tuple"),), "in a tuple"),
    ],
)
def test_the_question_is_the_last_user_message(prompt: Any, question: str) -> None:
    assert question_of(prompt) == question


async def test_the_parser_reads_what_is_judged() -> None:
    client = Scripted()
    template = "{question}|{response}|{answer}|{{}}"
    rubric = JudgeRubric(parser=XMLParser(["answer"]), judge_client=client, judge_prompt=template)
    assert await rubric.judge("q", "<answer>42</answer>", 42) == "yes"
    assert await rubric.judge("q", "none", "42") == "yes"
    assert client.prompts == ["q|42|42|{}", "q||42|{}"]


@pytest.mark.parametrize(
    "template", ["{question} {wrong}", "{} {answer}", "{0}", '{"verdict": "yes"} {question}', "{question", "a }", "{answer:d}"]
)
def test_a_wrong_template_is_refused_at_once(template: str) -> None:
    with pytest.raises(ConfigurationError, match=r"it may have \{question\}, \{answer\}, \{response\}, and other braces are written twice"):
        JudgeRubric(judge_prompt=template)


def test_a_template_is_text() -> None:
    with pytest.raises(ConfigurationError, match=r"^judge_prompt must be text, got int: 5$"):
        JudgeRubric(judge_prompt=5)  # type: ignore[arg-type]


# Who is asked


def test_reward_functions_get_the_judge_and_what_it_is_made_of() -> None:
    client = Scripted()
    rubric = JudgeRubric(judge_client=client, judge_model="m", judge_sampling_args={"temperature": 0}, judge_prompt="{question}")
    objects = rubric.class_objects
    assert set(objects) == {"parser", "judge", "judge_client", "judge_model", "judge_prompt", "judge_sampling_args"}
    assert objects["judge"] == rubric.judge
    assert objects["judge_client"] is client
    assert (objects["judge_model"], objects["judge_prompt"], objects["judge_sampling_args"]) == ("m", "{question}", {"temperature": 0})
    assert rubric.funcs == []
    assert isinstance(rubric, Rubric)
    arguments = {"temperature": 0}
    copied = JudgeRubric([judged, len], [2.0, 3.0], judge_client=client, judge_sampling_args=arguments)
    arguments["temperature"] = 1
    assert (copied.judge_sampling_args, copied.funcs, copied.weights) == ({"temperature": 0}, [judged, len], [2.0, 3.0])
    assert (JudgeRubric().judge_model, JudgeRubric().judge_prompt) == ("gpt-4.1-nano", DEFAULT_JUDGE_PROMPT)


async def test_every_kind_of_openai_client_is_asked_the_same(server: JudgeServer) -> None:
    arguments = {"temperature": 0.0, "max_tokens": 5, "top_p": None}

    class Like:
        """Asks the server in its own way, as wrappers around SDKs do."""

        def __init__(self, client: Any) -> None:
            self.chat = SimpleNamespace(completions=SimpleNamespace(create=client.chat.completions.create))

    with openai.OpenAI(base_url=server.url, api_key="key") as plain:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="key") as sdk:
            for client in (server.config(), sdk, plain, Like(sdk), Like(plain)):
                rubric = JudgeRubric(judge_client=client, judge_sampling_args=arguments, judge_prompt="{response}", judge_model="m")
                assert await rubric.judge("q", "r", "a") == "yes"
                assert rubric.judge_client is client
                await rubric.teardown()
    expected = {"model": "m", "messages": [{"role": "user", "content": "r"}], "temperature": 0.0, "max_completion_tokens": 5}
    assert server.asked == [expected] * 5
    assert arguments == {"temperature": 0.0, "max_tokens": 5, "top_p": None}


async def test_a_synchronous_client_does_not_hold_up_the_loop() -> None:
    asked = threading.Event()

    class Blocking:
        class chat:  # noqa: N801
            class completions:  # noqa: N801
                @staticmethod
                def create(**arguments: Any) -> Any:
                    assert asked.wait(20)
                    return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="no"))])

    task = asyncio.ensure_future(JudgeRubric(judge_client=Blocking()).judge("q", "r", "a"))
    await asyncio.sleep(0)
    asked.set()
    assert await task == "no"


async def test_openai_is_the_default_and_its_key_is_needed_when_it_is_asked(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    rubric = JudgeRubric(judged)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        await rubric.judge("q", "r", "a")
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        _ = rubric.class_objects["judge_client"].chat
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert await rubric.judge("q", "r", "a") == "yes"
    completion = await rubric.judge_client.chat.completions.create(model="m", messages=[{"role": "user", "content": "mine"}])
    assert completion.choices[0].message.content == "yes"
    assert server.keys == ["Bearer secret"] * 2
    assert [asked["model"] for asked in server.asked] == ["gpt-4.1-nano", "m"]
    await rubric.teardown()


@pytest.mark.parametrize(("arguments", "limit"), [({"max_tokens": 5, "max_completion_tokens": 7}, 7), ({"max_completion_tokens": 7}, 7)])
async def test_a_limit_of_the_new_name_counts_before_one_of_the_old(server: JudgeServer, arguments: dict[str, int], limit: int) -> None:
    with openai.OpenAI(base_url=server.url, api_key="key") as plain:
        await JudgeRubric(judge_client=plain, judge_sampling_args=arguments).judge("q", "r", "a")
    assert {name: value for name, value in server.asked[0].items() if "tokens" in name} == {"max_completion_tokens": limit}


def test_an_empty_address_in_the_environment_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    client = JudgeRubric().judge_client
    assert str(client.base_url) == "https://api.openai.com/v1/"
    assert client.resolve() is client.resolve()


def test_the_default_client_is_asked_for_nothing_by_looking_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert not hasattr(JudgeRubric().judge_client, "_anything")
    for rubric in (copy.deepcopy(JudgeRubric(judged)), pickle.loads(pickle.dumps(JudgeRubric(judged)))):
        assert rubric.class_objects["judge"] == rubric.judge
        assert rubric.class_objects["judge_client"] is rubric.judge_client


async def test_a_copy_asks_by_itself(server: JudgeServer) -> None:
    rubric = JudgeRubric(judged, judge_client=server.config())
    assert await rubric.judge("q", "r", "a") == "yes"
    other = copy.deepcopy(rubric)
    assert await other.judge("q", "r", "a") == "yes"
    await rubric.teardown()
    await other.teardown()


@pytest.mark.parametrize("client", ["gpt-4", 3, SimpleNamespace(chat=None)])
def test_something_that_cannot_be_asked_is_refused_at_once(client: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected who is asked"):
        JudgeRubric(judge_client=client)


def test_sampling_arguments_must_be_a_dict() -> None:
    with pytest.raises(ConfigurationError, match="judge_sampling_args must be a dict"):
        JudgeRubric(judge_sampling_args="hot")  # type: ignore[arg-type]


@pytest.mark.parametrize("is_given", [True, False])
async def test_teardown_closes_the_connections_that_it_opened(server: JudgeServer, monkeypatch: pytest.MonkeyPatch, is_given: bool) -> None:
    """To a judge that a configuration names, and to OpenAI by default. A later question opens new ones."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    rubric = JudgeRubric(judge_client=server.config() if is_given else None)
    assert [await rubric.judge("q", "r", "a") for _ in range(2)] == ["yes"] * 2
    await rubric.teardown()
    assert await rubric.judge("q", "r", "a") == "yes"
    await rubric.teardown()
    first, second, later = server.connections
    assert first == second != later


async def test_teardown_closes_no_client_that_was_given() -> None:
    client = Scripted()
    rubric = JudgeRubric(judge_client=client)
    await rubric.judge("q", "r", "a")
    await rubric.teardown()
    assert client.closed == 0


# What is asked once


async def test_verdicts_are_kept_in_the_state() -> None:
    client = Scripted("yes, it agrees")
    rubric = JudgeRubric(judge_client=client, judge_prompt="{question} {response}")
    state: dict[str, Any] = {}
    assert [await rubric.judge("q", "r", "a", state) for _ in range(2)] == ["yes, it agrees"] * 2
    assert state["judge_response"] == {"q r": "yes, it agrees"}
    await rubric.judge("q", "other", "a", state)
    await rubric.judge("q", "r", "a")
    await rubric.judge("q", "r", "a", {})
    assert client.prompts == ["q r", "q other", "q r", "q r"]


async def test_another_model_is_asked_itself() -> None:
    first, second = Scripted("yes"), Scripted("no")
    state: dict[str, Any] = {}
    for _ in range(2):
        for client, model in ((first, "a"), (second, "b")):
            rubric = JudgeRubric(judge_client=client, judge_model=model, judge_prompt="{question}")
            assert await rubric.judge("q", "r", "a", state) == client.verdict
    assert state == {"judge_response": {"q": "yes", "b: q": "no"}, "judge_model": "a"}
    assert (first.prompts, second.prompts) == (["q"], ["q"])


async def test_the_same_is_asked_once_at_the_same_time() -> None:
    client = Scripted()
    rubric = JudgeRubric(judge_client=client)
    state: dict[str, Any] = {}
    assert await asyncio.gather(*(rubric.judge("q", "r", "a", state) for _ in range(10))) == ["yes"] * 10
    assert len(client.prompts) == 1
    states: list[dict[str, Any]] = [{} for _ in range(10)]
    await asyncio.gather(*(rubric.judge("q", "r", "a", state) for state in states))
    assert len(client.prompts) == 11


async def test_who_gives_up_does_not_take_the_verdict_from_others() -> None:
    client = Scripted()
    rubric = JudgeRubric(judge_client=client)
    state: dict[str, Any] = {}
    tasks = [asyncio.ensure_future(rubric.judge("q", "r", "a", state)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == ["yes", "yes"]


# Errors


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_a_provider_that_fails_scores_zero_and_is_reported(
    server: JudgeServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    server.status = status
    rubric = JudgeRubric([judged, lambda: 1.0], judge_client=server.config(), judge_model="m")
    env = SingleTurnEnv(dataset=[{"question": QUESTION, "answer": "1"}] * 2, rubric=rubric)
    states = [await env.rollout(env.tasks.input(index), ScriptedClient(["1"]), "model") for index in range(2)]
    await env.rubric.score_group(states)
    for state in states:
        assert (state["reward"], state["metrics"]["judged"]) == (1.0, 0.0)
        error = state["metrics_errors"]["judged"]
        assert re.match(r"JudgeError\(.the judge m could not be asked: ", error)
        assert ("refused the API key: the api_key that was given" in error) == (status == 401)
    assert [record.levelname for record in caplog.records if record.name == "vfgym.rubrics.judge_rubric"] == ["WARNING"] * 2
    await env.rubric.teardown()


async def test_an_error_keeps_its_cause_and_is_not_kept() -> None:
    client = Scripted(ValueError("broken"))
    rubric = JudgeRubric(judge_client=client)
    state: dict[str, Any] = {}
    with pytest.raises(RuntimeError, match=r"the judge gpt-4\.1-nano could not be asked: ValueError: broken") as caught:
        await rubric.judge("q", "r", "a", state)
    assert caught.value.__cause__ is client.verdict
    assert isinstance(caught.value, JudgeError)
    assert isinstance(caught.value, ModelError)
    client.verdict = "no"
    assert await rubric.judge("q", "r", "a", state) == "no"


async def test_a_verdict_without_text_is_an_error(server: JudgeServer) -> None:
    server.verdict, server.finish_reason = None, "length"
    rubric = JudgeRubric(judge_client=server.config())
    with pytest.raises(JudgeError, match="answered with no text within its token limit"):
        await rubric.judge("q", "r", "a")
    await rubric.teardown()
    state: dict[str, Any] = {}
    for verdict in (None, ""):
        with pytest.raises(JudgeError, match=r"^the judge m answered with no text$"):
            await JudgeRubric(judge_client=Scripted(verdict), judge_model="m").judge("q", "r", "a", state)
    assert state == {"judge_response": {}, "judge_model": "m"}


async def test_cancellation_and_the_errors_of_a_parser_pass() -> None:
    with pytest.raises(asyncio.CancelledError):
        await JudgeRubric(judge_client=Scripted(asyncio.CancelledError())).judge("q", "r", "a")

    def broken(text: str) -> str:
        raise KeyError(text)

    with pytest.raises(KeyError):
        await JudgeRubric(judge_client=Scripted(), parser=Parser(broken)).judge("q", "r", "a")
