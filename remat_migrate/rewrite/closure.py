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

from ..model import Module, Project
from ..model.apis import TRANSPARENT
from ..model.callable import Target
from ..model.scopes import FunctionNode, parameters
from ..model.sites import Site
from ..model.statics import Statics
from ..source import Edit, SourceFile, apply_edits
from ..source.changes import Change
from .closure_at_once import free_name
from .closure_of_call import check_not_hidden, close_over_call
from .imports import written
from .indent import indent_unit, indentation, indented
from .options import removal_edits
from .refusal import Refused
from .signature import bracketed, names_in, signature
from .subclass import checkpointed_subclass


def close_over(
    project: Project,
    site: Site,
    statics: Statics,
    checkpoint: str,
    options: Sequence[str],
    hoisted: Sequence[Edit] = (),
) -> list[Edit]:
    """The edits that close over the required parameters at one application.

    Args:
        project: the project.
        site: the application.
        statics: what Python must know there.
        checkpoint: the Api as it is to be written, such as `jax.checkpoint`.
        options: the options that stay, as `name=value`.
        hoisted: the edits that compute at compile time what Python needs.

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
    hoisted: Sequence[Edit],
) -> list[Edit]:
    module, node = site.module, target.function.node
    if not isinstance(node, ast.FunctionDef):
        raise Refused("an asynchronous function", module, site.reference)
    _check_body(module, node)
    assert site.application is not None
    check_not_hidden(module, site.application, node, checkpoint, options)
    names = {r.name for r in statics.required}
    closed = [p.arg for p in parameters(node) if p.arg in names]
    name = free_name(f"checkpointed_{node.name.strip('_')}", names_in(node))
    rebound = [n for n in closed if _is_rebound(module, node, n)]
    inner = signature(
        node,
        without=closed,
        defaults=None,
        annotations=lambda e: module.segment(e),
    )
    # A name that the body assigns is local there: hand it over as a default.
    handed = [f"{n}={n}" for n in rebound]
    if handed and node.args.kwarg is not None and node.args.kwarg.arg not in closed:
        raise Refused("it takes `**` and assigns to a static parameter", module, node)
    star = ["*"] if handed and not _has_star(node, closed) else []
    first = _first_statement(node)
    unit, outer = _unit(module, node), indentation(module, node.lineno)
    newline, deeper = module.source.newline, outer + unit
    decorator = f"@{checkpoint}"
    imports: tuple[Edit, ...] = ()
    if options:
        partial = written(project, module, "functools.partial", first)
        decorator = f"@{partial.text}({checkpoint}, {', '.join(options)})"
        imports = partial.edits
    moved = _decorators_below(module, node, site, project)
    head = [
        *(f"{deeper}{d}" for d in (decorator, *moved)),
        *bracketed(f"def {name}", [*inner.written, *star, *handed], ":", deeper, unit),
    ]
    tail = bracketed(f"return {name}", inner.passed, "", deeper, unit)
    start, end = _body_start(module, node, first), _body_end(module, node)
    if _on_header_line(module, node, first):
        if hoisted:
            raise Refused("its body stands on the line of its header", module, node)
        start = module.span(first).start
        body = f"{deeper}{unit}{module.source.text[start:end]}"
        head.insert(0, "")
    else:
        inside = [e for e in hoisted if e.path == module.source.path and start <= e.start <= end]
        imports = (*imports, *(e for e in hoisted if e not in inside))
        source = _edited(module, [*_plain_super(module, node), *inside])
        longer = len(source.text) - len(module.source.text)
        body = indented(source, start, end + longer, unit, outer)
    text = newline.join([*head, body, "", *tail])
    edits = [Edit(module.source.path, start, end, text), *imports]
    edits += _without_decorators(module, node, site, moved)
    if not options:
        edits += _spared_imports(project, module, site)
    return edits


def _edited(module: Module, edits: list[Edit]) -> SourceFile:
    return (
        module.source.replaced(apply_edits(module.source.text, edits)) if edits else module.source
    )


def _plain_super(module: Module, node: ast.FunctionDef) -> list[Edit]:
    """The edits of `super()` in the function to `super(Class, self)`: it stands in a nested one.

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
        return []
    cls = module.enclosing_class(node)
    if cls is None or module.parent(cls) is not module.tree or not node.args.args:
        raise Refused(
            "its body calls `super()` without arguments, which does not work in a nested function:"
            " write `super(Class, self)`",
            module,
            calls[0],
        )
    put = f"super({cls.name}, {node.args.args[0].arg})"
    path = module.source.path
    return [Edit(path, *module.span(call), put) for call in calls]


def _on_header_line(module: Module, node: ast.FunctionDef, first: ast.stmt) -> bool:
    """`def f(x): return x`, or with the body behind a backslash."""
    start, text = module.source.line_starts[first.lineno - 1], module.source.text
    is_continued = text[:start].rstrip("\r\n").endswith("\\")
    return is_continued or bool(text[start : module.span(first).start].strip())


def _unit(module: Module, node: ast.FunctionDef) -> str:
    """One step of indentation as the function's own body has it."""
    outer, inner = (indentation(module, n.lineno) for n in (node, node.body[0]))
    if len(inner) > len(outer) and inner.startswith(outer):
        return inner.removeprefix(outer)
    return indent_unit(module)


def _has_star(node: FunctionNode, closed: Sequence[str]) -> bool:
    a = node.args
    if a.vararg is not None and a.vararg.arg not in closed:
        return True
    return any(p.arg not in closed for p in a.kwonlyargs)


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


def _body_start(module: Module, node: ast.FunctionDef, first: ast.stmt) -> int:
    """The start of the line behind the docstring or the header: comments there move along."""
    index = node.body.index(first)
    line = first.lineno
    if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        line = min([line, *(d.lineno for d in first.decorator_list)])
    if index > 0:
        previous = node.body[index - 1].end_lineno
        assert previous is not None
        at = previous + 1
    else:
        at = line
        while at - 1 > node.lineno and module.source.line_text(at - 1).lstrip().startswith("#"):
            at -= 1
    while at < line and not module.source.line_text(at).strip():
        at += 1
    return module.source.line_starts[at - 1]


def _body_end(module: Module, node: ast.FunctionDef) -> int:
    """The end of the body, with a comment that stands on its last line."""
    end = module.span(node).end
    text = module.source.text
    stop = end
    while stop < len(text) and text[stop] not in "\r\n":
        stop += 1
    return stop if text[end:stop].lstrip().startswith("#") else end


def _decorators_below(
    module: Module, node: ast.FunctionDef, site: Site, project: Project
) -> list[str]:
    """The decorators under the checkpoint go with the inner function, but for `nn.compact`."""
    index = node.decorator_list.index(site.application)  # type: ignore[arg-type]
    found = []
    for decorator in node.decorator_list[index + 1 :]:
        names = project.qualified(module, decorator)
        if any(n.rpartition(".")[2] in ("compact", "nowrap") for n in names):
            continue
        if not names & TRANSPARENT:
            raise Refused(
                "a decorator under the checkpoint would run at every call", module, decorator
            )
        found.append(f"@{module.segment(decorator)}")
    return found


def _without_decorators(
    module: Module, node: ast.FunctionDef, site: Site, moved: Sequence[str]
) -> list[Edit]:
    edits = []
    text = module.source.text
    for decorator in node.decorator_list:
        written = f"@{module.segment(decorator)}"
        if decorator is not site.application and written not in moved:
            continue
        start, end = module.span(decorator)
        start = text.rindex("@", 0, start)
        begin = module.source.line_starts[module.source.position(start)[0] - 1]
        line = module.source.position(end)[0]
        starts = module.source.line_starts
        stop = starts[line] if line < len(starts) else len(text)
        comment = text[end:stop].strip()
        put = ""
        if comment:
            put = f"{text[begin:start]}{comment}{module.source.newline}"
        edits.append(Edit(module.source.path, begin, stop, put))
    return edits


def _spared_imports(project: Project, module: Module, site: Site) -> list[Edit]:
    """The edits that take `functools.partial` away where only the old decorator used it."""
    call = site.application
    if not isinstance(call, ast.Call) or site.reference not in call.args:
        return []
    start, end = module.span(call)
    shortened = removal_edits(project, module, Change(keep=((call, site.reference),)))
    return [e for e in shortened if e.end < start or e.start > end]
