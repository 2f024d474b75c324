"""Recognize code that expects an import to fail: it must see the failure."""

from __future__ import annotations

import ast
import functools
from types import FrameType
from typing import Any, Iterator, List, NamedTuple, Optional, Set

from . import projects

_BROAD = frozenset(["Exception", "BaseException", "object"])


class _Guard(NamedTuple):
    """The lines of a `try`, and the names of the exceptions that it handles."""

    first: int
    last: int
    handled: Set[str]


def expects(frame: Optional[FrameType], error: BaseException) -> bool:
    """Return whether the code that runs in a frame, or its callers, handle this error.

    In libraries only handlers that name it count: broad ones clean up and raise again.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    while frame is not None:
        path = frame.f_code.co_filename
        handled = names | {""} if projects.is_project_file(path) else names - _BROAD
        if not path.startswith("<") and not _is_worker(frame):
            for guard in _guards(path):
                if guard.first <= frame.f_lineno <= guard.last and guard.handled & handled:
                    return True
        frame = frame.f_back
    return False


def _is_worker(frame: FrameType) -> bool:
    package = __name__.partition(".")[0]
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == package


@functools.lru_cache(maxsize=None)
def _guards(path: str) -> List[_Guard]:
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return []
    return list(_of_tree(tree))


def _of_tree(tree: ast.AST) -> Iterator[_Guard]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            handlers: List[ast.ExceptHandler] = node.handlers  # type: ignore[attr-defined]
            kinds = [h.type for h in handlers if not isinstance(h.body[-1], ast.Raise)]
            names = {name for kind in kinds for name in _names(kind)}
            yield _Guard(_first(node.body), _last(node.body), names)  # type: ignore[attr-defined]
        elif isinstance(node, ast.With):
            for item in node.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and "suppress" in _names(call.func):
                    names = {name for kind in call.args for name in _names(kind)}
                    yield _Guard(_first(node.body), _last(node.body), names)


def _names(kind: Optional[ast.AST]) -> Set[str]:
    """Return the names of exceptions; empty text stands for all."""
    if kind is None:
        return {""}
    if isinstance(kind, ast.Tuple):
        return {name for each in kind.elts for name in _names(each)}
    if isinstance(kind, ast.Attribute):
        return {kind.attr}
    return {kind.id} if isinstance(kind, ast.Name) else set()


def _first(body: List[Any]) -> int:
    line: int = body[0].lineno
    return line


def _last(body: List[Any]) -> int:
    return max(getattr(node, "lineno", 0) for each in body for node in ast.walk(each))
