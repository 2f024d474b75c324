"""Where a library function that takes a function is applied: `jax.grad`, `jax.lax.scan`.

It may be called, used as a decorator or through `functools.partial`, aliased, or called through a
function of the project that only passes its arguments on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...libraries.transforms import Loop, Transform
from ..names.mentions import Mentions, find_mentions
from ..names.module import Module
from ..names.scopes import Definition
from ..sites.forms import decorates
from ..sites.passed_arguments import PassedArguments
from ..sites.wrappers import forwarding_callee
from ..values.bind import with_partials
from ..values.callees import layers
from ..values.evaluator import Evaluator
from ..values.values import (
    NOTHING,
    Applied,
    Bound,
    Constant,
    External,
    Function,
    Parameter,
    Partial,
    Value,
    Values,
    Wrapped,
    union,
)


@dataclass(frozen=True, eq=False, slots=True)
class Transformed:
    """One application of a transformation.

    Attributes:
        module: the module.
        node: the call or the decorator.
        transform: what is applied.
        subject: the expression of the function; None if a function is decorated.
        decorated: the function or class that is decorated, else None.
        args: the positional arguments, including those of partials.
        keywords: the keyword arguments.
        certain: whether nothing else can be called there.
        passed: whether it is a parameter that callers pass.
    """

    module: Module
    node: ast.expr
    transform: Transform
    subject: ast.expr | None
    decorated: Definition | None
    args: tuple[ast.expr, ...]
    keywords: tuple[ast.keyword, ...]
    certain: bool = True
    passed: bool = False

    def argument(self, name: str, position: int | None) -> ast.expr | None:
        """Return the argument for a parameter."""
        for keyword in self.keywords:
            if keyword.arg == name:
                return keyword.value
        if position is not None and position < len(self.args):
            return self.args[position]
        return None

    @property
    def spread(self) -> bool:
        """Whether arguments are unpacked, so that more may be passed than is known."""
        return any(k.arg is None for k in self.keywords) or any(
            isinstance(arg, ast.Starred) for arg in self.args
        )


@dataclass(frozen=True, eq=False, slots=True)
class TransformUse:
    """One application of a transformation, as a loop or as a derivative.

    Attributes:
        use: the application.
    """

    use: Transformed

    @property
    def module(self) -> Module:
        """The module that contains it."""
        return self.use.module

    @property
    def node(self) -> ast.expr:
        """The call, or the decorator."""
        return self.use.node


def find_transformed(
    module: Module, evaluator: Evaluator, arguments: PassedArguments
) -> list[Transformed]:
    """Return the applications in a module, in order of place."""
    found: list[Transformed] = []
    last_names = evaluator.transforms.last_names | arguments.loop_parameters(module)
    mentions = find_mentions(module)
    for name in _names(mentions, last_names):
        for node in mentions.reads(name):
            found += _applications(module, node, evaluator, arguments)
    found.sort(key=lambda use: (use.node.lineno, use.node.col_offset))
    return found


def subjects(use: Transformed, evaluator: Evaluator) -> Values:
    """Return what the transformed function may be."""
    if use.subject is not None:
        return evaluator.values(use.module, use.subject)
    if not isinstance(use.decorated, ast.FunctionDef | ast.AsyncFunctionDef):
        return NOTHING
    inner: set[Value] = set()
    for value in evaluator.definition(use.module, use.decorated):
        for layer in layers(value):
            match layer:
                case Wrapped(func=func, node=node) if node is use.node:
                    inner.add(func)
                case Applied(target=func, node=node) if node is use.node and func is not None:
                    inner.add(func)
    return frozenset(inner)


def _names(mentions: Mentions, last_names: frozenset[str]) -> set[str]:
    """Return the identifiers that may name a transformation in a module: their own names, and
    aliases.
    """
    names = set(last_names)
    for last, others in mentions.renamed.items():
        if last in last_names:
            names.update(others)
    for _ in range(2):  # an alias of an alias; more were not seen
        for statement in mentions.assigned:
            match statement.targets[0]:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    if not names.isdisjoint(_mentioned(statement.value)):
                        names.add(name)
    return names


def _mentioned(value: ast.expr) -> Iterator[str]:
    """Return the names of functions that an assigned value may be."""
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.IfExp(body=one, orelse=other):
            yield from _mentioned(one)
            yield from _mentioned(other)
        case ast.Call(func=ast.Name(id="partial") | ast.Attribute(attr="partial"), args=[first]):
            yield from _mentioned(first)


def _applications(
    module: Module, node: ast.Name | ast.Attribute, evaluator: Evaluator, arguments: PassedArguments
) -> Iterator[Transformed]:
    values = evaluator.values(module, node)
    passed = any(isinstance(value, Parameter) for value in values)
    if passed:
        values = _passed(values, evaluator, arguments)
    candidates = [candidate for value in values for candidate in _transforms(value, evaluator)]
    transforms = {
        transform.name: (transform, given) for transform, given in sorted(candidates, key=_order)
    }
    if not transforms:
        # `dynamic_scale.value_and_grad(loss)` of an unknown object is not followed.
        return
    certain = (len(transforms) == 1 or passed) and not any(
        isinstance(v, Function) and forwarding_callee(v.node) is not None for v in values
    )
    certain = certain and all(any(_transforms(v, evaluator)) for v in values)
    for transform, given in transforms.values():
        for use in _at(module, node, transform, list(given), certain, evaluator):
            yield replace(use, passed=True) if passed else use


def _order(candidate: tuple[Transform, tuple[ast.Call, ...]]) -> tuple[str, list[tuple[int, int]]]:
    """Return a sort key: values come in no order."""
    transform, given = candidate
    return transform.name, [(call.lineno, call.col_offset) for call in given]


def _passed(values: Values, evaluator: Evaluator, arguments: PassedArguments) -> Values:
    """Return what a parameter may be: its default, and what callers pass; nothing unless all are
    loops.
    """
    found = union(arguments.resolved(value) for value in values)
    known = frozenset(v for v in found if not isinstance(v, Parameter | Constant))
    loops = all(
        any(isinstance(transform, Loop) for transform, _ in _transforms(value, evaluator))
        for value in known
    )
    return known if loops else NOTHING


def _transforms(
    value: Value, evaluator: Evaluator
) -> Iterator[tuple[Transform, tuple[ast.Call, ...]]]:
    """Return the transformation that a value is, with the partials that bind arguments, outermost
    first.
    """
    given: list[ast.Call] = []
    while isinstance(value, Partial):
        given.append(value.call)
        value = value.func
    match value:
        case External(name) | Bound(func=External(name)):
            found = evaluator.transforms.find(name)
            if found is not None:
                yield found, tuple(given)
        case Function(module=module, node=node):
            named = evaluator.transforms.find(module.qualified_name(node))
            if named is not None:
                yield named, tuple(given)
                return
            for forwarded in _forwarded_transforms(value, evaluator):
                yield forwarded, tuple(given)


def _forwarded_transforms(function: Function, evaluator: Evaluator) -> Iterator[Transform]:
    """Yield the transformations to which `def scan(*args, **kwargs)` passes everything on."""
    func = forwarding_callee(function.node)
    for value in evaluator.values(function.module, func) if func is not None else ():
        if isinstance(value, External):
            found = evaluator.transforms.find(value.name)
            if found is not None:
                yield found


def _at(
    module: Module,
    node: ast.expr,
    transform: Transform,
    given: list[ast.Call],
    certain: bool,
    evaluator: Evaluator,
) -> Iterator[Transformed]:
    """Return the application of what `node` denotes, if it is applied there."""

    def use(
        place: ast.expr,
        own: ast.Call | None,
        partials: list[ast.Call],
        subject: ast.expr | None = None,
    ) -> Transformed:
        args, keywords = with_partials(
            own.args if own else (), own.keywords if own else (), partials
        )
        holder = module.parent(place) if subject is None else None
        decorated = holder if isinstance(holder, Definition) else None
        return Transformed(
            module, place, transform, subject, decorated, tuple(args), tuple(keywords), certain
        )

    if decorates(module, node):
        yield use(node, None, given)
        return
    call = module.parent(node)
    if not isinstance(call, ast.Call):
        return
    if call.func is not node:
        if call.args[:1] != [node] or not evaluator.is_partial(module, call):
            return
        whole = use(call, None, [call, *given])
        subject = whole.argument(transform.parameter, transform.position)
        if subject is not None:
            yield use(call, None, [call, *given], subject)
        else:
            yield from _at(module, call, transform, [call, *given], certain, evaluator)
        return
    factory = isinstance(transform, Loop) and transform.factory
    subject = None
    if not factory:
        subject = use(call, call, given).argument(transform.parameter, transform.position)
    outer = module.parent(call)
    if subject is not None:
        yield use(call, call, given, subject)
    elif decorates(module, call):
        yield use(call, call, given)
    elif isinstance(outer, ast.Call) and outer.func is call and outer.args:
        yield use(call, call, given, outer.args[0])
