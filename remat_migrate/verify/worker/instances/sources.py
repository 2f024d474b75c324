"""The source of a project: the calls that construct a class, and the scopes around them."""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ..environment import projects
from ..lookup import attribute, unwrapped

_SKIPPED = re.compile(r"\..*|__pycache__|node_modules|site-packages|build|dist|venv|env")
_MOST_FILES = 4000
_MOST_BYTES = 400_000
# How many files that mention a class are parsed; the ones nearest to it come first.
_MOST_PARSED = 16

Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Source:
    """A parsed file.

    Attributes:
        path: its path.
        tree: its syntax tree.
    """

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree
        self._parents: Dict[ast.AST, ast.AST] = {}
        kinds = (ast.Call, ast.Assign, ast.FunctionDef)
        self._nodes: Dict[type, List[Any]] = {kind: [] for kind in kinds}
        for node in ast.walk(tree):
            self._nodes.get(type(node), []).append(node)
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node

    def around(self, node: ast.AST) -> Tuple[ast.AST, ...]:
        """Return the functions and classes around a node, the innermost first."""
        found = []
        above = self._parents.get(node)
        while above is not None:
            if isinstance(above, (*Function, ast.ClassDef)):
                found.append(above)
            above = self._parents.get(above)
        return tuple(found)

    def functions(self, name: str) -> Iterator[ast.FunctionDef]:
        """Yield the definitions of functions with a name."""
        yield from (node for node in self._nodes[ast.FunctionDef] if node.name == name)

    def calls(self, name: str) -> Iterator[ast.Call]:
        """Yield the calls of a class or function, also transformed: `nn.remat(Block)(config)`."""
        names = {name}
        for node in self._nodes[ast.Assign]:
            if _wraps(node.value, names):
                names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        for node in self._nodes[ast.Call]:
            if _last_name(node.func) in names or _wraps(node.func, names):
                yield node
            elif _last_name(node.func) == "cls":
                classes = [c for c in self.around(node) if isinstance(c, ast.ClassDef)]
                if classes and classes[0].name == name:
                    yield node


def _last_name(expression: Any) -> str:
    return getattr(expression, "attr", None) or getattr(expression, "id", None) or ""


def _wraps(expression: Any, names: Set[str]) -> bool:
    """Return whether an expression transforms one of the names: `nn.scan(nn.remat(Block))`."""
    if not isinstance(expression, ast.Call) or not expression.args:
        return False
    first = expression.args[0]
    return _last_name(first) in names or _wraps(first, names)


class Sources:
    """The files of a project.

    Args:
        root: its folder.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root) if root else ""
        self._texts: Optional[Dict[str, str]] = None
        self._parsed: Dict[str, Optional[Source]] = {}

    def texts(self) -> Dict[str, str]:
        """Return the texts of the files by path."""
        if self._texts is None:
            self._texts = dict(_read(self.root)) if self.root else {}
        return self._texts

    def parsed(self, path: str) -> Optional[Source]:
        """Return a file parsed; None if it is not part of the project or has errors."""
        path = os.path.realpath(path) if path else ""
        if path not in self._parsed:
            self._parsed[path] = None
            if path in self.texts():
                try:
                    self._parsed[path] = Source(path, ast.parse(self.texts()[path]))
                except (SyntaxError, ValueError):
                    return None
        return self._parsed[path]

    def definition(self, function: Any) -> Optional[Tuple[ast.FunctionDef, Source]]:
        """Return the definition of a function, and its file; None if it is not in the project."""
        function = unwrapped(function) if callable(function) else function
        code = attribute(function, "__code__")
        source = self.parsed(code.co_filename) if code is not None else None
        if code is None or source is None:
            return None
        for node in source.functions(code.co_name):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= code.co_firstlineno <= node.lineno:
                return node, source
        return None

    def mentioning(self, words: List[str], near: str = "") -> Iterator[Source]:
        """Yield the files that contain all words; those nearest to the path `near` first."""
        near = os.path.realpath(near) if near else self.root
        paths = [path for path, text in self.texts().items() if all(w in text for w in words)]
        for path in sorted(paths, key=lambda path: (_distance(path, near), path))[:_MOST_PARSED]:
            source = self.parsed(path)
            if source is not None:
                yield source

    def module(self, source: Source) -> Any:
        """Return the module of a file; None unless it is imported."""
        name = os.path.basename(source.path)
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.endswith(name):
                if projects.real_path(file) == source.path:
                    return module
        return None


def parameters(function: Any) -> Dict[str, ast.arg]:
    """Return the parameters of a definition or a lambda by name, without `*args`."""
    arguments = function.args
    every = [*getattr(arguments, "posonlyargs", ()), *arguments.args, *arguments.kwonlyargs]
    return {argument.arg: argument for argument in every}


def key_of(subscript: ast.Subscript) -> Any:
    """Return the constant string or integer in brackets; None if there is another expression."""
    index: Any = subscript.slice
    index = getattr(index, "value", index) if type(index).__name__ == "Index" else index
    key = index.value if isinstance(index, ast.Constant) else None
    return key if isinstance(key, (str, int)) else None


class Scope(NamedTuple):
    """Where an expression stands.

    Attributes:
        source: the file.
        around: the functions and classes around it, the innermost first.
        line: its line.
    """

    source: Source
    around: Tuple[ast.AST, ...]
    line: float


def _read(root: str) -> Iterator[Tuple[str, str]]:
    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not _SKIPPED.fullmatch(name))
        for name in sorted(files):
            path = os.path.join(folder, name)
            if name.endswith(".py") and count < _MOST_FILES and not os.path.islink(path):
                count += 1
                if os.path.getsize(path) <= _MOST_BYTES:
                    with open(path, encoding="utf-8", errors="replace") as file:
                        yield path, file.read()


def _distance(path: str, near: str) -> int:
    """Return how many folders lie between two paths; 0 for the same file."""
    if path == near:
        return 0
    shared = os.path.commonpath([path, near])
    return 1 + path[len(shared) :].count(os.sep) + near[len(shared) :].count(os.sep)
