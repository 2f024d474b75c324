"""Run the edited code of a module under `if __name__ == "__main__"`."""

from __future__ import annotations

import ast
import os
import sys
from typing import Any, Dict, List

from . import coverage
from .environment import scripts


def run(module: Any) -> Dict[str, Any]:
    """Return the arrays that a module has after its program, or {} if nothing in that is edited.

    What only runs the program of a script is left out, as it is at import.
    """
    path = getattr(module, "__file__", None) or ""
    if not path.endswith(".py") or not os.path.exists(path):
        return {}
    with open(path, "rb") as file:
        data = file.read()
    tree = ast.parse(data, path)
    guards = [s for s in tree.body if isinstance(s, ast.If) and _is_main_test(s.test)]
    edited = [guard for guard in guards if coverage.is_edited(path, guard)]
    if not edited:
        return {}
    program: List[ast.stmt] = [statement for guard in edited for statement in guard.body]
    functions = [s for s in tree.body if isinstance(s, scripts.NOT_RUN)]
    skipped = scripts.effects(ast.Module(body=[*functions, *program], type_ignores=[]))
    rest = ast.Module(body=[s for s in program if s not in skipped], type_ignores=[])
    coverage.watch(rest, path)
    names = dict(vars(module), __name__="__main__")
    exec(compile(rest, path, "exec", dont_inherit=True), names)
    kind = sys.modules["jax"].Array
    # An option that is edited, such as a policy, may be a number on one side.
    return {name: value for name, value in names.items() if isinstance(value, kind)}


def _is_main_test(test: ast.expr) -> bool:
    """Return whether a condition is or implies `__name__ == "__main__"`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(_is_main_test, test.values))
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return False
    sides = {ast.dump(side) for side in (test.left, test.comparators[0])}
    expected = ast.parse('__name__ == "__main__"', mode="eval").body
    assert isinstance(expected, ast.Compare)
    return isinstance(test.ops[0], ast.Eq) and sides == {
        ast.dump(expected.left),
        ast.dump(expected.comparators[0]),
    }
