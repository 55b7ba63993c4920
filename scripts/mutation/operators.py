"""Operators: the kinds of faults that are planted, and where.

Each is an ``Operator`` of cosmic-ray: it finds places in the syntax tree of a module (of parso) and edits one of them. Those of cosmic-ray
change comparisons, numbers, arithmetic, booleans and loops. Those of this module are faults that went unnoticed in this library: 0 taken
for None, a member or an option left out, what is not closed after an error, an exception that is swallowed. Each has an example, which its
test applies.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice

from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    number_replacer,
    remove_decorator,
    unary_operator_replacement,
    zero_iteration_for_loop,
)
from cosmic_ray.operators.operator import Example, Operator
from parso.python.tree import Name
from parso.tree import BaseNode, NodeOrLeaf

COMPARISONS = {"Lt": "LtE GtE", "LtE": "Lt Gt", "Gt": "GtE LtE", "GtE": "Gt Lt", "Eq": "NotEq", "NotEq": "Eq", "Is": "IsNot", "IsNot": "Is"}
ARITHMETIC = {
    **{"Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul", "FloorDiv": "Mul", "Mod": "FloorDiv", "Pow": "Mul"},
    **{"RShift": "LShift", "LShift": "RShift", "BitOr": "BitAnd", "BitAnd": "BitOr", "BitXor": "BitAnd"},
}
CLOSING_CALLS = frozenset(
    {
        *("aclose", "cancel", "cancel_all", "cleanup", "clear", "close", "discard", "end", "flush", "join", "kill", "killpg", "pop"),
        *("popitem", "release", "remove", "reset", "rmtree", "set", "shutdown", "stop", "terminate", "unlink", "wait", "wait_closed"),
    }
)
"""Functions that end, free or forget something."""

LOGGING = re.compile(r"(gym\.logger|_?log|_?logger|LOGGER|logging|warnings)\.|print\(|_?warn(_once)?\(")
KEPT_DECORATORS = re.compile(
    r"@(functools\.)?(cache|lru_cache|wraps|cached_property)\b|@(property|staticmethod|classmethod|typing\.\w+|overload|override|final"
    r"|abstractmethod|abc\.\w+|(dataclasses\.)?dataclass|(contextlib\.)?(async)?contextmanager|runtime_checkable|\w+\.setter)\b"
)
"""Decorators that a mutant keeps: without them nothing is different but the speed or the types, or nothing runs."""


def code_of(node: NodeOrLeaf) -> str:
    """Return the code of a node, without what stands before it."""
    return str(node.get_code(include_prefix=False))


def children_of(node: NodeOrLeaf | None) -> list[NodeOrLeaf]:
    """Return the children of a node; a leaf has none."""
    return list(node.children) if isinstance(node, BaseNode) else []


def members_of(node: NodeOrLeaf) -> list[NodeOrLeaf]:
    """Return what commas separate in a node, or the node itself."""
    return [child for child in children_of(node) if code_of(child) != ","] if node.type in LISTS else [node]


LISTS = {"arglist", "testlist_comp", "testlist_star_expr", "testlist", "exprlist"}


def is_name(node: NodeOrLeaf) -> bool:
    """Say whether a node is a name or an attribute of one."""
    return node.type in ("name", "atom_expr") and re.fullmatch(r"\w+(\.\w+)*", code_of(node)) is not None


def call_arguments(node: NodeOrLeaf) -> list[NodeOrLeaf]:
    """Return the arguments of a call, if the node is the brackets of one."""
    children = children_of(node)
    return members_of(children[1]) if node.type == "trailer" and code_of(children[0]) == "(" and len(children) == 3 else []


def called_name(node: NodeOrLeaf) -> str:
    """Return the last name of the function that a statement calls (``close`` of ``await self.pipe.close()``), "" if it is no call."""
    children = children_of(node)
    if node.type not in ("atom_expr", "power") or not code_of(children[-1]).startswith("("):
        return ""
    return code_of(children[-2]).lstrip(".")


def is_statement(node: NodeOrLeaf) -> bool:
    """Say whether a node is a statement of its own."""
    return node.parent is not None and node.parent.type == "simple_stmt" and node is node.parent.children[0]


def enclosing(node: NodeOrLeaf, *types: str) -> BaseNode | None:
    """Return the innermost node of some types around a node."""
    return node.search_ancestor(*types)


def parse_keyword(argument: NodeOrLeaf) -> tuple[str, NodeOrLeaf] | None:
    """Return name and value of a keyword argument."""
    children = children_of(argument)
    return (
        (code_of(children[0]), children[2]) if argument.type == "argument" and len(children) == 3 and code_of(children[1]) == "=" else None
    )


class Rewrite(Operator):
    """An operator that puts other code in the place of a node."""

    example: tuple[str, str]
    """Code before and after its first mutation."""

    @abstractmethod
    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Yield each code that may stand in the place of a node."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield the place of the node for each of its rewrites."""
        for _ in self.rewrites(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """Return what stands in the place of the node."""
        return Name(next(islice(self.rewrites(node), index, None)), node.start_pos, prefix=node.get_first_leaf().prefix)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return the example as cosmic-ray's operators do."""
        return (Example(*cls.example),)


class OrToIsNone(Rewrite):
    """Use the default for None only, where it is for all that is false."""

    example = ("limit = given or 10", "limit = (10 if given is None else given)")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite ``x or y`` where it is a value."""
        if node.type == "or_test" and len(node.children) == 3 and not in_condition(node):
            given, _, default = map(code_of, node.children)
            if default not in ("()", "[]", "{}", "set()"):  # what is empty becomes what is empty
                yield f"({default} if {given} is None else {given})"


class IsNoneToOr(Rewrite):
    """Use the default for all that is false (0, "", an empty list), where it is for None only."""

    example = ("limit = 10 if given is None else given", "limit = (given or 10)")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite ``y if x is None else x``, and the same with ``is not None``."""
        if node.type != "test" or len(children := children_of(node)) != 5:
            return
        first, _, condition, _, last = map(code_of, children)
        if condition == f"{last} is None":
            yield f"({last} or {first})"
        elif condition == f"{first} is not None":
            yield f"({first} or {last})"


def in_condition(node: NodeOrLeaf) -> bool:
    """Say whether only the truth of a node matters."""
    parent = node.parent
    while parent is not None and (
        parent.type in ("and_test", "or_test", "not_test") or (parent.type == "atom" and len(parent.children) == 3)
    ):
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type in ("if_stmt", "while_stmt"):
        return node.get_previous_leaf().value in ("if", "elif", "while")  # type: ignore[union-attr]
    return (parent.type == "test" and node is parent.children[2]) or (
        parent.type in ("comp_if", "assert_stmt") and node is parent.children[1]
    )


class TruthToIsNone(Rewrite):
    """Ask whether a value is there, where its truth is asked."""

    example = ("if given: pass", "if (given is not None): pass")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite a name that is a condition, or a part of one."""
        if is_name(node) and in_condition(node) and node.parent.type not in ("trailer", "comparison"):
            if node.parent.type == "not_test":
                yield f"{code_of(node)} is not None"
            else:
                yield f"({code_of(node)} is not None)"


class IsNoneToTruth(Rewrite):
    """Ask whether a value is true, where it is asked whether it is there."""

    example = ("there = given is not None", "there = bool(given)")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite ``x is None`` and ``x is not None``."""
        if node.type == "comparison" and len(node.children) == 3 and code_of(node.children[2]) == "None":
            value, comparison, _ = map(code_of, node.children)
            if comparison == "is":
                yield f"(not ({value}))" if " " in value else f"(not {value})"
            elif comparison.split() == ["is", "not"]:
                yield f"bool({value})"


class NegateMembership(Rewrite):
    """Swap ``in`` and ``not in``."""

    example = ("known = name in names", "known = name not in names")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the operator of a comparison."""
        if node.parent is not None and node.parent.type == "comparison":
            if code_of(node).split() == ["not", "in"]:
                yield "in"
            elif code_of(node) == "in":
                yield "not in"


class DropClosing(Rewrite):
    """Leave out a call that ends, frees or forgets something."""

    example = ("pipe.close()\n", "pass\n")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the statement."""
        if is_statement(node) and called_name(node) in CLOSING_CALLS:
            yield "pass"


class DropCall(Rewrite):
    """Leave out another call that is a statement of its own."""

    example = ("rows.append(row)\n", "pass\n")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the statement."""
        if is_statement(node) and (name := called_name(node)) and name not in CLOSING_CALLS and not code_of(node).startswith("await "):
            yield "pass"


class DropAwait(Rewrite):
    """Leave out what is awaited in a statement of its own."""

    example = ("async def f():\n    await ready(1)\n", "async def f():\n    pass\n")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the statement."""
        if (
            is_statement(node)
            and node.type == "atom_expr"
            and code_of(node.children[0]) == "await"
            and called_name(node) not in CLOSING_CALLS
        ):
            yield "pass"


class SwapArguments(Rewrite):
    """Swap two neighbouring arguments of a call that are names."""

    example = ("copy(source, target)", "copy(target, source)")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the brackets of the call."""
        arguments = call_arguments(node)
        if code_of(node.get_previous_leaf() or node) in ("isinstance", "issubclass", "cast", "getattr", "hasattr", "max", "min"):
            return
        for i in range(len(arguments) - 1):
            if is_name(arguments[i]) and is_name(arguments[i + 1]) and code_of(arguments[i]) != code_of(arguments[i + 1]):
                swapped = [*map(code_of, arguments)]
                swapped[i : i + 2] = reversed(swapped[i : i + 2])
                yield f"({', '.join(swapped)})"


class SwapKeywordValues(Rewrite):
    """Swap the values of two neighbouring keyword arguments of a call."""

    example = ("Copy(source=a, target=b.c)", "Copy(source=b.c, target=a)")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the brackets of the call."""
        arguments = call_arguments(node)
        for i in range(len(arguments) - 1):
            first, second = parse_keyword(arguments[i]), parse_keyword(arguments[i + 1])
            if first and second and is_name(first[1]) and is_name(second[1]) and code_of(first[1]) != code_of(second[1]):
                swapped = [*map(code_of, arguments)]
                swapped[i : i + 2] = f"{first[0]}={code_of(second[1])}", f"{second[0]}={code_of(first[1])}"
                yield f"({', '.join(swapped)})"


class DropKeyword(Rewrite):
    """Leave out a keyword argument that is passed on."""

    example = ("read(file, limit=self.limit)", "read(file)")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the brackets of the call."""
        arguments = call_arguments(node)
        for i, argument in enumerate(arguments):
            keyword = parse_keyword(argument)
            if code_of(argument).startswith("**") or (keyword and is_name(keyword[1])):
                yield f"({', '.join(map(code_of, arguments[:i] + arguments[i + 1 :]))})"


class DropMember(Rewrite):
    """Leave out the last member, or the first, of a list, a tuple, a set or a dict."""

    example = ("names = ('a', 'b')", "names = ('a',)")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the literal with its brackets."""
        if node.type != "atom" or len(children := children_of(node)) != 3:
            return
        opening, content, closing = children
        bracket = code_of(opening)
        if content.type in LISTS - {"arglist"}:
            if any(part.type in ("comp_for", "sync_comp_for") for part in children_of(content)):
                return
            members = [code_of(member) for member in members_of(content)]
        elif content.type == "dictorsetmaker":
            if any(part.type in ("comp_for", "sync_comp_for") for part in children_of(content)):
                return
            members = [""]
            for part in children_of(content):
                if code_of(part) == ",":
                    members.append("")
                else:
                    members[-1] += part.get_code() if members[-1] else code_of(part)
            members = [member for member in members if member]
        elif bracket in "[{" and content.type != "keyword_yield":
            members = [code_of(content)]
        else:
            return
        for kept in [members[:-1], *([members[1:]] if len(members) > 2 else [])]:
            if kept:
                yield f"{bracket}{', '.join(kept)}{',' if bracket == '(' and len(kept) == 1 else ''}{code_of(closing)}"
            else:
                is_set = bracket == "{" and ":" not in members[0] and not members[0].startswith("**")
                yield "set()" if is_set else f"{bracket}{code_of(closing)}"


class AddCache(Rewrite):
    """Keep the first answer of a method that takes nothing but its object."""

    example = (
        "class C:\n    @property\n    def names(self):\n        return [*self._names]",
        "class C:\n    @property\n    @__import__('functools').cache\n    def names(self):\n        return [*self._names]",
    )

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the function, without its decorators."""
        if (
            node.type != "funcdef"
            or node.parent.type.startswith("async")
            or (owner := enclosing(node, "classdef", "funcdef")) is None
            or owner.type != "classdef"
        ):
            return
        code = code_of(node)
        decorators = node.parent.get_code()[: -len(code)] if node.parent.type == "decorated" else ""
        frozen = owner.parent.type == "decorated" and "frozen=True" in owner.parent.get_code(include_prefix=False).partition("class ")[0]
        parameters = [parameter.name.value for parameter in node.get_params()]
        known = not decorators.strip() or decorators.strip() == "@property"
        if parameters == ["self"] and known and not frozen and re.search(r"\breturn\b.*\bself\b", code) and not re.match(r"def __", code):
            yield f"@__import__('functools').cache\n{' ' * node.start_pos[1]}{code}"


class DropReset(Rewrite):
    """Leave out a statement by which an object forgets something: what is kept grows stale."""

    example = ("class C:\n    def change(self):\n        self._seen = None\n", "class C:\n    def change(self):\n        pass\n")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the statement."""
        if not is_statement(node) or (function := enclosing(node, "funcdef")) is None or function.name.value in ("__init__", "__new__"):
            return
        forgets = re.fullmatch(r"self(\.\w+)+ = (None|\[\]|\{\}|set\(\))|del .*", code_of(node)) is not None
        if forgets or called_name(node) == "cache_clear":
            yield "pass"


class SwallowException(Rewrite):
    """Go on after an exception that is raised again, or as another one."""

    example = (
        "try:\n    f()\nexcept KeyError as error:\n    log(error)\n    raise Missing(error)",
        "try:\n    f()\nexcept KeyError as error:\n    pass",
    )

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the block of an ``except``."""
        if node.type == "suite" and node.parent.type == "try_stmt" and re.search(r"^\s*raise\b", code_of(node), re.MULTILINE):
            before = node.parent.children[node.parent.children.index(node) - 2]
            if before.type == "except_clause" or code_of(before) == "except":
                first = node.children[1]
                newline = "\n" if code_of(node).endswith("\n") else ""
                yield f"\n{' ' * first.start_pos[1]}pass{newline}"


class DropRaise(Rewrite):
    """Go on where an exception is raised."""

    example = ("if wrong:\n    raise ValueError(name)\n", "if wrong:\n    pass\n")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the statement."""
        if is_statement(node) and (node.type == "raise_stmt" or code_of(node) == "raise"):
            yield "pass"


class NeverCaught(Rewrite):
    """Catch one kind of exception fewer."""

    example = ("try: f()\nexcept (KeyError, OSError) as e: pass", "try: f()\nexcept (KeyError,) as e: pass")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite what an ``except`` names."""
        if node.parent is None or node.parent.type != "except_clause" or node is not node.parent.children[1]:
            return
        members = members_of(node.children[1]) if node.type == "atom" and len(node.children) == 3 else [node]
        if len(members) == 1:
            yield "()"
        else:
            for i in reversed(range(len(members))):
                yield f"({', '.join(map(code_of, members[:i] + members[i + 1 :]))}{',' if len(members) == 2 else ''})"


class CatchNoCancellation(Rewrite):
    """Catch errors only, where cancellation and the end of the process are caught too."""

    example = ("try: f()\nexcept BaseException: pass", "try: f()\nexcept Exception: pass")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the name."""
        if node.type == "name" and code_of(node) == "BaseException" and enclosing(node, "except_clause"):
            yield "Exception"


class FinallyToElse(Rewrite):
    """Clean up after success only."""

    example = ("try:\n    f()\nfinally:\n    g()", "try:\n    f()\nexcept ():\n    raise\nelse:\n    g()")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the word ``finally``."""
        if code_of(node) == "finally" and node.parent.type == "try_stmt" and "else" not in map(code_of, node.parent.children):
            indent = " " * node.parent.start_pos[1]
            yield f"except ():\n{indent}    raise\n{indent}else"


class ReturnNone(Rewrite):
    """Return nothing."""

    example = ("def f():\n    return read(1)", "def f():\n    return None")

    def rewrites(self, node: NodeOrLeaf) -> Iterator[str]:
        """Rewrite the value of a ``return``."""
        if (
            node.parent is not None
            and node.parent.type == "return_stmt"
            and node is node.parent.children[1]
            and code_of(node) not in ("None", "False")
        ):
            yield "None"


class Number(number_replacer.NumberReplacer):
    """Count one more or one less, but for amounts that nothing but patience depends on."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield the place of a small whole number, twice."""
        if node.type == "number" and re.fullmatch(r"\d{1,3}", code_of(node)):
            statement = enclosing(node, "simple_stmt", "argument", "param") or node
            if not re.search(r"(?i)second|timeout|delay|interval|patience|pause", code_of(statement)[:200]):
                yield from super().mutation_positions(node)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return cosmic-ray's, but for numbers that are not whole."""
        return [example for example in super().examples() if "x = 1" in example.pre_mutation_code and "j" not in example.pre_mutation_code]


class Decorator(remove_decorator.RemoveDecorator):
    """Leave out a decorator that does something."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield the place of such a decorator."""
        if not (node.type == "decorator" and KEPT_DECORATORS.match(code_of(node))):
            yield from super().mutation_positions(node)


OURS: tuple[type[Operator], ...] = (
    *(OrToIsNone, IsNoneToOr, TruthToIsNone, IsNoneToTruth, NegateMembership, DropClosing, DropCall, DropAwait, SwapArguments),
    *(SwapKeywordValues, DropKeyword, DropMember, AddCache, DropReset, SwallowException, DropRaise, NeverCaught, CatchNoCancellation),
    *(FinallyToElse, ReturnNone, Number, Decorator),
)


def _theirs() -> Iterator[type[Operator]]:
    for module, prefix, pairs in (
        (comparison_operator_replacement, "ReplaceComparisonOperator", COMPARISONS),
        (binary_operator_replacement, "ReplaceBinaryOperator", ARITHMETIC),
    ):
        chosen = {f"{prefix}_{old}_{new}" for old, others in pairs.items() for new in others.split()}
        yield from (operator for operator in module.operators() if operator.__name__ in chosen)
    unary = {"ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Invert"}
    yield from (operator for operator in unary_operator_replacement.operators() if operator.__name__ in unary)
    yield from (boolean_replacer.AddNot, boolean_replacer.ReplaceTrueWithFalse, boolean_replacer.ReplaceFalseWithTrue)
    yield from (boolean_replacer.ReplaceAndWithOr, boolean_replacer.ReplaceOrWithAnd)
    yield from (break_continue.ReplaceBreakWithContinue, break_continue.ReplaceContinueWithBreak)
    yield zero_iteration_for_loop.ZeroIterationForLoop


OPERATORS: dict[str, Operator] = {operator.__name__: operator() for operator in (*_theirs(), *OURS)}
"""All that faults are drawn from, by name."""

ARITHMETIC_NODES = {"arith_expr", "term", "power", "factor", "expr", "xor_expr", "and_expr", "shift_expr"}


def is_mutable(node: NodeOrLeaf) -> bool:
    """Say whether a fault at a node could be seen by a test: annotations, ``__all__``, imports and the text of logs are nothing to test."""
    if node.type == "operator" and node.parent.type not in ARITHMETIC_NODES and code_of(node) not in ("in",):
        return False  # the * of a signature, the = of an assignment, brackets
    if node.type == "operator" and code_of(node) == "|" and enclosing(node, "funcdef", "lambdef") is None:
        return False  # a type alias
    child, parent = (node.children[1], node) if node.type in ("if_stmt", "assert_stmt") else (node, node.parent)
    while parent is not None:
        if parent.type in ("tfpdef", "assert_stmt") or parent.type.startswith("import_"):
            return False
        if parent.type == "argument" and code_of(parent).startswith("strict="):
            return False  # of a zip: what cannot happen
        if parent.type == "decorator" and "dataclass(" in code_of(parent):
            return False  # frozen, slots, kw_only
        if parent.type == "annassign" and child is parent.children[1]:
            return False
        if parent.type == "funcdef" and child not in (parent.children[-1], parent.children[2]):
            return False
        if (
            parent.type == "if_stmt"
            and child in parent.children[:4]
            and re.match(r"(typing\.)?TYPE_CHECKING$|__name__\b", code_of(parent.children[1]))
        ):
            return False
        if parent.type == "expr_stmt" and re.match(
            r"(__all__|__slots__)\b|\w+(: \S*TypeAlias)? = (\w+\.)?(TypeVar|ParamSpec|NewType)\(", code_of(parent)
        ):
            return False
        if parent.type in ("atom_expr", "power") and LOGGING.match(code_of(parent)):
            return False
        if parent.type in ("subscriptlist", "trailer") and code_of(parent)[0] == "[" and enclosing(parent, "funcdef") is None:
            return False  # of a generic type
        child, parent = parent, parent.parent
    return not (node.type in ("atom_expr", "power") and LOGGING.match(code_of(node)))
