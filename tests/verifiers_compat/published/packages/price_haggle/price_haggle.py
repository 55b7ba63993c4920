"""Bargaining: the policy sells, and a model plays the buyer."""

import os
import re

import verifiers as vf
from openai import AsyncOpenAI

SYSTEM_PROMPT = "You sell one thing. Ask for a price in <price> tags. Do not go below your limit."
BUYER_PROMPT = "You buy a {thing} and pay at most {budget}. Say DEAL if the last price is fine, else say what you would pay."


class HaggleEnv(vf.MultiTurnEnv):
    """The seller (the policy) and the buyer (a model of its own) speak by turns."""

    def __init__(self, buyer: AsyncOpenAI, buyer_model: str, **kwargs):
        super().__init__(**kwargs)
        self.buyer = buyer
        self.buyer_model = buyer_model

    async def setup_state(self, state: vf.State) -> vf.State:
        state = await super().setup_state(state) or state
        info = state["info"]
        state["buyer_messages"] = [{"role": "system", "content": BUYER_PROMPT.format(thing=info["thing"], budget=info["budget"])}]
        state["prices"] = []
        state["deal"] = None
        return state

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs) -> vf.Messages:
        said = messages[-1]["content"]
        price = self.parser.parse_answer([messages[-1]])
        if price is None or not re.fullmatch(r"\d+", price):
            return [{"role": "user", "content": "I did not hear a price."}]
        state["prices"].append(int(price))
        state["buyer_messages"].append({"role": "user", "content": said})
        answer = await self.buyer.chat.completions.create(model=self.buyer_model, messages=state["buyer_messages"])
        text = answer.choices[0].message.content
        state["buyer_messages"].append({"role": "assistant", "content": text})
        if "DEAL" in text:
            state["deal"] = int(price)
            state["final_env_response"] = [{"role": "user", "content": text}]
            return state["final_env_response"]
        return [{"role": "user", "content": text}]

    @vf.stop
    async def gave_it_away(self, state: vf.State) -> bool:
        return bool(state["prices"]) and state["prices"][-1] == 0


def load_environment(
    buyer_model: str = "buyer", buyer_base_url: str = "https://api.openai.com/v1", buyer_key_var: str = "BUYER_KEY", max_turns: int = 6
) -> vf.Environment:
    vf.ensure_keys([buyer_key_var])
    rows = [
        {"question": f"Sell the {thing}. Your limit is {limit}.", "info": {"thing": thing, "limit": limit, "budget": budget}}
        for thing, limit, budget in [("bike", 40, 70), ("lamp", 10, 25)]
    ]
    parser = vf.XMLParser(["price"], answer_field="price")

    def profit(state, info) -> float:
        if state["deal"] is None:
            return 0.0
        return (state["deal"] - info["limit"]) / (info["budget"] - info["limit"])

    def num_prices(state) -> float:
        return float(len(state["prices"]))

    rubric = vf.Rubric(funcs=[profit, num_prices, parser.get_format_reward_func()], weights=[1.0, 0.0, 0.1], parser=parser)
    buyer = AsyncOpenAI(base_url=buyer_base_url, api_key=os.environ[buyer_key_var])
    return HaggleEnv(
        buyer, buyer_model, dataset=rows_as_dataset(rows), system_prompt=SYSTEM_PROMPT, parser=parser, rubric=rubric, max_turns=max_turns
    )


def rows_as_dataset(rows):
    from datasets import Dataset

    return Dataset.from_list(rows)
