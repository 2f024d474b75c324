"""Why a rewriting is not done."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..model import Module


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
