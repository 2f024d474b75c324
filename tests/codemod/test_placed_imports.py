"""Where a new import goes, and names that move to another module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from remat_migrate.codemod.added_imports import insert_import
from remat_migrate.text import SourceFile, apply_edits


def laid_out(text: str) -> tuple[SourceFile, ast.Module]:
    source = SourceFile(Path("/m.py"), text)
    return source, source.parse()


def with_import(text: str, statement: str, before: int | None = None) -> str:
    source, tree = laid_out(text)
    limit = tree.body[before] if before is not None else None
    after = apply_edits(text, [insert_import(source, tree, statement, before=limit)])
    names = [ast.unparse(node) for node in ast.parse(after).body]
    old = [ast.unparse(node) for node in tree.body]
    added = [name for name in names if name not in old]
    assert added == [statement]
    assert [name for name in names if name in old] == old
    return after


PLACES = [
    ('"""Doc."""\nx = 1\n', "import jax", '"""Doc."""\n\nimport jax\n\nx = 1\n'),
    ('"""Doc."""', "import jax", '"""Doc."""\n\nimport jax'),
    ("# A licence.\nx = 1\n", "import jax", "# A licence.\nimport jax\n\nx = 1\n"),
    (
        "# A licence.\n\n# The step.\n@jit\ndef f(): pass\n",
        "import jax",
        "# A licence.\n\nimport jax\n\n\n# The step.\n@jit\ndef f(): pass\n",
    ),
    ("", "import jax", "import jax\n"),
    (
        "import flax; import numpy\nx = 1\n",
        "import jax",
        "import flax; import numpy\nimport jax\nx = 1\n",
    ),
    ("import flax; x = '''\n\n'''\n", "import jax", "import flax; x = '''\n\n'''\nimport jax\n"),
    (
        "import numpy\r\nimport jax.numpy\r\nimport flax\r\n",
        "import optax",
        "import numpy\r\nimport jax.numpy\r\nimport flax\r\nimport optax\r\n",
    ),
    ("import flax", "import jax", "import flax\nimport jax"),
]


@pytest.mark.parametrize(("text", "statement", "expected"), PLACES)
def test_where_an_import_goes(text: str, statement: str, expected: str) -> None:
    assert with_import(text, statement) == expected
