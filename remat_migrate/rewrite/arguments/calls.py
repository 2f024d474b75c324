"""Makes calls pass static arguments by position.

`jax.checkpoint` counts positional arguments: a static argument that is passed by keyword, or left
to its default, is an error or makes another argument static.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from ...analysis import Project
from ...analysis.sites.calls import Call
from ...analysis.statics.static_options import StaticSite
from ...analysis.values.bind import Arguments, default_of, positional_parameters
from ...analysis.values.values import Function
from ...codemod.changes import ArrangeArguments, Change, Code
from ..literals import has_side_effects, is_literal, literal_text
from ..refusal import Refused, check_editable
from .argument_specs import Added, spec_changes


def positional_changes(
    project: Project, static: StaticSite, calls: Iterable[tuple[Call, Arguments]], last: int
) -> list[Change]:
    """Return the changes that make calls pass parameters up to number `last` by position.

    If they go through a transformation whose options must change, too, all calls are changed.

    Raises:
        Refused: a call cannot be rewritten.
    """
    function = static.target.function
    every = static.site.definition.static_calls == "keywords-ignored"
    needed = {p.name for p in static.static}
    for chosen in (calls, static.bound):
        changes, specs = pass_all_by_position(
            project, chosen, function, last, needed=needed, every=every
        )
        if not specs:
            break
    return [*changes, *specs]


def pass_all_by_position(
    project: Project,
    calls: Iterable[tuple[Call, Arguments]],
    function: Function,
    last: int,
    *,
    needed: Collection[str],
    every: bool,
    star_count: int = 0,
) -> tuple[list[Change], list[Change]]:
    """Return the changes of calls, and those of the transformations that they go through.

    The arguments are those of `pass_by_position`.
    """
    changes: list[Change] = []
    through: list[tuple[Call, list[Added]]] = []
    for call, bound in calls:
        made, added = pass_by_position(
            call, bound, function, last, needed=needed, every=every, star_count=star_count
        )
        through.append((call, added))
        if made and not call.own:
            reason = "a call that must be rewritten may call another function, too"
            raise Refused(reason, call.module, call.node)
        changes += made
    return changes, spec_changes(project, through)


def pass_by_position(
    call: Call,
    bound: Arguments,
    function: Function,
    last: int,
    *,
    needed: Collection[str] = (),
    every: bool = False,
    star_count: int = 0,
) -> tuple[list[Change], list[Added]]:
    """Return the changes that make a call pass parameters up to number `last` by position.

    Also returns the arguments that it did not pass by position before: see `spec_changes`.

    Args:
        call: the call.
        bound: its arguments by parameter.
        function: the function that it calls.
        last: the index of the last parameter to pass by position, including `self`.
        needed: the parameters whose values are needed at trace time.
        every: whether the call must pass all its arguments by position.
        star_count: how many arguments it must pass to `*args`.

    Raises:
        Refused: an argument is unpacked or missing, or the order of evaluation would change.
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
        return [], []
    check_editable(call.module, [node])
    if call.partials:
        raise Refused("`functools.partial` supplies arguments", call.module, node)
    moved: list[ast.keyword | Code] = []
    added: list[Added] = []
    keywords = {k.arg: k for k in node.keywords}
    for position, parameter in enumerate(missing, len(node.args) - call.first):
        name = parameter.arg
        keyword = keywords.get(name)
        moved.append(keyword if keyword is not None else _default(call, function, parameter))
        added.append(Added(position, name, keyword is None, name in needed))
    return [_arranged(call, moved)], added


def _default(call: Call, function: Function, parameter: ast.arg) -> Code:
    default = default_of(function.node, parameter)
    if default is None:
        raise Refused(f"a call does not pass `{parameter.arg}`", call.module, call.node)
    if not is_literal(default):
        reason = f"the default of `{parameter.arg}` is not a literal that the call can repeat"
        raise Refused(reason, call.module, call.node)
    return Code(literal_text(function.module, default, call.module))


def _arranged(call: Call, moved: list[ast.keyword | Code]) -> Change:
    """Return the change that moves keywords and defaults after the positional arguments."""
    node = call.node
    rest = [k for k in node.keywords if k not in moved]
    slots: list[ast.expr | ast.keyword] = sorted(
        [*node.args, *node.keywords], key=lambda n: (n.lineno, n.col_offset)
    )
    order: list[ast.expr | ast.keyword | Code] = [*node.args, *moved, *rest]
    existing = [n for n in order if not isinstance(n, Code)]
    swapped = [n for n, s in zip(existing, slots, strict=True) if n is not s]
    if sum(map(has_side_effects, swapped)) > 1:
        reason = "passing the arguments by position would change their order of evaluation"
        raise Refused(reason, call.module, node)
    unnamed = frozenset(n for n in moved if isinstance(n, ast.keyword))
    return ArrangeArguments(call.module, node, tuple(order), unnamed)
