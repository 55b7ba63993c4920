"""A group of environments, each with its own rubric: sums in a box, and words spelled backwards with reasoning."""

import random

import verifiers as vf
from datasets import Dataset
from verifiers.utils.data_utils import BOXED_SYSTEM_PROMPT, extract_boxed_answer


def load_sums(seed: int, num: int) -> vf.Environment:
    rng = random.Random(seed)
    rows = []
    for _ in range(num):
        a, b = rng.randint(2, 9), rng.randint(2, 9)
        rows.append({"question": f"{a} + {b}", "answer": str(a + b), "info": {"terms": [a, b]}})
    parser = vf.MaybeThinkParser(extract_fn=extract_boxed_answer)

    def exact(parser, completion, answer, **kwargs) -> float:
        return 1.0 if (parser.parse_answer(completion) or "") == answer else 0.0

    rubric = vf.Rubric(funcs=[exact, parser.get_format_reward_func()], weights=[1.0, 0.0], parser=parser)
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), system_prompt=BOXED_SYSTEM_PROMPT, parser=parser, rubric=rubric)


def load_words() -> vf.Environment:
    parser = vf.XMLParser(["think", ("word", "answer")], answer_field="word")
    rows = [{"question": f"Spell {word} backwards.", "answer": word[::-1]} for word in ("stone", "level")]

    def overlap(parser, completion, answer) -> float:
        word = parser.parse_answer(completion) or ""
        return sum(a == b for a, b in zip(word, answer, strict=False)) / len(answer)

    form = vf.Rubric(funcs=[parser.get_format_reward_func()], weights=[0.2], parser=parser)
    rubric = vf.RubricGroup(rubrics=[vf.Rubric(funcs=[overlap], parser=parser), form])
    shown = parser.format(think="b, a", word="ba")
    shots = [{"role": "user", "content": "Spell ab backwards."}, {"role": "assistant", "content": shown}]
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), few_shot=shots, parser=parser, rubric=rubric)


def load_environment(seed: int = 1, num_sums: int = 2) -> vf.Environment:
    return vf.EnvGroup(envs=[load_sums(seed, num_sums), load_words()], env_names=["sums", "words"])
