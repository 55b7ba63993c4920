"""A clerk with tools: accounts live in the state, and the model never sees which ledger it writes to."""

import json

import verifiers as vf
from datasets import Dataset


async def transfer(source: str, target: str, amount: float, ledger: dict, audit: list) -> str:
    """Move money from one account to another.

    Args:
        source: Account that pays.
        target: Account that is paid.
        amount: How much, in whole coins.
            Never more than the source has.
    """
    if ledger[source] < amount:
        raise ValueError(f"{source} has only {ledger[source]}")
    ledger[source] -= amount
    ledger[target] += amount
    audit.append([source, target, amount])
    return f"moved {amount} from {source} to {target}"


def balance(account: str, ledger: dict):
    """Say what an account holds."""
    return {"account": account, "coins": ledger[account]}


def close_day(ledger: dict) -> list:
    """Close the day."""
    return sorted(ledger.items())


class BankEnv(vf.StatefulToolEnv):
    """Tools on accounts of one rollout."""

    def __init__(self, hidden=("ledger", "audit"), **kwargs):
        super().__init__(**kwargs)
        for tool in (transfer, balance, close_day):
            self.add_tool(tool, args_to_skip=list(hidden))

    async def setup_state(self, state, **kwargs):
        state["ledger"] = dict(state["info"]["accounts"])
        state["audit"] = []
        return await super().setup_state(state, **kwargs)

    def update_tool_args(self, tool_name, tool_args, messages, state, **kwargs):
        if tool_name == "transfer":
            return {**tool_args, "ledger": state["ledger"], "audit": state["audit"]}
        return {**tool_args, "ledger": state["ledger"]}

    @vf.stop(priority=5)
    async def is_broke(self, state: vf.State) -> bool:
        return "ledger" in state and min(state["ledger"].values()) <= 0


def load_environment(max_turns: int = 6) -> vf.Environment:
    rows = [
        {
            "question": f"Give bob {amount} of anna's coins, then say what anna has.",
            "answer": str(100 - amount),
            "info": json.dumps({"accounts": {"anna": 100.0, "bob": 5.0}}),
        }
        for amount in (30, 100, 250)
    ]

    def says_rest(completion, answer) -> float:
        return float(answer in (completion[-1]["content"] or ""))

    async def moved(state) -> float:
        return float(sum(amount for _, _, amount in state["audit"])) / 100

    def failed_calls(completion) -> float:
        return float(sum("has only" in str(m["content"]) for m in completion if m["role"] == "tool"))

    rubric = vf.Rubric(funcs=[says_rest, moved, failed_calls], weights=[1.0, 0.5, -0.25])
    return BankEnv(dataset=Dataset.from_list(rows), rubric=rubric, max_turns=max_turns, system_prompt="You are a clerk.")
