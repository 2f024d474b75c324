"""Notebooks through the whole tool: found, shown, fixed, undone; all but the fix as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
from support import cli, read_files, write_files

ONLY = ("--select", "RMT101")
IMPORTS = "import jax\nimport jax.numpy as jnp\n"
BLOCK = """\
@jax.checkpoint
def block(x):
  return jnp.sin(x)

def layer(x, flag):
  if flag:
    return jnp.sin(x)
  return x

layer = jax.checkpoint(layer, concrete=True)
"""
USE = """\
%matplotlib inline
out = jax.grad(lambda x: 2 * layer(x, flag=True))(1.0)  # é
layer(2.0, flag=False)"""


def jupyter(*cells: str) -> str:
    """A notebook as Jupyter writes it, the first cell prose."""
    found = [nbformat.v4.new_markdown_cell("# jax.checkpoint(f, concrete=True)")]
    for cell in cells:
        found.append(nbformat.v4.new_code_cell(cell))
        found[-1]["outputs"] = [nbformat.v4.new_output("stream", text="jax.remat concrete=True")]
    return nbformat.writes(nbformat.v4.new_notebook(cells=found)) + "\n"


def test_fixed_across_cells_and_undone(tmp_path: Path) -> None:
    before = jupyter(IMPORTS.strip(), BLOCK.strip(), USE)
    write_files(tmp_path, {"pyproject.toml": "", "a.ipynb": before})
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    files = read_files(tmp_path)
    diff = cli(tmp_path, "--diff", *ONLY)
    ran = cli(tmp_path, "--fix", *ONLY)
    assert (ran.code, "Fixed 1" in ran.out) == (0, True)
    after = read_files(tmp_path)["a.ipynb"].decode()
    assert changed_lines(before, after) == [
        "layer = jax.checkpoint(layer, static_argnums=(1,))",
        "out = jax.grad(lambda x: 2 * layer(x, True))(1.0)  # é",
        "layer(2.0, False)",
    ]
    nbformat.validate(nbformat.reads(after, 4))
    assert cli(tmp_path, "undo").code == 0
    assert read_files(tmp_path) == files
    applied = subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=diff.out.encode(), capture_output=True
    )
    assert applied.returncode == 0, applied.stderr
    assert read_files(tmp_path)["a.ipynb"].decode() == after


def changed_lines(before: str, after: str) -> list[str]:
    """The lines that came in the place of others, as code; the others are the same."""
    old, new = before.splitlines(), after.splitlines()
    assert len(old) == len(new)
    found = [line for line, was in zip(new, old, strict=True) if line != was]
    return [
        json.loads(line.rstrip(",")).rstrip("\n") if line.lstrip().startswith('"') else line
        for line in found
    ]


def test_a_fixed_notebook_runs(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.ipynb": jupyter(IMPORTS.strip(), BLOCK.strip(), USE)})
    assert cli(tmp_path, "--fix", *ONLY).code == 0
    cells = json.loads((tmp_path / "a.ipynb").read_text())["cells"]
    lines = [line for cell in cells[1:] for line in "".join(cell["source"]).splitlines()]
    program = "\n".join(line for line in lines if not line.startswith("%mat"))
    ran = subprocess.run(
        [sys.executable, "-c", program + "\nprint(float(out))"], capture_output=True, text=True
    )
    assert ran.stdout == "1.0806045532226562\n", ran.stderr


def test_suppressions(tmp_path: Path) -> None:
    old = "import jax\nf = jax.checkpoint(abs, concrete=False)"
    write_files(tmp_path, {"a.ipynb": jupyter(f"{old}  # noqa: RMT101")})
    assert cli(tmp_path).code == 0
    write_files(tmp_path, {"a.ipynb": jupyter("# remat-migrate: ignore-file", old)})
    assert cli(tmp_path).code == 0
    # Not what is written about it between the cells.
    prose = jupyter(old).replace("# jax.checkpoint", "# remat-migrate: ignore-file")
    assert prose != jupyter(old)
    write_files(tmp_path, {"a.ipynb": prose})
    assert cli(tmp_path).code == 1


def test_a_glance_sees_the_code(tmp_path: Path) -> None:
    from remat_migrate.prefilter.single_files import cannot_matter

    def without_words(cell: str) -> str:
        text = jupyter(cell).replace("concrete=True", "")
        return text.replace("checkpoint", "c").replace("remat", "r")

    hidden = '{"cells": [{"cell_type": "code", "source": "import jax; jax.\\u0072emat(abs)"}]}'
    files = {
        "a.ipynb": without_words("import jax"),
        "b.ipynb": without_words("from mine import again\nagain(abs)"),
        "c.ipynb": hidden,
        "mine.py": "from jax import checkpoint as again\n",
        "pyproject.toml": "",
    }
    write_files(tmp_path, files)
    assert cannot_matter([tmp_path / "a.ipynb"])
    assert not cannot_matter([tmp_path / "b.ipynb"])
    assert not cannot_matter([tmp_path / "c.ipynb"])


def test_a_fix_in_a_notebook_is_not_exercised(tmp_path: Path) -> None:
    cell = "import jax\nf = jax.checkpoint(lambda x: x * 2, concrete=True)"
    write_files(tmp_path, {"pyproject.toml": "", "a.ipynb": jupyter(cell)})
    ran = cli(tmp_path, "--fix", "--verify")
    assert "not-exercised  a.ipynb (notebooks cannot be imported)" in ran.out + ran.err
    assert "proved 0 by running the code, 1 not proved" in ran.out
