"""Reductions: what a finding removes from a syntax tree; and which expressions can be removed.

A Reduction names the nodes that are removed, the conditions whose value is known, and the
expressions that become other text. `codemod.removal` works out the consequences, such as an emptied
block or an unused import.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

# The indices of the changes that cause something.
Causes = frozenset[int]

_PURE_FUNCTIONS = frozenset(
    {
        "LooseVersion", "StrictVersion", "Version", "abs", "all", "any", "bool", "callable",
        "dict", "enumerate", "filter", "find_spec", "float", "frozenset", "getattr", "getenv",
        "hasattr", "int", "isinstance", "issubclass", "len", "list", "map", "max", "min",
        "parse_version", "range", "repr", "reversed", "set", "sorted", "str", "strtobool", "sum",
        "tuple", "type", "zip",
    }
)  # fmt: skip
# Methods by name alone: of strings, mappings, paths and versions, none of which change anything.
_PURE_METHODS = frozenset(
    {
        "LooseVersion", "StrictVersion", "Version", "casefold", "endswith", "exists",
        "find_spec", "format", "get", "getenv", "isdigit", "isdir", "isfile", "items", "join",
        "keys", "lower", "lstrip", "parse", "partition", "removeprefix", "removesuffix",
        "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip",
        "strtobool", "upper", "values",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reduction:
    """What one finding removes from a tree.

    Attributes:
        remove: nodes that are removed: a statement, an argument, an element of a list, tuple or
            set, a dictionary key with its value, an imported name, a decorator, an item of a
            `with`, an `if` of a comprehension.
        replace: expressions and the text that replaces them.
        keep: expressions that are reduced to one of their parts: (whole, part).
        suites: statements that are reduced to one of their suites, `[]` for none: (statement,
            suite).
    """

    remove: tuple[ast.AST, ...] = ()
    replace: tuple[tuple[ast.expr, str], ...] = ()
    keep: tuple[tuple[ast.expr, ast.expr], ...] = ()
    suites: tuple[tuple[ast.stmt, list[ast.stmt]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.remove or self.replace or self.keep or self.suites)

    def __or__(self, other: Reduction) -> Reduction:
        return Reduction(
            self.remove + other.remove,
            self.replace + other.replace,
            self.keep + other.keep,
            self.suites + other.suites,
        )


def is_pure(node: ast.expr) -> bool:
    """Return whether evaluating an expression has no effect that is missed when it is removed.

    Names, attributes, subscripts, operators and literals do nothing; of calls only those of a few
    well-known functions and methods.
    """
    for inner in ast.walk(node):
        match inner:
            case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
                return False
            case ast.Call(func=ast.Name(id=name)) if name not in _PURE_FUNCTIONS:
                return False
            case ast.Call(func=ast.Attribute(attr=name)) if name not in _PURE_METHODS:
                return False
            case ast.Call(func=ast.Name() | ast.Attribute()):
                pass
            case ast.Call():
                return False
    return True
