"""Removing nodes from Python text: what is removed with them, and what stays unchanged."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.codemod.changes import Change, Keep, Remove
from remat_migrate.codemod.writer import write
from remat_migrate.engine.integrity import check_integrity
from remat_migrate.text import SourceFile, apply_edits


def removed(code: str, name: str = "module.py", used: str = "") -> str:
    """Return `code` without calls of `zap()`, their statements, items, and decorators; what
    depends on `FLAG` is reduced to the case that it is true.

    Another file uses the name `used`.
    """
    source = SourceFile(Path("/project") / name, code)
    file = File(source, source.parse())
    parents = {child: node for node in ast.walk(file.tree) for child in ast.iter_child_nodes(node)}
    changes: list[Change] = []
    for node in ast.walk(file.tree):
        match node:
            case ast.Call(func=ast.Name(id="zap") | ast.Attribute(attr="zap")):
                holder = parents[node]
                gone = holder if isinstance(holder, ast.Expr) else node
                changes.append(Remove(file, gone, lambda name: name == used))
            case ast.IfExp(test=ast.Name(id="FLAG")):
                changes.append(Keep(file, node, node.body, lambda name: name == used))
    edits = sorted(write(changes))
    new = apply_edits(code, edits)
    assert check_integrity(source, new, edits) is None
    return new


def check(before: str, after: str) -> None:
    before, after = (textwrap.dedent(text).lstrip("\n") for text in (before, after))
    assert removed(before) == after
    windows = removed(before.replace("\n", "\r\n"))
    assert windows == after.replace("\n", "\r\n")


def test_statements_that_share_a_line():
    check("a(); zap(); b()\n", "a(); b()\n")
    check("a(); zap()\n", "a()\n")
    check("zap(); a()  # c\n", "a()  # c\n")
    check("zap(); zap();\nx = 1\n", "x = 1\n")
    check("if y: zap(); a()\n", "if y: a()\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(\n    a,\n    zap(),  # c\n    b,\n)\n", "f(\n    a,\n    # c\n    b,\n)\n"),
        ("f(a,\n  b, zap(),\n  c)\n", "f(a,\n  b,\n  c)\n"),
        ("x = (zap(), 1)\n", "x = (1,)\n"),
        ("x = 1, zap()\n", "x = 1,\n"),
        ("x = zap(),\n", "x = ()\n"),
        ("x = {zap()}\n", "x = set()\n"),
    ],
)
def test_items(before, after):
    check(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 2 * (a + b if FLAG else c)\n", "x = 2 * (a + b)\n"),
    ],
)
def test_reduced_to_one_part(before, after):
    check(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from a import (\n    b,\n    cfg,  # c\n)\ncfg.zap()\nb\n",
            "from a import (\n    b,\n    # c\n)\nb\n",
        ),
    ],
)
def test_unused_imports_are_removed(before, after):
    check(before, after)


@pytest.mark.parametrize(
    "code",
    [
        "import cfg  # noqa: F401\ncfg.zap()\n",
        "import cfg  # noqa\ncfg.zap()\n",
        "import cfg as cfg\ncfg.zap()\n",
        "import cfg\ncfg.zap()\ndef f():\n    global cfg\n",
    ],
)
def test_used_imports_stay(code):
    assert "cfg" in removed(code).partition("\n")[0] + removed(code)
    for line in code.splitlines():
        assert "zap" in line or line in removed(code).splitlines()


def test_imports_of_a_package_stay():
    assert removed("from a import cfg\ncfg.zap()\n", "__init__.py") == "from a import cfg\n"
    assert removed("import cfg\ncfg.zap()\n", "__init__.py") == ""
    kept = removed("import cfg\ncfg.zap()\n", used="cfg")
    assert kept == "import cfg\n"
