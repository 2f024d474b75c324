"""Whether code stands where it is to fail: `with pytest.raises(...)`, `self.assertRaises(...)`."""

from __future__ import annotations

import ast
import re

from .module import Module

_RAISING = re.compile(r"raises|assertRaises")


def expects_failure(module: Module, node: ast.AST) -> bool:
    """Whether the failure of a piece of code is what a test around it asks for."""
    for around in module.ancestors(node):
        match around:
            case ast.With(items=items) | ast.AsyncWith(items=items):
                if any(_raising(item.context_expr) for item in items):
                    return True
            case ast.Call(args=[_, *_]) if _raising(around):
                return True  # `self.assertRaises(ValueError, lambda: f(x, flag=True))`
    return False


def _raising(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return _RAISING.match(name) is not None
    return False
