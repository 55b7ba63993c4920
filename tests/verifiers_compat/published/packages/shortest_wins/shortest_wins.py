"""The shortest right answer of each group gets the reward."""

import verifiers as vf
from datasets import Dataset


def is_right(completion, answer) -> float:
    return float(answer.lower() in completion[-1]["content"].lower())


def shortest_of_the_right(completions: list[vf.Messages], answers: list[str], states: list[vf.State], **kwargs) -> list[float]:
    lengths = [
        len(completion[-1]["content"]) if is_right(completion, answer) else None
        for completion, answer in zip(completions, answers, strict=True)
    ]
    best = min((length for length in lengths if length is not None), default=None)
    for state, length in zip(states, lengths, strict=True):
        state["length"] = length
    return [float(length is not None and length == best) for length in lengths]


def load_environment(penalty: float = 0.0) -> vf.Environment:
    def capitals():
        return Dataset.from_list(
            [
                {"question": "What is the capital of France?", "answer": "Paris"},
                {"question": "What is the capital of Japan?", "answer": "Tokyo"},
            ]
        )

    rubric = vf.Rubric(funcs=[shortest_of_the_right])
    rubric.add_reward_func(is_right, weight=0.5)

    @vf.cleanup
    async def forget(state: vf.State) -> None:
        state["length"] = None

    def wordiness(completion) -> float:
        return float(len(completion[-1]["content"].split()))

    rubric.add_reward_func(wordiness, weight=-penalty)
    return vf.SingleTurnEnv(dataset=capitals, system_prompt="Answer briefly.", rubric=rubric)
