"""Which parameters of a function Python must know: a data-flow question.

An expression depends on the parameters whose value it needs to have a value itself; `x.shape`
depends on nothing. A *need* is a place where Python must have the value: a branch, a loop count, a
shape. Needs are found through local names, nested functions, and calls into other functions and
modules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import library
from .bind import bind_call
from .calling import returned_expressions
from .module import Module
from .scopes import Binding, FunctionNode, parameters
from .values import (
    Applied,
    Bound,
    Class,
    Constant,
    Container,
    External,
    Function,
    Instance,
    Parameter,
    Partial,
    Value,
    Wrapped,
)

if TYPE_CHECKING:
    from .evaluate import Evaluator


@dataclass(frozen=True, slots=True)
class Dependence:
    """An expression needs the value of a parameter.

    Attributes:
        parameter: its name.
        index: the position in `*args` or the key in `**kwargs`.
        traced: the `jax.numpy` operations between the parameter and the expression: inside a
            checkpointed function their results are tracers even where the parameter is static.
    """

    parameter: str
    index: int | str | None = None
    traced: frozenset[ast.expr] = frozenset()


Dependences = frozenset[Dependence]
NONE: Dependences = frozenset()


@dataclass(frozen=True, slots=True)
class Need:
    """A place where Python must know the value of a parameter.

    Attributes:
        parameter: its name.
        index: the position in `*args` or the key in `**kwargs`.
        module: where.
        node: the expression that must have a value.
        reason: what for.
        certain: False when the value only goes somewhere that may need it.
        unseen: whether that is code that cannot be seen.
        traced: see Dependence; with the module they are in.
    """

    parameter: str
    index: int | str | None
    module: Module
    node: ast.expr
    reason: str
    certain: bool = True
    unseen: bool = False
    traced: frozenset[tuple[Module, ast.expr]] = frozenset()


class Needs:
    """Finds the needs of functions, each computed once."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._known: dict[FunctionNode, tuple[Need, ...]] = {}
        self._results: dict[FunctionNode, Dependences] = {}
        self._running: set[FunctionNode] = set()

    def of(self, function: Function) -> tuple[Need, ...]:
        """The needs of a function in order of place."""
        node = function.node
        if node not in self._known:
            if node in self._running:
                return ()
            self._running.add(node)
            try:
                found = dict.fromkeys(_Analysis(self, function).needs())
            finally:
                self._running.discard(node)
            self._known[node] = tuple(found)
        return self._known[node]

    def result(self, function: Function) -> Dependences:
        """The parameters that the result of a function depends on."""
        node = function.node
        if node not in self._results:
            self._results[node] = frozenset(Dependence(p.arg) for p in parameters(node))
            analysis = _Analysis(self, function)
            found: set[Dependence] = set()
            for expr in returned_expressions(node):
                found |= analysis.depends(expr)
            self._results[node] = frozenset(found)
        return self._results[node]


class _Analysis:
    """The analysis of one function, nested functions included."""

    def __init__(self, needs: Needs, function: Function) -> None:
        self.all = needs
        self.evaluator = needs.evaluator
        self.module = function.module
        self.node = function.node
        self.scope = self.module.scope_of(function.node)
        a = function.node.args
        self.vararg = a.vararg.arg if a.vararg else None
        self.kwarg = a.kwarg.arg if a.kwarg else None
        self._known: dict[ast.expr, Dependences] = {}
        self._running: set[ast.AST] = set()
        self._cut = False

    # -- what an expression depends on

    def depends(self, node: ast.expr | None) -> Dependences:
        """The parameters whose value `node` needs to have a value."""
        if node is None:
            return NONE
        known = self._known.get(node)
        if known is not None:
            return known
        if node in self._running:
            self._cut = True
            return NONE
        outermost = not self._running
        self._running.add(node)
        found = self._depends(node)
        self._running.discard(node)
        if not self._cut or outermost:
            self._known[node] = found
        if outermost:
            self._cut = False
        return found

    def _union(self, *nodes: ast.expr | None) -> Dependences:
        return frozenset().union(*(self.depends(n) for n in nodes))

    def _depends(self, node: ast.expr) -> Dependences:
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Constant() | ast.Lambda():
                return NONE
            case ast.Attribute():
                if node.attr in library.STATIC_ATTRIBUTES:
                    return NONE
                return self.depends(node.value)
            case ast.Subscript():
                inner = self.depends(node.value)
                if isinstance(node.slice, ast.Constant):
                    return self._indexed(inner, node.slice.value)
                return inner | self.depends(node.slice)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self._union(node.body, node.orelse)
            case ast.Call():
                return self._call(node)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self.depends(node.elt)
            case ast.DictComp():
                return self._union(node.key, node.value)
            case ast.BinOp():
                return self._union(node.left, node.right)
        return self._union(*(c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)))

    def _indexed(self, found: Dependences, index: object) -> Dependences:
        if not isinstance(index, int | str):
            return found
        return frozenset(
            replace(d, index=index)
            if d.index is None and d.parameter in (self.vararg, self.kwarg)
            else d
            for d in found
        )

    def _name(self, node: ast.Name) -> Dependences:
        found: set[Dependence] = set()
        for binding in self.module.reaching(node):
            found |= self._binding(binding)
        return frozenset(found)

    def _binding(self, binding: Binding) -> Dependences:
        if binding.kind == "parameter":
            if binding.scope is self.scope:
                return frozenset((Dependence(binding.name),))
            return self._inner_parameter(binding)
        if binding.value is None or not self._inside(binding.scope.node):
            return NONE
        found = self.depends(binding.value)
        if binding.kind == "augment" and isinstance(binding.node, ast.AugAssign):
            found |= self.depends(binding.node.target)
        if binding.path and binding.path[0] >= 0:
            parts = binding.value
            if isinstance(parts, ast.Tuple | ast.List) and binding.kind == "assign":
                if binding.path[0] < len(parts.elts):
                    return self.depends(parts.elts[binding.path[0]])
            found = self._indexed(found, binding.path[0])
        return found

    def _inside(self, node: ast.AST) -> bool:
        return node is self.node or any(a is self.node for a in self.module.ancestors(node))

    def _inner_parameter(self, binding: Binding) -> Dependences:
        """A parameter of a nested function: what the calls in this function pass for it."""
        inner = binding.scope.node
        if not isinstance(inner, FunctionNode) or not self._inside(inner):
            return NONE
        found: set[Dependence] = set()
        for call in ast.walk(self.node):
            if not isinstance(call, ast.Call):
                continue
            for value in self.evaluator.values(self.module, call.func):
                function = underlying(value)
                if isinstance(function, Function) and function.node is inner:
                    passed = bind_call(inner, call.args, call.keywords).by_name.get(binding.name)
                    found |= self.depends(passed)
        return frozenset(found)

    def _compare(self, node: ast.Compare) -> Dependences:
        found: set[Dependence] = set()
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            match operator:
                case ast.Is() | ast.IsNot():
                    pass
                case ast.In() | ast.NotIn():
                    found |= self.depends(left)
                    # The keys of a dict are known while tracing.
                    if not isinstance(left, ast.Constant):
                        found |= self.depends(right)
                case _:
                    found |= self._union(left, right)
            left = right
        return frozenset(found)

    def _call(self, node: ast.Call) -> Dependences:
        arguments = [*node.args, *(k.value for k in node.keywords)]
        values = self.evaluator.values(self.module, node.func)
        found: set[Dependence] = set()
        for value in values:
            match underlying(value):
                case External(name):
                    found |= self._external_result(name, node, arguments)
                case Function() as function:
                    found |= self._function_result(function, value, node, arguments)
                case Class():
                    found |= self._union(*arguments)
                case _:
                    found |= self._union(*arguments)
        if not values:
            found |= self._union(*arguments)
            if isinstance(node.func, ast.Attribute):
                receiver = self.depends(node.func.value)
                if node.func.attr in ("get", "pop") and node.args:
                    key = node.args[0]
                    if isinstance(key, ast.Constant):
                        receiver = self._indexed(receiver, key.value)
                found |= receiver
                if node.func.attr in library.METHODS:
                    found = {_through(d, node) for d in found}
        return frozenset(found)

    def _external_result(self, name: str, node: ast.Call, arguments: list[ast.expr]) -> Dependences:
        if name in library.STATIC_RESULTS:
            return NONE
        if name.startswith("builtins."):
            if name.removeprefix("builtins.") in library.STATIC_BUILTINS:
                return NONE
            return self._union(*arguments)
        found = self._union(*arguments)
        if name.startswith(library.TRACED_MODULES) and not self._at_compile_time(node):
            return frozenset(_through(d, node) for d in found)
        return found

    def _at_compile_time(self, node: ast.AST) -> bool:
        """Whether a node stands in `with jax.ensure_compile_time_eval():`."""
        for around in self.module.ancestors(node):
            if isinstance(around, ast.With):
                for item in around.items:
                    context = item.context_expr
                    if isinstance(context, ast.Call):
                        for value in self.evaluator.values(self.module, context.func):
                            if value == External("jax.ensure_compile_time_eval"):
                                return True
            if around is self.node:
                break
        return False

    def _function_result(
        self, function: Function, callee: Value, node: ast.Call, arguments: list[ast.expr]
    ) -> Dependences:
        if function.node is self.node or self._inside(function.node):
            # A nested function: its result depends on the enclosing parameters, too.
            found: set[Dependence] = set()
            for expr in returned_expressions(function.node):
                found |= self.depends(expr)
            return frozenset(found) | self._union(*arguments)
        bound = bind_call(function.node, *full_arguments(callee, node), skip=skipped(callee))
        if bound.unclear:
            return self._union(*arguments)
        found = set()
        for dependence in self.all.result(function):
            passed = bound.by_name.get(dependence.parameter)
            for inner in self.depends(passed):
                # The operations stand in the other function: only that they are there matters.
                found.add(
                    replace(inner, traced=inner.traced | dependence.traced)
                    if dependence.traced
                    else inner
                )
            if passed is None:
                found |= self._union(*bound.star, *(k.value for k in bound.double_star))
        return frozenset(found)

    # -- needs

    def needs(self) -> Iterator[Need]:
        """Every need in the function's body, nested functions included."""
        bodies: list[ast.AST] = (
            [self.node.body] if isinstance(self.node, ast.Lambda) else list(self.node.body)
        )
        for body in bodies:
            for node in ast.walk(body):
                yield from self._needs_at(node)

    def _truth_need(self, node: ast.expr, reason: str) -> Iterator[Need]:
        yield from self._need(node, reason, found=self._truth(node))

    def _truth(self, node: ast.expr) -> Dependences:
        """The parameters that the truth of an expression depends on: not those in a container."""
        match node:
            case ast.Dict() | ast.List() | ast.Tuple() | ast.Set():
                return NONE
            case ast.BoolOp():
                return frozenset().union(*(self._truth(v) for v in node.values))
            case ast.UnaryOp(op=ast.Not()):
                return self._truth(node.operand)
            case ast.IfExp():
                return self._truth(node.body) | self._truth(node.orelse)
            case ast.Name():
                bindings = self.module.reaching(node)
                values = [b.value for b in bindings if b.kind == "assign" and not b.path]
                if bindings and len(values) == len(bindings):
                    containers = (ast.Dict, ast.List, ast.Tuple, ast.BoolOp, ast.IfExp)
                    if all(isinstance(v, containers) for v in values):
                        return frozenset().union(*(self._truth(v) for v in values if v))
        return self.depends(node)

    def _need(
        self,
        node: ast.expr | None,
        reason: str,
        certain: bool = True,
        found: Dependences | None = None,
    ) -> Iterator[Need]:
        if node is None:
            return
        depends = self.depends(node) if found is None else found
        for d in sorted(depends, key=lambda d: (d.parameter, str(d.index))):
            traced = frozenset((self.module, op) for op in d.traced)
            yield Need(d.parameter, d.index, self.module, node, reason, certain, traced=traced)

    def _unseen(self, node: ast.expr, reason: str) -> Iterator[Need]:
        for need in self._need(node, reason, certain=False):
            yield replace(need, unseen=True)

    def _needs_at(self, node: ast.AST) -> Iterator[Need]:
        match node:
            case ast.If() | ast.IfExp():
                yield from self._truth_need(node.test, "a branch on it")
            case ast.While():
                yield from self._truth_need(node.test, "a loop that ends by it")
            case ast.Assert():
                yield from self._truth_need(node.test, "an assertion on it")
            case ast.Match():
                yield from self._need(node.subject, "a match on it")
            case ast.BoolOp():
                for value in node.values[:-1]:
                    yield from self._truth_need(value, "`and`/`or` on it")
            case ast.UnaryOp(op=ast.Not()):
                yield from self._truth_need(node.operand, "`not` on it")
            case ast.comprehension():
                for test in node.ifs:
                    yield from self._truth_need(test, "a branch on it")
            case ast.Slice():
                for bound in (node.lower, node.upper, node.step):
                    yield from self._need(bound, "a slice bound")
            case ast.Subscript(ctx=ast.Load()):
                yield from self._index_needs(node)
            case ast.FormattedValue():
                if not self._in_message(node):
                    yield from self._need(node.value, "text made of it", certain=False)
            case ast.Call():
                yield from self._call_needs(node)

    def _in_message(self, node: ast.AST) -> bool:
        for around in self.module.ancestors(node):
            if isinstance(around, ast.Raise | ast.Assert):
                return True
            if isinstance(around, ast.stmt):
                return isinstance(around, ast.Expr)
        return False

    def _index_needs(self, node: ast.Subscript) -> Iterator[Need]:
        if isinstance(node.slice, ast.Slice | ast.Tuple | ast.Constant):
            return
        values = self.evaluator.values(self.module, node.value)
        if any(isinstance(v, Container) for v in values):
            yield from self._need(node.slice, "an index of a Python container")
        elif any(isinstance(v, Constant) for v in values):
            yield from self._need(node.slice, "an index of a Python value")
        else:
            yield from self._need(node.slice, "an index, perhaps of a Python container", False)

    def _call_needs(self, node: ast.Call) -> Iterator[Need]:
        values = self.evaluator.values(self.module, node.func)
        known = False
        for value in values:
            inner = underlying(value)
            match inner:
                case External(name):
                    known = True
                    yield from self._external_needs(name, node)
                case Function():
                    known = True
                    yield from self._function_needs(inner, value, node)
                case Instance(cls=External(name)) if name in library.INSTANCES:
                    known = True
                    yield from self._instance_needs(name, node)
                case Instance(cls=External(name)) if name.startswith(
                    ("flax.linen.", "haiku.", "equinox.nn.", "flax.nnx.")
                ):
                    known = True
                    yield from self._keyword_needs(node)
                case Class():
                    known = True
        if known:
            return
        if isinstance(node.func, ast.Attribute):
            attr = node.func.attr
            if attr in library.CONCRETE_METHODS:
                yield from self._need(node.func.value, f"`.{attr}()`")
            if attr in library.METHODS and not values:
                for position, arg in enumerate(node.args):
                    if library.METHODS[attr].covers(position):
                        yield from self._need(arg, f"an argument of `.{attr}()`")
                yield from self._keyword_needs(node)
                return
        if any(isinstance(v, Parameter) for v in values) or isinstance(node.func, ast.Name):
            yield from self._unseen(node.func, "a call of it")
        for arg in (*node.args, *(k.value for k in node.keywords)):
            yield from self._unseen(arg, "a call of code that cannot be seen")

    def _keyword_needs(self, node: ast.Call) -> Iterator[Need]:
        for keyword in node.keywords:
            if keyword.arg in library.STATIC_KEYWORDS:
                yield from self._need(keyword.value, f"`{keyword.arg}=`")

    def _external_needs(self, name: str, node: ast.Call) -> Iterator[Need]:
        last = name.rpartition(".")[2]
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if name.startswith("builtins."):
            if last in library.CONCRETE_BUILTINS and not (
                last in ("max", "min", "sorted", "any", "all") and self._of_static(arguments)
            ):
                for arg in arguments:
                    yield from self._need(arg, f"`{last}()`")
            elif last in ("getattr", "setattr") and len(node.args) > 1:
                yield from self._need(node.args[1], f"`{last}()`")
        elif name in library.STATIC_RESULTS or name in library.IDENTITIES:
            return
        elif name.startswith(library.CONCRETE_MODULES):
            for arg in arguments:
                yield from self._need(arg, f"`{name}`, which cannot work on a tracer")
        elif name.startswith(("jax.", "flax.", "haiku.", "equinox.")):
            static = library.FUNCTIONS.get(last)
            if static is not None:
                for position, arg in enumerate(node.args):
                    if static.covers(position):
                        yield from self._need(arg, f"a Python value for `{last}`")
            if last == "fori_loop":
                # With bounds that are traced it is a while loop, which has no gradient.
                bounds = [k.value for k in node.keywords if k.arg in ("lower", "upper")]
                for arg in (*node.args[:2], *bounds):
                    yield from self._need(arg, "bounds of a differentiated loop", certain=False)
            yield from self._keyword_needs(node)
        elif not name.startswith(("functools.", "itertools.", "typing.", "contextlib.")):
            for arg in arguments:
                yield from self._unseen(arg, f"`{name}`, which cannot be seen")

    def _of_static(self, arguments: list[ast.expr]) -> bool:
        return not self._union(*arguments)

    def _instance_needs(self, name: str, node: ast.Call) -> Iterator[Need]:
        last = name.rpartition(".")[2]
        for parameter, position in library.INSTANCES[name]:
            for keyword in node.keywords:
                if keyword.arg == parameter:
                    yield from self._need(keyword.value, f"`{parameter}` of {last}")
            if position < len(node.args):
                yield from self._need(node.args[position], f"`{parameter}` of {last}")

    def _function_needs(self, function: Function, callee: Value, node: ast.Call) -> Iterator[Need]:
        if self._inside(function.node) or function.node is self.node:
            return  # its body is walked as part of this one
        bound = bind_call(function.node, *full_arguments(callee, node), skip=skipped(callee))
        a = function.node.args
        for need in self.all.of(function):
            passed: list[ast.expr] = []
            if need.parameter in bound.by_name:
                passed = [bound.by_name[need.parameter]]
            elif a.vararg is not None and need.parameter == a.vararg.arg:
                passed = list(bound.star)
                if isinstance(need.index, int) and 0 <= need.index < len(bound.star):
                    passed = [bound.star[need.index]]
            elif a.kwarg is not None and need.parameter == a.kwarg.arg:
                passed = [k.value for k in bound.double_star if need.index in (None, k.arg)]
            elif bound.unclear:
                passed = [arg.value for arg in node.args if isinstance(arg, ast.Starred)] + [
                    k.value for k in node.keywords if k.arg is None
                ]
                passed = [p for p in passed if self.depends(p)]
            for expr in passed:
                for d in self.depends(expr):
                    traced = frozenset((self.module, op) for op in d.traced) | need.traced
                    yield replace(need, parameter=d.parameter, index=d.index, traced=traced)


def _through(dependence: Dependence, node: ast.expr) -> Dependence:
    return replace(dependence, traced=dependence.traced | {node})


def underlying(value: Value | None) -> Value | None:
    """The function that calling a value runs in the end, or the class that it instantiates."""
    while True:
        match value:
            case Applied(target=inner):
                value = inner
            case Wrapped(func=inner) | Partial(func=inner):
                value = inner
            case Bound(func=inner):
                value = inner
            case _:
                return value


def skipped(value: Value | None) -> int:
    """How many leading parameters are bound already (`self`)."""
    while True:
        match value:
            case Bound():
                return 1
            case Applied(target=inner) | Wrapped(func=inner) | Partial(func=inner):
                value = inner
            case _:
                return 0


def full_arguments(value: Value | None, node: ast.Call) -> tuple[list[ast.expr], list[ast.keyword]]:
    """The arguments of a call with those that partials on the way give."""
    args, keywords = list(node.args), list(node.keywords)
    while True:
        match value:
            case Partial(func=inner, call=call):
                args = [*call.args[1:], *args]
                given = {k.arg for k in keywords}
                keywords = [*(k for k in call.keywords if k.arg not in given), *keywords]
                value = inner
            case Applied(target=inner) | Wrapped(func=inner) | Bound(func=inner):
                value = inner
            case _:
                return args, keywords
