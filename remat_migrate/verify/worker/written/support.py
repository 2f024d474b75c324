# mypy: ignore-errors
# ruff: noqa: D100, D103
import sys
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

# The largest difference, relative to the largest entry of an array, by the lowest precision among
# the arrays of a test.
TOLERANCE = {
    "float64": 1e-10,
    "complex128": 1e-10,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 4e-3,
    "bfloat16": 3e-2,
}


def load(path):
    """Return arrays by name; an array of a dtype that NumPy lacks has the dtype in its name."""
    with np.load(path) as file:
        pairs = [(name.partition("; "), file[name]) for name in file.files]
    return {name: jnp.asarray(a).astype(dtype) if dtype else a for (name, _, dtype), a in pairs}


ARRAYS = load(Path(__file__).with_suffix(".npz")) if __name__ != "support" else {}


def array(name):
    return jnp.asarray(ARRAYS[name])


def tree(name):
    """Return nested dictionaries of arrays: `tree("a")["b"]["c"]` is `array("a / b / c")`."""
    found = {}
    for path in ARRAYS:
        if path.startswith(name + " / "):
            *parents, last = path[len(name + " / ") :].split(" / ")
            place = found
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = array(path)
    return found


def restore(cls, **attributes):
    """Return an instance of a class with these attributes, without calling its constructor."""
    instance = object.__new__(cls)
    for name, value in attributes.items():
        object.__setattr__(instance, name, value)
    return instance


def is_array(value):
    return isinstance(value, (jax.Array, np.ndarray, np.generic, bool, int, float, complex))


def is_inexact(value):
    return hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.inexact)


def results(function, args, kwargs, gradient):
    """Return the arrays in the result of a call, and its vector-Jacobian products.

    The products are with respect to the inexact arrays among the arguments. Each cotangent is the
    cosine of 0, 1, 2, ... in the shape of the result.
    """
    leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
    inexact = {place: jnp.asarray(x) for place, x in enumerate(leaves) if is_inexact(x)}

    def call(values):
        filled = [values.get(place, leaf) for place, leaf in enumerate(leaves)]
        args, kwargs = jax.tree_util.tree_unflatten(structure, filled)
        return function(*args, **kwargs)

    outcome, _ = jax.tree_util.tree_flatten_with_path(call(inexact))
    found = {"result" + jax.tree_util.keystr(path): x for path, x in outcome if is_array(x)}
    if gradient and inexact:
        outputs, pull_back = jax.vjp(
            lambda values: [x for x in jax.tree_util.tree_leaves(call(values)) if is_inexact(x)],
            inexact,
        )
        cotangents = [jnp.cos(jnp.arange(x.size)).reshape(x.shape).astype(x.dtype) for x in outputs]
        (gradients,) = pull_back(cotangents)
        paths = jax.tree_util.tree_flatten_with_path((args, kwargs))[0]
        for place, value in gradients.items():
            found["gradient" + jax.tree_util.keystr(paths[place][0])] = value
    return {name: as_numpy(value) for name, value in found.items()}


def as_numpy(value):
    if jnp.issubdtype(jnp.result_type(value), jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(jnp.asarray(value))


def wide(value):
    """Return an array of the largest type of its kind, in which NumPy computes."""
    is_complex = jnp.issubdtype(value.dtype, jnp.complexfloating)
    return value.astype(np.complex128 if is_complex else np.float64)


def largest(value):
    """Return the largest finite entry, by its magnitude."""
    value = np.abs(wide(value))
    return float(np.max(value, initial=0.0, where=np.isfinite(value)))


def check(case, function, args, kwargs=None, *, gradient=True, tolerance=0.0):
    """Compare a call and its gradients with what the old code gave."""
    # Code that reads the command line is not to see pytest's arguments.
    with mock.patch.object(sys, "argv", sys.argv[:1]):
        found = results(function, args, kwargs or {}, gradient)
    prefix = case + " -> "
    old = {n[len(prefix) :]: np.asarray(x) for n, x in ARRAYS.items() if n.startswith(prefix)}
    assert sorted(found) == sorted(old)
    leaves = [x for x in jax.tree_util.tree_leaves((args, kwargs)) if hasattr(x, "dtype")]
    dtypes = [str(x.dtype) for x in (*leaves, *found.values())]
    tolerance = max([tolerance, *(TOLERANCE.get(dtype, 0.0) for dtype in dtypes)])
    overall = max((largest(x) for x in old.values()), default=0.0)
    for name, value in found.items():
        before = old[name]
        assert (value.shape, value.dtype) == (before.shape, before.dtype), name
        if not is_inexact(value):
            np.testing.assert_array_equal(value, before, err_msg=name)
            continue
        limit = tolerance * max(largest(before), 1e-6 * overall)
        np.testing.assert_allclose(wide(value), wide(before), rtol=0, atol=limit, err_msg=name)
