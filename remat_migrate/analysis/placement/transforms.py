"""Where functions are differentiated and run in JAX's loops: `jax.grad(f)`, `jax.lax.scan(f, x)`.

The transformation may be called, used as a decorator or through `functools.partial`, aliased, or
called through a function of the project that only passes its arguments on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from ...libraries.transforms import RULE_METHODS, Gradient, Loop
from ..names.module import FunctionNode, Module, find_mentions
from ..project import Project
from ..sites.calls import numbers
from ..sites.site import decorates
from ..values.bind import argument, with_partials, without_partials
from ..values.evaluator import Evaluator, partial_calls, with_aliases
from ..values.values import (
    NOTHING,
    Bound,
    External,
    Function,
    Value,
    Values,
    Wrapped,
    layers,
)

# Whether the compiler sees a loop: it does, it does not, or that depends on something unknown.
Answer = Literal["yes", "no", "unclear"]


@dataclass(frozen=True, eq=False, slots=True)
class Transformed:
    """One application of a transformation.

    Attributes:
        module: the module.
        node: the call or the decorator.
        subject: the expression of the function; None if a function is decorated.
        functions: what the transformed function may be.
        args: the positional arguments, including those of partials.
        keywords: the keyword arguments.
        certain: whether nothing else can be called there.
    """

    module: Module
    node: ast.expr
    subject: ast.expr | None
    functions: Values
    args: Sequence[ast.expr]
    keywords: Sequence[ast.keyword]
    certain: bool

    def argument(self, name: str, position: int | None) -> ast.expr | None:
        """Return the argument for a parameter."""
        return argument(self.args, self.keywords, name, position)


@dataclass(frozen=True, eq=False, slots=True)
class Derivative(Transformed):
    """One place where a function is differentiated."""

    transform: Gradient

    @property
    def returns_value(self) -> bool:
        """Whether the function's own value, or an auxiliary output, is used, too."""
        aux = self.argument("has_aux", None)
        plain = aux is None or (isinstance(aux, ast.Constant) and not aux.value)
        return self.transform.value or not plain


@dataclass(frozen=True, eq=False, slots=True)
class LoopUse(Transformed):
    """One loop in the source that JAX runs."""

    transform: Loop

    def compiles_to_loop(self, project: Project) -> Answer:
        """Return whether the compiler sees a loop, whatever the project's calls of the function
        around it pass for the number of iterations and the unrolling.

        A scan that is unrolled or has length 1 is straight-line code to the compiler.
        """
        loop = self.transform
        if not loop.compiled_once:
            return "no"
        if any(isinstance(arg, ast.Starred) for arg in self.args):
            return "unclear"
        if any(keyword.arg is None for keyword in self.keywords):
            return "unclear"
        length = self.argument(*loop.length) if loop.length is not None else None
        if length is not None:
            if any(number <= 1 for number in numbers(project, self.module, length) or ()):
                return "no"
        if loop.bounds is not None:
            places = [place for place in loop.bounds if self.args[place:]]
            ends = [numbers(project, self.module, self.args[place]) for place in places]
            if len(ends) == 2 and ends[0] and ends[1] and min(ends[1]) - max(ends[0]) <= 1:
                return "no"
        unroll = self.argument(loop.unroll, loop.unroll_position) if loop.unroll else None
        return "yes" if unroll is None else self._unrolled(project, unroll, length)

    def _unrolled(self, project: Project, unroll: ast.expr, length: ast.expr | None) -> Answer:
        if isinstance(unroll, ast.Constant) and isinstance(unroll.value, bool):
            return "no" if unroll.value else "yes"  # `True` unrolls the whole loop; `False` means 1
        if length is not None and ast.dump(unroll) == ast.dump(length):
            return "no"
        rounds = numbers(project, self.module, unroll)
        if rounds is None:
            return "unclear"
        return "yes" if all(number <= 1 for number in rounds) else "no"


def transforms_in(project: Project, module: Module) -> Mapping[ast.expr, LoopUse | Derivative]:
    """Return the loops and derivatives of a module by the expression of the function that is
    transformed, or by the decorator.
    """
    return project.once(_transforms_in, module)


def _transforms_in(project: Project, module: Module) -> dict[ast.expr, LoopUse | Derivative]:
    names, found = project.evaluator.transforms.last_names, []
    if any(name in module.source.text for name in names):
        found = _find_transformed(module, with_aliases(module, names), project.evaluator)
    return {use.subject or use.node: use for use in found}


def loops_in(project: Project, module: Module) -> list[LoopUse]:
    """Return the loops of a module."""
    return [use for use in transforms_in(project, module).values() if isinstance(use, LoopUse)]


def derivatives_in(project: Project, module: Module) -> list[Derivative]:
    """Return the places in a module that differentiate functions."""
    return [use for use in transforms_in(project, module).values() if isinstance(use, Derivative)]


def in_derivative_rule(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether code is part of a custom derivative rule."""
    rules = project.once(derivative_rules, module)
    return any(around in rules for around in (node, *module.ancestors(node)))


def _may_apply(module: Module, names: Iterable[str], evaluator: Evaluator) -> set[ast.expr]:
    """Return the expressions that may denote what has one of some names, or call it."""
    mentions = find_mentions(module)
    found: set[ast.expr] = set()
    for node in chain.from_iterable(map(mentions.reads, names)):
        outer: ast.AST | None = node
        while isinstance(outer, ast.expr) and outer not in found:
            found.add(inner := outer)
            outer = module.argument_holder(inner)
            if isinstance(outer, ast.Call) and outer.func is not inner:
                if not evaluator.is_partial(module, outer):
                    break
    return found


def _find_transformed(
    module: Module, names: Iterable[str], evaluator: Evaluator
) -> list[LoopUse | Derivative]:
    """Return the transformations that a module applies by some names, in order of place."""
    found = [
        use
        for node in _may_apply(module, names, evaluator)
        for use in _applied(module, node, evaluator)
    ]
    return sorted(found, key=lambda use: (use.node.lineno, use.node.col_offset))


def _applied(
    module: Module, node: ast.expr, evaluator: Evaluator
) -> Iterator[LoopUse | Derivative]:
    """Yield the transformations that an expression denotes, where it is called with the function,
    decorates it, or is a partial that passes it.
    """
    holder = module.parent(node)
    call = holder if isinstance(holder, ast.Call) and holder.func is node else None
    place = call or node
    denoted, certain = _denoted(module, node, evaluator)
    for transform, value in denoted:
        own = (call.args, call.keywords) if call is not None else ([], [])
        args, keywords = with_partials(*own, partial_calls(value))
        subject = None
        if not (isinstance(transform, Loop) and transform.factory):
            subject = argument(args, keywords, transform.parameter, transform.position)
        if subject is None and call is not None:
            if _denoted(module, call, evaluator)[0]:
                continue  # an options-only call, which is looked at itself
            match module.parent(call):
                case ast.Call(func=func, args=[first, *_]) if func is call:
                    subject = first  # `layer_stack(8)(f)`
        if subject is None and not decorates(module, place):
            continue
        functions = _decorated(module, place, evaluator)
        if subject is not None:
            functions = evaluator.values(module, subject)
        kind = LoopUse if isinstance(transform, Loop) else Derivative
        rest = args, keywords, certain, transform
        yield kind(module, place, subject, functions, *rest)  # type: ignore[arg-type]


def _decorated(module: Module, decorator: ast.expr, evaluator: Evaluator) -> Values:
    """Return what the function below a decorator may be."""
    holder = module.parent(decorator)
    if not isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef):
        return NOTHING
    return frozenset(
        layer.func
        for value in evaluator.definition(module, holder)
        for layer in layers(value)
        if isinstance(layer, Wrapped) and layer.node is decorator
    )


def _denoted(
    module: Module, node: ast.expr, evaluator: Evaluator
) -> tuple[list[tuple[Gradient | Loop, Value]], bool]:
    """Return the transformations that an expression may denote, and whether it is just one."""
    each = [(_transform_of(value, evaluator), value) for value in evaluator.values(module, node)]
    found = {t.name: (t, value) for t, value in each if t is not None}
    is_one = len(found) == 1 and all(t is not None for t, _ in each)
    return [found[name] for name in sorted(found)], is_one


def _transform_of(value: Value, evaluator: Evaluator) -> Gradient | Loop | None:
    match without_partials(value):
        case External(name) | Bound(func=External(name)):
            return evaluator.transforms.find(name)
        case Function(module=module, node=node):  # a loop named in the settings
            return evaluator.transforms.find(module.qualified_name(node))
    return None


def derivative_rules(project: Project, module: Module) -> frozenset[FunctionNode]:
    """Return the functions of a module that are custom derivative rules.

    They are passed to `f.defvjp(forward, backward)`, decorated with `@f.defjvp`, or passed to a
    function that takes a rule.
    """
    found: set[FunctionNode] = set()
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in RULE_METHODS:
                for arg in (*node.args, *(k.value for k in node.keywords)):
                    for value in project.values(module, arg):
                        found |= {v.node for v in layers(value) if isinstance(v, Function)}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if any(_takes_rule(project, module, each) for each in node.decorator_list):
                    found.add(node)
    return frozenset(found)


def _takes_rule(project: Project, module: Module, decorator: ast.expr) -> bool:
    match decorator:
        case ast.Call(func=ast.Attribute(attr=attr)) | ast.Attribute(attr=attr) if (
            attr in RULE_METHODS
        ):
            return True
    return any(name.endswith(".custom_gradient") for name in project.qualified(module, decorator))
