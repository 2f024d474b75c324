"""Whether an expression denotes a checkpoint function on every path: `remat` in `remat(f)`.

    remat = jax.checkpoint if cfg.remat else no_remat

Another function may not accept the options of an Api, or may use those that it gets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..fixed_point import FixedPoint
from ..names.module import Module, Place
from ..names.scopes import Binding
from ..project import Project
from ..values.application import api_of
from ..values.values import Constant, Parameter, Value
from .calls import passed_for
from .subclasses import overrides_of


class Certainty:
    """Tells whether expressions denote Apis; in a cycle, what nothing contradicts is certain."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._answers = FixedPoint[Parameter | Place, bool](self._answer, True)

    def is_api(self, module: Module, node: ast.expr) -> bool:
        """Return whether an expression denotes an Api, or a partial of one, on every path."""
        return self._answers.answer((module, node))

    def _answer(self, asked: Parameter | Place) -> bool:
        return self._is_passed(asked) if isinstance(asked, Parameter) else self._is_api(*asked)

    def _is_api(self, module: Module, node: ast.expr) -> bool:
        is_partial = isinstance(node, ast.Call) and self._project.evaluator.is_partial(module, node)
        if isinstance(node, ast.Call | ast.Subscript | ast.BoolOp) and not is_partial:
            return False  # what a function returns, or a table holds, is not followed
        if isinstance(node, ast.Attribute):
            values = overrides_of(self._project).callees(module, node).values
        else:
            values = self._project.values(module, node)
            if Constant(None) in values:
                values -= {Constant(None)}  # `remat` is None where it is not called
        bindings = module.reaching(node) if isinstance(node, ast.Name) else ()
        bound = [values]
        bound += [
            self._project.evaluator.binding(module, binding)
            for binding in bindings
            if _assigned(binding) is None
        ]
        return all(map(self._are_apis, bound)) and all(
            isinstance(part, ast.Constant) or self.is_api(owner, part)
            for owner, part in self._parts(module, node)
        )

    def _parts(self, module: Module, node: ast.expr) -> Iterator[Place]:
        """Yield the expressions of which an expression is one: each must denote an Api."""
        match node:
            case ast.IfExp(body=one, orelse=other):
                yield from ((module, one), (module, other))
            case ast.Name():
                assigned = map(_assigned, module.reaching(node))
                yield from ((module, value) for value in assigned if value is not None)
            case ast.Call() if self._project.evaluator.is_partial(module, node):
                yield from ((module, arg) for arg in node.args[:1])

    def _are_apis(self, values: Iterable[Value]) -> bool:
        """Return whether there are values, and each is an Api or a parameter that is always one."""
        values = tuple(values)
        return bool(values) and all(
            self._answers.answer(value)
            if isinstance(value, Parameter)
            else api_of(self._project.apis, value) is not None
            for value in values
        )

    def _is_passed(self, parameter: Parameter) -> bool:
        """Return whether every call passes an Api for a parameter, and all calls are known."""
        passed = passed_for(self._project, parameter)
        if passed.unknown is not None or passed.definitions:
            return False
        if passed.defaulted and passed.default is None:
            return False
        places = [*passed.places, *([passed.default] if passed.default is not None else [])]
        called = bool(passed.places) or passed.defaulted
        return called and all(self.is_api(module, node) for module, node in places)


def _assigned(binding: Binding) -> ast.expr | None:
    """Return the expression that a binding assigns as a whole."""
    return binding.value if binding.kind == "assign" and not binding.path else None
