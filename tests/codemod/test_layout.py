"""New code is laid out as the code around it is: breaking lines is left to formatters."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from codemod_support import File
from support import cli, write_files

from remat_migrate.codemod.changes import Code, SetArgument
from remat_migrate.codemod.writer import write
from remat_migrate.text import SourceFile, apply_edits


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = g(\n    x,\n    z\n)\n", "y = g(\n    x,\n    z,\n    train=True\n)\n"),
        ("y = g(x,\n      z)\n", "y = g(x,\n      z,\n      train=True)\n"),
        ("y = g(x, z,\n      w)\n", "y = g(x, z,\n      w, train=True)\n"),
    ],
)
def test_an_argument_is_added(before: str, after: str) -> None:
    """`train=True` is added to the first call of `g`."""
    source = SourceFile(Path("/m.py"), before)
    file = File(source, source.parse())
    calls = [n for n in ast.walk(file.tree) if isinstance(n, ast.Call)]
    call = next(n for n in calls if ast.unparse(n.func) == "g")
    assert apply_edits(before, write([SetArgument(file, call, "train", Code("True"))])) == after


def test_two_fixes_of_one_function_wait_for_each_other(tmp_path: Path) -> None:
    """One removes a decorator, the other nests the body and removes another one."""
    code = (
        "import jax\nimport flax.linen as nn\nfrom functools import partial\n\n\n"
        "class Net(nn.Module):\n"
        "    @partial(nn.remat, static_argnums=1)\n"
        "    @partial(jax.checkpoint, concrete=True)\n"
        "    def layers(self, x, n: int):\n"
        "        for _ in range(n):\n"
        "            x = x * 2\n"
        "        return x\n"
    )
    write_files(tmp_path, {"pyproject.toml": "", "m.py": code})
    ran = cli(tmp_path, "--fix", "--unsafe-fixes")
    assert (ran.code, ran.err) in ((0, ""), (1, ""))
    after = (tmp_path / "m.py").read_text()
    assert "concrete" not in after
    ast.parse(after)
