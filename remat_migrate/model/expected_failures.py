"""Whether code stands where it is to fail: `with pytest.raises(...)`, `self.assertRaises(...)`."""

from __future__ import annotations

import ast
import re

from .module import Module

_RAISING = re.compile(r"raises|assertRaises")


def expects_failure(module: Module, node: ast.AST) -> bool:
    """Whether the failure of a piece of code is what a test around it asks for.

    Also of code in a function or class of the test that is used only where it is to fail.
    """
    if _in_failing_block(module, node):
        return True
    for around in module.ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            test = module.enclosing_function(around)
            if test is not None and (uses := _uses(test, around.name)):
                if all(_in_failing_block(module, use) for use in uses):
                    return True
    return False


def _uses(test: ast.AST, name: str) -> list[ast.Name]:
    return [n for n in ast.walk(test) if isinstance(n, ast.Name) and n.id == name]


def _in_failing_block(module: Module, node: ast.AST) -> bool:
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
