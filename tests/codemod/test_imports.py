"""Names of a `from` import that are imported from another module; imports left without a use."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.codemod.changes import MoveNames
from remat_migrate.codemod.writer import write
from remat_migrate.text import SourceFile, apply_edits


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("from a import (\n    x, y,\n    z,\n)\n", "y",
         "from c import y\nfrom a import (\n    x,\n    z,\n)\n"),
        ("def f():\n    from a import x, y; g()\n", "x",
         "def f():\n    from c import x\n    from a import y\n    g()\n"),
        ("if q: from a import (\n    x,  # one\n    y,\n)\n", "x",
         "if q:\n    # one\n    from c import x\n    from a import (\n        y,\n    )\n"),
    ],
)  # fmt: skip
def test_names_that_move(text: str, names: str, expected: str) -> None:
    source = SourceFile(Path("/m.py"), text)
    file = File(source, source.parse())
    statement = next(node for node in ast.walk(file.tree) if isinstance(node, ast.ImportFrom))
    moved = tuple(alias for alias in statement.names if alias.name in names)
    after = apply_edits(text, write([MoveNames(file, statement, moved, "c")]))
    ast.parse(after)
    assert after == expected
