"""Where checkpoints are: what is differentiated, what runs in loops, how functions are used, and
the part that a checkpoint has in a function: all of its work, its last stage, or nothing but
another checkpoint.

A function that runs inside a gradient need not be the one that is differentiated. Whether a loop
lies between the two decides what a checkpoint on it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Literal

from ...libraries.apis import SAME_CALL
from ...libraries.transforms import RULE_METHODS, Gradient, Loop
from ..names.expected_failures import in_test
from ..names.module import FunctionNode, Module, Place, find_mentions, own_nodes
from ..project import Project
from ..sites.calls import Call, numbers, uses_of, words_of
from ..sites.find_sites import sites_in, wrapped_by
from ..sites.site import Site, decorates
from ..values.bind import argument, with_partials, without_partials
from ..values.containers import stored_in
from ..values.evaluator import Evaluator, partial_calls, targets_of, with_aliases
from ..values.values import (
    APPLY,
    NOTHING,
    Applied,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Parameter,
    Partial,
    Value,
    Values,
    Wrapped,
    is_transformed,
    layers,
    order,
)
from .operations import (
    SAME_WORK,
    Operation,
    Operations,
    doing_the_work,
    is_head,
    outer_checkpoint,
    weight,
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


@dataclass(eq=False, slots=True)
class DifferentiatedFunctions:
    """The functions that run inside something differentiated.

    Attributes:
        outside_loops: those reached without a JAX loop in between.
        in_loops: those reached through one, or through what may be one: an unknown function that
            receives them.
    """

    outside_loops: set[FunctionNode] = field(default_factory=set)
    in_loops: set[FunctionNode] = field(default_factory=set)

    def __contains__(self, function: FunctionNode | None) -> bool:
        """Return whether a function runs inside something differentiated, as far as is known."""
        return function in self.outside_loops or function in self.in_loops

    def contains(self, module: Module, node: ast.AST) -> bool:
        """Return whether code runs inside something differentiated, as far as is known."""
        return any(function in self for function in _around(module, node))

    def only_outside_loops(self, module: Module, node: ast.AST) -> bool:
        """Return whether code runs inside something differentiated, and never in a loop of it."""
        around = list(_around(module, node))
        return any(f in self.outside_loops for f in around) and not any(
            f in self.in_loops for f in around
        )


def find_differentiated(project: Project, *, backward: bool = False) -> DifferentiatedFunctions:
    """Return what the derivatives in the project's modules run.

    With `backward`, only those in reverse mode whose memory matters: none in tests.
    """
    modules = set(project.modules.values())
    found = DifferentiatedFunctions()
    queue: list[tuple[Function, bool]] = []
    for module in list(modules):
        for derivative in derivatives_in(project, module):
            if backward and derivative.transform.mode == "forward":
                continue
            if backward and in_test(module, derivative.node):
                continue
            for value in project.once(Operations).run_by(derivative.functions):
                queue += ((function, False) for function in _run_by(project, value))
    while queue:
        function, in_loop = queue.pop()
        known = found.in_loops if in_loop else found.outside_loops
        if function.node in known or function.module not in modules:
            continue
        known.add(function.node)
        queue += ((setup, in_loop) for setup in _set_up_for(function))
        for inner, looped in _calls(project, function, found):
            queue.append((inner, in_loop or looped))
    return found


def _set_up_for(function: Function) -> Iterator[Function]:
    """Yield the `setup` of a Flax module, which runs before its methods."""
    cls = function.module.enclosing_class(function.node)
    for statement in cls.body if cls is not None else ():
        if isinstance(statement, ast.FunctionDef) and statement.name == "setup":
            yield Function(function.module, statement)


def _around(module: Module, node: ast.AST) -> Iterator[FunctionNode]:
    function = module.enclosing_function(node)
    while function is not None:
        yield function
        function = module.enclosing_function(function)


def _calls(
    project: Project, function: Function, found: DifferentiatedFunctions
) -> Iterator[tuple[Function, bool]]:
    """Yield the functions that a function calls or passes on, and whether as a loop body."""
    module, operations = function.module, project.once(Operations)
    for node in own_nodes(function.node):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") in RULE_METHODS:
            continue
        called = project.evaluator.values(module, node.func)
        # What is passed inside something differentiated is followed where it is passed.
        passed = any(isinstance(v, Parameter) and v.function in found for v in called)
        callees = operations.callees(module, node)
        for value in callees:
            if passed and not any(isinstance(layer, Bound) for layer in layers(value)):
                continue
            for inner in _run_by(project, value):
                yield inner, _is_looped(value)
        known = bool(callees) and all(_runs_once(project, value) for value in callees)
        yield from _passed_on(project, module, node, runs_once=known)


def _passed_on(
    project: Project, module: Module, call: ast.Call, *, runs_once: bool
) -> Iterator[tuple[Function, bool]]:
    """Yield the functions that a call passes on, and whether as a loop body."""
    for arg in (*call.args, *(keyword.value for keyword in call.keywords)):
        if not isinstance(arg, ast.Name | ast.Attribute | ast.Lambda | ast.Call):
            continue
        is_body = isinstance(transforms_in(project, module).get(arg), LoopUse)
        for value in project.evaluator.values(module, arg):
            if isinstance(value, Function | Applied | Wrapped | Partial | Bound):
                for inner in _run_by(project, value):
                    yield inner, is_body or not runs_once or _is_looped(value)


def _runs_once(project: Project, value: Value) -> bool:
    """Return whether a function passed to a value runs outside of any loop: `jax.jit`, a
    gradient.
    """
    value = without_partials(value)
    if not isinstance(value, External):
        return False
    if value.name == "functools.partial" or project.apis.find(value.name) is not None:
        return True
    if isinstance(project.evaluator.transforms.find(value.name), Gradient):
        return True
    return value.name in SAME_CALL and not value.name.endswith(".scan")


def _is_looped(value: Value) -> bool:
    """Return whether a value runs its function in a loop: `nn.scan(Block)`, or an instance of
    it.
    """
    return any(
        isinstance(layer, Wrapped) and layer.how.endswith(".scan") for layer in layers(value)
    )


def _run_by(project: Project, value: Value) -> Iterator[Function]:
    if isinstance(value, Class):
        return  # calling a class makes an instance
    if any(isinstance(one, Wrapped) and one.how.endswith("custom_vjp") for one in layers(value)):
        return  # its rule runs in its place
    for target in targets_of(project.evaluator, value):
        yield target.function


How = Literal["body", "called", "differentiated", "elsewhere", "exported"]


@dataclass(frozen=True, eq=False, slots=True)
class Occurrence:
    """One place where a function is used.

    Attributes:
        how: it is the body of a loop, it is called, it is differentiated, it escapes ("elsewhere"),
            or other files may import it ("exported").
        module: the module.
        node: the expression that denotes the function there; for a call, the call.
        loop: the loop whose body it is.
        derivative: what differentiates it.
    """

    how: How
    module: Module
    node: ast.AST
    loop: LoopUse | None = None
    derivative: Derivative | None = None


def _occurrences(project: Project, origin: Site | Function) -> tuple[Occurrence, ...]:
    return tuple(find_occurrences(project, origin))


def find_occurrences(project: Project, origin: Site | Function) -> Iterator[Occurrence]:
    """Yield what happens to what a site makes, or to a function, in the project's modules.

    What a loop or a gradient makes of it is another function, whose uses are not its own.
    """
    uses = uses_of(project, origin, loaded=True)
    places = [place for place in uses.places if not _denotes_transformed(project, *place)]
    transformed: set[ast.AST] = set()
    above = _decorators_above(origin)
    for module, node in (*((origin.module, decorator) for decorator in above), *places):
        match transforms_in(project, module).get(node):
            case LoopUse() as loop:
                yield Occurrence("body", module, node, loop=loop)
            case Derivative() as derivative:
                yield Occurrence("differentiated", module, node, derivative=derivative)
            case _:
                continue
        transformed.add(node)
    named: list[tuple[Module, ast.AST]] = [*places]
    if (definition := _definition(origin)) is not None and not transformed.intersection(above):
        named.append((origin.module, definition))
    for module, place in named:
        if any(_is_public(word) for word, is_local in words_of(module, place) if not is_local):
            yield Occurrence("exported", module, place)
    for call in uses.calls:
        if not (_is_transformed(project, call.callee) or _only_initializes(project, call)):
            if call.through:
                transformed.add(call.node.args[0])
            else:
                yield Occurrence("called", call.module, call.node)
    for escape in uses.escapes:
        module, place = escape.module, escape.node
        match module.parent(place):
            case ast.Call() as outer if any(map(is_transformed, project.values(module, outer))):
                continue  # `haiku.transform(f)`, whose `apply` runs the function
        if place not in transformed and not _denotes_transformed(project, module, place):
            for_state = getattr(module.parent(place), "arg", None) == "apply_fn"
            yield Occurrence("exported" if for_state else "elsewhere", module, place)


def _is_public(word: str) -> bool:
    name = word.lstrip(".")
    return not name.startswith("_") or name.endswith("__")


def _definition(origin: Site | Function) -> ast.AST | None:
    """Return the definition whose name denotes a function, or what a site makes of it."""
    if isinstance(origin, Function):
        return origin.node
    assert origin.application is not None
    holder = origin.module.parent(origin.application)
    return holder if decorates(origin.module, origin.application) else None


def _decorators_above(origin: Site | Function) -> Sequence[ast.expr]:
    """Return the decorators above a site, or those of a function, from below."""
    above: list[ast.expr] = getattr(_definition(origin), "decorator_list", [])
    if isinstance(origin, Site) and origin.application in above:
        above = above[: above.index(origin.application)]
    return above[::-1]


def _denotes_transformed(project: Project, module: Module, node: ast.AST) -> bool:
    values = project.values(module, node) if isinstance(node, ast.expr) else ()
    return any(_is_transformed(project, value) for value in values)


def _is_transformed(project: Project, value: Value) -> bool:
    """Return whether a value is what a loop or a gradient makes of a function."""
    value = value.cls if isinstance(value, Instance) else value
    find = project.evaluator.transforms.find
    return any(isinstance(one, Wrapped) and find(one.how) is not None for one in layers(value))


def _only_initializes(project: Project, call: Call) -> bool:
    """Return whether a call only makes parameters: `model.init(...)`, or any in `if
    hk.running_init():`.
    """
    module, node = call.module, call.node
    if call.first and getattr(node.func, "attr", "apply") in APPLY - {"apply"}:
        return True
    child: ast.AST = node
    for around in module.ancestors(node):
        if isinstance(around, FunctionNode):
            return False
        match around:
            case ast.If(test=ast.Call(func=func), body=body) if child in body:
                if External("haiku.running_init") in project.values(module, func):
                    return True
        child = around
    return False


# How many functions may lie between a checkpoint and the loop that runs it.
_DEPTH = 4


def placement_of(project: Project) -> Placement:
    """Return what is differentiated and what runs in loops in a project."""
    return project.once(Placement)


class Placement:
    """What is differentiated and what runs in loops, and where functions are used."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.operations = project.once(Operations)

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator of the project."""
        return self.project.evaluator

    @cached_property
    def differentiated(self) -> DifferentiatedFunctions:
        """The functions that run inside something differentiated."""
        return find_differentiated(self.project)

    @cached_property
    def differentiated_backward(self) -> DifferentiatedFunctions:
        """The functions that run inside something that is differentiated in reverse mode."""
        return find_differentiated(self.project, backward=True)

    def occurrences(self, origin: Site | Function) -> tuple[Occurrence, ...]:
        """Return what happens to a function, or to what a site makes, in the project.

        Nothing does if the site only names its Api.
        """
        if isinstance(origin, Site) and origin.application is None:
            return ()
        return self.project.once(_occurrences, origin)

    @cached_property
    def transformed(self) -> dict[ast.AST, list[LoopUse | Derivative]]:
        """The loops and gradients of each class, and of each function that another one makes, by
        the class and the place that makes the function.
        """
        found: dict[ast.AST, list[LoopUse | Derivative]] = {}
        for module in self.project.modules.values():
            for use in transforms_in(self.project, module).values():
                for layer in (layer for value in use.functions for layer in layers(value)):
                    if isinstance(layer, Wrapped | Class):
                        found.setdefault(layer.node, []).append(use)
        return found

    def loops_of(self, occurrence: Occurrence, depth: int = 0) -> tuple[LoopUse, ...]:
        """Return the loops that run a function where it occurs; none if something else also runs
        it.

        The function is the loop body, or is called by a function that only runs in loops.
        """
        if occurrence.loop is not None:
            return (occurrence.loop,)
        if occurrence.how != "called" or depth > _DEPTH:
            return ()
        module = occurrence.module
        around = module.enclosing_function(occurrence.node)
        if around is None:
            return ()
        found: list[LoopUse] = []
        for outer in self.occurrences(Function(module, around)):
            loops = self.loops_of(outer, depth + 1)
            if not loops:
                return ()
            found += loops
        return tuple(found)


_CHECKPOINT_WORDS = ("remat", "checkpoint", "ckpt")


def differentiated_loops(placement: Placement, module: Module) -> Iterator[LoopUse]:
    """Yield the loops of a module that are surely differentiated in reverse mode, but for those in
    tests and in custom derivative rules.
    """
    for loop in loops_in(placement.project, module):
        # Looking for derivatives in the whole project comes last.
        if (
            loop.certain
            and not in_test(module, loop.node)
            and not in_derivative_rule(placement.project, module, loop.node)
            and placement.differentiated_backward.contains(module, loop.node)
        ):
            yield loop


def has_heavy_body(placement: Placement, loop: LoopUse) -> bool:
    """Return whether every body of a loop surely multiplies matrices, where it is differentiated.

    Bodies that run or mention a checkpoint have what they need.
    """
    operations, differentiated = placement.operations, placement.differentiated_backward
    bodies = operations.run_by(loop.functions)
    if loop.transform.own_checkpoints or not bodies or not _is_known(placement, loop):
        return False
    for body in bodies:
        inside = list(operations.of_value(body))
        if any(operation.checkpoint is not None for operation in inside):
            return False
        if not any(o.kind == "product" and o.function in differentiated for o in inside):
            return False
        for target in targets_of(placement.evaluator, body):
            if _mentions_checkpoint(placement.project, target.function):
                return False
    return True


def _is_known(placement: Placement, loop: LoopUse) -> bool:
    """Return whether a body is known on every path: not after `if wrap: body = wrap(body)`."""
    module, body = loop.module, loop.subject
    bindings = module.reaching(body) if isinstance(body, ast.Name) else ()
    return all(placement.evaluator.binding(module, binding) for binding in bindings)


def _mentions_checkpoint(project: Project, function: Function) -> bool:
    module = function.module
    sites = sites_in(project, module)
    if any(around is function.node for s in sites for around in module.ancestors(s.reference)):
        return True
    # `remat_ffn(x)`, where a caller says which
    called = (node.func for node in own_nodes(function.node) if isinstance(node, ast.Call))
    names = (getattr(func, "attr", getattr(func, "id", "")).lower() for func in called)
    return any(word in name for name in names for word in _CHECKPOINT_WORDS)


def in_checkpoint(placement: Placement, module: Module, node: ast.AST) -> bool:
    """Return whether code is in a function that a checkpoint of its module wraps."""
    wrapped = {
        target.function.node
        for site in sites_in(placement.project, module)
        if site.application is not None
        for value in wrapped_by(placement.project, site)
        for target in targets_of(placement.evaluator, value)
    }
    return any(around in wrapped for around in module.ancestors(node))


_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_PYTHON_LOOPS = ast.For | ast.AsyncFor | ast.While | _COMPREHENSIONS
# "term": all of one of several terms of a sum; "bulk": all but a few single layers before and after
# it, such as an embedding and a head.
Part = Literal["whole", "last", "bulk", "term"]
# How many calls deep a checkpoint is looked for.
_MOST_CALLS = 5


@dataclass(frozen=True, eq=False, slots=True)
class Checkpointed:
    """A checkpoint that is all, or the last stage, of what a function does.

    Attributes:
        applied: the checkpoint.
        part: which part it is.
        calls: the calls that lead to the checkpoint, outermost first, each with its module; empty
            if the function itself is the checkpoint.
    """

    applied: Applied
    part: Part
    calls: tuple[tuple[Module, ast.Call], ...] = ()


def checkpointed_parts(operations: Operations, value: Value) -> Iterator[Checkpointed]:
    """Return the checkpoints that are all, or the last stage, of what calling a value runs."""
    for inner in map(doing_the_work, sorted(operations.run_by((value,)), key=order)):
        if isinstance(inner, Applied):
            yield Checkpointed(inner, "whole")
        elif isinstance(inner, Function):
            yield from _within(operations, inner, 0)


def _within(operations: Operations, function: Function, depth: int) -> Iterator[Checkpointed]:
    """Yield the checkpoint that computes the result of a function, in it or in a function it
    calls.
    """
    module, node = function.module, function.node
    work: dict[ast.AST, Applied | None] = {}
    for inner in own_nodes(node):
        applied = operations.applied_by(module, inner) if isinstance(inner, ast.Call) else None
        if applied is not None or operations.works(module, inner):
            work[inner] = applied
    found = list(_last(operations, function, work, depth))
    yield from found
    if all(part.part == "last" for part in found):
        yield from _bulk(operations, function, work, depth)


def _last(
    operations: Operations, function: Function, work: Mapping[ast.AST, Applied | None], depth: int
) -> Iterator[Checkpointed]:
    """Yield the checkpoint that computes the result of a function from all its other work."""
    module, node = function.module, function.node
    nested = (inner for inner in own_nodes(node) if isinstance(inner, FunctionNode))
    places = sorted((*work, *nested), key=_line, reverse=True)
    last = [
        call
        for call in work
        if isinstance(call, ast.Call)
        and not python_loop(module, call)
        and _only_reaches_result(module, node, call, places)
    ]
    others = [other for other in work if other not in last]
    for call in last:
        if len(last) > 1 and (others or work[call] is None):
            return
        if others and not set(_inputs(module, call)).issuperset(others):
            return
        applied = work[call]
        found: Iterable[Checkpointed] = ()
        if applied is not None:
            found = [Checkpointed(applied, "whole" if len(last) == 1 else "term")]
        elif depth < _MOST_CALLS:
            found = _parts_of_callee(operations, module, call, depth)
        earlier = {by.node for other in others if (by := work[other]) is not None}
        for part in found:
            if part.applied.node not in earlier:  # else one checkpoint is on all stages
                name: Part = "last" if others and part.part != "bulk" else part.part
                yield Checkpointed(part.applied, name, ((module, call), *part.calls))


def _bulk(
    operations: Operations, function: Function, work: Mapping[ast.AST, Applied | None], depth: int
) -> Iterator[Checkpointed]:
    """Yield the checkpoint on a whole stack of layers that has only single layers beside it."""
    module = function.module
    stacks = [node for node in work if not _is_single_layer(operations, module, node)]
    call = stacks[0] if len(stacks) == 1 else None
    if not isinstance(call, ast.Call) or python_loop(module, call):
        return
    applied = work[call]
    if applied is None:
        for part in (
            _parts_of_callee(operations, module, call, depth) if depth < _MOST_CALLS else ()
        ):
            if part.part != "last":
                yield Checkpointed(part.applied, "bulk", ((module, call), *part.calls))
    elif any(_loops(operations, t.function) for t in targets_of(operations.evaluator, applied)):
        yield Checkpointed(applied, "bulk", ((module, call),))


def _is_single_layer(operations: Operations, module: Module, node: ast.AST) -> bool:
    """Return whether an expression multiplies once."""
    if not isinstance(node, ast.Call):
        return True
    work = [operation for operation in operations.of_call(module, node) if operation.is_work]
    return [(one.kind, one.weight) for one in work] == [("product", 1)]


def _loops(operations: Operations, function: Function) -> bool:
    """Return whether a function runs stages in a loop."""
    module = function.module
    return any(
        operations.works(module, node)
        for node in own_nodes(function.node)
        if isinstance(node, ast.Call)
        if python_loop(module, node) or operations.is_loop(module, node)
    )


def _parts_of_callee(
    operations: Operations, module: Module, call: ast.Call, depth: int
) -> Iterator[Checkpointed]:
    """Yield the parts of the project's function that a call runs, if it can only be that one."""
    functions: set[Function] = set()
    for value in operations.callees(module, call):
        if any(
            isinstance(layer, Applied)
            or (isinstance(layer, Wrapped) and layer.how not in SAME_WORK)
            for layer in layers(value)
        ):
            return
        functions |= {target.function for target in targets_of(operations.evaluator, value)}
    if len(functions) == 1:
        yield from _within(operations, functions.pop(), depth + 1)


def python_loop(module: Module, node: ast.AST) -> ast.AST | None:
    """Return the innermost Python loop that evaluates an expression, in the function around it."""
    for around in module.ancestors(node):
        if isinstance(around, FunctionNode):
            return None
        if isinstance(around, _PYTHON_LOOPS):
            return around
    return None


def _only_reaches_result(
    module: Module, function: FunctionNode, call: ast.Call, places: Sequence[ast.AST]
) -> bool:
    """Return whether the result of a call reaches the function's result, and no other work.

    `places` are the work and the nested functions, from the last line to the first.
    """
    own = places.index(call)
    # The next one is asked first: most often it answers.
    if call in _inputs(module, *places[own + 1 :], *places[:own]):
        return False
    if isinstance(function, ast.Lambda):
        return True
    returns = (node for node in own_nodes(function) if isinstance(node, ast.Return))
    return call in _inputs(module, *returns)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _inputs(module: Module, *nodes: ast.AST) -> Iterator[ast.AST]:
    """Yield what is below expressions or statements, and what the names in them are made from.

    The last one comes first.
    """
    seen: set[ast.AST] = set()
    left = list(nodes)
    queue: list[ast.AST] = []
    while queue or left:
        if not queue:
            queue += ast.iter_child_nodes(left.pop())
            continue
        part = queue.pop()
        if part in seen:
            continue
        seen.add(part)
        yield part
        queue += ast.iter_child_nodes(part)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            bindings = module.reaching(part)
            queue += [b.value for b in bindings if b.value is not None]
            queue += [one.value for one in stored_in(module, module.tree, part, bindings)]


# How many functions may lie between the two.
_MOST_BETWEEN = 5


def checkpoint_within(project: Project, site: Site) -> Place | None:
    """Return the checkpoint of the same policy that is all that a site wraps; None if it wraps
    more.

    This must hold on every path: the inner one does not count if a flag may turn it off.
    """
    found: list[Applied] = []
    for target in wrapped_by(project, site):
        applied = only_checkpoint(project.once(Operations), target, always=True)
        if applied is None or applied.node is site.application:
            return None
        found.append(applied)
    if not found or not all(_is_redundant(project, site, applied) for applied in found):
        return None
    first = min(found, key=lambda applied: (applied.node.lineno, applied.node.col_offset))
    return first.module, first.node


def calls_within(project: Project, applied: Applied) -> list[Place]:
    """Return the checkpoints that make up what a checkpoint wraps, but for a tenth; none if it does
    more.

    They may be called in loops, and by functions that only call them.
    """
    operations = project.once(Operations)
    found: dict[ast.expr, Place] = {}
    inside = outside = 0
    for target in targets_of(project.evaluator, applied):
        for operation in operations.of(target.function):
            if (inner := operation.checkpoint) is not None:
                found[inner.node] = inner.module, inner.node
                inside += operation.weight
            elif operation.is_work:
                outside += operation.weight
    return list(found.values()) if outside * 10 <= inside else []


def only_checkpoint(
    operations: Operations, value: Value, depth: int = 0, *, always: bool = False
) -> Applied | None:
    """Return the checkpoint that calling a value runs, if it runs nothing else; with `always`, only
    if no flag may leave it out.
    """
    applied = outer_checkpoint(value)
    if applied is not None or depth > _MOST_BETWEEN:
        return applied
    if any(isinstance(one, Wrapped) and one.how not in SAME_WORK for one in layers(value)):
        return None
    functions = {target.function for target in targets_of(operations.evaluator, value)}
    if len(functions) != 1:
        return None
    [function] = functions
    calls = {operation.node for operation in operations.of(function)}
    calls |= {node for node in own_nodes(function.node) if isinstance(node, ast.BinOp)}
    call = calls.pop() if len(calls) == 1 else None
    if not isinstance(call, ast.Call) or python_loop(function.module, call):
        return None
    found = operations.applied_by(function.module, call)
    values = operations.callees(function.module, call)
    if always and found is not None and not all(map(outer_checkpoint, values)):
        return None
    if found is not None or len(values) != 1:
        return found
    return only_checkpoint(operations, next(iter(values)), depth + 1, always=always)


def _is_redundant(project: Project, site: Site, applied: Applied) -> bool:
    for inner in sites_in(project, applied.module):
        if inner.application is not applied.node or not inner.definition.same_function:
            continue
        outer, options = site.options, inner.options
        # Without the barriers of the outer one, the inner one may save nothing.
        barriers = "True", outer.get("prevent_cse", "True")
        return (
            not (site.spread or inner.spread)
            and outer.get("policy", "None") == options.get("policy", "None")
            and options.get("prevent_cse", "True") in barriers
        )
    return False


# How certain it is that the checkpoint does not run in another way: it does not; no other is found,
# but something may be chosen or wrapped; others may import it; it is also called in another way.
Certainty = Literal["certain", "likely", "exported", "suspected"]
_ORDER: tuple[Certainty, ...] = ("certain", "likely", "exported", "suspected")


@dataclass(frozen=True, eq=False, slots=True)
class DifferentiatedPart:
    """A checkpoint that is all, or the last stage, of what is differentiated.

    Attributes:
        site: the checkpoint.
        derivative: what differentiates the function.
        found: which part it is, and where it is called.
        certainty: how certain it is that the checkpoint does not run in another way.
    """

    site: Site
    derivative: Derivative
    found: Checkpointed
    certainty: Certainty


def parts_in(project: Project, module: Module) -> list[DifferentiatedPart]:
    """Return the checkpoints of a module that are the whole of a function that is differentiated,
    or its last stage."""
    return project.once(_find_parts).get(module, [])


def _find_parts(project: Project) -> dict[Module, list[DifferentiatedPart]]:
    placement = placement_of(project)
    sites: dict[ast.expr, Site] = {}
    for module in project.modules.values():
        for site in sites_in(project, module):
            if site.application is not None and site.definition.same_function:
                sites[site.application] = site
    parts: dict[Module, list[DifferentiatedPart]] = {}
    known: set[Site] = set()
    modules = dict.fromkeys(project.modules.values() if sites else ())
    if any(site.definition.wraps_classes for site in sites.values()):
        # A training step may reach a Flax module through its state alone.
        modules.update(dict.fromkeys(project.mentioning(["apply_fn"])))
    for module in modules:
        for derivative, found in _checkpointed_parts(placement, module):
            applied = sites.get(found.applied.node)
            if applied is None or applied in known or in_test(applied.module, found.applied.node):
                continue
            if found.part != "bulk" and _is_one_of_several(project, found):
                continue
            certainty = _certainty(placement, applied, derivative, found)
            if certainty is not None:
                known.add(applied)
                part = DifferentiatedPart(applied, derivative, found, certainty)
                parts.setdefault(applied.module, []).append(part)
    return parts


def _checkpointed_parts(
    placement: Placement, module: Module
) -> Iterator[tuple[Derivative, Checkpointed]]:
    """Yield the checkpointed parts of what a module differentiates, outside of its tests."""
    for derivative in derivatives_in(placement.project, module):
        if _has_immediate_backward_pass(derivative):
            if not in_test(module, derivative.node):
                for value in sorted(derivative.functions, key=order):
                    for found in checkpointed_parts(placement.operations, value):
                        yield derivative, found


def _is_one_of_several(project: Project, found: Checkpointed) -> bool:
    """Return whether what follows a checkpoint keeps more than a twentieth of what that drops.

    The backward pass of what follows ends before the recomputation starts, so each needs memory
    only while the other does not. A loss keeps one array, which its gradient replaces.
    """
    after = operations_after(project, found)
    inside = _operations_of(project, found.applied)
    grows = any(operation.kind == "broadcast" for operation in after)
    return grows or (bool(inside) and (weight(after) - 1) * 20 > weight(inside))


def operations_after(project: Project, found: Checkpointed) -> list[Operation]:
    """Return what the functions that lead to a checkpoint compute after it, in this order."""
    every: list[Operation] = []
    for module, call in reversed(found.calls):
        around = module.enclosing_function(call)
        assert around is not None
        every += project.once(Operations).after(Function(module, around), call)
    return every


def _operations_of(project: Project, applied: Applied) -> list[Operation]:
    return list(project.once(Operations).of_value(applied))


def may_be_head(project: Project, found: Checkpointed) -> bool:
    """Return whether a stage may drop what is large beside all else, such as logits.

    Without a product its input may be logits: then only a loss that keeps one array, which its
    gradient replaces, needs no checkpoint.
    """
    operations = _operations_of(project, found.applied)
    kinds = {operation.kind for operation in operations}
    if "product" not in kinds:
        return not kinds or not kinds <= {"elementwise", "draw", "loss"} or weight(operations) > 1
    return is_head(operations, ("softmax",))


def _certainty(
    placement: Placement, site: Site, derivative: Derivative, found: Checkpointed
) -> Certainty | None:
    """Return how certain it is that the checkpoint is used for nothing else; None if it is."""
    levels: list[Certainty] = ["certain"]
    if not site.certain or not derivative.certain or len(derivative.functions) > 1:
        levels.append("likely")
    occurrences = list(placement.occurrences(site))
    calls = {call for _, call in found.calls}
    for module, call in found.calls:
        levels.append("likely")
        around = module.enclosing_function(call)
        assert around is not None
        occurrences += placement.occurrences(Function(module, around))
    if not _is_plain(placement, derivative):
        return None
    for occurrence in occurrences:
        if occurrence.derivative is not None and not _is_plain(placement, occurrence.derivative):
            return None
        if occurrence.how == "exported":
            levels.append("exported")
        elif occurrence.how == "called" and occurrence.node not in calls:
            if _may_be_a_stage(placement, occurrence):
                return None
            levels.append("suspected")
        elif occurrence.how in ("body", "elsewhere"):
            return None
    return max(levels, key=_ORDER.index)


def _is_plain(placement: Placement, derivative: Derivative) -> bool:
    """Return whether a gradient is taken once: it is not differentiated itself, and not part of a
    rule.
    """
    module, node = derivative.module, derivative.node
    if not _has_immediate_backward_pass(derivative):
        return False
    if in_derivative_rule(placement.project, module, node):
        return False
    if placement.differentiated.contains(module, node):
        return False
    return not any(isinstance(use, Derivative) for use in placement.transformed.get(node, ()))


def _may_be_a_stage(placement: Placement, occurrence: Occurrence) -> bool:
    """Return whether a call may be one of several stages of something that is differentiated."""
    module, node = occurrence.module, occurrence.node
    return placement.differentiated.contains(module, node) or bool(placement.loops_of(occurrence))


def _has_immediate_backward_pass(derivative: Derivative) -> bool:
    """Return whether the backward pass follows the forward pass immediately.

    What `jax.vjp` returns is called later: in `back(jax.grad(critic)(y))`, the critic runs while
    `y` is all that a checkpoint keeps.
    """
    return derivative.transform.mode == "reverse" and not derivative.transform.later


def wraps_policy(site: Site) -> bool:
    """Return whether a checkpoint has, or may have, a policy other than None."""
    if site.spread:
        return True
    option = site.arguments.get("policy")
    if option is None:
        return False
    value = option.value.func if isinstance(option.value, ast.Call) else option.value
    match value:
        case ast.Constant(value=None):
            return False
        # Called, it returns False, which means no policy.
        case ast.Name(id="nothing_saveable") | ast.Attribute(attr="nothing_saveable"):
            return False
    return True
