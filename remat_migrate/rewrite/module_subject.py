"""Checkpoints a Flax module: its class, or a function that takes the module first.

    nn.remat(Block(8))(x)     ->  nn.remat(Block)(8, name="Block_0")(x)
    nn.remat(self.block)(x)   ->  nn.remat(lambda module, *args: module(*args))(self.block, x)

Parameters keep the names that they have without a checkpoint.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import partial
from typing import Any

from ..analysis import Module, Project
from ..analysis.sites.references import is_used_elsewhere
from ..analysis.sites.site import Site
from ..analysis.statics.argument_kinds import kinds_of
from ..codemod.changes import Change, Code, InsertArgument, NewNodes, Remove, Replace, Rewrite
from .flax_names import flax_name, unnamed
from .refusal import Refused, check_editable


def wrap_class(site: Site, maker: ast.Call, name: str | None) -> Change:
    """Return the change that wraps the class of an instance instead of the instance.

    Args:
        site: the site; its application is a call around `maker`.
        maker: the call that creates the instance.
        name: the `name=` of the instance, as an expression.
    """
    application = site.application
    assert application is not None

    def make(wrapped: Any, new_nodes: NewNodes) -> Any:
        from ..codemod.expressions import with_argument

        instance = new_nodes.new(maker)
        cls = wrapped.with_changes(lpar=[], rpar=[]).deep_replace(instance, instance.func)
        call = instance.with_changes(func=cls, lpar=wrapped.lpar, rpar=wrapped.rpar)
        if name is None:
            return call
        return with_argument(call, "name", new_nodes.expression(Code(name)))

    return Rewrite(site.module, application, make)


def pass_module(project: Project, site: Site, *, bound: bool) -> list[Change]:
    """Return the changes that wrap a function of the module, which the call then passes first.

    The function closes over keyword arguments that are not arrays: they may be flags.

    Args:
        project: the project.
        site: the site.
        bound: whether the subject is a method of an instance.

    Raises:
        Refused: the wrapped function is not called at once, or with a positional Python value.
    """
    module, application = site.module, site.application
    outer = module.parent(application) if application is not None else None
    if not isinstance(outer, ast.Call) or outer.func is not application or site.subject is None:
        raise Refused("wrap the class: `nn.remat(Block)(...)`, or a function that takes the module")
    check_editable(module, [outer])
    subject = site.subject[1]
    assert isinstance(subject, ast.expr)
    if "#" in module.segment(subject):
        raise Refused("the wrapped expression contains a comment", module, subject)
    receiver, method = subject, ""
    if bound and isinstance(subject, ast.Attribute):
        receiver, method = subject.value, f".{subject.attr}"
    for arg in outer.args:
        if kinds_of(project).of(module, arg) == "python":
            raise Refused(f"name `{module.segment(arg)}` in `static_argnums`", module, arg)
    closed = tuple(k for k in outer.keywords if kinds_of(project).of(module, k.value) != "array")
    if not all(isinstance(k.value, ast.Name | ast.Constant | ast.Attribute) for k in closed):
        raise Refused("an option is computed in the call", module, outer)
    names = "*args, **kwargs" if len(closed) < len(outer.keywords) else "*args"
    values = {f"value_{number}": keyword.value for number, keyword in enumerate(closed)}
    given = (f"{k.arg}=" if k.arg else "**" for k in closed)
    passed = ", ".join(
        [names, *(f"{to}{{{name}}}" for to, name in zip(given, values, strict=True))]
    )
    code = Code.of(f"lambda module, {names}: module{method}({passed})", **values)
    is_used = partial(is_used_elsewhere, project, module)
    return [
        Replace(module, subject, code),
        InsertArgument(module, outer, Code.of("{module}", module=receiver)),
        *(Remove(module, keyword, is_used) for keyword in closed),
    ]


def kept_name(
    project: Project, module: Module, maker: ast.Call, wrapped: Collection[ast.Call]
) -> str | None:
    """Return the `name=` that keeps the name of an instance; None if it needs none.

    Args:
        project: the project.
        module: the module.
        maker: the call that creates the instance.
        wrapped: the calls in this module that get a name for the same reason.

    Raises:
        Refused: the name is unknown, or those of other instances would change.
    """
    name = flax_name(project, module, maker)
    if name is None:
        return None
    function = module.enclosing_function(maker)
    assert function is not None
    made = list(unnamed(project, module, function))
    own = next(m.name for m in made if m.call is maker)
    same = [m.call for m in made if m.name == own]
    if any(call not in wrapped for call in same[same.index(maker) + 1 :]):
        raise Refused(f"the numbers of the other `{own}` would change", module, maker)
    for node in ast.walk(function):
        match node:
            case ast.keyword(arg="name", value=ast.Constant(str(taken))) if f'"{taken}"' == name:
                raise Refused(f"another one is named {name}", module, node.value)
    return name
