"""Whether a call does work, or only something light: a reduction, a loss, container operations."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names.module import Module
from ..values.evaluator import Evaluator
from ..values.values import (
    Applied,
    Bound,
    External,
    Function,
    Instance,
    Partial,
    Value,
    Values,
    Wrapped,
)
from .call_graph import own_nodes

# Methods and functions that keep no arrays for the backward pass: sums, and container operations.
# By the last part of the name.
LINEAR = frozenset(
    {
        "sum", "mean", "max", "min", "nansum", "nanmean", "average", "any", "all", "asarray",
        "array", "astype", "reshape", "ravel", "squeeze", "transpose", "copy", "subtract", "add",
        "float32", "stack", "real", "item", "float", "len", "tuple", "list", "dict", "one_hot",
        "take_along_axis", "argmax", "argmin", "items", "keys", "stop_gradient", "values", "append",
        "update", "extend",
    }
)  # fmt: skip
# Those that keep few: elementwise functions, and what a loss does with the output of a model.
_SMALL = LINEAR | frozenset(
    {
        "vdot", "square", "abs", "absolute", "where", "sqrt", "log", "log1p", "exp", "tanh",
        "expand_dims", "l2_loss", "squared_error", "huber_loss", "multiply", "divide", "norm",
        "clip", "maximum", "minimum", "power", "log_softmax", "softmax_cross_entropy",
        "softmax_cross_entropy_with_integer_labels", "sigmoid_binary_cross_entropy",
    }
)  # fmt: skip
# Library functions that multiply matrices or run other functions, by the last part of the name.
HEAVY = frozenset(
    {
        "dot", "matmul", "einsum", "tensordot", "dot_general", "conv", "conv_general_dilated",
        "conv_general_dilated_local", "conv_transpose", "conv_with_general_padding", "inner",
        "outer", "kron", "dot_product_attention", "convolve", "correlate", "ragged_dot", "scan",
        "map", "fori_loop", "while_loop", "cond", "switch", "associative_scan", "vectorize",
        "apply_along_axis", "apply_over_axes", "piecewise", "custom_root", "custom_linear_solve",
        "reduce", "reduce_window", "filter", "eval", "exec",
    }
)  # fmt: skip
# Functions of libraries that run a function in a compiled loop, by the last part of the name.
COMPILED_LOOPS = (".scan", ".map", ".fori_loop", ".while_loop", ".associative_scan")
_LIBRARIES = ("jax.numpy.", "jax.nn.", "jax.lax.", "jax.random.", "jax.debug.", "builtins.")
_OF_TREES = ("jax.tree.", "jax.tree_util.", "jax.tree_map", "jax.tree_leaves")
# A function wrapped in one of these does the same work, unlike one in a derivative or a rule.
SAME_WORK = frozenset(
    {
        "jax.jit", "jax.pmap", "jax.vmap", "jax.named_call", "jax.shard_map",
        "jax.experimental.shard_map.shard_map", "jax.experimental.pjit.pjit",
        "equinox.filter_jit", "equinox.filter_vmap", "equinox.filter_pmap", "haiku.jit",
        "haiku.vmap", "haiku.named_call", "flax.nnx.jit", "flax.linen.jit",
    }
)  # fmt: skip

# `flax.training.train_state.TrainState.create(apply_fn=model.apply, ...)`
_TRAIN_STATE = "apply_fn"
# How many calls deep functions are followed.
DEPTH = 5


def applied_by(evaluator: Evaluator, module: Module, call: ast.Call) -> Applied | None:
    """Return the checkpoint that a call always runs; None if it is only one of several
    possibilities.
    """
    if any(isinstance(result, Instance) for result in evaluator.values(module, call)):
        return None  # a checkpointed class is instantiated, not run
    values = callees(evaluator, module, call)
    found: set[Applied | None] = set()
    for value in values:
        inner: Value = value
        while isinstance(inner, Partial) or (isinstance(inner, Wrapped) and inner.how in SAME_WORK):
            inner = inner.func
        match inner:
            case Applied() as applied:
                found.add(applied)
            case Instance(cls=Applied() as applied):
                found.add(applied)
            case Bound(func=Applied() as applied):
                found.add(applied)
            case Bound(receiver=Instance(cls=Applied() as applied)) if is_apply(call):
                found.add(applied)
            case _:
                found.add(None)
    return next(iter(found)) if len(found) == 1 else None


def is_apply(call: ast.Call) -> bool:
    """Return whether a call runs the `__call__` of a Flax module."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("apply", _TRAIN_STATE)
        and not any(keyword.arg == "method" for keyword in call.keywords)
    )


def callees(evaluator: Evaluator, module: Module, call: ast.Call) -> Values:
    """Return what a call may run; for `state.apply_fn`, what the project's training states
    receive.
    """
    match call.func:
        case ast.Attribute(attr=attr) if attr == _TRAIN_STATE:
            return evaluator.values(module, call.func) or evaluator.apply_functions
    return evaluator.values(module, call.func)


def does_work(evaluator: Evaluator, module: Module, call: ast.Call, depth: int = 0) -> bool:
    """Return whether a call may compute more than a sum.

    Reductions and elementwise functions do not, nor do functions of the project that call nothing
    else, nor does creating a function or a module.
    """
    if _is_small(call) or makes_function(evaluator, module, call):
        return False
    values = evaluator.values(module, call.func)
    return not values or not all(
        is_light(evaluator, value, depth) and not _runs_work(evaluator, module, call, value)
        for value in values
    )


def _is_small(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _SMALL
    return False


def is_light(evaluator: Evaluator, value: Value, depth: int = 0) -> bool:
    """Return whether calling a value only runs reductions and elementwise functions."""
    match value:
        case External(name) if name.startswith((*_LIBRARIES, *_OF_TREES)):
            return name.startswith(_OF_TREES) or (
                name.rpartition(".")[2] not in HEAVY and ".linalg." not in name
            )
        case External(name):
            # Losses of optax; its optimizers are classes, and factories of another kind.
            return name.startswith(("optax.losses.", "optax.softmax", "optax.sigmoid"))
        case Wrapped(how=how, func=inner) if how in SAME_WORK:
            return is_light(evaluator, inner, depth)
        case Partial(func=inner) | Bound(func=inner):
            return is_light(evaluator, inner, depth)
        case Function(node=node) if depth < DEPTH:
            if node not in evaluator.light:
                evaluator.light[node] = False  # of a recursion
                evaluator.light[node] = not any(_works(evaluator, value, depth))
            return evaluator.light[node]
    return False


def _works(evaluator: Evaluator, function: Function, depth: int) -> Iterator[bool]:
    """Yield for each part of a function's body whether it does work."""
    module = function.module
    for node in own_nodes(function.node):
        if isinstance(node, ast.BinOp):
            yield isinstance(node.op, ast.MatMult)
        elif isinstance(node, ast.Call):
            yield applied_by(evaluator, module, node) is not None
            yield does_work(evaluator, module, node, depth + 1)


def _runs_work(evaluator: Evaluator, module: Module, call: ast.Call, value: Value) -> bool:
    """Return whether `jax.tree.map` or the like runs, or may run, a function that does work."""
    if not isinstance(value, External) or not value.name.startswith(_OF_TREES):
        return False
    if not value.name.endswith(("map", "reduce", "map_with_path", "multimap")):
        return False
    values = evaluator.values(module, call.args[0]) if call.args else frozenset()
    return not values or not all(is_light(evaluator, inner, 1) for inner in values)


def makes_function(evaluator: Evaluator, module: Module, call: ast.Call) -> bool:
    """Return whether a call creates the function that is called, or a module, and so does no
    work.
    """
    values = evaluator.values(module, call)
    return bool(values) and all(
        isinstance(v, Applied | Partial | Instance | Wrapped | Function) for v in values
    )
