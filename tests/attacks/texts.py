"""Texts that degenerate models, hostile programs and broken files consist of: runs, repeated keywords and nesting, of any length."""

from __future__ import annotations

import string
from collections.abc import Iterator

CHARACTERS = (
    *string.printable,
    "\x00\x1b\x85\xa0",
    "e\u0301",  # with a combining accent
    "\u0301\u05d0\u0661\u4e00\uff11\u2212\u2022\u2028\u202e\u3000\U0001f600",
    "\ud800\udc00",  # halves of surrogate pairs
)

KEYWORDS = (
    *("<action>", "</action>", "<action>left", "<action></action>", "<answer>", "<move><answer>", "<tool_call>{", '<tool_call>{"a":1}'),
    *("<think>", "</think>", "<think></think>", "<reasoning>\n", "<|a|>", "<|", "<|a|> ", "</s>", "</s>\n", "<", "</", "<!--", "```"),
    *("``` ", "```\n", "\n```", "```a", "```a\n", "```\n```\n", "``", "`a", " ```a\n ", "~~~\n", "'''\n", "\\boxed{", "\\boxed{}"),
    *("\\boxed {", "\\boxed", "-\\boxed{1", "\\boxed{\\text{", "\\text{", "\\text", "\\mathaaa ", "\\{", "\\_", "\\frac{1}", "[", "[0"),
    *("[0,", "[]", "[]\n", "[[]", "[a]", "[a", "[x] ", "][", "{", '{"a":', '{"a":[', "{'a':", '{"action":', '{"action": {', "{a: ", "{}"),
    *("{}\n", '{"":""},', '{"name":"act","arguments":', "(", "()", "()\n", "a(", "act(", "x(\n", "a()", "a(b) ", "(a) ", " (", ") "),
    *("f(x)\n", '"', '"a', '"a"', '\\"', '"\\', "'a'", "'a", "''", "\\'", '",', '"[', "\u201c\u201d", "\\", "\\\\", "\\\\a", "\\a", "\\n"),
    *("\\x41", "\\u0041", "\\u", "%", "%25", "%41", "%25%", "&", "&amp;", "&amp;amp;", "&#65;", "&#x0", "/", "/a", "/ a", "/a ", "//"),
    *("a/b ", "/a.b", "/ ", "+/ ", "\\/", "C:\\", "C:/a ", "~/a", "./a", "…/", "http://?", "http://", "://", "://a", "a://", "a://b?"),
    *("?a=", "?a=b", "?", "&a=b", "=", "a=", "a=b;", "@", "a@", "://a@", "://a:b@", "#", "data:", "data: {}\n\n"),
    *("data:image/png;base64,", "event: a\n", "data: [DONE]\n", "Action:", "Action: ", "Action: a\n", "Action:\n", "**Action:** ", "> "),
    *(">> ", "> Action", "my final ", "the best action ", "1. ", "1) Action: ", "* ", "- ", "- a\n", "* a\n", "**", "__", "*_", "_a_"),
    *("**a**", "# ", "## a\n", "####", "#### 1\n", "---\n", "|a|b|\n", "| ", "0 (left)", "0 (", "(left", "left ", "left\n", "left, "),
    *("no_op ", "a-", "a-b-", "a_b", "a ", "a\n", " a", "\na", "a.", ". ", "...", "0.", ".0", "1e", "1e5", "1,", "1 ", "1 2", "1\n", "-1"),
    *("+-", "--", "- ", "inf", "nan", "-inf ", "1/2", "0x", "1_", "1;", "999,", "\u22121", "a,", "a, ", "a:", "a: ", "a;", ";", ",", ", "),
    *(":", ": ", "true", "null,", "None ", "\n\n", "\n\n ", " \n", "\t\n", "\r\n", "\n\r", " \t", "a\n\n", "\n  a", "    a\n", "\x1b["),
    *("\x1b[1m", "\x1b[31;", "\x1b[0;1;m", "\x1b]", '<invoke name="act">', '<parameter name="action">', "<arg_key>a</arg_key><arg_value>"),
    *("<|channel|>analysis<|message|>", "[THINK]", "[ACTION]", "[/action]", "left because ", "left, no ", "no, "),
    *("Wait, <action>a</action>", "I is *", "Action - a ", "\u52a8\u4f5c\uff1a", "\u27a1\ufe0f", "Player 1 wins", "play ", "/say "),
    *("/call ", "Bearer ", "sk-", "token=", "api_key: ", "Traceback ", 'File "/a/b", line 1\n', "at 0x1 "),
)

BRACKETS = (
    *("[]", "{}", "()", "<>", '""', "''"),
    *(("<action>", "</action>"), ("<think>", "</think>"), ("<answer>", "</answer>"), ("<a>", "</a>"), ("\\boxed{", "}"), ("\\text{", "}")),
    *(
        *(('{"a":', "}"), ('{"action":', "}"), ("[[", "]]"), ("[{", "}]"), ("({[", "]})"), ("a(", ")"), ("```\n", "\n```"), ("(a ", ")")),
        ("{a: ", "}"),
    ),
    *(('{"arguments": "{', '}"}'), ("**", "**"), ("- ", "\n"), ('"\\', '\\""'), ("[1,", "]"), ('{"a":[', "]}")),
)


def texts(length: int) -> Iterator[tuple[str, str]]:
    """Give all texts of about a length in characters, each with its name."""
    for unit in dict.fromkeys(["".join(CHARACTERS[:0]), *"".join(CHARACTERS), *KEYWORDS]):
        if not unit:
            continue
        run = unit * (length // len(unit))
        yield f"{unit!r} repeated", run
        yield f"{unit!r} repeated, then x", f"{run}x"
        yield f"x, then {unit!r} repeated", f"x{run}"
    for opening, closing in BRACKETS:
        count = length // (len(opening) + len(closing))
        yield f"{opening!r} nested in {closing!r}", opening * count + closing * count
        yield f"{opening!r} nested around a value", f"{opening * count}1{closing * count}"
        yield f"{opening!r} unclosed around a value", f"{opening * count}1{closing * (count // 2)}"
    for before in (
        *("<action>", "Action: ", "```\n", "\\boxed{", "{", '{"action": ', "[", "(", '"', "'", "<think>", "http://a?", "http://", "/"),
        "act(",
    ):
        for unit in ("a", " ", "\n", "\\", "0", '"', "[", "{", "a ", "a\n", ",", "a,", "1, ", "_", "*", "?", "@", "%25", "/a", "x "):
            yield f"{before!r}, then {unit!r} repeated", before + unit * (length // len(unit))
