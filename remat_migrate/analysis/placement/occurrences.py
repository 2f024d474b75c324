"""What happens to a function: it is called, differentiated, run in a loop, or passed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..sites.calls import Call, uses_of
from ..sites.forms import decorates
from ..sites.name_search import words_of
from ..sites.site import Site
from ..values.haiku_transforms import APPLY, is_transformed
from ..values.values import External, Function, Instance, Value, Wrapped, layers
from .transforms import Derivative, LoopUse, transforms_in

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
