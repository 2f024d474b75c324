"""Placeholders for JAX arrays where JAX must not be called, or before the array exists.

A host callback of a running program must not compute with JAX: on a machine with few cores the two
deadlock.
"""

from __future__ import annotations

from typing import Any, Optional


class HostArray:
    """The contents of a JAX array on the host; unpickling it gives the JAX array.

    Attributes:
        array: the contents as a numpy array; for a typed random key, its key data.
        weak: whether the JAX array is weakly typed.
        key: the name of the generator if it is a typed random key, else None.
    """

    __slots__ = ("array", "key", "weak")

    def __init__(self, array: Any, weak: bool = False, key: Optional[str] = None) -> None:
        self.array = array
        self.weak = weak
        self.key = key


class Slot:
    """Stands for a traced value until the program runs; None: a value that is not staged."""

    __slots__ = ("number",)

    def __init__(self, number: Optional[int]) -> None:
        self.number = number
