"""Where a new import goes, and names that move to another module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from remat_migrate.codemod.added_imports import insert_import
from remat_migrate.text import SourceFile, apply_edits
from remat_migrate.text.tokens import Layout


def laid_out(text: str) -> tuple[Layout, ast.Module]:
    source = SourceFile(Path("/m.py"), text)
    return Layout(source), source.parse()


def with_import(text: str, statement: str, before: int | None = None) -> str:
    layout, tree = laid_out(text)
    limit = tree.body[before] if before is not None else None
    after = apply_edits(text, [insert_import(layout, tree, statement, before=limit)])
    names = [ast.unparse(node) for node in ast.parse(after).body]
    old = [ast.unparse(node) for node in tree.body]
    added = [name for name in names if name not in old]
    assert added == [statement]
    assert [name for name in names if name in old] == old
    return after


PLACES = [
    # Sorted in among its kind: `import` before `from`.
    ("import os\nimport sys\n", "import re", "import os\nimport re\nimport sys\n"),
    (
        "import os\nfrom re import match\n",
        "import sys",
        "import os\nimport sys\nfrom re import match\n",
    ),
    (
        "import jax\nfrom jax import lax\n",
        "from jax import checkpoint",
        "import jax\nfrom jax import checkpoint\nfrom jax import lax\n",
    ),
    ("from jax import lax\n", "import jax", "import jax\nfrom jax import lax\n"),
    (
        "import flax\nimport numpy as np\n",
        "import jax",
        "import flax\nimport jax\nimport numpy as np\n",
    ),
    # Some sort by name whatever the form.
    (
        "from flax import linen\nimport numpy\n",
        "import jax",
        "from flax import linen\nimport jax\nimport numpy\n",
    ),
    # Unsorted: after the last one that would come before it.
    (
        "import numpy\nimport jax.numpy\nimport flax\n",
        "import jax",
        "import numpy\nimport jax.numpy\nimport flax\nimport jax\n",
    ),
    (
        "import numpy\nimport haiku\nimport optax\nimport flax\n",
        "import jax",
        "import numpy\nimport haiku\nimport optax\nimport flax\nimport jax\n",
    ),
    # The standard library first, with a blank line between the kinds.
    (
        "import os\n\nimport jax\n",
        "from functools import partial",
        "import os\nfrom functools import partial\n\nimport jax\n",
    ),
    (
        "import jax\n",
        "from functools import partial",
        "from functools import partial\n\nimport jax\n",
    ),
    ("import os\n\nx = 1\n", "import jax", "import os\n\nimport jax\n\nx = 1\n"),
    (
        "import os\n\nimport jax\n\nfrom . import lib\n",
        "import flax",
        "import os\n\nimport flax\nimport jax\n\nfrom . import lib\n",
    ),
    (
        "import jax\n\nfrom mypkg import lib\n",
        "from jax import checkpoint",
        "import jax\nfrom jax import checkpoint\n\nfrom mypkg import lib\n",
    ),
    # Behind the docstring and `__future__`.
    ('"""Doc."""\n\nx = 1\n', "import jax", '"""Doc."""\n\nimport jax\n\nx = 1\n'),
    ('"""Doc."""\nx = 1\n', "import jax", '"""Doc."""\n\nimport jax\n\nx = 1\n'),
    ('"""Doc."""\n', "import jax", '"""Doc."""\n\nimport jax\n'),
    ('"""Doc."""', "import jax", '"""Doc."""\n\nimport jax'),
    (
        "from __future__ import annotations\n\nx = 1\n",
        "import jax",
        "from __future__ import annotations\n\nimport jax\n\nx = 1\n",
    ),
    (
        "from __future__ import annotations\nimport os\n",
        "import jax",
        "from __future__ import annotations\nimport os\n\nimport jax\n",
    ),
    # No imports at all.
    ("x = 1\n", "import jax", "import jax\n\nx = 1\n"),
    ("def f(): pass\n", "import jax", "import jax\n\n\ndef f(): pass\n"),
    (
        "#!/usr/bin/env python\n# A licence.\n\nx = 1\n",
        "import jax",
        "#!/usr/bin/env python\n# A licence.\n\nimport jax\n\nx = 1\n",
    ),
    ("# A licence.\nx = 1\n", "import jax", "# A licence.\nimport jax\n\nx = 1\n"),
    (
        "# A licence.\n\n# The step.\n@jit\ndef f(): pass\n",
        "import jax",
        "# A licence.\n\nimport jax\n\n\n# The step.\n@jit\ndef f(): pass\n",
    ),
    ("", "import jax", "import jax\n"),
    # Never into a block.
    (
        "try:\n    import flax\nexcept ImportError:\n    flax = None\n",
        "import jax",
        "import jax\n\ntry:\n    import flax\nexcept ImportError:\n    flax = None\n",
    ),
    (
        "import os\nif x:\n    import haiku\n",
        "import jax",
        "import os\n\nimport jax\nif x:\n    import haiku\n",
    ),
    # Comments stay with what they are about; imports over several lines and on one.
    (
        "# Arrays.\nimport numpy\n# Plots.\nimport plotly\n",
        "import pandas",
        "# Arrays.\nimport numpy\nimport pandas\n# Plots.\nimport plotly\n",
    ),
    (
        "from flax import (\n    linen,\n)\nfrom numpy import array\n",
        "from jax import lax",
        "from flax import (\n    linen,\n)\nfrom jax import lax\nfrom numpy import array\n",
    ),
    (
        "import flax; import numpy\nx = 1\n",
        "import jax",
        "import flax; import numpy\nimport jax\nx = 1\n",
    ),
    ("import flax; x = '''\n\n'''\n", "import jax", "import flax; x = '''\n\n'''\nimport jax\n"),
    # Imports far below do not count as the head of the file.
    (
        "import os\n\n\ndef f(): pass\n\n\nimport jax.numpy\n",
        "import jax",
        "import os\n\nimport jax\n\n\ndef f(): pass\n\n\nimport jax.numpy\n",
    ),
    (
        "import flax\r\nimport numpy\r\n",
        "import jax",
        "import flax\r\nimport jax\r\nimport numpy\r\n",
    ),
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


def test_an_import_runs_before_what_needs_it() -> None:
    text = "import os\nf = g\nimport numpy\n"
    assert with_import(text, "import jax") == "import os\nf = g\nimport jax\nimport numpy\n"
    expected = "import os\n\nimport jax\nf = g\nimport numpy\n"
    assert with_import(text, "import jax", before=1) == expected
