"""An environment that writes the whole loop itself, and can be stepped all the same."""

import asyncio
from typing import Any

import vfgym


class Debate(vfgym.ChatEnv):
    """Two drafts are asked for at once; a third message judges them."""

    async def rollout(
        self, input: dict[str, Any], client: vfgym.Client, model: str, sampling_args: dict[str, Any] | None = None
    ) -> vfgym.State:
        """Ask for both sides at once, then for a verdict."""
        state: vfgym.State = await self.init_state(input, client, model, sampling_args)
        sides = [[*state["prompt"], vfgym.UserMessage(f"Argue {side}.")] for side in ("for it", "against it")]
        drafts = await asyncio.gather(*(self.get_model_response(state, side) for side in sides))
        verdict = vfgym.UserMessage("\n".join(["Who is right?", *(draft.message.content for draft in drafts)]))
        final = await self.get_model_response(state, [*state["prompt"], verdict])
        state["completion"] = [verdict, final.message]
        state["is_completed"] = True
        return state


env = Debate(dataset=[{"question": "Tea is better than coffee."}], rubric=vfgym.Rubric(lambda completion: len(completion)))
observation, info = env.reset(seed=0)
for answer in ("It is calm.", "It is weak.", "Both are."):
    print(observation[-1].content, "->", answer)
    observation, reward, terminated, truncated, info = env.step(answer)
print("reward", reward, "terminated", terminated)
