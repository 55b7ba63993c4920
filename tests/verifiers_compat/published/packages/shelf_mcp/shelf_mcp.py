"""A shelf of books behind a server of the Model Context Protocol."""

import sys
from pathlib import Path

import verifiers as vf
from datasets import Dataset
from verifiers.envs.experimental.mcp_env import MCPEnv

SERVER = Path(__file__).parent / "shelf_server.py"


def load_environment(max_turns: int = 5) -> vf.Environment:
    rows = [
        {"question": "How many pages has Emma?", "answer": "474"},
        {"question": "How many pages has Ulysses?", "answer": "none"},
        {"question": "Which books begin with E?", "answer": "Emma"},
    ]

    def right(completion, answer) -> float:
        return float(answer in (completion[-1]["content"] or ""))

    return MCPEnv(
        mcp_servers=[{"name": "shelf", "command": sys.executable, "args": [str(SERVER)], "description": "Books"}],
        dataset=Dataset.from_list(rows),
        rubric=vf.Rubric(funcs=[right]),
        max_turns=max_turns,
    )
