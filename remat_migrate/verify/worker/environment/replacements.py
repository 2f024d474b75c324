"""What removed functions did, in terms of what there is."""

from __future__ import annotations

import sys
from typing import Any, Callable, List, NamedTuple, Sequence

import jax
import jax.numpy as jnp

NINF = -float("inf")


class _Index:
    """`jax.ops.index[1:, 2]` is the index itself."""

    def __getitem__(self, index: Any) -> Any:
        return index


index = _Index()


class _KeyPaths:
    """How registered pytrees are flattened one level deep, with the keys of their children."""

    def get(self, kind: Any, default: Any = None) -> Any:
        """Return the handler of a class of pytrees."""
        known = sys.modules["jax._src.tree_util"]._registry
        return self if kind in known and kind is not type(None) else default

    def flatten_with_keys(self, tree: Any) -> Any:
        """Return the children with their keys, and what else the tree holds."""
        with_paths = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: x is not tree)
        return [(path[0], child) for path, child in with_paths[0]], None


registry_with_keypaths = _KeyPaths()


def identity(value: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the value."""
    return value


def index_update(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with some entries set."""
    return jnp.asarray(x).at[idx].set(y)


def index_add(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with values added to some entries."""
    return jnp.asarray(x).at[idx].add(y)


def index_mul(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with some entries multiplied."""
    return jnp.asarray(x).at[idx].multiply(y)


def index_min(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with the smaller values at some entries."""
    return jnp.asarray(x).at[idx].min(y)


def index_max(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with the larger values at some entries."""
    return jnp.asarray(x).at[idx].max(y)


def tie_in(x: Any, y: Any) -> Any:
    """Return the second argument, as since omnistaging."""
    return y


def pvary(x: Any, axis_name: Any) -> Any:
    """Mark a value as varying over mesh axes."""
    return jax.lax.pcast(x, axis_name, to="varying")


def msort(a: Any) -> Any:
    """Return an array sorted along its first axis."""
    return jnp.sort(a, axis=0)


def host_ids() -> Sequence[int]:
    """Return the indices of all processes."""
    return list(range(jax.process_count()))


def disable_x64(*args: Any) -> Any:
    """Return a context without 64-bit types."""
    return jax.enable_x64(False)


def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """Return values with a leading axis over devices."""
    return jax.tree_util.tree_map(lambda leaf: jnp.stack([leaf] * len(devices)), x)


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Return shards stacked along a leading axis."""
    return jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *shards)


def host_call(callback: Callable[..., Any], arg: Any, *, result_shape: Any = None) -> Any:
    """Return the result of a Python function."""
    return jax.pure_callback(callback, result_shape, arg)


def id_tap(tap: Callable[..., Any], arg: Any, *, result: Any = None, **kwargs: Any) -> Any:
    """Return the argument, or the result, and call the function with the argument."""
    jax.debug.callback(lambda value: tap(value, ()), arg)
    return arg if result is None else result


def id_print(arg: Any, *, result: Any = None, **kwargs: Any) -> Any:
    """Return the argument, or the result."""
    return arg if result is None else result


def named_call(function: Callable[..., Any], *, name: Any = None) -> Callable[..., Any]:
    """Return a function with a name scope."""
    return jax.named_call(function, name=name)


# -- the stack of traces, to which each trace now has a parent instead


class MainTrace(NamedTuple):
    """A trace of the stack."""

    level: int
    trace_type: type
    is_staging: bool

    @property
    def main(self) -> MainTrace:
        """The trace itself, which `find_top_trace` returned an instance of."""
        return self


class _TraceStack:
    @property
    def stack(self) -> List[MainTrace]:
        """The traces, the outermost first."""
        trace = sys.modules["jax._src.core"].trace_ctx.trace
        types: List[type] = []
        while trace is not None:
            types.insert(0, type(trace))
            trace = getattr(trace, "parent_trace", None)
        staging = ("EvalTrace", "DynamicJaxprTrace")
        return [MainTrace(n, kind, kind.__name__ in staging) for n, kind in enumerate(types)]

    @property
    def dynamic(self) -> MainTrace:
        """The innermost trace that also takes operations on constants."""
        return [trace for trace in self.stack if trace.is_staging][-1]


class _TraceState:
    trace_stack = _TraceStack()
    substack = (0,)


class _ThreadLocalState:
    trace_state = _TraceState()


thread_local_state = _ThreadLocalState()


def cur_sublevel() -> int:
    """Return the number of calls within the innermost trace, which have traces of their own now."""
    return 0


def find_top_trace(args: Sequence[Any], *unused: Any, **options: Any) -> MainTrace:
    """Return the innermost of the traces of some values, and of those that take constants."""
    stack = _TraceState.trace_stack.stack
    kinds = {type(arg._trace) for arg in args if isinstance(arg, jax.core.Tracer)}
    return [trace for trace in stack if trace.is_staging or trace.trace_type in kinds][-1]
