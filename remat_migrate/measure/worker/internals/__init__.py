"""The private interfaces of JAX that measuring needs: one module per family of versions.

Each has a class `Internals`, a subclass of the older family's that differs in what changed. Nothing
else here knows of versions or imports private modules of JAX.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import TYPE_CHECKING, Tuple, Type

import jax

if TYPE_CHECKING:
    from .jax_0_4 import Internals

# The first version of each family, newest first, and its module.
FAMILIES: Tuple[Tuple[Tuple[int, ...], str], ...] = (
    ((0, 10), "jax_0_10"),
    ((0, 7), "jax_0_7"),
    ((0, 4, 30), "jax_0_4"),
)


class Unsupported(Exception):
    """This JAX is older than all families, or lacks a function of its family."""


def family_of(version: str) -> str:
    """The module for a version of JAX, such as `0.4.30.dev1`.

    Raises:
        Unsupported: it is older than all of them.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    for first, module in FAMILIES:
        if numbers >= first:
            return module
    oldest = ".".join(map(str, FAMILIES[-1][0]))
    raise Unsupported("measuring needs jax %s or newer, this is %s" % (oldest, version))


@functools.lru_cache(maxsize=None)
def internals() -> Internals:
    """The interfaces of the JAX that runs.

    Raises:
        Unsupported: it is too old, or lacks a function; the message says which.
    """
    module = importlib.import_module(__name__ + "." + family_of(jax.__version__))
    family: Type[Internals] = module.Internals
    if missing := family.missing():
        raise Unsupported(
            "jax %s has no %s, which measuring needs" % (jax.__version__, ", ".join(missing))
        )
    return family()
