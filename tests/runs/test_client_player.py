"""`Rollouts`: what becomes of rollouts that break off, and of the games that it opened."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym import ChatEnv, MultiTurnEnv, State, cleanup
from vfgym.errors import Error, InfraError, InvalidModelResponseError
from vfgym.messages import Message
from vfgym.results import fingerprint_of
from vfgym.runs import client_player
from vfgym.runs.client_player import ClientPlayer, ClientPlayerConfig, RolloutFailed, Rollouts
from vfgym.runs.engine import GroupJob
from vfgym.runs.inputs import Example, ListedInputs, Seeds
from vfgym.testing import ScriptedClient


class Arcade(MultiTurnEnv):
    """Opens a game for each player; some cannot be closed."""

    def __init__(self, name: str, log: list[str], fails: bool = False) -> None:
        super().__init__(dataset=[{"question": "?"}], max_turns=1)
        self.name, self.log, self.fails = name, log, fails

    def setup_state(self, state: State) -> Any:
        if state.session is None:
            self.log.append(f"{self.name} opened")
            state.session = self.name
        return super().setup_state(state)

    def env_response(self, messages: list[Message], state: State) -> Any:
        return "on"

    async def close_session(self, session: Any) -> None:
        self.log.append(f"{session} closed")
        if self.fails:
            raise OSError("stuck")


async def test_a_player_keeps_its_games_and_closes_all_of_them_newest_first() -> None:
    log: list[str] = []
    player = Rollouts()
    envs = [Arcade("a", log), Arcade("b", log, fails=True), Arcade("c", log)]
    for env in (*envs, *envs):
        await player.play(env, env.tasks.input(0), ScriptedClient(["x"]), "m", None)
    assert log == ["a opened", "b opened", "c opened"]
    with pytest.raises(OSError, match="stuck"):
        await player.close()
    assert log[3:] == ["c closed", "b closed", "a closed"]
    await player.close()
    assert len(log) == 6


class Own(ChatEnv):
    """Returns, or raises, what it is told to."""

    def __init__(self, result: Any) -> None:
        super().__init__(dataset=[{"question": "?"}])
        self.result = result
        self.cleaned: list[Any] = []

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> Any:
        state = await self.init_state(input, client, model, sampling_args)
        if isinstance(self.result, Exception):
            raise self.result
        return state if self.result == "state" else self.result

    @cleanup
    def leave(self, state: State) -> None:
        self.cleaned.append(state["stop_condition"])


@pytest.mark.parametrize("result", [None, {"reward": 1.0}, ZeroDivisionError("a bug")])
async def test_a_rollout_that_breaks_off_is_cleaned_up_and_its_cause_is_kept(result: Any) -> None:
    env = Own(result)
    with pytest.raises(RolloutFailed) as caught:
        await Rollouts().play(env, env.tasks.input(0), ScriptedClient([]), "m", None)
    cause = caught.value.__cause__
    if isinstance(result, Exception):
        assert cause is result
    else:
        assert isinstance(cause, TypeError)
        assert f"must return a State, got {type(result).__name__}" in str(cause)
    assert len(env.cleaned) == 1
    assert caught.value.state["prompt"][0].content == "?"


async def test_an_error_of_the_library_is_in_the_state_and_names_the_end() -> None:
    env = Own(InfraError("down"))
    state = await Rollouts().play(env, env.tasks.input(0), ScriptedClient([]), "m", None)
    assert (state["stop_condition"], state["error"], env.cleaned) == ("has_error", env.result, ["has_error"])
    assert (await Rollouts().play(Own("state"), env.tasks.input(0), ScriptedClient([]), "m", None))["stop_condition"] == "rollout_completed"


@pytest.mark.parametrize("has_state", [True, False])
async def test_an_interruption_gets_out_and_what_had_begun_is_cleaned_up(has_state: bool) -> None:
    class Interrupted(Own):
        async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> Any:
            if has_state:
                await self.init_state(input, client, model, sampling_args)
            raise KeyboardInterrupt

    env = Interrupted(None)
    with pytest.raises(KeyboardInterrupt):
        await Rollouts().play(env, env.tasks.input(0), ScriptedClient([]), "m", None)
    assert len(env.cleaned) == has_state


class Failing(ChatEnv):
    """Raises one thing after another, and notes what its attempts begin with."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__(dataset=[{"question": "?"}])
        self.failures, self.begun = [*failures], []

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> Any:
        state = await self.init_state(input, client, model, sampling_args)
        self.begun.append((client, input["info"], model, sampling_args))
        input["info"] = "written over"
        if self.failures:
            raise self.failures.pop(0)
        return state


def config(env: ChatEnv, rows: Any, **options: Any) -> ClientPlayerConfig:
    inputs = ListedInputs(env.tasks_of("train"), rows)
    return ClientPlayerConfig(
        env, inputs, **{"clients": ["first", "second"], "model": "m", "sampling_args": {"n": 1}, "in_groups": False, **options}
    )


def jobs(config: ClientPlayerConfig) -> list[GroupJob]:
    return [GroupJob(example, range(example.num_rollouts)) for example in config.inputs.examples()]


@pytest.mark.parametrize(
    ("failures", "options", "attempts", "failure"),
    [
        ((), {"max_retries": 2}, 1, None),
        ((InfraError("a"),), {}, 1, None),
        ((InfraError("a"), InvalidModelResponseError("b")), {"max_retries": 2}, 3, None),
        ((InfraError("a"), InfraError("b"), InfraError("c")), {"max_retries": 2}, 3, None),
        ((Error("a"),), {"max_retries": 2}, 1, None),
        ((ValueError("a"),), {"max_retries": 2}, 1, ValueError),
        ((ValueError("a"),), {"max_retries": 2, "strict": True}, 1, ValueError),
    ],
)
async def test_a_rollout_is_played_again_after_a_wait_with_a_task_of_its_own(
    failures: Any, options: dict[str, Any], attempts: int, failure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []
    monkeypatch.setattr(client_player, "seconds_before_retry", lambda attempt: waited.append(attempt) or 0.0)
    env = Failing(*failures)
    of_run = config(env, [{"question": "?", "info": {"of": "the row"}}], **options)
    played = await ClientPlayer(of_run).play(jobs(of_run)[0], 0)
    assert env.begun == [("first", {"of": "the row"}, "m", {"n": 1})] * attempts
    assert waited == [*range(attempts - 1)]
    assert (type(played.failure) if failure else played.failure) is failure
    expected = None if failure or attempts > len(failures) else failures[attempts - 1]
    assert failure or played.state["error"] is expected


@pytest.mark.parametrize(
    ("in_groups", "asked"), [(False, ["first", "second", "first", "second"]), (True, ["first", "first", "second", "second"])]
)
async def test_clients_take_turns_by_rollouts_or_by_groups(in_groups: bool, asked: list[str]) -> None:
    env = Failing()
    of_run = config(env, [{"question": "?", "example_id": id, "info": {}} for id in (0, 0, 1, 1)], in_groups=in_groups)
    player = ClientPlayer(of_run)
    played = [await player.play(group, number) for group in jobs(of_run) for number in group.numbers]
    assert [begun[0] for begun in env.begun] == asked
    assert [(each.number, each.env, each.fingerprint) for each in played] == [(number, env, None) for number in (0, 1, 0, 1)]


async def test_what_is_saved_has_the_fingerprint_of_its_task_as_it_began() -> None:
    of_run = config(Failing(), [{"question": "?", "info": {"of": "the row"}}], is_saved=True)
    (group,) = jobs(of_run)
    assert (await ClientPlayer(of_run).play(group, 0)).fingerprint == fingerprint_of(of_run.inputs.task(group.example, 0))


async def test_a_row_that_cannot_be_read_is_a_rollout_that_failed() -> None:
    of_run = config(Failing(), [{"question": "?"}], is_saved=True)
    played = await ClientPlayer(of_run).play(GroupJob(Example(7, [], 1), range(1)), 0)
    assert (played.number, played.state["example_id"], played.fingerprint) == (0, 7, None)
    assert isinstance(played.failure, IndexError)


async def test_an_attempt_begins_with_the_random_numbers_of_its_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_player, "seconds_before_retry", lambda attempt: 0.0)
    drawn: list[list[int]] = []

    class Drawing(Arcade):
        def setup_state(self, state: State) -> Any:
            drawn.append(state.rng.integers(1000, size=4).tolist())
            if len(drawn) == 1:
                raise InfraError("down")
            return super().setup_state(state)

    for seed, number in ((5, 0), (5, 0), (5, 1), (6, 0)):
        of_run = config(
            Drawing("a", []), [{"question": "?", "example_id": 3}] * 2, seeds=Seeds(seed), max_retries=1, clients=[ScriptedClient(["x"])]
        )
        player = ClientPlayer(of_run)
        await player.play(jobs(of_run)[0], number)
        await player.close()
    assert drawn[0] == drawn[1] == drawn[2]
    assert len({str(numbers) for numbers in drawn}) == 3
