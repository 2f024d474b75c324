"""Intercept the gradients that the measured code takes itself.

`install` replaces `jax.grad`, `jax.value_and_grad` and `jax.vjp` before the user's modules are
imported. While an observer is set, each function that they differentiate is traced first. The
observer gets the trace, and returns the function that is differentiated instead. So a training step
can be traced again with checkpoints on the stages of its loss.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax

from .internals import internals

_NAMES = ("grad", "value_and_grad", "vjp")


class TracedLoss(NamedTuple):
    """A function that the measured code differentiates.

    Attributes:
        closed: closed jaxpr of its traced arguments and its arrays.
        arguments: indices of the arguments that it is differentiated by.
        outputs: number of outputs that are differentiated; auxiliary data follows them.
    """

    closed: Any
    arguments: tuple[int, ...]
    outputs: int

    def evaluate(self, *values: Any) -> list[Any]:
        """Evaluate the function unchanged."""
        return internals().evaluate(internals().opened(self.closed), self.closed.consts, values)


Observer = Callable[[TracedLoss], Callable[..., Sequence[Any]]]


class _State:
    """The state of the process; there is no observer inside a differentiated function."""

    observer: Observer | None = None
    # How often the measured code took a gradient.
    taken: int = 0


def taken() -> int:
    """Return how often a function was differentiated since the process started."""
    return _State.taken


def install() -> None:
    """Intercept gradients from now on, once per process."""
    for name in _NAMES:
        original = getattr(jax, name)
        if not hasattr(original, "is_observed"):
            setattr(jax, name, _intercepting(original, is_vjp=name == "vjp"))


@contextlib.contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Call an observer for each outermost function that is differentiated."""
    before, _State.observer = _State.observer, observer
    try:
        yield
    finally:
        _State.observer = before


def _intercepting(original: Callable[..., Any], *, is_vjp: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def transform(*args: Any, **options: Any) -> Any:
        if not args or not callable(args[0]):
            return original(*args, **options)
        function, *others = args
        argnums = None if is_vjp else options.get("argnums", others[0] if others else 0)
        # The third positional parameter of `jax.grad`.
        has_aux = bool(options.get("has_aux", not is_vjp and len(others) > 1 and others[1]))
        return original(_observable(function, argnums, has_aux), *others, **options)

    transform.is_observed = True  # type: ignore[attr-defined]
    return transform


def _observable(function: Callable[..., Any], argnums: Any, has_aux: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        _State.taken += 1
        observer = _State.observer
        if observer is None:
            return function(*args, **kwargs)
        _State.observer = None
        try:
            return _observe(observer, function, argnums, has_aux, args, kwargs)
        finally:
            _State.observer = observer

    return differentiated


def _observe(
    observer: Observer,
    function: Callable[..., Any],
    argnums: Any,
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: Any,
) -> Any:
    leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer)]
    returned: list[Any] = []

    def of_tracers(*values: Any) -> list[Any]:
        filled = list(leaves)
        for place, value in zip(places, values):
            filled[place] = value
        again, keywords = jax.tree_util.tree_unflatten(tree, filled)
        result = function(*again, **keywords)
        head = jax.tree_util.tree_leaves(result[0] if has_aux else result)
        flat, out_tree = jax.tree_util.tree_flatten(result)
        traced = [isinstance(leaf, jax.Array) for leaf in flat]
        returned[:] = [flat, out_tree, traced, len(head)]
        return [leaf for leaf, is_traced in zip(flat, traced) if is_traced]

    values = [leaves[place] for place in places]
    closed = jax.make_jaxpr(of_tracers)(*values)
    flat, out_tree, traced, count = returned
    chosen = _leaves_of(args, argnums)
    loss = TracedLoss(
        closed,
        tuple(number for number, place in enumerate(places) if place in chosen),
        count,
    )
    outputs = iter(observer(loss)(*values))
    filled = [next(outputs) if is_traced else leaf for leaf, is_traced in zip(flat, traced)]
    return jax.tree_util.tree_unflatten(out_tree, filled)


def _leaves_of(args: tuple[Any, ...], argnums: Any) -> list[int]:
    """Return the indices of the leaves of some arguments, or of all if `argnums` is None."""
    chosen = range(len(args)) if argnums is None else argnums
    numbers = {n % len(args) for n in ([chosen] if isinstance(chosen, int) else chosen)}
    found: list[int] = []
    start = 0
    for number, argument in enumerate(args):
        stop = start + len(jax.tree_util.tree_leaves(argument))
        if number in numbers:
            found += range(start, stop)
        start = stop
    return found
