"""Removing nodes from Python text: what is removed with them, and what stays unchanged."""

from __future__ import annotations

import ast
import random
import textwrap
from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.codemod.tree.reductions import Reduction
from remat_migrate.codemod.tree.removal import plan_removals
from remat_migrate.codemod.writer import write
from remat_migrate.engine.integrity import check_integrity
from remat_migrate.text import SourceFile, apply_edits

ROOT = Path(__file__).parents[2]


def removed(code: str, name: str = "module.py", **options: object) -> str:
    """Return `code` without calls of `zap()`, their statements, items, and decorators; what
    depends on `FLAG` is reduced to the case that it is true.
    """
    source = SourceFile(Path("/project") / name, code)
    tree = source.parse()
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    changes: list[Reduction] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="zap") | ast.Attribute(attr="zap")):
                holder = parents[node]
                whole = isinstance(holder, ast.Expr | ast.withitem)
                changes.append(Reduction(remove=(holder if whole else node,)))
            case ast.If(test=ast.Name(id="FLAG")):
                changes.append(Reduction(suites=((node, node.body),)))
            case ast.If(test=ast.UnaryOp(operand=ast.Name(id="FLAG"))):
                changes.append(Reduction(suites=((node, node.orelse),)))
            case ast.IfExp(test=ast.Name(id="FLAG")):
                changes.append(Reduction(keep=((node, node.body),)))
    edits = [
        e
        for r in plan_removals(File(source, tree), changes, **options)  # type: ignore[arg-type]
        for e in write(r.changes)
    ]
    new = apply_edits(code, edits)
    assert check_integrity(source, new, edits) is None
    return new


def check(before: str, after: str, **options: object) -> None:
    before, after = (textwrap.dedent(text).lstrip("\n") for text in (before, after))
    assert removed(before, **options) == after
    windows = removed(before.replace("\n", "\r\n"), **options)
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
        ("if x:\n    zap()\ny = 1\n", "y = 1\n"),
        ("if f():\n    zap()\ny = 1\n", "if f():\n    pass\ny = 1\n"),
        ("if x: zap()\ny = 1\n", "y = 1\n"),
        ("if x:\n    zap()\n    pass\ny = 1\n", "y = 1\n"),
        ("if x: zap()\nelse: a()\n", "if x: pass\nelse: a()\n"),
        ("if x:\n    zap()\nelse:\n    a()\n", "if not x:\n    a()\n"),
        ("if not x:\n    zap()\nelse:\n    a()\n", "if x:\n    a()\n"),
        ("if x == 1:\n    zap()\nelse:\n    a()\n", "if x != 1:\n    a()\n"),
        ("if x < 1:\n    zap()\nelse:\n    a()\n", "if not x < 1:\n    a()\n"),
        ("if x and y:\n    zap()\nelse:\n    a()\n", "if not (x and y):\n    a()\n"),
        ("if x:\n    zap()\nelif y:\n    a()\n", "if x:\n    pass\nelif y:\n    a()\n"),
        ("if x:\n    a()\nelif y:\n    zap()\nz\n", "if x:\n    a()\nz\n"),
        ("if x:\n    a()\nelse:\n    zap()\nz\n", "if x:\n    a()\nz\n"),
        ("for i in (1, 2):\n    zap()\nz\n", "z\n"),
        ("for i in f():\n    zap()\nz\n", "for i in f():\n    pass\nz\n"),
        ("for i in (1, 2):\n    zap()\nprint(i)\n", "for i in (1, 2):\n    pass\nprint(i)\n"),
        ("while x:\n    zap()\n", "while x:\n    pass\n"),
        ("def f():\n    zap()\n", "def f():\n    pass\n"),
        ('def f():\n    """Doc."""\n    zap()\n', 'def f():\n    """Doc."""\n'),
        ("class A:\n    zap()\n", "class A:\n    pass\n"),
        ("with a:\n    zap()\n", "with a:\n    pass\n"),
        ("with suppress(E):\n    zap()\nz\n", "z\n"),
        ("with zap():\n    # why\n    a()\n    b()\n", "# why\na()\nb()\n"),
        ("with zap() as g, b:\n    a()\n", "with b:\n    a()\n"),
        ("with (\n    zap(),\n    b,\n):\n    a()\n", "with (\n    b,\n):\n    a()\n"),
        ("try:\n    zap()\nexcept E:\n    a()\nz\n", "z\n"),
        ("try:\n    zap()\nexcept E:\n    a()\nelse:\n    b()\nz\n", "b()\nz\n"),
        ("try:\n    zap()\nfinally:\n    b()\n", "b()\n"),
        ("try:\n    a()\nfinally:\n    zap()\n", "a()\n"),
        (
            "try:\n    a()\nexcept E:\n    zap()\nfinally:\n    zap()\n",
            "try:\n    a()\nexcept E:\n    pass\n",
        ),
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
        ("if FLAG:\n    a()\nelse:\n    b()\n", "a()\n"),
        ("if not FLAG:\n    a()\nelse:\n    b()\n", "b()\n"),
        ("if not FLAG:\n    a()\nz\n", "z\n"),
        ("if FLAG:\n    pass\nelse:\n    a()\nz\n", "z\n"),
        (
            "if not FLAG:\n    a()\nelif x:\n    b()\nelse:\n    c()\n",
            "if x:\n    b()\nelse:\n    c()\n",
        ),
        (
            "if x:\n    a()\nelif FLAG:\n    b()\nelse:\n    c()\n",
            "if x:\n    a()\nelse:\n    b()\n",
        ),
        (
            "if x:\n    a()\nelif not FLAG:\n    b()\nelif y:\n    c()\n",
            "if x:\n    a()\nelif y:\n    c()\n",
        ),
        (
            "if x:\n    a()\nelif not FLAG:\n    b()\nelse:\n    c()\n",
            "if x:\n    a()\nelse:\n    c()\n",
        ),
        ("if FLAG: a(); b()\nelse: c()\nz\n", "a(); b()\nz\n"),
        ("x = a if FLAG else b\n", "x = a\n"),
        ("x = (a if FLAG else b)\n", "x = a\n"),
        ("x = (a, b) if FLAG else c\n", "x = (a, b)\n"),
        ("x = 2 * (a + b if FLAG else c)\n", "x = 2 * (a + b)\n"),
        ("x = (\n    a  # new\n    if FLAG\n    else b\n)\n", "x = (\n    a  # new\n)\n"),
    ],
)
def test_reduced_to_one_part(before, after):
    check(before, after)


def test_branch_moves_left_but_not_its_strings():
    check(
        '''
        def f():
            if FLAG:  # head
                # new
                a = """
            x
                """
                b = g(1,
                      2)
                # end
            else:  # other
                # old
                a = 1
                # end of old
            # after
            return a
        ''',
        '''
        def f():
            # head
            # new
            a = """
            x
                """
            b = g(1,
                  2)
            # end
            # after
            return a
        ''',
    )


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
        ("import a\ncfg = a.cfg\ncfg.zap()\n", ""),
        ("try:\n    from a import cfg\n    cfg.zap()\nexcept ImportError:\n    pass\nz\n", "z\n"),
        ("try:\n    from a import cfg\nexcept E:\n    from b import cfg\ncfg.zap()\nz\n", "z\n"),
        ("import os\nif os.x:\n    zap()\nz\n", "z\n"),
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
    kept = removed("import cfg\ncfg.zap()\n", is_used_elsewhere=lambda name: name == "cfg")
    assert kept == "import cfg\n"


def test_dependent_removals_share_a_group():
    code = "import cfg\nif x:\n    cfg.zap()\n    cfg.zap()\ny = 1\nz = [zap(), 1]\n"
    source = SourceFile(Path("/project/module.py"), code)
    tree = source.parse()
    first, second = tree.body[1].body  # type: ignore[attr-defined]
    item = tree.body[3].value.elts[0]  # type: ignore[attr-defined]
    changes = [Reduction(remove=(node,)) for node in (first, second, item)]
    removals = plan_removals(File(source, tree), changes)
    assert sorted(sorted(r.members) for r in removals) == [[0, 1], [2]]
    for removal in removals:
        ast.parse(apply_edits(code, write(removal.changes)))


FORMS = (
    "zap()\n",
    "zap(\n  1)\n",
    "if ZAP:\n  zap()\n",
    "with zap():\n  zap()\n",
    "try:\n  zap()\nexcept Error: pass\n",
    "for LOOP in ():\n  zap()\n",
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
