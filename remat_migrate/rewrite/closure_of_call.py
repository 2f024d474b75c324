"""Closing over what Python must know where a checkpoint is applied by a call.

f = jax.checkpoint(g, concrete=True)   ->   def f(x, train):
                                                return jax.checkpoint(lambda x: g(x, train))(x)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..model import Module
from ..model.bind import default_of
from ..model.callable import Target
from ..model.scopes import parameters
from ..model.sites import Site
from ..model.statics import Statics
from ..source import Edit
from .closure_at_once import close_over_at_once
from .indent import indent_unit, indentation
from .literals import is_literal, literal_text
from .refusal import Refused
from .signature import Signature, laid_out, lambda_text, signature


def close_over_call(
    site: Site,
    target: Target,
    statics: Statics,
    checkpoint: str,
    options: Sequence[str],
) -> list[Edit]:
    """The edits of a call that applies a checkpoint.

    Raises:
        Refused: what is wrapped cannot be named, or called, where the checkpoint is applied.
    """
    module, call = site.module, site.application
    assert isinstance(call, ast.Call)
    assert site.subject is not None
    owner, subject = site.subject
    if owner is not module or not isinstance(subject, ast.expr):
        raise Refused("what is wrapped is named in another file", owner, site.reference)
    at_once = close_over_at_once(site, statics, checkpoint, options)
    if at_once is not None:
        return at_once
    node = target.function.node
    for parameter in parameters(node):
        default = default_of(node, parameter)
        if default is not None and not is_literal(default) and owner is not target.function.module:
            raise Refused(
                f"the default of `{parameter.arg}` is not a literal",
                target.function.module,
                default,
            )
    closed = [r.name for r in statics.required]
    whole = signature(
        node,
        skip=target.skip,
        without=target.given,
        by_keyword=target.given,
        defaults=lambda d: literal_text(target.function.module, d, module),
    )
    without = {*closed, *target.given}
    array = signature(node, skip=target.skip, without=without, defaults=None)
    given = "".join(f", {o}" for o in options)
    source = module.source
    name = module.segment(subject)
    if isinstance(subject, ast.Lambda):
        body = module.segment(subject.body)
        inner = lambda_text(array.written, body)
        text = lambda_text(whole.written, f"{checkpoint}({inner}{given})({array.arguments})")
        return [Edit(source.path, *source.span(call), _grouped(module, call, text))]
    assigned = _assigned_name(module, call)
    if assigned is not None:
        statement, variable = assigned
        return _as_definition(
            module, statement, variable, subject, whole, array, checkpoint, options
        )
    if _may_change(module, subject):
        inner = lambda_text(array.written, f"plain({whole.arguments})")
        made = lambda_text(whole.written, f"{checkpoint}({inner}{given})({array.arguments})")
        text = f"(lambda plain: {made})({name})"
    else:
        inner = lambda_text(array.written, f"{name}({whole.arguments})")
        made = lambda_text(whole.written, f"{checkpoint}({inner}{given})({array.arguments})")
        text = _grouped(module, call, made)
    return [Edit(source.path, *source.span(call), text)]


def _grouped(module: Module, call: ast.expr, text: str) -> str:
    """A lambda needs parentheses unless it is a whole argument, value or element."""
    match module.parent(call):
        case ast.keyword() | ast.Assign() | ast.AnnAssign() | ast.Return():
            return text
        case ast.Call(func=func) if func is not call:
            return text
        case ast.List():
            return text
    return f"({text})"


def _assigned_name(module: Module, call: ast.expr) -> tuple[ast.Assign, str] | None:
    statement = module.parent(call)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Name):
            return statement, target.id
    return None


def _may_change(module: Module, subject: ast.expr) -> bool:
    """Whether the wrapped expression may mean another function by the time of the call."""
    for node in ast.walk(subject):
        if isinstance(node, ast.Call | ast.Subscript):
            return True
        # `self.block = jax.checkpoint(self.block, concrete=True)`
        if isinstance(node, ast.Attribute) and _is_assigned(module, subject, node.attr):
            return True
        if isinstance(node, ast.Name):
            bindings = module.reaching(node)
            if any(b.kind in ("element", "with", "opaque", "augment") for b in bindings):
                return True
            if len(module.visible(node.id, module.scope_at(node))) > 1:
                return True
    return False


def _is_assigned(module: Module, subject: ast.expr, attribute: str) -> bool:
    """Whether the statement of an expression assigns an attribute, or several statements do."""
    stores = [
        n
        for n in ast.walk(module.tree)
        if isinstance(n, ast.Attribute) and n.attr == attribute and isinstance(n.ctx, ast.Store)
    ]
    statement = module.statement(subject)
    return len(stores) > 1 or any(module.statement(store) is statement for store in stores)


def _as_definition(
    module: Module,
    statement: ast.Assign,
    variable: str,
    subject: ast.expr,
    whole: Signature,
    array: Signature,
    checkpoint: str,
    options: Sequence[str],
) -> list[Edit]:
    source = module.source
    outer, unit, newline = (
        indentation(module, statement.lineno),
        indent_unit(module),
        source.newline,
    )
    plain = module.segment(subject)
    lines: list[str] = []
    gap = [""] * (1 if outer else 2)
    names = {n.id for n in ast.walk(subject) if isinstance(n, ast.Name)}
    if variable in names or _may_change(module, subject):
        kept = f"plain_{variable}"
        lines += [f"{kept} = {plain}", *gap]
        plain = kept
    inner = lambda_text(array.written, f"{plain}({whole.arguments})")
    inner_indent = outer + unit
    lines += [
        f"def {variable}({whole.parameters}):",
        f"{unit}return "
        + newline.join(
            laid_out(
                checkpoint,
                [inner, *options],
                f"({array.arguments})",
                (inner_indent, "return "),
                inner_indent,
                unit,
            )
        ),
    ]
    start, end = source.span(statement)
    rest = source.text[end:].partition("\n")[2]
    if rest.strip() and rest.partition("\n")[0].strip():
        lines += gap
    text = newline.join(
        line if not line or i == 0 else outer + line for i, line in enumerate(lines)
    )
    return [Edit(source.path, start, end, text)]
