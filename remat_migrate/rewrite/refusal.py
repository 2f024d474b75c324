"""Why a rewriting is not done."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from ..analysis import Module


@dataclass
class Refused(Exception):
    """A rewriting would not keep the meaning, or the tool cannot tell.

    Attributes:
        reason: what stands in the way and what to write instead.
        module: where; None for nowhere in particular.
        node: the place that shows it.
        label: what that place shows, in a few words.
    """

    reason: str
    module: Module | None = None
    node: ast.AST | None = None
    label: str = "this stands in the way"


def check_editable(module: Module, nodes: Iterable[ast.AST]) -> None:
    """Insist that nodes can be edited where they stand.

    Raises:
        Refused: one stands in an f-string. There is no telling where its parts are before Python
            3.12, and what quotes it may have.
    """
    for node in nodes:
        if any(isinstance(around, ast.JoinedStr) for around in module.ancestors(node)):
            raise Refused("it stands inside an f-string: take it out of it first", module, node)
