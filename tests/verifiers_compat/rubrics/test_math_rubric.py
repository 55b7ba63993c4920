"""`MathRubric`: mathematics is verified, in any thread."""

from __future__ import annotations

import threading
from typing import Any

import verifiers_compat as vf
from vfgym.testing import ScriptedClient


def test_mathematics_is_verified_in_any_thread() -> None:
    rows = [{"question": "1/2?", "answer": r"\frac{1}{2}"}, {"question": "3?", "answer": "3"}]
    env = vf.SingleTurnEnv(dataset=rows, rubric=vf.MathRubric())
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(env.evaluate_sync(ScriptedClient([r"It is \boxed{0.5}."]), "m")))
    thread.start()
    thread.join()
    env.close()
    assert [output["metrics"]["correct_answer"] for output in found[0]["outputs"]] == [1.0, 0.0]
