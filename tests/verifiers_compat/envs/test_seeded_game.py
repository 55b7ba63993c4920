"""`SeededGameEnv`: tasks that are seeds."""

from __future__ import annotations

from typing import Any

import verifiers_compat as vf


class Score:
    """A game that ends with its second move and shows what was scored."""

    def reset(self, seed: int) -> Any:
        self.moves, self.seed = 0, seed
        return seed, {}

    def step(self, action: str) -> Any:
        self.moves += 1
        return self.moves, 1.0, self.moves == 2, False, {}


def test_rows_of_games_are_numbered_like_those_of_any_dataset() -> None:
    env = vf.GymEnv(Score, num_train_episodes=3, num_eval_episodes=2, seed=5, system_prompt="Play.")
    train, evaluation = env.get_dataset(), env.get_eval_dataset()
    assert (train["example_id"][:], train["answer"][:]) == ([0, 1, 2], ["5", "6", "7"])
    assert (evaluation["example_id"][:], evaluation["answer"][:]) == ([0, 1], ["8", "9"])
    assert train[1]["prompt"] == [{"role": "system", "content": "Play."}, {"role": "user", "content": "6"}]
    assert [env.reset(seed=seed)[1]["example_id"] for seed in (6, 8)] == [1, -1]
    env.close()
