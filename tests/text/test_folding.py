"""Folding: the folded expression has the value of the original."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.analysis.flag.folding import TRUE_TEXT, Known, fold
from remat_migrate.codemod.tree.reductions import is_pure
from remat_migrate.codemod.tree.removal import plan_removals
from remat_migrate.codemod.writer import write
from remat_migrate.text import SourceFile, apply_edits


def folded(expression: str, known: Known, *, test: bool = False) -> str:
    """Return an expression folded for a value of `KNOWN`, as the test of an `if` if asked."""
    code = f"if {expression}:\n    a\nelse:\n    b\n" if test else f"x = {expression}\n"
    source = SourceFile(Path("/m.py"), code)
    tree = source.parse()
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    reads = {n: known for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "KNOWN"}
    changes = [folding.change for folding in fold(reads, parents.get)]
    edits = [e for r in plan_removals(File(source, tree), changes) for e in write(r.changes)]
    new = apply_edits(code, edits)
    return new if test else new.removeprefix("x = ").strip()


EXPRESSIONS = [
    "KNOWN",
    "not KNOWN",
    "not not KNOWN",
    "KNOWN and p",
    "p and KNOWN",
    "KNOWN or p",
    "p or KNOWN",
    "not KNOWN and p",
    "p and not KNOWN and q",
    "p or not KNOWN or q",
    "(p or KNOWN) and q",
    "p if KNOWN else q",
    "p if not KNOWN else q",
    "p if q else KNOWN",
    "(p if KNOWN else q) if p else q",
    "KNOWN == True",
    "KNOWN is False",
    "KNOWN != True",
    "True == KNOWN",
    "KNOWN == p",
    "bool(KNOWN) and p",
    "int(KNOWN)",
    "int(KNOWN) == 1",
    "KNOWN and not KNOWN",
    "[KNOWN, p]",
    "{p: KNOWN}",
    "p + (q if KNOWN else p)",
    "(p + q if KNOWN else p) * 2",
    "-(p if KNOWN else q)",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("value", [True, False])
def test_folded_expressions_keep_their_value(expression, value):
    new = folded(expression, value)
    assert "KNOWN" not in new
    for p, q in itertools.product((0, 1, 3), repeat=2):
        before = eval(expression, {"KNOWN": value, "p": p, "q": q})
        after = eval(new, {"p": p, "q": q})
        assert (before, type(before)) == (after, type(after))


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("value", [True, False])
def test_folded_tests_take_the_same_branch(expression, value):
    new = folded(expression, value, test=True)
    assert "KNOWN" not in new
    for p, q in itertools.product((0, 1), repeat=2):
        names = {"p": p, "q": q, "a": "a", "b": "b"}
        expected = "a" if eval(expression, {**names, "KNOWN": value}) else "b"
        taken = ast.unparse(_ending(ast.parse(new), names))
        assert taken == expected


def _ending(tree: ast.Module, names: dict[str, object]) -> ast.stmt:
    """Return the statement that runs."""
    (statement,) = tree.body
    while isinstance(statement, ast.If):
        test = eval(compile(ast.Expression(statement.test), "", "eval"), dict(names))
        (statement,) = statement.body if test else statement.orelse
    return statement


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("KNOWN", '"1"'),
        ('KNOWN == "1"', "True"),
        ('KNOWN == "0"', "False"),
        ('KNOWN != "0"', "True"),
        ('KNOWN == "false"', "False"),
        ('KNOWN.lower() == "true"', "True"),
        ('KNOWN.strip().lower() in ("1", "true", "yes")', "True"),
        ('KNOWN not in ("0", "false")', "True"),
        ('KNOWN in ("0", "1")', '"1" in ("0", "1")'),
        ("KNOWN is None", "False"),
        ("KNOWN is not None", "True"),
        ("not KNOWN", "False"),
        ("int(KNOWN)", "1"),
        ("bool(int(KNOWN))", "True"),
        ("strtobool(KNOWN)", "1"),
        ('KNOWN == "maybe"', '"1" == "maybe"'),
        ("f(KNOWN)", 'f("1")'),
    ],
)
def test_true_spellings(expression, expected):
    assert folded(expression, TRUE_TEXT) == expected


@pytest.mark.parametrize(
    ("code", "pure"),
    [
        ("a.b[c] + 1 < d and not e", True),
        ("version.parse(jax.__version__) < version.parse('0.3.17')", True),
        ("isinstance(x, int) and len(x)", True),
        ("launch()", False),
        ("a.launch()", False),
        ("(n := 1)", False),
        ("f()()", False),
        ("[f(x) for x in y]", False),
        ("lambda: 1", True),
    ],
)
def test_purity(code, pure):
    assert is_pure(ast.parse(code, mode="eval").body) is pure
