"""Expressions that can move: literals, and their text in another file."""

from __future__ import annotations

import ast

from ..analysis import Module
from ..text.tokens import layout_of


def is_literal(node: ast.expr) -> bool:
    """Return whether an expression is a literal, which means the same anywhere."""
    match node:
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts):
            return all(is_literal(p) for p in parts)
    return False


def literal_text(module: Module, node: ast.expr, into: Module) -> str:
    """Return the source code of a literal of `module` in another file, with that file's quotes."""
    match node:
        case ast.Constant(value=str() | bytes() as value):
            return quoted(value, into)
        case ast.Tuple(elts=parts):
            texts = [literal_text(module, part, into) for part in parts]
            return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    text = module.segment(node)
    return text if "\n" not in text else ast.unparse(node)


def quoted(value: str | bytes, module: Module) -> str:
    """Return the literal of a string, with the quotes that a file prefers."""
    text = repr(value)
    prefix, _, inner = text.partition("'")
    if layout_of(module.source).quote == '"' and text.endswith("'") and '"' not in inner:
        return f'{prefix}"{inner[:-1]}"'
    return text
