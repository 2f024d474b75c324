"""Checkpointing a module as Flax wants it: its class, or a function that takes it first.

    nn.remat(Block(8))(x)     ->  nn.remat(Block)(8, name="Block_0")(x)
    nn.remat(self.block)(x)   ->  nn.remat(lambda module, *args: module(*args))(self.block, x)

Parameters keep the names that they have without a checkpoint.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ..model import Module, Project
from ..model.sites import Site
from ..source import Edit
from ..source.changes import Change
from ..source.layout import layout_of
from .flax_names import flax_name, unnamed
from .leading_argument import leading_argument
from .options import removal_edits
from .refusal import Refused, check_editable


def wrap_class(site: Site, maker: ast.Call, name: str | None) -> list[Edit]:
    """The edits that wrap the class that `maker`, the subject of a site, makes an instance of.

    Args:
        site: the site; its application is a call that stands around `maker`.
        maker: the call of the class.
        name: the `name=` that the instance gets, as an expression.
    """
    module, application = site.module, site.application
    assert application is not None
    end = module.span(maker).end
    opening = layout_of(module.source).opening(end - 1)
    behind = module.span(maker.func).end
    given = module.source.text[opening + 1 : end - 1]
    if name is not None:
        given = (
            f"{given.rstrip().removesuffix(',')}, name={name}" if given.strip() else f"name={name}"
        )
    at = module.span(application).end
    path = module.source.path
    return [Edit(path, behind, end, ""), Edit(path, at, at, f"({given})")]


def pass_module(project: Project, site: Site, *, bound: bool) -> list[Edit]:
    """The edits that wrap a function of the module, which the call then passes first.

    What is passed by keyword, and no array, is closed over: it may be a flag.

    Args:
        project: the project.
        site: the site.
        bound: whether the subject is a method of an instance.

    Raises:
        Refused: what is made is not called at once, or with a Python value by position.
    """
    module, application = site.module, site.application
    outer = module.parent(application) if application is not None else None
    if not isinstance(outer, ast.Call) or outer.func is not application or site.subject is None:
        raise Refused("wrap the class: `nn.remat(Block)(...)`, or a function that takes the module")
    check_editable(module, [outer])
    subject = site.subject[1]
    assert isinstance(subject, ast.expr)
    if layout_of(module.source).comments_in(*module.span(subject)):
        raise Refused("a comment stands in what is wrapped", module, subject)
    receiver, method = subject, ""
    if bound and isinstance(subject, ast.Attribute):
        receiver, method = subject.value, f".{subject.attr}"
    for arg in outer.args:
        if project.kinds.of(module, arg) == "python":
            raise Refused(f"name `{module.segment(arg)}` in `static_argnums`", module, arg)
    closed = tuple(k for k in outer.keywords if project.kinds.of(module, k.value) != "array")
    if not all(isinstance(k.value, ast.Name | ast.Constant | ast.Attribute) for k in closed):
        raise Refused("an option is computed in the call", module, outer)
    names = "*args, **kwargs" if len(closed) < len(outer.keywords) else "*args"
    passed = ", ".join([names, *(module.segment(keyword) for keyword in closed)])
    written = f"lambda module, {names}: module{method}({passed})"
    return [
        Edit(module.source.path, *module.span(subject), written),
        leading_argument(module, outer, module.segment(receiver)),
        *(removal_edits(project, module, Change(remove=closed)) if closed else ()),
    ]


def kept_name(
    project: Project, module: Module, maker: ast.Call, wrapped: Collection[ast.Call]
) -> str | None:
    """The `name=` with which an instance has the name that it has without a checkpoint.

    None where it needs none.

    Args:
        project: the project.
        module: the module.
        maker: the call that makes it.
        wrapped: the calls in this module that get a name for the same reason.

    Raises:
        Refused: that name cannot be told, or others would change.
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
        if isinstance(node, ast.keyword) and node.arg == "name":
            if isinstance(node.value, ast.Constant) and repr(node.value.value) == name.replace(
                '"', "'"
            ):
                raise Refused(f"another one is named {name}", module, node.value)
    return name
