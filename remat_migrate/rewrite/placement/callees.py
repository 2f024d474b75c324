"""What is called, for a checkpoint to be put around it: which Api does that, and whether it may."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...analysis import Module, Project
from ...analysis.names.scopes import FunctionNode
from ...analysis.statics.project_needs import project_needs
from ...analysis.values.callees import Target, layers, targets_of
from ...analysis.values.classes import class_annotations, class_chain
from ...analysis.values.values import Applied, Bound, Class, External, Function, Instance, Value
from ..flax_names import is_flax_class
from ..refusal import Refused

_EQUINOX = ("equinox.Module", "equinox._module.Module")
_NNX = ("flax.nnx.",)
_SEEN = ("jax.", "optax.")
_SEQUENCES = frozenset({"list", "tuple", "List", "Tuple", "Sequence"})


def called_values(project: Project, module: Module, func: ast.expr) -> frozenset[Value]:
    """What a call calls; of an element of an annotated field (`blocks: list[Block]`), too."""
    found = project.values(module, func)
    if found or not isinstance(func, ast.Name):
        return found
    made: set[Value] = set()
    for binding in module.reaching(func):
        if binding.kind != "element" or not isinstance(binding.value, ast.Attribute):
            return found
        for holder in project.values(module, binding.value.value):
            if not isinstance(holder, Instance) or not isinstance(holder.cls, Class):
                continue
            for owner in class_chain(project.evaluator, holder.cls):
                if not isinstance(owner, Class):
                    continue
                match class_annotations(owner.node).get(binding.value.attr):
                    case ast.Subscript(
                        value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner
                    ) if name in _SEQUENCES:
                        part = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
                        made |= project.evaluator.annotated(owner.module, part)
    return frozenset(made)


def api_for(project: Project, module: Module, call: ast.Call, is_traced: bool) -> str:
    """The Api to wrap a callee with.

    Raises:
        Refused: it must not be wrapped, or cannot be seen.
    """
    values = called_values(project, module, call.func)
    seen = bool(values)
    apis = set()
    for value in values:
        if any(isinstance(layer, Applied) for layer in layers(value)):
            raise Refused("what is called is checkpointed already", module, call)
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
        raise Refused(
            f"what `{ast.unparse(call.func)}` calls cannot be seen, nor what it does besides"
            " computing",
            module,
            call,
        )
    if len(apis) > 1:
        raise Refused("modules of several libraries may be called here", module, call)
    return apis.pop() if apis else "jax.checkpoint"


def receiver_of(value: Value) -> Value | None:
    """The class whose instance is called, or a method of it."""
    for layer in layers(value):
        if isinstance(layer, Instance):
            return layer.cls
        if isinstance(layer, Bound) and isinstance(layer.receiver, Instance):
            return layer.receiver.cls
    return None


def api_of_instance(project: Project, cls: Value, module: Module, call: ast.Call) -> str | None:
    """The Api for an instance of a library's class; None for the project's own.

    Raises:
        Refused: it is a module that is wrapped in another way.
    """
    if is_flax_class(project, cls):
        raise Refused("a module of Flax is called: `nn.remat` goes around its class", module, call)
    names = [cls.name] if isinstance(cls, External) else []
    if isinstance(cls, Class):
        chain = class_chain(project.evaluator, cls)
        names += [base.name for base in chain if isinstance(base, External)]
    if any(name.startswith(_NNX) for name in names):
        raise Refused(
            "a module of Flax nnx is called: `nnx.remat` goes around a function of it", module, call
        )
    if any(name in _EQUINOX or name.startswith("equinox.nn.") for name in names):
        return "equinox.filter_checkpoint"
    if any(name.startswith("haiku.") for name in names):
        return "haiku.remat"
    return None


def uses_haiku(project: Project, function: Function, seen: set[FunctionNode]) -> bool:
    """Whether a function makes modules or parameters of Haiku, or calls one that does."""
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
    """Look for operations on arrays whose result Python needs.

    Raises:
        Refused: there is one.
    """
    for need in project_needs(project).of(target.function, target.owner):
        if need.certain and need.traced:
            raise Refused(
                f"Python needs what an operation on `{need.parameter}` gives, which under a"
                " checkpoint is a tracer",
                need.module,
                need.node,
            )


def may_lack_hash(project: Project, values: Collection[Value]) -> bool:
    """Whether a callee may have no hash, which JAX needs of it: a dataclass of arrays has none."""
    for value in values:
        cls = receiver_of(value)
        if isinstance(cls, Class):
            for owner in class_chain(project.evaluator, cls):
                if isinstance(owner, Class) and owner.node.decorator_list:
                    return True
                if isinstance(owner, External) and owner.name != "builtins.object":
                    return not owner.name.startswith(("equinox.", "haiku."))
    return False
