"""What happens to a function: it is called, differentiated, run in a loop, or passed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..names.mentions import last_name
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..sites.calls import Call, Escape, uses_of
from ..sites.site import Site
from ..values.callees import layers
from ..values.haiku_transforms import APPLY
from ..values.values import Class, External, Function, Instance
from .operations import SAME_WORK
from .transforms import Derivative, LoopUse, Transforms

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
        via: the calls of the project's functions whose arguments it was, and those that made these
            functions.
    """

    how: How
    module: Module
    node: ast.AST
    loop: LoopUse | None = None
    derivative: Derivative | None = None
    via: frozenset[ast.Call] = frozenset()

    @property
    def passed(self) -> bool:
        """Whether it arrived as an argument of one of the project's functions."""
        return bool(self.via)


def find_occurrences(project: Project, origin: Site | Function) -> Iterator[Occurrence]:
    """Yield what happens to what a site makes, or to a function."""
    uses = uses_of(project, origin, loaded=True, direct=True)
    via = frozenset(maker for place in uses.passing_on for maker in _with_makers(*place))
    node = origin.application if isinstance(origin, Site) else origin.node
    assert node is not None
    transforms = project.once(Transforms)
    applied = dict.fromkeys(transforms.of(node))
    for call in uses.calls:
        if not call.through and not _only_initializes(project, call):
            yield Occurrence("called", call.module, call.node, via=via)
    for escape in uses.escapes:
        module, place = escape.module, escape.node
        use = transforms.transformed_at(module, place) if isinstance(place, ast.expr) else None
        if use is not None:
            applied[use] = None
        elif not isinstance(place, ast.expr) or not _is_harmless(project, module, place):
            how: How = "exported" if _is_of_state(escape) else "elsewhere"
            yield Occurrence(how, module, place)
    for use in applied:
        if isinstance(use, LoopUse):
            yield Occurrence("body", use.module, use.node, loop=use, via=via)
        else:
            yield Occurrence("differentiated", use.module, use.node, derivative=use, via=via)
    if any(not name.startswith("_") or name.endswith("__") for name in uses.names):
        yield Occurrence("exported", origin.module, node)


def _only_initializes(project: Project, call: Call) -> bool:
    """Return whether a call only creates parameters: `model.init(key, x)`, or under
    `if hk.running_init():`.
    """
    if isinstance(call.callee, Instance) and last_name(call.node.func) in APPLY - {"apply"}:
        return True
    child: ast.AST = call.node
    for around in call.module.ancestors(call.node):
        if isinstance(around, FunctionNode):
            return False
        match around:
            case ast.If(test=ast.Call(func=func), body=body) if child in body:
                if External("haiku.running_init") in project.values(call.module, func):
                    return True
        child = around
    return False


def _is_harmless(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether only an object is passed on that has the function as a method, or what takes
    the function does the same work.
    """
    values = project.values(module, node)
    if any(isinstance(v, Instance) and isinstance(v.cls, Class) for v in values):
        return not any(isinstance(one, Function) for v in values for one in layers(v))
    holder = module.argument_holder(node)
    func = holder.func if isinstance(holder, ast.Call) else node
    return not SAME_WORK.isdisjoint(project.qualified(module, func))


def _is_of_state(escape: Escape) -> bool:
    """Return whether a function is passed to what a training state calls."""
    holder = escape.module.parent(escape.node)
    return isinstance(holder, ast.keyword) and holder.arg == "apply_fn"


def _with_makers(module: Module, call: ast.Call) -> frozenset[ast.Call]:
    """Return a call, and the calls that made its callee: `layer_stack(8)(f)`, or in two steps."""
    found = [call]
    func = call.func
    while True:
        if isinstance(func, ast.Name):
            values = [b.value for b in module.reaching(func) if b.value is not None]
            func = values[0] if len(values) == 1 else func
        if not isinstance(func, ast.Call) or func in found:
            return frozenset(found)
        found.append(func)
        func = func.func
