"""Removing nodes from Python text: what is removed with them, and what stays unchanged."""

from __future__ import annotations

import ast
import random
import textwrap
from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.codemod.changes import Change, Keep, Remove
from remat_migrate.codemod.writer import write
from remat_migrate.engine.integrity import check_integrity
from remat_migrate.text import SourceFile, apply_edits

ROOT = Path(__file__).parents[2]


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


def test_a_removed_statement_keeps_the_comments_above_it():
    check(
        """
        x = 1

        # Why.
        zap()  # see 1
        zap(
            1,  # inside
        )

        y = 2
        """,
        """
        x = 1

        # Why.
        # see 1
        # inside

        y = 2
        """,
    )


def test_pragma_comments_are_removed_with_their_line():
    check("zap()  # noqa: E501\nx = 1  # noqa\n", "x = 1  # noqa\n")


def test_blank_lines_do_not_pile_up():
    check("import os\n\n\nzap()\nzap()\n\n\nx = os\n", "import os\n\n\nx = os\n")
    check("def f():\n    zap()\n\n    return 1\n", "def f():\n    return 1\n")
    check("zap()\n\nx = 1\n", "x = 1\n")
    check("x = 1\n\nzap()\n", "x = 1\n")
    check("class A:\n    x = 1\n\n    zap()\n\n\ny = 2\n", "class A:\n    x = 1\n\n\ny = 2\n")


def test_statements_that_share_a_line():
    check("a(); zap(); b()\n", "a(); b()\n")
    check("a(); zap()\n", "a()\n")
    check("zap(); a()  # c\n", "a()  # c\n")
    check("zap(); zap();\nx = 1\n", "x = 1\n")
    check("if y: zap(); a()\n", "if y: a()\n")


def test_file_without_a_last_newline():
    assert removed("x = 1\nzap()") == "x = 1\n"
    assert removed("def f():\n    zap()") == "def f():\n    pass"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if x:\n    zap()\ny = 1\n", "if x:\n    pass\ny = 1\n"),
        ("if x: zap()\ny = 1\n", "if x: pass\ny = 1\n"),
        ("if x:\n    zap()\n    pass\ny = 1\n", "if x:\n    pass\ny = 1\n"),
        ("if x: zap()\nelse: a()\n", "if x: pass\nelse: a()\n"),
        ("if x:\n    zap()\nelif y:\n    a()\n", "if x:\n    pass\nelif y:\n    a()\n"),
        ("if x:\n    a()\nelse:\n    zap()\nz\n", "if x:\n    a()\nelse:\n    pass\nz\n"),
        ("def f():\n    zap()\n", "def f():\n    pass\n"),
        ("def f():\n    # why\n    zap()  # so\n", "def f():\n    pass\n    # why\n    # so\n"),
        ('def f():\n    """Doc."""\n    zap()\n', 'def f():\n    """Doc."""\n'),
        ("try:\n    zap()\nfinally:\n    b()\n", "try:\n    pass\nfinally:\n    b()\n"),
        ("match x:\n    case 1:\n        zap()\n", "match x:\n    case 1:\n        pass\n"),
    ],
)
def test_emptied_blocks(before, after):
    check(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, zap())\n", "f(a)\n"),
        ("f(zap(), a)\n", "f(a)\n"),
        ("f(zap())\n", "f()\n"),
        ("f((zap()), k=1)\n", "f(k=1)\n"),
        ("f(\n    a,\n    zap(),  # c\n    b,\n)\n", "f(\n    a,\n    # c\n    b,\n)\n"),
        ("f(\n    a,\n    zap()\n)\n", "f(\n    a\n)\n"),
        ("f(a,\n  zap(), b)\n", "f(a,\n  b)\n"),
        ("f(a,\n  b, zap(),\n  c)\n", "f(a,\n  b,\n  c)\n"),
        ("x = [1, zap(), 2]\n", "x = [1, 2]\n"),
        ("x = (1, zap())\n", "x = (1,)\n"),
        ("x = (zap(), 1)\n", "x = (1,)\n"),
        ("x = 1, zap()\n", "x = 1,\n"),
        ("x = zap(),\n", "x = ()\n"),
        ("x = {zap()}\n", "x = set()\n"),
        ("x = [f(zap())]\n", "x = [f()]\n"),
        ("@zap()\ndef f(): ...\n", "def f(): ...\n"),
        ("@a\n@zap()  # c\nclass A: ...\n", "@a\n# c\nclass A: ...\n"),
    ],
)
def test_items(before, after):
    check(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = a if FLAG else b\n", "x = a\n"),
        ("x = (a if FLAG else b)\n", "x = a\n"),
        ("x = (a, b) if FLAG else c\n", "x = (a, b)\n"),
        ("x = 2 * (a + b if FLAG else c)\n", "x = 2 * (a + b)\n"),
        ("x = (\n    a  # new\n    if FLAG\n    else b\n)\n", "# new\nx = a\n"),
    ],
)
def test_reduced_to_one_part(before, after):
    check(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from a import cfg\ncfg.zap()\nx = 1\n", "x = 1\n"),
        ("from a import cfg, b\ncfg.zap()\nx = b\n", "from a import b\nx = b\n"),
        (
            "from a import (\n    b,\n    cfg,  # c\n)\ncfg.zap()\nb\n",
            "from a import (\n    b,\n    # c\n)\nb\n",
        ),
        ("import cfg, os\ncfg.zap()\nos\n", "import os\nos\n"),
        ("import a.cfg\na.cfg.zap()\n", ""),
        ("def f():\n    import cfg\n    cfg.zap()\n    return 1\n", "def f():\n    return 1\n"),
    ],
)
def test_unused_imports_are_removed(before, after):
    check(before, after)


@pytest.mark.parametrize(
    "code",
    [
        "import cfg\ncfg.zap()\nprint(cfg)\n",
        "import cfg  # noqa: F401\ncfg.zap()\n",
        "import cfg  # noqa\ncfg.zap()\n",
        "import cfg as cfg\ncfg.zap()\n",
        '__all__ = ["cfg"]\nimport cfg\ncfg.zap()\n',
        '__all__ = []\nimport cfg\n__all__ += ["cfg"]\ncfg.zap()\n',
        'import cfg\ncfg.zap()\ndef f(x: "cfg.A") -> None: ...\n',
        "import cfg\ncfg.zap()\nx = []  # type: list[cfg.A]\n",
        'import cfg\ncfg.zap()\npatch("package.module.cfg.x")\n',
        "import cfg\ncfg.zap()\ncfg = None\n",
        "try:\n    import cfg\n    cfg.zap()\nexcept ImportError:\n    HAVE = False\n",
        "try:\n    from a import cfg\nexcept E:\n    from b import cfg\ncfg.zap()\n",
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


FORMS = (
    "zap()\n",
    "zap(\n  1)\n",
    "zap(); zap()\n",
)


@pytest.mark.parametrize("seed", range(4))
def test_inserted_statements_are_removed_without_a_trace(seed):
    """Insert statements anywhere into real files; removing them restores every byte."""
    chosen = random.Random(seed)
    paths = sorted((ROOT / "remat_migrate").rglob("*.py"))
    paths = [path for path in paths if "FLAG" not in path.read_text()]
    for path in chosen.sample(paths, 8):
        code = path.read_text()
        source = SourceFile(path, code)
        lines: dict[int, str] = {}
        for node in ast.walk(source.parse()):
            for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
                for statement in block if isinstance(block, list) else ():
                    indent = " " * statement.col_offset
                    text = source.line_text(statement.lineno)
                    fixed = getattr(statement, "decorator_list", []) or text.lstrip().startswith(
                        ("elif", "from __future__", '"""')
                    )
                    if not fixed and not text[: statement.col_offset].strip():
                        lines[statement.lineno] = indent
        new = code.splitlines(keepends=True)
        for line in sorted(chosen.sample(sorted(lines), min(6, len(lines))), reverse=True):
            form = chosen.choice(FORMS).splitlines(keepends=True)
            new[line - 1 : line - 1] = [lines[line] + part for part in form]
        assert removed("".join(new), path.name) == code
