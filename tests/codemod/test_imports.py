"""Names of a `from` import that are imported from another module; imports left without a use."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.codemod.changes import MoveNames, Remove
from remat_migrate.codemod.writer import write
from remat_migrate.text import SourceFile, apply_edits


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("from a.b import x\n", "x", "from c import x\n"),
        ("from . import x\n", "x", "from c import x\n"),
        ("from ..b import (x, y as z)\n", "xy", "from c import (x, y as z)\n"),
        ("from a import x, y, z\n", "y", "from c import y\nfrom a import x, z\n"),
        ("from a import x, y, z\n", "xz", "from c import x, z\nfrom a import y\n"),
        ("from a import (x, y, z)\n", "z", "from c import z\nfrom a import (x, y)\n"),
        ("from a import (\n    x, y,\n    z,\n)\n", "y",
         "from c import y\nfrom a import (\n    x,\n    z,\n)\n"),
        ("from a import (  # head\n    x,\n    y\n)\n", "y",
         "from c import y\nfrom a import (  # head\n    x\n)\n"),
        ("from a import (\n    x,  # one\n    y,  # two\n    z,\n)\n", "xy",
         "# one\n# two\nfrom c import x, y\nfrom a import (\n    z,\n)\n"),
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


def test_an_import_stays_only_for_those_who_take_its_uses_away() -> None:
    """One fix knows that no other file uses the import; the other does not."""
    text = "from functools import partial\n\n\n@partial(g)\ndef f(): ...\n\n\nx = h(1, False)\n"
    source = SourceFile(Path("/m.py"), text)
    file = File(source, source.parse())
    _, function, assign = file.tree.body
    taken = Remove(file, function.decorator_list[0], lambda name: False)
    after = apply_edits(text, sorted(write([taken, Remove(file, assign.value.args[1])])))
    assert after == "def f(): ...\n\n\nx = h(1)\n"
