"""Names of Flax submodules: parameters are stored under them, so rewrites must not change any.

In a compact method, an unnamed `nn.remat(Block)()` is `CheckpointBlock_0`, and `Block()` is
`Block_0`: the number counts the unnamed instances of the class in order of creation. Submodules of
`setup` have the name of their attribute.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ..analysis import Module, Project
from ..analysis.names.scopes import FunctionNode
from ..analysis.sites.find_sites import sites_in
from ..analysis.sites.site import Site
from ..analysis.values.callees import underlying
from ..analysis.values.evaluator import class_chain
from ..analysis.values.values import Applied, Class, External, Partial, Value, Wrapped
from ..codemod.changes import Code, SetArgument
from .refusal import Refused, check_own

_PREFIXES = {"flax.linen.partitioning.remat": "Core_remat_static"}
# The prefixes that other transforms add to the name of a class.
_TRANSFORMED = {"flax.linen.scan": "Scan", "flax.linen.vmap": "Vmap", "flax.linen.jit": "Jit"}
# Methods of a top-level module, whose name is not part of the names of its parameters.
_OUTSIDE = frozenset(
    {"apply", "init", "init_with_output", "lazy_init", "tabulate", "bind", "module_paths"}
)


@dataclass(frozen=True, slots=True)
class Made:
    """A call that creates a submodule, and the name of its class for Flax."""

    module: Module
    call: ast.Call
    name: str


def is_flax_class(project: Project, cls: Value | None) -> bool:
    """Return whether a class is a Flax linen module."""
    if isinstance(cls, External):
        return cls.name.startswith("flax.linen.") and cls.name.rpartition(".")[2][:1].isupper()
    if not isinstance(cls, Class):
        return False
    return any(
        isinstance(base, External)
        and base.name in ("flax.linen.Module", "flax.linen.module.Module")
        for base in class_chain(project.evaluator, cls)
    )


def names_without_remat(project: Project, site: Site) -> list[SetArgument]:
    """Return the `name=` that submodules need when the `nn.remat` of their class is removed.

    Raises:
        Refused: a name is unknown.
    """
    if not site.definition.wraps_classes or site.application is None:
        return []
    return [
        change
        for owner, node in _instances(project, site.module, site.application)
        if node.func is not site.reference
        for change in _named(project, owner, node)
    ]


def names_of_instances(
    project: Project, module: Module, transformed: ast.Call
) -> list[SetArgument]:
    """Return the `name=` that instances of a transformed class need to keep their names.

    Raises:
        Refused: a name is unknown, or no instance is found.
    """
    subject = [v.func for v in project.values(module, transformed) if isinstance(v, Wrapped)]
    if not any(isinstance(underlying(v), Class | External) for v in subject):
        return []  # a function of the outer module, to which its parameters belong
    made = _instances(project, module, transformed)
    if not made:
        raise Refused("no instance of it is found", module, transformed)
    return [change for owner, node in made for change in _named(project, owner, node)]


def _instances(
    project: Project, module: Module, wrapper: ast.expr
) -> list[tuple[Module, ast.Call]]:
    """Return the calls that create instances of the class that `nn.remat` or `nn.scan` returns."""
    holder = module.parent(wrapper)
    names = [holder.name] if isinstance(holder, ast.ClassDef) else []
    for target in holder.targets if isinstance(holder, ast.Assign) else ():
        stored = [n for n in ast.walk(target) if isinstance(getattr(n, "ctx", None), ast.Store)]
        names += [getattr(n, "id", getattr(n, "attr", "")) for n in stored]
    others = project.mentioning([name for name in names if name]) if any(names) else ()
    modules = dict.fromkeys([module, *others])
    return [
        (owner, node)
        for owner in modules
        for node in owner.nodes
        if isinstance(node, ast.Call)
        and any(_is_made_by(v, wrapper) for v in project.values(owner, node.func))
    ]


def _is_made_by(value: Value, wrapper: ast.expr) -> bool:
    match value:
        case Applied(target=inner) | Wrapped(func=inner) if value.node is wrapper:
            return isinstance(cls := underlying(inner), Class) or (
                isinstance(cls, External) and cls.name.rpartition(".")[2][:1].isupper()
            )
    return False


def _named(project: Project, module: Module, call: ast.Call) -> list[SetArgument]:
    text = flax_name(project, module, call)
    if text is None:
        return []
    check_own(module, call, "a submodule that needs a name")
    return [name_change(module, call, text)]


def name_change(module: Module, call: ast.Call, text: str) -> SetArgument:
    """Return the change that names a submodule."""
    return SetArgument(module, call, "name", Code(text))


def flax_name(project: Project, module: Module, call: ast.Call) -> str | None:
    """Return the name that Flax gives to the submodule that `call` creates, as an expression.

    Returns None if it has a name already, or one that does not depend on its class.

    Raises:
        Refused: its number is unknown.
    """
    if any(k.arg == "name" for k in call.keywords):
        return None
    if any(k.arg is None for k in call.keywords):
        raise Refused("its arguments are unpacked, and `name` may be among them", module, call)
    function = module.enclosing_function(call)
    if function is None:
        return None
    if not _is_in_method(project, module, function):
        holder = module.parent(call)
        if isinstance(holder, ast.Attribute) and holder.attr in _OUTSIDE:
            return None
        raise Refused(
            "a function outside its module creates a Flax submodule, whose parameters would get"
            " another name: give it `name=`",
            module,
            call,
        )
    if isinstance(function, ast.FunctionDef) and function.name == "setup":
        return None
    own = _class_name(project, module, call)
    if own is None:
        raise Refused("the class of a submodule is unknown: give it `name=`", module, call)
    same = [made.call for made in unnamed(project, module, function) if made.name == own]
    loops = _around(module, call, function, _REPEATING)
    if len(same) == 1 and len(loops) < 2:
        return _counted(module, loops[0], own) if loops else f'"{own}_0"'
    for other in same:
        if _around(module, other, function, (*_REPEATING, *_BRANCHES)):
            raise Refused(
                f"loops or branches create several `{own}`, whose numbers are unknown: give them"
                " `name=`",
                module,
                other,
            )
    return f'"{own}_{same.index(call)}"'


def unnamed(project: Project, module: Module, function: FunctionNode) -> Iterator[Made]:
    """Yield the calls in a compact method that create unnamed submodules, in order."""
    body = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
    body.sort(key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0))
    for node in body:
        if any(k.arg == "name" for k in node.keywords):
            continue
        name = _class_name(project, module, node)
        if name is not None:
            yield Made(module, node, name)


def _class_name(project: Project, module: Module, call: ast.Call) -> str | None:
    """Return the name of the Flax class that `call` creates an instance of."""
    found = set()
    for value in project.values(module, call.func):
        name = _name_of(project, value)
        if name is None:
            return None
        found.add(name)
    return found.pop() if len(found) == 1 else None


def _name_of(project: Project, value: Value) -> str | None:
    match value:
        case Class(node=node) if is_flax_class(project, value):
            return node.name
        case External(name) if is_flax_class(project, value):
            return name.rpartition(".")[2]
        case Applied(target=inner, module=module, node=node) if inner is not None:
            below = _name_of(project, inner)
            return None if below is None else _prefix_of(project, module, node) + below
        case Wrapped(how=how, func=inner) if how in _TRANSFORMED:
            below = _name_of(project, inner)
            return None if below is None else _TRANSFORMED[how] + below
        case Partial(func=inner, by_functools=True):
            return _name_of(project, inner)
    return None


def _prefix_of(project: Project, module: Module, application: ast.expr) -> str:
    """Return the prefix that an application of `nn.remat` adds to the name of a class."""
    apis = {s.api for s in sites_in(project, module) if s.application is application}
    return next((_PREFIXES[api] for api in apis if api in _PREFIXES), "Checkpoint")


def _is_in_method(project: Project, module: Module, function: FunctionNode) -> bool:
    """Return whether a function is a method of a Flax class, or nested in one."""
    return any(
        (cls := module.enclosing_class(around)) is not None
        and is_flax_class(project, Class(module, cls))
        for around in (function, *module.ancestors(function))
        if isinstance(around, FunctionNode)
    )


_REPEATING = (
    *(ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda),
)
_BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.Match, ast.BoolOp)


def _around(
    module: Module, node: ast.AST, function: ast.AST, kinds: tuple[type[ast.AST], ...]
) -> list[ast.AST]:
    """Return the loops or branches of a function that a node is in."""
    inside = itertools.takewhile(lambda around: around is not function, module.ancestors(node))
    return [around for around in inside if isinstance(around, kinds)]


def _counted(module: Module, loop: ast.AST, own: str) -> str:
    """Return the name with the index of a loop: `for i in range(n)`, `enumerate(...)`."""
    target = iterable = None
    match loop:
        case ast.For():
            if not any(isinstance(n, ast.Continue | ast.Break) for n in ast.walk(loop)):
                target, iterable = loop.target, loop.iter
        case ast.ListComp(generators=[ast.comprehension(ifs=[]) as generator]):
            target, iterable = generator.target, generator.iter
    match iterable, target:
        case (ast.Call(ast.Name("range") as counter, [_], []), ast.Name(index)) | (
            ast.Call(ast.Name("enumerate") as counter, [_], []),
            ast.Tuple(elts=[ast.Name(index), _]),
        ) if index != "_" and not module.reaching(counter):
            assert target is not None
            if not _is_assigned(loop, index, target):
                return f'f"{own}_{{{index}}}"'
    raise Refused(
        f"a loop that does not count creates `{own}`: give it `name=`, such as"
        f' `name=f"{own}_{{i}}"`',
        module,
        loop if isinstance(loop, ast.For) else None,
    )


def _is_assigned(loop: ast.AST, name: str, target: ast.AST) -> bool:
    own = set(ast.walk(target))
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n not in own
        for n in ast.walk(loop)
    )
