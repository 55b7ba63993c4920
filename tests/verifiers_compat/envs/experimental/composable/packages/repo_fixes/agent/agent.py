"""Asks the model for a sed expression, applies it, and says how often it asked."""

import json
import os
import subprocess
import urllib.request

base, workdir = os.environ["OPENAI_BASE_URL"], os.environ["AGENT_WORKDIR"]


def ask(messages):
    request = urllib.request.Request(
        base + "/chat/completions",
        json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": messages}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]


with open("/agent/system.txt") as system, open("/agent/prompt.txt") as prompt:
    messages = [{"role": "system", "content": system.read()}, {"role": "user", "content": prompt.read()}]
turns, answer = 0, ""
while answer != "done" and turns < int(os.environ["MAX_TURNS"]):
    turns, answer = turns + 1, ask(messages)
    if answer == "done":
        break
    name = messages[1]["content"].split()[1]
    ran = subprocess.run(["sed", "-i", answer, name], cwd=workdir, capture_output=True, text=True)
    messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": ran.stderr or "ok"}]
os.makedirs(workdir + "/.agent", exist_ok=True)
with open(workdir + "/.agent/run-1.json", "w") as file:
    json.dump({"turns": turns, "finished": answer == "done", "model": "m"}, file)
print("asked", turns)
