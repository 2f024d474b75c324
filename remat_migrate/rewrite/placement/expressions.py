"""Checkpoints an expression, whatever it calls.

    x + f(p, norm(x))      ->  x + jax.checkpoint(lambda: f(p, norm(x)))()
    self.up(self.norm(x))  ->  nn.remat(lambda self: self.up(self.norm(x)))(self)

The lambda closes over arrays and Python values. Modules of Flax are its parameters: its checkpoints
see only the variables of modules that are passed. Submodules that a compact method creates in the
lambda keep their names.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from ...analysis import Module, Project
from ...analysis.names.module import FunctionNode, parameters
from ...analysis.sites.references import reference_to
from ...analysis.values.evaluator import targets_of
from ...analysis.values.values import Class, External, Value, underlying
from ...codemod.changes import Change, Code, Replace
from ..checkpoint_code import CheckpointCode
from ..refusal import Refused, check_own
from .callees import JAX, LINEN, NNX, api_of_class, check_compile_time, library_apis, sole_api
from .hazards import check_hazards

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def wrap_expression(
    project: Project,
    module: Module,
    value: ast.expr,
    options: Sequence[str] = (),
    *,
    checkpoint: str = JAX,
) -> list[Change]:
    """Return the changes that checkpoint an expression.

    Args:
        project: the project.
        module: the module of the expression.
        value: the expression.
        options: options of the checkpoint, as `name=value`.
        checkpoint: the Api of JAX to use, by qualified name.

    Raises:
        Refused: a checkpoint changes what the expression does, or may do so.
    """
    check_own(module, value, "the expression")
    api, modules = lifting(project, module, [value])
    reference = reference_to(module, project, checkpoint if api == JAX else api, value)
    given = ", ".join(modules)
    body = "({value})" if isinstance(value, ast.Tuple) else "{value}"
    function = f"lambda {given}: {body}" if given else f"lambda: {body}"
    text = CheckpointCode(reference.text, tuple(options)).around(function) + f"({given})"
    return [Replace(module, value, Code.of(text, value=value)), *reference.changes]


def lifting(
    project: Project, module: Module, nodes: Sequence[ast.AST]
) -> tuple[str, tuple[str, ...]]:
    """Return the Api that can wrap code, and the names of the modules that it must be passed.

    Raises:
        Refused: a checkpoint changes what the code does, or may do so.
    """
    apis: set[str] = set()
    modules: dict[str, None] = {}
    inside = list(dict.fromkeys(inner for node in nodes for inner in ast.walk(node)))
    looping = {inner for inner in inside if isinstance(inner, _COMPREHENSIONS)}
    calls = [inner for inner in inside if isinstance(inner, ast.Call)]
    for call in calls:
        if not looping.isdisjoint(module.ancestors(call)):
            raise Refused("a comprehension runs the stage: write it as a loop", module, call)
        values = project.values(module, call.func)
        own = library_apis(project, module, call, values)
        root = _root(call.func)
        if not values and root is not None and is_local(module, root):
            own |= _api_of_context(project, module, call, root)
        apis |= own
        if not own.isdisjoint((LINEN, NNX)):
            modules[_module_name(module, call, values, nodes)] = None
    api = sole_api(apis, module, nodes[0])
    if api == LINEN and len(modules) > 1:
        raise Refused("this calls several Flax modules from outside: move it into a method", module)
    if api not in (LINEN, NNX):
        for call in calls:
            for value in project.values(module, call.func):
                for target in targets_of(project.evaluator, value):
                    check_hazards(project, target.function)
                    check_compile_time(project, target)
    return api, tuple(modules)


def _api_of_context(project: Project, module: Module, call: ast.Call, root: ast.Name) -> set[str]:
    """Return the Api of the library whose module's method makes a call of an unknown callee."""
    method = _method_around(module, call)
    if method is None or not (call.func is root or root.id == parameters(method[0])[0].arg):
        return set()  # methods of arrays, such as `x.reshape`, are not calls of modules
    return api_of_class(project, Class(module, method[1]))


def _method_around(module: Module, node: ast.AST) -> tuple[FunctionNode, ast.ClassDef] | None:
    """Return the method that contains a node, also in a nested function, and its class."""
    for around in module.ancestors(node):
        if isinstance(around, FunctionNode):
            cls = module.enclosing_class(around)
            if cls is not None and parameters(around):
                return around, cls
    return None


def _module_name(
    module: Module, call: ast.Call, values: Collection[Value], nodes: Sequence[ast.AST]
) -> str:
    """Return the name outside some code of the module that holds the one that is called."""
    root = _root(call.func)
    is_made = any(isinstance(underlying(v), Class | External) for v in values)
    if root is not None and not is_made and is_local(module, root):
        if root in free_names(module, nodes):
            return root.id
        # `for block in self.blocks`
        held = [b.value for b in module.reaching(root) if b.kind == "element"]
        roots = {each.id for value in held if value and (each := _root(value))}
        if len(roots) == 1:
            return roots.pop()
    method = _method_around(module, call)
    if method is None:
        raise Refused("a function outside its module calls a Flax module", module, call)
    return parameters(method[0])[0].arg


def _root(node: ast.expr) -> ast.Name | None:
    """Return the name that an expression such as `self.blocks[0]` starts with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def free_names(module: Module, nodes: Sequence[ast.AST]) -> Iterator[ast.Name]:
    """Yield the names that code reads from outside."""
    inside = {inner for node in nodes for inner in ast.walk(node)}
    for node in nodes:
        for name in ast.walk(node):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
                bindings = module.reaching(name)
                if not bindings or any(binding.node not in inside for binding in bindings):
                    yield name


def is_local(module: Module, name: ast.Name) -> bool:
    """Return whether a name is bound in a function."""
    return any(binding.scope.parent is not None for binding in module.reaching(name))
