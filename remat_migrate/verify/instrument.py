"""Instrument a module: the first decorator that is applied to a unit is a recorder.

It gets the plain function, which all that is done to it calls: transformations, partials, modules.
The worker puts the recorder among the builtins. Where there is none, the decorator changes nothing,
so the instrumented module also runs on its own.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator

from ..errors import VerificationError

RECORDER = "__remat_migrate_unit__"
_RECORDED = (
    f'__import__("builtins").__dict__.get("{RECORDER}", lambda *unit: lambda function: function)'
    "({unit!r}, {bound})"
)

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def instrument(text: str, units: Collection[str], path: str) -> str:
    """Return a module's text with a recorder on every definition of the units.

    Args:
        text: the module's text.
        units: qualified names: `attention_block`, `Block.__call__`.
        path: the file's path in the project. The recorder is called with `path::unit`, and with how
            many arguments the function gets besides those that a caller of the unit gives.

    Raises:
        VerificationError: this interpreter cannot parse the text.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        found = [(n, d) for n, d in _definitions(tree, "") if n in units and not _is_accessor(d)]
        for name, definition in found:
            decorators = definition.decorator_list
            bound = sum(isinstance(d, ast.Name) and d.id == "classmethod" for d in decorators)
            code = _RECORDED.format(unit=f"{path}::{name}", bound=bound)
            decorators.append(ast.parse(code, mode="eval").body)
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n" if found else text
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise VerificationError(f"{path} cannot be parsed: {error}") from error


def _definitions(node: ast.AST, owner: str) -> Iterator[tuple[str, _Definition]]:
    """Yield the functions in a module or a class; `owner` is the class, as a prefix of names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            yield owner + child.name, child
        else:
            inside = f"{owner}{child.name}." if isinstance(child, ast.ClassDef) else owner
            yield from _definitions(child, inside)


def _is_accessor(definition: _Definition) -> bool:
    """Return whether this sets or deletes a property, of which the unit is what reads it."""
    return any(
        isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter")
        for decorator in definition.decorator_list
    )
