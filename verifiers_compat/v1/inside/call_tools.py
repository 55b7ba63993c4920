"""An MCP server on standard input and output, whose tools are those of the rollout, called over HTTP.

``python3 call_tools.py tools.json``, where the file has the ``url`` at which tools are called, and the definitions of ``tools``.
"""

import json
import sys
import urllib.error
import urllib.request
from typing import Any


def call_tool(url: str, name: str, arguments: dict[str, Any]) -> Any:
    """Return what a tool of the rollout returns.

    Raises:
        RuntimeError: If it fails; the text is what the tool's error says.
    """
    request = urllib.request.Request(f"{url}/{name}", json.dumps(arguments).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            said = json.load(answer)
    except urllib.error.HTTPError as error:
        raise RuntimeError(error.read().decode("utf-8", "replace")) from None
    if "error" in said:
        raise RuntimeError(said["error"])
    return said["result"]


def _answer(settings: dict[str, Any], method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "verifiers-tools", "version": "1"}}
    if method == "tools/list":
        return {"tools": settings["tools"]}
    if method == "tools/call":
        try:
            result, failed = call_tool(settings["url"], params["name"], params.get("arguments") or {}), False
        except RuntimeError as error:
            result, failed = str(error), True
        text = result if isinstance(result, str) else json.dumps(result)
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    if method == "ping":
        return {}
    raise LookupError(f"there is no method {method}")


def main() -> None:
    """Answer until standard input ends."""
    with open(sys.argv[1], encoding="utf-8") as file:
        settings = json.load(file)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:  # a notification
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            answer["result"] = _answer(settings, message["method"], message.get("params") or {})
        except LookupError as error:
            answer["error"] = {"code": -32601, "message": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
