"""The lines of a cell as Python: which are escaped, and which are unchanged."""

from __future__ import annotations

import ast

import pytest

from remat_migrate.text.escapes import lines_of, original, original_column
from remat_migrate.text.magics import cell_as_python

M = "\ue0a0"


def view_of(cell: str) -> str:
    """Return the view of one cell; check that it parses and converts back, line by line."""
    view = cell_as_python(cell, M)
    ast.parse(view)
    assert len(lines_of(view)) == len(lines_of(cell))
    assert "".join(original(M, line) for line in lines_of(view)) == cell
    return view


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "\n \n",
        "x = 1",
        'text = """\n%d\n!ls\n"""\n',
        "a = (4\n  % b)",
        "a = 4 \\\n  % b",
        "y = await f(x)",
        "# %matplotlib inline",
        "x = 'a' # what?",
    ],
)
def test_python_is_unchanged(cell):
    assert cell_as_python(cell, M) == cell


@pytest.mark.parametrize(
    ("cell", "view"),
    [
        ("%matplotlib inline\nx = 1", f"#{M}=%matplotlib inline\nx = 1"),
        ("!pip install jax \\\n  flax\nx = 1", f"#{M}=!pip install jax \\\n#{M}=  flax\nx = 1"),
        ("pip install jax\nx = 1", f"#{M}=pip install jax\nx = 1"),
        ("jax.jit?\nx = 1", f"#{M}=jax.jit?\nx = 1"),
        ("?jax.jit", f"#{M}=?jax.jit"),
        ("jax.jit??\r\nx = 1\r\n", f"#{M}=jax.jit??\r\nx = 1\r\n"),
        ("if x:\n  !ls\n", f"if x:\n  pass  #{M}+!ls\n"),
        ("names = !ls *.npz", f"names = get_ipython()  #{M}+!ls *.npz"),
        ("  \n%cd /tmp", f"  \n#{M}=%cd /tmp"),
        ("%%time\nx = 1", f"#{M}=%%time\nx = 1"),
        ("%%capture out\n%%time\n!ls\nx = 1", f"#{M}=%%capture out\n#{M}=%%time\n#{M}=!ls\nx = 1"),
        ("%timeit -n 10 f(x)", f"get_ipython(f)  #{M}+%timeit -n 10 f(x)"),
        ("for i in y:\n  %time g(i)", f"for i in y:\n  get_ipython(g)  #{M}+%time g(i)"),
        ('x = """\n%d\n"""\n%ls', f'x = """\n#{M}=%d\n"""\n#{M}=%ls'),
        ("x = ('%s'\n% (w))\n%ls", f"x = ('%s'\n% (w))\n#{M}=%ls"),
        # Escaped calls still use their function.
        ("%lprun -f f f(x)", f"get_ipython(f)  #{M}+%lprun -f f f(x)"),
        ("print 'a', f(x)", f"get_ipython(f)  #{M}+print 'a', f(x)"),
        ("!f(x)", f"#{M}=!f(x)"),
        ("y = %px f(x)", f"y = get_ipython(f)  #{M}+%px f(x)"),
    ],
)
def test_magics(cell, view):
    assert view_of(cell) == view


@pytest.mark.parametrize(
    "cell",
    [
        "%%bash\nls",
        "#@title Setup\n%%bash\nif [ -d x ]; then ls; fi",
        "%%writefile a.py\nimport jax",
        "print 'x'",
        "Compile the model:\n\n  f",
        "x = 1 \\",
        "@jax.checkpoint",
        "  x = 1\n  y = 2",
    ],
)
def test_invalid_python_is_escaped_as_a_whole(cell):
    assert all(line.startswith(f"#{M}=") for line in lines_of(view_of(cell)))


@pytest.mark.parametrize(
    ("cell", "shown", "there"),
    [
        ("  %timeit f(x)", "f(x", "f(x"),
        ("names = !ls", "names", "names"),
        ("%timeit -n 3 f(x)", "-n", "-n"),
    ],
)
def test_columns(cell, shown, there):
    cell = f"if 1:\n{cell}" if cell[0] == " " else cell
    line = lines_of(view_of(cell))[-1]
    assert original_column(M, line, line.index(shown)) == lines_of(cell)[-1].index(there)
