"""Called values that a checkpoint may wrap: whether it may, and with which Api."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...analysis import Module, Project
from ...analysis.names.module import FunctionNode
from ...analysis.sites.framework_modules import framework_of
from ...analysis.statics.arguments import project_needs
from ...analysis.values.evaluator import Target, class_chain, targets_of
from ...analysis.values.values import (
    Applied,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Value,
    layers,
    underlying,
)
from ..flax_names import is_flax_class
from ..refusal import Refused

JAX, LINEN, NNX = "jax.checkpoint", "flax.linen.remat", "flax.nnx.remat"
EQUINOX = "equinox.filter_checkpoint"
_APIS = {"linen": LINEN, "nnx": NNX, "equinox": EQUINOX, "haiku": "haiku.remat"}
_SEEN = ("jax.", "optax.")


def sole_api(apis: Collection[str], module: Module, node: ast.AST) -> str:
    """Return the Api of a library that can wrap what code calls, or else that of JAX.

    Raises:
        Refused: the code calls modules of several libraries.
    """
    if len(apis) > 1:
        raise Refused("this may call modules of several libraries", module, node)
    return next(iter(apis), JAX)


def library_apis(
    project: Project,
    module: Module,
    node: ast.AST,
    values: Collection[Value],
    what: str = "the function",
) -> set[str]:
    """Return the Apis of libraries whose modules called values are, or use.

    Raises:
        Refused: one of them is checkpointed already.
    """
    apis: set[str] = set()
    for value in values:
        if any(isinstance(layer, Applied) for layer in layers(value)):
            raise Refused(f"{what} is checkpointed already", module, node)
        made = underlying(value)
        if isinstance(made, Class | External) and is_flax_class(project, made):
            apis.add(LINEN)  # a submodule of a compact method
            continue
        receiver = receiver_of(value)
        if receiver is not None:
            apis |= api_of_class(project, underlying(receiver))
        targets = targets_of(project.evaluator, value)
        is_haiku = isinstance(value, External) and value.name.startswith("haiku.")
        if is_haiku or any(uses_haiku(project, target.function, set()) for target in targets):
            apis.add("haiku.remat")
    return apis


def is_visible(project: Project, value: Value) -> bool:
    """Return whether what a called value runs is seen, or known to have no side effects."""
    return (
        receiver_of(value) is not None
        or (isinstance(value, External) and value.name.startswith(_SEEN))
        or any(True for _ in targets_of(project.evaluator, value))
    )


def receiver_of(value: Value) -> Value | None:
    """Return the class of the instance that is called, or whose method is."""
    for layer in layers(value):
        if isinstance(layer, Instance):
            return layer.cls
        if isinstance(layer, Bound) and isinstance(layer.receiver, Instance):
            return layer.receiver.cls
    return None


def api_of_class(project: Project, cls: Value | None) -> set[str]:
    """Return the Api for modules of a library's class; none for the project's own classes."""
    framework = framework_of(project.evaluator, cls)
    return {_APIS[framework]} if framework is not None else set()


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
