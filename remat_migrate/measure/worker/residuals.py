"""What a forward pass keeps for the backward pass: values with bytes, name and source line."""

from __future__ import annotations

import re
from typing import Any, List, NamedTuple, Optional, Tuple

import jax

from .entry import NONE, Entry
from .internals import internals
from .liveness import size

_SOURCE = re.compile(r"^(?P<what>.*?) from (?P<path>.+?):(?P<line>\d+)(?::\d+)?(?: \(.*\))?$")
_NAMED = re.compile(r"^named '(?P<name>.*)'$")


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
    """All that is kept, as `jax.ad_checkpoint.print_saved_residuals` lists it."""
    found = internals().saved_residuals(entry.loss, *entry.shapes)
    return [_residual(aval, source) for aval, source in found]


def _residual(aval: Any, source: str) -> Residual:
    shape = "%s[%s]" % (
        getattr(aval, "dtype", aval),
        ",".join(map(str, getattr(aval, "shape", ()))),
    )
    match = _SOURCE.match(source)
    if match is None or not match.group("line"):
        return Residual(shape, size(aval), source, "", "", 0)
    what = match.group("what")
    named = _NAMED.match(what)
    return Residual(
        shape,
        size(aval),
        what,
        named.group("name") if named else "",
        match.group("path"),
        int(match.group("line")),
    )


def kept(entry: Entry) -> List[Any]:
    """The shapes of what is kept besides arguments and constants."""
    jaxpr, shape = jax.make_jaxpr(entry.pulled_back, return_shape=True)(*entry.shapes)
    return _held(jaxpr, shape[0], shape[1])


def _held(jaxpr: Any, given: Any, held: Any) -> List[Any]:
    """Those of a jaxpr's outputs that are held: first come those that are given."""
    opened = internals().opened(jaxpr)
    before = len(jax.tree_util.tree_leaves(given))
    count = len(jax.tree_util.tree_leaves(held))
    passed = set(opened.invars) | set(opened.constvars)
    found = {
        atom: atom.aval
        for atom in opened.outvars[before : before + count]
        if not internals().is_literal(atom) and atom not in passed
    }
    return list(found.values())


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
    found = _held(jaxpr, given, held)
    return internals().dead_code_removed(jaxpr, outputs), sum(map(size, found))
