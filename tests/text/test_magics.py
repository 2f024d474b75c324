"""The lines of a cell as Python: which are escaped, and which are unchanged."""

from __future__ import annotations

import ast

import pytest

from remat_migrate.text.escapes import MARK as M
from remat_migrate.text.escapes import lines_of, original, original_column
from remat_migrate.text.magics import cell_as_python


def view_of(cell: str) -> str:
    """Return the view of one cell; check that it parses and converts back, line by line."""
    view = cell_as_python(cell)
    ast.parse(view)
    assert len(lines_of(view)) == len(lines_of(cell))
    assert "".join(original(line) for line in lines_of(view)) == cell
    return view


@pytest.mark.parametrize(
    ("cell", "view"),
    [
        ("!pip install jax \\\n  flax\nx = 1", f"#{M}=!pip install jax \\\n#{M}=  flax\nx = 1"),
        ("  \n%cd /tmp", f"  \n#{M}=%cd /tmp"),
        ("%%time\nx = 1", f"#{M}=%%time\nx = 1"),
        ("%%capture out\n%%time\n!ls\nx = 1", f"#{M}=%%capture out\n#{M}=%%time\n#{M}=!ls\nx = 1"),
        ("y = %px f(x)", f"y = get_ipython(f)  #{M}+%px f(x)"),
    ],
)
def test_magics(cell, view):
    assert view_of(cell) == view


@pytest.mark.parametrize(
    "cell",
    [
        "%%bash\nls",
        "%%writefile a.py\nimport jax",
    ],
)
def test_invalid_python_is_escaped_as_a_whole(cell):
    assert all(line.startswith(f"#{M}=") for line in lines_of(view_of(cell)))


@pytest.mark.parametrize(
    ("cell", "shown", "there"),
    [
        ("names = !ls", "names", "names"),
        ("%timeit -n 3 f(x)", "-n", "-n"),
    ],
)
def test_columns(cell, shown, there):
    cell = f"if 1:\n{cell}" if cell[0] == " " else cell
    line = lines_of(view_of(cell))[-1]
    assert original_column(line, line.index(shown)) == lines_of(cell)[-1].index(there)
