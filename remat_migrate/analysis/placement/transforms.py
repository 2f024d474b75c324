"""Where functions are differentiated and run in JAX's loops: `jax.grad(f)`, `jax.lax.scan(f, x)`.

The transformation may be called, used as a decorator or through `functools.partial`, aliased, or
called through a function of the project that only passes its arguments on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from ...libraries.transforms import RULE_METHODS, Gradient, Loop
from ..names.mentions import find_mentions
from ..names.module import Module
from ..names.scopes import Definition, FunctionNode
from ..project import Project
from ..values.api_names import with_aliases
from ..values.application import without_partials
from ..values.bind import argument, with_partials
from ..values.evaluator import Evaluator
from ..values.values import (
    NOTHING,
    Bound,
    External,
    Function,
    Partial,
    Value,
    Values,
    Wrapped,
    layers,
)

# Whether the compiler sees a loop: it does, it does not, or that depends on something unknown.
Answer = Literal["yes", "no", "unclear"]
# Returns the integers that an expression may be; None if others are possible.
Numbers = Callable[[Module, ast.expr], set[int] | None]


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

    @property
    def compiled(self) -> Answer:
        """Whether the compiler sees a loop, as far as literal numbers tell."""
        return self.compiles_to_loop(_literal)

    def compiles_to_loop(self, numbers: Numbers) -> Answer:
        """Return whether the compiler sees a loop, given what its length and unrolling may be.

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
            if any(number <= 1 for number in numbers(self.module, length) or ()):
                return "no"
        if loop.bounds is not None:
            places = [place for place in loop.bounds if self.args[place:]]
            ends = [numbers(self.module, self.args[place]) for place in places]
            if len(ends) == 2 and ends[0] and ends[1] and min(ends[1]) - max(ends[0]) <= 1:
                return "no"
        unroll = self.argument(loop.unroll, loop.unroll_position) if loop.unroll else None
        return "yes" if unroll is None else self._unrolled(unroll, length, numbers)

    def _unrolled(self, unroll: ast.expr, length: ast.expr | None, numbers: Numbers) -> Answer:
        if isinstance(unroll, ast.Constant) and isinstance(unroll.value, bool):
            return "no" if unroll.value else "yes"  # `True` unrolls the whole loop; `False` means 1
        if length is not None and ast.dump(unroll) == ast.dump(length):
            return "no"
        rounds = numbers(self.module, unroll)
        if rounds is None:
            return "unclear"
        return "yes" if all(number <= 1 for number in rounds) else "no"


def _literal(module: Module, node: ast.expr) -> set[int] | None:
    """Return the value of a literal integer, the only one that is known without the project."""
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return {number}
    return None


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
    found: list[LoopUse | Derivative] = []
    finder = _Finder(module, evaluator)
    for node in _may_apply(module, names, evaluator):
        holder = module.parent(node)
        if isinstance(holder, Definition) and node in holder.decorator_list:
            found += finder.applied_as(node)
        if isinstance(node, ast.Call):
            found += finder.applied_by(node)
    found.sort(key=lambda use: (use.node.lineno, use.node.col_offset))
    return found


@dataclass(frozen=True, slots=True)
class _Denoted:
    """A transformation that an expression denotes, and the partials that pass arguments."""

    transform: Gradient | Loop
    partials: list[ast.Call]
    certain: bool


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds the transformations that one module applies."""

    module: Module
    evaluator: Evaluator

    def applied_by(self, call: ast.Call) -> Iterator[LoopUse | Derivative]:
        """Yield the transformations that a call applies, or binds to a function as a partial."""
        outer = self.module.parent(call)
        if self.evaluator.is_partial(self.module, call):
            for denoted in self.denoted_by(call):
                if (subject := self._subject(denoted, ())) is not None:
                    yield self.use(denoted, call, subject)
            return
        for denoted in self.denoted_by(call.func):
            subject = self._subject(denoted, (call,))
            if subject is None and isinstance(outer, ast.Call) and outer.func is call:
                # `layer_stack(8)(f)`; a factory that is evaluated is applied by the outer call.
                subject = outer.args[0] if outer.args and not self.denoted_by(call) else None
            if subject is not None:
                yield self.use(denoted, call, subject, (call,))

    def applied_as(self, decorator: ast.expr) -> Iterator[LoopUse | Derivative]:
        """Yield the transformations that a decorator applies."""
        for denoted in (found := self.denoted_by(decorator)):
            yield self.use(denoted, decorator, None)
        if isinstance(decorator, ast.Call) and not found:
            for denoted in self.denoted_by(decorator.func):
                yield self.use(denoted, decorator, None, (decorator,))

    def _subject(self, denoted: _Denoted, own: Sequence[ast.Call]) -> ast.expr | None:
        """Return the argument that is transformed; none if a second call passes it."""
        transform = denoted.transform
        if isinstance(transform, Loop) and transform.factory:
            return None
        args, keywords = _arguments(denoted, own)
        return argument(args, keywords, transform.parameter, transform.position)

    def use(
        self,
        denoted: _Denoted,
        node: ast.expr,
        subject: ast.expr | None,
        own: Sequence[ast.Call] = (),
    ) -> LoopUse | Derivative:
        """Return the application of a transformation by a call or a decorator."""
        functions = self._decorated(node)
        if subject is not None:
            functions = self.evaluator.values(self.module, subject)
        kind = LoopUse if isinstance(denoted.transform, Loop) else Derivative
        args, keywords = _arguments(denoted, own)
        rest = args, keywords, denoted.certain, denoted.transform
        return kind(self.module, node, subject, functions, *rest)  # type: ignore[arg-type]

    def _decorated(self, decorator: ast.expr) -> Values:
        """Return what the function below a decorator may be."""
        holder = self.module.parent(decorator)
        if not isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef):
            return NOTHING
        return frozenset(
            layer.func
            for value in self.evaluator.definition(self.module, holder)
            for layer in layers(value)
            if isinstance(layer, Wrapped) and layer.node is decorator
        )

    def denoted_by(self, node: ast.expr) -> list[_Denoted]:
        """Return the transformations that an expression may denote."""
        values = self.evaluator.values(self.module, node)
        each = {value: list(self._transforms(value)) for value in values}
        found = {transform.name: (transform, value) for value in each for transform in each[value]}
        certain = all(each.values()) and len(found) == 1
        return [
            _Denoted(
                transform,
                [layer.call for layer in layers(v) if isinstance(layer, Partial)],
                certain,
            )
            for _, (transform, v) in sorted(found.items())
        ]

    def _transforms(self, value: Value) -> Iterator[Gradient | Loop]:
        """Yield the transformation that a value is."""
        name = ""
        match without_partials(value):
            case External(found) | Bound(func=External(found)):
                name = found
            case Function(module=module, node=node):
                name = module.qualified_name(node)  # a loop named in the settings
        if (transform := self.evaluator.transforms.find(name)) is not None:
            yield transform


def _arguments(
    denoted: _Denoted, own: Sequence[ast.Call]
) -> tuple[list[ast.expr], list[ast.keyword]]:
    """Return the arguments of a transformation, those of a call and of partials."""
    args = [arg for call in own for arg in call.args]
    keywords = [keyword for call in own for keyword in call.keywords]
    return with_partials(args, keywords, denoted.partials)


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
    return any(
        isinstance(value, External) and value.name.endswith(".custom_gradient")
        for value in project.values(module, decorator)
    )
