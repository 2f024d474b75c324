"""What is differentiated: which functions, by what, and where; through decorators, jit, and
partials.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...libraries.transforms import RULE_METHODS, Gradient
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..values.callees import layers
from ..values.evaluator import Evaluator
from ..values.values import External, Function, Value, Values
from .transformed_functions import Transformed, TransformUse, subjects


@dataclass(frozen=True, eq=False, slots=True)
class Derivative(TransformUse):
    """One place where a function is differentiated.

    Attributes:
        gradient: the transformation.
        functions: what the differentiated function may be.
    """

    gradient: Gradient
    functions: Values

    @property
    def is_reverse_mode(self) -> bool:
        """Whether it is a single reverse-mode gradient."""
        return self.gradient.mode == "reverse"

    @property
    def returns_value(self) -> bool:
        """Whether the function's own value, or an auxiliary output, is used, too."""
        aux = self.use.argument("has_aux", None)
        plain = aux is None or (isinstance(aux, ast.Constant) and not aux.value)
        return self.gradient.value or not plain


def find_derivatives(uses: Iterable[Transformed], evaluator: Evaluator) -> Iterator[Derivative]:
    """Yield the transformations of a module that differentiate."""
    for use in uses:
        if isinstance(use.transform, Gradient):
            yield Derivative(use, use.transform, subjects(use, evaluator))


def derivative_rules(module: Module, evaluator: Evaluator) -> frozenset[FunctionNode]:
    """Return the functions of a module that are custom derivative rules.

    They are passed to `f.defvjp(forward, backward)`, decorated with `@f.defjvp`, or passed to a
    function that takes a rule.
    """
    found: set[FunctionNode] = set()
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in RULE_METHODS:
                given = [*node.args, *(k.value for k in node.keywords)]
                for arg in given:
                    for value in evaluator.values(module, arg):
                        found |= _functions(value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in node.decorator_list:
                    if _takes_rule(module, decorator, evaluator):
                        found.add(node)
    return frozenset(found)


def _takes_rule(module: Module, decorator: ast.expr, evaluator: Evaluator) -> bool:
    match decorator:
        case ast.Call(func=ast.Attribute(attr=attr)) | ast.Attribute(attr=attr) if (
            attr in RULE_METHODS
        ):
            return True
        case ast.Name() | ast.Attribute():
            for value in evaluator.values(module, decorator):
                if isinstance(value, External) and value.name.endswith(".custom_gradient"):
                    return True
    return False


def _functions(value: Value) -> set[FunctionNode]:
    return {layer.node for layer in layers(value) if isinstance(layer, Function)}
