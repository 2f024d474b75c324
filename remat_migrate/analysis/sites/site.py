"""Sites: the places where an Api is applied, aliased, or passed on."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...codemod.changes import Change, Rewrite
from ...libraries.apis import Api
from ...text import Span
from ..names.module import Definition, Module
from ..values.values import Partial, Value

_FORMS: dict[type, str] = {
    **dict.fromkeys((ast.Call, ast.keyword), "argument"),
    **dict.fromkeys((ast.Assign, ast.AnnAssign, ast.NamedExpr), "assigned"),
    **dict.fromkeys((ast.IfExp, ast.BoolOp), "conditional"),
    **dict.fromkeys((ast.List, ast.Tuple, ast.Set, ast.Dict), "container"),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), "container"),
    ast.Lambda: "lambda",
    ast.Return: "returned",
}


def decorates(module: Module, node: ast.expr) -> bool:
    """Return whether an expression is a decorator."""
    holder = module.parent(node)
    return isinstance(holder, Definition) and node in holder.decorator_list


def form_of(module: Module, node: ast.expr, how: str) -> tuple[str, ast.expr | None]:
    """Return the form of a site by the position of an expression, and its application, if any.

    `how` says what the expression is: "applied", the call of an Api; "factory", a call that passes
    only options; "partial"; or "", an Api by its name.
    """
    holder = module.parent(node)
    if decorates(module, node):
        return {"": "decorator", "partial": "decorator-partial"}.get(how, "decorator-factory"), node
    if isinstance(holder, ast.Call) and holder.func is node:
        return "applied", node if how == "applied" else holder
    if how == "applied":
        return _FORMS.get(type(holder), "expression"), node
    if how == "partial":
        return "partial", None
    is_alias = isinstance(holder, ast.Assign | ast.AnnAssign | ast.NamedExpr)
    return "alias" if is_alias else "reference", node if how == "factory" else None


if TYPE_CHECKING:
    import libcst as cst


@dataclass(frozen=True, eq=False, slots=True)
class Option:
    """One option of an application.

    Attributes:
        name: the name of the option.
        value: its expression.
        module: the module that contains it.
        call: the call (of the Api, a partial, or `dict`) or dict display that contains it.
        keyword: the keyword node; None for a positional option or an entry of a dict display.
        position: the index among the call's arguments, for a positional option.
        behind: the names of the options that may follow it by position.
        overrides: the option of an inner partial, or of an unpacked dict, that applies without it.
    """

    name: str
    value: ast.expr
    module: Module
    call: ast.Call | ast.Dict
    keyword: ast.keyword | None = None
    position: int | None = None
    behind: tuple[str, ...] = ()
    overrides: Option | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """One application of an Api in the source.

    Attributes:
        module: the module.
        span: the place to report: the decorator, or the name of the callee.
        definition: the Api.
        form: how it is applied: "decorator", "decorator-partial", "decorator-factory", "assigned",
            "applied", "argument", "conditional", "container", "lambda", "returned", "expression";
            if it is not applied immediately: "alias", "partial", "reference".
        reference: the expression that names the Api.
        application: the call or decorator that applies it; None if it is only named.
        callee: what is called: the Api or a partial of it.
        subject: what is wrapped: an expression, or the decorated function or class.
        arguments: the options by name, including those of partials and unpacked dicts.
        certain: whether only a checkpoint can be applied here.
        spread: whether a `**` could not be followed, so there may be more options.
        target: text that names what is wrapped.
        context: the function or class around it.
    """

    module: Module
    span: Span
    definition: Api
    form: str
    reference: ast.expr
    application: ast.expr | None
    callee: Value
    subject: tuple[Module, ast.expr | Definition] | None
    arguments: Mapping[str, Option] = field(default_factory=dict)
    spread: bool = False
    certain: bool = True
    target: str | None = None
    context: str = ""

    @property
    def api(self) -> str:
        """The Api's qualified name."""
        return self.definition.name

    @property
    def node(self) -> cst.BaseExpression:
        """The application as a LibCST node; for an Api that is only named, its name."""
        from ...codemod.locate import node_of  # only rules that ask for it pay for the import

        return node_of(self.module, self.application or self.reference)

    def changed(self, node: cst.BaseExpression) -> Change:
        """Return the change that replaces `node` by another LibCST node."""
        place = self.application or self.reference
        return Rewrite(self.module, place, lambda old, new_nodes: node, discards=True)

    @property
    def options(self) -> Mapping[str, str]:
        """The source text of each option."""
        return {n: o.module.segment(o.value) for n, o in self.arguments.items()}


def own_call(module: Module, application: ast.expr | None, callee: Value) -> ast.Call | None:
    """Return the call that passes arguments in addition to those of the partials in `callee`."""
    if not isinstance(application, ast.Call) or decorates(module, application):
        return None
    return None if isinstance(callee, Partial) and callee.call is application else application
