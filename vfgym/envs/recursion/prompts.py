"""What a recursive model is told of its REPL, before the text of its task."""

from __future__ import annotations

import json
from collections.abc import Sequence

from vfgym.messages import Message, MessageTypes
from vfgym.tools import Tool

_HOW_TO_ANSWER = {
    "python": (
        'The dict `answer` holds your answer: put it into `answer["content"]`, and set `answer["ready"] = True` when it is final,'
        " which ends the task."
    ),
    "bash": (
        "The variable `ANSWER_CONTENT` holds your answer: `export ANSWER_CONTENT=...`, and `export ANSWER_READY=1` when it is final, which"
        " ends the task."
    ),
}
_HOW_TO_ASK = {
    "python": "`llm_batch([prompt, ...])` asks fresh models, one for each prompt, all at once, and returns the list of their answers.",
    "bash": (
        '`llm_batch "prompt 1" "prompt 2"` asks fresh models, one for each prompt, all at once, and prints the JSON list of their answers.'
        ' `llm_batch --json \'{"prompts": ["..."]}\'` does so, too, and takes the same object on standard input.'
    ),
}
_HOW_TO_CALL = {
    "python": "These functions of the REPL run outside of it:",
    "bash": (
        "These commands run outside of the REPL. `NAME ARGUMENT ...` reads each argument as JSON if it is JSON;"
        " `NAME --json '{\"ARGUMENT\": VALUE}'` takes them by name, as does the same object on standard input."
        " A result that is not text is printed as JSON:"
    ),
}


def describe_repl(language: str, sub_tools: Sequence[Tool] | None, root_tools: Sequence[Tool]) -> str:
    """Return what a root model is told of its REPL.

    Args:
        language: ``bash`` or ``python``.
        sub_tools: What the models can call that are asked from inside; None if none can be asked.
        root_tools: What else can be called from inside.
    """
    name = {"python": "Python", "bash": "Bash"}[language]
    parts = [
        f"You have a {name} REPL, which keeps its state, behind the tool `call_{language}_repl`. Work on the task there, piece by piece:"
        " what the REPL prints is cut where it is long.",
        _HOW_TO_ANSWER[language],
    ]
    if sub_tools is not None:
        parts.append(f"{_HOW_TO_ASK[language]} They see nothing but their prompt. Use this for parts of the task.")
    if sub_tools:
        parts.append("They can call tools by themselves:\n" + "\n".join(map(_describe, sub_tools)))
    if root_tools:
        parts.append(_HOW_TO_CALL[language] + "\n" + "\n".join(map(_describe, root_tools)))
    return "\n\n".join(parts)


def describe_context(language: str, file: str | None) -> str:
    """Return what a root model is told of its context: a file or, as ``.``, what is in its working directory."""
    if file is None:
        return ""
    place = "the files of the working directory" if file == "." else f"the file `{file}` of the working directory"
    if language == "bash":
        return f"The context of the task is {place}."
    kind = "a `pathlib.Path` of that folder" if file == "." else "a text" if file.endswith(".txt") else "what that JSON says"
    return f"The context of the task is in {place}, and the variable `context` is {kind}."


def insert_instructions(messages: Sequence[Message], instructions: str, types: MessageTypes) -> list[Message]:
    """Return a prompt with instructions before the text of its first message that is a user's; as one of their own if none is."""
    for place, message in enumerate(messages):
        if message["role"] in ("user", "text"):
            content = message["content"]
            text = f"{instructions}\n\n{content}"
            parts = text if isinstance(content, str) else [{"type": "text", "text": instructions}, *content]
            return [*messages[:place], types["user"](parts), *messages[place + 1 :]]
    return [*messages, types["user"](instructions)]


def _describe(tool: Tool) -> str:
    arguments = json.dumps(tool.parameters.get("properties", {}))
    return f"- `{tool.name}`: {tool.description} Arguments: {arguments}"
