"""The function to measure, its abstract arguments, and how it is differentiated."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from .differentiation import taken
from .instruments.liveness import donated_arguments, size
from .internals import internals

VALUE_AND_GRAD, GRAD, NONE = "value_and_grad", "grad", "none"

# The target, or another implementation of it, on the traced arguments.
Run = Callable[..., Any]
# Untyped in JAX.
shape_of: Any = jax.ShapeDtypeStruct
_KNOWS_WEAK_TYPES = "weak_type" in inspect.signature(jax.ShapeDtypeStruct).parameters


class Unfit(Exception):
    """The target cannot be measured as requested; the message says why, and what to do."""


class Differentiation(NamedTuple):
    """How the function is differentiated.

    Attributes:
        by: `value_and_grad`, `grad`, or `none` for a function that takes gradients itself.
        argnums: arguments to differentiate by.
        has_aux: whether the function returns a pair of the loss and auxiliary data.
    """

    by: str = VALUE_AND_GRAD
    argnums: tuple[int, ...] = (0,)
    has_aux: bool = False


class Entry:
    """A function with abstract arguments.

    Arrays and shapes are traced. Other arguments, such as Python numbers, strings and
    configurations, are passed through unchanged.

    Attributes:
        function: the function.
        shapes: shapes of the traced arguments, flat.
        placed_shapes: the same with the shardings of arguments that are sharded over devices.
        devices: number of these devices.
        donated: indices of the arguments that a training step donates.
        argument_bytes: bytes of the traced arguments on each device.
        counted: bytes of the arguments that count in the traced peak, those of a training step on
            all devices together; else None.
        forward_pass: the jaxpr of the function without checkpoints, once it was traced.
    """

    donated: tuple[int, ...] = ()
    forward_pass: Any = None

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        how: Differentiation,
    ) -> None:
        self.function = function
        self.how = how
        self._check(args)
        leaves, self._tree = jax.tree_util.tree_flatten((args, kwargs))
        traced = [_is_array(leaf) for leaf in leaves]
        arrays = [leaf for leaf, is_traced in zip(leaves, traced) if is_traced]
        self.shapes = tuple(map(_shape, arrays))
        self._place([getattr(array, "sharding", None) for array in arrays])
        self._fixed = [None if is_traced else leaf for leaf, is_traced in zip(leaves, traced)]
        self._traced = traced

    def _place(self, shardings: Sequence[Any]) -> None:
        """Place arguments on devices, unless on a single one."""
        chosen = [s if _device_count(s) > 1 else None for s in shardings]
        self.devices = max(map(_device_count, chosen), default=1)
        self.placed_shapes = tuple(
            shape if sharding is None else shape_of(shape.shape, shape.dtype, sharding=sharding)
            for shape, sharding in zip(self.shapes, chosen)
        )
        self.argument_bytes = sum(map(_bytes_on_device, self.placed_shapes))
        self.counted = sum(map(size, self.shapes)) if self.how.by == NONE else None

    def _check(self, args: tuple[Any, ...]) -> None:
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise Unfit("it is a generator function: measure the function that returns the loss")
        if inspect.iscoroutinefunction(self.function):
            raise Unfit("it is a coroutine function: measure the function that returns the loss")
        if self.how.by == NONE:
            return
        for number in self.how.argnums:
            if not -len(args) <= number < len(args):
                raise Unfit(
                    "it cannot be differentiated by argument %d: it gets %d positional arguments"
                    % (number, len(args))
                )
        if len({number % len(args) for number in self.how.argnums}) < len(self.how.argnums):
            raise Unfit("--argnums names an argument twice")
        for number in self.how.argnums:
            leaves = jax.tree_util.tree_leaves(args[number])
            others = [leaf for leaf in leaves if not _is_differentiable(leaf)]
            if others and not any(map(_is_inexact_array, leaves)):
                kind = "a value of type " + type(others[0]).__name__
                if _is_array(others[0]):
                    kind = f"an array of dtype {others[0].dtype}"
                raise Unfit(
                    "argument %d holds %s, which cannot be differentiated:"
                    " name the arguments to differentiate by with --argnums" % (number, kind)
                )

    def _filled(self, flat: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values = iter(flat)
        leaves = [
            next(values) if is_traced else fixed
            for is_traced, fixed in zip(self._traced, self._fixed)
        ]
        args, kwargs = jax.tree_util.tree_unflatten(self._tree, leaves)
        return args, kwargs

    def names(self) -> list[str]:
        """Return the name of each traced argument, such as `params['w']`."""
        args, kwargs = self._filled(self.shapes)
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):  # some callables in C have no signature
            bound = {"args": args, **kwargs}
        leaves, _ = jax.tree_util.tree_flatten_with_path(dict(bound))
        paths = {id(leaf): path for path, leaf in leaves}
        names = []
        for shape in self.shapes:
            first, *inner = paths[id(shape)]
            names.append(str(first.key) + jax.tree_util.keystr(tuple(inner)))
        return names

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and drop auxiliary data that is not an array.

        Raises:
            Unfit: the loss is not an array.
        """
        given = set(map(id, jax.tree_util.tree_leaves((args, kwargs))))
        before = taken()
        value = self.function(*args, **kwargs)
        # Parameters that the function replaces in the modules that it gets.
        replaced = [
            leaf for leaf in jax.tree_util.tree_leaves((args, kwargs)) if id(leaf) not in given
        ]
        if self.how.by == NONE:
            return _arrays((value, replaced) if replaced else value)
        if replaced and taken() > before:
            raise Unfit("it takes gradients itself, and changes its arguments")
        if isinstance(value, tuple) and len(value) == 2:
            # Without `has_aux`, `_check_loss` rejects the pair.
            value = value[0], _arrays(value[1])
        for leaf in jax.tree_util.tree_leaves(value):
            if not isinstance(leaf, _RETURNED):
                self._refuse("a value of type " + type(leaf).__name__)
        return value

    # -- programs over the traced arguments

    def forward(self, *flat: Any) -> Any:
        """Call the function."""
        args, kwargs = self._filled(flat)
        return self._called(*args, **kwargs)

    def differentiated(self, *flat: Any, run: Run | None = None) -> Any:
        """Compute the gradient, and the value if requested; see `with_residuals`."""
        return self.with_residuals(*flat, run=run)[0]

    def differentiated_leaves(self) -> tuple[int, ...]:
        """Return the indices in `shapes` of the arguments to differentiate by."""
        count = len(self.shapes)
        args, _ = self._filled(range(count))
        chosen: list[Any] = []
        for number in self.how.argnums:
            chosen += jax.tree_util.tree_leaves(args[number])
        return tuple(
            number
            for number in chosen
            if type(number) is int and number < count and _is_inexact_array(self.shapes[number])
        )

    def pulled_back(self, *flat: Any, run: Run | None = None) -> Any:
        """Return the value and the VJP function, which holds the residuals."""
        function, primals = self._by_differentiated(flat, run)
        if self.how.has_aux:
            return jax.vjp(function, *primals, has_aux=True)
        return jax.vjp(function, *primals)

    def _by_differentiated(self, flat: Sequence[Any], run: Run | None) -> tuple[Run, list[Any]]:
        """Return the function of what it is differentiated by alone, and these values.

        As in `equinox.filter_grad`, an argument with other leaves, such as the strings, integers
        and functions of a model, is only differentiated by its arrays of floating-point numbers.
        """
        args, kwargs = self._filled(flat)
        argnums = [number % len(args) for number in self.how.argnums]
        chosen_leaves = jax.tree_util.tree_leaves([args[number] for number in argnums])
        if run is None and all(map(_is_differentiable, chosen_leaves)):

            def of_arguments(*chosen: Any) -> Any:
                whole = list(args)
                for number, value in zip(argnums, chosen):
                    whole[number] = value
                return self._called(*whole, **kwargs)

            return of_arguments, [args[number] for number in argnums]
        leaves = self.differentiated_leaves()

        def of_arrays(*chosen: Any) -> Any:
            whole = list(flat)
            for number, value in zip(leaves, chosen):
                whole[number] = value
            if run is None:
                return self.forward(*whole)
            value, *others = run(*whole)
            return (value, others) if self.how.has_aux else value

        return of_arrays, [flat[number] for number in leaves]

    def with_residuals(self, *flat: Any, run: Run | None = None) -> Any:
        """Return the gradient computation, and the VJP function with the residuals.

        The computation is that of `jax.grad`, which JAX implements with `jax.vjp`.

        Args:
            flat: the traced arguments.
            run: another implementation of the function; of a loss, it returns the flat outputs, the
                scalar first.
        """
        if self.how.by == NONE:
            return (run or self.forward)(*flat), ()
        value, pull, *aux = self.pulled_back(*flat, run=run)
        gradients = pull(np.ones(value.shape, value.dtype))
        given = (value, gradients) if self.how.by == VALUE_AND_GRAD else (gradients,)
        return (*given, *aux), pull

    # -- jaxprs

    def forward_jaxpr(self) -> Any:
        """Trace the function.

        Raises:
            Unfit: its result cannot be differentiated.
            Exception: any error that the function raises while it is traced.
        """
        jaxpr, shape = jax.make_jaxpr(self.forward, return_shape=True)(*self.shapes)
        if self.how.by != NONE:
            self._check_loss(shape)
        else:
            opened = internals().opened(jaxpr)
            donated = donated_arguments(opened)
            self.donated = tuple(n for n, v in enumerate(opened.invars) if v in donated)
            if self.devices == 1:
                self._place(_requested_shardings(opened))
        return jaxpr

    def gradient_jaxpr(self, run: Run | None = None) -> tuple[Any, Any, tuple[Any, Any]]:
        """Trace the gradient computation, without dead code, and with its residuals as outputs.

        Returns:
            Both jaxprs, and the shapes of the outputs and of the residuals.
        """
        program = functools.partial(self.with_residuals, run=run)
        jaxpr, shapes = jax.make_jaxpr(program, return_shape=True)(*self.shapes)
        count = len(jax.tree_util.tree_leaves(shapes[0]))
        return internals().dead_code_removed(jaxpr, count), jaxpr, shapes

    def _check_loss(self, shape: Any) -> None:
        if self.how.has_aux:
            if not (isinstance(shape, tuple) and len(shape) == 2):
                raise Unfit(f"has_aux: it returns {_shown(shape)}, not a pair")
            shape = shape[0]
        leaves: list[Any] = jax.tree_util.tree_leaves(shape)
        inexact = len(leaves) == 1 and jax.numpy.issubdtype(leaves[0].dtype, np.floating)
        if inexact and leaves[0].shape == () and not isinstance(shape, (tuple, list, dict)):
            return
        if isinstance(shape, tuple) and len(shape) == 2 and not self.how.has_aux:
            first = jax.tree_util.tree_leaves(shape[0])
            if len(first) == 1 and first[0].shape == ():
                raise Unfit(
                    "it returns a pair of a scalar and other values: pass --has-aux if they are"
                    " auxiliary data as in jax.grad(..., has_aux=True), or --grad none if this"
                    " function takes gradients itself"
                )
        self._refuse(_shown(shape))

    def _refuse(self, returned: str) -> None:
        raise Unfit(
            f"it returns {returned}, but only a scalar can be differentiated: name the loss, or"
            " pass --grad none if this function takes gradients itself"
        )


def _shown(shape: Any) -> str:
    leaves = jax.tree_util.tree_leaves(shape)
    if not leaves:
        return "no array"
    if len(leaves) == 1 and hasattr(leaves[0], "shape"):
        return f"{leaves[0].dtype}{list(leaves[0].shape)}"
    return "%d arrays" % len(leaves)


# Types that a traced function may return.
_RETURNED = (jax.Array, np.ndarray, np.generic, bool, int, float, complex)


def _arrays(value: Any) -> Any:
    """Drop the leaves of a pytree that are not arrays."""
    return jax.tree_util.tree_map(lambda leaf: leaf if isinstance(leaf, _RETURNED) else None, value)


def _bytes_on_device(shape: Any) -> int:
    sharding = getattr(shape, "sharding", None)
    if sharding is None:
        return size(shape)
    return size(shape_of(sharding.shard_shape(shape.shape), shape.dtype))


def _requested_shardings(jaxpr: Any) -> list[Any]:
    """Return the sharding that a jitted function requests for each argument of an open jaxpr."""
    found: dict[Any, Any] = {}
    for equation in jaxpr.eqns:
        if internals().is_inlined_call(equation):
            requested = equation.params.get("in_shardings", ())
            found.update(
                (atom, sharding)
                for atom, sharding in zip(equation.invars, requested)
                if not internals().is_literal(atom) and hasattr(sharding, "spec")
            )
    return [found.get(variable) for variable in jaxpr.invars]


def _device_count(sharding: Any) -> int:
    return len(getattr(sharding, "device_set", (None,)))


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct))


def _is_inexact_array(leaf: Any) -> bool:
    return _is_array(leaf) and bool(jax.numpy.issubdtype(leaf.dtype, np.inexact))


def _is_differentiable(leaf: Any) -> bool:
    return _is_inexact_array(leaf) or isinstance(leaf, (float, complex))


def _shape(leaf: Any) -> Any:
    dtype = jax.dtypes.canonicalize_dtype(leaf.dtype, allow_extended_dtype=True)
    if _KNOWS_WEAK_TYPES and getattr(leaf, "weak_type", False):
        return shape_of(leaf.shape, dtype, weak_type=True)
    return shape_of(leaf.shape, dtype)
