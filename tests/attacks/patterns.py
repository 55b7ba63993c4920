"""Which regular expressions can take more than linear time: an analysis of the pattern, since no count of Python's sees all of their steps.

A backtracking matcher takes quadratic time or worse where a text can be divided in many ways among parts of a pattern and then fails. In
the automaton of the pattern there are then two different states p and q and a word that leads from p to p, from p to q and from q to q (a
polynomial degree of ambiguity, `Weideman et al. 2016 <https://arxiv.org/abs/1405.5599>`_); two ways from p to p make it exponential. A
search begins anywhere, which is one more loop over any character before the pattern: so ``\\s*x`` is linear in `re.match` and quadratic in
`re.search`. What never fails after q, such as ``.*?(?:b|\\Z)``, is not counted.

The analysis knows what stands directly before and after a place (anchors, assertions of one character), and that possessive repeats give
nothing back. Bounded repeats are a constant factor.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_SAMPLES = [
    *map(chr, range(128)),
    "\x85",
    "\xa0",
    "\xe9",
    "\u0301",
    "\u05d0",
    "\u0661",
    "\u1680",
    "\u2000",
    "\u2028",
    "\u3000",
    "\u4e00",
    "\uff1a",
    "\U0001f600",
]
_COPIES = 2
"""Copies of a part that repeats a bounded number of times."""
_MOST_SETS = 2000
_BEGIN, _END = "begin", "end"
Side = str
Condition = Callable[[Side, Side], bool]


class _Edge(NamedTuple):
    target: int
    takes: frozenset[str] | None
    """Characters, or None where nothing is taken."""
    condition: Condition | None


class Automaton:
    """The automaton of a pattern, over the characters that it tells apart."""

    def __init__(self, pattern: re.Pattern[str], *, is_searched: bool, is_full: bool = False) -> None:
        self.flags = pattern.flags
        self.is_full = is_full
        tree = _parser.parse(pattern.pattern, pattern.flags)
        self._groups: dict[int, Any] = {}
        leaves = list(self._leaves(tree))
        samples = {*_SAMPLES, *(chr(code) for code in _codes(tree))}
        kinds: dict[tuple[bool, ...], str] = {}
        for sample in sorted(samples):
            key = (sample == "\n", *(sample in self._set(leaf, frozenset(samples)) for leaf in leaves))
            kinds.setdefault(key, sample)
        self.alphabet = frozenset(kinds.values())
        self._sides: list[frozenset[str]] = []
        """Sets that what stands before a place is looked for in."""
        self.edges: list[list[_Edge]] = []
        self.start = self._new()
        begin = self._new()
        if is_searched:
            self._link(self.start, self.start, self.alphabet)
        self._link(self.start, begin)
        self.accept = self._build(tree, begin)
        known: dict[tuple[bool, ...], str] = {}
        self._side = {each: known.setdefault(tuple(each in side for side in self._sides), each) for each in sorted(self.alphabet)}
        """For each character the first one that looks the same to what comes after it."""

    # What a pattern consists of

    def _leaves(self, tree: Any) -> Iterator[tuple[Any, Any]]:
        for op, value in tree:
            if op in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN):
                yield op, value
            for part in _parts(op, value):
                yield from self._leaves(part)

    def _set(self, leaf: tuple[Any, Any], samples: frozenset[str] | None = None) -> frozenset[str]:
        key = repr(leaf), samples is None
        if key not in (known := self.__dict__.setdefault("_known_sets", {})):
            state = _parser.State()
            state.flags = self.flags
            compiled = _compiler.compile(_parser.SubPattern(state, [leaf]), self.flags & ~re.VERBOSE)
            known[key] = frozenset(each for each in (samples or self.alphabet) if compiled.fullmatch(each))
        return known[key]

    def _new(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def _link(self, source: int, target: int, takes: frozenset[str] | None = None, condition: Condition | None = None) -> None:
        self.edges[source].append(_Edge(target, takes, condition))

    def _build(self, tree: Any, source: int) -> int:
        for op, value in tree:
            source = self._build_one(op, value, source)
        return source

    def _build_one(self, op: Any, value: Any, source: int) -> int:
        target = self._new()
        if op in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN):
            self._link(source, target, self._set((op, value)))
        elif op is _constants.BRANCH:
            for part in value[1]:
                self._link(self._build(part, source_of := self._new()), target)
                self._link(source, source_of)
        elif op is _constants.SUBPATTERN:
            self._groups[value[0]] = value[3]
            self._link(self._build(value[3], source), target)
        elif op is _constants.ATOMIC_GROUP:
            self._link(self._build(value, source), target)
        elif op is _constants.GROUPREF:
            self._link(self._build(self._groups[value], source), target)
        elif op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            self._repeat(op, *value, source, target)
        elif op in (_constants.AT, _constants.ASSERT, _constants.ASSERT_NOT):
            self._link(source, target, None, self._condition(op, value))
        else:
            raise NotImplementedError(f"{op} in a pattern")
        return target

    def _repeat(self, op: Any, low: int, high: Any, part: Any, source: int, target: int) -> None:
        leave: Condition | None = None
        for _ in range(min(low, _COPIES)):
            source = self._build(part, source)
        if high is _constants.MAXREPEAT:
            loop = self._new()
            self._link(source, loop)
            begin = self._new()
            self._link(loop, begin)
            self._link(self._build(part, begin), loop)
            if op is _constants.POSSESSIVE_REPEAT:
                first = self._first(begin)
                leave = lambda before, after: after not in first  # noqa: E731
            self._link(loop, target, None, leave)
            return
        self._link(source, target)
        for _ in range(min(high - low, _COPIES)):
            source = self._build(part, source)
            self._link(source, target)

    def _first(self, state: int) -> frozenset[str]:
        seen, waiting, found = {state}, [state], set()
        while waiting:
            for edge in self.edges[waiting.pop()]:
                if edge.takes is not None:
                    found |= edge.takes
                elif edge.target not in seen:
                    seen.add(edge.target)
                    waiting.append(edge.target)
        return frozenset(found)

    def _condition(self, op: Any, value: Any) -> Condition | None:
        if op is _constants.AT:
            is_multiline = self.flags & re.MULTILINE
            if value is _constants.AT_BEGINNING_STRING or (value is _constants.AT_BEGINNING and not is_multiline):
                return lambda before, after: before == _BEGIN
            if value is _constants.AT_BEGINNING:
                self._sides.append(frozenset("\n"))
                return lambda before, after: before in (_BEGIN, "\n")
            if value is _constants.AT_END_STRING:
                return lambda before, after: after == _END
            if value is _constants.AT_END:
                return lambda before, after: after in (_END, "\n")
            return None
        direction, part = value
        is_wanted = op is _constants.ASSERT
        if len(part) > 1 and is_wanted and direction < 0:
            part = part[-1:]  # of what has to stand before, the last character
        if len(part) != 1 or part[0][0] not in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN):
            return None
        taken = self._set(part[0])
        if direction < 0:
            self._sides.append(taken)
            return lambda before, after: (before in taken) == is_wanted
        return lambda before, after: (after in taken) == is_wanted

    # How it moves

    @cache  # noqa: B019 -- an automaton lives as long as one analysis
    def _ways(self, state: int, before: Side, after: Side) -> dict[int, int]:
        """Return in how many ways states are reached without a character; at most two are counted."""
        ways: dict[int, int] = {}

        def walk(at: int, path: frozenset[tuple[int, int]]) -> None:
            ways[at] = min(2, ways.get(at, 0) + 1)
            for number, edge in enumerate(self.edges[at]):
                if edge.takes is None and (at, number) not in path and (edge.condition is None or edge.condition(before, after)):
                    walk(edge.target, path | {(at, number)})

        walk(state, frozenset())
        return ways

    @cache  # noqa: B019 -- an automaton lives as long as one analysis
    def moves(self, node: tuple[int, Side], character: str) -> dict[tuple[int, Side], int]:
        """Return the nodes after a character, and in how many ways (at most two are counted) each is reached."""
        found: dict[tuple[int, Side], int] = {}
        for state, ways in self._ways(node[0], node[1], character).items():
            for edge in self.edges[state]:
                if edge.takes is not None and character in edge.takes:
                    after = (edge.target, self._side[character])
                    found[after] = min(2, found.get(after, 0) + ways)
        return found

    def accepts_at(self, node: tuple[int, Side], after: Side) -> bool:
        """Say whether the pattern ends at a node, with what follows."""
        return (not self.is_full or after == _END) and self.accept in self._ways(node[0], node[1], after)

    def nodes(self) -> set[tuple[int, Side]]:
        """Return all nodes that can be reached."""
        first = (self.start, _BEGIN)
        seen, waiting = {first}, [first]
        while waiting:
            node = waiting.pop()
            for character in self.alphabet:
                for after in self.moves(node, character):
                    if after not in seen:
                        seen.add(after)
                        waiting.append(after)
        return seen

    def can_fail_after(self, node: tuple[int, Side]) -> bool:
        """Say whether there is a text after a node with which the pattern does not match."""
        first = frozenset([node])
        seen, waiting = {first}, deque([first])
        while waiting:
            nodes = waiting.popleft()
            if not any(self.accepts_at(each, _END) for each in nodes):
                return True
            for character in self.alphabet:
                if any(self.accepts_at(each, character) for each in nodes):
                    continue
                following = frozenset(after for each in nodes for after in self.moves(each, character))
                if following not in seen:
                    if len(seen) > _MOST_SETS:
                        return True
                    seen.add(following)
                    waiting.append(following)
        return False


def superlinear_part(pattern: re.Pattern[str], *, is_searched: bool = True, is_full: bool = False) -> str | None:
    """Return a run that makes a pattern take more than linear time, in words; None where there is none."""
    automaton = Automaton(pattern, is_searched=is_searched, is_full=is_full)
    nodes = automaton.nodes()
    component = _components(automaton, nodes)
    loops = sorted((node for node in nodes if component[node] is not None), key=repr)
    for node in loops:
        word = _doubled(automaton, node, component)
        if word is not None and automaton.can_fail_after(node):
            return f"exponential over {word!r}"
    for first in loops:
        for second in loops:
            # The same state after another character is no other way to divide the text.
            if first[0] == second[0] and component[first] == component[second]:
                continue
            word = _shared_word(automaton, first, second, component)
            if word is not None and automaton.can_fail_after(second):
                return f"polynomial over {word!r}"
    return None


Node = tuple[int, Side]


def _doubled(automaton: Automaton, node: Node, component: dict[Node, Any]) -> str | None:
    """Return a word that leads from a node to itself in two ways."""
    start = (node, node, False)
    seen, waiting = {start}, deque([(start, "")])
    while waiting:
        (one, other, is_split), word = waiting.popleft()
        for character in automaton.alphabet:
            for after, ways in automaton.moves(one, character).items():
                for after_other in automaton.moves(other, character):
                    if component[after] != component[node] or component[after_other] != component[node]:
                        continue
                    split = is_split or after != after_other or ways > 1
                    following = (after, after_other, split)
                    if after == node == after_other and split:
                        return word + character
                    if following not in seen:
                        seen.add(following)
                        waiting.append((following, word + character))
    return None


def _shared_word(automaton: Automaton, first: Node, second: Node, component: dict[Node, Any]) -> str | None:
    """Return a word that leads from the first node to itself and to the second, and from the second to itself."""
    start = (first, first, second)
    seen, waiting = {start}, deque([(start, "")])
    while waiting:
        (stays, crosses, loops), word = waiting.popleft()
        for character in automaton.alphabet:
            staying = [after for after in automaton.moves(stays, character) if component[after] == component[first]]
            looping = [after for after in automaton.moves(loops, character) if component[after] == component[second]]
            if not staying or not looping:
                continue
            for crossing in automaton.moves(crosses, character):
                for one in staying:
                    for other in looping:
                        following = (one, crossing, other)
                        if following == (first, second, second):
                            return word + character
                        if following not in seen:
                            seen.add(following)
                            waiting.append((following, word + character))
    return None


def _components(automaton: Automaton, nodes: set[Node]) -> dict[Node, Any]:
    """Return which cycle each node is in, None for those in none (Tarjan's strongly connected components, without recursion)."""
    following = {node: [after for character in automaton.alphabet for after in automaton.moves(node, character)] for node in nodes}
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    open_nodes: list[Node] = []
    is_open: set[Node] = set()
    found: dict[Node, Any] = {}
    for root in nodes:
        if root in index:
            continue
        stack = [(root, iter(following[root]))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        is_open.add(root)
        while stack:
            node, rest = stack[-1]
            for after in rest:
                if after not in index:
                    index[after] = low[after] = len(index)
                    open_nodes.append(after)
                    is_open.add(after)
                    stack.append((after, iter(following[after])))
                    break
                if after in is_open:
                    low[node] = min(low[node], index[after])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[node])
                if low[node] == index[node]:
                    members = []
                    while True:
                        member = open_nodes.pop()
                        is_open.discard(member)
                        members.append(member)
                        if member == node:
                            break
                    is_cycle = len(members) > 1 or node in following[node]
                    found.update(dict.fromkeys(members, index[node] if is_cycle else None))
    return found


def _parts(op: Any, value: Any) -> Iterator[Any]:
    if op is _constants.BRANCH:
        yield from value[1]
    elif op is _constants.SUBPATTERN:
        yield value[3]
    elif op is _constants.ATOMIC_GROUP:
        yield value
    elif op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        yield value[2]
    elif op in (_constants.ASSERT, _constants.ASSERT_NOT):
        yield value[1]


def _codes(tree: Any) -> Iterator[int]:
    """Give the code points of the characters and ends of ranges in a pattern."""
    for op, value in tree:
        if op in (_constants.LITERAL, _constants.NOT_LITERAL):
            yield value
        elif op is _constants.IN:
            for kind, item in value:
                if kind is _constants.LITERAL:
                    yield item
                elif kind is _constants.RANGE:
                    yield from item
        for part in _parts(op, value):
            yield from _codes(part)
