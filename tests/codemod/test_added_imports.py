"""Imports that join others: a name of a `from` import, a statement beside another."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.codemod.changes import AddImport, ImportName, Remove
from remat_migrate.codemod.writer import write
from remat_migrate.text import SourceFile, apply_edits


def opened(text: str) -> File:
    """A file of Python code."""
    source = SourceFile(Path("/project/module.py"), text)
    return File(source, source.parse())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "from flax import linen\nimport jax.numpy\n",
            "from flax import linen\nimport jax\nfrom jax.ad import name\nimport jax.numpy\n",
        ),
        ("import os\n\nx = 1\n", "import os\n\nimport jax\nfrom jax.ad import name\n\nx = 1\n"),
    ],
)
def test_several_at_one_place(text: str, expected: str) -> None:
    file = opened(text)
    added = ("from jax.ad import name", "import jax", "import jax")
    assert apply_edits(text, write([AddImport(file, file.tree, one) for one in added])) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "from functools import (cache, wraps)\n",
            "from functools import (cache, partial, wraps)\n",
        ),
        (
            "from functools import (\n    wraps,\n)\n",
            "from functools import (\n    partial,\n    wraps,\n)\n",
        ),
    ],
)
def test_a_name_joins_those_that_are_imported(text: str, expected: str) -> None:
    file = opened(text)
    [statement] = file.tree.body
    assert apply_edits(text, write([ImportName(file, statement, "partial")])) == expected


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("try:\n    from functools import partial\nexcept E:\n    pass\n", ["a"], None),
    ],
)
def test_a_name_takes_the_place_of_those_that_go(
    text: str, names: list[str], expected: str | None
) -> None:
    file = opened(text)
    statement = next(node for node in ast.walk(file.tree) if isinstance(node, ast.ImportFrom))
    changes = [
        *(Remove(file, alias, lambda name: False) for alias in statement.names),
        *(ImportName(file, statement, name) for name in names),
    ]
    after = apply_edits(text, write(changes))
    assert after == (text.replace("partial", "a") if expected is None else expected)
