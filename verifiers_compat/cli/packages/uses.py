"""What modules use: names of verifiers, environment variables and data sets, read from their syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from verifiers_compat.cli.packages.imports import Source, find_imports, walk

PEER = "verifiers"

_KEY = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*_(KEY|TOKEN)")
"""A text that names an environment variable with a secret, such as the default of an argument ``api_key_var``."""
_VARIABLES = frozenset({"os.getenv", "os.environ", "os.environ.get", "verifiers.ensure_keys", "verifiers.utils.config_utils.ensure_keys"})
_LOADERS = frozenset({"datasets.load_dataset", "huggingface_hub.snapshot_download", "huggingface_hub.hf_hub_download"})
_EXAMPLES = frozenset({"verifiers.load_example_dataset", "verifiers.utils.data_utils.load_example_dataset"})
_FILE_FORMATS = frozenset({"arrow", "csv", "imagefolder", "json", "pandas", "parquet", "text"})
"""Names by which `load_dataset` reads files."""


@dataclass(frozen=True)
class Use:
    """A place where something is used."""

    path: str
    """Dotted path of the name, as the module's imports make it."""
    file: str
    line: int
    is_optional: bool = False
    keywords: tuple[str, ...] = ()
    """Keyword arguments that it is called with here."""

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class OwnClass:
    """A class of the package."""

    path: str
    bases: tuple[str, ...]
    """Dotted paths of its bases, as far as they have one."""
    methods: tuple[Use, ...]
    """What it defines: the path is the method's name."""
    inherited: tuple[Use, ...]
    """What it asks ``super()`` for: the path is the attribute's name."""


@dataclass(frozen=True)
class Uses:
    """What a package uses."""

    names: tuple[Use, ...]
    """Names of verifiers: their paths begin with it."""
    calls: tuple[Use, ...]
    """What is called with keyword arguments, as far as it has a path."""
    classes: tuple[OwnClass, ...]
    variables: tuple[Use, ...]
    """Environment variables: the path is the name."""
    datasets: tuple[Use, ...]
    """Data sets that come from the network: the path is the name, empty where it is chosen when the package runs."""


def find_uses(sources: Sequence[Source]) -> Uses:
    """Return what the modules of a package use."""
    readers = [_Reader(source) for source in sources]
    return Uses(
        names=tuple(use for each in readers for use in each.find_names()),
        calls=tuple(use for each in readers for use in each.find_calls()),
        classes=tuple(found for each in readers for found in each.find_classes()),
        variables=tuple(use for each in readers for use in each.find_variables()),
        datasets=tuple(use for each in readers for use in each.find_datasets()),
    )


class _Reader:
    """Reads one module, whose imports and simple assignments say what its names stand for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._imports = list(find_imports(source))
        self._nodes = list(walk(source.tree))
        self._targets = {each.bound: each.target for each in self._imports}
        self._targets |= {
            node.name: f"{source.module}.{node.name}" for node, _ in self._nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)
        }
        self._texts: dict[str, str] = {}
        for node, _ in self._nodes:
            self._note_values(node)

    def _note_values(self, node: ast.AST) -> None:
        """Remember what a simple assignment gives a name, and the texts that arguments have as defaults."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            path = self._path(node.value)
            if path is not None:
                self._targets[node.targets[0].id] = path
            self._note_text(node.targets[0].id, node.value)
        elif isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            for argument, default in zip(reversed(positional), reversed(node.defaults), strict=False):
                self._note_text(argument.arg, default)
            for argument, given in zip(node.kwonlyargs, node.kw_defaults, strict=True):
                self._note_text(argument.arg, given)

    def _note_text(self, name: str, value: ast.AST | None) -> None:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            self._texts[name] = value.value

    def _path(self, node: ast.AST) -> str | None:
        """Return the dotted path that an expression stands for, or None."""
        if isinstance(node, ast.Name):
            return self._targets.get(node.id)
        if isinstance(node, ast.Attribute):
            path = self._path(node.value)
            return None if path is None else f"{path}.{node.attr}"
        return None

    def _text(self, node: ast.AST | None) -> str | None:
        """Return the text that an expression is known to be, or None."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        return self._texts.get(node.id) if isinstance(node, ast.Name) else None

    def _use(self, path: str, node: ast.AST, is_optional: bool = False, keywords: Iterable[str] = ()) -> Use:
        return Use(path, self._source.file, getattr(node, "lineno", 1), is_optional, tuple(keywords))

    def find_names(self) -> Iterator[Use]:
        for each in self._imports:
            if each.path.partition(".")[0] == PEER:
                yield Use(each.path, self._source.file, each.line, each.is_optional)
        for node, is_optional in self._nodes:
            path = self._path(node) if isinstance(node, ast.Attribute) else None
            if path is not None and path.startswith(f"{PEER}."):
                yield self._use(path, node, is_optional)

    def find_calls(self) -> Iterator[Use]:
        for node, is_optional in self._nodes:
            path = self._path(node.func) if isinstance(node, ast.Call) else None
            if path is not None and isinstance(node, ast.Call) and (keywords := _keywords_of(node)):
                yield self._use(path, node, is_optional, keywords)

    def find_classes(self) -> Iterator[OwnClass]:
        for node, _ in self._nodes:
            if isinstance(node, ast.ClassDef):
                bases = [self._path(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases]
                methods = [self._use(each.name, each) for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
                yield OwnClass(
                    f"{self._source.module}.{node.name}", tuple(filter(None, bases)), tuple(methods), tuple(self._find_inherited(node))
                )

    def _find_inherited(self, owner: ast.ClassDef) -> Iterator[Use]:
        calls = {id(node.func): node for node in ast.walk(owner) if isinstance(node, ast.Call)}
        for node, is_optional in walk(owner):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call) and _is_super(node.value):
                call = calls.get(id(node))
                yield self._use(node.attr, node, is_optional, _keywords_of(call) if call else [])

    def find_variables(self) -> Iterator[Use]:
        for node, is_optional in self._nodes:
            text = self._text(node) if isinstance(node, ast.Constant) else None
            if text is not None and _KEY.fullmatch(text):
                yield self._use(text, node, is_optional)
            elif isinstance(node, ast.Call | ast.Subscript):
                where = self._path(node.func if isinstance(node, ast.Call) else node.value)
                if where in _VARIABLES:
                    yield from (self._use(name, node, is_optional) for name in self._texts_in(node) if not _KEY.fullmatch(name))

    def _texts_in(self, node: ast.Call | ast.Subscript) -> Iterator[str]:
        """Yield the first argument's texts, of which it may be a list."""
        first = node.slice if isinstance(node, ast.Subscript) else next(iter(node.args), None)
        for each in first.elts if isinstance(first, ast.List | ast.Tuple | ast.Set) else [first]:
            text = self._text(each)
            if text is not None:
                yield text

    def find_datasets(self) -> Iterator[Use]:
        for node, is_optional in self._nodes:
            if not isinstance(node, ast.Call):
                continue
            where = self._path(node.func)
            if where in _LOADERS | _EXAMPLES:
                keywords = {each.arg: each.value for each in node.keywords}
                given = node.args[0] if node.args else next(filter(None, map(keywords.get, ("path", "repo_id", "name"))), None)
                name = "gsm8k" if given is None and where in _EXAMPLES else self._text(given) or ""
                if name not in _FILE_FORMATS:
                    yield self._use(name, node, is_optional)


def _keywords_of(call: ast.Call) -> list[str]:
    return [each.arg for each in call.keywords if each.arg is not None]


def _is_super(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "super"
