"""Whether code is a test, and whether the test expects it to fail: `pytest.raises`, `xfail`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .module import Definition, Module, once

EXPECTED = "a test expects that this fails"

_RAISING = re.compile(r"_?(assert_?)?(raises|warns|deprecated_call)", re.IGNORECASE)
_EXPECTED_TO_FAIL = frozenset({"xfail", "expectedFailure"})


def expects_failure(module: Module, node: ast.AST, *errors: str) -> bool:
    """Return whether a test around a piece of code expects that code to fail.

    This includes code in a function or class of the test that is used only where it must fail. With
    `errors`, the test must be able to mean one of these exceptions.
    """
    if _in_failing_block(module, node, errors):
        return True
    for around in module.ancestors(node):
        if isinstance(around, Definition):
            test = module.enclosing_function(around)
            if test is not None and (uses := _uses(test, around.name)):
                if all(_in_failing_block(module, use, errors) for use in uses):
                    return True
    return False


def is_test(path: Path) -> bool:
    """Return whether a file holds tests, by its name."""
    return path.stem.startswith("test_") or path.stem.endswith("_test")


def in_test(module: Module, node: ast.AST) -> bool:
    """Return whether code is part of a test, which may examine a checkpoint on purpose."""
    return is_test(module.source.path) or any(
        isinstance(around, ast.FunctionDef) and around.name.lower().startswith("test")
        for around in module.ancestors(node)
    )


def _uses(test: ast.AST, name: str) -> list[ast.Name]:
    return [n for n in ast.walk(test) if isinstance(n, ast.Name) and n.id == name]


def _in_failing_block(module: Module, node: ast.AST, errors: Sequence[str]) -> bool:
    inner = node
    for around in module.ancestors(node):
        match around:
            case ast.With(items=items) | ast.AsyncWith(items=items):
                if any(_is_raising(module, item.context_expr, errors) for item in items):
                    return True
            case ast.Call(args=[_, *_]) if _is_raising_call(around, errors):
                return True  # `self.assertRaises(ValueError, lambda: f(x, flag=True))`
            case ast.Try(body=body, handlers=handlers) if inner in body and in_test(module, around):
                if any(_may_mean([h.type] if h.type else [], errors) for h in handlers):
                    return True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if _EXPECTED_TO_FAIL & set(_names(around.decorator_list)):
                    return True
            case ast.Module():
                return _is_expected_to_fail(module)
        inner = around
    return False


@once
def _is_expected_to_fail(module: Module) -> bool:
    """Return whether `pytestmark` says so of all tests in a module."""
    return any(
        isinstance(s, ast.Assign)
        and isinstance(s.targets[0], ast.Name)
        and s.targets[0].id == "pytestmark"
        and "xfail" in _names([s.value])
        for s in module.tree.body
    )


def _is_raising(module: Module, context: ast.expr, errors: Sequence[str]) -> bool:
    """Return whether a context manager expects a failure, at least for some parameters of a
    test.
    """
    if isinstance(context, ast.Name):
        contexts = [binding.value for binding in module.reaching(context) if binding.value]
    else:
        contexts = [context]
    return any(_is_raising_call(n, errors) for value in contexts for n in ast.walk(value))


def _is_raising_call(node: ast.AST, errors: Sequence[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=args):
            return _RAISING.match(name) is not None and _may_mean(args[:1], errors)
    return False


def _may_mean(expected: Sequence[ast.expr], errors: Sequence[str]) -> bool:
    names = set(_names(expected))
    return not errors or not names or bool(names & {*errors, "Exception", "BaseException"})


def _names(expressions: Iterable[ast.expr]) -> Iterator[str]:
    """Return the last parts of the names of expressions; for calls, of what they call."""
    for node in expressions:
        match node:
            case ast.Call(func=func):
                yield from _names([func])
            case ast.Attribute(attr=name) | ast.Name(id=name):
                yield name
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                yield from _names(parts)
