"""Closes over values needed at trace time where a call applies a checkpoint.

f = jax.checkpoint(g, concrete=True)   ->   def f(x, train):
                                                return jax.checkpoint(lambda x: g(x, train))(x)

A checkpoint differentiates with respect to values that its function closes over, too, and leaves
values alone that are not traced. So if the arguments that must be concrete are unknown, the fix
closes over all of them:

f = jax.checkpoint(g, concrete=True)   ->   @functools.wraps(g)
                                            def f(*args, **kwargs):
                                                return jax.checkpoint(lambda: g(*args, **kwargs))()

`functools.wraps` keeps the signature, which `jax.jit` needs for `static_argnames`.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass

from ...analysis import Module, Project
from ...analysis.names.scopes import FunctionNode, parameters
from ...analysis.sites.site import Site
from ...analysis.statics.mutated_state import changes_later
from ...analysis.statics.statics import Statics
from ...analysis.values.bind import default_of
from ...analysis.values.callees import Target
from ...codemod.changes import Change, Code, Insert, Replace, ReplaceStatement
from ..arguments.signature import Signature, free_name, lambda_text, names_in, signature
from ..checkpoint_code import CheckpointCode
from ..imports import written
from ..literals import is_literal, literal_text
from ..refusal import Refused
from .closure_at_once import close_over_all_at_once, close_over_at_once


def close_over_call(
    site: Site, target: Target, statics: Statics, checkpoint: CheckpointCode
) -> list[Change]:
    """Return the changes for an application by a call.

    Raises:
        Refused: the wrapped function cannot be named, or called, where the checkpoint is applied.
    """
    module, call = site.module, site.application
    assert isinstance(call, ast.Call)
    assert site.subject is not None
    owner, subject = site.subject
    if owner is not module or not isinstance(subject, ast.expr):
        raise Refused("the wrapped function is named in another file", owner, site.reference)
    at_once = close_over_at_once(site, statics, checkpoint)
    if at_once is not None:
        return at_once
    node = target.function.node
    if owner is not target.function.module:
        check_defaults(target)
    whole = signature(
        node,
        skip=target.skip,
        without=target.given,
        by_keyword=target.given,
        defaults=lambda d: literal_text(target.function.module, d, module),
    )
    without = {*(r.name for r in statics.required), *target.given}
    array = signature(node, skip=target.skip, without=without, defaults=None)
    check_not_shadowed(module, call, node, checkpoint)
    form = _Form(checkpoint, whole, array)
    if isinstance(subject, ast.Lambda):
        return [Replace(module, call, Code.of(form.as_lambda("{body}"), body=subject.body))]
    return _changes(module, call, subject, form)


def close_over_all(project: Project, site: Site, checkpoint: CheckpointCode) -> list[Change]:
    """Return the changes for an application by a call that closes over all arguments.

    Raises:
        Refused: it wraps a class or a lambda, or a function that another file names.
    """
    module, call = site.module, site.application
    if site.definition.counting != "function" or not isinstance(call, ast.Call):
        raise Refused("no call wraps a function here", module, site.reference)
    if site.subject is None or site.subject[0] is not module:
        raise Refused("the wrapped function is named in another file", module, site.reference)
    if site.spread:
        raise Refused("`static_argnums` may be among the unpacked options", module, call)
    subject = site.subject[1]
    if not isinstance(subject, ast.expr) or isinstance(subject, ast.Lambda):
        raise Refused("the wrapped function has no name", module, site.reference)
    at_once = close_over_all_at_once(project, site, checkpoint)
    if at_once is not None:
        return at_once
    taken = names_in(call)
    everything = (f"*{free_name('args', taken)}", f"**{free_name('kwargs', taken)}")
    wraps = written(project, module, "functools.wraps", call)
    whole = Signature(everything, everything)
    form = _Form(checkpoint, whole, Signature((), ()), wraps.text)
    statement = module.parent(call)
    if not isinstance(statement, ast.Return):
        return [*_changes(module, call, subject, form), *wraps.changes]
    name = free_name("checkpointed", names_in(module.enclosing_function(call) or module.tree))
    return [*_as_definition(module, statement, name, subject, form), *wraps.changes]


def check_not_shadowed(
    module: Module, application: ast.expr, function: FunctionNode, checkpoint: CheckpointCode
) -> None:
    """Raise Refused if a parameter of a function shadows a name that the checkpoint uses."""
    read = names_in(ast.parse(checkpoint.around("None")))
    shadowed = sorted(read & {p.arg for p in parameters(function)})
    if shadowed:
        raise Refused(f"a parameter shadows `{shadowed[0]}`", module, application)


def check_defaults(target: Target) -> None:
    """Raise Refused if a default of a function is not a literal, which any file can repeat."""
    function = target.function
    for parameter in parameters(function.node):
        default = default_of(function.node, parameter)
        if default is not None and not is_literal(default):
            reason = f"the default of `{parameter.arg}` is not a literal"
            raise Refused(reason, function.module, default)


@dataclass(frozen=True, slots=True)
class _Form:
    """A function of the parameters `whole` that passes `array` to what it checkpoints.

    `wraps` is the source code of `functools.wraps`, where `whole` is not the signature.
    """

    checkpoint: CheckpointCode
    whole: Signature
    array: Signature
    wraps: str = ""

    def as_lambda(self, body: str) -> str:
        checkpointed = self.checkpoint.around(lambda_text(self.array.written, body))
        return lambda_text(self.whole.written, f"{checkpointed}({self.array.arguments})")

    def as_definition(self, name: str, plain: str) -> str:
        decorator = f"@{self.wraps}({plain})\n" if self.wraps else ""
        inner = lambda_text(self.array.written, f"{plain}({self.whole.arguments})")
        head = f"{decorator}def {name}({', '.join(self.whole.written)}):\n"
        return f"{head}    return {self.checkpoint.around(inner)}({self.array.arguments})\n"


def _changes(module: Module, call: ast.Call, subject: ast.expr, form: _Form) -> list[Change]:
    """Return the changes that replace an application with a form."""
    assigned = _assigned_name(module, call)
    if assigned is not None:
        return _as_definition(module, *assigned, subject, form)
    statement = _statement_to_define_before(module, call, subject)
    if statement is not None:
        return _defined_before(module, statement, call, subject, form)
    plain = "plain" if _may_change(module, subject) else "{subject}"
    text = form.as_lambda(f"{plain}({form.whole.arguments})")
    if form.wraps:
        text = f"{form.wraps}({plain})({text})"
    if plain == "plain":
        text = f"(lambda plain: {text})({{subject}})"
    return [Replace(module, call, Code.of(text, subject=subject))]


def _defined_before(
    module: Module, statement: ast.stmt, call: ast.Call, subject: ast.expr, form: _Form
) -> list[Change]:
    """Return the changes that define the function before the statement that applies it."""
    match subject:
        case ast.Name(id=known) | ast.Attribute(attr=known):
            base = known.strip("_")
        case _:
            base = "function"
    taken = names_in(module.enclosing_function(call) or module.tree)
    name = free_name(f"checkpointed_{base}", taken)
    codes: list[Code] = []
    plain = module.segment(subject)
    if _may_change(module, subject):
        plain = free_name(f"plain_{base}", taken)
        codes.append(Code.of(f"{plain} = {{subject}}", subject=subject))
    codes.append(Code(form.as_definition(name, plain)))
    return [Insert(module, statement, tuple(codes)), Replace(module, call, Code(name))]


def _statement_to_define_before(
    module: Module, call: ast.Call, subject: ast.expr
) -> ast.stmt | None:
    """Return the statement that applies it, if a definition before it has the same meaning."""
    statement = module.statement(call)
    function = module.enclosing_function(call)
    scopes = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    around = list(itertools.takewhile(lambda n: n is not statement, module.ancestors(call)))
    if any(isinstance(node, scopes) for node in around):
        return None
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr | ast.If):
        return None
    holder = module.parent(statement)
    if isinstance(holder, ast.ClassDef):
        return None
    if isinstance(statement, ast.If) and isinstance(holder, ast.If) and statement in holder.orelse:
        return None  # perhaps an `elif`
    computed = any(isinstance(node, ast.Call | ast.Subscript) for node in ast.walk(subject))
    if computed and not isinstance(module.parent(call), ast.Assign | ast.AnnAssign | ast.Return):
        return None  # something else may be evaluated first
    loops = itertools.takewhile(lambda n: n is not function, module.ancestors(statement))
    in_loop = any(isinstance(node, ast.For | ast.AsyncFor | ast.While) for node in loops)
    if in_loop and _may_change(module, subject):
        return None  # it would read the names as the last iteration leaves them
    return statement


def _assigned_name(module: Module, call: ast.expr) -> tuple[ast.Assign, str] | None:
    statement = module.parent(call)
    if not isinstance(statement, ast.Assign):
        return None
    target = statement.targets[0]
    if len(statement.targets) > 1 or not isinstance(target, ast.Name):
        return None
    return None if _outlives_loop(module, statement, target.id) else (statement, target.id)


def _outlives_loop(module: Module, statement: ast.Assign, name: str) -> bool:
    """Return whether a function that is made in a loop is used other than by calls in it.

    Later it would read the names as the last iteration leaves them.
    """
    function = module.enclosing_function(statement)
    around = itertools.takewhile(lambda n: n is not function, module.ancestors(statement))
    loop = next((n for n in around if isinstance(n, ast.For | ast.While | ast.AsyncFor)), None)
    if loop is None:
        return False
    for node in ast.walk(function or module.tree):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            parent = module.parent(node)
            if not isinstance(parent, ast.Call) or parent.func is not node:
                return True
            if module.enclosing_function(node) is not function or loop not in module.ancestors(
                node
            ):
                return True
    return False


def _may_change(module: Module, subject: ast.expr, *, here: bool = False) -> bool:
    """Return whether the wrapped expression may be another function by the time of the call.

    With `here`, all calls are in the same iteration of the loop around it.
    """
    for node in ast.walk(subject):
        if isinstance(node, ast.Call | ast.Subscript):
            return True
        # `self.block = jax.checkpoint(self.block, concrete=True)`
        if isinstance(node, ast.Attribute) and _is_assigned(module, subject, node.attr):
            return True
        if isinstance(node, ast.Name) and len(module.visible(node.id, module.scope_at(node))) > 1:
            return True
    return not here and changes_later(module, subject) is not None


def _is_assigned(module: Module, subject: ast.expr, attribute: str) -> bool:
    """Return whether the statement of an expression, or more than one, assigns an attribute."""
    stores = [
        n
        for n in ast.walk(module.tree)
        if isinstance(n, ast.Attribute) and n.attr == attribute and isinstance(n.ctx, ast.Store)
    ]
    statement = module.statement(subject)
    return len(stores) > 1 or any(module.statement(store) is statement for store in stores)


def _as_definition(
    module: Module,
    statement: ast.Assign | ast.Return,
    variable: str,
    subject: ast.expr,
    form: _Form,
) -> list[Change]:
    """Return the changes that replace the assignment or `return` with a definition."""
    codes: list[Code] = []
    plain = module.segment(subject)
    if variable in names_in(subject) or _may_change(module, subject, here=True):
        plain = f"plain_{variable}"
        codes.append(Code.of(f"{plain} = {{subject}}", subject=subject))
    codes.append(Code(form.as_definition(variable, plain)))
    if isinstance(statement, ast.Return):
        codes.append(Code(f"return {variable}"))
    return [ReplaceStatement(module, statement, tuple(codes))]
