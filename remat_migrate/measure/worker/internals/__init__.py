"""The private APIs of JAX that measuring needs: one module per family of versions.

Each module has a class `Internals`, which overrides what changed since the older family. No other
module depends on the version of JAX or imports its private modules.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import TYPE_CHECKING, Tuple, Type

import jax

if TYPE_CHECKING:
    from .jax_0_4 import Internals

# The first version of each family and its module, newest first.
FAMILIES: Tuple[Tuple[Tuple[int, ...], str], ...] = (
    ((0, 10), "jax_0_10"),
    ((0, 7), "jax_0_7"),
    ((0, 4, 30), "jax_0_4"),
)


class Unsupported(Exception):
    """This version of JAX is too old, or lacks a private function."""


def family_of(version: str) -> str:
    """Return the module for a version of JAX, such as `0.4.30.dev1`.

    Raises:
        Unsupported: the version is too old.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    for first, module in FAMILIES:
        if numbers >= first:
            return module
    oldest = ".".join(map(str, FAMILIES[-1][0]))
    raise Unsupported("measuring needs jax %s or newer, this is %s" % (oldest, version))


@functools.lru_cache(maxsize=None)
def internals() -> Internals:
    """Return the private APIs of the installed JAX.

    Raises:
        Unsupported: it is too old, or lacks a private function, which the message names.
    """
    module = importlib.import_module(__name__ + "." + family_of(jax.__version__))
    family: Type[Internals] = module.Internals
    if missing := family.missing():
        raise Unsupported(
            "jax %s has no %s, which measuring needs" % (jax.__version__, ", ".join(missing))
        )
    return family()
