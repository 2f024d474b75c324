"""What stands for a JAX array where JAX must not be called, or before there is one.

A host callback of a running program must not compute with JAX: on a machine with few cores the two
wait for each other for ever.
"""

from __future__ import annotations

from typing import Any, Optional


class JaxBits:
    """The bits of a JAX array and what they do not say; writing it to a file writes the JAX array.

    Attributes:
        array: the bits; for a typed random key those of its data.
        weak: whether the JAX array has the weak type of a Python number.
        key: the name of the generator if it is a typed random key, else None.
    """

    __slots__ = ("array", "key", "weak")

    def __init__(self, array: Any, weak: bool = False, key: Optional[str] = None) -> None:
        self.array = array
        self.weak = weak
        self.key = key


class Slot:
    """What stands for a traced value until the program runs; None: a value that is not staged."""

    __slots__ = ("number",)

    def __init__(self, number: Optional[int]) -> None:
        self.number = number
