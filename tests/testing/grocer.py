"""An environment as an author writes one with the guides alone: tools that work on the episode's own prices, a rubric, an oracle."""

from __future__ import annotations

from typing import Any, Literal

import vfgym

STALLS = ("left", "right")
ROWS = [{"question": f"Buy {amount} apples at the cheaper stall, then say what you paid.", "amount": amount} for amount in (2, 3, 5, 7)]


def bought(state: vfgym.State, amount: int) -> float:
    """Whether the apples were bought at the cheaper stall, no more and no less."""
    cheaper = min(STALLS, key=lambda stall: state["prices"][stall])
    return float(state["basket"] == [(cheaper, amount)])


def told(completion: list[Any], state: vfgym.State, amount: int, parser: vfgym.Parser) -> float:
    """Whether the last answer says what they cost."""
    return float(str(amount * min(state["prices"].values())) in (parser.parse_answer(completion) or "").split())


class Grocer(vfgym.StatefulToolEnv):
    """Two stalls sell apples; their prices are drawn anew for each episode."""

    def __init__(self, *reward_funcs: Any, **kwargs: Any) -> None:
        rubric = vfgym.Rubric([bought, told, *reward_funcs], weights=[1.0, 0.5, *(0.25 for _ in reward_funcs)])
        super().__init__(dataset=ROWS, rubric=rubric, failure_reward=0.0, max_turns=4, **kwargs)
        self.add_tool(self.price, args_to_skip=["prices"])
        self.add_tool(self.buy, args_to_skip=["basket"])

    def price(self, stall: Literal["left", "right"], prices: dict[str, int]) -> int:
        """Ask for the price of an apple.

        Args:
            stall: Whose price.
        """
        return prices[stall]

    def buy(self, stall: Literal["left", "right"], amount: int, basket: list[Any]) -> str:
        """Buy apples.

        Args:
            stall: Where to buy them.
            amount: How many.
        """
        basket.append((stall, amount))
        return f"You have {amount} more apples."

    def setup_state(self, state: vfgym.State) -> Any:
        first, second = (int(price) for price in state.rng.choice(range(2, 9), size=2, replace=False))
        state["prices"] = {"left": first, "right": second}
        state["basket"] = []
        return super().setup_state(state)

    def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: vfgym.State, **kwargs: Any) -> Any:
        name = "prices" if tool_name == "price" else "basket"
        return {**tool_args, name: state[name]}

    def oracle(self, state: vfgym.State) -> Any:
        cheaper = min(STALLS, key=lambda stall: state["prices"][stall])
        amount = state["input"]["amount"]
        if not state["trajectory"]:
            return vfgym.AssistantMessage(tool_calls=[vfgym.ToolCall("1", "buy", f'{{"stall": "{cheaper}", "amount": {amount}}}')])
        return f"I paid {amount * state['prices'][cheaper]} ."
