"""Names of Flax submodules: parameters are stored under them, so rewrites must not change any.

In a compact method, an unnamed `nn.remat(Block)()` is `CheckpointBlock_0`, and `Block()` is
`Block_0`: the number counts the unnamed instances of the class in order of creation. Submodules of
`setup` have the name of their attribute.
"""

from __future__ import annotations

import ast

from ..analysis import Module, Project
from ..analysis.names.module import FunctionNode
from ..analysis.placement.placement import python_loop
from ..analysis.sites.find_sites import sites_in
from ..analysis.sites.framework_modules import framework_of
from ..analysis.values.values import Applied, Class, External, Value, Wrapped, layers, underlying
from ..codemod.changes import Code, SetArgument
from .refusal import Refused, check_own

_PREFIXES = {"flax.linen.partitioning.remat": "Core_remat_static"}
# The prefixes that other transforms add to the name of a class.
_TRANSFORMED = {"flax.linen.scan": "Scan", "flax.linen.vmap": "Vmap", "flax.linen.jit": "Jit"}
# Methods of a top-level module, whose name is not part of the names of its parameters.
_OUTSIDE = frozenset(
    {"apply", "init", "init_with_output", "lazy_init", "tabulate", "bind", "module_paths"}
)


def is_flax_class(project: Project, cls: Value | None) -> bool:
    """Return whether a class is a Flax linen module."""
    return framework_of(project.evaluator, cls) == "linen"


def kept_names(project: Project, module: Module, wrapper: ast.expr) -> list[SetArgument]:
    """Return the `name=` that submodules need to keep their names when what wraps their class
    changes: `nn.remat(Block)`, `nn.scan(Block)`, a decorator.

    Raises:
        Refused: a name is unknown, or no submodule is found.
    """
    changes: list[SetArgument] = []
    made = _instances(project, module, wrapper)
    wrapped = map(underlying, project.values(module, wrapper))
    if not made and any(is_flax_class(project, value) for value in wrapped):
        raise Refused("no instance of it is found", module, wrapper)
    for owner, call in made:
        if name := _name_by_class(project, owner, call):
            check_own(owner, call, "a submodule that needs a name")
            changes.append(SetArgument(owner, call, "name", Code(f'"{name}"')))
    return changes


def _instances(
    project: Project, module: Module, wrapper: ast.expr
) -> list[tuple[Module, ast.Call]]:
    """Return the calls that create instances of a wrapped class."""
    holder = module.parent(wrapper)
    names = [holder.name] if isinstance(holder, ast.ClassDef) else []
    for target in holder.targets if isinstance(holder, ast.Assign) else ():
        names.append(getattr(target, "id", getattr(target, "attr", "")))
    others = project.mentioning([name for name in names if name]) if any(names) else ()
    return [
        (owner, node)
        for owner in dict.fromkeys([module, *others])
        for node in owner.nodes
        if isinstance(node, ast.Call)
        and any(_is_made_by(project, v, wrapper) for v in project.values(owner, node.func))
    ]


def _is_made_by(project: Project, value: Value, wrapper: ast.expr) -> bool:
    is_wrapped = isinstance(value, Applied | Wrapped) and value.node is wrapper
    return is_wrapped and is_flax_class(project, underlying(value))


def _name_by_class(project: Project, module: Module, call: ast.Call) -> str:
    """Return the name that Flax gives to the submodule that `call` creates; "" if it does not
    depend on its class.

    Raises:
        Refused: its number is unknown.
    """
    function = module.enclosing_function(call)
    keywords = [keyword.arg for keyword in call.keywords]
    if "name" in keywords or function is None or getattr(function, "name", "") == "setup":
        return ""
    if None in keywords:
        raise Refused("its arguments are unpacked, and `name` may be among them", module, call)
    holder, cls = module.parent(call), module.enclosing_class(function)
    if cls is None or not is_flax_class(project, Class(module, cls)):
        if isinstance(holder, ast.Attribute) and holder.attr in _OUTSIDE:
            return ""
        raise Refused(
            "a function outside its module creates a Flax submodule, whose parameters would get"
            " another name: give it `name=`",
            module,
            call,
        )
    own = _class_name(project, module, call)
    if own is None or python_loop(module, call) or _is_made_again(project, module, call, own):
        raise Refused(
            f"the number in the name of `{own or 'a submodule'}` is unknown: give it `name=`, such"
            f' as `name=f"{own or "Block"}_{{i}}"`',
            module,
            call,
        )
    return f"{own}_0"


def _is_made_again(project: Project, module: Module, call: ast.Call, name: str) -> bool:
    """Return whether a method creates another unnamed submodule whose class has a name."""
    function = module.enclosing_function(call)
    assert isinstance(function, FunctionNode)
    return any(
        isinstance(node, ast.Call)
        and node is not call
        and all(keyword.arg != "name" for keyword in node.keywords)
        and _class_name(project, module, node) == name
        for node in ast.walk(function)
    )


def _class_name(project: Project, module: Module, call: ast.Call) -> str | None:
    """Return the name of the Flax class that `call` creates an instance of, with prefixes."""
    names = {_name_of(project, value) for value in project.values(module, call.func)}
    return names.pop() if len(names) == 1 else None


def _name_of(project: Project, value: Value) -> str | None:
    name = ""
    for layer in layers(value):
        match layer:
            case Applied():
                name += _prefix_of(project, layer)
            case Wrapped(how=how) if how in _TRANSFORMED:
                name += _TRANSFORMED[how]
            case Class(node=node) if is_flax_class(project, layer):
                return name + node.name
            case External(name=qualified) if is_flax_class(project, layer):
                return name + qualified.rpartition(".")[2]
    return None


def _prefix_of(project: Project, applied: Applied) -> str:
    """Return the prefix that an application of `nn.remat` adds to the name of a class."""
    sites = sites_in(project, applied.module)
    apis = {site.api for site in sites if site.application is applied.node}
    return next((_PREFIXES[api] for api in apis if api in _PREFIXES), "Checkpoint")
