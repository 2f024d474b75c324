"""The forward and the backward computation of a function, as jaxprs to be read."""

from __future__ import annotations

from typing import NamedTuple

import jax

from ..entry import NONE, Entry, Unfit


class Pictures(NamedTuple):
    """Two jaxprs as text: what the forward pass computes and keeps, and the backward pass.

    The outputs of the first after the value are what is kept; they are the inputs of the second,
    before the cotangent.
    """

    forward: str
    backward: str


def pictures(entry: Entry) -> Pictures:
    """Both, from shapes alone.

    Raises:
        Unfit: it takes gradients itself.
    """
    if entry.how.by == NONE:
        raise Unfit("it takes gradients itself: name the loss to see its two passes")
    forward, shape = jax.make_jaxpr(entry.pulled_back, return_shape=True)(*entry.shapes)
    value, pull_back = shape[0], shape[1]
    backward = jax.make_jaxpr(lambda pull, cotangent: pull(cotangent))(pull_back, value)
    return Pictures(_text(forward), _text(backward))


def _text(jaxpr: object) -> str:
    pretty = getattr(jaxpr, "pretty_print", None)
    return str(pretty(use_color=False) if pretty is not None else jaxpr)
