"""Imports that are added, also beside another statement."""

from __future__ import annotations

from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.codemod.changes import AddImport
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
