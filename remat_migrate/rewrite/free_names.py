"""Names that are free in a whole file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection

from ..analysis import Module


def words_in(module: Module) -> set[str]:
    """Return all words of a file: a name that is none of them is neither seen nor hidden."""
    return set(re.findall(r"\w+", module.source.text))


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Return `wanted`, with a number if it is taken."""
    names = (wanted if i == 1 else f"{wanted}_{i}" for i in itertools.count(1))
    return next(name for name in names if name not in taken)
