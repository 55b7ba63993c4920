"""What modules use: names of verifiers, environment variables and data sets, read from their syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from verifiers_compat.cli.packages.classes import OwnClass, Use, keywords_of, read_class
from verifiers_compat.cli.packages.imports import Source, find_imports, walk

PEER = "verifiers"

_KEY = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*_(KEY|TOKEN)")
"""A text that names an environment variable with a secret, such as the default of an argument ``api_key_var``."""
_VARIABLES = frozenset({"os.getenv", "os.environ", "os.environ.get", "verifiers.ensure_keys", "verifiers.utils.config_utils.ensure_keys"})
_LOADERS = frozenset({"datasets.load_dataset", "huggingface_hub.snapshot_download", "huggingface_hub.hf_hub_download"})
_EXAMPLES = frozenset({"verifiers.load_example_dataset", "verifiers.utils.data_utils.load_example_dataset"})
_FILE_FORMATS = frozenset({"arrow", "csv", "imagefolder", "json", "pandas", "parquet", "text"})
"""Names by which `load_dataset` reads files."""


_SANDBOX_FIELDS = frozenset({"cpu_cores", "memory_gb", "disk_size_gb", "gpu_count", "timeout_minutes", "start_command", "workdir"})
"""Fields of a sandbox's configuration, by which a mapping is known to be one."""


@dataclass(frozen=True)
class Uses:
    """What a package uses."""

    names: tuple[Use, ...]
    """Names of verifiers: their paths begin with it."""
    calls: tuple[Use, ...]
    """What is called with keyword arguments, as far as it has a path."""
    classes: tuple[OwnClass, ...]
    written: frozenset[str]
    """Names of attributes that are written to any object."""
    asked: tuple[tuple[str, Use], ...]
    """Methods that are called of objects whose class is known: the path of the class, and the name of the method."""
    images: tuple[Use, ...]
    """Container images: the path is the name."""
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
        written=frozenset(name for each in readers for name in each.find_written()),
        asked=tuple(found for each in readers for found in each.find_asked()),
        images=tuple(use for each in readers for use in each.find_images()),
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
        self._made_by: dict[str, set[str | None]] = {}
        """For each name, what its values are made by, or None for what is not made by a call."""
        self._known_targets: set[int] = set()
        for node, _ in self._nodes:
            self._note_values(node)

    def _note_values(self, node: ast.AST) -> None:
        """Remember what a simple assignment gives a name, and the texts that arguments have as defaults."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            path = self._path(node.value)
            if path is not None:
                self._targets[node.targets[0].id] = path
            if isinstance(node.value, ast.Call):
                self._made_by.setdefault(node.targets[0].id, set()).add(self._path(node.value.func))
                self._known_targets.add(id(node.targets[0]))
            self._note_text(node.targets[0].id, node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in self._known_targets:
            self._made_by.setdefault(node.id, set()).add(None)
        elif isinstance(node, ast.arg):
            self._made_by.setdefault(node.arg, set()).add(None)
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
            if path is not None and isinstance(node, ast.Call) and (keywords := keywords_of(node)):
                yield self._use(path, node, is_optional, keywords)

    def find_classes(self) -> Iterator[OwnClass]:
        for node, _ in self._nodes:
            if isinstance(node, ast.ClassDef):
                yield read_class(node, self._source.module, self._source.file, self._path)

    def find_written(self) -> Iterator[str]:
        for node, _ in self._nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield node.attr

    def find_asked(self) -> Iterator[tuple[str, Use]]:
        for node, is_optional in self._nodes:
            func = node.func if isinstance(node, ast.Call) else None
            if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and isinstance(node, ast.Call):
                makers = self._made_by.get(func.value.id, set())
                maker = next(iter(makers)) if len(makers) == 1 else None
                if maker is not None and func.value.id not in self._targets:
                    yield maker, self._use(func.attr, node, is_optional, keywords_of(node))

    def find_images(self) -> Iterator[Use]:
        for node, is_optional in self._nodes:
            for name, value in _named_values(node):
                text = self._text(value)
                if text and (name == "docker_image" or (name == "image" and self._is_about_sandboxes(node))):
                    yield self._use(text, value if value is not None else node, is_optional)

    def _is_about_sandboxes(self, node: ast.AST) -> bool:
        """Say whether what has an ``image`` is called by verifiers, or is a mapping with another field of a sandbox's."""
        if isinstance(node, ast.Call):
            return (self._path(node.func) or "").startswith(f"{PEER}.")
        return isinstance(node, ast.Dict) and any(self._text(key) in _SANDBOX_FIELDS for key in node.keys)

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


def _named_values(node: ast.AST) -> Iterator[tuple[str | None, ast.expr | None]]:
    """Yield what is given a name: as an argument, by default, by assignment or as an item."""
    if isinstance(node, ast.Call):
        yield from ((each.arg, each.value) for each in node.keywords)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from ((each.id if isinstance(each, ast.Name) else getattr(each, "attr", None), node.value) for each in targets)
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        yield from ((each.arg, value) for each, value in zip(reversed(positional), reversed(node.defaults), strict=False))
        yield from ((each.arg, value) for each, value in zip(node.kwonlyargs, node.kw_defaults, strict=True))
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from ((str(each.value), value) for each, value in pairs if isinstance(each, ast.Constant))
