"""Literals that are written at another place than they stand: which may be, and their text."""

from __future__ import annotations

import ast

from ..analysis import Module
from ..text.tokens import layout_of


def is_literal(node: ast.expr) -> bool:
    """Whether an expression means the same wherever it is written."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts):
            return all(is_literal(p) for p in parts)
    return False


def literal_text(module: Module, node: ast.expr, into: Module) -> str:
    """A literal of `module` as it is written in another file, with the quotes of that file."""
    match node:
        case ast.Constant(value=str() | bytes() as value):
            return quoted(value, into)
        case ast.Tuple(elts=parts):
            texts = [literal_text(module, part, into) for part in parts]
            return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    text = module.segment(node)
    return text if "\n" not in text else ast.unparse(node)


def quoted(value: str | bytes, module: Module) -> str:
    """A string as Python writes it, with the quotes that a file prefers."""
    text = repr(value)
    prefix, _, inner = text.partition("'")
    if layout_of(module.source).quote == '"' and text.endswith("'") and '"' not in inner:
        return f'{prefix}"{inner[:-1]}"'
    return text
