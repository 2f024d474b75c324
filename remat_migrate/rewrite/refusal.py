"""Refusals: why a rewrite is not made."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from ..analysis import Module


@dataclass
class Refused(Exception):
    """A rewrite would change the meaning, or the tool cannot rule that out.

    Attributes:
        reason: what prevents it, and what to write instead.
        module: the module of `node`; None for no particular place.
        node: the place that shows the reason.
        label: what that place shows, in a few words.
    """

    reason: str
    module: Module | None = None
    node: ast.AST | None = None
    label: str = "this prevents it"


def check_own(module: Module, node: ast.AST, what: str = "it") -> None:
    """Raise Refused if a node is in an installed package."""
    if not module.is_own:
        raise Refused(f"{what} is in an installed package", module, node)


def check_editable(module: Module, nodes: Iterable[ast.AST]) -> None:
    """Raise Refused if a node is in an f-string, whose parts have no positions before 3.12."""
    for node in nodes:
        if any(isinstance(around, ast.JoinedStr) for around in module.ancestors(node)):
            raise Refused("it is inside an f-string: move it out first", module, node)
