"""Called values that a checkpoint may wrap: whether it may, and with which Api."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...analysis import Module, Project
from ...analysis.names.scopes import FunctionNode
from ...analysis.statics.project_needs import project_needs
from ...analysis.values.callees import Target, layers, targets_of, underlying
from ...analysis.values.evaluator import class_chain
from ...analysis.values.values import Applied, Bound, Class, External, Function, Instance, Value
from ..flax_names import is_flax_class
from ..refusal import Refused

_EQUINOX = ("equinox.Module", "equinox._module.Module")
_NNX = ("flax.nnx.",)
_SEEN = ("jax.", "optax.")


def api_for(project: Project, module: Module, call: ast.Call, is_traced: bool) -> str:
    """Return the Api that can wrap a callee; with `is_traced`, an unknown one is allowed.

    Raises:
        Refused: the callee must not be wrapped, or is unknown.
    """
    values = project.values(module, call.func)
    seen = bool(values)
    apis = set()
    for value in values:
        check_not_checkpointed(value, module, call, "the function")
        receiver = receiver_of(value)
        if receiver is not None:
            api = api_of_instance(project, receiver, module, call)
            if api is not None:
                apis.add(api)
        targets = list(targets_of(project.evaluator, value))
        if any(uses_haiku(project, t.function, set()) for t in targets):
            apis.add("haiku.remat")
        outside = isinstance(value, External) and value.name.startswith(_SEEN)
        seen = seen and (bool(targets) or outside or receiver is not None)
    if not seen and not is_traced:
        reason = f"`{ast.unparse(call.func)}` is an unknown function, and may have side effects"
        raise Refused(reason, module, call)
    if len(apis) > 1:
        raise Refused("this may call modules of several libraries", module, call)
    return apis.pop() if apis else "jax.checkpoint"


def check_not_checkpointed(value: Value, module: Module, node: ast.AST, what: str) -> None:
    """Raise Refused if a value is wrapped in a checkpoint."""
    if any(isinstance(layer, Applied) for layer in layers(value)):
        raise Refused(f"{what} is checkpointed already", module, node)


def receiver_of(value: Value) -> Value | None:
    """Return the class of the instance that is called, or whose method is."""
    for layer in layers(value):
        if isinstance(layer, Instance):
            return layer.cls
        if isinstance(layer, Bound) and isinstance(layer.receiver, Instance):
            return layer.receiver.cls
    return None


def api_of_instance(
    project: Project, cls: Value, module: Module, call: ast.Call, *, lifted: bool = False
) -> str | None:
    """Return the Api for an instance of a library's class; None for the project's own classes.

    With `lifted`, the module is passed to the checkpoint as an argument.

    Raises:
        Refused: it is a module that is wrapped in another way.
    """
    if is_flax_class(project, underlying(cls) if lifted else cls):
        if lifted:
            return "flax.linen.remat"
        raise Refused("this calls a Flax module: wrap its class in `nn.remat`", module, call)
    names = [cls.name] if isinstance(cls, External) else []
    if isinstance(cls, Class):
        chain = class_chain(project.evaluator, cls)
        names += [base.name for base in chain if isinstance(base, External)]
    if any(name.startswith(_NNX) for name in names):
        if lifted:
            return "flax.nnx.remat"
        reason = "this calls a Flax nnx module: wrap a function of it in `nnx.remat`"
        raise Refused(reason, module, call)
    if any(name in _EQUINOX or name.startswith("equinox.nn.") for name in names):
        return "equinox.filter_checkpoint"
    if any(name.startswith("haiku.") for name in names):
        return "haiku.remat"
    return None


def uses_haiku(project: Project, function: Function, seen: set[FunctionNode]) -> bool:
    """Return whether a function creates Haiku modules or parameters, itself or by a call."""
    if function.node in seen or len(seen) > 64:
        return False
    seen.add(function.node)
    for node in ast.walk(function.node):
        if not isinstance(node, ast.Call):
            continue
        for value in project.values(function.module, node.func):
            if isinstance(value, External) and value.name.startswith("haiku."):
                return True
            for target in targets_of(project.evaluator, value):
                if uses_haiku(project, target.function, seen):
                    return True
    return False


def check_compile_time(project: Project, target: Target) -> None:
    """Raise Refused if the result of an operation on an array must be concrete."""
    for need in project_needs(project).of(target.function, target.owner):
        if need.certain and need.traced:
            reason = f"`{need.module.segment(need.node)}` must be concrete"
            raise Refused(f"{reason}, and a checkpoint traces it", need.module, need.node)


def may_lack_hash(project: Project, values: Collection[Value]) -> bool:
    """Return whether a callee may lack the hash that JAX needs, as a dataclass of arrays does."""
    for value in values:
        cls = receiver_of(value)
        if isinstance(cls, Class):
            for owner in class_chain(project.evaluator, cls):
                if isinstance(owner, Class) and owner.node.decorator_list:
                    return True
                if isinstance(owner, External) and owner.name != "builtins.object":
                    return not owner.name.startswith(("equinox.", "haiku."))
    return False
