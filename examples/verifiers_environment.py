"""An environment written for verifiers, evaluated by a real client against a model that is a function behind HTTP."""

import re

from verifiers_compat import install

install()  # from here on, `import verifiers` finds this library

import verifiers as vf  # noqa: E402

from vfgym.model_server import ModelRequest, ModelServer  # noqa: E402


class GuessTheNumber(vf.MultiTurnEnv):
    """Says higher or lower until the number is guessed."""

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: object) -> vf.Messages:
        """Answer the last guess; a right one ends the game."""
        guess, secret = self.parser.parse_answer(messages), int(state["answer"])
        if guess == state["answer"]:
            state["final_env_response"] = [{"role": "user", "content": "Correct!"}]
            return state["final_env_response"]
        return [{"role": "user", "content": "Higher." if guess and int(guess) < secret else "Lower."}]


async def guessed(state: vf.State) -> float:
    """Reward a right guess, the more the sooner it came."""
    return 1.0 / len(state["trajectory"]) if state["final_env_response"] else 0.0


def bisecting(request: ModelRequest) -> str:
    """Answer like a model that halves what is left."""
    low, high = 1, 15
    for asked, told in zip(request.messages[1::2], request.messages[2::2], strict=True):
        guess = int(re.findall(r"\d+", asked.content)[-1])
        low, high = (guess + 1, high) if told.content == "Higher." else (low, guess - 1)
    return f"<guess>{(low + high) // 2}</guess>"


parser = vf.XMLParser(fields=["guess"], answer_field="guess")
rows = [{"question": "Guess my number between 1 and 15.", "answer": str(number)} for number in range(1, 16)]
env = GuessTheNumber(dataset=rows, parser=parser, rubric=vf.Rubric(guessed, parser=parser), max_turns=5)
with ModelServer({"bisecting": bisecting}) as server:
    results = env.evaluate_sync(vf.ClientConfig(api_base_url=server.openai_url), model="bisecting", max_concurrent=8)
print(f"average reward: {results['metadata']['avg_reward']:.3f}")
print(f"turns: {results['metadata']['avg_metrics']['num_turns']:.2f}, errors: {results['metadata']['avg_error']:.0%}")
