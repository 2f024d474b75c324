"""The Changes that a fix consists of, and what can be removed together."""

from ..codemod.changes import (
    Change,
    Code,
    Insert,
    Keep,
    KeepSuite,
    MoveNames,
    NameArgument,
    Remove,
    Rename,
    Replace,
    Rewrite,
    SetComment,
    Spread,
)
from ..codemod.tree.reductions import Reduction, is_pure
from ..codemod.tree.removal import plan_removals
from ..rewrite import Refused
