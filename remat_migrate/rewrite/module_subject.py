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
from ..analysis.names.mentions import find_mentions
from ..analysis.sites.calls import uses_of
from ..analysis.sites.framework_modules import module_kind
from ..analysis.sites.references import is_used_elsewhere
from ..analysis.sites.site import Site
from ..analysis.statics.argument_kinds import kinds_of
from ..analysis.statics.static_options import read_indices
from ..analysis.values.values import External
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


def pass_module(
    project: Project, site: Site, *, bound: bool, concrete: Collection[int] = ()
) -> list[Change]:
    """Return the changes that wrap a function of the module, which the call then passes first.

    The function closes over `static_argnums`, Python values, and keyword arguments that are not
    arrays: they may be flags.

    Args:
        project: the project.
        site: the site.
        bound: whether the subject is a method of an instance.
        concrete: the positions of other arguments to close over.

    Raises:
        Refused: the wrapped function is not called at once, or the lambda cannot pass the values.
    """
    module, application = site.module, site.application
    outer = module.parent(application) if application is not None else None
    if not isinstance(outer, ast.Call) or outer.func is not application or site.subject is None:
        advice = (
            "a function that takes the module: `nn.remat(lambda module, x: module(x))(block, x)`"
        )
        raise Refused(f"wrap {advice}")
    if "concrete" in site.arguments:
        raise Refused("replace `concrete=` first", module, application)
    check_editable(module, [outer])
    subject = site.subject[1]
    assert isinstance(subject, ast.expr)
    if "#" in module.segment(subject):
        raise Refused("the wrapped expression contains a comment", module, subject)
    receiver, method = subject, ""
    if bound and isinstance(subject, ast.Attribute):
        receiver, method = subject.value, f".{subject.attr}"
    is_used = partial(is_used_elsewhere, project, module)
    changes: list[Change] = []
    closed = {*concrete}
    if option := site.arguments.get("static_argnums"):
        indices = read_indices(project, option).values
        here = option.keyword is not None and option.call is application
        if indices is None or min(indices, default=0) < 0 or not here:
            raise Refused("its `static_argnums` cannot be read", module, application)
        assert option.keyword is not None
        check_editable(module, [option.keyword])
        closed |= {i - (site.definition.counting == "method") for i in indices}
        changes.append(Remove(module, option.keyword, is_used))
    kind = kinds_of(project).of
    values = [
        arg for i, arg in enumerate(outer.args) if i in closed or kind(module, arg) == "python"
    ]
    for arg in values:
        if arg not in outer.args[-len(values) :] or isinstance(outer.args[0], ast.Starred):
            raise Refused(f"name `{module.segment(arg)}` in `static_argnums`", module, arg)
    keywords = [k for k in outer.keywords if kind(module, k.value) != "array"]
    given = [""] * len(values) + [f"{k.arg}=" if k.arg else "**" for k in keywords]
    values += [k.value for k in keywords]
    if not all(_is_simple(module, value) for value in values):
        raise Refused("an option is computed in the call", module, outer)
    reads = [n for value in values for n in ast.walk(value) if isinstance(n, ast.Name)]
    used = {n.id for n in reads}
    for read in reads:
        # `Remove` would also remove what only assigns this name.
        alone = all(n in reads for n in find_mentions(module).names.get(read.id, ()))
        if alone and any(b.kind == "assign" for b in module.reaching(read)):
            raise Refused(f"close over `{read.id}`, which has no other use", module, read)
    own, args, others = (f"{n}_" if n in used else n for n in ("module", "args", "kwargs"))
    names = f"*{args}, **{others}" if len(keywords) < len(outer.keywords) else f"*{args}"
    by_name = {f"value_{number}": value for number, value in enumerate(values)}
    texts = [f"{to}{{{name}}}" for to, name in zip(given, by_name, strict=True)]
    positional = given.count("")
    rest = [f"*{args}", *texts[:positional], *names.split(", ")[1:], *texts[positional:]]
    code = Code.of(f"lambda {own}, {names}: {own}{method}({', '.join(rest)})", **by_name)
    return [
        *changes,
        Replace(module, subject, code),
        InsertArgument(module, outer, Code.of("{module}", module=receiver)),
        *(Remove(module, arg, is_used) for arg in outer.args[len(outer.args) - positional :]),
        *(Remove(module, keyword, is_used) for keyword in keywords),
    ]


def _is_simple(module: Module, node: ast.expr) -> bool:
    """Return whether an expression has the same value in a function that is called at once."""
    parts = (
        ast.Name, ast.Constant, ast.Attribute, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.BinOp,
        ast.Subscript, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
    )  # fmt: skip
    return all(isinstance(n, parts) for n in ast.walk(node)) and "#" not in module.segment(node)


def library_values(project: Project, site: Site) -> list[int] | None:
    """Return the positions of arguments that a layer of a library may need as Python values.

    Its code is not analyzed, so no other rule finds that need. Returns None if there are none,
    not even keyword arguments.

    Raises:
        Refused: the checkpoint is called elsewhere with such arguments.
    """
    module, application = site.module, site.application
    assert site.subject is not None
    assert isinstance(site.subject[1], ast.expr)
    kind = module_kind(project, module, site.subject[1])
    if kind is None or not isinstance(kind.cls, External):
        return None
    at_once = None
    for call in uses_of(project, site).calls:
        of = partial(kinds_of(project).of, call.module)
        found = [i for i, a in enumerate(call.node.args) if i > 0 and of(a) != "array"]
        named = any(of(k.value) != "array" for k in call.node.keywords)
        if not (found or named):
            continue
        if call.module is not module or call.node.func is not application:
            reason = "close over the options that the calls pass, which it would trace"
            raise Refused(reason, call.module, call.node)
        at_once = found
    return at_once


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
