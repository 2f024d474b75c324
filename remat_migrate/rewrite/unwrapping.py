"""Taking a checkpoint off, in whatever form it is applied; options of the one that stays.

    @jax.checkpoint                      f = jax.checkpoint(f)  ->  (the statement goes)
    def loss(...):   ->  def loss(...):  jax.grad(jax.checkpoint(loss))  ->  jax.grad(loss)

Imports that nothing uses any more go; a Flax class without `nn.remat` gets the `name=` that its
parameters are stored under.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ..model import Module, Project
from ..model.forms import decorates
from ..model.references import is_used_elsewhere
from ..model.sites import Option, Site
from ..source import Edit, Span
from ..source.changes import Change, is_pure
from ..source.items import without_comments
from ..source.layout import layout_of
from ..source.removal import plan_removals
from .flax_names import names_without_remat
from .imports import written
from .refusal import Refused, check_editable

_NO_BRACKETS = (
    ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant | ast.List | ast.Dict
)


def remove_site(project: Project, site: Site, *, kept: Collection[str] = ()) -> list[Edit]:
    """The edits that take the checkpoint of a site off.

    Args:
        project: the project.
        site: the application.
        kept: names at the top of the module whose imports stay, because other edits use them.

    Raises:
        Refused: nothing is applied there, or what is left would not mean the same.
    """
    module = site.module
    if site.application is None:
        raise Refused(
            "the checkpoint is only named here: it is taken off where it is applied",
            module,
            site.reference,
        )
    if not module.editable:
        raise Refused("it stands in a file that is not to be changed", module, site.reference)
    if not site.certain:
        raise Refused("what is applied there is not always a checkpoint", module, site.reference)
    if not site.definition.same_function:
        raise Refused(
            f"`{site.api}` makes many layers of one: write the layers out first",
            module,
            site.reference,
        )
    check_editable(module, [site.application])
    names = names_without_remat(project, site)
    edits = _taken_off(project, site, kept)
    return [*edits, *names]


def _taken_off(project: Project, site: Site, kept: Collection[str]) -> list[Edit]:
    module, application = site.module, site.application
    assert application is not None
    if decorates(module, application):
        return spared(project, module, Change(remove=(application,)), kept)
    if site.subject is None or site.subject[0] is not module:
        raise Refused("what is wrapped cannot be seen", module, site.reference)
    subject = site.subject[1]
    assert isinstance(application, ast.Call)
    if not isinstance(subject, ast.expr) or all(n is not subject for n in ast.walk(application)):
        raise Refused("what is wrapped is given in another place", module, site.reference)
    whole, part = _one_of_two(module, application, subject)
    statement = _restating(module, whole, part)
    if statement is not None:
        return spared(project, module, Change(remove=(statement,)), kept)
    start, end = module.span(whole)
    # The application itself is cut here; what follows from it, an unused import, is found there.
    spare = spared(project, module, Change(keep=((whole, part),)), kept)
    edits = [e for e in spare if e.end <= start or e.start >= end]
    return [*edits, *_cut_down(module, whole, part)]


def _cut_down(module: Module, whole: ast.expr, part: ast.expr) -> list[Edit]:
    """The edits that leave a part of an expression, with comments and the parentheses it needs."""
    path, layout = module.source.path, layout_of(module.source)
    outer, inner = module.span(whole), module.span(part)
    inside = outer
    if isinstance(whole, ast.Call):
        inside = Span(layout.opening(outer.end - 1) + 1, outer.end - 1)
    grouped = layout.grouped(part, inside)
    bare = grouped == inner and not _stands_alone(module, whole, part)
    edits = []
    for low, high in ((outer.start, grouped.start), (grouped.end, outer.end)):
        edits += [Edit(path, *cut) for cut in without_comments(layout, low, high)]
    if bare:
        edits += [
            Edit(path, inner.start, inner.start, "("),
            Edit(path, inner.end, inner.end, ")"),
        ]
    return edits


def _one_of_two(
    module: Module, application: ast.expr, subject: ast.expr
) -> tuple[ast.expr, ast.expr]:
    """`jax.checkpoint(f) if remat else f` comes down to `f` as a whole."""
    holder = module.parent(application)
    if isinstance(holder, ast.IfExp) and is_pure(holder.test):
        other = holder.orelse if application is holder.body else holder.body
        if application is not holder.test and ast.dump(other) == ast.dump(subject):
            return holder, other
    return application, subject


def _restating(module: Module, whole: ast.expr, part: ast.expr) -> ast.Assign | None:
    """The statement `f = f` that would be left, where it can go."""
    statement = module.parent(whole)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(part, ast.Name | ast.Attribute):
        return None
    if ast.unparse(target) != ast.unparse(part):
        return None
    scope = module.scope_at(statement)
    if isinstance(target, ast.Attribute):
        # `self.f = self.f` gives the instance an attribute of its own class.
        return None
    own = list(module.reaching(part)) if isinstance(part, ast.Name) else []
    if any(b.scope is not scope for b in own) or not own:
        return None  # in a class body it gives the class an attribute
    return statement


def _stands_alone(module: Module, whole: ast.expr, part: ast.expr) -> bool:
    """Whether `part` needs no parentheses where `whole` stands."""
    if isinstance(part, _NO_BRACKETS):
        return True
    match module.parent(whole):
        case ast.Call(func=func) if func is not whole:
            return True
        case ast.keyword() | ast.Assign() | ast.AnnAssign() | ast.Return() | ast.List():
            return True
    return False


def spared(
    project: Project, module: Module, change: Change, kept: Collection[str] = ()
) -> list[Edit]:
    """A change of one module as edits, with the imports that nothing uses any more but `kept`."""
    found = plan_removals(
        module.source,
        module.tree,
        [change],
        is_used_elsewhere=lambda name: name in kept or is_used_elsewhere(project, module, name),
    )
    return [edit for removal in found for edit in removal.edits]


# -- options


def set_option(project: Project, site: Site, name: str, value: object) -> list[Edit]:
    """The edits that give one application an option: changed where it is there, else added.

    A checkpoint that is passed on as a wrapper becomes a partial with the option.

    Args:
        project: the project.
        site: the application, or the place where the checkpoint is passed on.
        name: the option.
        value: a literal.

    Raises:
        Refused: nothing is applied there, or the option is given in a place that others share.
    """
    module, application = site.module, site.application
    if application is None:
        application = site.reference
        if site.form == "partial":
            holder = module.parent(application)
            assert isinstance(holder, ast.Call)
            application = holder
        elif site.form != "reference":
            raise Refused(
                "the checkpoint is only named here: the option is given where it is applied",
                module,
                site.reference,
            )
    if not module.editable:
        raise Refused("it stands in a file that is not to be changed", module, site.reference)
    text = f"{name}={value!r}"
    option = site.arguments.get(name)
    if option is not None:
        if option.module is module and _is_own(project, site, option):
            put = text if option.keyword is not None else repr(value)
            place = option.keyword or option.value
            return [Edit(module.source.path, *module.span(place), put)]
        if option.call is application:
            raise Refused("the option is spread into the call", module, application)
    elif site.spread:
        raise Refused(
            f"options are spread with `**`, and `{name}` may be among them", module, site.reference
        )
    if isinstance(application, ast.Call):
        if any(k.arg is None for k in application.keywords) and option is not None:
            raise Refused(
                f"`{name}` is among options that are spread with `**`", option.module, option.value
            )
        return [with_argument(module, application, text)]
    partial = written(project, module, "functools.partial", application)
    given = f"{partial.text}({module.segment(application)}, {text})"
    return [Edit(module.source.path, *module.span(application), given), *partial.edits]


def _is_own(project: Project, site: Site, option: Option) -> bool:
    """Whether an option is written for this application alone."""
    if option.call is site.application or site.form == "partial":
        return True
    sharing = [
        other
        for other in project.sites
        if other.application is not None
        and any(o.value is option.value for o in other.arguments.values())
    ]
    return sharing == [site] and option.module.editable


def with_argument(module: Module, call: ast.Call, text: str) -> Edit:
    """The edit that puts one more keyword behind the arguments of a call."""
    source = module.source
    layout = layout_of(source)
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    end = source.span(call).end - 1
    if not given:
        return Edit(source.path, end, end, text)
    last = max(source.span(n).end for n in given)
    after = layout.after(last)
    while after is not None and after.text == ")" and after.start < end:
        last, after = after.end, layout.after(after.end)
    if after is not None and after.text == ",":
        # A trailing comma: one argument a line.
        line = source.text[layout.line_start(after.start) : after.start]
        indent = line[: len(line) - len(line.lstrip())]
        if layout.next_line(after.start) <= end:
            return Edit(source.path, after.end, after.end, f"{source.newline}{indent}{text},")
    return Edit(source.path, last, last, f", {text}")
