"""What a forward pass keeps for the backward pass: values with bytes, name and source line."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

import jax

from ..entry import NONE, Entry, Unfit
from ..internals import internals
from .liveness import size


class Residual(NamedTuple):
    """A value that is kept.

    Attributes:
        shape: shape and dtype, as `float32[8,512]`.
        bytes: its size.
        what: what it is, such as `output of sin` or `from the argument params['w']`.
        name: the name that `checkpoint_name` gives it, or nothing.
        path: the file of the line that computes it; nothing for arguments and constants.
        line: the line, or 0.
    """

    shape: str
    bytes: int
    what: str
    name: str
    path: str
    line: int


def residuals(entry: Entry) -> List[Residual]:
    """All that is kept: constants and arguments first, then values in the order of their making.

    It is what `jax.ad_checkpoint.print_saved_residuals` lists, but only what is differentiated
    counts, what jitted functions make has the lines of its operations, and a name shows in those
    versions, too, that round a named value to its own precision and keep that.

    Raises:
        Unfit: the function takes gradients itself.
    """
    if entry.how.by == NONE:
        raise Unfit("it takes gradients itself: name the loss to see what it keeps")
    jaxpr, shape = jax.make_jaxpr(entry.pulled_back, return_shape=True)(*entry.shapes)
    opened = internals().opened(jaxpr)
    held = set(_held(opened, shape[0], shape[1]))
    given = [(variable, "from a constant") for variable in opened.constvars]
    given += [
        (variable, "from the argument " + name)
        for variable, name in zip(opened.invars, entry.names())
    ]
    found = [
        Residual(_text(variable.aval), size(variable.aval), what, "", "", 0)
        for variable, what in given
        if variable in held
    ]
    for equation in opened.eqns:
        for place, variable in enumerate(equation.outvars):
            if variable in held:
                found.append(_made(variable.aval, _maker(opened, equation, place)))
    return found


def _made(aval: Any, equation: Any) -> Residual:
    """A value that an operation computes."""
    what, name = "output of " + internals().name(equation), ""
    if internals().name(equation) == "name":
        name = internals().label(equation)
        what = "named '%s'" % name
    path, _, line = next(internals().places(equation), ("", "", 0))
    return Residual(_text(aval), size(aval), what, name, path, line)


def _maker(jaxpr: Any, equation: Any, place: int) -> Any:
    """The operation that computes an output of an equation, inside jitted functions, too."""
    atom = equation.outvars[place]
    if internals().is_inlined_call(equation):
        inner = internals().opened(internals().inner(equation)[1][0])
        atom, jaxpr = inner.outvars[place], inner
    elif _rounds_to_itself(equation):
        atom = equation.invars[0]
    else:
        return equation
    for maker in jaxpr.eqns:
        if not internals().is_literal(atom) and atom in maker.outvars:
            return _maker(jaxpr, maker, maker.outvars.index(atom))
    return equation


def _rounds_to_itself(equation: Any) -> bool:
    """Whether this is the rounding that JAX puts after what a checkpoint keeps."""
    if internals().name(equation) != "reduce_precision":
        return False
    limits: Any = jax.numpy.finfo
    own = limits(equation.invars[0].aval.dtype).nmant
    return bool(equation.params["mantissa_bits"] == own)


def _text(aval: Any) -> str:
    return "%s[%s]" % (
        getattr(aval, "dtype", aval),
        ",".join(map(str, getattr(aval, "shape", ()))),
    )


def kept(entry: Entry) -> List[Any]:
    """The shapes of what is kept besides arguments and constants."""
    jaxpr, shape = jax.make_jaxpr(entry.pulled_back, return_shape=True)(*entry.shapes)
    return _kept(jaxpr, shape[0], shape[1])


def _held(jaxpr: Any, given: Any, held: Any) -> List[Any]:
    """The variables among a jaxpr's outputs that are held: first come those that are given."""
    before = len(jax.tree_util.tree_leaves(given))
    count = len(jax.tree_util.tree_leaves(held))
    outputs = internals().opened(jaxpr).outvars[before : before + count]
    return list(dict.fromkeys(atom for atom in outputs if not internals().is_literal(atom)))


def _kept(jaxpr: Any, given: Any, held: Any) -> List[Any]:
    """The shapes of those that are neither arguments nor constants."""
    opened = internals().opened(jaxpr)
    passed = set(opened.invars) | set(opened.constvars)
    return [atom.aval for atom in _held(jaxpr, given, held) if atom not in passed]


def kept_bytes(entry: Entry) -> int:
    """Their bytes."""
    return sum(map(size, kept(entry)))


def gradient_and_kept_bytes(entry: Entry) -> Tuple[Any, Optional[int]]:
    """What the gradient computes, as `Entry.gradient_jaxpr` gives it, and `kept_bytes`.

    Both come from one trace where all is compiled as one. A function that takes gradients itself
    keeps nothing.
    """
    if entry.how.by == NONE:
        return entry.gradient_jaxpr(), None
    if not entry.how.jit:
        # What nothing uses stays here, but not what only leads to the kept values.
        return entry.gradient_jaxpr(), kept_bytes(entry)
    jaxpr, (given, held) = jax.make_jaxpr(entry.with_kept, return_shape=True)(*entry.shapes)
    outputs = len(jax.tree_util.tree_leaves(given))
    found = _kept(jaxpr, given, held)
    return internals().dead_code_removed(jaxpr, outputs), sum(map(size, found))
