"""Closes over values needed at trace time: an inner checkpointed function of the other arguments.

    @partial(jax.checkpoint, concrete=True)        def block(x, *, train=False):
    def block(x, *, train=False):             ->       @jax.checkpoint
        ...                                            def checkpointed_block(x):
                                                           ...
                                                       return checkpointed_block(x)

The same is written for `block = jax.checkpoint(block, concrete=True)` after the `def`. The
signature does not change, so not all callers need to be known. A second name becomes a function
that closes over all arguments, whatever the signature and its defaults are:

    fast = jax.checkpoint(block, concrete=True)   ->   @functools.wraps(block)
                                                       def fast(*args, **kwargs):
                                                           @jax.checkpoint
                                                           def checkpointed_block():
                                                               return block(*args, **kwargs)

                                                           return checkpointed_block()

A checkpoint differentiates with respect to what its function closes over, too. Anywhere else,
`code_to_write` gives the code to write by hand.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ..analysis import Module, Project
from ..analysis.names.module import FunctionNode, Scope, find_mentions, own_nodes, parameters
from ..analysis.sites.calls import resolved
from ..analysis.sites.references import reference_to
from ..analysis.sites.site import Option, Site
from ..analysis.statics.mutated_state import changes_later, is_repeated
from ..analysis.statics.required_arguments import Required, Statics
from ..analysis.statics.static_options import static_site
from ..analysis.statics.wrong_wrappers import use_of_module
from ..analysis.values.bind import default_of
from ..analysis.values.values import Partial, underlying, union
from ..codemod.changes import Change, Code, Nest, ReplaceStatement
from .calls import is_literal
from .checkpoint_code import CheckpointCode
from .compile_time import hoist
from .free_names import free_name, words_in
from .options import keep, remove
from .refusal import Refused, check_editable


def closing_changes(
    project: Project, site: Site, statics: Statics, option: Option | None
) -> tuple[list[Change], Statics]:
    """Return the changes that close over the required arguments, and the complete decision.

    Raises:
        Refused: closing over them would change the meaning.
    """
    module, application = site.module, site.application
    assert application is not None
    node = _wrapped(project, site, statics)
    statics = _with_named(project, site, statics)
    hoisted = hoist(project, statics.computed)
    statement, index = module.parent(application), None
    match statement:
        case ast.Assign(targets=[ast.Name(id=name), *_]):
            if name != getattr(node, "name", None):
                return [*_second_name(project, site, option, statement, name), *hoisted], statics
        case ast.FunctionDef(decorator_list=decorators) if statement is node:
            index = decorators.index(application)
        case _:
            raise Refused("no `def` can take the place of this checkpoint")
    _check_body(site, node)
    assert isinstance(node, ast.FunctionDef)
    if statement is not node:
        _check_own_name(site, node)
    # A Python number that is left to its default would be rounded in another way if it were traced.
    required = {r.name for r in statics.required}
    closed = [p.arg for p in parameters(node) if p.arg in required or _has_number(node, p)]
    checkpoint = _kept(project, site, option, _first_statement(node))
    changes = _nested_body(project, site, node, closed, checkpoint, index)
    if statement is not node:
        changes += remove(project, module, [statement])
    elif not checkpoint.options and isinstance(application, ast.Call):
        if site.reference in application.args:
            # The import of `functools.partial` may become unused.
            changes += keep(project, module, application, site.reference)
    return [*changes, *hoisted], statics


def _wrapped(project: Project, site: Site, statics: Statics) -> FunctionNode:
    """Return the function that a site certainly wraps."""
    if not site.certain:
        raise Refused("it is not always a checkpoint", site.module, site.reference)
    if statics.target is None or statics.open_ended:
        raise Refused("the wrapped function cannot be determined")
    check_editable(site.module, [site.application] if site.application is not None else [])
    node = statics.target.function.node
    if _is_special(node):
        reason = "an asynchronous function or a generator cannot be checkpointed"
        raise Refused(reason, site.module, site.reference)
    if site.definition.modules is None and (use := use_of_module(project, statics.target.function)):
        framework, call = use
        api = {"haiku": "hk.remat", "linen": "nn.remat"}[framework]
        reason = f"its parameters would be tracers outside: use `{api}`"
        raise Refused(reason, statics.target.function.module, call)
    return node


def code_to_write(project: Project, site: Site, statics: Statics, option: Option | None) -> str:
    """Return the code that closes over all arguments of a function, and how to use it; or ""."""
    module, application = site.module, site.application
    node = statics.target.function.node if statics.target is not None else None
    if application is None or not site.certain or (node is not None and _is_special(node)):
        return ""
    if site.definition.counting != "function":
        return (
            "make the arguments that must be concrete positional, and name them in `static_argnums`"
        )
    try:
        kept = _kept(project, site, option, application)
    except Refused as refused:
        return refused.reason
    taken = words_in(module)
    name, inner = free_name("checkpointed", taken), free_name("closed_over", taken)
    decorator = kept.decorator(project, module, application)
    wraps = reference_to(module, project, "functools.wraps", application)
    imports = "".join(f"    {line}\n" for line in (*decorator.imports, *wraps.imports))
    subject = site.subject[1] if site.subject is not None else None
    used = f"@{name}"
    if isinstance(subject, ast.expr):
        used = f"{name}({' '.join(module.segment(subject).split())})"
    return f"""\
to close over the arguments, write `{used}` in place of this checkpoint, with
{imports}    def {name}(function):
        @{wraps.text}(function)
        def call(*args, **kwargs):
            @{decorator.text}
            def {inner}():
                return function(*args, **kwargs)
            return {inner}()
        return call"""


def _is_special(node: FunctionNode) -> bool:
    """Return whether a function is asynchronous or a generator, which no checkpoint can wrap."""
    return isinstance(node, ast.AsyncFunctionDef) or any(
        isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(node)
    )


def _check_body(site: Site, node: FunctionNode) -> None:
    """Raise Refused unless the body of a function may move into a nested function."""
    module = site.module
    if not isinstance(node, ast.FunctionDef):
        raise Refused("a lambda has no `def`")
    if site.subject is not None and isinstance(site.subject[1], ast.ClassDef):
        raise Refused(
            "the checkpoint decorates a class: apply it where the class is used, and pass the"
            " static arguments by position",
            module,
            site.reference,
        )
    for inner in own_nodes(node):
        match inner:
            case ast.Call(func=ast.Name("locals" | "vars" | "eval" | "exec" | "super" as name)):
                raise Refused(f"its body calls `{name}()`", module, inner)


def _has_number(node: FunctionNode, parameter: ast.arg) -> bool:
    default = default_of(node, parameter)
    return default is not None and is_literal(default) and ast.unparse(default) != "None"


def _check_own_name(site: Site, node: ast.FunctionDef) -> None:
    """Raise Refused unless `f = jax.checkpoint(f)` follows a `def f` of the same block, which
    nothing uses before.
    """
    module, name = site.module, node.name
    assert site.application is not None
    assert site.subject is not None
    statement, subject = module.parent(site.application), site.subject[1]
    assert isinstance(statement, ast.Assign)
    found = module.reaching(subject) if isinstance(subject, ast.Name) else frozenset()
    scope = module.scope_at(statement)
    nodes = {(b.node, b.scope) for b in found}
    if nodes != {(node, scope)} or len(statement.targets) > 1 or not isinstance(subject, ast.Name):
        raise Refused("what it wraps is not a `def` of the same scope, bound once")
    holder = module.parent(node)
    assert holder is not None
    for block in (v for _, v in ast.iter_fields(holder) if isinstance(v, list)):
        if node in block and statement in block:
            between = block[block.index(node) + 1 : block.index(statement)]
            if any(name in _names(ast.unparse(other)) for other in between):
                raise Refused(f"`{name}` is used before it is checkpointed", module, node)
            return
    raise Refused(f"`{name}` is a checkpoint under a condition", module, statement)


def _unstable(module: Module, scope: Scope, node: ast.expr) -> ast.Name | None:
    """Return a name in an expression that may mean something else in a function of `scope`."""
    deleted = find_mentions(module).deleted
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
            seen = module.visible(name.id, scope)
            if name.id in deleted or seen != module.reaching(name):
                return name
            if any(module.is_written_elsewhere(b.scope, name.id) for b in seen):
                return name
    return changes_later(module, node)


def _nested_body(
    project: Project,
    site: Site,
    node: ast.FunctionDef,
    closed: list[str],
    checkpoint: CheckpointCode,
    index: int | None,
) -> list[Change]:
    """Return the changes that checkpoint the body, without the decorator number `index`."""
    module = site.module
    _check_unwrapped(project, node)
    # A name that the body binds or deletes is local there: it becomes a parameter with a default.
    reassigned = tuple(n for n in closed if _is_rebound(module, node, n))
    if reassigned and node.args.kwarg is not None and node.args.kwarg.arg not in closed:
        raise Refused("it takes `**` and assigns to a static parameter", module, node)
    for below in node.decorator_list[0 if index is None else index + 1 :]:
        names = project.qualified(module, below)
        if not any(n.rpartition(".")[2] in ("compact", "nowrap") for n in names):
            raise Refused("a decorator is below the checkpoint", module, below)
    decorator = checkpoint.decorator(project, module, _first_statement(node))
    nest = Nest(
        module,
        node,
        free_name(f"checkpointed_{node.name.strip('_')}", words_in(module)),
        frozenset(closed),
        reassigned,
        Code(decorator.text),
        index,
    )
    return [nest, *decorator.changes]


def _second_name(
    project: Project, site: Site, option: Option | None, statement: ast.Assign, name: str
) -> list[Change]:
    """Return the changes that replace an assignment by a function that calls the old one."""
    module = site.module
    assert site.subject is not None
    subject, scope = site.subject[1], module.scope_at(statement)
    if not isinstance(subject, ast.Name) or len(statement.targets) > 1:
        raise Refused("what it wraps has no name")
    if site.definition.counting != "function":
        raise Refused(f"`{subject.id}` is not a function")
    if scope.is_class:
        raise Refused(f"a method cannot see `{subject.id}`, which its class body defines")
    bound = module.reaching(subject)
    repeated = any(is_repeated(module, binding) for binding in bound)
    if len(bound) != 1 or repeated or _unstable(module, scope, subject):
        reason = f"`{subject.id}` may mean something else when the new function is called"
        raise Refused(reason, module, subject)
    decorator = _kept(project, site, option, statement).decorator(project, module, statement)
    wraps = reference_to(module, project, "functools.wraps", statement)
    if shadowed := sorted({*_names(decorator.text), subject.id} & {"args", "kwargs"}):
        raise Refused(f"a parameter shadows `{shadowed[0]}`", module, subject)
    inner = free_name(f"checkpointed_{subject.id.strip('_')}", words_in(module))
    text = f"""\
@{wraps.text}({subject.id})
def {name}(*args, **kwargs):
    @{decorator.text}
    def {inner}():
        return {subject.id}(*args, **kwargs)

    return {inner}()
"""
    replaced = ReplaceStatement(module, statement, (Code(text),))
    return [replaced, *decorator.changes, *wraps.changes]


def _names(code: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Name)}


def _check_unwrapped(project: Project, node: ast.FunctionDef) -> None:
    """Raise Refused if the `__wrapped__` of a checkpointed function is read."""
    for module in project.mentioning(["__wrapped__", "unwrap"]):
        for read in module.nodes:
            match read:
                case (
                    ast.Attribute(value=owner, attr="__wrapped__")
                    | ast.Call(
                        func=ast.Name("getattr"), args=[owner, ast.Constant("__wrapped__"), *_]
                    )
                    | ast.Call(func=ast.Name("unwrap") | ast.Attribute(attr="unwrap"), args=[owner])
                ):
                    values = union(resolved(project, v) for v in project.values(module, owner))
                    if any(getattr(underlying(value), "node", None) is node for value in values):
                        raise Refused("its `__wrapped__` is read here", module, read)


def _is_rebound(module: Module, node: FunctionNode, name: str) -> bool:
    scope = module.scope_of(node)
    module.flow(scope)
    return len(scope.bindings.get(name, [])) > 1 or any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Del)
        for n in own_nodes(node)
    )


def _first_statement(node: ast.FunctionDef) -> ast.stmt:
    """Return the first statement after the docstring."""
    match node.body:
        case [ast.Expr(ast.Constant(str())), second, *_] if second.lineno > node.lineno:
            return second
    return node.body[0]


def _with_named(project: Project, site: Site, statics: Statics) -> Statics:
    """Return a decision that includes the present `static_argnums`, whose indices change."""
    named = site.arguments.get("static_argnums")
    if named is None:
        return statics
    static = static_site(project, site)
    if static is None or len(static.static) < len(static.indices):
        raise Refused("its `static_argnums` cannot be read", named.module, named.value)
    names = {required.name for required in statics.required}
    more = [Required(p.name, None, p.position) for p in static.static if p.name not in names]
    return replace(statics, required=(*statics.required, *more))


def _kept(
    project: Project, site: Site, option: Option | None, at: ast.expr | ast.stmt
) -> CheckpointCode:
    """Return the checkpoint with the options that it keeps, as the scope of `at` may write it in
    a function, which evaluates it at each call.

    Partials are written out: they may bring the option.

    Raises:
        Refused: an option cannot be repeated, or may have another value there.
    """
    module = site.module
    if site.spread:
        raise Refused("not all of its options are known", module, site.reference)
    scope = module.scope_at(at)
    options: list[str] = []
    for name, kept in site.arguments.items():
        if name == "static_argnums" or (option is not None and kept.value is option.value):
            continue
        text = kept.module.segment(kept.value)
        changing = _unstable(module, scope, kept.value) if kept.module is module else None
        if kept.module is not module or changing or isinstance(kept.value, ast.NamedExpr):
            shown = changing.id if changing else text
            reason = f"`{shown}`, which the checkpoint uses, may mean something else in a function"
            raise Refused(reason, module, changing or site.reference)
        options.append(f"{name}={text}")
    brings = any(isinstance(v, Partial) for v in project.values(module, site.reference))
    if not brings and _unstable(module, scope, site.reference) is None:
        return CheckpointCode(module.segment(site.reference), tuple(options))
    api = f"jax.{site.api.rpartition('.')[2]}" if site.definition.removed_in else site.api
    reference = reference_to(module, project, api, at)
    return CheckpointCode(reference.text, tuple(options), reference.changes)
