"""Playing Nim with opponents, for tests of games for several players."""

from __future__ import annotations

from typing import Any

import vfgym
from tests.wrappers.games.nim import NimEnv
from vfgym.codecs import ActionNotFound
from vfgym.messages import AssistantMessage, Message, content_text


def takes_one(observation: list[Any], info: dict[str, Any]) -> str:
    return "1"


def play(env: vfgym.ChatEnv, answers: list[Any], seed: int | None = 0, **options: Any) -> list[Any]:
    outcomes: list[Any] = [env.reset(seed=seed, options=options or None)]
    for answer in answers:
        outcomes.append(env.step(answer))
        if outcomes[-1].terminated or outcomes[-1].truncated:
            break
    return outcomes


class InBrackets(NimEnv):
    """Nim whose players put their moves into brackets."""

    def move_of(self, message: Message) -> Message:
        text = content_text(message["content"])
        if "[" not in text:
            raise ActionNotFound("Put your move into brackets.")
        return AssistantMessage(text[text.index("[") + 1 : text.index("]")])

    def message_of(self, move: Message) -> Message:
        return AssistantMessage(f"[{move['content']}]")
