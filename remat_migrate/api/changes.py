"""The Changes that a fix consists of."""

from ..codemod.changes import (
    AddImport,
    Change,
    Code,
    Insert,
    Keep,
    MoveNames,
    NameArgument,
    Remove,
    Rename,
    Replace,
    ReplaceStatement,
    Rewrite,
    SetComment,
    Spread,
)
from ..rewrite import Refused
