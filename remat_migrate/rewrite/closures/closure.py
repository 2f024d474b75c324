"""Closes over values needed at trace time: an inner checkpointed function of the other arguments.

    @partial(jax.checkpoint, concrete=True)        def block(x, *, train=False):
    def block(x, *, train=False):             ->       @jax.checkpoint
        ...                                            def checkpointed_block(x):
                                                           ...
                                                       return checkpointed_block(x)

The signature does not change, so not all callers need to be known.
"""

from __future__ import annotations

import ast

from ...analysis import Module, Project
from ...analysis.names.scopes import FunctionNode, parameters
from ...analysis.placement.call_graph import own_nodes
from ...analysis.sites.site import Site
from ...analysis.statics.statics import Statics
from ...codemod.changes import Change, Nest
from ...libraries.apis import TRANSPARENT
from ..arguments.signature import free_name, names_in
from ..checkpoint_code import CheckpointCode
from ..options import keep
from ..refusal import Refused
from .closure_of_call import check_not_shadowed, close_over_call
from .subclass import checkpointed_subclass


def close_over(
    project: Project, site: Site, statics: Statics, checkpoint: CheckpointCode
) -> list[Change]:
    """Return the changes that close over the required parameters at one application.

    Raises:
        Refused: the form of the application does not allow it.
    """
    target, module = statics.target, site.module
    if target is None:
        raise Refused("the wrapped function cannot be determined", module, site.reference)
    if not site.form.startswith("decorator"):
        if target.owner is not None and site.definition.wraps_classes:
            return checkpointed_subclass(project, site, target, statics, checkpoint)
        return close_over_call(site, target, statics, checkpoint)
    if site.subject is not None and isinstance(site.subject[1], ast.ClassDef):
        raise Refused(
            "the checkpoint decorates a class: apply it where the class is used, and pass the"
            " static arguments by position",
            module,
            site.reference,
        )
    node = target.function.node
    if not isinstance(node, ast.FunctionDef):
        raise Refused("the function is asynchronous", module, site.reference)
    return _nested_body(project, site, node, statics, checkpoint)


def _nested_body(
    project: Project,
    site: Site,
    node: ast.FunctionDef,
    statics: Statics,
    checkpoint: CheckpointCode,
) -> list[Change]:
    module = site.module
    _check_body(module, node)
    assert site.application is not None
    check_not_shadowed(module, site.application, node, checkpoint)
    names = {r.name for r in statics.required}
    closed = [p.arg for p in parameters(node) if p.arg in names]
    # A name that the body assigns is local there: it becomes a parameter with a default.
    reassigned = tuple(n for n in closed if _is_rebound(module, node, n))
    if reassigned and node.args.kwarg is not None and node.args.kwarg.arg not in closed:
        raise Refused("it takes `**` and assigns to a static parameter", module, node)
    decorator = checkpoint.decorator(project, module, _first_statement(node))
    index = node.decorator_list.index(site.application)
    nest = Nest(
        module,
        node,
        free_name(f"checkpointed_{node.name.strip('_')}", names_in(node)),
        frozenset(closed),
        reassigned,
        decorator.text,
        index,
        _moved_decorators(module, node, index, project),
        _explicit_super(module, node),
    )
    changes = [nest, *decorator.changes]
    call = site.application
    if not checkpoint.options and isinstance(call, ast.Call) and site.reference in call.args:
        # The import of `functools.partial` may become unused.
        changes += keep(project, module, call, site.reference)
    return changes


def _explicit_super(module: Module, node: ast.FunctionDef) -> str:
    """Return what `super()` becomes in a nested function; "" if the function does not call it."""
    calls = [n for n in own_nodes(node) if _is_call_of(n, "super")]
    if not calls:
        return ""
    cls = module.enclosing_class(node)
    if cls is None or module.parent(cls) is not module.tree or not node.args.args:
        raise Refused(
            "its body calls `super()` without arguments, which does not work in a nested function:"
            " write `super(Class, self)`",
            module,
            calls[0],
        )
    return f"super({cls.name}, {node.args.args[0].arg})"


def _check_body(module: Module, node: ast.FunctionDef) -> None:
    for inner in own_nodes(node):
        if isinstance(inner, ast.Yield | ast.YieldFrom):
            raise Refused("a generator cannot be checkpointed", module, inner)
        match inner:
            case ast.Call(func=ast.Name(id="locals" | "eval" | "exec" as name)):
                raise Refused(f"its body calls `{name}()`", module, inner)
        if _is_call_of(inner, "vars"):
            raise Refused("its body calls `vars()`", module, inner)


def _is_call_of(node: ast.AST, name: str) -> bool:
    """Return whether a node calls a builtin function without positional arguments."""
    match node:
        case ast.Call(func=ast.Name(id=called), args=[]):
            return called == name
    return False


def _is_rebound(module: Module, node: FunctionNode, name: str) -> bool:
    scope = module.scope_of(node)
    module.flow(scope)
    return len(scope.bindings.get(name, [])) > 1


def _first_statement(node: ast.FunctionDef) -> ast.stmt:
    """Return the first statement after the docstring."""
    match node.body:
        case [ast.Expr(ast.Constant(str())), second, *_] if second.lineno > node.lineno:
            return second
    return node.body[0]


def _moved_decorators(
    module: Module, node: ast.FunctionDef, index: int, project: Project
) -> frozenset[int]:
    """Return the decorators below the checkpoint, which move with it, except `nn.compact`."""
    found = []
    for number, decorator in enumerate(node.decorator_list[index + 1 :], index + 1):
        names = project.qualified(module, decorator)
        if any(n.rpartition(".")[2] in ("compact", "nowrap") for n in names):
            continue
        if not names & TRANSPARENT:
            raise Refused(
                "a decorator below the checkpoint would run at every call", module, decorator
            )
        found.append(number)
    return frozenset(found)
