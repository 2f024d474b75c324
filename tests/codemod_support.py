"""Files that a test gives as text, for Changes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from remat_migrate.text import SourceFile


@dataclass(frozen=True, eq=False)
class File:
    """A parsed file, as Changes want it."""

    source: SourceFile
    tree: ast.Module
