"""Closing over what Python must know: an inner checkpointed function of the other arguments.

    @partial(jax.checkpoint, concrete=True)        def block(x, *, train=False):
    def block(x, *, train=False):             ->       @jax.checkpoint
        ...                                            def checkpointed_block(x):
                                                           ...
                                                       return checkpointed_block(x)

The signature stays, so callers need not be known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...analysis import Module, Project
from ...analysis.libraries.apis import TRANSPARENT
from ...analysis.names.scopes import FunctionNode, parameters
from ...analysis.sites.site import Site
from ...analysis.statics.statics import Statics
from ...analysis.values.callees import Target
from ...codemod.changes import Change, Nest
from ..arguments.signature import free_name, names_in
from ..imports import written
from ..options import keep
from ..refusal import Refused
from .closure_of_call import check_not_hidden, close_over_call
from .subclass import checkpointed_subclass


def close_over(
    project: Project,
    site: Site,
    statics: Statics,
    checkpoint: str,
    options: Sequence[str],
    hoisted: Sequence[Change] = (),
) -> list[Change]:
    """The changes that close over the required parameters at one application.

    Args:
        project: the project.
        site: the application.
        statics: what Python must know there.
        checkpoint: the Api as it is to be written, such as `jax.checkpoint`.
        options: the options that stay, as `name=value`.
        hoisted: the changes that compute at compile time what Python needs.

    Raises:
        Refused: the form does not allow it.
    """
    target = statics.target
    if target is None:
        raise Refused("what is wrapped cannot be seen", site.module, site.reference)
    if target.function.module.editable is False and site.form.startswith("decorator"):
        raise Refused("it stands in a file that is not to be changed", site.module, site.reference)
    if site.form.startswith("decorator"):
        if site.subject is not None and isinstance(site.subject[1], ast.ClassDef):
            raise Refused(
                "it decorates a class: apply it where the class is used, with the static"
                " arguments by position",
                site.module,
                site.reference,
            )
        return _nested_body(project, site, target, statics, checkpoint, options, hoisted)
    if target.owner is not None and site.definition.wraps_classes:
        return [*checkpointed_subclass(project, site, statics, checkpoint, options), *hoisted]
    return [*close_over_call(site, target, statics, checkpoint, options), *hoisted]


# -- decorated functions


def _nested_body(
    project: Project,
    site: Site,
    target: Target,
    statics: Statics,
    checkpoint: str,
    options: Sequence[str],
    hoisted: Sequence[Change],
) -> list[Change]:
    module, node = site.module, target.function.node
    if not isinstance(node, ast.FunctionDef):
        raise Refused("an asynchronous function", module, site.reference)
    _check_body(module, node)
    assert site.application is not None
    check_not_hidden(module, site.application, node, checkpoint, options)
    names = {r.name for r in statics.required}
    closed = [p.arg for p in parameters(node) if p.arg in names]
    # A name that the body assigns is local there: it becomes a parameter with a default.
    reassigned = tuple(n for n in closed if _is_rebound(module, node, n))
    if reassigned and node.args.kwarg is not None and node.args.kwarg.arg not in closed:
        raise Refused("it takes `**` and assigns to a static parameter", module, node)
    decorator = checkpoint
    changes: list[Change] = []
    if options:
        partial = written(project, module, "functools.partial", _first_statement(node))
        decorator = f"{partial.text}({checkpoint}, {', '.join(options)})"
        changes += partial.changes
    else:
        changes += _spared_import(project, module, site)
    index = node.decorator_list.index(site.application)
    nest = Nest(
        module,
        node,
        free_name(f"checkpointed_{node.name.strip('_')}", names_in(node)),
        frozenset(closed),
        reassigned,
        decorator,
        index,
        _decorators_below(module, node, index, project),
        _plain_super(module, node),
    )
    return [nest, *changes, *hoisted]


def _plain_super(module: Module, node: ast.FunctionDef) -> str:
    """What `super()` in the function becomes in a nested one; "" where there is none.

    Raises:
        Refused: the class has no name that is seen there.
    """
    calls = [
        n
        for n in own_nodes(node)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id == "super"
        and not n.args
    ]
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
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
            if inner.func.id in ("locals", "eval", "exec") or (
                inner.func.id == "vars" and not inner.args
            ):
                raise Refused(f"its body calls `{inner.func.id}()`", module, inner)


def own_nodes(node: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions and classes in it."""
    stack: list[ast.AST] = list(node.body)
    while stack:
        inner = stack.pop()
        yield inner
        if not isinstance(inner, FunctionNode | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(inner))


def _is_rebound(module: Module, node: FunctionNode, name: str) -> bool:
    scope = module.scope_of(node)
    module.flow(scope)
    return len(scope.bindings.get(name, [])) > 1


def _first_statement(node: ast.FunctionDef) -> ast.stmt:
    """The first statement behind the docstring."""
    first = node.body[0]
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
        and len(node.body) > 1
        and node.body[1].lineno > node.lineno
    ):
        return node.body[1]
    return first


def _decorators_below(
    module: Module, node: ast.FunctionDef, index: int, project: Project
) -> frozenset[int]:
    """The decorators under the checkpoint go with the inner function, but for `nn.compact`."""
    found = []
    for number, decorator in enumerate(node.decorator_list[index + 1 :], index + 1):
        names = project.qualified(module, decorator)
        if any(n.rpartition(".")[2] in ("compact", "nowrap") for n in names):
            continue
        if not names & TRANSPARENT:
            raise Refused(
                "a decorator under the checkpoint would run at every call", module, decorator
            )
        found.append(number)
    return frozenset(found)


def _spared_import(project: Project, module: Module, site: Site) -> list[Change]:
    """Removes the import of `functools.partial` where only the old decorator used it."""
    call = site.application
    if not isinstance(call, ast.Call) or site.reference not in call.args:
        return []
    return keep(project, module, call, site.reference)
