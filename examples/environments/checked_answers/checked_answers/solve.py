"""Ask a model a question, have it check its answer, and print the last one. It knows nothing of rollouts.

usage: python solve.py QUESTION
"""

import json
import os
import sys
import urllib.request


def ask(messages: list[dict[str, str]]) -> str:
    """Return the model's answer to a conversation."""
    body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": messages}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as answer:
        text: str = json.load(answer)["choices"][0]["message"]["content"]
        return text


def main() -> None:
    """Ask, check, print."""
    conversation = [{"role": "user", "content": sys.argv[1]}]
    conversation.append({"role": "assistant", "content": ask(conversation)})
    conversation.append({"role": "user", "content": "Check this, and end with the right number."})
    print(ask(conversation))


if __name__ == "__main__":
    main()
