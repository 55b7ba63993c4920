"""Twenty questions: the environment thinks of a thing, answers, and loses patience."""

import verifiers as vf
from datasets import Dataset

THINGS = {"lamp": {"bright", "small"}, "whale": {"alive", "big"}, "oak": {"alive", "big", "green"}}

SYSTEM_PROMPT = """Find out what the thing is.

Ask in <ask> tags with one word, or guess in <guess> tags."""


class GuessEnv(vf.MultiTurnEnv):
    def __init__(self, patience: int = 2, **kwargs):
        self.patience = patience
        super().__init__(**kwargs)

    async def setup_state(self, state: vf.State) -> vf.State:
        state["asked"], state["silent"] = [], 0
        return state

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs) -> vf.Messages:
        parsed = self.parser.parse(messages[-1]["content"])
        thing = state["answer"]
        if parsed.guess:
            text = "Yes!" if parsed.guess == thing else "No, that is not it."
            state["final_env_response"] = [vf.UserMessage(content=text)]
            return state["final_env_response"]
        if parsed.ask:
            state["asked"].append(parsed.ask)
            return [vf.UserMessage(content="Yes." if parsed.ask in THINGS[thing] else "No.")]
        state["silent"] += 1
        if state["silent"] > self.patience:
            raise vf.ToolParseError("nobody asks anything")
        return [{"role": "user", "content": [{"type": "text", "text": "Ask, or guess."}]}]

    @vf.stop
    async def asked_twice(self, state: vf.State) -> bool:
        return len(state["asked"]) != len(set(state["asked"]))

    @vf.cleanup
    async def count(self, state: vf.State):
        state["num_asked"] = len(state["asked"])


def load_environment(patience: int = 2, max_turns: int = 8) -> vf.Environment:
    parser = vf.XMLParser(["ask", "guess"], answer_field="guess")

    def found(parser, completion, answer) -> float:
        return 1.0 if parser.parse_answer(completion) == answer else 0.0

    def brevity(state) -> float:
        return 1.0 / (1 + state["num_asked"])

    rubric = vf.Rubric(parser=parser)
    rubric.add_reward_func(found)
    rubric.add_reward_func(brevity, weight=0.2)
    rubric.add_metric(parser.get_format_reward_func())
    rows = [{"question": f"I think of a thing with {len(thing)} letters.", "answer": thing} for thing in THINGS]
    return GuessEnv(
        patience, dataset=Dataset.from_list(rows), parser=parser, rubric=rubric, system_prompt=SYSTEM_PROMPT, max_turns=max_turns
    )
