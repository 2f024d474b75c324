"""Makes calls pass static arguments by position.

`jax.checkpoint` counts positional arguments: a static argument that is passed by keyword, or left
to its default, is an error or makes another argument static.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from itertools import combinations

from ..analysis import Project
from ..analysis.names.module import Module, has_side_effects
from ..analysis.sites.calls import Call
from ..analysis.sites.site import Site
from ..analysis.statics.static_options import transformations
from ..analysis.values.bind import Arguments, default_of, positional_parameters
from ..analysis.values.values import Function, Instance, Wrapped, layers
from ..codemod.changes import ArrangeArguments, Change, Code
from .refusal import Refused, check_editable

_GRADIENTS = frozenset(
    f"{library}.{name}" for library in ("jax", "haiku") for name in ("grad", "value_and_grad")
)
# These pass arguments on unchanged, or bind them to the signature first.
_TRANSPARENT = frozenset(
    {
        "jax.custom_jvp", "jax.custom_vjp", "jax.named_call", "haiku.named_call",
        "equinox.filter_jit", "equinox.filter_grad", "equinox.filter_value_and_grad",
        "functools.cache", "functools.lru_cache",
    }
)  # fmt: skip
# What an argument may read that evaluating another one changes: `next(keys)`, `tracker.step`.
_READS = ast.Call | ast.Attribute | ast.Subscript | ast.NamedExpr | ast.Await
_DECLARED = ast.Global | ast.Nonlocal


def positional_changes(
    project: Project,
    site: Site,
    function: Function,
    calls: Iterable[tuple[Call, Arguments]],
    last: int,
    *,
    star_count: int = 0,
) -> list[Change]:
    """Return the changes that make calls of a checkpointed function pass arguments by position.

    Args:
        project: the project.
        site: the checkpoint.
        function: the function that it wraps.
        calls: calls with their arguments by parameter.
        last: the index of the last parameter to pass by position, including `self`.
        star_count: how many arguments calls must pass to `*args`.

    Raises:
        Refused: a call cannot be rewritten: an argument is unpacked or missing, or the order of
            evaluation would change.
    """
    every = site.definition.static_calls == "keywords-ignored"
    changes: list[Change] = []
    for call, bound in calls:
        if moved := _moved(call, bound, function, last, every, star_count):
            _check_way(project, call)
            changes.append(_arranged(project, call, moved))
    return changes


def _check_way(project: Project, call: Call) -> None:
    """Raise Refused unless a call may pass one more argument by position."""
    if not call.own:
        reason = "a call that must be rewritten may call another function, too"
        raise Refused(reason, call.module, call.node)
    if call.through:
        raise Refused(f"`{call.through}` traces all its arguments", call.module, call.node)
    instances = (layer for layer in layers(call.callee) if isinstance(layer, Instance))
    methods = [m for made in instances for m in project.evaluator.attribute(made, "__call__")]
    for wrapped in (each for value in (call.callee, *methods) for each in transformations(value)):
        if wrapped.how not in _TRANSPARENT and not _is_plain_gradient(project, wrapped):
            what = f"`{wrapped.how}`" if wrapped.how != "?" else "this decorator"
            raise Refused(
                f"{what} may trace or count the arguments of a call through it",
                wrapped.module,
                wrapped.node,
                "the call goes through this",
            )


def _is_plain_gradient(project: Project, wrapped: Wrapped) -> bool:
    """Return whether it is a gradient that does not count arguments from the end."""
    node = wrapped.node
    options: list[ast.expr] = []
    if isinstance(node, ast.Call):
        options = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
        node = node.func
    return (
        wrapped.how in _GRADIENTS
        and wrapped.how in project.qualified(wrapped.module, node)
        and all(is_literal(o) and "-" not in ast.unparse(o) for o in options)
    )


def _moved(
    call: Call, bound: Arguments, function: Function, last: int, every: bool, star_count: int
) -> list[ast.keyword | Code]:
    """Return the arguments and defaults that a call must pass by position, and does not; with
    `every`, it must pass all its arguments so.
    """
    node = call.node
    if bound.wrong:
        raise Refused("a call that may run it does not match its parameters", call.module, node)
    if bound.unclear:
        reason = "a call unpacks arguments (`*` or `**`), so their positions are unknown"
        raise Refused(reason, call.module, node)
    if len(bound.star) < star_count:
        raise Refused("a call does not pass the static argument", call.module, node)
    parameters = positional_parameters(function.node)
    if every:
        names = [p.arg for p in parameters]
        last = max([last, *(i for i, name in enumerate(names) if name in bound.by_name)])
        extra = [k.arg for k in node.keywords if k.arg not in names]
        if extra:
            reason = f"`{extra[0]}` is keyword-only, and this checkpoint ignores keyword arguments"
            raise Refused(reason, call.module, node)
    missing = [p for p in parameters[bound.skip : last + 1] if p.arg not in bound.by_position]
    if not missing:
        return []
    check_editable(call.module, [node])
    if call.partials:
        raise Refused("`functools.partial` supplies arguments", call.module, node)
    keywords = {k.arg: k for k in node.keywords}
    return [keywords.get(p.arg) or _default(call, function, p) for p in missing]


def _default(call: Call, function: Function, parameter: ast.arg) -> Code:
    default = default_of(function.node, parameter)
    if default is None:
        raise Refused(f"a call does not pass `{parameter.arg}`", call.module, call.node)
    if not is_literal(default):
        reason = f"the default of `{parameter.arg}` is not a literal that the call can repeat"
        raise Refused(reason, call.module, call.node)
    text = function.module.segment(default)
    return Code(text if "\n" not in text else ast.unparse(default))


def is_literal(node: ast.expr) -> bool:
    """Return whether an expression is a literal, which means the same anywhere."""
    match node:
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts):
            return all(is_literal(p) for p in parts)
    return False


def _arranged(project: Project, call: Call, moved: list[ast.keyword | Code]) -> Change:
    """Return the change that moves keywords and defaults after the positional arguments."""
    node = call.node
    rest = [k for k in node.keywords if k not in moved]
    order: list[ast.expr | ast.keyword | Code] = [*node.args, *moved, *rest]
    existing = [n for n in order if not isinstance(n, Code)]
    for later, earlier in combinations(existing, 2):
        if call.module.position(earlier) < call.module.position(later) and (
            _may_change(project, call.module, earlier, later)
            or _may_change(project, call.module, later, earlier)
        ):
            reason = "passing the arguments by position would change their order of evaluation"
            raise Refused(reason, call.module, node)
    unnamed = frozenset(n for n in moved if isinstance(n, ast.keyword))
    return ArrangeArguments(call.module, node, tuple(order), unnamed)


def _may_change(project: Project, module: Module, changing: ast.AST, reading: ast.AST) -> bool:
    """Return whether evaluating one argument may change what another one reads."""
    parts = [n for n in ast.walk(changing) if isinstance(n, ast.Attribute | ast.Subscript)]
    run = {n.attr if isinstance(n, ast.Attribute) else "__getitem__" for n in parts}
    if not has_side_effects(changing) and run.isdisjoint(project.once(_run_by_reading)):
        return False
    names = {name for n in module.nodes if isinstance(n, _DECLARED) for name in n.names}
    names |= {n.target.id for n in ast.walk(changing) if isinstance(n, ast.NamedExpr)}
    return any(
        isinstance(n, _READS) or (isinstance(n, ast.Name) and n.id in names)
        for n in ast.walk(reading)
    )


def _run_by_reading(project: Project) -> set[str]:
    """Return the names of properties, and `__getitem__` if a class of the project defines it."""
    pattern = re.compile(r"(?:property\s+def |def (?=__getitem__\b))(\w+)")
    return {name for m in project.modules.values() for name in pattern.findall(m.source.text)}
