"""Finding LibCST nodes by the positions of `ast` nodes."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest
from codemod_support import File
from support import cli

from remat_migrate.codemod.locate import node_of
from remat_migrate.text import SourceFile

HEAD = "def f(x):\n    return x\n\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "if x:\n\tg = [\nh(x)]\n",
    ],
)
def test_blocks_that_are_indented_in_another_way_than_the_rest_of_the_file(text: str) -> None:
    source = SourceFile(Path("/m.py"), HEAD + text)
    file = File(source, source.parse())
    (call,) = (node for node in ast.walk(file.tree) if isinstance(node, ast.Call))
    found = node_of(file, call)
    assert isinstance(found, cst.Call)
    assert cst.ensure_type(found.func, cst.Name).value == "h"


SITE = "import jax\n\nf = jax.checkpoint(abs, concrete=False)"
ONLY_PYTHON = {
    "backslash": f"{SITE} ; \\\n\n",
    "form_feed": SITE.replace("f =", "if True:\n    x = 1\n\f    f =") + "\n",
    "carriage_return": f"{SITE}\r",
}


@pytest.mark.parametrize("name", ONLY_PYTHON)
def test_code_that_only_python_parses_keeps_its_finding(tmp_path: Path, name: str) -> None:
    code = ONLY_PYTHON[name].encode()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "m.py").write_bytes(code)
    ran = cli(tmp_path, "--fix")
    assert ran.code == 1
    assert "RMT101" in ran.out
    assert "the fix of RMT101 was not made: LibCST " in ran.err
    assert "defect" not in ran.err
    assert (tmp_path / "m.py").read_bytes() == code
