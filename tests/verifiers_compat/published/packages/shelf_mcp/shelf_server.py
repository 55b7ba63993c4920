"""A server of the Model Context Protocol on standard input and output, of the standard library alone."""

import json
import sys

BOOKS = {"Emma": 474, "Dracula": 418}
TOOLS = [
    {
        "name": "pages",
        "description": "Say how many pages a book has.",
        "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
    },
    {
        "name": "search",
        "description": "List the titles that begin with a text.",
        "inputSchema": {"type": "object", "properties": {"prefix": {"type": "string"}}, "required": ["prefix"]},
    },
]


def text(*lines, is_error=False):
    return {"content": [{"type": "text", "text": line} for line in lines], "isError": is_error}


def call(name, arguments):
    if name == "pages":
        title = arguments["title"]
        return text(str(BOOKS[title])) if title in BOOKS else text(f"there is no {title}", is_error=True)
    return text("found:", *(title for title in BOOKS if title.startswith(arguments["prefix"])))


def answer(method, params):
    if method == "initialize":
        server = {"name": "shelf", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
