"""A need: a place where Python must know the value of a parameter."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from .module import Module


@dataclass(frozen=True, slots=True)
class Need:
    """A place where Python must know the value of a parameter.

    Attributes:
        parameter: its name.
        index: the position in `*args` or the key in `**kwargs`.
        module: where.
        node: the expression that must have a value.
        reason: what for.
        certain: False when the value only goes somewhere that may need it.
        unseen: whether that is code that cannot be seen.
        identity: whether it is asked what kind of value it is (`isinstance`): a tracer is another.
        beside: further parameters without whose being Python values there is no need.
        traced: see Dependence.
    """

    parameter: str
    index: int | str | None
    module: Module
    node: ast.expr
    reason: str
    certain: bool = True
    unseen: bool = False
    identity: bool = False
    beside: frozenset[str] = frozenset()
    traced: frozenset[tuple[Module, ast.expr]] = frozenset()


@dataclass(frozen=True, slots=True)
class Learned:
    """A need that running the code showed.

    Attributes:
        path: the file of the function.
        function: its qualified name, with those of the functions around it.
        parameter: the parameter whose value Python needed.
    """

    path: Path
    function: str
    parameter: str
