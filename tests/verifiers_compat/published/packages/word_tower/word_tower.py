"""Wordle of TextArena, with feedback of its own and a parser for guesses."""

import re

import verifiers as vf
from verifiers.envs.integrations.textarena_env import TextArenaEnv

SYSTEM_PROMPT = "Play Wordle. Put your guess in brackets in <guess> tags."


def feedback(observation: str) -> str:
    """Show what is left of the observation after the last guess."""
    latest = observation.split("[GAME]")[-1].strip()
    return latest if "Feedback:" in latest else observation


def load_environment(num_train_examples: int = 4, num_eval_examples: int = 2, seed: int = 3) -> vf.Environment:
    parser = vf.XMLParser(fields=["guess"], answer_field="guess")

    def found(parser, completion, answer, **kwargs) -> float:
        return 1.0 if parser.parse_answer(completion) == f"[{answer}]" else 0.0

    def turns(completion, **kwargs) -> float:
        return float(sum(message["role"] == "assistant" for message in completion))

    def greens(completion, **kwargs) -> float:
        text = str(completion[-1]["content"]) + str(completion[-2]["content"] if len(completion) > 1 else "")
        return len(re.findall(r"\bG\b", text)) / 5

    rubric = vf.Rubric(funcs=[found, turns, greens, parser.get_format_reward_func()], weights=[1.0, 0.0, 0.0, 0.2], parser=parser)
    return TextArenaEnv(
        game="Wordle-v0",
        num_train_examples=num_train_examples,
        num_eval_examples=num_eval_examples,
        system_prompt=SYSTEM_PROMPT,
        parser=parser,
        rubric=rubric,
        feedback_fn=feedback,
        seed=seed,
    )
