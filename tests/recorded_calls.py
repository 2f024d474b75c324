"""Record calls of units with the values of a running program, and evaluate them again."""

from __future__ import annotations

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worker_package import load_worker

pure_functions = load_worker("frameworks.pure_functions")
abstraction = load_worker("frameworks.abstraction")
arrays = load_worker("transfer.arrays")
flax_modules = load_worker("frameworks.flax_modules")
pickling = load_worker("transfer.pickling")


class Recorder:
    """Stores the arguments of calls of `recorded` functions."""

    def __init__(self):
        self.on = False
        self.calls = []

    def note(self, function, args, kwargs):
        context = pure_functions.capture(args, kwargs)
        unbound = flax_modules.Unbinder().unbound
        given = abstraction.mapped((args, kwargs), flax_modules.is_module, unbound)
        leaves, structure = jax.tree_util.tree_flatten((*given, context))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (jax.Array, np.ndarray))]

        about = {i: (leaves[i].aval.weak_type, kind_of_key(leaves[i])) for i in places}
        plain = [
            leaves[i] if about[i][1] is None else jax.random.key_data(leaves[i]) for i in places
        ]

        def take(arrays):
            filled = list(leaves)
            for place, array in zip(places, arrays, strict=True):
                filled[place] = (np.asarray(array), *about[place])
            self.calls.append((structure, filled, places))

        jax.debug.callback(take, plain)


def case(structure, leaves, places):
    """Return a stored call, with arrays of JAX, which a callback must not make."""
    for place in places:
        data, weak, key = leaves[place]
        leaves[place] = arrays.wrapped_key(data, key) if key else arrays.jax_array(data, weak)
    args, kwargs, context = jax.tree_util.tree_unflatten(structure, leaves)
    return {"args": args, "kwargs": kwargs, "context": context}


def kind_of_key(array):
    return arrays.key_implementation(array) if arrays.is_key(array) else None


RECORDER = Recorder()


def recorded(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if RECORDER.on and not is_rehearsal():
            RECORDER.note(function, args, kwargs)
        return function(*args, **kwargs)

    return wrapper


def is_rehearsal():
    """Return whether Flax runs the body of a scan that must not have effects yet."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "body_fn" and frame.f_locals.get("init_mode") is True:
            return True
        frame = frame.f_back
    return False


def record(folder, program, *args):
    """Run a program and return its recorded cases, saved to files and loaded again."""
    RECORDER.calls.clear()
    RECORDER.on = True
    try:
        jax.block_until_ready(program(*args))
        jax.effects_barrier()
    finally:
        RECORDER.on = False
    for i, call in enumerate(RECORDER.calls):
        pickling.save(case(*call), folder / f"{i}.pkl")
    return [pickling.load(folder / f"{i}.pkl") for i in range(len(RECORDER.calls))]


def leaves_of(args, kwargs):
    leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (jax.Array, np.ndarray))]

    def join(arrays):
        filled = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            filled[place] = array
        return jax.tree_util.tree_unflatten(structure, filled)

    return [leaves[i] for i in places], join


def evaluate(prepared):
    """Return the result."""
    return prepared.function(*prepared.args, **prepared.kwargs)


def exercise(prepared):
    """Return the result; check that jit does not change it and that it is differentiable."""
    arrays, join = leaves_of(prepared.args, prepared.kwargs)

    def call(arrays):
        args, kwargs = join(arrays)
        return prepared.function(*args, **kwargs)

    def inexact(arrays):
        return [
            x
            for x in jax.tree_util.tree_leaves(call(arrays))
            if jnp.issubdtype(x.dtype, jnp.inexact)
        ]

    result = evaluate(prepared)
    jax.tree_util.tree_map(
        functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6),
        jax.jit(call)(arrays),
        result,
    )
    places = [i for i, x in enumerate(arrays) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def of_inexact(some):
        filled = list(arrays)
        for place, array in zip(places, some, strict=True):
            filled[place] = array
        return inexact(filled)

    outputs, pull = jax.vjp(of_inexact, [jnp.asarray(arrays[i]) for i in places])
    pull([jnp.ones_like(output) for output in outputs])
    return result


def case_of(*args, context=None, **kwargs):
    return {"args": args, "kwargs": kwargs, "context": context}


def made(unit, *args, **kwargs):
    """Return a generated case, with the context that the unit's error message asks for."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        unit(*args, **kwargs)
    context = pure_functions.context_from_error(caught.value)
    assert context is not None, caught.value
    return case_of(*args, context=context, **kwargs)


def plain(x, flag=False):
    return jnp.sin(x) if flag else x * 2


TRANSFORMS = {
    "plainly": lambda f: f,
    "jit": jax.jit,
    "grad": jax.grad,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "scan": lambda f: lambda v, x: jax.lax.scan(lambda c, _: (c, f(v, x)), 0.0, None, length=2),
}
